import type { BreakerOptions } from './send/breaker.ts'

/** Resolved settings of one service's upstream. Durations in milliseconds; 0 switches a timeout off. */
export type UpstreamOptions = {
  readonly service: string
  /** Origins, e.g. `http://10.0.0.7:8080`; at least one. */
  readonly targets: readonly string[]
  /** Put in front of probe paths; the targets handed to `forward` carry it already. */
  readonly basePath: string
  /** Upstream requests in flight, all callers together. */
  readonly maxConcurrent: number
  readonly queue: { readonly max: number; readonly timeoutMs: number }
  /** The part of the slots and of the queue that one client may have; 1 = no bound. */
  readonly clientShare: number
  /** Slowest pace at which a client that holds a slot may send or read; 0 = no bound. */
  readonly minBytesPerSecond: number
  readonly timeouts: {
    /** TCP and TLS handshake. */
    readonly connectMs: number
    /** From the last byte of the request to the response head. */
    readonly headersMs: number
    /** Between two pieces of content, either way; event streams may be silent. */
    readonly idleMs: number
    /** From `forward` to the response head, queue and retries included; the time in which a streamed request body is sent is not. */
    readonly totalMs: number
  }
  /** `attempts` counts the first one too; `budget` is the share of requests that may be retried. */
  readonly retry: { readonly attempts: number; readonly budget: number }
  /** When the breaker opens; see send/breaker.ts. */
  readonly breaker: BreakerOptions
  /** A target leaves after that many failures in a row; `maxShare` of the targets may be out at once. */
  readonly eject: { readonly after: number; readonly forMs: number; readonly maxShare: number }
  /** Active checks when `path` is not empty. */
  readonly health: {
    readonly path: string
    /** From the start of one check to the start of the next; at least `timeoutMs`. */
    readonly intervalMs: number
    readonly timeoutMs: number
    /** Statuses from the first to the last of each pair pass a check. */
    readonly expect: readonly (readonly [first: number, last: number])[]
    /** Consecutive checks that must fail, or pass, to change the state of a target. */
    readonly failAfter: number
    readonly recoverAfter: number
  }
  /** For https targets; '' = not given. */
  readonly tls: {
    /** PEM: trusted authorities in place of those of Node. */
    readonly ca: string
    /** PEM: the client certificate of the gateway. */
    readonly cert: string
    readonly key: string
    /** For SNI, and the name that the certificate must show; '' = the target's. */
    readonly serverName: string
    readonly minVersion: 'TLSv1.2' | 'TLSv1.3'
    readonly acceptAnyCertificate: boolean
  }
  /** Of the headers of a response head. */
  readonly headerBytes: number
  /** The Host that targets get; '' = their own. */
  readonly hostHeader: string
  /** A connection that is older is not used again, so that a changed DNS answer is followed; 0 = no bound. */
  readonly connectionMaxAgeMs: number
}
