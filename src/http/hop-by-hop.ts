import { credentialFields } from './credential-fields.ts'
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

/** Request fields that are not sent on: framing is made anew, the gateway says itself by which way it came, the rest changes what a request means. */
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
  'via',
  'forwarded',
  'x-request-id',
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
    .filter((option) => isNamedAway(option))
}

const connectionFieldSet: ReadonlySet<string> = new Set(connectionFields)

/** `keep-alive`, which most say, is not sent on anyway. */
const isNamedAway = (option: string): boolean =>
  option !== '' && !connectionFieldSet.has(option) && !neverConnectionOptions.has(option)

const connectionFieldLengths: ReadonlySet<number> = new Set(connectionFields.map(({ length }) => length))

/** Response fields for the next recipient: those of the connection are removed (RFC 9110 §7.6.1). */
export const endToEndFields = (lines: FieldLines): string[] => {
  const connection = fieldValue(lines, 'connection')
  const named = connection === undefined || connection === 'keep-alive' ? [] : namedByConnection(connection)
  if (named.length > 0) return withoutFields(lines, new Set([...connectionFields, ...named]))
  const kept: string[] = []
  for (let i = 0; i < lines.length; i += 2) {
    const name = lines[i] as string
    // Most names differ in length from all that end here: those are not brought to lower case.
    const ends = connectionFieldLengths.has(name.length) && connectionFieldSet.has(name.toLowerCase())
    if (!ends) kept.push(name, lines[i + 1] as string)
  }
  return kept
}

const noNames: ReadonlySet<string> = new Set()

const isSentOn = (name: string): boolean =>
  !name.startsWith(':') &&
  !notForwarded.has(name) &&
  !name.startsWith('x-forwarded-') &&
  !name.startsWith('proxy-')

/** What says who asks decides about caching, in the one spelling that is looked at. */
const onlyWithHyphens: ReadonlySet<string> = new Set([...credentialFields, 'x-wp-nonce'])

/**
 * May a client's field reach the upstream? A CGI upstream reads `X_Forwarded_For` as X-Forwarded-For, so names compare with `_`
 * as `-`.
 */
const isForwardable = (name: string): boolean => {
  if (!name.includes('_')) return isSentOn(name)
  const plain = name.replaceAll('_', '-')
  return isSentOn(plain) && !onlyWithHyphens.has(plain)
}

/**
 * A client's end-to-end fields for the upstream, in their order: all but those that the gateway says itself, for which no
 * Connection field is asked, and the ones `withheld`.
 */
export const forwardableFields = (fields: RequestFields, withheld: ReadonlySet<string>): string[] => {
  const connection = fields['connection']
  const named =
    connection === undefined
      ? noNames
      : new Set(namedByConnection(Array.isArray(connection) ? connection.join(',') : connection))
  const sent: string[] = []
  for (const name of Object.keys(fields)) {
    const value = fields[name]
    if (value === undefined || named.has(name) || withheld.has(name) || !isForwardable(name)) continue
    sent.push(name, Array.isArray(value) ? value.join(', ') : value)
  }
  return sent
}
