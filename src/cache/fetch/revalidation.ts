import { formatHttpDate } from '../../http/conditional/dates.ts'
import { matchesWeakly, parseEntityTag } from '../../http/conditional/entity-tags.ts'
import { fieldValue, withoutFields } from '../../http/fields.ts'
import { endToEndFields } from '../../http/forwardable-fields.ts'
import type { ResponseHead } from '../../http/message.ts'
import type { StoredResponse } from '../store/stored-response.ts'

/** Fields of a conditional request that validates a stored response (RFC 9111 §4.3.1); empty when it has no validator. */
export const validationFields = (stored: StoredResponse): Readonly<Record<string, string>> => {
  const fields: Record<string, string> = {}
  if (stored.upstreamTag !== undefined) fields['if-none-match'] = stored.upstreamTag
  const modified = fieldValue(stored.fields, 'last-modified')
  if (modified !== undefined) fields['if-modified-since'] = modified
  return fields
}

/** Does a 304 speak of this stored response (RFC 9111 §4.3.4)? Without an entity tag of its own it can mean no other. */
export const confirms = (answer: ResponseHead, stored: StoredResponse): boolean => {
  const said = parseEntityTag(fieldValue(answer.fields, 'etag') ?? '')
  const known = parseEntityTag(stored.upstreamTag ?? '')
  return said === undefined || known === undefined || matchesWeakly(said, known)
}

/** Of the whole; undefined where nobody said it. */
const lengthOf = ({ extent, content }: StoredResponse): number | undefined =>
  extent === undefined ? content.length : extent.total

/** Does the answer to a HEAD speak of the content that is stored? Only what it says can contradict (RFC 9111 §4.3.5). */
export const describes = (answer: ResponseHead, stored: StoredResponse): boolean => {
  const length = fieldValue(answer.fields, 'content-length')
  const modified = fieldValue(answer.fields, 'last-modified')
  const tag = fieldValue(answer.fields, 'etag')
  return (
    (length === undefined || length === String(lengthOf(stored))) &&
    (modified === undefined || modified === fieldValue(stored.fields, 'last-modified')) &&
    (tag === undefined || tag === stored.upstreamTag) &&
    fieldValue(answer.fields, 'content-encoding') === fieldValue(stored.fields, 'content-encoding')
  )
}

/** What a 304 cannot change: they describe the content that is kept (RFC 9111 §3.2). */
const notUpdated: ReadonlySet<string> = new Set(['content-length', 'content-encoding', 'content-range'])

/** Head of the stored response with the fields of the 304 in place of its own (RFC 9111 §3.2, §4.3.4). */
export const freshenedHead = (
  stored: StoredResponse,
  answer: ResponseHead,
  receivedAt: number,
): ResponseHead => {
  const updates = withoutFields(endToEndFields(answer.fields), notUpdated)
  // Without a Date of its own the 304 was made when it came (RFC 9110 §6.6.1); the stored Date would make it old at once.
  if (fieldValue(updates, 'date') === undefined) updates.push('Date', formatHttpDate(receivedAt))
  const updated = new Set(updates.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase()))
  return { status: stored.status, fields: [...withoutFields(stored.fields, updated), ...updates] }
}
