import {
  evaluatePreconditions,
  isConditional,
  notModified,
  preconditionFailed,
} from '../../http/conditional/preconditions.ts'
import { partialContent, rangeNotSatisfiable, rangeOf } from '../../http/conditional/ranges.ts'
import { type RequestFields, requestField } from '../../http/fields.ts'
import { discard, type GatewayResponse, type ResponseHead } from '../../http/message.ts'

/** The parts of a read that decide the form of its response. */
export type ReaderFacts = { readonly method: 'GET' | 'HEAD'; readonly fields: RequestFields }

/** Without range and precondition: one response serves all such readers. */
export const takesWhole = (reader: ReaderFacts): boolean =>
  reader.method === 'GET' && reader.fields['range'] === undefined && !isConditional(reader.fields)

const withoutContent = (head: ResponseHead): GatewayResponse => ({
  ...head,
  content: undefined,
})

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
      return withoutContent(rangeNotSatisfiable(whole, content.length))
    case 'parts': {
      const part = partialContent(whole, content, selection.ranges)
      return { ...part.head, content: part.content }
    }
  }
}

/** The 304 or 412 that the reader's preconditions lead to; undefined when they hold. */
export const preconditionResponse = (
  reader: ReaderFacts,
  response: ResponseHead,
  now: number,
): GatewayResponse | undefined => {
  if (!isConditional(reader.fields)) return undefined
  switch (evaluatePreconditions(reader.fields, reader.method, response, now)) {
    case 'not-modified':
      return withoutContent(notModified(response))
    case 'failed':
      return withoutContent(preconditionFailed(response))
    case 'proceed':
      return undefined
  }
}

/** A response in the form that the reader gets: preconditions first, then ranges (RFC 9110 §13.2.2), no content for HEAD. */
export const responseFor = (reader: ReaderFacts, whole: GatewayResponse, now: number): GatewayResponse => {
  const instead = preconditionResponse(reader, whole, now)
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
