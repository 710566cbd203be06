import { badGateway, type Fault, gatewayTimeout, type Trouble } from './fault.ts'

const below = (
  name: string,
  kind: Exclude<Trouble['kind'], 'script' | 'tls'>,
  seen: Fault['seen'],
  invalidation?: string,
): Fault => ({
  name,
  trouble: { kind },
  seen,
  ...(invalidation === undefined ? {} : { note: invalidation }),
})

const tls = (
  name: string,
  server: Extract<Trouble, { kind: 'tls' }>['server'],
  seen: Fault['seen'],
): Fault => ({
  name,
  trouble: { kind: 'tls', server },
  seen,
})

/** Faults below HTTP: there is no connection, or none that can be trusted. */
export const connectionFaults: readonly Fault[] = [
  below('no process listens on its port', 'refused', badGateway),
  below(
    'its packets are dropped',
    'dropped',
    gatewayTimeout,
    'a stopped process whose accept queue is full: the kernel ignores further SYNs',
  ),
  below('it stops with its connections open', 'stopped', gatewayTimeout, 'a process that gets SIGSTOP'),
  below('it resets connections at once', 'accept-reset', badGateway),
  below('it closes connections at once', 'accept-close', badGateway),
  below('it accepts connections and never reads', 'accept-silent', gatewayTimeout),
  below('its name does not resolve', 'name-unknown', badGateway),
  below('its name server is silent', 'name-silent', gatewayTimeout),
  tls('its certificate has expired', 'expired', badGateway),
  tls('its certificate is for another name', 'wrong-name', badGateway),
  tls('its certificate is of an unknown authority', 'other-ca', badGateway),
  tls('it speaks no TLS newer than 1.1', 'old-version', badGateway),
  tls('it speaks HTTP where TLS is expected', 'plain', badGateway),
  tls('its TLS handshake never ends', 'silent', gatewayTimeout),
]
