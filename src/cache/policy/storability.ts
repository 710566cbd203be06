import { formatHttpDate } from '../../http/conditional/dates.ts'
import { contentEntityTag } from '../../http/conditional/preconditions.ts'
import { parseVary } from '../../http/headers/caching-headers.ts'
import { carriesToken } from '../../http/headers/credential-headers.ts'
import { endToEndHeaders } from '../../http/headers/forwardable-headers.ts'
import {
  type HeaderLines,
  headerValue,
  headerValues,
  requestHeader,
  withoutHeaders,
} from '../../http/headers/header-lines.ts'
import { isEventStream } from '../../http/headers/media-type.ts'
import type { ResponseHead } from '../../http/message.ts'
import type { CacheRead } from '../cache-read.ts'
import type { CachePolicy } from '../decide-caching.ts'
import type { NoStoreReason } from '../events.ts'
import { type Freshness, freshnessLifetime, isHeuristicallyCacheable } from './freshness.ts'
import { forbidsByPragma, type ResponseControl, responseControl } from './response-control.ts'

const none: HeaderLines = []

/**
 * Headers that are not stored but sent to the client that fetched the response: the upstream's Age, and headers that no-cache or
 * private name.
 */
export const headersNotStored = (response: ResponseHead): HeaderLines => {
  const { notStored } = responseControl(response.headers)
  if (notStored.length === 0 && headerValue(response.headers, 'age') === undefined) return none
  const lines: string[] = []
  for (const name of new Set(['age', ...notStored])) {
    for (const value of headerValues(response.headers, name)) lines.push(name, value)
  }
  return lines
}

const alwaysRemoved: ReadonlySet<string> = new Set(['age', 'content-length'])

const removedBy = ({ notStored }: ResponseControl): ReadonlySet<string> =>
  notStored.length === 0 ? alwaysRemoved : new Set([...alwaysRemoved, ...notStored])

/** Headers that may be stored: none of the connection (RFC 9111 §3.1), none that no-cache or private name, no Age and no length. */
export const storableHeaders = (headers: HeaderLines, control: ResponseControl): string[] =>
  withoutHeaders(endToEndHeaders(headers), removedBy(control))

/** Headers as stored: those that may be, the length of the content, and Date and ETag where the upstream sent none. */
export const storedHeaders = (
  head: ResponseHead,
  content: Buffer,
  control: ResponseControl,
  receivedAt: number,
): string[] => {
  const headers = storableHeaders(head.headers, control)
  if (headerValue(headers, 'date') === undefined) headers.push('Date', formatHttpDate(receivedAt))
  if (head.status === 200 && headerValue(headers, 'etag') === undefined)
    headers.push('ETag', contentEntityTag(content))
  // RFC 9110 §8.6: no Content-Length with 204.
  if (head.status !== 204) headers.push('Content-Length', String(content.length))
  return headers
}

/** Final statuses whose meaning for a cache is implemented (must-understand, RFC 9111 §5.2.2.3); 304 is handled elsewhere. */
const understood: ReadonlySet<number> = new Set([
  200, 201, 202, 203, 204, 205, 206, 300, 301, 302, 303, 307, 308, 400, 401, 402, 403, 404, 405, 406, 407,
  408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 421, 422, 426, 428, 429, 431, 451, 500, 501, 502, 503,
  504, 505,
])

/** A 206 is a part (RFC 9111 §3.3 leaves storing it to the cache), a 304 belongs to another response, 412 and 416 refuse the conditions and the range of one request, RFC 6585 forbids the others. */
const neverStored: ReadonlySet<number> = new Set([206, 304, 412, 416, 428, 429, 431, 511])

type StorageDecision =
  | { readonly kind: 'store' }
  | { readonly kind: 'no-store'; readonly reason: NoStoreReason }

const store: StorageDecision = { kind: 'store' }

const statusReason = (
  status: number,
  policy: CachePolicy,
  control: ResponseControl,
): NoStoreReason | undefined => {
  if (status < 200 || neverStored.has(status)) return 'status'
  if (policy.profile === 'rfc-shared-cache') {
    return control.mustUnderstand && !understood.has(status) ? 'must-understand' : undefined
  }
  const negative = (status === 404 || status === 410) && (policy.rule?.negativeTtlMs ?? 0) > 0
  return status === 200 || negative ? undefined : 'status'
}

