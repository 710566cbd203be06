import { fieldValue } from '../http/fields.ts'
import type { ResponseHead } from '../http/message.ts'
import { sketchOf } from './begin-fill.ts'
import type { CacheRead } from './cache-read.ts'
import type { Errand, UpstreamAnswer } from './errand.ts'
import type { CacheEvent } from './events.ts'
import type { Flight } from './flights.ts'
import type { Keep } from './keep.ts'
import type { NoStoreReason } from './storability.ts'
import { makeStored, type StoredResponse, tagged } from './stored-response.ts'

const noForms: StoredResponse['forms'] = []
const noContent = Buffer.alloc(0)

/** A complete response: head and content. */
export type Whole = { readonly head: ResponseHead; readonly content: Buffer }

/** What became of a response that was to be kept; with its tags, whether it was or not. */
export type Kept = { readonly stored: StoredResponse; readonly notKept: NoStoreReason | undefined }

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

export type StoringOptions = {
  readonly keep: Keep
  readonly report: (event: CacheEvent) => void
  /** See encodings.ts. */
  readonly codedFrom: (read: CacheRead) => number
}

const describe = (read: CacheRead, made: StoredResponse) => {
  const { status, fields, content } = made
  const response = { kind: 'response', status, fields, content } as const
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
