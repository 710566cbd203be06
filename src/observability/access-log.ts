import type { Config } from '../config/config.ts'
import type { ExchangeWatch, SentResponse } from '../exchange/ports.ts'
import type { RequestContext } from '../exchange/request-context.ts'
import type { OpenSpans } from '../exchange/spans.ts'
import { addressNetwork } from '../http/bounds/client-network.ts'
import { traceContextOf } from '../http/headers/forwardable-headers.ts'
import { headerValues, type RequestHeaders, requestHeader } from '../http/headers/header-lines.ts'
import type { ResponseHead } from '../http/message.ts'
import { methodName } from '../http/methods.ts'
import type { Redaction } from '../http/redaction.ts'
import type { Metrics } from './metrics.ts'

/** A line of the access log. The members that show what the client sent are there only when the configuration asks for them. */
export type AccessLine = {
  readonly id: string
  readonly trace?: string | undefined
  readonly service: string
  /** Template of the row. */
  readonly route: string
  readonly method: string
  readonly status: number
  /** Of an error that the gateway made. */
  readonly code?: string | undefined
  /** Why `access` refused the request. */
  readonly reason?: string | undefined
  readonly cache: string
  /** The gateway's own member of Cache-Status (RFC 9211): how, and why. */
  readonly cacheStatus?: string | undefined
  readonly durationMs: number
  readonly upstreamMs: number
  /** Of content; absent where it streams without a length. */
  readonly bytes?: number | undefined
  /** Requests that this line stands for, where hits are sampled. */
  readonly weight?: number | undefined
  /** Path and query as received; values of parameters that are secrets, by their name or as a service declares, are hidden. */
  readonly path?: string | undefined
  /** Address of the client, or the network that it is in. */
  readonly client?: string | undefined
  readonly userAgent?: string | undefined
  /** Origin of the target that was asked last; absent where none was. */
  readonly target?: string | undefined
}

type AccessLogOptions = Omit<Config['log']['access'], 'requests'> & {
  /** `sample`: a line for some hits, and one for each of the other requests. */
  readonly mode: 'all' | 'sample'
  /** Share of hits that get a line, above 0. */
  readonly sampleHits: number
  readonly redaction: Redaction
  write(line: AccessLine): void
}

/** A request that was refused before it reached `handle`; undefined where the bytes are no request. */
export type EarlyRefusal = {
  readonly id: string
  readonly service: string
  readonly status: number
  readonly code: string
  readonly address: string
  readonly request:
    | { readonly method: string; readonly target: string; readonly headers: RequestHeaders }
    | undefined
}

/** Writes one line for a request. */
export type AccessLog = ExchangeWatch & { refused(refusal: EarlyRefusal): void }

const ownMember = 'trellis; '

/** The gateway's member is last, after the Cache-Status of the upstream, whose text is not logged. */
const ownCacheStatus = ({ headers }: ResponseHead): string | undefined => {
  const last = headerValues(headers, 'cache-status').at(-1)
  return last?.startsWith(ownMember) === true ? last.slice(ownMember.length) : undefined
}

const bytesOf = ({ head, content }: SentResponse): number | undefined => {
  if (Buffer.isBuffer(content)) return content.length
  const [declared] = headerValues(head.headers, 'content-length')
  if (declared !== undefined && /^\d{1,15}$/.test(declared)) return Number(declared)
  return content === undefined ? 0 : undefined
}

const microseconds = (milliseconds: number): number => Math.round(milliseconds * 1000) / 1000

/** In terminals some bytes outside ASCII are commands, and some readers of logs take them for the end of a line. */
export const printable = (text: string, longest: number): string => {
  const shown = text.replace(/[^\x20-\x7e]/g, '?')
  return shown.length > longest ? `${shown.slice(0, longest - 3)}...` : shown
}

const longestPath = 512
const longestAgent = 200

type ShownLine = Pick<AccessLine, 'path' | 'client' | 'userAgent'>

/** Makes the members that show what the client sent. */
const createShown =
  ({ path, client, userAgent, redaction }: AccessLogOptions) =>
  (address: string, target: string, headers: RequestHeaders): ShownLine => {
    const agent = userAgent ? requestHeader(headers, 'user-agent') : undefined
    return {
      path: path
        ? printable(redaction.beginning(target, longestPath).replaceAll(' ', '?'), longestPath)
        : undefined,
      client: client === 'none' ? undefined : client === 'full' ? address : addressNetwork(address),
      userAgent: agent === undefined ? undefined : printable(agent, longestAgent),
    }
  }

const lineOf = (
  { id, service, request, record }: RequestContext,
  responded: SentResponse,
  weight: number | undefined,
): AccessLine => ({
  id,
  trace: record.trace?.traceId ?? traceContextOf(request.headers)?.traceId,
  service: service.name,
  route: record.route,
  method: methodName(request.method),
  status: responded.head.status,
  code: record.code,
  reason: record.reason,
  cache: record.cache,
  cacheStatus: record.cache === 'none' ? undefined : ownCacheStatus(responded.head),
  durationMs: microseconds(responded.durationMs),
  upstreamMs: microseconds(record.upstreamMs),
  bytes: bytesOf(responded),
  weight,
})

