import type { X509Certificate } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Http2ServerRequest, ServerHttp2Session } from 'node:http2'
import { isIP } from 'node:net'
import { createSecureContext, type SecureContext, type TLSSocket } from 'node:tls'
import { createHostTable, hostOf } from '../../http/hosts.ts'
import { authorityOf } from '../read-request.ts'

/** A certificate for some hosts, as PEM texts; a host may be a wildcard. */
export type HostCertificate = {
  readonly hosts: readonly string[]
  readonly cert: string
  readonly key: string
}

/** TLS settings of the public side; certificates and keys as PEM texts. */
export type Certificate = {
  readonly cert: string
  readonly key: string
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3'
  /** In place of `cert` for clients that name one of their hosts (SNI, RFC 6066 §3). */
  readonly certificates: readonly HostCertificate[]
}

/** Chooses the certificate for the name that a client sends; undefined: the default one. */
export const createContexts = ({
  certificates,
  minVersion,
}: Certificate): ((name: string) => SecureContext | undefined) => {
  const table = createHostTable(
    certificates.map(({ hosts, cert, key }) => ({
      hosts,
      value: createSecureContext({ cert, key, minVersion }),
    })),
  )
  return (name) => table.matching(hostOf(name))[0]
}

type Covered = {
  readonly certificate: X509Certificate | undefined
  /** The authority of the last request, and the result for it. */
  authority: string
  isCovered: boolean
}

const isNameOf = (certificate: X509Certificate, host: string): boolean => {
  const bare = host.replace(/^\[(.*)\]$/, '$1')
  return (isIP(bare) === 0 ? certificate.checkHost(bare) : certificate.checkIP(bare)) !== undefined
}

/**
 * Finds requests over HTTP/2 for a host that the certificate of their connection does not name. The name of the handshake and the host of
 * the request lead to the same certificate, or the certificate shown has the host among its names. Undefined: there is one certificate.
 */
export const createCoverage = (
  certificates: readonly Pick<HostCertificate, 'hosts'>[],
): ((incoming: IncomingMessage) => boolean) | undefined => {
  if (certificates.length === 0) return undefined
  const table = createHostTable(certificates.map((value) => ({ hosts: value.hosts, value })))
  const sessions = new WeakMap<ServerHttp2Session, Covered>()
  const coveredBy = (session: ServerHttp2Session): Covered => {
    const known = sessions.get(session) ?? {
      certificate: (session.socket as TLSSocket).getX509Certificate(),
      authority: '',
      isCovered: false,
    }
    sessions.set(session, known)
    return known
  }
  return (incoming) => {
    const session = (incoming as unknown as Http2ServerRequest).stream.session as
      | ServerHttp2Session
      | undefined
    // A stream that has lost its session is not answered.
    if (session === undefined) return true
    const authority = authorityOf(incoming)
    const covered = coveredBy(session)
    if (covered.authority === authority) return covered.isCovered
    const host = hostOf(authority)
    const { servername } = session.socket as TLSSocket & { readonly servername?: string | false }
    const shown = table.matching(hostOf(servername || ''))[0]
    covered.authority = authority
    covered.isCovered =
      table.matching(host)[0] === shown ||
      (covered.certificate !== undefined && isNameOf(covered.certificate, host))
    return covered.isCovered
  }
}
