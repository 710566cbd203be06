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

/** Is a 304 about this stored response (RFC 9111 §4.3.4)? Without an entity tag it cannot be about another. */
export const confirmsStored = (response: ResponseHead, stored: StoredResponse): boolean => {
  const confirmed = parseEntityTag(fieldValue(response.fields, 'etag') ?? '')
  const known = parseEntityTag(stored.upstreamTag ?? '')
  return confirmed === undefined || known === undefined || matchesWeakly(confirmed, known)
}

/** Of the whole; undefined when it is not known. */
const lengthOf = ({ partial, content }: StoredResponse): number | undefined =>
  partial === undefined ? content.length : partial.total

/** Does the response to a HEAD describe the stored content? Only fields that it has can contradict (RFC 9111 §4.3.5). */
export const describesStored = (response: ResponseHead, stored: StoredResponse): boolean => {
  const length = fieldValue(response.fields, 'content-length')
  const modified = fieldValue(response.fields, 'last-modified')
  const tag = fieldValue(response.fields, 'etag')
  return (
    (length === undefined || length === String(lengthOf(stored))) &&
    (modified === undefined || modified === fieldValue(stored.fields, 'last-modified')) &&
    (tag === undefined || tag === stored.upstreamTag) &&
    fieldValue(response.fields, 'content-encoding') === fieldValue(stored.fields, 'content-encoding')
  )
}

/** Fields that a 304 cannot change: they describe the stored content (RFC 9111 §3.2). */
const notUpdated: ReadonlySet<string> = new Set(['content-length', 'content-encoding', 'content-range'])

/** Head of the stored response with the fields of the 304 in place of its own (RFC 9111 §3.2, §4.3.4). */
export const freshenedHead = (
  stored: StoredResponse,
  response: ResponseHead,
  receivedAt: number,
): ResponseHead => {
  const updates = withoutFields(endToEndFields(response.fields), notUpdated)
  // A 304 without a Date was made when it came (RFC 9110 §6.6.1); the stored Date would make the response old at once.
  if (fieldValue(updates, 'date') === undefined) updates.push('Date', formatHttpDate(receivedAt))
  const updated = new Set(updates.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase()))
  const fields = [...withoutFields(stored.fields, updated), ...updates]
  return { status: stored.status, fields, hints: response.hints ?? stored.hints }
}
