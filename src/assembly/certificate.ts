import { X509Certificate } from 'node:crypto'
import type { EdgeConfig } from '../config/edge-config.ts'
import type { Certificate } from '../edge/listener.ts'

/** What the public side shows; undefined without TLS. */
export const certificateOf = ({
  cert,
  key,
  minVersion,
}: EdgeConfig['listen']['tls']): Certificate | undefined =>
  cert.isSet ? { cert: cert.reveal(), key: key.reveal(), minVersion } : undefined

/** When the first certificate of a PEM text runs out, in seconds since 1970. */
export const notAfterSeconds = (pem: string): number => Date.parse(new X509Certificate(pem).validTo) / 1000
