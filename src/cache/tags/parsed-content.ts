import { isAscii, isUtf8 } from 'node:buffer'
import { fieldValue } from '../../http/fields.ts'
import { contentText } from '../../http/message.ts'
import type { TaggedResponse } from '../tagger.ts'

/** Parsed JSON; `nothing` if it does not parse. */
type ParsedContent = { readonly kind: 'json'; readonly value: unknown } | { readonly kind: 'nothing' }

const nothing: ParsedContent = { kind: 'nothing' }

const parse = (content: Buffer): ParsedContent => {
  try {
    const text = isAscii(content) ? contentText(content).latin1 : content.toString('utf8')
    return { kind: 'json', value: JSON.parse(text) }
  } catch {
    return nothing
  }
}

let last: { readonly content: Buffer; readonly parsed: ParsedContent } | undefined

/**
 * Parses a content once for two callers: a response that may be stored needs its tags and a readability check in the same turn, and
 * parsing is most of both. The second caller gets the result of the first, which is then released.
 */
export const parsedContent = (content: Buffer): ParsedContent => {
  if (last?.content === content) {
    const { parsed } = last
    last = undefined
    return parsed
  }
  const parsed = parse(content)
  last = { content, parsed }
  return parsed
}

/** Longer contents are not checked: reading them would delay all requests. */
const longestRead = 2 * 1024 * 1024

const mediaType = (response: TaggedResponse): string =>
  (fieldValue(response.fields, 'content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''

const parses = (content: Buffer): boolean => {
  if (content.length > longestRead) return true
  return isUtf8(content) && parsedContent(content).kind === 'json'
}

/**
 * Can a JSON row give this response? Error pages with status 200, truncated JSON, JSON after a PHP warning, and content codings that
 * were not requested are forwarded but not stored.
 */
export const isReadable = (response: TaggedResponse): boolean => {
  const { status, fields, content } = response
  if (status === 204 || status === 206) return true
  const coding = fieldValue(fields, 'content-encoding')
  if (coding !== undefined && coding.trim().toLowerCase() !== 'identity') return false
  const type = mediaType(response)
  if (type === 'text/html') return false
  return type === 'application/json' || type.endsWith('+json') ? parses(content) : true
}
