import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { ClientRequest } from 'node:http'
import {
  type Attributes,
  type Context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type SpanExporter,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-base'
import {
  ATTR_ERROR_TYPE,
  ATTR_HTTP_REQUEST_METHOD,
  ATTR_HTTP_REQUEST_RESEND_COUNT,
  ATTR_HTTP_RESPONSE_STATUS_CODE,
  ATTR_HTTP_ROUTE,
  ATTR_SERVER_ADDRESS,
  ATTR_SERVER_PORT,
  ATTR_SERVICE_NAME,
  ATTR_SERVICE_VERSION,
  ATTR_URL_SCHEME,
} from '@opentelemetry/semantic-conventions'
import type { ExchangeWatch } from '../exchange/ports.ts'
import type { RequestContext } from '../exchange/request-context.ts'
import type { OpenSpan, OpenSpans } from '../exchange/spans.ts'
import { type TraceContext, traceContextOf } from '../http/headers/forwardable-headers.ts'
import { isPost, methodName } from '../http/methods.ts'
import { systemLookup } from '../system-lookup.ts'
import type { AttemptEvent } from '../upstream/events.ts'

/** The spans of one exchange: the outermost, and the innermost that is open. */
type Open = { readonly outermost: Span; innermost: Span }

/** A name that no client chooses (semantic conventions for HTTP spans: low cardinality). */
const spanName = (method: string): string => methodName(method).replace('_OTHER', 'HTTP')

const traceContext = (span: Span): TraceContext => {
  const { traceId, spanId, traceFlags } = span.spanContext()
  return { traceId, spanId, sampled: (traceFlags & TraceFlags.SAMPLED) !== 0 }
}

const under = (span: Span): Context => trace.setSpan(ROOT_CONTEXT, span)

const underRemote = ({ traceId, spanId, sampled }: TraceContext): Context =>
  trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: sampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
    isRemote: true,
  })

const errorType = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '_OTHER'

/** RFC 3986 hosts of targets come from the configuration. */
export const addressOf = (target: string): Attributes => {
  const { hostname, port, protocol } = new URL(target)
  return {
    [ATTR_SERVER_ADDRESS]: hostname,
    [ATTR_SERVER_PORT]: port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port),
    [ATTR_URL_SCHEME]: protocol.slice(0, -1),
  }
}

const attemptSpan = (tracer: Tracer, method: string, parent: Span, attempt: AttemptEvent): void => {
  const end = Date.now()
  const span = tracer.startSpan(
    spanName(method),
    {
      kind: SpanKind.CLIENT,
      startTime: end - attempt.durationSeconds * 1000,
      attributes: {
        [ATTR_HTTP_REQUEST_METHOD]: methodName(method),
        ...addressOf(attempt.target),
        ...(attempt.attempt > 1 ? { [ATTR_HTTP_REQUEST_RESEND_COUNT]: attempt.attempt - 1 } : {}),
        'trellis.attempt.outcome': attempt.outcome,
        'trellis.attempt.status_class': attempt.statusClass,
      },
    },
    under(parent),
  )
  if (attempt.outcome !== 'answered' || attempt.statusClass === '5xx') {
    span.setStatus({ code: SpanStatusCode.ERROR })
    span.setAttribute(ATTR_ERROR_TYPE, attempt.outcome === 'answered' ? attempt.statusClass : attempt.outcome)
  }
  span.end(end)
}

/** Above this number of requests in flight, batch items start their own traces. */
const maxUnderWay = 10_000

/** Id of an item's batch: items have its id with their index behind. */
const batchOf = (id: string): string => id.slice(0, id.lastIndexOf('.'))

/** An event for each step of a read and of a write, and for each state of a write. */
const stepEvents = (
  span: Span,
): Pick<NonNullable<RequestContext['record']['trace']>, 'read' | 'write' | 'wrote'> => ({
  read: (step) => void span.addEvent('trellis.read', { 'trellis.read.step': step }),
  write: (step) => void span.addEvent('trellis.write', { 'trellis.write.step': step }),
  wrote: (state) => void span.addEvent('trellis.write', { 'trellis.write.state': state }),
})

