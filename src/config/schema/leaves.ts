import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'
import * as z from 'zod'
import { fault, type Reading } from '../fault.ts'
import {
  durationPattern,
  parseDuration,
  parseSize,
  parseStatusRanges,
  ratePerSecond,
  sizePattern,
} from '../quantities.ts'
import { parseHarmlessWrite, parseQueryMatch, parseRouteMatch, parseRuleMatch } from '../rule-match.ts'
import { Secret } from '../secret.ts'
import { ServiceDocument } from '../service-document.ts'

// Zod compiles a function for each object schema, which pays when a schema is used often. A configuration is checked once.
z.config({ jitless: true })

/** Accepts `/` or a path in normal form: no trailing slash, no empty segments, no dot segments. */
const pathPrefixFault = (text: string): string | undefined => {
  if (text === '/') return undefined
  if (!text.startsWith('/')) return 'the path must start with "/"'
  if (text.endsWith('/')) return 'the path must not end with "/": leave it out'
  const segments = text.slice(1).split('/')
  if (segments.includes('')) return 'the path must not have an empty segment ("//")'
  if (segments.some((segment) => segment === '.' || segment === '..'))
    return 'the path must not have dot segments'
  if (segments.some((segment) => !/^[A-Za-z0-9._~!$&'()*+,;=:@-]+$/.test(segment))) {
    return "the path has a character that must be written another way (only letters, digits and -._~!$&'()*+,;=:@)"
  }
  return undefined
}

/** One address or CIDR block, as `trustedProxies` lists them. */
const cidrFault = (text: string): string | undefined => {
  const [address = '', bits, ...rest] = text.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0) return 'expected an IP address or a CIDR block, e.g. 10.0.0.0/8'
  if (bits === undefined) return undefined
  const longest = version === 4 ? 32 : 128
  if (!/^\d{1,3}$/.test(bits) || Number(bits) > longest) return `the prefix length must be 0 to ${longest}`
  return undefined
}

/** An http or https origin (RFC 9110 §4.3.1): scheme, host and port, nothing else. */
const readOrigin = (text: string, example: string, pathHint: string): Reading<string> => {
  // `localhost:8080` has the form of a URL whose scheme is `localhost`.
  if (!URL.canParse(text) || !text.includes('://')) return fault(`expected an origin, e.g. ${example}`)
  const url = new URL(text)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return fault('the scheme must be http or https')
  if (url.username !== '' || url.password !== '') return fault('an origin has no credentials')
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '' || /[?#]$/.test(text))
    return fault(`an origin has no path: it ends after host and port${pathHint}`)
  return { kind: 'read', value: url.origin }
}

/** Accepts an absolute http(s) URL; it has a path when a proxy in front adds one. */
const publicUrlFault = (text: string): string | undefined => {
  if (!URL.canParse(text)) return 'expected an absolute URL, e.g. https://api.example.org'
  const url = new URL(text)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'the scheme must be http or https'
  if (url.username !== '' || url.password !== '') return 'the URL must not carry credentials'
  if (/[?#]/.test(text)) return 'the URL must not have a query or a fragment'
  return pathPrefixFault(url.pathname === '/' ? '/' : url.pathname)
}

const label = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/

/** Accepts a DNS name in A-labels (RFC 5890 §2.3.2.1), an IPv4 address or an IPv6 address in brackets, as `Host` spells them. */
const hostNameFault = (name: string): string | undefined => {
  if (name.startsWith('[')) {
    const isCanonical = URL.canParse(`http://${name}`) && new URL(`http://${name}`).host === name
    return isCanonical ? undefined : 'expected an IPv6 address in its shortest form, e.g. [2001:db8::1]'
  }
  if (/[\u0080-\uffff]/.test(name)) {
    const ascii = domainToASCII(name)
    return ascii === '' ? 'expected a host name in ASCII' : `expected the ASCII form of the name: ${ascii}`
  }
  if (name.endsWith('.')) return 'a host has no dot at its end'
  if (/^[^:]+:\d*$/.test(name)) return 'a host has no port: listen.port is the port of all hosts'
  const labels = name.split('.')
  const isNumeric = /^\d+$/.test(labels.at(-1) ?? '')
  if (name.length > 253 || !labels.every((part) => label.test(part)) || (isNumeric && isIP(name) !== 4)) {
    return 'expected a host name, e.g. blog.example or *.shop.example'
  }
  // Names in the Punycode form must be the form of some name.
  return name.includes('xn--') && domainToASCII(name) !== name
    ? 'expected a valid ASCII form of a name (xn--...)'
    : undefined
}

/** Accepts a host, or a name with one wildcard in front. */
const hostPatternFault = (text: string): string | undefined => {
  const name = text.toLowerCase().replace(/^\*\./, '')
  if (name.includes('*')) return 'expected at most one wildcard, as the first label: *.shop.example'
  const message = hostNameFault(name)
  if (message !== undefined || name.length === text.length) return message
  return name.startsWith('[') || isIP(name) !== 0 ? 'an address has no wildcard' : undefined
}

export const durationHint = 'expected a duration with its unit: 250ms, 10s, 5m, 1h or 30d'
export const sizeHint = 'expected a size: bytes as a whole number, or 64KiB, 256MiB, 1GiB'

/** A zod check from a function that returns the message for a wrong value. */
export const refusedBy =
  (faultOf: (text: string) => string | undefined) =>
  (payload: z.core.ParsePayload<string>): void => {
    const message = faultOf(payload.value)
    if (message !== undefined) payload.issues.push({ code: 'custom', message, input: payload.value })
  }

/** Reports a wrong value in a transform of zod. */
const refuse = (context: z.core.ParsePayload, input: unknown, message: string): never => {
  context.issues.push({ code: 'custom', message, input })
  return z.NEVER
}

/** Values from the environment are text: `'${PORT:-8080}'` is accepted for a number, in plain decimal notation. */
const numberFromText = (value: unknown): unknown =>
  typeof value === 'string' && /^\d{1,15}(\.\d{1,15})?$/.test(value) ? Number(value) : value

const booleanFromText = (value: unknown): unknown =>
  value === 'true' ? true : value === 'false' ? false : value

const wholeNumber = (minimum: number, maximum: number, error: string) =>
  z.preprocess(numberFromText, z.int({ error }).min(minimum, { error }).max(maximum, { error }))

export const oneOf = <const Words extends readonly [string, ...string[]]>(words: Words) =>
  z.enum(words, { error: `expected one of: ${words.join(', ')}` })

/** A duration; milliseconds after parsing. */
export const duration = z
  .string({ error: durationHint })
  .regex(durationPattern, durationHint)
  .transform((text) => parseDuration(text) ?? 0)

const rateHint = 'expected a rate of at most 100/s: 1/s, 10/m or 5/h; 0/s = none'

/** A rate; `ratePerSecond` reads it. */
export const rate = z
  .string({ error: rateHint })
  .refine((text) => (ratePerSecond(text) ?? Number.POSITIVE_INFINITY) <= 100, rateHint)

/** Two of these and some seconds fit into a timer of Node (2^31 - 1 ms): the times of a drain are added. */
const longestWait = '12d'
const longestWaitMs = parseDuration(longestWait) ?? 0

/** A duration for a timer; timers with a longer one fire at once. */
export const wait = duration.refine(
  (ms) => ms <= longestWaitMs,
  `expected at most ${longestWait}: the longest time of a timer`,
)

type InMs<Section, Key> = {
  [Name in keyof Section as Name extends Key & string ? `${Name}Ms` : Name]: Section[Name]
}

/** For `transform` of a section: puts the unit of its durations into their names, `timeout` to `timeoutMs`. */
export const inMs = <const Key extends string>(...durations: readonly Key[]) => {
  const names: readonly string[] = durations
  return <Section extends Readonly<Record<Key, number>>>(section: Section) =>
    Object.fromEntries(
      Object.entries(section).map(([name, value]) => [names.includes(name) ? `${name}Ms` : name, value]),
    ) as InMs<Section, Key>
}

/** A size; bytes after parsing. */
export const size = z
  .union(
    [
      wholeNumber(0, Number.MAX_SAFE_INTEGER, sizeHint),
      z.string({ error: sizeHint }).regex(sizePattern, sizeHint),
    ],
    {
      error: sizeHint,
    },
  )
  .transform((value) => (typeof value === 'number' ? value : (parseSize(value) ?? 0)))

/** A whole number within inclusive bounds. */
export const whole = (minimum: number, maximum: number) =>
  wholeNumber(minimum, maximum, `expected a whole number from ${minimum} to ${maximum}`)

const shareHint = { error: 'expected a share from 0 to 1, e.g. 0.2' }

/** A share between 0 and 1. */
export const share = z.preprocess(numberFromText, z.number(shareHint).min(0, shareHint).max(1, shareHint))

export const flag = z.preprocess(booleanFromText, z.boolean({ error: 'expected true or false' }))

export const flagOr = <const Word extends string>(word: Word) =>
  z.preprocess(
    booleanFromText,
    z.union([z.boolean(), z.literal(word)], { error: `expected true, false or "${word}"` }),
  )

const accessMembers = z.strictObject({
  requests: oneOf(['all', 'sample'])
    .prefault('all')
    .describe('`sample` = all requests except hits, and a share of the hits'),
  path: flag.prefault(false).describe('Path and query as received; values of secret parameters are hidden'),
  client: flagOr('full')
    .prefault(false)
    .describe('`true` = network of the client address (IPv4 /24, IPv6 /48), `full` = the whole address'),
  userAgent: flag.prefault(false).describe('`User-Agent`, at most 200 characters'),
  target: flag.prefault(false).describe('Upstream target of the last attempt'),
})

const noMembers = { path: false, client: 'none', userAgent: false, target: false } as const

/** Which requests are logged, and with which members: `true`, `false` and `sample` have none of those that are optional. */
export const accessLog = z
  .preprocess(
    booleanFromText,
    z.union([z.boolean(), z.literal('sample'), accessMembers], {
      error: 'expected true, false, "sample", or members such as { path: true }',
    }),
  )
  .transform((value) => {
    if (value === 'sample') return { ...noMembers, requests: value }
    if (typeof value === 'boolean') return { ...noMembers, requests: value ? 'all' : 'none' } as const
    const { client, ...members } = value
    return { ...members, client: client === 'full' ? client : client ? 'network' : 'none' } as const
  })

const statusHint = 'expected statuses from 200 to 599, e.g. 200-399, or 200,204, or 200-299,401'

/** Ranges of status codes; YAML parses a single one as a number. */
export const statusRanges = z
  .union([z.string(), z.int()], { error: statusHint })
  .transform((value, context) => {
    const ranges = parseStatusRanges(String(value))
    return ranges ?? refuse(context, value, statusHint)
  })

/** A port; 0 = any free one. */
export const port = whole(0, 65_535)

export const host = z
  .string({ error: 'expected a host name or an IP address' })
  .regex(/^(?![^:]*:[^:]*$)[A-Za-z0-9.:_-]{1,253}$/, 'expected a host name or an IP address, without a port')

/** A host that a service or a certificate is for, or `*.` and the end of such names; lower case after parsing. */
export const hostPattern = z
  .string({ error: 'expected a host name, e.g. blog.example or *.shop.example' })
  .check(refusedBy(hostPatternFault))
  .toLowerCase()

/** A secret: given here, from the environment, or read from a file (`file:/run/secrets/x`). */
export const secret = z.string({ error: 'expected a text' }).transform((text) => new Secret(text))

/** The document of a service: the loader puts it where its path stands. */
export const document = z
  .custom<ServiceDocument>(
    (value) => value instanceof ServiceDocument,
    'expected the path of an OpenAPI document',
  )
  // As the file has it.
  .meta({ type: 'string', minLength: 1 })

/** The mount of a service or the path of an upstream. */
export const pathPrefix = z.string({ error: 'expected a path' }).check(refusedBy(pathPrefixFault))

export const cidr = z.string({ error: 'expected an IP address or a CIDR block' }).check(refusedBy(cidrFault))

/** An http(s) origin, normalised after parsing, or the word `embedded`. */
export const target = z
  .string({ error: 'expected an origin, e.g. http://10.0.0.7:8080, or "embedded"' })
  .transform((text, context) => {
    if (text === 'embedded') return text
    const reading = readOrigin(text, 'http://10.0.0.7:8080', ' (basePath takes the path)')
    return reading.kind === 'read' ? reading.value : refuse(context, text, reading.message)
  })

/** An origin as browsers send it, or `*`. */
export const corsOrigin = z
  .string({ error: 'expected an origin, e.g. https://app.example.org, or "*"' })
  .check(
    refusedBy((text) => {
      if (text === '*') return undefined
      if (text.includes('*')) return 'an origin has no wildcard: write each one, or "*" alone'
      const reading = readOrigin(text, 'https://app.example.org', '')
      if (reading.kind === 'fault') return reading.message
      // Browsers send the ASCII serialisation and it is compared as text (Fetch standard, CORS check).
      return reading.value === text ? undefined : `browsers write this origin as ${reading.value}`
    }),
  )

/** The URL of the gateway for clients; '' = derived from `listen`. Without a trailing slash after parsing. */
export const publicUrl = z
  .string({ error: 'expected an absolute URL' })
  .check(refusedBy((text) => (text === '' ? undefined : publicUrlFault(text))))
  .transform((text) => text.replace(/\/$/, ''))

const httpUrlFault = (text: string): string | undefined =>
  text === '' || (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol))
    ? undefined
    : 'expected a URL that starts with http:// or https://'

/** An http(s) URL that may stay empty, which means "off". */
export const optionalUrl = z
  .string({ error: 'expected a URL, or an empty text for "off"' })
  .check(refusedBy(httpUrlFault))

const matchBy = <Match>(parse: (text: string) => Reading<Match>, example: string) =>
  z.string({ error: `expected methods and a path, e.g. "${example}"` }).transform((text, context) => {
    const reading = parse(text)
    return reading.kind === 'read' ? reading.value : refuse(context, text, reading.message)
  })

/** Methods and path of a cache rule; a RuleMatch after parsing. */
export const ruleMatch = matchBy(parseRuleMatch, 'GET /site/v2/**')

/** `query` and the name of an operation; a RuleMatch after parsing. */
export const queryMatch = matchBy(parseQueryMatch, 'query *')

/** Methods, or `*`, and path of a rate limit; a RuleMatch after parsing. */
export const routeMatch = matchBy(parseRouteMatch, 'POST /site/v2/**')

/** Methods, path and parameters of requests that change nothing, or the name of some; a HarmlessWrite after parsing. */
export const harmlessWrite = matchBy(parseHarmlessWrite, 'POST /acme/v1/ping')

/** A header name (RFC 9110 §5.1). */
export const headerName = z
  .string({ error: 'expected the name of a header' })
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/, 'expected the name of a header, e.g. X-Request-Id')

/** Headers that frame a message, belong to one connection, or describe the octets of the body; only the gateway can write them. */
const headersOfMessage: ReadonlySet<string> = new Set([
  'connection',
  'content-encoding',
  'content-length',
  'content-range',
  'date',
  'keep-alive',
  'proxy-authenticate',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** A response header that an operator may set or remove. */
export const responseHeaderName = headerName.check(
  refusedBy((name) =>
    headersOfMessage.has(name.toLowerCase())
      ? 'this header frames the message or belongs to the connection: only the gateway writes it'
      : undefined,
  ),
)

/** A header value (RFC 9110 §5.5) in ASCII. */
export const headerText = z
  .string({ error: 'expected a text' })
  .max(8_192, 'expected at most 8192 characters')
  .regex(/^[!-~](?:[\t -~]*[!-~])?$/, 'expected visible ASCII without spaces at the ends')

/** Oldest version of TLS, as Node names it after parsing. */
export const tlsVersion = z
  .enum(['1.2', '1.3'], { error: 'expected "1.2" or "1.3", in quotes' })
  .transform((version) => `TLSv${version}` as const)

/** A query parameter's name; `*` at its end matches any suffix. */
export const parameterName = z
  .string({ error: 'expected a parameter name' })
  .regex(/^[A-Za-z0-9_.[\]-]{1,64}\*?$/, 'expected a parameter name; "*" is allowed at the end')

/** Prefix of all keys in a store that is shared with other programs. */
export const keyPrefix = z.string({ error: 'expected a text' }).regex(/^[a-z0-9][a-z0-9_.-]{0,63}$/i, {
  error: 'expected 1 to 64 letters, digits, dots, hyphens and underscores',
})
