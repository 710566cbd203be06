import { errors } from 'undici'
import { type ErrorCode, GatewayError } from '../errors.ts'
import type { QueueOutcome } from './events.ts'

/** What connector.ts makes of ECONNRESET. */
export const resetCode = 'UPSTREAM_RESET'

/** Error codes of node:net, node:tls and undici, and what each means for the client. */
const failureTable: Readonly<Record<string, ErrorCode>> = {
  ECONNREFUSED: 'upstream_unreachable',
  ENOTFOUND: 'upstream_unreachable',
  EAI_AGAIN: 'upstream_unreachable',
  EAI_FAIL: 'upstream_unreachable',
  EHOSTUNREACH: 'upstream_unreachable',
  EHOSTDOWN: 'upstream_unreachable',
  ENETUNREACH: 'upstream_unreachable',
  ENETDOWN: 'upstream_unreachable',
  EADDRNOTAVAIL: 'upstream_unreachable',
  EACCES: 'upstream_unreachable',
  EMFILE: 'upstream_unreachable',
  ENFILE: 'upstream_unreachable',
  // RFC 9110 §15.6.5: no timely response, wherever the time went.
  ETIMEDOUT: 'upstream_timeout',
  UND_ERR_CONNECT_TIMEOUT: 'upstream_timeout',
  UND_ERR_HEADERS_TIMEOUT: 'upstream_timeout',
  UND_ERR_BODY_TIMEOUT: 'upstream_timeout',
  ECONNRESET: 'upstream_broken',
  [resetCode]: 'upstream_broken',
  ECONNABORTED: 'upstream_broken',
  EPIPE: 'upstream_broken',
  UND_ERR_SOCKET: 'upstream_broken',
  // undici takes for granted what an upstream does not: a 101 without Upgrade, for example.
  ERR_ASSERTION: 'upstream_broken',
  UND_ERR_INFO: 'upstream_broken',
  UND_ERR_HEADERS_OVERFLOW: 'upstream_broken',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'upstream_broken',
  UND_ERR_RES_EXCEEDED_MAX_SIZE: 'upstream_broken',
  // The client promised more or less content than it sent, or went away while sending it.
  UND_ERR_REQ_CONTENT_LENGTH_MISMATCH: 'client_gone',
  ERR_STREAM_PREMATURE_CLOSE: 'client_gone',
  UND_ERR_ABORTED: 'client_gone',
  ABORT_ERR: 'client_gone',
  UND_ERR_DESTROYED: 'shutting_down',
  UND_ERR_CLOSED: 'shutting_down',
}

/** What the code alone does not say. */
const failureDetails: Readonly<Record<string, string>> = {
  UND_ERR_HEADERS_OVERFLOW: 'Its response headers exceed upstream.limits.headerBytes.',
}

/** TLS alerts, and certificates that were not accepted. */
const tlsCode = /^(?:ERR_TLS_|ERR_SSL_|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|EPROTO$)/

/** Codes that come in families: those of TLS, and parser errors. */
const familyOf = (code: string): ErrorCode | undefined => {
  if (code.startsWith('HPE_')) return 'upstream_broken'
  return tlsCode.test(code) ? 'upstream_unreachable' : undefined
}

/** An error and its causes, outermost first; a chain that is longer than eight is cut. */
const chainOf = (error: unknown): Error[] => {
  const chain: Error[] = []
  let link = error
  while (link instanceof Error && chain.length < 8) {
    chain.push(link)
    // Happy Eyeballs reports one error per address that was tried.
    link = link.cause ?? (link instanceof AggregateError ? link.errors[0] : undefined)
  }
  return chain
}

const codeOf = (error: Error): ErrorCode | undefined => {
  // Most of undici's parser errors carry no code.
  if (error instanceof errors.HTTPParserError) return 'upstream_broken'
  // Any failure of name resolution (EAI_MEMORY, EIO, …): no connection was made.
  if ('syscall' in error && error.syscall === 'getaddrinfo') return 'upstream_unreachable'
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  return Object.hasOwn(failureTable, code) ? failureTable[code] : familyOf(code)
}

/**
 * The gateway's error for any error of undici or node:net. An unknown error may have a known one as its `cause`: the innermost known
 * error decides.
 */
export const toGatewayError = (error: unknown): GatewayError => {
  const chain = chainOf(error)
  for (const link of chain) if (link instanceof GatewayError) return link
  for (const link of chain.toReversed()) {
    const code = codeOf(link)
    if (code === undefined) continue
    const detail = 'code' in link ? failureDetails[String(link.code)] : undefined
    return new GatewayError(code, { cause: error, ...(detail === undefined ? {} : { detail }) })
  }
  return new GatewayError('internal', { cause: error })
}

const checkCauses = {
  connect: 'the check could not connect',
  tls: 'the check failed in TLS',
  timeout: 'the check got no connection in time',
  broken: 'the check got an invalid response',
} as const

/** Why an active check got no whole response, with the code of the innermost error that has one. */
export const checkFault = (
  error: unknown,
): { readonly result: keyof typeof checkCauses; readonly cause: string } => {
  const codes = chainOf(error).flatMap((link) => ('code' in link ? [String(link.code)] : []))
  const code = codes.at(-1) === resetCode ? 'ECONNRESET' : (codes.at(-1) ?? '')
  const result = codes.some((candidate) => tlsCode.test(candidate))
    ? 'tls'
    : resultOf(toGatewayError(error).code)
  return { result, cause: `${checkCauses[result]}${/^[A-Z][A-Z0-9_]{1,60}$/.test(code) ? `: ${code}` : ''}` }
}

const resultOf = (code: ErrorCode): 'connect' | 'timeout' | 'broken' => {
  if (code === 'upstream_unreachable') return 'connect'
  return code === 'upstream_timeout' ? 'timeout' : 'broken'
}

/** The kind of a failed attempt; before anything was sent a broken connection counts as one that was never made. */
export const failureKind = (
  error: GatewayError,
  sent: boolean,
): 'unreachable' | 'timeout' | 'broken' | 'aborted' => {
  switch (error.code) {
    case 'upstream_unreachable':
      return 'unreachable'
    case 'upstream_timeout':
      return sent ? 'timeout' : 'unreachable'
    case 'upstream_broken':
      return sent ? 'broken' : 'unreachable'
    default:
      return 'aborted'
  }
}

export const upstreamSuspended = (waitMs: number): GatewayError =>
  new GatewayError('upstream_suspended', { retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)) })

const busyDetails: Partial<Record<QueueOutcome, string>> = {
  'client-share': 'This client has too many requests in flight or waiting.',
  'arriving-share': 'Too many requests with incomplete bodies are waiting.',
}

export const upstreamBusy = (why: QueueOutcome): GatewayError =>
  new GatewayError('upstream_busy', { detail: busyDetails[why], retryAfterSeconds: 1 })