/**
 * A client cannot have all of its requests recorded: above the share, its flag counts only from a trusted proxy. Sampled at
 * random, not by the trace id, which the client chooses.
 */
const isRecorded = (sampled: boolean, viaTrustedProxy: boolean, sampleRatio: number): boolean =>
  sampled && (viaTrustedProxy || Math.random() < sampleRatio)

/** Makes spans of exchanges. Attributes come from closed lists and the configuration: no target, no header, no content. */
const createExchangeSpans = (
  tracer: Tracer,
  sampleRatio: number,
): { readonly watch: ExchangeWatch; readonly openSpans: OpenSpans } => {
  const open = new WeakMap<RequestContext['record'], Open>()
  /** Requests in flight by id: items of a batch find their parent here. */
  const byId = new Map<string, Span>()

  const parentOf = ({ id, origin, request, client }: RequestContext): Context => {
    const batch = origin === 'batch' ? byId.get(batchOf(id)) : undefined
    if (batch !== undefined) return under(batch)
    const remote = traceContextOf(request.headers)
    if (remote === undefined) return ROOT_CONTEXT
    return underRemote({
      ...remote,
      sampled: isRecorded(remote.sampled, client.viaTrustedProxy, sampleRatio),
    })
  }

  const watch: ExchangeWatch = {
    begin: (context) => {
      const { id, origin, request, service, client, record } = context
      const span = tracer.startSpan(
        origin === 'batch' ? 'batch item' : spanName(request.method),
        {
          kind: origin === 'batch' ? SpanKind.INTERNAL : SpanKind.SERVER,
          attributes: {
            [ATTR_HTTP_REQUEST_METHOD]: methodName(request.method),
            [ATTR_URL_SCHEME]: client.protocol,
            'trellis.service': service.name,
            'trellis.request.id': id,
          },
        },
        parentOf(context),
      )
      record.trace = {
        ...traceContext(span),
        ...stepEvents(span),
      }
      if (!span.isRecording()) return
      open.set(record, { outermost: span, innermost: span })
      if (origin === 'client' && byId.size < maxUnderWay) byId.set(id, span)
    },
    end: ({ id, origin, request, record }, { head }) => {
      const span = open.get(record)?.outermost
      if (span === undefined) return
      if (origin === 'client') byId.delete(id)
      // Absent where no row applies: `unmatched` is no route.
      if (record.route.startsWith('/')) {
        span.setAttribute(ATTR_HTTP_ROUTE, record.route)
        if (origin === 'client') span.updateName(`${spanName(request.method)} ${record.route}`)
      }
      span.setAttributes({
        [ATTR_HTTP_RESPONSE_STATUS_CODE]: head.status,
        'trellis.cache': record.cache,
      })
      // Conventions: a fault of the client is no error of the server span.
      if (head.status >= 500) {
        span.setStatus({ code: SpanStatusCode.ERROR })
        span.setAttribute(ATTR_ERROR_TYPE, String(head.status))
      }
      span.end()
    },
  }

  const openSpans: OpenSpans = (context, name) => {
    const { record, request } = context
    const openTrace = open.get(record)
    if (openTrace === undefined) return undefined
    const parent = openTrace.innermost
    const span = tracer.startSpan(name, { kind: SpanKind.INTERNAL }, under(parent))
    openTrace.innermost = span
    const opened: OpenSpan = {
      attempted: (attempt) => attemptSpan(tracer, request.method, span, attempt),
      end: (head) => {
        if (head !== undefined) span.setAttribute(ATTR_HTTP_RESPONSE_STATUS_CODE, head.status)
        close()
      },
      failed: (error) => {
        span.setStatus({ code: SpanStatusCode.ERROR })
        span.setAttribute(ATTR_ERROR_TYPE, errorType(error))
        close()
      },
    }
    const close = (): void => {
      if (openTrace.innermost === span) openTrace.innermost = parent
      span.end()
    }
    // The upstream gets this span as its parent.
    if (name === 'upstream')
      record.trace = { ...record.trace, ...traceContext(span), attempted: opened.attempted }
    return opened
  }
  return { watch, openSpans }
}

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

