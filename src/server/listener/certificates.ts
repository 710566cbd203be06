import type { X509Certificate } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Http2ServerRequest, ServerHttp2Session } from 'node:http2'
import { isIP } from 'node:net'
import { createSecureContext, type SecureContext, type TLSSocket } from 'node:tls'
import { createHostTable, hostOf } from '../../http/targets.ts'
import { authorityOf } from './read-request.ts'

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
  return (incoming) => {
    const session = (incoming as unknown as Http2ServerRequest).stream.session as
      | ServerHttp2Session
      | undefined
    // A stream that has lost its session is not answered.
    if (session === undefined || session.destroyed) return true
    const host = hostOf(authorityOf(incoming))
    const socket = session.socket as TLSSocket & { readonly servername?: string | false }
    if (table.matching(host)[0] === table.matching(hostOf(socket.servername || ''))[0]) return true
    const certificate = socket.getX509Certificate()
    return certificate !== undefined && isNameOf(certificate, host)
  }
}
