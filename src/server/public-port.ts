import { X509Certificate } from 'node:crypto'
import type { Config } from '../config/config.ts'
import { createAddressList } from './access/client-address.ts'
import type { EdgeEvent, LifecycleEvent } from './events.ts'
import { createListener, type EdgeHandlers, type ListenerOptions } from './listener.ts'
import {
  createOverload,
  type InFlight,
  type OverloadEvent,
  type PressureLevel,
  startPressureSensor,
} from './overload.ts'

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
        certificates: tls.certificates.map((certificate) => ({
          hosts: certificate.hosts,
          ...revealed(certificate),
        })),
      }
    : undefined
}

/** When the first certificate of a PEM text expires, in seconds since 1970. */
const notAfterSeconds = (pem: string): number => Date.parse(new X509Certificate(pem).validTo) / 1000

type PublicPortParts = {
  readonly inFlight: Pick<InFlight, 'count'>
  current(): {
    readonly config: Config
    /** `turnAway` replaces `request` while even hits are refused. */
    readonly handlers: EdgeHandlers & { readonly turnAway: EdgeHandlers['request'] }
  }
  report(event: EdgeEvent | OverloadEvent): void
  reportLifecycle(event: LifecycleEvent): void
}

/** The public port and its protection, the same for all configuration snapshots; settings that a reload may change are read from the current configuration snapshot. */
export const createPublicPort = (
  { limits, listen, overload: overloadConfig }: Config,
  { inFlight, current, report, reportLifecycle }: PublicPortParts,
) => {
  let isProxy: (address: string) => boolean = () => false
  let level: PressureLevel = 0
  let sensor: ReturnType<typeof startPressureSensor> | undefined

  const listener = createListener({
    ...limits,
    certificate: certificateOf(listen.tls),
    http2: listen.http2,
    isExempt: (address) => isProxy(address),
    report,
  })
  const overload = createOverload({
    thresholds: overloadConfig,
    inFlight,
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
    /** Makes the current configuration snapshot handle the requests, with its certificate. */
    use: (): void => {
      const { trustedProxies, overload: thresholds } = current().config
      isProxy = createAddressList(trustedProxies)
      overload.use(thresholds)
      takeRequests()
      showCertificate()
    },
    listen: async (host: string, port: number): Promise<void> => {
      await listener.listen(host, port)
      const { intervalMs } = overloadConfig
      if (intervalMs === 0) return
      sensor = startPressureSensor(intervalMs, (reading) => {
        const before = level
        level = overload.measured(reading)
        if (level !== before && (level === 3 || before === 3)) takeRequests()
      })
    },
    /** Stops accepting requests and waits for those in flight until the timeout. */
    close: async (timeoutMs: number): Promise<'finished' | 'cut'> => {
      const cut = await listener.close(timeoutMs)
      sensor?.close()
      return cut === 0 ? 'finished' : 'cut'
    },
  }
}
