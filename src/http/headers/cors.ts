import type { GatewayResponse } from '../message.ts'
import { isHead, isOptions } from '../methods.ts'
import { variesBy } from './caching-headers.ts'
import { type HeaderLines, headerValue, type RequestHeaders, withHeader } from './header-lines.ts'

// All that the gateway knows of CORS on the wire (Fetch standard, HTTP extensions): preflights, the headers, and what they allow.

const allowOrigin = 'access-control-allow-origin'

/** Headers that the gateway sends to browsers itself where it is configured to; those of upstreams are removed then. */
export const corsHeaderNames: readonly string[] = [
  allowOrigin,
  'access-control-allow-credentials',
  'access-control-allow-methods',
  'access-control-allow-headers',
  'access-control-expose-headers',
  'access-control-max-age',
]

/** A preflight (CORS-preflight fetch) is no request for its path; any other OPTIONS is a request like others. */
export const isPreflight = (method: string | undefined, headers: RequestHeaders): boolean =>
  isOptions(method ?? '') &&
  headers['access-control-request-method'] !== undefined &&
  headers['origin'] !== undefined

/** What the configuration allows its origins. */
type ConfiguredCors = {
  readonly methods: readonly string[]
  readonly headers: readonly string[]
  readonly exposedHeaders: readonly string[]
  readonly credentials: boolean
  readonly maxAgeMs: number
}

/** For every response to an allowed origin, beside the origin. */
export const allowedLines = ({ credentials, exposedHeaders }: ConfiguredCors): HeaderLines => [
  ...(credentials ? ['Access-Control-Allow-Credentials', 'true'] : []),
  ...(exposedHeaders.length === 0 ? [] : ['Access-Control-Expose-Headers', exposedHeaders.join(', ')]),
]

/** For preflights, in addition. */
export const preflightLines = ({ methods, headers, maxAgeMs }: ConfiguredCors): HeaderLines => [
  ...['Access-Control-Allow-Methods', methods.join(', ')],
  ...['Access-Control-Allow-Headers', headers.join(', ')],
  ...['Access-Control-Max-Age', String(Math.floor(maxAgeMs / 1000))],
]

/** A permission for one origin must not be sent to another, also where the upstream omits Vary (CORS protocol and HTTP caches). */
export const allowsOneOrigin = (headers: HeaderLines): boolean =>
  (headerValue(headers, allowOrigin) ?? '*') !== '*'

/** What a page of another origin needs to read a response. */
export const corsLinesOf = (headers: HeaderLines): readonly string[] =>
  ['Access-Control-Allow-Origin', 'Access-Control-Allow-Credentials', 'Vary'].flatMap((name) => {
    const value = headerValue(headers, name)
    return value === undefined ? [] : [name, value]
  })

/** What an upstream allows every origin to do. */
export type AnyOrigin = {
  /** The origin is repeated, so that one stored response can serve every origin; otherwise the upstream sends `*`. */
  readonly isRepeated: boolean
  /** Its Access-Control-* headers without Access-Control-Allow-Origin. */
  readonly others: HeaderLines
}

/** Of each route this much is remembered at most; a site sends some 270 bytes. */
const maxPolicyBytes = 2048

/** What a response to a made-up origin shows: if that is allowed, every origin is. Undefined: not every origin. */
export const anyOriginOf = (lines: HeaderLines, origin: string): AnyOrigin | undefined => {
  const allowedOrigin = headerValue(lines, allowOrigin)
  const isRepeated = allowedOrigin === origin && variesBy(lines, 'origin')
  if (!isRepeated && allowedOrigin !== '*') return undefined
  const others: string[] = []
  for (let i = 0; i < lines.length; i += 2) {
    const name = (lines[i] as string).toLowerCase()
    if (name.startsWith('access-control-') && name !== allowOrigin) others.push(...lines.slice(i, i + 2))
  }
  return others.join('').length > maxPolicyBytes ? undefined : { isRepeated, others }
}

/** One of the headers without the others is another policy: a shop allows its methods to all, but names the origins. */
const policyHeaders = [allowOrigin, 'access-control-allow-methods', 'access-control-allow-credentials']

/** As browsers write it; what the upstream would clean before it answers it is left to the upstream. */
const plain = /^(?:null|https?:\/\/[a-z\d](?:[a-z\d.-]{0,251}[a-z\d])?(?::\d{1,5})?)$/

/** The Origin of a request, when the permission for it can be written without asking. */
export const plainOrigin = (headers: RequestHeaders): string | undefined => {
  const origin = headers['origin']
  return typeof origin === 'string' && plain.test(origin) ? origin : undefined
}

/** The lines with the permission for one origin; no header of them is sent twice. */
const withPermission = (
  lines: HeaderLines,
  { isRepeated, others }: AnyOrigin,
  origin: string,
): HeaderLines => {
  if (policyHeaders.some((name) => headerValue(lines, name) !== undefined)) return lines
  const withCorsHeaders = [...lines, 'Access-Control-Allow-Origin', isRepeated ? origin : '*']
  for (let i = 0; i < others.length; i += 2) {
    const name = others[i] as string
    if (headerValue(lines, name) === undefined) withCorsHeaders.push(name, others[i + 1] as string)
  }
  return withCorsHeaders
}

/** A response of the upstream to a request without Origin, for one origin. HEAD alone gets no Vary without an Origin. */
export const withCorsHeaders = <Response extends GatewayResponse>(
  response: Response,
  policy: AnyOrigin,
  origin: string,
  method: string,
): Response => {
  const varies = variesBy(response.headers, 'origin')
  if (!varies && !isHead(method)) return response
  const headers = withPermission(response.headers, policy, origin)
  return {
    ...response,
    headers: varies || headers === response.headers ? headers : [...headers, 'Vary', 'Origin'],
  }
}

/** A response that the gateway made, with what the upstream would have allowed. */
export const corsForOwnResponse = (
  response: GatewayResponse,
  policy: AnyOrigin | undefined,
  origin: string | undefined,
): GatewayResponse => {
  const vary = headerValue(response.headers, 'vary')
  const headers = variesBy(response.headers, 'origin')
    ? response.headers
    : withHeader(response.headers, 'Vary', vary === undefined ? 'Origin' : `Origin, ${vary}`)
  return {
    ...response,
    headers: policy === undefined || origin === undefined ? headers : withPermission(headers, policy, origin),
  }
}
