import { messageFaults } from './listener/read-request.ts'

/** Why a message is not accepted as a request. `framing` and `chunking`: the end of the request is ambiguous. */
export const protocolFaults = [
  ...messageFaults,
  'start-line',
  'field',
  'framing',
  'chunking',
  'too-large',
  'timeout',
  'cut-off',
  'http2',
  'other',
] as const
export type ProtocolFault = (typeof protocolFaults)[number]

/**
 * `too-many`: limits.connections; `address`: limits.connectionsPerAddress; `slow-reader`: limits.readerTimeout; `resets`: too many
 * HTTP/2 streams reset; `revoked`: what allowed an event stream has ended; `pipelining`: too many requests wait; `drain`: drain.timeout.
 */
export const cutReasons = [
  'too-many',
  'address',
  'slow-reader',
  'resets',
  'revoked',
  'pipelining',
  'drain',
] as const

/** Events of connections on the public side; the exchange reports requests. Values from closed lists only, never an address. */
export type EdgeEvent =
  | { readonly kind: 'connection-cut'; readonly reason: (typeof cutReasons)[number] }
  | { readonly kind: 'rate-limited'; readonly limit: string }
  | { readonly kind: 'no-request'; readonly reason: ProtocolFault }

/** The outcomes of fetching the keys of a token's issuer; also the values of a metric label. */
export const jwksResults = ['ok', 'unreachable', 'timeout', 'status', 'too-large', 'not-jwks'] as const
export type JwksResult = (typeof jwksResults)[number]

/** Events of `access` beside its refusals, which the exchange reports. */
export type AccessEvent =
  | { readonly kind: 'access-configured'; readonly service: string }
  | { readonly kind: 'jwks-fetched'; readonly service: string; readonly result: JwksResult }

export const reloadResults = ['applied', 'unchanged', 'invalid', 'restart-needed', 'failed'] as const
export type ReloadResult = (typeof reloadResults)[number]

export type LifecycleEvent =
  | {
      readonly kind: 'reloaded'
      readonly outcome: ReloadResult
      /** Seconds since 1970. */
      readonly atSeconds: number
    }
  /** An uncaught error: the process drains and exits. */
  | { readonly kind: 'process-fault' }
  | {
      readonly kind: 'certificate-in-force'
      /** Seconds since 1970. */
      readonly notAfterSeconds: number
    }
