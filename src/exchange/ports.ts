import type { Readable } from 'node:stream'
import type { Cache } from '../cache/cache.ts'
import type { Invalidation } from '../cache/invalidation.ts'
import type { Clock } from '../clock.ts'
import type { ByteBudget } from '../http/bounds/byte-budget.ts'
import type { ResponseHead } from '../http/message.ts'
import type { ScheduledTasksReading } from '../service/contract.ts'
import type { Identity } from './access.ts'
import type { ExchangeEvent } from './events.ts'
import type { RequestContext } from './request-context.ts'
import type { ConcurrentWrites } from './write/concurrent-writes.ts'
import type { OpenWrites } from './write/open-writes.ts'

/** Work that needs an upstream: items of a batch, reads that would be stored, and everything else. */
export type ForwardedWork = 'batch' | 'miss' | 'pass'

export type ShedOptions = {
  readonly accepts: (work: ForwardedWork) => boolean
  readonly retryAfterSeconds: number
}

export type ForwardingFacts = {
  /** Pseudonym in Via, different for each process, so that a request that comes back is recognised (RFC 9110 §7.6.3). */
  readonly via: string
}

/** What the writes of a process know of each other. */
export type WritesInFlight = {
  readonly concurrent: ConcurrentWrites
  readonly open: OpenWrites
  /** The scheduled tasks that may have begun, by the names of all services that they reach. */
  readonly tasks: {
    reaching(
      names: readonly string[],
      times: Pick<ScheduledTasksReading, 'lockMs' | 'settleMs'>,
    ): {
      started(drop: () => Promise<unknown> | undefined): Promise<unknown> | undefined
    }
  }
}

export type CacheDeps = {
  readonly cache: Cache
  readonly writes: WritesInFlight
  /** Salted hash of a credential; see cache/cache-key.ts. */
  readonly partitionOf: (credential: string) => string
  readonly forwarding: ForwardingFacts
  /** Absent where neither another process (docs/decisions/0007) nor a cache in front stores responses of the same upstreams. */
  readonly writeRegistry?: WriteRegistry
  /** Bounds the bytes that are held for requests in flight. */
  readonly budget: ByteBudget
  readonly clock: Clock
  readonly report: (event: ExchangeEvent) => void
}

/** Records writes before they are sent, and has the other processes and the caches in front drop what they have changed. */
type WriteRegistry = {
  /** To be awaited before a write is sent; `mayMatter`: something that it changes may be stored somewhere. */
  begin(
    invalidations: readonly Invalidation[],
    mayMatter: boolean,
  ): Promise<{ readonly kind: 'begun'; readonly write: string } | { readonly kind: 'refused' }>
  /** To be awaited before a write gets its response. */
  broadcast(invalidations: readonly Invalidation[], write?: string): Promise<unknown>
}

export type RateLimitVerdict = {
  /** Its item of `RateLimit-Policy`. */
  readonly policy: string
  readonly name: string
  readonly remaining: number
  /** Until the client has its whole quota again. */
  readonly resetSeconds: number
  /** Until its next request is admitted; 0: this one is. */
  readonly retryAfterSeconds: number
}

/** The properties of a request that limits select and count by. */
type CountedRequest = {
  readonly service: string
  readonly method: string
  /** The one spelling of its path under the mount. */
  readonly path: string
  readonly address: string
  readonly credential: string | undefined
  readonly identity: Identity | undefined
}

/** Counts a request in every limit that is for it; none when no limit is. A shared store answers later. */
export type CountRequest = (
  request: CountedRequest,
) => readonly RateLimitVerdict[] | Promise<readonly RateLimitVerdict[]>

/** How a request was answered, with the facts known when the head is sent. */
export type SentResponse = {
  readonly head: ResponseHead
  readonly content: Buffer | Readable | undefined
  readonly durationMs: number
}

/** Called at the begin and the end of each request, for the access log and for traces. Must not throw. */
export type ExchangeWatch = {
  begin(context: RequestContext): void
  end(context: RequestContext, responded: SentResponse): void
}

/** Milliseconds. */
export type Rate = { readonly windowMs: number; readonly intervalMs: number }

/** `usedMs`: how much of the window the requests of a client have used up, with this one if it was admitted. */
export type RateLimitResult = { readonly admitted: boolean; readonly usedMs: number }

export type RateLimitStore = {
  /** Takes one request of a key of a limit that admits one in each interval, and at once as many as fit into the window. */
  take(limit: string, key: string, rate: Rate): Promise<RateLimitResult>
}

/** A response that is kept to be given again. */
export type ReplayedResponse = {
  readonly status: number
  readonly contentType: string
  readonly content: Buffer
}

export type KeyState =
  /** Unused so far: this request has it now, and must end it with `finish` or `abandon`. */
  | { readonly kind: 'begun' }
  | { readonly kind: 'in-flight' }
  /** It was used for a different request. */
  | { readonly kind: 'mismatch' }
  | { readonly kind: 'finished'; readonly response: ReplayedResponse }
  /** The request has been carried out, but its response was too large to keep. */
  | { readonly kind: 'not-kept' }

/**
 * Where the keys of requests that must not be carried out twice are remembered. A store that several instances share can
 * replace the one in memory: `begin` must be atomic across them.
 */
export type IdempotencyStore = {
  /** Hashes: `key` of the caller and the key, `fingerprint` of the request. */
  begin(key: string, fingerprint: string): Promise<KeyState>
  finish(key: string, fingerprint: string, response: ReplayedResponse): Promise<void>
  /** Nothing was carried out: the key may be used again. */
  abandon(key: string): Promise<void>
}
