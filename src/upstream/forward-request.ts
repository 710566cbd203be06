import type { Readable } from 'node:stream'
import {
  type FieldLines,
  fieldValue,
  type Interim,
  type TakeConnection,
  withoutFields,
} from '../http/message.ts'
import type { AttemptEvent } from './events.ts'

/** A request to forward: end-to-end fields only, without Host and framing. */
export type ForwardRequest = {
  readonly method: string
  /** It changes something although its method is a safe one: it is not sent twice. */
  readonly isWrite?: boolean | undefined
  /** Path and query as the upstream expects them, base path included. */
  readonly target: string
  /** `Host` in place of the configured one. */
  readonly host?: string | undefined
  /** Names in lower case. */
  readonly fields: FieldLines
  /** A stream that has a Content-Length field is sent with it, otherwise in chunks. */
  readonly content: Buffer | Readable | undefined
  readonly signal: AbortSignal
  /** Aborted before anything has been sent, it ends the request; afterwards it has no effect. */
  readonly withdraw?: AbortSignal | undefined
  /** Address of the client whose share it takes, IPv6 by its /64; absent for the gateway's own work, which together has the share of one client. */
  readonly clientAddress?: string
  /** Requests of one client in one line wait for each other; lines are served in turn. Absent: the line of single requests. */
  readonly line?: string
  /** Requests a WebSocket; called with the connection before the response, a 101. */
  readonly upgrade?: TakeConnection | undefined
  /** Called for each interim response (RFC 9110 §15.2). */
  readonly interim?: Interim | undefined
  /** The time until the response head, or the error, is added to it; `target`: origin of the target asked last. */
  readonly record?: { upstreamMs: number; target?: string | undefined }
  /** Called at the end of each attempt. */
  readonly attempted?: ((attempt: AttemptEvent) => void) | undefined
}

const hostName: ReadonlySet<string> = new Set(['host'])

/** The fields with the configured Host; '' = none, and undici sends the target's own (RFC 9112 §3.2). A client's Host is never sent. */
export const withHost = (fields: FieldLines, host: string): FieldLines => {
  if (host === '' && fieldValue(fields, 'host') === undefined) return fields
  const kept = withoutFields(fields, hostName)
  return host === '' ? kept : ['host', host, ...kept]
}
