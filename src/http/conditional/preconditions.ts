import { fieldValue, type RequestFields, type ResponseHead, requestField, withoutFields } from '../message.ts'
import { parseHttpDate } from './dates.ts'
import { matchesStrongly, matchesWeakly, parseEntityTag, parseEntityTagList } from './entity-tags.ts'

/** Fields that make a request conditional or partial (RFC 9110 §13.1, §14.2): the gateway evaluates them itself. */
export const conditionalFields: ReadonlySet<string> = new Set([
  'if-match',
  'if-none-match',
  'if-modified-since',
  'if-unmodified-since',
  'if-range',
  'range',
])

/** The effect of the preconditions of a request on its response. */
export type PreconditionOutcome = 'proceed' | 'not-modified' | 'failed'

/** Is any precondition there at all? Cheap, for the way of a hit. */
export const isConditional = (fields: RequestFields): boolean =>
  fields['if-none-match'] !== undefined ||
  fields['if-modified-since'] !== undefined ||
  fields['if-match'] !== undefined ||
  fields['if-unmodified-since'] !== undefined

const anyTagMatches = (list: string, response: ResponseHead, matches: typeof matchesWeakly): boolean => {
  const wanted = parseEntityTagList(list)
  if (wanted === '*') return true
  const tag = parseEntityTag(fieldValue(response.fields, 'etag') ?? '')
  return tag !== undefined && wanted.some((candidate) => matches(candidate, tag))
}

/** Has the response changed since the date? undefined when either side is no valid date: the field is then ignored (§13.1.3, §13.1.4). */
const modifiedSince = (date: string, response: ResponseHead, now: number): boolean | undefined => {
  const since = parseHttpDate(date, now)
  const modified = parseHttpDate(fieldValue(response.fields, 'last-modified') ?? '', now)
  return since === undefined || modified === undefined ? undefined : modified > since
}

const guardHolds = (fields: RequestFields, response: ResponseHead, now: number): boolean => {
  const ifMatch = requestField(fields, 'if-match')
  if (ifMatch !== undefined) return anyTagMatches(ifMatch, response, matchesStrongly)
  const ifUnmodifiedSince = requestField(fields, 'if-unmodified-since')
  return ifUnmodifiedSince === undefined || modifiedSince(ifUnmodifiedSince, response, now) !== true
}

const isRead = (method: string): boolean => method === 'GET' || method === 'HEAD'

/**
 * Evaluates in the order of RFC 9110 §13.2.2, against the response that the request would get without its preconditions.
 * Only a 2xx answer is subject to them (§13.2.1).
 */
export const evaluatePreconditions = (
  fields: RequestFields,
  method: string,
  response: ResponseHead,
  now: number,
): PreconditionOutcome => {
  if (response.status < 200 || response.status > 299) return 'proceed'
  if (!guardHolds(fields, response, now)) return 'failed'
  const ifNoneMatch = requestField(fields, 'if-none-match')
  if (ifNoneMatch !== undefined) {
    if (!anyTagMatches(ifNoneMatch, response, matchesWeakly)) return 'proceed'
    return isRead(method) ? 'not-modified' : 'failed'
  }
  const ifModifiedSince = requestField(fields, 'if-modified-since')
  if (ifModifiedSince === undefined || !isRead(method)) return 'proceed'
  return modifiedSince(ifModifiedSince, response, now) === false ? 'not-modified' : 'proceed'
}

/** Fields about a content that a 304 or 412 does not carry (RFC 9110 §15.4.5). */
const contentFields: ReadonlySet<string> = new Set([
  'content-length',
  'content-encoding',
  'content-language',
  'content-range',
  'content-type',
  'transfer-encoding',
])

/** The 304 to a client that already has this response. */
export const notModified = (response: ResponseHead): ResponseHead => ({
  status: 304,
  fields: withoutFields(response.fields, contentFields),
})

/** The 412 for a precondition that does not hold; no content, so that each service's shape stays the edge's business. */
export const preconditionFailed = (response: ResponseHead): ResponseHead => ({
  status: 412,
  fields: [...withoutFields(response.fields, contentFields), 'Content-Length', '0'],
})
