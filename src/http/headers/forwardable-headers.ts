import { memoize } from '../memo.ts'
import {
  type HeaderLines,
  headerValue,
  type RequestHeaders,
  requestHeader,
  withoutHeaders,
} from './header-lines.ts'

/** Headers that concern one connection only (RFC 9110 §7.6.1), and Trailer, since trailers are not passed on. */
const connectionHeaders: readonly string[] = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authentication-info',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]

/**
 * Headers that a Connection header never names away: each is meant for every recipient (RFC 9110 §7.6.1), and without
 * it the message would mean something else, e.g. a response losing the `private` that keeps it out of the cache.
 */
const neverConnectionOptions: ReadonlySet<string> = new Set([
  'host',
  'authorization',
  'cookie',
  'set-cookie',
  'cache-control',
  'cdn-cache-control',
  'trellis-cache-control',
  'pragma',
  'expires',
  'age',
  'date',
  'vary',
  'etag',
  'last-modified',
  'location',
  'allow',
  'www-authenticate',
  'retry-after',
  'content-length',
  'content-type',
  'content-encoding',
  'content-range',
  'content-disposition',
  'content-language',
  'range',
  'if-range',
  'if-match',
  'if-none-match',
  'if-modified-since',
  'if-unmodified-since',
  'accept',
  'origin',
])

const noOptions: ReadonlySet<string> = new Set()

const connectionOptions = (connection: string | undefined): ReadonlySet<string> => {
  // The usual values name no header.
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return noOptions
  const options = connection.toLowerCase().split(',')
  return new Set(options.map((option) => option.trim()).filter((option) => isNamedAway(option)))
}

const connectionHeaderSet: ReadonlySet<string> = new Set(connectionHeaders)

const isNamedAway = (option: string): boolean =>
  option !== '' && !connectionHeaderSet.has(option) && !neverConnectionOptions.has(option)

/** Headers that an upstream sends to the gateway alone (see ResponseHints). */
const hintHeaders: readonly string[] = [
  'trellis-tags',
  'trellis-max-age',
  'trellis-incomplete',
  'trellis-untested',
  'trellis-statement',
  'trellis-request',
]

const endingHeaders: ReadonlySet<string> = new Set([...connectionHeaders, ...hintHeaders])

/** Response headers for the next recipient: those of the connection (RFC 9110 §7.6.1) and the hints are removed. */
export const endToEndHeaders = (lines: HeaderLines): string[] => {
  const named = connectionOptions(headerValue(lines, 'connection'))
  return withoutHeaders(lines, named.size > 0 ? new Set([...endingHeaders, ...named]) : endingHeaders)
}

/**
 * Headers by which a proxy identifies its client. Servers and frameworks read them, so only the gateway may send some of
 * them, and a request that carries one came through a proxy.
 */
const proxyHeaders = {
  address: [
    'x-real-ip',
    'x-real-client-ip',
    'x-client-ip',
    'x-user-ip',
    'x-remote-ip',
    'x-remote-addr',
    'remote-addr',
    'x-originating-ip',
    'x-original-forwarded-for',
    'x-forward-for',
    'http-x-forwarded-for',
    'http-client-ip',
    'x-cluster-client-ip',
    'x-true-client-ip',
    'x-coming-from',
    'coming-from',
    'client-ip',
    'true-client-ip',
    'cf-connecting-ip',
    'cf-connecting-ipv6',
    'cf-pseudo-ipv4',
    'fastly-client-ip',
    'fly-client-ip',
    'do-connecting-ip',
    'incap-client-ip',
    'x-sucuri-clientip',
    'x-nf-client-connection-ip',
    'x-vercel-forwarded-for',
    'x-azure-clientip',
    'x-azure-socketip',
    'x-appengine-user-ip',
    'x-appengine-remote-addr',
    'x-envoy-external-address',
    'x-envoy-internal',
    'x-proxyuser-ip',
    'wl-proxy-client-ip',
    'cloudfront-viewer-address',
    'ali-cdn-real-ip',
    'cdn-src-ip',
    'oxygen-buyer-ip',
    'akamai-client-ip',
    'fastly-temp-xff',
    'x-vercel-proxied-for',
  ],
  scheme: [
    'front-end-https',
    'x-url-scheme',
    'x-scheme',
    'x-proto',
    'x-original-proto',
    'x-arr-ssl',
    'cf-visitor',
    'cloudfront-forwarded-proto',
    'fastly-ssl',
    'wl-proxy-ssl',
    'fly-forwarded-proto',
    'fly-forwarded-ssl',
    // CGI shows it to programs as HTTP_HTTPS (RFC 3875 §4.1.18), which some take for their own HTTPS.
    'https',
  ],
  host: [
    'x-host',
    'x-http-host-override',
    'x-host-override',
    'x-original-server',
    'disguised-host',
    'fly-forwarded-port',
  ],
}

