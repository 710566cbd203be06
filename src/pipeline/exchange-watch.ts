import type { Readable } from 'node:stream'
import type { ResponseHead } from '../http/message.ts'
import type { AttemptEvent } from '../upstream/events.ts'
import type { Received } from './exchange.ts'

/** How an exchange was answered, as far as it is known when the head goes out. */
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

/** Parts of an exchange that have a span of their own. */
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
