import { isAscii, isUtf8 } from 'node:buffer'
import { parsedJson } from '../http/json-text.ts'
import { contentText, essence, fieldValue } from '../http/message.ts'
import type { TaggedResponse } from './tagger.ts'

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
export const isReadable = (response: TaggedResponse): boolean => {
  const { status, fields, content } = response
  if (status === 204 || status === 206) return true
  const coding = fieldValue(fields, 'content-encoding')
  if (coding !== undefined && coding.trim().toLowerCase() !== 'identity') return false
  const type = essence(fieldValue(fields, 'content-type'))
  if (type === 'text/html') return false
  return type === 'application/json' || type.endsWith('+json') ? parses(content) : true
}