/** Headers of a client that no upstream gets, beside those of `proxyHeaders`. */
const notForwarded = {
  connection: connectionHeaders,
  /** The gateway writes them itself, or leaves them to the connection to the upstream. */
  own: [
    ...['host', 'content-length', 'expect', 'accept-encoding', 'via', 'x-request-id', 'trellis-nonce'],
    'trellis-build',
  ],
  method: ['x-http-method', 'x-method', 'x-http-verb', 'x-tunnel-method'],
  target: [
    'x-request-uri',
    'x-script-name',
    'x-path-info',
    'x-waws-unencoded-url',
    'x-matched-path',
    'x-invoke-path',
    'x-invoke-query',
    'x-now-route-matches',
  ],
  /** They change what programs do: CGI shows Proxy as HTTP_PROXY, the proxy setting of HTTP clients; frameworks send another content. */
  program: [
    ...['proxy', 'x-sendfile-type', 'x-accel-mapping', 'x-middleware-subrequest', 'x-middleware-prefetch'],
    ...['x-invoke-status', 'x-invoke-error', 'x-invoke-output'],
    ...['x-react-router-spa-mode', 'x-react-router-prerender-data', 'next-resume'],
  ],
}

/** Forwarded (RFC 7239), X-Forwarded-For and their many relatives. */
const proxyPrefixes: readonly string[] = ['forwarded', 'x-forwarded']

/** Headers that content networks, balancers and meshes add beside those, and that upstreams may get. */
const networkPrefixes: readonly string[] = [
  ...['cf-', 'cdn-', 'cloudfront-', 'x-amz-cf-', 'x-amzn-', 'x-azure-', 'x-arr-', 'x-appengine-'],
  ...['x-cloud-trace-', 'x-envoy-', 'fastly-', 'fly-', 'x-vercel-', 'x-nf-', 'x-akamai-', 'akamai-'],
  ...['x-sucuri-', 'max-forwards'],
]

/**
 * Proxies have more names for these than a list can hold: the address of the client (`Acme-Client-IP`), and the target, method or host in
 * place of those of the request (`X-Original-Host`, `X-Rewrite-Path`, `X-HTTP-Path-Override`).
 */
const addressName =
  /(?:^|-)(?:client|user|visitor|viewer|remote|real|true|source|src|orig|original|originating|connecting|peer|socket)-?(?:ip(?:v?[46])?|addr(?:ess)?)$/

const targetName =
  /(?:^|-)(?:original|rewrite|rewritten|override|tunnel|effective)-(?:url|uri|path|query|host|method|verb|scheme|proto|protocol|port|prefix|server|authority)$|(?:^|-)(?:url|uri|path|query|host|method|verb|scheme|proto|protocol|port)-(?:override|rewrite|tunnel)$/

const proxyNames: ReadonlySet<string> = new Set(Object.values(proxyHeaders).flat())

const refusedNames: ReadonlySet<string> = new Set([...proxyNames, ...Object.values(notForwarded).flat()])

/** Does a header of this name (lower case) show that a proxy forwarded the request? */
export const isProxyHeader = (name: string): boolean =>
  name === 'via' ||
  proxyNames.has(name) ||
  addressName.test(name) ||
  [...proxyPrefixes, ...networkPrefixes].some((prefix) => name.startsWith(prefix))

