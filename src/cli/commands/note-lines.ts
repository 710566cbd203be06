import type { CliPorts } from '../cli-ports.ts'
import { printable } from '../texts.ts'

type DocumentNotes = Awaited<ReturnType<CliPorts['documentNotes']>>

const maxLines = 50
/** Fewer notes of a kind are printed one by one. */
const minGrouped = 4
const maxNamed = 3

/** The operation that a note is about, and what it says of it. A position may stand before. */
const operationNote = /^(?:\S+:\d+:\d+ )?([A-Z]+ \/\S*?)(:? [^/].*)$/s

/** The same for all notes that say the same of an operation; the text itself for other notes. */
const statementOf = (text: string): string =>
  operationNote.exec(text)?.[2]?.replace(/; the first is at .*$/, '') ?? text

const groupText = (statement: string, texts: readonly string[]): string => {
  const operations = texts.slice(0, maxNamed).map((text) => operationNote.exec(text)?.[1] ?? '')
  return `of ${texts.length} operations each${statement} (${operations.join(', ')}, ...; --json prints all)`
}

/** What of OpenAPI documents is accepted but not checked; notes that say the same of many operations are one line. */
export const noteLines = (notes: DocumentNotes, file: string): string => {
  const groups = new Map<string, { readonly service: string; readonly statement: string; texts: string[] }>()
  for (const { service, text } of notes) {
    const statement = statementOf(text)
    const key = `${service} ${statement}`
    const group = groups.get(key) ?? { service, statement, texts: [] }
    groups.set(key, group)
    group.texts.push(text)
  }
  const lines = [...groups.values()].flatMap(({ service, statement, texts }) =>
    (texts.length < minGrouped ? texts : [groupText(statement, texts)]).map((text) =>
      printable(`${file}: document of ${service}: ${text}\n`),
    ),
  )
  const more = lines.length - maxLines
  return `${lines.slice(0, maxLines).join('')}${more > 0 ? `${file}: ${more} more notes on documents\n` : ''}`
}
