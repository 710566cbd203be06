import type { ExchangeWatch, OpenSpans } from '../pipeline/exchange-watch.ts'
import type { TracingEvent } from './events.ts'

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
