import { parseEntityTag } from '../http/entity-tags.ts'
import { fieldValue, type RequestFields, requestField } from '../http/fields.ts'
import type { ResponseHead } from '../http/message.ts'

/** Found once for each stored response: conditional readers are most of the readers of some. */
const known = new WeakMap<ResponseHead, string>()

/** The entity tag of a response as its field spells it; '' when it has none that is valid. */
export const currentTag = (response: ResponseHead): string => {
  const remembered = known.get(response)
  if (remembered !== undefined) return remembered
  const value = fieldValue(response.fields, 'etag') ?? ''
  const tag = parseEntityTag(value) === undefined ? '' : value
  known.set(response, tag)
  return tag
}

const weak = 'W/'

/** One of them weak, the other the same without that (RFC 9110 §8.8.3.2): a proxy that codes contents weakens the tags that it passes. */
const isWeakened = (longer: string, shorter: string): boolean =>
  longer.length === shorter.length + weak.length &&
  shorter.startsWith('"') &&
  longer.startsWith(weak) &&
  longer.endsWith(shorter)

/**
 * Does the reader have this very response, and know it by nothing but its tag? Then a 2xx becomes a 304, whatever dates and
 * ranges are asked for besides: If-None-Match comes before them (RFC 9110 §13.2.2).
 */
export const asksForTag = (fields: RequestFields, tag: string): boolean => {
  const asked = requestField(fields, 'if-none-match')
  return (
    tag !== '' &&
    asked !== undefined &&
    (asked === tag || isWeakened(asked, tag) || isWeakened(tag, asked)) &&
    fields['if-match'] === undefined &&
    fields['if-unmodified-since'] === undefined
  )
}
