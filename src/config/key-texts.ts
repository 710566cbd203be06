/** A key of a JWKS (RFC 7517 §4); the members that matter are those that `jose` reads. */
export type PublicJwk = { readonly kty: 'RSA' | 'EC' | 'OKP'; readonly [member: string]: unknown }

type Reading<Value> =
  | { readonly kind: 'read'; readonly value: Value }
  | { readonly kind: 'fault'; readonly message: string }

const fault = (message: string): Reading<never> => ({ kind: 'fault', message })

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const mostKeys = 100

/** Secret and private keys verify nothing here: a token signed with one of them could be made by its readers. */
const isPublicJwk = (key: unknown): key is PublicJwk =>
  isObject(key) &&
  (key['kty'] === 'RSA' || key['kty'] === 'EC' || key['kty'] === 'OKP') &&
  key['d'] === undefined

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Reads a JWKS (RFC 7517 §5); keys that are not public ones are left out. */
export const readJwks = (text: string): Reading<readonly PublicJwk[]> => {
  const document = parsed(text)
  const keys = isObject(document) ? document['keys'] : undefined
  if (!Array.isArray(keys)) return fault('expected a JWKS: JSON with a list "keys" (RFC 7517)')
  if (keys.length > mostKeys) return fault(`a JWKS has at most ${mostKeys} keys`)
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
    if (name === '') return fault(`line ${index + 1} of the file is not name:sha256-hex`)
    if (keys.has(digest)) return fault(`line ${index + 1} of the file repeats the key of another line`)
    keys.set(digest, { name, digest })
  }
  return { kind: 'read', value: [...keys.values()] }
}
