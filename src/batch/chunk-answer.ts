import type { FieldLines } from '../http/fields.ts'
import type { ItemAnswer } from './item.ts'
import { elements, type JsonText, members } from './json-parts.ts'

/** What the upstream's answer to a whole chunk means for its items. */
export type ChunkAnswer =
  /** In the order of the items; contents are the upstream's bytes. */
  | { readonly kind: 'answered'; readonly answers: readonly ItemAnswer[] }
  /** The upstream refused the chunk as a whole: nothing of it has run. */
  | { readonly kind: 'not-run' }
  /** Too many requests: nothing of it has run, and nothing else should be tried now. */
  | { readonly kind: 'limited' }
  /** Nobody can tell what has run. */
  | { readonly kind: 'broken' }

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null

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
  if (!isRecord(headers) || Array.isArray(headers)) return lines
  for (const [name, value] of Object.entries(headers)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      const text = String(one)
      if (namePattern.test(name) && valuePattern.test(text)) lines.push(name, text)
    }
  }
  return lines
}

const itemAnswer = (text: JsonText): ItemAnswer | undefined => {
  const parts = members(text)
  const status = Number(parts.get('status'))
  const body = parts.get('body')
  if (body === undefined || !Number.isInteger(status) || status < 200 || status > 599) return undefined
  return { status, fields: fieldLines(parsed(parts.get('headers') ?? '[]')), content: Buffer.from(body) }
}

const itemAnswers = (text: JsonText, size: number): ChunkAnswer => {
  const responses = elements(members(text).get('responses') ?? '')
  if (responses?.length !== size) return { kind: 'broken' }
  const answers = responses.map(itemAnswer).filter((answer) => answer !== undefined)
  return answers.length === size ? { kind: 'answered', answers } : { kind: 'broken' }
}

/** Refusals that WordPress makes before it runs anything: no such route, not for this caller, not this envelope. */
const refusesWhole = (status: number, body: unknown): boolean => {
  // The program behind has not seen what is too large for the server in front of it (RFC 9110 §15.5.14).
  if (status === 413) return true
  if (!isRecord(body) || typeof body['code'] !== 'string' || !isRecord(body['data'])) return false
  const { data, code } = body
  if (data['status'] !== status) return false
  if (status === 404) return code === 'rest_no_route'
  if (status === 400) {
    const { params } = data
    return code === 'rest_invalid_param' && isRecord(params) && 'requests' in params
  }
  return status === 401 || status === 403
}

/** Reads the answer to a chunk of `size` items. Pure; of anything unexpected it says that the outcome is unknown. */
export const readChunkAnswer = (status: number, content: Buffer, size: number): ChunkAnswer => {
  if (status === 429) return { kind: 'limited' }
  const text = content
    .toString()
    .replace(/^\ufeff/, '')
    .trim()
  const body = parsed(text)
  if (refusesWhole(status, body)) return { kind: 'not-run' }
  if (status !== 207 || !isRecord(body) || body['failed'] !== undefined) return { kind: 'broken' }
  return itemAnswers(text, size)
}