/**
 * Letters, digits and hyphens. Every other sign is `_` for some upstream, as a hyphen is (CGI, RFC 3875 §4.1.18; PHP: `_` and
 * `.`), so that `Accept_Language` would be read as Accept-Language. nginx and Apache drop such headers too.
 */
const plainName = /^[a-z\d-]+$/

/** May a header of this name (lower case) go from a client to an upstream? */
export const isForwardable = memoize(
  (name) =>
    plainName.test(name) &&
    !refusedNames.has(name) &&
    !addressName.test(name) &&
    !targetName.test(name) &&
    !proxyPrefixes.some((prefix) => name.startsWith(prefix)) &&
    !name.startsWith('proxy-'),
)

/** A name such as `api_key`: sent only where a document declares it, because others may read it as the one with hyphens. */
export const isUnusualName = (name: string): boolean =>
  /^[a-z\d._-]+$/.test(name) && !isForwardable(name) && isForwardable(name.replaceAll(/[._]/g, '-'))

/** The headers of a client that are not sent: `named` by its Connection header, or `stripped` for the sake of what is stored. */
type Unsent = { readonly named: ReadonlySet<string>; readonly stripped: ReadonlySet<string> }

const isSent = (name: string, { named, stripped }: Unsent): boolean =>
  !named.has(name) && !stripped.has(name) && isForwardable(name)

export const namedAway = (headers: RequestHeaders): ReadonlySet<string> =>
  connectionOptions(requestHeader(headers, 'connection'))

/** The client's headers that go to the upstream, as lines in their order. */
export const forwardableHeaders = (headers: RequestHeaders, stripped: ReadonlySet<string>): string[] => {
  const unsent = { named: namedAway(headers), stripped }
  const lines: string[] = []
  for (const name of Object.keys(headers)) {
    const value = requestHeader(headers, name)
    if (value !== undefined && isSent(name, unsent)) lines.push(name, value)
  }
  return lines
}

/** The value of one of them; undefined where it does not go. Names may come from upstreams: every object has a `constructor`. */
export const forwardableHeader = (
  headers: RequestHeaders,
  name: string,
  unsent: Unsent,
): string | undefined =>
  Object.hasOwn(headers, name) && isSent(name, unsent) ? requestHeader(headers, name) : undefined

/** Where in which trace something happens (W3C Trace Context, https://www.w3.org/TR/trace-context/). Lower-case hexadecimal. */
export type TraceContext = {
  readonly traceId: string
  readonly spanId: string
  /** The caller records the trace. */
  readonly sampled: boolean
}

const form = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-[\x21-\x7e]{0,256})?$/

const onlyZeros = /^0+$/

/** §3.2.2: version ff is none, ids of zeros are none, and version 00 has nothing behind the flags. */
export const parseTraceParent = (value: string | undefined): TraceContext | undefined => {
  if (value === undefined || value.length > 320) return undefined
  const [, version, traceId = '', spanId = '', flags = '', more] = form.exec(value) ?? []
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return undefined
  if (onlyZeros.test(traceId) || onlyZeros.test(spanId)) return undefined
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

/** The context of a request, if it is valid. */
export const traceContextOf = (headers: RequestHeaders): TraceContext | undefined =>
  parseTraceParent(requestHeader(headers, 'traceparent'))

const formatted = ({ traceId, spanId, sampled }: TraceContext): string =>
  `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`

const traceNames: ReadonlySet<string> = new Set(['traceparent', 'tracestate'])

/**
 * Sets the trace headers of an upstream request: the open span is the parent, otherwise the client's headers are sent. §3.3.1.5 and
 * §4.3: without a valid traceparent, tracestate is ignored, and neither is sent. Changes the given lines where it can.
 */
export const withTraceHeaders = (headers: string[], open: TraceContext | undefined): string[] => {
  const parent = headerValue(headers, 'traceparent')
  const state = headerValue(headers, 'tracestate')
  const lines = parent === undefined && state === undefined ? headers : withoutHeaders(headers, traceNames)
  const clientParent = parseTraceParent(parent)
  if (open !== undefined) lines.push('traceparent', formatted(open))
  else if (clientParent !== undefined) lines.push('traceparent', parent as string)
  if (clientParent !== undefined && state !== undefined) lines.push('tracestate', state)
  return lines
}