const directiveReason = (
  { headers }: ResponseHead,
  { partition, policy }: Pick<CacheRead, 'partition' | 'policy'>,
  control: ResponseControl,
  authorized: boolean,
): NoStoreReason | undefined => {
  const override = policy.rule?.override === true
  const wide = policy.profile === 'rfc-shared-cache'
  // An override holds for public responses and for a caller's own partition; it never shares a private response.
  if (control.isPrivate && !(override && partition === 'credential')) return 'private'
  if (control.hasQualifiedPrivate && !wide) return 'private'
  // must-understand makes no-store void for a status in `understood` (RFC 9111 §5.2.2.3).
  if (control.noStore && !override && !(wide && control.mustUnderstand)) return 'no-store'
  if (!wide && !override && forbidsByPragma(headers, control)) return 'no-store'
  const credentialsForbid = authorized && partition === 'public' && !control.allowsCredentials
  return credentialsForbid ? 'authorization' : undefined
}

const headerReason = (
  head: ResponseHead,
  policy: CachePolicy,
  control: ResponseControl,
): NoStoreReason | undefined => {
  if (isEventStream(head)) return 'event-stream'
  if (parseVary(head.headers).kind === 'any') return 'vary-any'
  if (carriesToken(head.headers, [...(policy.harmlessResponseHeaders ?? []), ...control.notStored]))
    return 'token'
  if (policy.profile === 'rfc-shared-cache') return undefined
  return headerValue(head.headers, 'set-cookie') === undefined ? undefined : 'set-cookie'
}

/** A response that is not fresh is stored only for its validators. */
const freshnessReason = (
  head: ResponseHead,
  policy: CachePolicy,
  control: ResponseControl,
  freshness: Freshness,
): NoStoreReason | undefined => {
  const validator =
    headerValue(head.headers, 'etag') !== undefined ||
    headerValue(head.headers, 'last-modified') !== undefined
  // no-cache requires a validation before each reuse: without a validator it could never be reused.
  const reusable = validator || !control.noCache || freshness.source === 'override'
  if (freshness.lifetimeMs > 0 && reusable) return undefined
  if (freshness.source === 'ended') return 'no-freshness'
  // Storing at all needs explicit freshness, public, or a heuristically cacheable status (RFC 9111 §3).
  const allowed =
    freshness.source === 'upstream' ||
    control.isPublic ||
    isHeuristicallyCacheable(head.status) ||
    policy.rule !== undefined
  return validator && allowed ? undefined : 'no-freshness'
}

const serverErrors: ReadonlySet<number> = new Set([500, 502, 503, 504])

export const isServerError = (head: ResponseHead): boolean => serverErrors.has(head.status)

/**
 * Does it depend on the request that was sent more than on its target? The request of another reader may be answered otherwise: a
 * firewall refuses one `User-Agent` with 403.
 */
export const isOfRequest = ({ status }: ResponseHead): boolean =>
  (status >= 400 && status < 500 && status !== 404 && status !== 410) || serverErrors.has(status)

/** Reasons not to store an error for which it may still be shared. */
const sharedReasons: ReadonlySet<NoStoreReason> = new Set(['status', 'no-freshness'])
/** `safe` sends neither credentials nor cookies: so an error contains nothing private, whatever its directives say. */
const sharedReasonsWhenAnonymous: ReadonlySet<NoStoreReason> = new Set([
  ...sharedReasons,
  'private',
  'no-store',
])

/** May readers that wait share an error that is not stored, so that not each of them sends a request to a failing upstream? */
export const mayShareError = (head: ResponseHead, reason: NoStoreReason, policy: CachePolicy): boolean =>
  isServerError(head) && (policy.profile === 'safe' ? sharedReasonsWhenAnonymous : sharedReasons).has(reason)

/**
 * May a response that was received at that time be stored for later readers (RFC 9111 §3, narrowed by the profile)? `authorized`: the
 * request had a credential.
 */
export const storageOf = (
  head: ResponseHead,
  read: Pick<CacheRead, 'partition' | 'headers' | 'policy'>,
  receivedAt: number,
  authorized = requestHeader(read.headers, 'authorization') !== undefined,
): StorageDecision => {
  const { policy } = read
  const control = responseControl(head.headers)
  const reason =
    statusReason(head.status, policy, control) ??
    directiveReason(head, read, control, authorized) ??
    headerReason(head, policy, control) ??
    freshnessReason(head, policy, control, freshnessLifetime(head, control, policy, receivedAt))
  return reason === undefined ? store : { kind: 'no-store', reason }
}
