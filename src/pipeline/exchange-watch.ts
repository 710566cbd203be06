import type { Readable } from 'node:stream'
import type { ResponseHead } from '../http/message.ts'
import type { AttemptEvent } from '../upstream/events.ts'
import type { Received } from './exchange.ts'

/** How an exchange was answered, as far as it is known when the head goes out. */
export type Answered = {
  readonly head: ResponseHead
  /** Undefined also for what is carried past the phases. */
  readonly content: Buffer | Readable | undefined
  readonly durationMs: number
}

/** Sees each exchange come and go: for the access log and for traces. Must not throw. */
export type ExchangeWatch = {
  begin(exchange: Received): void
  end(exchange: Received, answered: Answered): void
}

/** Stretches of an exchange's way that are worth a span. */
export type SpanName = 'validate' | 'cache' | 'upstream'

/** A stretch that has begun; ended once. */
export type OpenSpan = {
  /** What came out of it, where that is known. */
  end(head: ResponseHead | undefined): void
  failed(error: unknown): void
  attempted(attempt: AttemptEvent): void
}

/** Opens spans for stretches of the way; undefined where the exchange is not recorded. */
export type OpenSpans = (exchange: Received, name: SpanName) => OpenSpan | undefined
