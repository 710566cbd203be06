import { withVaryByCoding } from '../../http/content-coding.ts'
import { headerValue, withoutHeaders } from '../../http/headers/header-lines.ts'
import type { GatewayResponse, ResponseHead } from '../../http/message.ts'
import { serviceKeyOf, targetKeyOf } from '../cache-key.ts'
import type { CacheRead } from '../cache-read.ts'
import type { CacheEvent, NoStoreReason, StoredDescription } from '../events.ts'
import { declaredLength } from '../fetch/fill.ts'
import { downstreamLifetimeMs, type ExchangeTimes } from '../policy/freshness.ts'
import { describedTag } from '../tag-names.ts'
import type { Admission } from './admission.ts'
import type { InvalidationLog } from './invalidation-log.ts'
import type { MemoryStore } from './memory-store.ts'
import type { QuarantinedTags } from './quarantined-tags.ts'
import {
  createStoredResponse,
  isCodable,
  type StoredResponse,
  setForDownstream,
  setTags,
} from './stored-response.ts'

export type CompleteResponse = { readonly head: ResponseHead; readonly content: Buffer }

/** For which read, and in which order among all that is stored. */
type StoredFor = { readonly read: CacheRead; readonly order: number }

/** What of a stored response does not follow from the response alone; the key is that of the read where it is absent. */
type StoredDetails = Pick<StoredResponse, 'upstreamTag'> & Partial<Pick<StoredResponse, 'forms'>>

type StorageOptions = {
  readonly store: MemoryStore
  readonly log: InvalidationLog
  readonly quarantined: QuarantinedTags
  readonly admission: Admission
  readonly report: (event: CacheEvent) => void
  readonly codedFrom: (read: CacheRead) => number
}

const noForms: StoredResponse['forms'] = []

const noContent = Buffer.alloc(0)

const tagsOf = (stored: StoredResponse): readonly string[] => [targetKeyOf(stored.key), ...stored.tags]

/** Was anything that the response shows invalidated after `since`, or may it have been? */
export const isSuperseded = (log: InvalidationLog, stored: StoredResponse, since: number): boolean =>
  log.invalidatedSince(tagsOf(stored), since, stored.hints?.request)

/** Was anything that it shows quarantined at that time? */
export const isQuarantined = (quarantined: QuarantinedTags, stored: StoredResponse, at: number): boolean =>
  quarantined.includes([serviceKeyOf(stored.key), ...tagsOf(stored)], at)

/** What the upstream says that the response was made of, once it has its tags. */
const descriptionOf = (service: string, { hints, tags }: StoredResponse): StoredDescription | undefined => {
  if (hints?.tags === undefined) return undefined
  return tags.includes(describedTag(service))
    ? { kind: 'complete', ...(hints.untested === undefined ? {} : { untested: hints.untested }) }
    : { kind: 'incomplete', cause: hints.incomplete }
}

const addForDownstream = (
  { forDownstream, policy }: Pick<CacheRead, 'forDownstream' | 'policy'>,
  stored: StoredResponse,
): void => {
  if (forDownstream === undefined || stored.validateAlways) return
  const lines = forDownstream(tagsOf(stored), (longestMs) =>
    downstreamLifetimeMs(stored, policy, stored.received.now, longestMs),
  )
  if (lines !== undefined) setForDownstream(stored, lines)
}

/** Turns responses into stored responses: the only way into the memory store. */
export class ResponseStorage {
  readonly #store: MemoryStore
  readonly #log: InvalidationLog
  readonly #quarantined: QuarantinedTags
  readonly #admission: Admission
  readonly #report: (event: CacheEvent) => void
  readonly #codedFrom: (read: CacheRead) => number

  constructor(options: StorageOptions) {
    this.#store = options.store
    this.#log = options.log
    this.#quarantined = options.quarantined
    this.#admission = options.admission
    this.#report = options.report
    this.#codedFrom = options.codedFrom
  }

