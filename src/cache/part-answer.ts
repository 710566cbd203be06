import { formatContentRange } from '../http/content-range.ts'
import { withField } from '../http/fields.ts'
import type { GatewayResponse } from '../http/message.ts'
import { rangeOf } from '../http/ranges.ts'
import { currentAgeMs, type Moment } from './age.ts'
import { hitStatus } from './cache-status.ts'
import { sliceOf } from './extent.ts'
import { type CacheAnswer, conditioned, type ReaderFacts } from './reader-answer.ts'
import type { IncompleteResponse } from './stored-response.ts'

/**
 * The 206 that a reader asks for, made of an incomplete stored response, or undefined when it does not hold the whole
 * of the range (RFC 9111 §3.3). Several ranges at once are left to the upstream.
 */
export const partAnswer = (
  stored: IncompleteResponse,
  reader: ReaderFacts,
  now: number,
): GatewayResponse | undefined => {
  const { extent } = stored
  // Without a known end no suffix and no open range can be resolved: beyond everything that is held.
  const length = extent.total ?? Number.POSITIVE_INFINITY
  const selection = rangeOf(reader.fields, { status: 200, fields: stored.fields }, length, now)
  if (selection.kind !== 'parts') return undefined
  const [wanted, ...others] = selection.ranges
  if (wanted === undefined || others.length > 0) return undefined
  const content = sliceOf(stored, wanted)
  if (content === undefined) return undefined
  const fields = withField(stored.fields, 'Content-Length', String(content.length))
  fields.push('Content-Range', formatContentRange({ ...wanted, total: extent.total }))
  return { kind: 'response', status: 206, fields, content }
}

/** The same for a fresh one, as a hit: preconditions first. */
export const partHit = (
  stored: IncompleteResponse,
  reader: ReaderFacts,
  at: Moment,
): CacheAnswer | undefined => {
  const part = partAnswer(stored, reader, at.now)
  if (part === undefined) return undefined
  const ageMs = currentAgeMs(stored.initialAgeMs, stored.received, at)
  const ttlSeconds = Math.floor((stored.lifetimeMs - ageMs) / 1000)
  const given = conditioned(reader, stored, at.now) ?? part
  const added = ['Age', String(Math.floor(ageMs / 1000)), 'Cache-Status', hitStatus(ttlSeconds)]
  return { ...given, fields: [...given.fields, ...added], outcome: 'hit' }
}
