import type { Readable } from 'node:stream'
import type { Cache } from '../cache/cache.ts'
import type { Note } from '../cache/invalidation.ts'
import { GatewayError } from '../errors.ts'
import type { ByteBudget } from '../http/bounds.ts'
import type { ResponseHead } from '../http/message.ts'
import type { AttemptEvent } from '../upstream/events.ts'
import type { Identity } from './access.ts'
import type { Received } from './exchange.ts'

export type ForwardingFacts = {
  /** Pseudonym in Via, different for each process, so that a request that comes back is recognised (RFC 9110 §7.6.3). */
  readonly via: string
}

export type CacheContext = {
  readonly cache: Cache
  /** Salted hash of a credential; see cache/cache-read.ts. */
  readonly partitionOf: (credential: string) => string
  readonly forwarding: ForwardingFacts
  /** Absent where no other process stores responses of the same upstreams (docs/decisions/0007). */
  readonly announcer?: WriteAnnouncer
  /** The gateway answers CORS itself: a stored response must not depend on the Origin of the first request. */
  readonly withholdsOrigin?: boolean
  /** Bounds the bytes that are held for requests in flight. */
  readonly budget: ByteBudget
}

/** Announces writes to other processes, so that they invalidate what a write changes. */
type WriteAnnouncer = {
  /** To be awaited before a write is sent; `mayMatter`: something that it changes may be stored somewhere. */
  begin(
    notes: readonly Note[],
    mayMatter: boolean,
  ): Promise<{ readonly kind: 'begun'; readonly write: string } | { readonly kind: 'refused' }>
  /** To be awaited before a write is answered. */
  spread(notes: readonly Note[], write?: string): Promise<unknown>
}

export type RateLimitVerdict = {
  readonly name: string
  readonly max: number
  readonly windowMs: number
  readonly remaining: number
  /** Until the window ends. */
  readonly resetSeconds: number
  readonly exceeded: boolean
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

/** Work that needs an upstream: items of a batch, reads that would be stored, and everything else. */
export type ForwardedWork = 'batch' | 'miss' | 'pass'

export type ShedOptions = {
  /** May one more request of this kind be started? */
  readonly admits: (work: ForwardedWork) => boolean
  readonly retryAfterSeconds: number
}

/** The 503 for a request that is refused because of overload. */
export const overloaded = (
  { retryAfterSeconds }: Pick<ShedOptions, 'retryAfterSeconds'>,
  fields: readonly string[] = [],
): GatewayError => new GatewayError('overloaded', { retryAfterSeconds, fields, unsent: true })

/** How an exchange was answered, with the facts known when the head is sent. */
export type Answered = {
  readonly head: ResponseHead
  readonly content: Buffer | Readable | undefined
  readonly durationMs: number
}

/** Called at the begin and the end of each exchange, for the access log and for traces. Must not throw. */
export type ExchangeWatch = {
  begin(exchange: Received): void
  end(exchange: Received, answered: Answered): void
}

/** The store of request counts that several processes share. */
export type RateLimitStore = {
  /** Adds one to a key of a limit; returns the count of the current window and the time until it ends. */
  increment(
    limit: string,
    key: string,
    windowMs: number,
  ): Promise<{ readonly count: number; readonly leftMs: number }>
}

/** An answer that is kept to be given again. */
export type KeptAnswer = { readonly status: number; readonly contentType: string; readonly content: Buffer }

export type KeyState =
  /** Unused so far: this request has it now, and must end it with `finish` or `abandon`. */
  | { readonly kind: 'begun' }
  | { readonly kind: 'in-flight' }
  /** It was used for a different request. */
  | { readonly kind: 'mismatch' }
  | { readonly kind: 'finished'; readonly answer: KeptAnswer }
  /** The request has been carried out, but its answer was too large to keep. */
  | { readonly kind: 'not-kept' }

/**
 * Where the keys of requests that must not be carried out twice are remembered. A store that several instances share can
 * replace the one in memory: `begin` must be atomic across them.
 */
export type IdempotencyStore = {
  /** Hashes: `key` of the caller and the key, `fingerprint` of the request. */
  begin(key: string, fingerprint: string): Promise<KeyState>
  finish(key: string, fingerprint: string, answer: KeptAnswer): Promise<void>
  /** Nothing was carried out: the key may be used again. */
  abandon(key: string): Promise<void>
}

export type SpanName = 'validate' | 'cache' | 'upstream'

/** An open span; ended once. */
export type OpenSpan = {
  /** `head`: the response, where there is one. */
  end(head: ResponseHead | undefined): void
  failed(error: unknown): void
  attempted(attempt: AttemptEvent): void
}

/** Opens a span; undefined where the exchange is not recorded. */
export type OpenSpans = (exchange: Received, name: SpanName) => OpenSpan | undefined

const watched = async <Result>(
  span: OpenSpan,
  run: () => Result | Promise<Result>,
  head: (result: Result) => ResponseHead | undefined,
): Promise<Result> => {
  try {
    const result = await run()
    span.end(head(result))
    return result
  } catch (error) {
    span.failed(error)
    throw error
  }
}

/** Does a part of the way of an exchange within a span of its trace. `head`: the response that the part has made. */
export const inSpan = <Result>(
  open: OpenSpans | undefined,
  exchange: Received,
  name: SpanName,
  run: () => Result | Promise<Result>,
  head: (result: Result) => ResponseHead | undefined,
): Result | Promise<Result> => {
  const span = open?.(exchange, name)
  return span === undefined ? run() : watched(span, run, head)
}
