import { isAscii } from 'node:buffer'
import type { FieldLines } from '../../http/fields.ts'
import { type JsonText, valueEnd, visitValues } from '../../http/json-text.ts'
import { isJsonObject } from '../../http/json-value.ts'
import type { ItemAnswer } from '../item.ts'

/** What the upstream's answer to a whole chunk means for its items. */
export type ChunkAnswer =
  /** In the order of the items; contents are the upstream's bytes. */
  | { readonly kind: 'answered'; readonly answers: readonly ItemAnswer[] }
  /** The upstream refused the chunk as a whole: nothing of it has run. */
  | { readonly kind: 'not-run' }
  /** Too many requests: nothing of it has run, and nothing else should be tried now. */
  | { readonly kind: 'limited' }
  /** It is unknown which items ran. */
  | { readonly kind: 'broken' }

const parsed = (text: JsonText): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const namePattern = /^[!#$%&'*+.^`|~0-9A-Za-z-]{1,64}$/
const valuePattern = /^[\t\x20-\x7e\x80-\xff]{0,8192}$/

/** `headers` of an item as fields; `[]` is how PHP writes an empty map. */
const fieldLines = (headers: unknown): FieldLines => {
  // It stands in a JSON document, so it is JSON; names and URLs in it are translated as in an answer of its own.
  const lines = ['Content-Type', 'application/json; charset=UTF-8']
  if (!isJsonObject(headers)) return lines
  for (const [name, value] of Object.entries(headers)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      const text = String(one)
      if (namePattern.test(name) && valuePattern.test(text)) lines.push(name, text)
    }
  }
  return lines
}

/** The text of an answer, and the octets that it was read from. */
type Source = { readonly text: JsonText; slice(from: number, end: number): Buffer }

const sourceOf = (content: Buffer): Source => {
  if (!isAscii(content)) {
    const text = content
      .toString()
      .replace(/^\ufeff/, '')
      .trim()
    return { text, slice: (from, end) => Buffer.from(text.slice(from, end)) }
  }
  // WordPress writes nothing but ASCII: then positions in the text are positions in the octets, and nothing is copied.
  const whole = content.toString('latin1')
  const text = whole.trim()
  const before = whole.length - whole.trimStart().length
  return { text, slice: (from, end) => content.subarray(before + from, before + end) }
}

/** Reads items one after the other; mostly all of them have the same headers. */
const createItemReader = ({ text, slice }: Source) => {
  let headers = ''
  let lines = fieldLines([])
  const linesOf = (one: JsonText): FieldLines => {
    if (one === headers) return lines
    headers = one
    lines = fieldLines(parsed(one))
    return lines
  }

  /** The item that begins at `at`, and where it ends; of a repeated name the last one counts. */
  return (at: number): { readonly answer: ItemAnswer | undefined; readonly end: number } => {
    if (text[at] !== '{') return { answer: undefined, end: valueEnd(text, at) }
    let content: Buffer | undefined
    let status = Number.NaN
    let fields: JsonText = '[]'
    const end = visitValues(text, at, (from, name) => {
      const to = valueEnd(text, from)
      if (name === 'body') content = slice(from, to)
      else if (name === 'status') status = Number(text.slice(from, to))
      else if (name === 'headers') fields = text.slice(from, to)
      return to
    })
    const isStatus = Number.isInteger(status) && status >= 200 && status <= 599
    if (content === undefined || !isStatus) return { end, answer: undefined }
    return { end, answer: { status, fields: linesOf(fields), content } }
  }
}

const itemAnswers = (source: Source, size: number): ChunkAnswer => {
  const { text } = source
  const readItem = createItemReader(source)
  let answers: (ItemAnswer | undefined)[] = []
  visitValues(text, 0, (from, name) => {
    if (name !== 'responses') return valueEnd(text, from)
    answers = []
    if (text[from] !== '[') return valueEnd(text, from)
    return visitValues(text, from, (at) => {
      const { answer, end } = readItem(at)
      answers.push(answer)
      return end
    })
  })
  const known = answers.filter((answer) => answer !== undefined)
  return known.length === size && answers.length === size
    ? { kind: 'answered', answers: known }
    : { kind: 'broken' }
}

/** Refusals that WordPress makes before it runs anything: no such route, not for this caller, not this envelope. */
const refusesWhole = (status: number, body: unknown): boolean => {
  // The program behind has not seen what is too large for the server in front of it (RFC 9110 §15.5.14).
  if (status === 413) return true
  if (!isJsonObject(body) || typeof body['code'] !== 'string' || !isJsonObject(body['data'])) return false
  const { data, code } = body
  if (data['status'] !== status) return false
  if (status === 404) return code === 'rest_no_route'
  if (status === 400) {
    const { params } = data
    return code === 'rest_invalid_param' && isJsonObject(params) && 'requests' in params
  }
  return status === 401 || status === 403
}

/** Reads the answer to a chunk of `size` items. Pure; after anything unexpected the outcome is unknown. */
export const readChunkAnswer = (status: number, content: Buffer, size: number): ChunkAnswer => {
  if (status === 429) return { kind: 'limited' }
  const source = sourceOf(content)
  const { text } = source
  const body = parsed(text)
  if (refusesWhole(status, body)) return { kind: 'not-run' }
  const isWhole = text.startsWith('{') && isJsonObject(body) && body['failed'] === undefined
  return status === 207 && isWhole ? itemAnswers(source, size) : { kind: 'broken' }
}