/** One line for a request, written when its response is ready. Items of a batch have none: the batch has. */
export const createAccessLog = (options: AccessLogOptions): AccessLog => {
  const { mode, write } = options
  const shown = createShown(options)
  const showsClient = options.path || options.userAgent || options.client !== 'none'
  const every = Math.max(1, Math.round(1 / options.sampleHits))
  let hits = 0
  /** Undefined: no line. Counted, not drawn: a hundred hits give one line at a share of a hundredth, never none and never three. */
  const weightOf = (cache: string): number | undefined => {
    if (mode === 'all' || cache !== 'hit') return 1
    hits += 1
    if (hits < every) return undefined
    hits = 0
    return every
  }
  return {
    begin: () => {},
    end: (context, responded) => {
      if (context.origin !== 'client') return
      const weight = weightOf(context.record.cache)
      if (weight === undefined) return
      const line = lineOf(context, responded, mode === 'all' ? undefined : weight)
      const { client, request, record } = context
      const more = showsClient ? shown(client.address, request.target, request.headers) : undefined
      const target = options.target ? record.target : undefined
      write(more === undefined && target === undefined ? line : { ...line, ...more, target })
    },
    refused: ({ id, service, status, code, address, request }) => {
      const { method = '_OTHER', target = '', headers = {} } = request ?? {}
      const { path, ...more } = shown(address, target, headers)
      write({
        id,
        service,
        route: 'unmatched',
        method: methodName(method),
        status,
        code,
        cache: 'none',
        durationMs: 0,
        upstreamMs: 0,
        weight: mode === 'all' ? undefined : 1,
        path: request === undefined ? undefined : path,
        ...more,
      })
    },
  }
}

/** An access line for a person at a terminal. Its texts are printable and have no spaces, so that none can pretend to be another member. */
export const readableLine = (line: AccessLine & { readonly time: string }): string => {
  const { time, status, method, path, service, route, durationMs, cache, id, code } = line
  const shownPath = path ?? route
  const ms = durationMs < 10 ? Math.round(durationMs * 10) / 10 : Math.round(durationMs)
  return [
    `${time.slice(11, 23)} ${status} ${method.padEnd(6)} ${shownPath}`,
    `${ms} ms`,
    cache,
    service,
    id,
    ...(code === undefined ? [] : [code]),
  ].join('  ')
}

/** Loaded only here: a gateway that pushes nothing does not load OpenTelemetry. */
const startMetricPush = async (
  { tracing: { serviceName }, metrics: { otlpUrl, intervalMs } }: Pick<Config, 'tracing' | 'metrics'>,
  { snapshot, observe }: Metrics,
  version: string,
) => {
  if (otlpUrl === '') return undefined
  const { startPush } = await import('./push-metrics.ts')
  return startPush({ otlpUrl, intervalMs, serviceName, version, snapshot, report: observe.push })
}

/** Starts the access log, traces and the push of metrics that the configuration enables. */
export const startWatches = async (
  config: Pick<Config, 'log' | 'tracing' | 'metrics'>,
  parts: {
    readonly lines: { info(line: AccessLine, message: string): void }
    readonly metrics: Metrics
    readonly redaction: Redaction
    readonly version: string
  },
): Promise<{
  readonly watches: readonly ExchangeWatch[] | undefined
  readonly spans: OpenSpans | undefined
  /** Undefined where the configuration asks for none. */
  readonly accessLog: AccessLog | undefined
  close(): Promise<void>
}> => {
  const { log, tracing } = config
  const { lines, metrics, redaction, version } = parts
  const { requests, ...members } = log.access
  const accessLog =
    requests === 'none'
      ? undefined
      : createAccessLog({
          ...members,
          mode: requests,
          sampleHits: log.sampleHits,
          redaction,
          write: (line) => lines.info(line, 'request'),
        })
  const access = accessLog === undefined ? [] : [accessLog]
  const push = await startMetricPush(config, metrics, version)
  const closePush = async (): Promise<void> => push?.close()
  if (tracing.otlpUrl === '') {
    const watches = accessLog === undefined ? undefined : access
    return { watches, spans: undefined, accessLog, close: closePush }
  }
  // Loaded only here: a gateway without tracing does not load OpenTelemetry.
  const { createTracing } = await import('./open-telemetry.ts')
  const traces = await createTracing({ ...tracing, version, report: metrics.observe.tracing })
  // Traces first: the access log names them.
  return {
    watches: [traces.watch, ...access],
    spans: traces.openSpans,
    accessLog,
    close: async () => {
      await Promise.all([traces.close(), closePush()])
    },
  }
}
