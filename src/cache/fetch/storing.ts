import type { Readable } from 'node:stream'
import type { Reservation } from '../../http/byte-budget.ts'
import { fieldValue, withoutFields } from '../../http/fields.ts'
import type { GatewayResponse, ResponseHead } from '../../http/message.ts'
import type { CacheRead } from '../cache-read.ts'
import type { CacheEvent } from '../events.ts'
import type { NoStoreReason } from '../policy/storability.ts'
import { isCodable } from '../respond/compress.ts'
import type { Keep } from '../store/store-if-current.ts'
import { makeStored, type StoredResponse, tagged, withVaryByCoding } from '../store/stored-response.ts'
import type { Flight } from './collapse.ts'
import type { Errand, UpstreamAnswer } from './fetch-outcome.ts'
import { declaredLength, Fill } from './fill.ts'

/** A content up to this length is read whole before anybody gets it: it is there at once, and its entity tag with it. */
const heldBackBytes = 65_536

/** So long one slow reader may hold up others who read the same content, where that is not kept. */
const patienceMs = 10_000

/** Follows a content that did not arrive in one piece; `end` undefined: it is long, and has only begun. */
export const beginFill = async (
  response: GatewayResponse,
  source: Readable,
  maxBytes: number,
  room: Reservation,
) => {
  const declared = declaredLength(response)
  const fill = new Fill({ source, declared, maxBytes, patienceMs, room })
  const isLong = declared !== undefined && declared > heldBackBytes
  const end = isLong ? undefined : await fill.begun(Math.min(heldBackBytes, maxBytes))
  return { fill, end: fill.overflowed ? ({ kind: 'overflowed' } as const) : end }
}

/**
 * What can be said of a response before its content has come, made of its record without content: no entity tag of our
 * own, and the length only where the upstream said it.
 */
const sketchOf = (made: StoredResponse, response: GatewayResponse, codedFrom: number): StoredResponse => {
  const ownTag = fieldValue(response.fields, 'etag') === undefined
  const fields = withoutFields(made.fields, new Set(ownTag ? ['content-length', 'etag'] : ['content-length']))
  const declared = declaredLength(response)
  if (declared !== undefined) fields.push('Content-Length', String(declared))
  const tagged = { status: made.status, fields: made.fields }
  const codable = isCodable(tagged, declared ?? Number.MAX_SAFE_INTEGER, codedFrom)
  return { ...made, fields: codable ? withVaryByCoding(fields) : fields, content: noContent }
}

const noForms: StoredResponse['forms'] = []
const noContent = Buffer.alloc(0)

/** A complete response: head and content. */
export type Whole = { readonly head: ResponseHead; readonly content: Buffer }

/** What became of a response that was to be kept; with its tags, whether it was or not. */
type Kept = { readonly stored: StoredResponse; readonly notKept: NoStoreReason | undefined }

/** What of a record does not follow from the answer alone. */
type RecordChanges = Pick<StoredResponse, 'key' | 'extent' | 'upstreamTag' | 'forms'>

/** Turns what came from the upstream into stored responses. */
export type Storing = {
  /** The record of a response as it would be stored. */
  record(
    errand: Errand,
    flight: Flight,
    answer: UpstreamAnswer,
    whole: Whole,
    changes?: RecordChanges,
  ): StoredResponse
  /** As `record`, of a response whose content is still coming. */
  sketch(errand: Errand, flight: Flight, answer: UpstreamAnswer): StoredResponse
  /** The record with the tags that invalidate it; undefined when its target cannot have answered so. */
  described(read: CacheRead, made: StoredResponse): StoredResponse | undefined
  /** Stores it, unless something it holds was written since the forward began. */
  store(read: CacheRead, flight: Flight, made: StoredResponse): Kept
}

type StoringOptions = {
  readonly keep: Keep
  readonly report: (event: CacheEvent) => void
  /** See encodings.ts. */
  readonly codedFrom: (read: CacheRead) => number
}

const describe = (read: CacheRead, made: StoredResponse) => {
  const { status, fields, content } = made
  const response = { status, fields, content } as const
  return { stored: tagged(made, read.tags(response)), isReadable: read.isReadable?.(response) ?? true }
}

export const createStoring = ({ keep, report, codedFrom }: StoringOptions): Storing => {
  const record: Storing['record'] = ({ read }, flight, answer, { head, content }, changes) =>
    makeStored({
      key: changes?.key ?? read.key,
      head,
      content,
      extent: changes?.extent,
      selecting: read,
      times: answer.times,
      policy: read.policy,
      upstreamTag: changes === undefined ? fieldValue(head.fields, 'etag') : changes.upstreamTag,
      order: flight.order,
      codedFrom: codedFrom(read),
      forms: changes?.forms ?? noForms,
    })
  return {
    record,
    sketch: (errand, flight, answer) => {
      const { response } = answer
      const made = record(errand, flight, answer, { head: response, content: noContent })
      return sketchOf(made, response, codedFrom(errand.read))
    },
    described: (read, made) => {
      const { stored, isReadable } = describe(read, made)
      return isReadable ? stored : undefined
    },
    store: (read, flight, made) => {
      const { stored, isReadable } = describe(read, made)
      const notKept = isReadable ? keep(stored, flight.began) : 'unreadable'
      report(
        notKept === undefined
          ? { kind: 'stored', service: read.service, bytes: stored.bytes }
          : { kind: 'not-stored', service: read.service, reason: notKept },
      )
      return { stored, notKept }
    },
  }
}
