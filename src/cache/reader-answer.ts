import { type RequestFields, requestField } from '../http/fields.ts'
import type { GatewayResponse, ResponseHead } from '../http/message.ts'
import {
  evaluatePreconditions,
  isConditional,
  notModified,
  preconditionFailed,
} from '../http/preconditions.ts'
import { partialContent, rangeNotSatisfiable, rangeOf } from '../http/ranges.ts'
import { discard } from './discard.ts'
import type { ReadOutcome } from './events.ts'

/** An answer of the cache: a response, and how it came about. */
export type CacheAnswer = GatewayResponse & { readonly outcome: ReadOutcome }

/** What of a read decides the form of its answer. */
export type ReaderFacts = { readonly method: 'GET' | 'HEAD'; readonly fields: RequestFields }

/** Does the reader get the response as it is, so that one answer serves many? */
export const takesWhole = (reader: ReaderFacts): boolean =>
  reader.method === 'GET' && reader.fields['range'] === undefined && !isConditional(reader.fields)

const bare = (head: ResponseHead): GatewayResponse => ({ kind: 'response', ...head, content: undefined })

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
      return { kind: 'response', ...part.head, content: part.content }
    }
  }
}

/** What this reader gets of a response: preconditions first, then ranges (RFC 9110 §13.2.2), no content for HEAD. */
export const forReader = (reader: ReaderFacts, whole: GatewayResponse, now: number): GatewayResponse => {
  switch (
    isConditional(reader.fields) ? evaluatePreconditions(reader.fields, reader.method, whole, now) : 'proceed'
  ) {
    case 'not-modified':
      discard(whole.content)
      return bare(notModified(whole))
    case 'failed':
      discard(whole.content)
      return bare(preconditionFailed(whole))
    case 'proceed':
      break
  }
  if (reader.method === 'HEAD') {
    discard(whole.content)
    return { ...whole, content: undefined }
  }
  const wantsRange = requestField(reader.fields, 'range') !== undefined
  return wantsRange && Buffer.isBuffer(whole.content) ? ranged(reader, whole, whole.content, now) : whole
}
