import { isAscii, isUtf8 } from 'node:buffer'
import { headerValue } from '../headers/header-lines.ts'
import { essence } from '../headers/media-type.ts'
import { parsedJson } from '../json-text.ts'
import type { ResponseHead } from '../message.ts'
import { contentText } from '../response-text.ts'

/** Can the target give a response? `unknown`: its content decides, and has not arrived. */
export type Readability = 'readable' | 'unreadable' | 'unknown'

let last: { readonly content: Buffer; readonly parsed: unknown } | undefined

/**
 * The value of a JSON content; undefined for any other. Parsed once for two callers: a response that may be stored needs its tags
 * and a readability check in the same turn. The second caller gets the result of the first, which is then released.
 */
export const parsedContent = (content: Buffer): unknown => {
  if (last?.content === content) {
    const { parsed } = last
    last = undefined
    return parsed
  }
  const parsed = parsedJson(isAscii(content) ? contentText(content).latin1 : content.toString('utf8'))
  last = { content, parsed }
  return parsed
}

/** Longer contents are not checked: reading them would delay all requests. */
const longestRead = 2 * 1024 * 1024

const parses = (content: Buffer): boolean => {
  if (content.length > longestRead) return true
  return isUtf8(content) && parsedContent(content) !== undefined
}

/**
 * Can a JSON row give this response? Error pages with status 200, truncated JSON, JSON after a warning, and content codings that
 * were not requested are forwarded but not stored.
 */
export const jsonReadability = (
  { status, headers }: ResponseHead,
  content: Buffer | undefined,
): Readability => {
  if (status === 204 || status === 206) return 'readable'
  const coding = headerValue(headers, 'content-encoding')
  if (coding !== undefined && coding.trim().toLowerCase() !== 'identity') return 'unreadable'
  const type = essence(headerValue(headers, 'content-type'))
  if (type === 'text/html') return 'unreadable'
  if (type !== 'application/json' && !type.endsWith('+json')) return 'readable'
  if (content === undefined) return 'unknown'
  return parses(content) ? 'readable' : 'unreadable'
}
