import { createSecureContext } from 'node:tls'
import type { Config, ServiceConfig } from '../config.ts'
import { faultAt, type Path, type UnplacedFault } from '../fault.ts'

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

type TlsFiles = Pick<ServiceConfig['upstream']['tls'], 'ca' | 'cert' | 'key'>

function* clientCertificateFaults(path: Path, tls: TlsFiles): Iterable<UnplacedFault> {
  const [ca, cert, key] = [tls.ca.reveal(), tls.cert.reveal(), tls.key.reveal()]
  // OpenSSL accepts a text without any certificate, and then trusts none.
  const badCa = ca === '' ? undefined : isCertificate(ca) ? refusal({ ca }) : 'no PEM'
  if (badCa !== undefined) yield faultAt([...path, 'ca'], pemFault('is not a PEM certificate', [ca], badCa))
  if ((cert === '') !== (key === ''))
    yield faultAt([...path, cert === '' ? 'key' : 'cert'], 'a client certificate needs both cert and key')
  else if (cert !== '') yield* pairFaults(path, cert, key, refusal({ cert, key }))
}

function* pairFaults(
  path: Path,
  cert: string,
  key: string,
  code: string | undefined,
): Iterable<UnplacedFault> {
  if (code !== undefined)
    yield faultAt([...path, 'cert'], pemFault('cert and key do not match or are not PEM', [cert, key], code))
}

function* serverCertificateFaults(path: Path, tls: Pick<TlsFiles, 'cert' | 'key'>): Iterable<UnplacedFault> {
  const [cert, key] = [tls.cert.reveal(), tls.key.reveal()]
  if (cert === '' || key === '')
    yield faultAt([...path, cert === '' ? 'key' : 'cert'], 'TLS needs both cert and key')
  else yield* pairFaults(path, cert, key, isCertificate(cert) ? refusal({ cert, key }) : 'no PEM')
}

function* listenFaults({ listen: { tls, http2 } }: Config): Iterable<UnplacedFault> {
  const { certificates } = tls
  const path = ['listen', 'tls', 'certificates']
  if (!tls.cert.isSet && !tls.key.isSet) {
    if (http2)
      yield faultAt(['listen', 'http2'], 'requires listen.tls: HTTP/2 is negotiated in the TLS handshake')
    if (certificates.length > 0)
      yield faultAt(
        path,
        'requires listen.tls.cert and key, for clients that ask for another host or for none',
      )
    return
  }
  yield* serverCertificateFaults(['listen', 'tls'], tls)
  const seen = new Set<string>()
  for (const [index, certificate] of certificates.entries()) {
    yield* serverCertificateFaults([...path, index], certificate)
    for (const [at, host] of certificate.hosts.entries()) {
      if (seen.has(host)) yield faultAt([...path, index, 'hosts', at], `${host} is listed twice`)
      seen.add(host)
    }
  }
}

/** Faults in the certificates for clients, for upstreams and for the shared store. */
export function* tlsFaults(config: Config): Iterable<UnplacedFault> {
  yield* listenFaults(config)
  yield* clientCertificateFaults(['cache', 'shared', 'tls'], config.cache.shared.tls)
  for (const { name, upstream } of config.services)
    yield* clientCertificateFaults(['services', name, 'upstream', 'tls'], upstream.tls)
}
