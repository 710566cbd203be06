import { type FieldLines, fieldValue, type RequestFields, withoutFields } from './fields.ts'

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

/** Request fields that are not sent on: framing is made anew, forwarding is rebuilt, the rest changes what a request means. */
const notForwarded: ReadonlySet<string> = new Set([
  ...connectionFields,
  'host',
  'content-length',
  'expect',
  'accept-encoding',
  'x-http-method',
  'x-http-method-override',
  'x-method-override',
  'x-original-url',
  'x-original-host',
  'x-rewrite-url',
  'x-host',
  'forwarded',
  'x-real-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'client-ip',
  'true-client-ip',
  'cf-connecting-ip',
  // PHP shows it to programs as HTTP_PROXY, which HTTP client libraries take for their proxy setting.
  'proxy',
])

/** Names listed in a Connection field that may be removed because of it. */
const namedByConnection = (connection: string | undefined): string[] => {
  if (connection === undefined) return []
  return connection
    .toLowerCase()
    .split(',')
    .map((option) => option.trim())
    .filter((option) => option !== '' && !neverConnectionOptions.has(option))
}

const connectionFieldSet: ReadonlySet<string> = new Set(connectionFields)

/** Response fields for the next recipient: those of the connection are removed (RFC 9110 §7.6.1). */
export const endToEndFields = (lines: FieldLines): string[] => {
  const named = namedByConnection(fieldValue(lines, 'connection'))
  if (named.length === 0) return withoutFields(lines, connectionFieldSet)
  return withoutFields(lines, new Set([...connectionFields, ...named]))
}

/** What the gateway itself says to the upstream. */
export type ForwardChoice = {
  /** Via, Forwarded, X-Forwarded-*, X-Request-Id …, as the gateway rebuilt them; they win over the client's. */
  readonly forwarded: Readonly<Record<string, string>>
  /** Accept-Encoding to send; stored content must be uncoded, so that is `identity` unless nothing is stored. */
  readonly acceptEncoding: string
}

const noNames: ReadonlySet<string> = new Set()

/** May a client's field reach the upstream? A CGI upstream reads `X_Forwarded_For` as X-Forwarded-For, so names compare with `_` as `-`. */
const isForwardable = (name: string, own: ReadonlySet<string>): boolean => {
  if (name.startsWith(':')) return false
  const plain = name.includes('_') ? name.replaceAll('_', '-') : name
  return (
    !notForwarded.has(plain) &&
    !own.has(plain) &&
    !plain.startsWith('x-forwarded-') &&
    !plain.startsWith('proxy-')
  )
}

/** Request fields for the upstream: the client's end-to-end fields, then the gateway's own, which no Connection field can name away. */
export const forwardableFields = (fields: RequestFields, choice: ForwardChoice): Record<string, string> => {
  const connection = fields['connection']
  const named =
    connection === undefined
      ? noNames
      : new Set(namedByConnection(Array.isArray(connection) ? connection.join(',') : connection))
  const own = new Set(Object.keys(choice.forwarded).map((name) => name.toLowerCase()))
  const sent: Record<string, string> = Object.create(null)
  for (const name of Object.keys(fields)) {
    const value = fields[name]
    if (value === undefined || named.has(name) || !isForwardable(name, own)) continue
    sent[name] = Array.isArray(value) ? value.join(', ') : value
  }
  sent['accept-encoding'] = choice.acceptEncoding
  for (const [name, value] of Object.entries(choice.forwarded)) sent[name.toLowerCase()] = value
  return sent
}
