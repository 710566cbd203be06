import { X509Certificate } from 'node:crypto'
import type { Config } from '../config/config.ts'
import { type AccessLog, createAccessLog } from '../observability/access-log.ts'
import type { createLogger, FactsLogger } from '../observability/logger.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { ExchangeWatch, OpenSpans } from '../pipeline/phase-options.ts'
import { createListener, type Listener, type ListenerOptions } from '../server/listener.ts'
import {
  createOverload,
  type InFlight,
  type Overload,
  type PressureLevel,
  type PressureSensor,
  startPressureSensor,
} from '../server/overload.ts'
import { createAddressList } from '../server/read-request.ts'
import type { Generation } from './generation.ts'

/** Observers of exchanges that the configuration enables. */
type Watches = {
  readonly watches: readonly ExchangeWatch[] | undefined
  readonly spans: OpenSpans | undefined
  /** Undefined where the configuration asks for none. */
  readonly accessLog: AccessLog | undefined
  close(): Promise<void>
}

/** Starts the access log and traces that the configuration enables. */
export const startWatches = async (
  { log, tracing }: Pick<Config, 'log' | 'tracing'>,
  parts: { readonly lines: FactsLogger; readonly metrics: Metrics; readonly version: string },
): Promise<Watches> => {
  const { lines, metrics, version } = parts
  const { requests, ...members } = log.access
  const accessLog =
    requests === 'none'
      ? undefined
      : createAccessLog({
          ...members,
          mode: requests,
          sampleHits: log.sampleHits,
          write: (line) => lines.info(line, 'request'),
        })
  const access = accessLog === undefined ? [] : [accessLog]
  if (tracing.otlpUrl === '') {
    const watches = accessLog === undefined ? undefined : access
    return { watches, spans: undefined, accessLog, close: async () => {} }
  }
  // Loaded only here: a gateway without tracing does not load OpenTelemetry.
  const { createTracing } = await import('../observability/open-telemetry.ts')
  const traces = await createTracing({ ...tracing, version, report: metrics.observe.tracing })
  // Traces first: the access log names them.
  return { watches: [traces.watch, ...access], spans: traces.openSpans, accessLog, close: traces.close }
}

/** The certificates of the public side; undefined without TLS. */
const certificateOf = (tls: Config['listen']['tls']): ListenerOptions['certificate'] => {
  const revealed = ({ cert, key }: Pick<typeof tls, 'cert' | 'key'>) => ({
    cert: cert.reveal(),
    key: key.reveal(),
  })
  return tls.cert.isSet
    ? {
        ...revealed(tls),
        minVersion: tls.minVersion,
        certificates: tls.certificates.map((one) => ({ hosts: one.hosts, ...revealed(one) })),
      }
    : undefined
}

/** When the first certificate of a PEM text expires, in seconds since 1970. */
const notAfterSeconds = (pem: string): number => Date.parse(new X509Certificate(pem).validTo) / 1000

type PublicPortParts = {
  readonly metrics: Metrics
  readonly logger: ReturnType<typeof createLogger>
  readonly inFlight: Pick<InFlight, 'count'>
  /** The one in force. */
  current(): Generation
}

/** The public port and its protection, the same for all generations. */
type PublicPort = Pick<Listener, 'traffic'> & {
  readonly overload: Overload
  /** Makes the current generation handle the requests, with its certificate. */
  use(): void
  listen(host: string, port: number): Promise<void>
  /** Stops accepting requests and waits for those in flight until the timeout. */
  close(timeoutMs: number): Promise<'finished' | 'cut'>
}

/** Creates the public port from the first configuration; settings that a reload may change are read from the current generation. */
export const createPublicPort = (
  { limits, listen, overload: { intervalMs } }: Config,
  { metrics, logger, inFlight, current }: PublicPortParts,
): PublicPort => {
  let isProxy: (address: string) => boolean = () => false
  let level: PressureLevel = 0
  let sensor: PressureSensor | undefined

  const listener = createListener({
    ...limits,
    certificate: certificateOf(listen.tls),
    http2: listen.http2,
    isExempt: (address) => isProxy(address),
    report: metrics.observe.edge,
  })
  const overload = createOverload({
    thresholds: () => current().config.overload,
    inFlight: () => inFlight.count,
    report: (event) => {
      metrics.observe.edge(event)
      if (event.kind !== 'pressure-changed') return
      logger.warn({ pressure: event.level, signal: event.signal }, event.kind)
    },
  })
  /** Hits are shed last; until then they are not checked. */
  const takeRequests = (): void => {
    const { handlers } = current()
    listener.use(level === 3 ? { ...handlers, request: handlers.turnAway } : handlers)
  }
  const showCertificate = (): void => {
    const certificate = certificateOf(current().config.listen.tls)
    if (certificate === undefined) return
    listener.renew(certificate)
    metrics.observe.lifecycle({
      kind: 'certificate-in-force',
      notAfterSeconds: Math.min(
        ...[certificate, ...certificate.certificates].map(({ cert }) => notAfterSeconds(cert)),
      ),
    })
  }
  return {
    overload,
    traffic: listener.traffic,
    use: () => {
      isProxy = createAddressList(current().config.trustedProxies)
      takeRequests()
      showCertificate()
    },
    listen: async (host, port) => {
      await listener.listen(host, port)
      if (intervalMs === 0) return
      sensor = await startPressureSensor(intervalMs, (reading) => {
        const before = level
        level = overload.measured(reading)
        if (level !== before && (level === 3 || before === 3)) takeRequests()
      })
    },
    close: async (timeoutMs) => {
      const cut = await listener.close(timeoutMs)
      await sensor?.close()
      return cut === 0 ? 'finished' : 'cut'
    },
  }
}
