import { createHash, createHmac, timingSafeEqual } from 'node:crypto'

/** The parts of a request that are signed; `target` is the path with its query, exactly as sent. */
type SignedRequest = {
  readonly method: string
  readonly target: string
  readonly body: string | Buffer
}

/** Why a credential is refused. */
export type SignatureRefusal = 'malformed' | 'unknown-key' | 'expired' | 'wrong-hmac'

/** Clocks of two machines differ by less, and a request is not older when it arrives. */
const mostSecondsOff = 300

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Names a token without revealing it. */
export const keyOf = (token: string): string => digest(token).toString('hex').slice(0, 16)

const hmacOf = (token: string, { method, target, body }: SignedRequest, time: number): string =>
  createHmac('sha256', token).update(`${method}\n${target}\n${time}\n`).update(body).digest('hex')

/** The value of Trellis-Signature. */
export const signatureOf = (token: string, request: SignedRequest, nowMs: number): string => {
  const time = Math.floor(nowMs / 1000)
  return `key=${keyOf(token)}, time=${time}, hmac=${hmacOf(token, request, time)}`
}

const form = /^key=([0-9a-f]{16}), ?time=(\d{1,12}), ?hmac=([0-9a-f]{64})$/

const isSame = (one: string, other: string): boolean => timingSafeEqual(digest(one), digest(other))

type Refused = { readonly kind: 'refused'; readonly reason: SignatureRefusal }

/** The token that Trellis-Signature names, as far as that is known before the content has arrived. */
export const namedToken = (
  signature: string,
  tokens: readonly string[],
  nowMs: number,
):
  | { readonly kind: 'named'; readonly token: string; readonly time: number; readonly hmac: string }
  | Refused => {
  const [, key, time, hmac = ''] = form.exec(signature) ?? []
  if (key === undefined) return { kind: 'refused', reason: 'malformed' }
  const token = tokens.find((one) => keyOf(one) === key)
  if (token === undefined) return { kind: 'refused', reason: 'unknown-key' }
  const isCurrent = Math.abs(nowMs / 1000 - Number(time)) <= mostSecondsOff
  return isCurrent
    ? { kind: 'named', token, time: Number(time), hmac }
    : { kind: 'refused', reason: 'expired' }
}

/** Checks Trellis-Signature against the tokens that are known; gives the token that signed the request. */
export const verifiedToken = (
  signature: string,
  request: SignedRequest,
  tokens: readonly string[],
  nowMs: number,
): { readonly kind: 'verified'; readonly token: string } | Refused => {
  const named = namedToken(signature, tokens, nowMs)
  if (named.kind === 'refused') return named
  const { token, time, hmac } = named
  return isSame(hmac, hmacOf(token, request, time))
    ? { kind: 'verified', token }
    : { kind: 'refused', reason: 'wrong-hmac' }
}

/** The token that a bearer sends, in constant time for each of the tokens. */
export const tokenOfBearer = (authorization: string, tokens: readonly string[]): string | undefined => {
  const [, sent] = /^bearer +(\S{1,4096})$/i.exec(authorization) ?? []
  return sent === undefined ? undefined : tokens.find((token) => isSame(sent, token))
}
