import { type FieldLines, fieldValue, withoutFields } from './fields.ts'

/** Fields that concern one connection only (RFC 9110 §7.6.1), and Trailer, since trailers are not passed on. */
export const connectionFields: readonly string[] = [
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

const none: ReadonlySet<string> = new Set()

/** Names listed in a Connection field that may be removed because of it. */
export const connectionOptions = (connection: string | undefined): ReadonlySet<string> => {
  // What most say names nothing.
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return none
  const options = connection.toLowerCase().split(',')
  return new Set(options.map((option) => option.trim()).filter((option) => isNamedAway(option)))
}

const connectionFieldSet: ReadonlySet<string> = new Set(connectionFields)

const isNamedAway = (option: string): boolean =>
  option !== '' && !connectionFieldSet.has(option) && !neverConnectionOptions.has(option)

const connectionFieldLengths: ReadonlySet<number> = new Set(connectionFields.map(({ length }) => length))

/** Response fields for the next recipient: those of the connection are removed (RFC 9110 §7.6.1). */
export const endToEndFields = (lines: FieldLines): string[] => {
  const named = connectionOptions(fieldValue(lines, 'connection'))
  if (named.size > 0) return withoutFields(lines, new Set([...connectionFields, ...named]))
  const kept: string[] = []
  for (let i = 0; i < lines.length; i += 2) {
    const name = lines[i] as string
    // Most names differ in length from all that end here: those are not brought to lower case.
    const ends = connectionFieldLengths.has(name.length) && connectionFieldSet.has(name.toLowerCase())
    if (!ends) kept.push(name, lines[i + 1] as string)
  }
  return kept
}
