import type { ExchangeWatch, OpenSpans } from '../pipeline/exchange-watch.ts'

/** What becomes of spans: `ended` here, then `exported`, or `failed` when the collector did not take them. The rest was given up. */
export type TracingEvent = {
  readonly kind: 'spans'
  readonly outcome: 'ended' | 'exported' | 'failed'
  readonly count: number
}

export type TracingOptions = {
  /** Of an OTLP collector over HTTP; without a path, `/v1/traces` is meant. */
  readonly otlpUrl: string
  /** Share of the traces that are recorded; what the traceparent of a trusted proxy says goes before. */
  readonly sampleRatio: number
  readonly serviceName: string
  readonly version: string
  readonly report: (event: TracingEvent) => void
}

/** Sees exchanges and makes spans of them. */
export type Tracing = {
  readonly watch: ExchangeWatch
  readonly openSpans: OpenSpans
  /** Sends what is waiting, if the collector takes it in time. */
  close(): Promise<void>
}
