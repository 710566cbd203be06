import { queryParameters } from '../form-text.ts'
import { isJsonObject, type JsonObject } from '../json-text.ts'
import { memoize } from '../memo.ts'
import { isForwardable, isUnusualName, namedAway } from './forwardable-headers.ts'
import { type HeaderLines, type RequestHeaders, requestHeader } from './header-lines.ts'

/** RFC 6750 §2.1: the scheme in any case, then one token68. */
const bearer = /^bearer +[A-Za-z0-9._~+/-]+=*$/i

/** Is a bearer token there? The upstream decides whether it is valid. */
export const hasBearer = (headers: RequestHeaders): boolean => {
  const credential = requestHeader(headers, 'authorization')
  return credential !== undefined && bearer.test(credential)
}

/**
 * Request headers that browsers, HTTP clients, tracing libraries, balancers and content networks send by themselves. None of them says
 * who asks; an upstream whose responses depend on one names it in Vary.
 */
const harmless: readonly string[] = [
  // HTTP.
  ...['accept', 'accept-charset', 'accept-datetime', 'accept-encoding', 'accept-language', 'authority'],
  ...['cache-control', 'pragma', 'content-type', 'content-language', 'content-encoding', 'content-location'],
  ...['date', 'early-data', 'if-match', 'if-modified-since', 'if-none-match', 'if-range'],
  ...['if-unmodified-since', 'max-forwards', 'origin', 'priority', 'range', 'referer', 'user-agent'],
  // These two have rules of their own.
  ...['authorization', 'cookie'],
  // Site generators, for this gateway alone.
  'trellis-build',
  // Browsers.
  ...['access-control-request-headers', 'access-control-request-method', 'alt-used', 'available-dictionary'],
  ...['dictionary-id', 'device-memory', 'dnt', 'downlink', 'dpr', 'ect', 'idempotency-key', 'purpose', 'rtt'],
  ...['save-data', 'sec-fetch-dest', 'sec-fetch-mode', 'sec-fetch-site', 'sec-fetch-storage-access'],
  ...['sec-fetch-user', 'sec-gpc', 'sec-purpose', 'service-worker', 'service-worker-navigation-preload'],
  ...['upgrade-insecure-requests', 'viewport-width', 'width', 'x-moz', 'x-playback-session-id', 'x-purpose'],
  ...['x-requested-with', 'x-user-agent'],
  // Balancers.
  ...['x-kong-request-id', 'x-queue-start', 'x-request-deadline-ms', 'x-request-start', 'x-varnish'],
  // Networks: Cloudflare, CloudFront, Fastly, Fly, Vercel, Azure, Google, Envoy.
  ...['cdn-loop', 'cf-ew-via', 'cf-ipcity', 'cf-ipcontinent', 'cf-ipcountry', 'cf-iplatitude'],
  ...['cf-iplongitude', 'cf-metro-code', 'cf-postal-code', 'cf-ray', 'cf-region', 'cf-region-code'],
  ...[
    'cf-timezone',
    'cf-warp-tag-id',
    'cf-worker',
    'cf-bot-score',
    'cf-verified-bot',
    'cf-ja3-hash',
    'cf-ja4',
  ],
  ...['fastly-client', 'fastly-ff', 'fly-region', 'fly-request-id', 'x-amz-cf-id', 'x-amzn-tls-version'],
  ...['x-amzn-tls-cipher-suite', 'x-appengine-city', 'x-appengine-citylatlong', 'x-appengine-country'],
  ...['x-appengine-region', 'x-appengine-request-log-id', 'x-arr-log-id', 'x-azure-fdid', 'x-azure-ref'],
  ...['x-azure-requestchain', 'x-akamai-edgescape', 'x-envoy-attempt-count', 'x-envoy-decorator-operation'],
  ...['x-envoy-expected-rq-timeout-ms', 'x-envoy-peer-metadata', 'x-envoy-peer-metadata-id', 'x-fastly-ff'],
  ...['x-railway-edge', 'x-railway-request-id', 'x-vercel-id', 'rndr-id'],
]

/**
 * Traces and ids of requests: W3C, Zipkin, Jaeger, OpenTracing, OpenCensus, Datadog, New Relic, Elastic, Sentry, Instana, Dynatrace,
 * Lightstep, Amazon, Google, Microsoft. Each request has others, so no key can have them, and many carry any text (`baggage`).
 */
const traces: readonly string[] = [
  ...[
    'b3',
    'baggage',
    'correlation-context',
    'correlation-id',
    'dtc',
    'elastic-apm-traceparent',
    'elasticapm',
  ],
  ...['grpc-tags-bin', 'grpc-trace-bin', 'jaeger-baggage', 'jaeger-debug-id', 'newrelic', 'request-context'],
  ...['request-id', 'sentry-trace', 'traceparent', 'traceresponse', 'tracestate', 'uber-trace-id'],
  ...['x-amzn-trace-id', 'x-client-request-id', 'x-client-trace-id', 'x-cloud-trace-context'],
  ...['x-correlation-id', 'x-dynatrace', 'x-dynatrace-application', 'x-ms-request-id', 'x-newrelic-id'],
  ...['x-newrelic-transaction', 'x-ot-span-context', 'x-sentry-trace', 'x-span-id', 'x-trace-id'],
]

