import { remembered } from './memo.ts'
import { type FieldLines, fieldValue, type RequestFields, requestField, withoutFields } from './message.ts'

/** Fields that concern one connection only (RFC 9110 §7.6.1), and Trailer, since trailers are not passed on. */
const connectionFields: readonly string[] = [
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
 * Fields that a Connection field never names away: each is meant for every recipient (RFC 9110 §7.6.1), and without
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
  // The usual values name no field.
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return noOptions
  const options = connection.toLowerCase().split(',')
  return new Set(options.map((option) => option.trim()).filter((option) => isNamedAway(option)))
}

const connectionFieldSet: ReadonlySet<string> = new Set(connectionFields)

const isNamedAway = (option: string): boolean =>
  option !== '' && !connectionFieldSet.has(option) && !neverConnectionOptions.has(option)

/** Fields that an upstream sends to the gateway alone (see ResponseHints). */
const hintFields: readonly string[] = ['trellis-tags', 'trellis-max-age', 'trellis-statement']

const endingFields: ReadonlySet<string> = new Set([...connectionFields, ...hintFields])

/** Response fields for the next recipient: those of the connection (RFC 9110 §7.6.1) and the hints are removed. */
export const endToEndFields = (lines: FieldLines): string[] => {
  const named = connectionOptions(fieldValue(lines, 'connection'))
  return withoutFields(lines, named.size > 0 ? new Set([...endingFields, ...named]) : endingFields)
}

/**
 * Fields by which a proxy identifies its client. Servers and frameworks read them, so only the gateway may send some of
 * them, and a request that carries one came through a proxy.
 */
const proxyFields = {
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

/** Fields of a client that no upstream gets, beside those of `proxyFields`. */
const notForwarded = {
  connection: connectionFields,
  /** The gateway writes them itself, or leaves them to the connection to the upstream. */
  own: ['host', 'content-length', 'expect', 'accept-encoding', 'via', 'x-request-id', 'trellis-nonce'],
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

/** Fields that content networks, balancers and meshes add beside those, and that upstreams may get. */
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

const proxyNames: ReadonlySet<string> = new Set(Object.values(proxyFields).flat())

const refusedNames: ReadonlySet<string> = new Set([...proxyNames, ...Object.values(notForwarded).flat()])

/** Does a field of this name (lower case) show that a proxy forwarded the request? */
export const isProxyField = (name: string): boolean =>
  name === 'via' ||
  proxyNames.has(name) ||
  addressName.test(name) ||
  [...proxyPrefixes, ...networkPrefixes].some((prefix) => name.startsWith(prefix))

/**
 * Letters, digits and hyphens. Every other sign is `_` for some upstream, as a hyphen is (CGI, RFC 3875 §4.1.18; PHP: `_` and
 * `.`), so that `Accept_Language` would be read as Accept-Language. nginx and Apache drop such fields too.
 */
const plainName = /^[a-z\d-]+$/

/** May a field of this name (lower case) go from a client to an upstream? */
export const isForwardable = remembered(
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

/** The fields of a client that are not sent: `named` by its Connection field, or `withheld` for the sake of what is stored. */
type Unsent = { readonly named: ReadonlySet<string>; readonly withheld: ReadonlySet<string> }

const isSent = (name: string, { named, withheld }: Unsent): boolean =>
  !named.has(name) && !withheld.has(name) && isForwardable(name)

export const namedAway = (fields: RequestFields): ReadonlySet<string> =>
  connectionOptions(requestField(fields, 'connection'))

/** The client's fields that go to the upstream, as lines in their order. */
export const forwardableFields = (fields: RequestFields, withheld: ReadonlySet<string>): string[] => {
  const unsent = { named: namedAway(fields), withheld }
  const lines: string[] = []
  for (const name of Object.keys(fields)) {
    const value = requestField(fields, name)
    if (value !== undefined && isSent(name, unsent)) lines.push(name, value)
  }
  return lines
}

/** The value of one of them; undefined where it does not go. Names may come from upstreams: every object has a `constructor`. */
export const forwardableField = (fields: RequestFields, name: string, unsent: Unsent): string | undefined =>
  Object.hasOwn(fields, name) && isSent(name, unsent) ? requestField(fields, name) : undefined

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
export const traceContextOf = (fields: RequestFields): TraceContext | undefined =>
  parseTraceParent(requestField(fields, 'traceparent'))

const formatted = ({ traceId, spanId, sampled }: TraceContext): string =>
  `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`

const traceNames: ReadonlySet<string> = new Set(['traceparent', 'tracestate'])

/**
 * Sets the trace fields of an upstream request: the open span is the parent, otherwise the client's fields are sent. §3.3.1.5 and
 * §4.3: without a valid traceparent, tracestate is ignored, and neither is sent. Changes the given lines where it can.
 */
export const withTraceFields = (fields: string[], open: TraceContext | undefined): string[] => {
  const parent = fieldValue(fields, 'traceparent')
  const state = fieldValue(fields, 'tracestate')
  const lines = parent === undefined && state === undefined ? fields : withoutFields(fields, traceNames)
  const clientParent = parseTraceParent(parent)
  if (open !== undefined) lines.push('traceparent', formatted(open))
  else if (clientParent !== undefined) lines.push('traceparent', parent as string)
  if (clientParent !== undefined && state !== undefined) lines.push('tracestate', state)
  return lines
}
