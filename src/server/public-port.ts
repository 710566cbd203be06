import { X509Certificate } from 'node:crypto'
import type { Config } from '../config/config.ts'
import type { EdgeEvent, LifecycleEvent } from './events.ts'
import { createListener, type Listener, type ListenerOptions } from './listener.ts'
import {
  createOverload,
  type InFlight,
  type Overload,
  type OverloadEvent,
  type PressureLevel,
  type PressureSensor,
  startPressureSensor,
} from './overload.ts'
import { createAddressList } from './read-request.ts'
import type { Edge } from './server.ts'

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
  readonly inFlight: Pick<InFlight, 'count'>
  /** The generation in use. */
  current(): { readonly config: Config; readonly handlers: Omit<Edge, 'close'> }
  report(event: EdgeEvent | OverloadEvent): void
  reportLifecycle(event: LifecycleEvent): void
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
  { inFlight, current, report, reportLifecycle }: PublicPortParts,
): PublicPort => {
  let isProxy: (address: string) => boolean = () => false
  let level: PressureLevel = 0
  let sensor: PressureSensor | undefined

  const listener = createListener({
    ...limits,
    certificate: certificateOf(listen.tls),
    http2: listen.http2,
    isExempt: (address) => isProxy(address),
    report,
  })
  const overload = createOverload({
    thresholds: () => current().config.overload,
    inFlight: () => inFlight.count,
    report,
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
    reportLifecycle({
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
