import { createSecureContext } from 'node:tls'
import type { Config, ServiceConfig } from './config.ts'
import { faultAt, type Path, type UnplacedFault } from './fault.ts'

/** What OpenSSL says of PEM texts; `undefined` when it takes them. Its words quote nothing of the texts. */
const refusal = (options: { ca: string } | { cert: string; key: string }): string | undefined => {
  try {
    createSecureContext(options)
    return undefined
  } catch (cause) {
    return cause instanceof Error && 'code' in cause ? String(cause.code) : 'no PEM'
  }
}

const isCertificate = (text: string): boolean => text.includes('-----BEGIN CERTIFICATE-----')

type Shown = Pick<ServiceConfig['upstream']['tls'], 'ca' | 'cert' | 'key'>

const faultsAt = (path: Path, tls: Shown): UnplacedFault[] => {
  const at = (key: string): Path => [...path, key]
  const [ca, cert, key] = [tls.ca.reveal(), tls.cert.reveal(), tls.key.reveal()]
  const faults: UnplacedFault[] = []
  // Without a certificate in it OpenSSL takes any text, and believes nobody.
  const badCa = ca === '' ? undefined : isCertificate(ca) ? refusal({ ca }) : 'no PEM'
  if (badCa !== undefined)
    faults.push(faultAt(at('ca'), `is not a PEM certificate; write file:/path/to/file for a file (${badCa})`))
  if ((cert === '') !== (key === '')) {
    faults.push(faultAt(at(cert === '' ? 'key' : 'cert'), 'a client certificate needs both cert and key'))
  } else if (cert !== '') {
    const bad = refusal({ cert, key })
    if (bad !== undefined)
      faults.push(
        faultAt(
          at('cert'),
          `cert and key do not match or are not PEM; write file:/path/to/file for a file (${bad})`,
        ),
      )
  }
  return faults
}

const listenFaults = ({ listen: { tls, http2 } }: Config): UnplacedFault[] => {
  const [cert, key] = [tls.cert.reveal(), tls.key.reveal()]
  if (cert === '' && key === '') {
    return http2
      ? [faultAt(['listen', 'http2'], 'requires listen.tls: HTTP/2 is negotiated in the TLS handshake')]
      : []
  }
  if (cert === '' || key === '') {
    return [faultAt(['listen', 'tls', cert === '' ? 'key' : 'cert'], 'TLS needs both cert and key')]
  }
  const bad = isCertificate(cert) ? refusal({ cert, key }) : 'no PEM'
  return bad === undefined
    ? []
    : [
        faultAt(
          ['listen', 'tls', 'cert'],
          `cert and key do not match or are not PEM; write file:/path/to/file for a file (${bad})`,
        ),
      ]
}

/** Faults in the certificates for clients, for upstreams and for the shared store. */
export const tlsFaults = (config: Config): UnplacedFault[] => [
  ...listenFaults(config),
  ...faultsAt(['cache', 'shared', 'tls'], config.cache.shared.tls),
  ...config.services.flatMap(({ name, upstream }) =>
    faultsAt(['services', name, 'upstream', 'tls'], upstream.tls),
  ),
]