  /** A response as it would be stored, without its tags. */
  create(
    { read, order }: StoredFor,
    { head, content }: CompleteResponse,
    times: ExchangeTimes,
    details?: StoredDetails,
  ): StoredResponse {
    return createStoredResponse({
      key: read.key,
      head,
      content,
      selecting: read,
      times,
      policy: read.policy,
      upstreamTag: details === undefined ? headerValue(head.headers, 'etag') : details.upstreamTag,
      order,
      codedFrom: this.#codedFrom(read),
      forms: details?.forms ?? noForms,
    })
  }

  /**
   * Its facts before the content has arrived: without an entity tag made here, and with a length only where the upstream
   * sent one.
   */
  createHead(storedFor: StoredFor, response: GatewayResponse, times: ExchangeTimes): StoredResponse {
    const stored = this.create(storedFor, { head: response, content: noContent }, times)
    const declared = declaredLength(response)
    const hasTag = headerValue(response.headers, 'etag') !== undefined
    const undetermined = new Set(hasTag ? ['content-length'] : ['content-length', 'etag'])
    const headers = withoutHeaders(stored.headers, undetermined)
    if (declared !== undefined) headers.push('Content-Length', String(declared))
    const isCoded = isCodable(stored, declared ?? Number.MAX_SAFE_INTEGER, this.#codedFrom(storedFor.read))
    return { ...stored, headers: isCoded ? withVaryByCoding(headers) : headers, content: noContent }
  }

  /** Sets the tags by which it is invalidated; undefined when its target cannot have answered so. */
  describe(read: CacheRead, stored: StoredResponse): StoredResponse | undefined {
    const { status, headers, content, hints } = stored
    const response = { status, headers, content, hints } as const
    setTags(stored, read.tags(response))
    return read.readability?.(response, content) === 'unreadable' ? undefined : stored
  }

  /** `since`: number of the last invalidation when the response was requested. Returns why it is not stored. */
  storeIfCurrent(
    read: Pick<CacheRead, 'forDownstream' | 'policy' | 'build'>,
    stored: StoredResponse,
    since: number,
  ): NoStoreReason | undefined {
    // Mostly nothing was invalidated meanwhile, and no tag is looked up.
    const isUndisputed = this.#log.sequence === since && this.#quarantined.isEmpty
    const disputed = isUndisputed ? undefined : this.#disputed(stored, since)
    if (disputed !== undefined) return disputed
    const variants = this.#store.peek(stored.key)
    if (variants.some((variant) => variant.order > stored.order && variant.varyKey === stored.varyKey)) {
      return 'overtaken'
    }
    if (variants.length === 0 && !this.#admits(read, stored)) return 'not-admitted'
    addForDownstream(read, stored)
    return this.#store.put(stored) ? undefined : 'too-large'
  }

  /** `describe`, then `storeIfCurrent`, and reports which. The result has its tags whether it is stored or not. */
  store(read: CacheRead, stored: StoredResponse, since: number) {
    const isReadable = this.describe(read, stored) !== undefined
    const isOutOfConfiguration = read.isOutOfConfiguration?.() === true
    const notStored = !isReadable
      ? 'unreadable'
      : isOutOfConfiguration
        ? 'overtaken'
        : this.storeIfCurrent(read, stored, since)
    this.#report(
      notStored === undefined
        ? {
            kind: 'stored',
            service: read.service,
            bytes: stored.bytes,
            description: descriptionOf(read.service, stored),
          }
        : { kind: 'not-stored', service: read.service, route: read.route, reason: notStored },
    )
    return { stored, notStored }
  }

  #admits({ build }: Pick<CacheRead, 'build'>, { key }: StoredResponse): boolean {
    return build === undefined ? this.#admission.admits(key) : this.#admission.admitsOfBuild()
  }

  #disputed(stored: StoredResponse, since: number): NoStoreReason | undefined {
    if (isSuperseded(this.#log, stored, since)) return 'overtaken'
    // It may show the state before a write that was carried out while it was on its way.
    return isQuarantined(this.#quarantined, stored, stored.requestedAt) ? 'unsettled' : undefined
  }
}
