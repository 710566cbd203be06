import type { Readability } from '../http/bodies/json-readability.ts'
import { parseCacheControl } from '../http/headers/caching-headers.ts'
import { type HeaderLines, type RequestHeaders, requestHeader } from '../http/headers/header-lines.ts'
import type { GatewayResponse, ResponseHead, ResponseOrPromise } from '../http/message.ts'
import { isHead } from '../http/methods.ts'
import { targetKeyOf } from './cache-key.ts'
import type { CachePolicy } from './decide-caching.ts'
import type { ForwardReason, ReadOutcome, ReadStep, StatusDetail } from './events.ts'

/** What a build remembers of a stored response. */
export type ReadResponse = Pick<ResponseHead, 'status' | 'headers'> & {
  readonly key: string
  readonly content: Buffer
  readonly varyKey: string
  readonly tags: readonly string[]
}

/** Takes what a request of a build is answered with. */
export type BuildReading = {
  /** `isCurrent`: nothing that it shows has been invalidated since it was requested. */
  used(stored: ReadResponse, isCurrent: boolean): void
  /** A response that cannot be compared with a later one. */
  usedUnknown(): void
}

/** A read that is answered through the cache: GET, HEAD, QUERY, or the POST of a GraphQL query. */
export type CacheRead = {
  readonly service: string
  /** Template of the route, for counts: from a closed list, never from a client. */
  readonly route: string
  readonly key: string
  /** The partition that the key was made with. */
  readonly partition: 'public' | 'credential'
  readonly method: 'GET' | 'HEAD'
  /** The client's headers, for request directives, preconditions and ranges. */
  readonly headers: RequestHeaders
  /** For Vary: the value of a header (lower-case name) as `forward` sends it; undefined if it does not. */
  sentHeader(name: string): string | undefined
  readonly policy: CachePolicy
  /** Responses of one caller may be compressed; public ones may be in any case. */
  readonly compresses?: boolean
  /** Tags of a complete response before it is stored; for an empty one, the tags that follow from the request. Must not throw. */
  readonly tags: (response: GatewayResponse & { readonly content: Buffer }) => readonly string[]
  /** Where requests with one key may be spelled differently: what of this one is sent beside its headers. */
  readonly sentContent?: string | undefined
  /** What is not `readable` goes only to requests that send the same. Absent: everything is readable. */
  readonly readability?: (head: ResponseHead, content: Buffer | undefined) => Readability
  /** Does a later configuration have another service in the place of its own? Then no other reader gets its response. Absent: never. */
  readonly isOutOfConfiguration?: () => boolean
  /**
   * Lines for caches in front of the gateway, for a response with these tags that is about to be stored; undefined: they must not
   * store it. `lifetimeMs`: how long they may keep it, of the longest time that is configured.
   */
  readonly forDownstream?:
    | ((tags: readonly string[], lifetimeMs: (longestMs: number) => number) => HeaderLines | undefined)
    | undefined
  /** Differs between configurations under which the same key has other content. Absent: none does. */
  readonly contentId?: string
  /** What its key has beside the meaning of the target, so that other readers of the same may have another key. */
  readonly splitBy?: 'key-header' | 'key-parameter' | undefined
  /** Of a build of a site generator; absent for other reads. */
  readonly build?: BuildReading | undefined
  /** Called at each step, for its trace; absent where it is not traced. */
  readonly step?: ((step: ReadStep) => void) | undefined
  readonly signal: AbortSignal
  /** Address of the client, whose share of the buffered bytes a fill uses. */
  readonly client?: string
}

/** The parts of a read that decide the form of its response. */
export type ReaderFacts = Pick<CacheRead, 'method' | 'headers'>

/** Ranges refer to the uncoded bytes; the request may also have no-transform (RFC 9111 §5.2.1.6). */
export const takesUncodedOnly = (headers: RequestHeaders): boolean =>
  headers['range'] !== undefined ||
  (headers['cache-control'] !== undefined &&
    parseCacheControl(requestHeader(headers, 'cache-control')).has('no-transform'))

export type CacheResponse = GatewayResponse & {
  readonly outcome: ReadOutcome
  /** Of a response from memory. */
  readonly ageSeconds?: number
  /** The stored response that it was made of, where caches in front of the gateway may store it. */
  readonly forDownstream?: { readonly key: string } | undefined
}

/**
 * Sends the read to the upstream with its method and headers, without those of `conditionalHeaders` (http/conditional/preconditions.ts)
 * and with `extra.headers`. May be called after the client has disconnected, and twice.
 */
export type Forward = (extra: {
  readonly headers: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  /** No reader waits for it: a stale response was served and is revalidated. */
  readonly background: boolean
}) => ResponseOrPromise

/** A request for a range fetches alone with these headers: the upstream may send the part at a lower cost. */
export const rangeHeaders = (read: CacheRead): Record<string, string> => {
  const range = requestHeader(read.headers, 'range')
  const condition = requestHeader(read.headers, 'if-range')
  if (range === undefined || isHead(read.method)) return {}
  return condition === undefined ? { range } : { range, 'if-range': condition }
}

/** A public response to a request with a credential may turn out to be private (RFC 9111 §3.5). */
export const carriesOwnCredential = (read: CacheRead): boolean =>
  read.partition === 'public' && read.headers['authorization'] !== undefined

const emptyResponse = { status: 200, headers: [], content: Buffer.alloc(0) } as const

export const expectedTags = (read: CacheRead): readonly string[] => [
  targetKeyOf(read.key),
  ...read.tags(emptyResponse),
]

/** Parameters of a forwarded request (RFC 9211 §2). */
type ForwardedStatus = {
  readonly reason: ForwardReason
  readonly status?: number | undefined
  readonly ttlSeconds?: number
  readonly stored?: boolean
  readonly collapsed?: boolean
  readonly detail?: StatusDetail | undefined
}

export const cacheName = 'trellis'

export const forwardedCacheStatus = (forwarded: ForwardedStatus): string => {
  let text = `${cacheName}; fwd=${forwarded.reason}`
  if (forwarded.status !== undefined) text += `; fwd-status=${forwarded.status}`
  if (forwarded.ttlSeconds !== undefined) text += `; ttl=${forwarded.ttlSeconds}`
  if (forwarded.stored === true) text += '; stored'
  if (forwarded.collapsed === true) text += '; collapsed'
  return forwarded.detail === undefined ? text : `${text}; detail=${forwarded.detail}`
}