/** https://nodejs.org/api/diagnostics_channel.html#http */
const started = 'http.client.request.start'

/**
 * Ends requests to a collector after a timeout. The exporter's own timeout restarts with each byte, and it waits for ever for a
 * response that changes the protocol; after some of those it would stop exporting. It does not expose its requests, and a custom
 * agent would replace the one that it creates from its environment. Returns the function that stops it.
 */
export const boundExports = (collector: URL, maxMs: number): (() => void) => {
  const path = `${collector.pathname}${collector.search}`
  // A request has the address of RFC 3986's IP-literal without its brackets.
  const host = collector.hostname.replaceAll(/[[\]]/g, '')
  const bound = (message: unknown): void => {
    const { request } = message as { readonly request?: unknown }
    if (!(request instanceof ClientRequest) || !isPost(request.method)) return
    if (request.path !== path || request.host !== host) return
    const timer = setTimeout(() => request.destroy(new Error('the collector took too long')), maxMs)
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
const maxQueued = 2_048
const maxExported = 512
const everyMs = 2_000
export const exportTimeoutMs = 5_000

/** Of a collector; `path` where the configuration has none. */
export const collectorUrl = (otlpUrl: string, path: '/v1/traces' | '/v1/metrics'): URL => {
  const url = new URL(otlpUrl)
  if (url.pathname === '/') url.pathname = path
  return url
}

/** Success is 0 in @opentelemetry/core, which the gateway does not depend on. */
export const success = 0

/** Counts the spans that the collector accepted and refused; a failure has no other effect. */
const counted = (exporter: SpanExporter, report: TracingOptions['report']): SpanExporter => ({
  export: (spans, done) =>
    exporter.export(spans, ({ code }) => {
      report({ kind: 'spans', outcome: code === success ? 'exported' : 'failed', count: spans.length })
      done({ code: success })
    }),
  shutdown: () => exporter.shutdown(),
})

/** Tracing by OpenTelemetry: spans are queued, bounded, and sent in batches beside the work. */
export const createTracing = (options: TracingOptions) => {
  const { report } = options
  const url = collectorUrl(options.otlpUrl, '/v1/traces')
  const unbound = boundExports(url, exportTimeoutMs)
  const exporter = new OTLPTraceExporter({
    url: url.href,
    timeoutMillis: exportTimeoutMs,
    httpAgentOptions: { lookup: systemLookup },
  })
  class CountedSpans extends BatchSpanProcessor {
    override onEnd(span: ReadableSpan): void {
      report({ kind: 'spans', outcome: 'ended', count: 1 })
      super.onEnd(span)
    }
  }
  const processor = new CountedSpans(counted(exporter, report), {
    maxQueueSize: maxQueued,
    maxExportBatchSize: maxExported,
    scheduledDelayMillis: everyMs,
    exportTimeoutMillis: exportTimeoutMs,
  })
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({
      [ATTR_SERVICE_NAME]: options.serviceName,
      [ATTR_SERVICE_VERSION]: options.version,
    }),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(options.sampleRatio) }),
    spanProcessors: [processor],
  })
  const spans = createExchangeSpans(provider.getTracer('trellis', options.version), options.sampleRatio)
  /** Exports the waiting spans, if the collector accepts them in time. */
  const close = async (): Promise<void> => {
    await provider.shutdown().catch(() => undefined)
    unbound()
  }
  return { ...spans, close }
}
