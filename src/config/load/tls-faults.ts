import { createSecureContext } from 'node:tls'
import type { Config, ServiceConfig } from '../config.ts'
import { faultAt, faultWhen, type Path, type UnplacedFault } from '../fault.ts'

/** The error of OpenSSL for PEM texts; `undefined` when it accepts them. It does not quote the texts. */
const refusal = (options: { ca: string } | { cert: string; key: string }): string | undefined => {
  try {
    createSecureContext(options)
    return undefined
  } catch (cause) {
    return cause instanceof Error && 'code' in cause ? String(cause.code) : 'no PEM'
  }
}

/** A path of a file, as it is often given in place of the content. */
const fileLike = /^\/[\w./-]{1,200}\.(?:pem|crt|cer|cert|key)$/

/** Why the text is no certificate; a path is no secret and may be shown. */
const pemFault = (otherwise: string, texts: readonly string[], code: string): string => {
  const path = texts.find((text) => fileLike.test(text))
  return path === undefined
    ? `${otherwise}; write file:/path/to/file for a file (${code})`
    : `a file is written as file:${path}`
}

const isCertificate = (text: string): boolean => text.includes('-----BEGIN CERTIFICATE-----')

type Shown = Pick<ServiceConfig['upstream']['tls'], 'ca' | 'cert' | 'key'>

const faultsAt = (path: Path, tls: Shown): UnplacedFault[] => {
  const at = (key: string): Path => [...path, key]
  const [ca, cert, key] = [tls.ca.reveal(), tls.cert.reveal(), tls.key.reveal()]
  const faults: UnplacedFault[] = []
  // OpenSSL accepts a text without any certificate, and then trusts none.
  const badCa = ca === '' ? undefined : isCertificate(ca) ? refusal({ ca }) : 'no PEM'
  if (badCa !== undefined) faults.push(faultAt(at('ca'), pemFault('is not a PEM certificate', [ca], badCa)))
  if ((cert === '') !== (key === '')) {
    faults.push(faultAt(at(cert === '' ? 'key' : 'cert'), 'a client certificate needs both cert and key'))
  } else if (cert !== '') {
    const bad = refusal({ cert, key })
    if (bad !== undefined)
      faults.push(faultAt(at('cert'), pemFault('cert and key do not match or are not PEM', [cert, key], bad)))
  }
  return faults
}

type CertificateTexts = Pick<Config['listen']['tls'], 'cert' | 'key'>

const serverCertificateFaults = (path: Path, tls: CertificateTexts): UnplacedFault[] => {
  const [cert, key] = [tls.cert.reveal(), tls.key.reveal()]
  if (cert === '' || key === '') {
    return [faultAt([...path, cert === '' ? 'key' : 'cert'], 'TLS needs both cert and key')]
  }
  const bad = isCertificate(cert) ? refusal({ cert, key }) : 'no PEM'
  return faultWhen(
    bad !== undefined,
    [...path, 'cert'],
    pemFault('cert and key do not match or are not PEM', [cert, key], bad ?? ''),
  )
}

const listenFaults = ({ listen: { tls, http2 } }: Config): UnplacedFault[] => {
  const { certificates } = tls
  const path = ['listen', 'tls', 'certificates']
  if (!tls.cert.isSet && !tls.key.isSet) {
    return [
      ...faultWhen(
        http2,
        ['listen', 'http2'],
        'requires listen.tls: HTTP/2 is negotiated in the TLS handshake',
      ),
      ...faultWhen(
        certificates.length > 0,
        path,
        'requires listen.tls.cert and key, for clients that ask for another host or for none',
      ),
    ]
  }
  return [
    ...serverCertificateFaults(['listen', 'tls'], tls),
    ...certificates.flatMap((one, index) => [
      ...serverCertificateFaults([...path, index], one),
      ...one.hosts.flatMap((host, at) =>
        faultWhen(
          certificates.slice(0, index).some(({ hosts }) => hosts.includes(host)) ||
            one.hosts.indexOf(host) < at,
          [...path, index, 'hosts', at],
          `${host} is listed twice`,
        ),
      ),
    ]),
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
