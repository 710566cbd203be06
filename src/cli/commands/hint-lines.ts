import type { CliPorts } from '../cli-ports.ts'
import { printable } from '../texts.ts'

type DocumentHints = Awaited<ReturnType<CliPorts['documentHints']>>

const maxLines = 50
/** Fewer notes of a kind are printed one by one. */
const minGrouped = 4
const maxNamed = 3

/** The operation that a note is about, and what it says of it. A position may stand before. */
const operationHint = /^(?:\S+:\d+:\d+ )?([A-Z]+ \/\S*?)(:? [^/].*)$/s

/** The same for all notes that say the same of an operation; the text itself for other notes. */
const sentenceOf = (text: string): string =>
  operationHint.exec(text)?.[2]?.replace(/; the first is at .*$/, '') ?? text

const groupText = (sentence: string, texts: readonly string[]): string => {
  const operations = texts.slice(0, maxNamed).map((text) => operationHint.exec(text)?.[1] ?? '')
  return `of ${texts.length} operations each${sentence} (${operations.join(', ')}, ...; --json prints all)`
}

/** What of OpenAPI documents is accepted but not checked; notes that say the same of many operations are one line. */
export const hintLines = (hints: DocumentHints, file: string): string => {
  const groups = new Map<string, { readonly service: string; readonly sentence: string; texts: string[] }>()
  for (const { service, text } of hints) {
    const sentence = sentenceOf(text)
    const key = `${service} ${sentence}`
    const group = groups.get(key) ?? { service, sentence, texts: [] }
    groups.set(key, group)
    group.texts.push(text)
  }
  const lines = [...groups.values()].flatMap(({ service, sentence, texts }) =>
    (texts.length < minGrouped ? texts : [groupText(sentence, texts)]).map((text) =>
      printable(`${file}: document of ${service}: ${text}\n`),
    ),
  )
  const more = lines.length - maxLines
  return `${lines.slice(0, maxLines).join('')}${more > 0 ? `${file}: ${more} more notes on documents\n` : ''}`
}
