import type { HeaderLines } from '../../http/headers/header-lines.ts'
import { isJsonObject, type JsonText, parsedJson, valueEnd, visitValues } from '../../http/json-text.ts'
import type { UpstreamBatchRoute } from '../../service/contract.ts'
import type { ItemResponse } from '../item.ts'

/** What the upstream's response to an upstream batch means for its items. */
type UpstreamBatchReading =
  /** In the order of the items; contents are the upstream's bytes. */
  | { readonly kind: 'answered'; readonly responses: readonly ItemResponse[] }
  /** The upstream refused it as a whole: no item of it has run. */
  | { readonly kind: 'not-run' }
  /** Too many requests: no item of it has run, and nothing else should be tried now. */
  | { readonly kind: 'limited' }
  /** It is unknown which items ran. */
  | { readonly kind: 'broken' }

const namePattern = /^[!#$%&'*+.^`|~0-9A-Za-z-]{1,64}$/
const valuePattern = /^[\t\x20-\x7e\x80-\xff]{0,8192}$/

/** `headers` of an item as headers; `[]` is an empty map. */
const headerLines = (headers: unknown): HeaderLines => {
  // It stands in a JSON document, so it is JSON; names and URLs in it are translated as in its own response.
  const lines = ['Content-Type', 'application/json; charset=UTF-8']
  if (!isJsonObject(headers)) return lines
  for (const [name, value] of Object.entries(headers)) {
    for (const part of Array.isArray(value) ? value : [value]) {
      const text = String(part)
      if (namePattern.test(name) && valuePattern.test(text)) lines.push(name, text)
    }
  }
  return lines
}

/** The item that begins at `at`, and where it ends; of a repeated name the last one counts. */
const readItem = (text: JsonText, at: number): { readonly response?: ItemResponse; readonly end: number } => {
  if (text[at] !== '{') return { end: valueEnd(text, at) }
  let content: Buffer | undefined
  let status = Number.NaN
  let headers: JsonText = '[]'
  const end = visitValues(text, at, (from, name) => {
    const to = valueEnd(text, from)
    const value = text.slice(from, to)
    if (name === 'body') content = Buffer.from(value)
    else if (name === 'status') status = Number(value)
    else if (name === 'headers') headers = value
    return to
  })
  const isStatus = Number.isInteger(status) && status >= 200 && status <= 599
  if (content === undefined || !isStatus) return { end }
  return { end, response: { status, headers: headerLines(parsedJson(headers)), content, isJson: true } }
}

const itemResponses = (text: JsonText, size: number): UpstreamBatchReading => {
  let responses: (ItemResponse | undefined)[] = []
  visitValues(text, 0, (from, name) => {
    if (name !== 'responses') return valueEnd(text, from)
    responses = []
    if (text[from] !== '[') return valueEnd(text, from)
    return visitValues(text, from, (at) => {
      const { response, end } = readItem(text, at)
      responses.push(response)
      return end
    })
  })
  const presentResponses = responses.filter((response) => response !== undefined)
  return presentResponses.length === size && responses.length === size
    ? { kind: 'answered', responses: presentResponses }
    : { kind: 'broken' }
}

/** Reads the response to an upstream batch of `size` items. Pure; after anything unexpected the outcome is unknown. */
export const readUpstreamBatch = (
  status: number,
  content: Buffer,
  size: number,
  refusesWhole: UpstreamBatchRoute['refusesWhole'],
): UpstreamBatchReading => {
  if (status === 429) return { kind: 'limited' }
  const text = content.toString().trim()
  const body = parsedJson(text)
  // A request that is too large for the server in front does not reach the program behind it (RFC 9110 §15.5.14).
  if (status === 413 || refusesWhole(status, body)) return { kind: 'not-run' }
  const isWhole = text.startsWith('{') && isJsonObject(body) && body['failed'] === undefined
  return status === 207 && isWhole ? itemResponses(text, size) : { kind: 'broken' }
}

/** One item of an upstream batch, in the upstream's names. */
export type UpstreamItem = {
  readonly method: string
  /** Path and query relative to the REST root. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** JSON, copied as it is. */
  readonly content: Buffer | undefined
}

const itemContent = ({ method, path, headers, content }: UpstreamItem): Buffer => {
  const head = JSON.stringify({
    method,
    path,
    ...(Object.keys(headers).length > 0 ? { headers: headers } : {}),
  })
  if (content === undefined) return Buffer.from(head)
  return Buffer.concat([Buffer.from(`${head.slice(0, -1)},"body":`), content, Buffer.from('}')])
}

/** The body of an upstream batch. Its items have been checked, so `normal` validation is requested: no item decides over others. */
export const upstreamBatchContent = (items: readonly UpstreamItem[]): Buffer => {
  const pieces: Buffer[] = [Buffer.from('{"validation":"normal","requests":[')]
  for (const [at, item] of items.entries()) {
    if (at > 0) pieces.push(Buffer.from(','))
    pieces.push(itemContent(item))
  }
  pieces.push(Buffer.from(']}'))
  return Buffer.concat(pieces)
}