/** B3, Datadog, OpenTracing, Jaeger and Instana. */
const tracePrefix = /^(?:x-b3-|x-datadog-|ot-tracer-|ot-baggage-|ottracer-|uberctx-|x-instana-)/

const traceNames: ReadonlySet<string> = new Set(traces)

/** Headers by which the upstream joins the trace of a miss (W3C Trace Context): positions in traces, for no one else to read. */
const traceContext: ReadonlySet<string> = new Set(['traceparent', 'tracestate'])

const isStrippedTrace = (name: string): boolean =>
  !traceContext.has(name) && (traceNames.has(name) || tracePrefix.test(name))

/** The headers of traces are stripped from a request whose response may be stored: `stripped` with those that it has. */
export const withTraces = (headers: RequestHeaders, stripped: ReadonlySet<string>): ReadonlySet<string> => {
  const names = Object.keys(headers).filter(isStrippedTrace)
  return names.length === 0 ? stripped : new Set([...stripped, ...names])
}

const harmlessNames: ReadonlySet<string> = new Set([...harmless, ...traces])

/** Client hints, and what CloudFront and Vercel know of a viewer's device and place. */
const harmlessPrefix = /^(?:sec-ch-|cloudfront-(?:viewer|is)-|x-vercel-ip-|attribution-reporting-)/

/** Parts of names of credentials, in headers (`X-Auth-Token`) and in parameters of a query (`oauth_token`). */
const secrets =
  'token|session|secret|passw|credential|nonce|auth(?!or(?!i[sz]))|jwt|oidc|saml|dpop|csrf|xsrf|(?:api|app|application|access|account|client|consumer|license|private|subscription|functions|master)-?key'

/** Whole words that say so. */
const secretWords =
  'bearer|hmac|signature(?:-input|-256)?|h?otp|totp|pin|[2m]fa|pass|passcode|passphrase|pwd|sid|ticket'

/**
 * Names of headers that may identify the client, beside Authorization and Cookie: keys, tokens, sessions, and the
 * user as a login proxy names it. No list of them is complete: a request header that is neither here nor harmless is part of the key.
 */
const credentialName = new RegExp(`${secrets}|principal|(?:^|-)(?:user|email|sso|cert)|ssl-client|clientcert`)

/** Whole words that say so in a request; in a response they are names for caches (`Surrogate-Key`). */
const credentialWord = new RegExp(
  `(?:^|-)(?:${secretWords}|key|uid|login|identity|impersonate|sudo|act-as|on-behalf-of)$`,
)

/** Names of parameters; those of URLs that clouds have signed (`X-Amz-Signature`, `sig`, `Key-Pair-Id`) are among them. */
const credentialParameter = new RegExp(`${secrets}|^key$|(?:^|-)(?:${secretWords}|sig|key-pair-id)$`)

/** A place in a list. */
const pageToken = /(?:^|-)(?:page|next|prev|previous|continuation|cursor|start|sync)-token$/

/** `accessToken`, `consumer.key` and `token[]` are read as headers are written. */
export const isCredentialParameter = memoize((name) => {
  const plain = (name.split('\0', 1)[0] ?? '')
    .replaceAll(/([a-z])([A-Z])/g, '$1-$2')
    .toLowerCase()
    .replaceAll(/[^a-z\d]+/g, '-')
    .replaceAll(/^-|-$/g, '')
  return credentialParameter.test(plain) && !pageToken.test(plain)
})

/** Has a query (without `?`) a parameter that carries a credential, by its name? `harmless`: configured exceptions. */
export const hasCredentialParameter = (query: string, harmless: readonly string[]): boolean =>
  queryParameters(query).some(([name]) => isCredentialParameter(name) && !harmless.includes(name))

/** What a request header of a name (lower case) can do to the response. */
type Meaning = 'unsent' | 'harmless' | 'credential' | 'other'

const meaningOf = memoize((name): Meaning => {
  if (!isForwardable(name)) return 'unsent'
  if (harmlessNames.has(name)) return 'harmless'
  const isHarmless = (harmlessPrefix.test(name) || tracePrefix.test(name)) && !credentialWord.test(name)
  if (isHarmless) return 'harmless'
  return credentialName.test(name) || credentialWord.test(name) ? 'credential' : 'other'
})

/** Are all headers that may reach the upstream harmless, and is Authorization none of them? */
export const areHarmless = (headers: RequestHeaders): boolean =>
  Object.keys(headers).every((name) => {
    const meaning = meaningOf(name)
    return meaning === 'harmless' ? name !== 'authorization' : meaning === 'unsent' && !isUnusualName(name)
  })

/** May a header of this name (lower case) identify a client? A header that is not forwarded does not. */
export const isCredentialName = (name: string): boolean => meaningOf(name) === 'credential'

