import { parseEntityTag } from '../http/entity-tags.ts'
import { type FieldLines, fieldValue } from '../http/fields.ts'
import type { CacheRead } from './cache-read.ts'
import { missingRange } from './extent.ts'
import { partAnswer } from './part-answer.ts'
import { validationFields } from './revalidation.ts'
import type { IncompleteResponse } from './stored-response.ts'

/** How a held part helps a forward: validated when the part is what is asked for, completed when it is the whole. */
export type Help = {
  readonly kind: 'validate' | 'complete'
  readonly stored: IncompleteResponse
  /** What is to be asked with. */
  readonly fields: Readonly<Record<string, string>>
}

/** Parts are combined under one strong entity tag alone: a date would have to be known to be strong (RFC 9110 §8.8.2.2). */
export const strongTagOf = (fields: FieldLines) => {
  const tag = parseEntityTag(fieldValue(fields, 'etag') ?? '')
  return tag === undefined || tag.weak ? undefined : tag
}

/** The part is held and stale: is it still right? */
export const toValidate = (stored: IncompleteResponse, read: CacheRead, now: number): Help | undefined => {
  const fields = validationFields(stored)
  const useless = Object.keys(fields).length === 0 || partAnswer(stored, read, now) === undefined
  return useless ? undefined : { kind: 'validate', stored, fields }
}

/** The whole is wanted: what is missing of it? */
export const toComplete = (stored: IncompleteResponse): Help | undefined => {
  const missing = missingRange(stored.extent)
  if (missing === undefined || strongTagOf(stored.fields) === undefined) return undefined
  const last = missing.last + 1 === stored.extent.total ? '' : String(missing.last)
  // If-Range: when it has changed meanwhile the whole comes instead (RFC 9110 §13.1.5).
  const fields = { range: `bytes=${missing.first}-${last}`, 'if-range': stored.upstreamTag ?? '' }
  return { kind: 'complete', stored, fields }
}
