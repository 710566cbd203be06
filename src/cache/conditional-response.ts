import {
  evaluatePreconditions,
  isConditional,
  notModified,
  preconditionFailed,
} from '../http/conditional/preconditions.ts'
import { partialContent, rangeNotSatisfiable, rangeOf } from '../http/conditional/ranges.ts'
import { type RequestFields, requestField } from '../http/fields.ts'
import { discard, type GatewayResponse, type ResponseHead } from '../http/message.ts'
import type { ReadOutcome } from './events.ts'

/** An answer of the cache: a response, and how it came about. */
export type CacheAnswer = GatewayResponse & {
  readonly outcome: ReadOutcome
  /** Of what came out of memory. */
  readonly ageSeconds?: number
}

/** What of a read decides the form of its answer. */
export type ReaderFacts = { readonly method: 'GET' | 'HEAD'; readonly fields: RequestFields }

/** Does the reader get the response as it is, so that one answer serves many? */
export const takesWhole = (reader: ReaderFacts): boolean =>
  reader.method === 'GET' && reader.fields['range'] === undefined && !isConditional(reader.fields)

/** A response without content. */
const bare = (head: ResponseHead): GatewayResponse => ({ ...head, content: undefined })

const ranged = (
  reader: ReaderFacts,
  whole: GatewayResponse,
  content: Buffer,
  now: number,
): GatewayResponse => {
  const selection = rangeOf(reader.fields, whole, content.length, now)
  switch (selection.kind) {
    case 'whole':
      return whole
    case 'unsatisfiable':
      return bare(rangeNotSatisfiable(whole, content.length))
    case 'parts': {
      const part = partialContent(whole, content, selection.ranges)
      return { ...part.head, content: part.content }
    }
  }
}

/** The 304 or 412 that the reader's preconditions make of a response; undefined when they let it pass. */
export const conditioned = (
  reader: ReaderFacts,
  response: ResponseHead,
  now: number,
): GatewayResponse | undefined => {
  if (!isConditional(reader.fields)) return undefined
  switch (evaluatePreconditions(reader.fields, reader.method, response, now)) {
    case 'not-modified':
      return bare(notModified(response))
    case 'failed':
      return bare(preconditionFailed(response))
    case 'proceed':
      return undefined
  }
}

/** What this reader gets of a response: preconditions first, then ranges (RFC 9110 §13.2.2), no content for HEAD. */
export const forReader = (reader: ReaderFacts, whole: GatewayResponse, now: number): GatewayResponse => {
  const instead = conditioned(reader, whole, now)
  if (instead !== undefined) {
    discard(whole.content)
    return instead
  }
  if (reader.method === 'HEAD') {
    discard(whole.content)
    return { ...whole, content: undefined }
  }
  const wantsRange = requestField(reader.fields, 'range') !== undefined
  return wantsRange && Buffer.isBuffer(whole.content) ? ranged(reader, whole, whole.content, now) : whole
}
