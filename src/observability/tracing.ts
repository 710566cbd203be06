import type { ExchangeWatch, OpenSpans } from '../pipeline/phase-options.ts'

/** Counts of spans: `ended` here, then `exported`, or `failed` when the collector refused them. The remainder was dropped. */
export type TracingEvent = {
  readonly kind: 'spans'
  readonly outcome: 'ended' | 'exported' | 'failed'
  readonly count: number
}

export type TracingOptions = {
  /** Of an OTLP collector over HTTP; without a path, `/v1/traces` is meant. */
  readonly otlpUrl: string
  /** Share of the traces that are recorded; the traceparent of a trusted proxy takes precedence. */
  readonly sampleRatio: number
  readonly serviceName: string
  readonly version: string
  readonly report: (event: TracingEvent) => void
}

/** Makes spans of exchanges. */
export type Tracing = {
  readonly watch: ExchangeWatch
  readonly openSpans: OpenSpans
  /** Exports the waiting spans, if the collector accepts them in time. */
  close(): Promise<void>
}
