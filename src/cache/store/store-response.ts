import type { Clock } from '../../clock.ts'
import { withVaryByCoding } from '../../http/content-coding.ts'
import { fieldValue, type GatewayResponse, type ResponseHead, withoutFields } from '../../http/message.ts'
import { targetKeyOf } from '../cache-key.ts'
import type { CacheRead } from '../cache-read.ts'
import type { CacheEvent, NoStoreReason } from '../events.ts'
import { declaredLength } from '../fetch/fill.ts'
import type { ExchangeTimes } from '../policy/freshness.ts'
import type { Admission, MemoryStore } from './memory-store.ts'
import { createStoredResponse, isCodable, type StoredResponse, setTags } from './stored-response.ts'
import type { InvalidationLog, UnsettledTags } from './tag-index.ts'

export type CompleteResponse = { readonly head: ResponseHead; readonly content: Buffer }

/** For which read, and in which order among all that is stored. */
type StoredFor = { readonly read: CacheRead; readonly order: number }

/** What of a stored response does not follow from the response alone; the key is that of the read where it is absent. */
type StoredDetails = Pick<StoredResponse, 'upstreamTag'> &
  Partial<Pick<StoredResponse, 'key' | 'partial' | 'forms'>>

type StorageOptions = {
  readonly store: MemoryStore
  readonly log: InvalidationLog
  readonly unsettled: UnsettledTags
  readonly admission: Admission
  readonly clock: Clock
  readonly report: (event: CacheEvent) => void
  /** See respond/encodings.ts. */
  readonly codedFrom: (read: CacheRead) => number
}

const noForms: StoredResponse['forms'] = []
const noContent = Buffer.alloc(0)

const tagsOf = (stored: StoredResponse): readonly string[] => [targetKeyOf(stored.key), ...stored.tags]

/** Was anything that the response shows invalidated after `since`, or may it have been? */
export const isOvertaken = (log: InvalidationLog, stored: StoredResponse, since: number): boolean =>
  log.invalidatedSince(tagsOf(stored), since)

/** Turns responses into stored responses: the only way into the memory store. */
export const createResponseStorage = (options: StorageOptions) => {
  const { store, log, unsettled, admission, clock, report, codedFrom } = options

  /** A response as it would be stored, without its tags. */
  const create = (
    { read, order }: StoredFor,
    { head, content }: CompleteResponse,
    times: ExchangeTimes,
    details?: StoredDetails,
  ): StoredResponse =>
    createStoredResponse({
      key: details?.key ?? read.key,
      head,
      content,
      partial: details?.partial,
      selecting: read,
      times,
      policy: read.policy,
      upstreamTag: details === undefined ? fieldValue(head.fields, 'etag') : details.upstreamTag,
      order,
      codedFrom: codedFrom(read),
      forms: details?.forms ?? noForms,
    })

  /** Sets the tags by which it is invalidated; undefined when its target cannot have answered so. */
  const describe = (read: CacheRead, stored: StoredResponse): StoredResponse | undefined => {
    const { status, fields, content, hints } = stored
    const response = { status, fields, content, hints } as const
    setTags(stored, read.tags(response))
    return read.isReadable?.(response) === false ? undefined : stored
  }

  const doubtAbout = (stored: StoredResponse, since: number): NoStoreReason | undefined => {
    const tags = tagsOf(stored)
    if (log.invalidatedSince(tags, since)) return 'overtaken'
    return unsettled.includes(tags, clock.monotonic()) ? 'unsettled' : undefined
  }

  /** `since`: number of the last invalidation when the response was requested. Returns why it is not stored. */
  const storeIfCurrent = (stored: StoredResponse, since: number): NoStoreReason | undefined => {
    // Mostly nothing was invalidated meanwhile, and no tag is looked up.
    const isUndisputed = log.sequence === since && unsettled.isEmpty
    const doubt = isUndisputed ? undefined : doubtAbout(stored, since)
    if (doubt !== undefined) return doubt
    const known = store.peek(stored.key)
    if (known.some((other) => other.order > stored.order && other.varyKey === stored.varyKey)) {
      return 'overtaken'
    }
    if (known.length === 0 && !admission.admits(stored.key)) return 'not-admitted'
    return store.put(stored) ? undefined : 'too-large'
  }

  return {
    create,
    /**
     * Its facts before the content has arrived: without an entity tag made here, and with a length only where the upstream
     * sent one.
     */
    createHead: (storedFor: StoredFor, response: GatewayResponse, times: ExchangeTimes): StoredResponse => {
      const made = create(storedFor, { head: response, content: noContent }, times)
      const declared = declaredLength(response)
      const hasTag = fieldValue(response.fields, 'etag') !== undefined
      const unknown = new Set(hasTag ? ['content-length'] : ['content-length', 'etag'])
      const fields = withoutFields(made.fields, unknown)
      if (declared !== undefined) fields.push('Content-Length', String(declared))
      const isCoded = isCodable(made, declared ?? Number.MAX_SAFE_INTEGER, codedFrom(storedFor.read))
      return { ...made, fields: isCoded ? withVaryByCoding(fields) : fields, content: noContent }
    },
    describe,
    storeIfCurrent,
    /** `describe`, then `storeIfCurrent`, and reports which. The result has its tags whether it is stored or not. */
    store: (read: CacheRead, stored: StoredResponse, since: number) => {
      const isReadable = describe(read, stored) !== undefined
      const notStored = isReadable ? storeIfCurrent(stored, since) : 'unreadable'
      report(
        notStored === undefined
          ? { kind: 'stored', service: read.service, bytes: stored.bytes }
          : { kind: 'not-stored', service: read.service, reason: notStored },
      )
      return { stored, notStored }
    },
  }
}

export type ResponseStorage = ReturnType<typeof createResponseStorage>