const none: readonly string[] = []

/**
 * Names of the headers beside Authorization and Cookie that may identify the client, in order; `excepted`: configured exceptions;
 * `declared`: credentials by the description of the service.
 */
export const credentialHeadersOf = (
  headers: RequestHeaders,
  excepted: readonly string[],
  declared: readonly string[] = none,
): readonly string[] =>
  Object.keys(headers)
    .filter((name) => (isCredentialName(name) && !excepted.includes(name)) || declared.includes(name))
    .sort()

/** A loop without allocations, because it runs for every hit. */
const hasOne = (
  headers: RequestHeaders,
  meaning: Meaning,
  excepted: readonly string[],
  declared: readonly string[],
): boolean => {
  for (const name in headers) if (meaningOf(name) === meaning && !excepted.includes(name)) return true
  for (const name of declared) if (headers[name] !== undefined) return true
  return false
}

const withValues = (headers: RequestHeaders, names: readonly string[]): string =>
  JSON.stringify(names.map((name) => [name, headers[name] ?? null]))

/** Everything that identifies the client, as one text. Undefined where only Authorization could. */
export const otherCredential = (
  headers: RequestHeaders,
  excepted: readonly string[],
  declared: readonly string[] = none,
): string | undefined =>
  hasOne(headers, 'credential', excepted, declared)
    ? withValues(headers, ['authorization', ...credentialHeadersOf(headers, excepted, declared)])
    : undefined

/**
 * Names of the headers that are neither credentials nor harmless, as far as they are sent: only requests with the same values share a
 * response.
 */
export const keyedHeadersOf = (headers: RequestHeaders, excepted: readonly string[]): readonly string[] => {
  const named = namedAway(headers)
  return Object.keys(headers)
    .filter((name) => meaningOf(name) === 'other' && !excepted.includes(name) && !named.has(name))
    .sort()
}

/** The same with their values, as one text; undefined for most requests. */
export const keyedHeaders = (headers: RequestHeaders, excepted: readonly string[]): string | undefined => {
  if (!hasOne(headers, 'other', excepted, none)) return undefined
  const names = keyedHeadersOf(headers, excepted)
  return names.length === 0 ? undefined : withValues(headers, names)
}

/** The base64 of `{` with a quote, `}` or white space behind it, or of white space. */
const maybeJson = /^(?:e(?:y[A-DI-L]|w[k-r0-3]|3[0-3])|[CDI])/

/** Of sixteen tokens. Text that is no JSON costs an exception each. */
const maxSegments = 32

/** Of a credential with more segments than that. */
const expired: readonly JsonObject[] = [{ exp: 0 }]

const jsonObjectOf = (segment: string): JsonObject | undefined => {
  try {
    const value: unknown = JSON.parse(Buffer.from(segment, 'base64').toString())
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/**
 * The JSON objects among base64 segments with dots between them, as header and claims of a JWT are (RFC 7515 §7.1), wherever they
 * stand in a value. Nothing is verified. A value with too many segments counts as an expired token.
 */
export const jwtSegments = (value: string): readonly JsonObject[] => {
  const segments = value
    .split(/[^\w+/.-]/)
    .filter((word) => word.includes('.'))
    .flatMap((word) => word.split('.'))
    .filter((segment) => maybeJson.test(segment))
  if (segments.length > maxSegments) return expired
  return segments.map(jsonObjectOf).filter((object) => object !== undefined)
}

/** When the first of the tokens expires that a request has, in milliseconds since 1970; Infinity without one. It can only shorten. */
export const credentialExpiry = (
  headers: RequestHeaders,
  excepted: readonly string[],
  declared: readonly string[] = none,
): number => {
  const names = ['authorization', ...credentialHeadersOf(headers, excepted, declared)]
  const value = names.map((name) => requestHeader(headers, name) ?? '').join(' ')
  return Math.min(
    ...jwtSegments(value).map(({ exp }) => (typeof exp === 'number' ? exp * 1000 : Number.POSITIVE_INFINITY)),
  )
}

/** Headers of a response whose names look like those of tokens, and that carry none. */
const tokenless = /^(?:access-control-|proxy-|www-authenticate$|user-agent$)|rate-?limit/

const namesToken = memoize((name) => credentialName.test(name) && !tokenless.test(name))

/** Has a response a header with a token of its reader (Cart-Token, Nonce, Authorization, X-Session-Id)? `excepted`: lower-case names. */
export const carriesToken = (headers: HeaderLines, excepted: readonly string[]): boolean => {
  for (let i = 0; i < headers.length; i += 2) {
    const name = (headers[i] as string).toLowerCase()
    if (namesToken(name) && !excepted.includes(name)) return true
  }
  return false
}

/** May the caller have rights that an anonymous one does not have? */
export const mayHaveRights = (headers: RequestHeaders): boolean =>
  headers['authorization'] !== undefined ||
  headers['cookie'] !== undefined ||
  otherCredential(headers, none) !== undefined
