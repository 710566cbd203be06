import * as z from 'zod'
import { isJsonObject, parsedJson } from '../http/json-text.ts'
import { fault, type Reading } from './fault.ts'
import { cidr, inMs, oneOf, refusedBy, wait } from './schema/leaves.ts'
import { Secret } from './secret.ts'

/** A key of a JWKS (RFC 7517 §4); the members that matter are those that `jose` reads. */
export type PublicJwk = { readonly kty: 'RSA' | 'EC' | 'OKP'; readonly [member: string]: unknown }

const maxKeys = 100

/** Secret and private keys verify nothing here: a token signed with one of them could be made by its readers. */
const isPublicJwk = (key: unknown): key is PublicJwk =>
  isJsonObject(key) &&
  (key['kty'] === 'RSA' || key['kty'] === 'EC' || key['kty'] === 'OKP') &&
  key['d'] === undefined

/** Reads a JWKS (RFC 7517 §5); keys that are not public ones are left out. */
export const readJwks = (text: string): Reading<readonly PublicJwk[]> => {
  // RFC 8259 §8.1: a reader may ignore a byte order mark.
  const document = parsedJson(text.replace(/^\ufeff/, ''))
  const keys = isJsonObject(document) ? document['keys'] : undefined
  if (!Array.isArray(keys)) return fault('expected a JWKS: JSON with a list "keys" (RFC 7517)')
  if (keys.length > maxKeys) return fault(`a JWKS has at most ${maxKeys} keys`)
  return { kind: 'read', value: keys.filter(isPublicJwk) }
}

/** One API key: the name of its owner, and SHA-256 of the key in hexadecimal digits. */
export type ApiKey = { readonly name: string; readonly digest: string }

const keyLine = /^([A-Za-z0-9._-]{1,64}):([0-9A-Fa-f]{64})$/

/** Reads a file of API keys: `name:sha256-hex` in each line; empty lines and lines that begin with `#` are skipped. */
export const readApiKeys = (text: string): Reading<readonly ApiKey[]> => {
  const keys = new Map<string, ApiKey>()
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === '' || line.startsWith('#')) continue
    const [, name = '', hex = ''] = keyLine.exec(line.trim()) ?? []
    const digest = hex.toLowerCase()
    if (name === '')
      return fault(
        `line ${index + 1} of the file is not name:sha256-hex, as of echo "NAME:$(printf %s KEY | sha256sum | cut -c 1-64)"`,
      )
    if (keys.has(digest)) return fault(`line ${index + 1} of the file repeats the key of another line`)
    keys.set(digest, { name, digest })
  }
  return { kind: 'read', value: [...keys.values()] }
}

/** Asymmetric only: with HS256 everyone who can verify a token can also make one. */
const algorithms = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
] as const

const algorithm = z.enum(algorithms, {
  error: `expected one of: ${algorithms.join(', ')}; symmetric algorithms are not accepted`,
})

/** Headers of HTTP itself and those that the gateway writes: a claim or a credential in their place would change the request. */
const reserved = [
  /^(?:host|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|via|http2-settings|proxy-.*)$/,
  /^(?:cookie|origin|referer|range|if-.*|accept.*|content-.*|cache-control|pragma|user-agent|date)$/,
  /^(?:forwarded.*|x-forwarded.*|x-real-ip|x-request-id|x-http-method.*|x-method.*|x-wp-nonce)$/,
  /^(?:trace.*|baggage|idempotency-key|x-request-deadline-ms)$/,
]

const header = z
  .string({ error: 'expected the name of a request header' })
  .regex(/^[A-Za-z\d-]{1,64}$/, {
    error: 'expected the name of a request header, e.g. X-User-Id',
    abort: true,
  })
  .toLowerCase()
  .refine(
    (name) => !reserved.some((pattern) => pattern.test(name)),
    'has its own meaning in HTTP; use another header',
  )

const ownHeader = header.refine(
  (name) => name !== 'authorization',
  'cannot be Authorization; use another header',
)

const jwksFault = (text: string): string | undefined => {
  if (!/^https?:/i.test(text)) {
    const reading = readJwks(text)
    if (reading.kind === 'fault') return `${reading.message}, an http(s) URL, or file:/path/to/file`
    return reading.value.length === 0 ? 'the JWKS has no public key' : undefined
  }
  if (!URL.canParse(text)) return 'expected an absolute URL'
  const { username, password } = new URL(text)
  return username === '' && password === '' ? undefined : 'the URL must not carry credentials'
}

const apiKeysFault = (text: string): string | undefined => {
  const reading = readApiKeys(text)
  if (reading.kind === 'fault') return reading.message
  return reading.value.length === 0 ? 'the file has no key' : undefined
}

const name = (meaning: string) =>
  z
    .string({ error: `expected ${meaning}` })
    .min(1, `expected ${meaning}`)
    .max(1_000)

const required = oneOf(['all', 'writes', 'never']).describe(
  'Requests that need it; `writes` = every method except GET, HEAD, OPTIONS and QUERY, plus `x-trellis-writes`, minus `x-trellis-safe`',
)

const jwt = z
  .strictObject({
    jwks: z
      .string({ error: 'expected a URL, or file:/path/to/file' })
      .check(refusedBy(jwksFault))
      .describe("JWKS with the issuer's public keys: a URL, or `file:/path`"),
    refresh: wait
      .refine((ms) => ms >= 1_000, 'must be at least 1s')
      .prefault('5m')
      .describe(
        'Age at which the next token makes Trellis fetch the keys again; an unknown key does so at most every 10s',
      ),
    issuer: name('the issuer of the tokens').describe('Required `iss`'),
    audience: z
      .union([name('an audience'), z.array(name('an audience')).min(1).max(16)], {
        error: 'expected a text, or a list of at most 16 texts',
      })
      .transform((audiences) => [audiences].flat())
      .describe('Required `aud`; one of them, if a list'),
    algorithms: z
      .array(algorithm)
      .min(1)
      .prefault(['RS256', 'ES256'])
      .describe('Accepted signature algorithms, asymmetric only'),
    leeway: wait
      .refine((ms) => ms <= 600_000, 'must be at most 10m')
      .prefault('30s')
      .describe('Clock difference allowed for `exp` and `nbf`'),
    header: header.prefault('Authorization').describe('Header with the token'),
    forward: z
      .record(z.string().regex(/^[\x21-\x7e]{1,64}$/, 'expected the name of a claim'), ownHeader)
      .prefault({})
      .describe('Claims sent upstream, each with its header; clients cannot set these headers'),
    required: required.prefault('all'),
  })
  .transform(inMs('leeway', 'refresh'))

const apiKeys = z.strictObject({
  header: ownHeader.prefault('X-Api-Key').describe('Header with the key; not forwarded'),
  file: z
    .string({ error: 'expected the path of a file' })
    .check(refusedBy(apiKeysFault))
    .transform((text) => new Secret(text))
    .describe('File with a line `name:sha256-hex` for each key'),
  required: required.prefault('all'),
})

/** Who may use a service. */
export const access = z
  .strictObject({
    allow: z
      .array(cidr)
      .max(1_000)
      .prefault([])
      .describe('Client addresses (CIDR) that may use the service; [] = all'),
    deny: z
      .array(cidr)
      .max(1_000)
      .prefault([])
      .describe('Client addresses that may not; takes precedence over `allow`'),
    jwt: jwt.optional(),
    apiKeys: apiKeys.optional(),
  })
  .optional()
