/** Whose fault an error is. Decides the log level, and whether a retry can help. */
export type Fault = 'client' | 'upstream' | 'gateway'

export type ErrorFacts = {
  readonly status: number
  readonly fault: Fault
  /** May the same request succeed when sent again later? */
  readonly retryable: boolean
  /** Fixed text; details of the single case go into `GatewayError.detail`. */
  readonly message: string
  /** Code in the site contract where that has one of its own; otherwise `trellis_` plus the row's name. */
  readonly siteCode?: string
}

/** A row without `fault` is the client's fault; without `retryable`, a retry can help where it is not the client's fault. */
type ErrorRow = Pick<ErrorFacts, 'status' | 'message' | 'siteCode'> & Partial<ErrorFacts>

const rows = {
  no_route: {
    status: 404,
    message: 'No route was found matching the URL and request method.',
    siteCode: 'rest_no_route',
  },
  misdirected_request: { status: 421, message: 'No service answers this host on this connection.' },
  method_not_allowed: { status: 405, message: 'The method is not allowed for this resource.' },
  credential_missing: { status: 401, message: 'A credential is required.' },
  credential_invalid: { status: 401, message: 'The credential is not valid.' },
  api_key_missing: { status: 401, message: 'An API key is required.' },
  access_denied: { status: 403, message: 'Requests from this address are not allowed.' },
  token_keys_unavailable: {
    status: 503,
    fault: 'upstream',
    message: 'The keys that verify tokens could not be fetched.',
  },
  invalid_json: { status: 400, message: 'Invalid JSON body passed.', siteCode: 'rest_invalid_json' },
  invalid_request: { status: 400, message: 'The request is not valid.' },
  malformed_request: { status: 400, message: 'The request is not valid HTTP.' },
  ambiguous_request: { status: 400, message: 'The request contradicts its path or method.' },
  content_too_large: { status: 413, message: 'The request body is larger than allowed.' },
  target_too_long: { status: 414, message: 'The request URL is longer than allowed.' },
  unsupported_content_type: {
    status: 415,
    message: 'The content type of the request is not supported here.',
  },
  fields_too_large: { status: 431, message: 'The request headers are larger than allowed.' },
  request_timeout: { status: 408, retryable: true, message: 'The request did not arrive in time.' },
  websockets_off: { status: 403, message: 'This service has no WebSockets.' },
  websocket_version: { status: 426, message: 'The only WebSocket version accepted is 13.' },
  too_many_websockets: { status: 503, fault: 'gateway', message: 'Too many WebSockets are open.' },
  rate_limited: { status: 429, retryable: true, message: 'Too many requests.' },
  client_gone: {
    status: 499,
    retryable: true,
    message: 'The client disconnected before the response was ready.',
  },
  internal: { status: 500, fault: 'gateway', message: 'The gateway failed unexpectedly.' },
  upstream_unreachable: { status: 502, fault: 'upstream', message: 'The upstream could not be reached.' },
  upstream_broken: {
    status: 502,
    fault: 'upstream',
    message: 'The upstream sent an invalid or incomplete response.',
  },
  loop_detected: {
    status: 508,
    fault: 'gateway',
    retryable: false,
    message: 'The request has already passed through this gateway.',
  },
  overloaded: { status: 503, fault: 'gateway', message: 'The gateway is overloaded.' },
  upstream_busy: { status: 503, fault: 'gateway', message: 'The queue in front of the upstream is full.' },
  shared_store_unreachable: {
    status: 503,
    fault: 'gateway',
    message: 'The shared store cannot be reached; nothing was done.',
  },
  receiver_behind: {
    status: 503,
    fault: 'gateway',
    message: 'A cache in front of the gateway does not confirm purges; nothing was done.',
  },
  receiver_unconfirmed: {
    status: 504,
    fault: 'gateway',
    retryable: false,
    message: 'The request was carried out, but a cache in front of the gateway may still show older data.',
  },
  unknown_build: {
    status: 409,
    message: 'The build named by Trellis-Build is not known: begin another one.',
  },
  upstream_suspended: {
    status: 503,
    fault: 'upstream',
    message: 'The upstream failed too often; requests to it are suspended for a while.',
  },
  shutting_down: { status: 503, fault: 'gateway', message: 'The gateway is shutting down.' },
  upstream_timeout: { status: 504, fault: 'upstream', message: 'The upstream did not respond in time.' },
  not_sent: {
    status: 504,
    fault: 'gateway',
    message: 'The deadline passed before the request was sent; nothing was changed.',
  },
  idempotency_key_malformed: {
    status: 400,
    message: 'Idempotency-Key must be one quoted string of up to 255 characters.',
  },
  idempotency_key_in_flight: {
    status: 409,
    retryable: true,
    message: 'A request with this Idempotency-Key is still running.',
  },
  idempotency_key_reused: { status: 422, message: 'This Idempotency-Key was used for a different request.' },
  idempotency_answer_not_kept: {
    status: 409,
    message: 'The request with this Idempotency-Key was completed, but its response was too large to keep.',
  },
} satisfies Record<string, ErrorRow>

export type ErrorCode = keyof typeof rows

const withDefaults = ({ fault = 'client', ...row }: ErrorRow): ErrorFacts => ({
  fault,
  retryable: fault !== 'client',
  ...row,
})

/** Every error that the gateway makes itself, one row each. The contract of a service gives them its shape. */
export const errorTable = Object.fromEntries(
  Object.entries(rows).map(([code, row]) => [code, withDefaults(row)]),
) as Readonly<Record<ErrorCode, ErrorFacts>>

type GatewayErrorOptions = { readonly cause?: unknown } & Partial<
  Pick<GatewayError, 'detail' | 'body' | 'retryAfterSeconds' | 'headers'>
>

/** Thrown once, where it is known; turned into a response in src/exchange/error-response.ts. */
export class GatewayError extends Error {
  readonly code: ErrorCode
  /** For the client, in addition to the fixed text: which parameter, which limit. Never what the client sent, verbatim. */
  readonly detail: string | undefined
  /** Body in the service's own shape, where it has more than the general form (validation). */
  readonly body: unknown
  /** Seconds a client should wait, sent as Retry-After. */
  readonly retryAfterSeconds: number | undefined
  /** Further response headers as flat lines, e.g. Allow or WWW-Authenticate. */
  readonly headers: readonly string[]

  constructor(code: ErrorCode, options: GatewayErrorOptions = {}) {
    // Clients can cause these errors at any rate; a stack trace costs some five microseconds, and the code says as much.
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(errorTable[code].message, { cause: options.cause })
    Error.stackTraceLimit = stackTraceLimit
    this.name = 'GatewayError'
    this.code = code
    this.detail = options.detail
    this.body = options.body
    this.retryAfterSeconds = options.retryAfterSeconds
    this.headers = options.headers ?? []
  }

  get facts(): ErrorFacts {
    return errorTable[this.code]
  }
}
