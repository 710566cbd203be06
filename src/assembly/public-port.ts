import type { Config } from '../config/config.ts'
import { createTrustedProxies } from '../edge/client-address.ts'
import { createListener, type Listener } from '../edge/listener.ts'
import { type PressureSensor, startPressureSensor } from '../edge/pressure-sensor.ts'
import type { InFlight } from '../lifecycle/in-flight.ts'
import type { createLogger } from '../logging/logger.ts'
import type { Metrics } from '../metrics/create-metrics.ts'
import type { PressureLevel } from '../overload/events.ts'
import { createOverload, type Overload } from '../overload/overload.ts'
import { certificateOf, notAfterSeconds } from './certificate.ts'
import type { Generation } from './generation.ts'

export type PublicPortParts = {
  readonly metrics: Metrics
  readonly logger: ReturnType<typeof createLogger>
  readonly inFlight: Pick<InFlight, 'count'>
  /** The one in force. */
  current(): Generation
}

/** The public port with what protects it: the same for all generations. */
export type PublicPort = Pick<Listener, 'traffic'> & {
  readonly overload: Overload
  /** From here on the generation in force takes the requests, and its certificate is shown. */
  use(): void
  listen(host: string, port: number): Promise<void>
  /** Takes nothing new and lets requests finish, for so long. */
  close(timeoutMs: number): Promise<'finished' | 'cut'>
}

/** Makes the public port from the first configuration; what a reload may change of it is read from the generation in force. */
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
  /** The last thing to be given up are hits; until then they are not even looked at. */
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
      notAfterSeconds: notAfterSeconds(certificate.cert),
    })
  }
  return {
    overload,
    traffic: listener.traffic,
    use: () => {
      isProxy = createTrustedProxies(current().config.trustedProxies)
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
