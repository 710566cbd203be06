import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { ClientRequest } from 'node:http'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type SpanExporter,
  type SpanProcessor,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-base'
import { ATTR_SERVICE_NAME, ATTR_SERVICE_VERSION } from '@opentelemetry/semantic-conventions'
import type { ExchangeWatch, OpenSpans } from '../pipeline/phase-options.ts'
import { createExchangeSpans } from './tracing/exchange-spans.ts'

/** Counts of spans: `ended` here, then `exported`, or `failed` when the collector refused them. The remainder was dropped. */
export type TracingEvent = {
  readonly kind: 'spans'
  readonly outcome: 'ended' | 'exported' | 'failed'
  readonly count: number
}

type TracingOptions = {
  /** Of an OTLP collector over HTTP; without a path, `/v1/traces` is meant. */
  readonly otlpUrl: string
  /** Share of the traces that are recorded; the traceparent of a trusted proxy takes precedence. */
  readonly sampleRatio: number
  readonly serviceName: string
  readonly version: string
  readonly report: (event: TracingEvent) => void
}

/** Makes spans of exchanges. */
type Tracing = {
  readonly watch: ExchangeWatch
  readonly openSpans: OpenSpans
  /** Exports the waiting spans, if the collector accepts them in time. */
  close(): Promise<void>
}

/** https://nodejs.org/api/diagnostics_channel.html#http */
const started = 'http.client.request.start'

const requestOf = (message: unknown): ClientRequest | undefined => {
  const request = (message as { readonly request?: unknown }).request
  return request instanceof ClientRequest ? request : undefined
}

/**
 * Ends requests to a collector after a timeout. The exporter's own timeout restarts with each byte, and it waits for ever for a
 * response that changes the protocol; after some of those it would stop exporting. It does not expose its requests, and a custom
 * agent would replace the one that it creates from its environment. Returns the function that stops it.
 */
const boundExports = (collector: URL, mostMs: number): (() => void) => {
  const path = `${collector.pathname}${collector.search}`
  // A request has the address of RFC 3986's IP-literal without its brackets.
  const host = collector.hostname.replaceAll(/[[\]]/g, '')
  const bound = (message: unknown): void => {
    const request = requestOf(message)
    if (request?.method !== 'POST' || request.path !== path || request.host !== host) return
    const timer = setTimeout(() => request.destroy(new Error('the collector took too long')), mostMs)
    timer.unref()
    request.once('close', () => clearTimeout(timer))
    request.once('upgrade', (_, socket) => {
      // Without a listener its error would end the process, and the request's error has to be reported by hand.
      socket.on('error', () => undefined).destroy()
      request.emit('error', new Error('the collector changed the protocol'))
    })
  }
  subscribe(started, bound)
  return () => {
    unsubscribe(started, bound)
  }
}

/** Most spans that wait for a slow collector; further ones are dropped. */
const mostQueued = 2_048
const mostExported = 512
const everyMs = 2_000
const exportTimeoutMs = 5_000

const urlOf = (otlpUrl: string): URL => {
  const url = new URL(otlpUrl)
  if (url.pathname === '/') url.pathname = '/v1/traces'
  return url
}

/** Success is 0 in @opentelemetry/core, which the gateway does not depend on. */
const success = 0

/** Counts the spans that the collector accepted and refused; a failure has no other effect. */
const counted = (exporter: SpanExporter, report: TracingOptions['report']): SpanExporter => ({
  export: (spans, done) =>
    exporter.export(spans, (result) => {
      report({
        kind: 'spans',
        outcome: result.code === success ? 'exported' : 'failed',
        count: spans.length,
      })
      done({ code: success })
    }),
  forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
  shutdown: () => exporter.shutdown(),
})

const countedEnds = (processor: SpanProcessor, report: TracingOptions['report']): SpanProcessor => ({
  onStart: (span, context) => processor.onStart(span, context),
  onEnd: (span: ReadableSpan) => {
    report({ kind: 'spans', outcome: 'ended', count: 1 })
    processor.onEnd(span)
  },
  forceFlush: () => processor.forceFlush(),
  shutdown: () => processor.shutdown(),
})

/** Tracing by OpenTelemetry: spans are queued, bounded, and sent in batches beside the work. */
export const createTracing = (options: TracingOptions): Tracing => {
  const { report } = options
  const url = urlOf(options.otlpUrl)
  const unbound = boundExports(url, exportTimeoutMs)
  const exporter = new OTLPTraceExporter({ url: url.href, timeoutMillis: exportTimeoutMs })
  const processor = new BatchSpanProcessor(counted(exporter, report), {
    maxQueueSize: mostQueued,
    maxExportBatchSize: mostExported,
    scheduledDelayMillis: everyMs,
    exportTimeoutMillis: exportTimeoutMs,
  })
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({
      [ATTR_SERVICE_NAME]: options.serviceName,
      [ATTR_SERVICE_VERSION]: options.version,
    }),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(options.sampleRatio) }),
    spanProcessors: [countedEnds(processor, report)],
  })
  const spans = createExchangeSpans(provider.getTracer('trellis', options.version), options.sampleRatio)
  const close = async (): Promise<void> => {
    await provider.shutdown().catch(() => undefined)
    unbound()
  }
  return { ...spans, close }
}
