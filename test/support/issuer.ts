import { createHash, createHmac, randomUUID } from 'node:crypto'
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import { type Origin, type Script, startOrigin } from './origin.ts'

/** A pair of keys, with the public one as a JWKS lists it. */
export type IssuerKey = { readonly kid: string; readonly secret: CryptoKey; readonly jwk: JWK }

export const createKey = async (kid: string, algorithm = 'ES256'): Promise<IssuerKey> => {
  const { publicKey, privateKey } = await generateKeyPair(algorithm, { extractable: true })
  return {
    kid,
    secret: privateKey,
    jwk: { ...(await exportJWK(publicKey)), kid, alg: algorithm, use: 'sig' },
  }
}

type Claims = Readonly<Record<string, unknown>>

/** What a token says, and how it is made; everything is in order unless given. */
export type TokenParts = {
  readonly claims?: Claims
  readonly header?: Readonly<Record<string, unknown>>
  /** Seconds from now. */
  readonly expiresIn?: number
}

const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** An issuer of tokens, and the server with its public keys. */
export type Issuer = {
  readonly server: Origin
  readonly url: string
  /** The keys that it signs with, first, and that it lists. */
  keys: IssuerKey[]
  /** Responses with the list of keys. */
  readonly lists: Script
  token(parts?: TokenParts, key?: IssuerKey): Promise<string>
  /** The three parts of a token as they are, without a good signature. */
  forged(header: Claims, claims?: Claims, signature?: string): string
  /** With a symmetric signature by any text. */
  symmetric(secret: string, header?: Claims): string
  close(): Promise<void>
}

export const issuerName = 'https://id.example'
export const audience = 'blog'

export const startIssuer = async (keys: readonly IssuerKey[]): Promise<Issuer> => {
  const inOrder = (): Claims => {
    const now = Math.floor(Date.now() / 1000)
    return { iss: issuerName, aud: audience, sub: 'ann', exp: now + 300, jti: randomUUID() }
  }
  const lists: Script = (_, wire) =>
    wire.respond({
      headers: { 'Content-Type': 'application/json' },
      content: JSON.stringify({ keys: issuer.keys.map(({ jwk }) => jwk) }),
    })
  const server = await startOrigin(lists)
  const issuer: Issuer = {
    server,
    url: `${server.origin}/jwks.json`,
    keys: [...keys],
    lists,
    token: ({ claims = {}, header = {}, expiresIn } = {}, key = issuer.keys[0]) => {
      if (key === undefined) throw new TypeError('the issuer has no key')
      const exp = expiresIn === undefined ? {} : { exp: Math.floor(Date.now() / 1000) + expiresIn }
      return new SignJWT({ ...inOrder(), ...exp, ...claims })
        .setProtectedHeader({ alg: String(key.jwk.alg), kid: key.kid, ...header })
        .sign(key.secret, { crit: { 'urn:example:unknown': true } })
    },
    forged: (header, claims = {}, signature = 'c2lnbmF0dXJl') =>
      `${base64(header)}.${base64({ ...inOrder(), ...claims })}.${signature}`,
    symmetric: (secret, header = { alg: 'HS256', kid: issuer.keys[0]?.kid }) => {
      const content = `${base64(header)}.${base64(inOrder())}`
      return `${content}.${createHmac('sha256', secret).update(content).digest('base64url')}`
    },
    close: () => server.close(),
  }
  return issuer
}

/** A line of a file of API keys. */
export const keyLine = (name: string, key: string): string =>
  `${name}:${createHash('sha256').update(key).digest('hex')}`
