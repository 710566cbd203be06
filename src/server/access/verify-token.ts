import { createHash, hash } from 'node:crypto'
import http, { type IncomingMessage } from 'node:http'
import https from 'node:https'
import {
  createLocalJWKSet,
  decodeProtectedHeader,
  errors,
  type JWTPayload,
  type JWTVerifyOptions,
  type JWTVerifyResult,
  jwtVerify,
  type LocalJWKSet,
} from 'jose'
import type { Clock } from '../../clock.ts'
import { type PublicJwk, readJwks } from '../../config/access.ts'
import type { AccessConfig } from '../../config/config.ts'
import type { AccessRefusal, Identity } from '../../exchange/access.ts'
import { readBody } from '../../http/bodies/read-body.ts'
import { createRecentValues } from '../../http/memo.ts'
import { discard } from '../../http/message.ts'
import { systemLookup } from '../../system-lookup.ts'
import type { JwksResult } from '../events.ts'

export type Jwks = {
  /** Undefined until they have been fetched once. */
  readonly keys: LocalJWKSet | undefined
  /** Changes with the keys, so that tokens verified with other keys are verified again. */
  readonly version: number
  /** To be called for each token: fetches keys that are old. The promise is there when the keys must not be used before it. */
  refreshWhenOld(): Promise<void> | undefined
  /** For a token whose key is unknown: the issuer may have a new one. Undefined when the last such fetch was a moment ago. */
  refreshForUnknownKey(): Promise<void> | undefined
}

const maxBytes = 64 * 1024
const timeoutMs = 5_000
/** Unknown keys of all clients together cause one fetch in this time. */
const unknownKeyPauseMs = 10_000
/** After a failure. */
const retryPauseMs = 5_000

class JwksFailure extends Error {
  readonly result: Exclude<JwksResult, 'ok'>
  constructor(result: Exclude<JwksResult, 'ok'>) {
    super(result)
    this.result = result
  }
}

/** Over node:http: in the global fetch of Node 20 a failed assertion could end the process (nodejs/undici#5360). */
const openJwks = (url: string, signal: AbortSignal): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const { get } = /^https:/i.test(url) ? https : http
    const headers = { accept: 'application/json', connection: 'close' }
    get(url, { signal, headers, lookup: systemLookup }, resolve).on('error', reject)
  })

/** Fetches the JWKS. No redirect is followed: the configuration names the host. */
const fetchText = async (url: string): Promise<string> => {
  const signal = AbortSignal.timeout(timeoutMs)
  try {
    const response = await openJwks(url, signal)
    const reading = response.statusCode === 200 ? await readBody(response, maxBytes) : undefined
    if (reading?.kind === 'whole') return reading.content.toString()
    discard(response)
    throw new JwksFailure(reading === undefined ? 'status' : 'too-large')
  } catch (error) {
    if (error instanceof JwksFailure) throw error
    throw new JwksFailure(signal.aborted ? 'timeout' : 'unreachable')
  }
}

const keysOf = (keys: readonly PublicJwk[]): LocalJWKSet => createLocalJWKSet({ keys: [...keys] })

/** Keys of a file: they change with the configuration. */
const fixedJwks = (text: string): Jwks => {
  const reading = readJwks(text)
  return {
    keys: keysOf(reading.kind === 'read' ? reading.value : []),
    version: 0,
    refreshWhenOld: () => undefined,
    refreshForUnknownKey: () => undefined,
  }
}

export type JwksOptions = {
  /** A URL, or the text of a JWKS. */
  readonly source: string
  readonly refreshMs: number
  readonly clock: Pick<Clock, 'monotonic'>
  readonly report: (result: JwksResult) => void
}

/**
 * Keys of a URL: one fetch at a time, bounded in time and size. They are kept while the issuer cannot be reached, because its
 * tokens are still good.
 */
const fetchedJwks = ({ source, refreshMs, clock, report }: JwksOptions): Jwks => {
  let keys: LocalJWKSet | undefined
  let version = 0
  let digest = ''
  let fetching: Promise<void> | undefined
  let fetchedMs = Number.NEGATIVE_INFINITY
  let failedMs = Number.NEGATIVE_INFINITY
  let unknownKeyMs = Number.NEGATIVE_INFINITY

  const attempt = async (): Promise<void> => {
    try {
      const text = await fetchText(source)
      const reading = readJwks(text)
      if (reading.kind === 'fault') throw new JwksFailure('not-jwks')
      const newDigest = createHash('sha256').update(text).digest('hex')
      if (newDigest !== digest) {
        keys = keysOf(reading.value)
        version += 1
        digest = newDigest
      }
      fetchedMs = clock.monotonic()
      failedMs = Number.NEGATIVE_INFINITY
      report('ok')
    } catch (error) {
      failedMs = clock.monotonic()
      report(error instanceof JwksFailure ? error.result : 'not-jwks')
    } finally {
      fetching = undefined
    }
  }
  const refresh = (): Promise<void> => {
    fetching ??= attempt()
    return fetching
  }
  const hasFailedWithin = (ms: number): boolean => clock.monotonic() - failedMs < ms
  const hasJustFailed = (): boolean => hasFailedWithin(retryPauseMs)
  /** The keys are in use whatever their age: no request waits five seconds for another failure. */
  const isFailing = (): boolean =>
    keys !== undefined && hasFailedWithin(2 * Math.max(refreshMs, timeoutMs + retryPauseMs))

  void refresh()
  return {
    get keys() {
      return keys
    },
    get version() {
      return version
    },
    refreshWhenOld: () => {
      const ageMs = clock.monotonic() - fetchedMs
      if (ageMs < refreshMs) return undefined
      const refreshed = fetching ?? (hasJustFailed() ? undefined : refresh())
      // Used a while longer, so that requests of a busy service never wait; after a long pause a removed key must not be used once more.
      return ageMs < 2 * refreshMs || isFailing() ? undefined : refreshed
    },
    refreshForUnknownKey: () => {
      if (fetching !== undefined) return fetching
      if (hasJustFailed() || clock.monotonic() - unknownKeyMs < unknownKeyPauseMs) return undefined
      unknownKeyMs = clock.monotonic()
      return refresh()
    },
  }
}

export const createJwks = (options: JwksOptions): Jwks =>
  /^https?:/i.test(options.source) ? fetchedJwks(options) : fixedJwks(options.source)

export type JwtConfig = NonNullable<AccessConfig['jwt']>

/** The part of an identity that a token gives. */
export type TokenIdentity = Pick<Identity, 'credential' | 'claims' | 'headers'>

export type TokenVerdict =
  | { readonly kind: 'verified'; readonly identity: TokenIdentity }
  | { readonly kind: 'refused'; readonly reason: AccessRefusal }

export type TokenVerifier = {
  /** Synchronous for a token that was verified, or refused, before. */
  verify(token: string): TokenVerdict | Promise<TokenVerdict>
}

/** A verdict holds until a time, and as long as the keys are the same. */
type CachedVerdict = { readonly verdict: TokenVerdict; readonly untilMs: number; readonly keys: number }

const maxTokenCharacters = 8_192
const maxVerified = 8_192
/** Apart from the verified ones, so that a flood of bad tokens displaces only bad ones. */
const maxRefused = 4_096

const maxClaims = 32
const maxClaimCharacters = 256
const maxHeaderCharacters = 1_024

const tokenForm = /^[\w-]+\.[\w-]+\.[\w-]+$/
/** Visible ASCII, with spaces inside: no control character reaches a header. */
const headerForm = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/

const refused = (reason: AccessRefusal): TokenVerdict => ({ kind: 'refused', reason })

/** A number beyond 2^53 has no text: it may have been rounded, to that of another user. */
const scalarText = (value: unknown): string | undefined =>
  typeof value === 'string' ||
  typeof value === 'boolean' ||
  (typeof value === 'number' && Math.abs(value) <= Number.MAX_SAFE_INTEGER)
    ? String(value)
    : undefined

/** A claim as the value of a header: a list with commas in between. Undefined for anything that could be read as something else. */
const headerText = (value: unknown): string | undefined => {
  const texts = (Array.isArray(value) ? value : [value]).map(scalarText)
  if (texts.some((text) => text === undefined || (Array.isArray(value) && text.includes(','))))
    return undefined
  const text = texts.join(',')
  return text.length <= maxHeaderCharacters && (text === '' || headerForm.test(text)) ? text : undefined
}

/** The headers for the upstream, or undefined when a claim cannot be one: without its header the upstream would take the user for another. */
const headersOf = (
  payload: JWTPayload,
  forward: JwtConfig['forward'],
): ReadonlyMap<string, string> | undefined => {
  const headers = new Map<string, string>()
  for (const [claim, header] of Object.entries(forward)) {
    if (!Object.hasOwn(payload, claim)) continue
    const text = headerText(payload[claim])
    if (text === undefined) return undefined
    if (text !== '') headers.set(header, text)
  }
  return headers
}

const shortClaims = (payload: JWTPayload): ReadonlyMap<string, string> =>
  new Map(
    Object.entries(payload)
      .slice(0, maxClaims)
      .flatMap(([name, value]) => {
        const text = scalarText(value)
        return name.length <= 64 && text !== undefined && text.length <= maxClaimCharacters
          ? [[name, text] as const]
          : []
      }),
  )

const claimReasons: Readonly<Record<string, AccessRefusal>> = {
  iss: 'issuer',
  aud: 'audience',
  nbf: 'not-yet-valid',
}

/** Why the library refuses a token; anything unforeseen counts as malformed. */
const reasonOf = (error: unknown): AccessRefusal => {
  if (error instanceof errors.JWTExpired) return 'expired'
  if (error instanceof errors.JWTClaimValidationFailed) return claimReasons[error.claim] ?? 'claim'
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'signature'
  if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys) {
    return 'unknown-key'
  }
  return error instanceof errors.JOSEAlgNotAllowed ? 'algorithm' : 'token-malformed'
}

/** Refuses what needs no signature to be refused. Only `alg`, `kid` and `crit` of the header matter: keys in it are never used. */
const refusalByForm = (token: string, algorithms: readonly string[]): AccessRefusal | undefined => {
  if (!tokenForm.test(token)) return 'token-malformed'
  try {
    const { alg, kid, crit } = decodeProtectedHeader(token)
    if (typeof alg !== 'string' || !algorithms.includes(alg)) return 'algorithm'
    return crit === undefined && (kid === undefined || typeof kid === 'string')
      ? undefined
      : 'token-malformed'
  } catch {
    return 'token-malformed'
  }
}

/** An issuer has few keys of one kind: each that is tried costs a verification. */
const maxKeysTried = 8

/** Without `kid`, or where keys share one, several keys fit: each is tried (RFC 7515 appendix D). */
const verifyByAnyKey = async (
  token: string,
  keys: LocalJWKSet,
  options: JWTVerifyOptions,
): Promise<JWTVerifyResult> => {
  try {
    return await jwtVerify(token, keys, options)
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error
    let failure: unknown = error
    let tried = 0
    for await (const key of error) {
      tried += 1
      if (tried > maxKeysTried) break
      try {
        return await jwtVerify(token, key, options)
      } catch (keyError) {
        // Any other failure is about the claims of a token whose signature is right.
        if (!(keyError instanceof errors.JWSSignatureVerificationFailed)) throw keyError
        failure = keyError
      }
    }
    throw failure
  }
}

const mayBeOfNewKey = (token: string, reason: AccessRefusal): boolean =>
  reason === 'unknown-key' || (reason === 'signature' && decodeProtectedHeader(token).kid === undefined)

/** Verifies tokens (RFC 7519, RFC 8725), each of them once: verdicts are remembered by a digest of the token. */
export const createTokenVerifier = (
  config: Omit<JwtConfig, 'jwks' | 'header' | 'required'>,
  jwks: Jwks,
  clock: Clock,
): TokenVerifier => {
  const verified = createRecentValues<CachedVerdict>(maxVerified)
  const refusals = createRecentValues<CachedVerdict>(maxRefused)
  const inProgress = new Map<string, Promise<TokenVerdict>>()

  const check = async (token: string, digest: string): Promise<TokenVerdict> => {
    if (jwks.keys === undefined) return refused('keys-unavailable')
    const keys = jwks.version
    const remember = (reason: AccessRefusal): TokenVerdict => {
      const verdict = refused(reason)
      // These may change with time alone; without `kid` the issuer may have signed with a new key.
      const mayChange = reason === 'not-yet-valid' || mayBeOfNewKey(token, reason)
      if (!mayChange) {
        refusals.set(digest, { verdict, untilMs: Number.POSITIVE_INFINITY, keys })
      }
      return verdict
    }
    try {
      const { payload } = await verifyByAnyKey(token, jwks.keys, {
        algorithms: [...config.algorithms],
        issuer: config.issuer,
        audience: [...config.audience],
        clockTolerance: config.leewayMs / 1_000,
        currentDate: new Date(clock.now()),
        requiredClaims: ['exp'],
      })
      const headers = headersOf(payload, config.forward)
      if (headers === undefined) return remember('claim')
      const verdict: TokenVerdict = {
        kind: 'verified',
        identity: { credential: `token ${digest}`, claims: shortClaims(payload), headers },
      }
      verified.set(digest, { verdict, untilMs: (payload.exp ?? 0) * 1_000 + config.leewayMs, keys })
      return verdict
    } catch (error) {
      return remember(reasonOf(error))
    }
  }

  const checkWithNewKeys = async (
    token: string,
    digest: string,
    refreshed: Promise<void> | undefined,
  ): Promise<TokenVerdict> => {
    await refreshed
    const verdict = await check(token, digest)
    if (verdict.kind !== 'refused' || !mayBeOfNewKey(token, verdict.reason)) return verdict
    const fetched = jwks.refreshForUnknownKey()
    if (fetched === undefined) return verdict
    await fetched
    return check(token, digest)
  }

  return {
    verify: (token) => {
      if (token.length > maxTokenCharacters) return refused('token-too-large')
      const refreshed = jwks.refreshWhenOld()
      const digest = hash('sha256', token, 'base64url')
      if (refreshed === undefined) {
        const entry = verified.get(digest) ?? refusals.get(digest)
        if (entry !== undefined && entry.keys === jwks.version && clock.now() < entry.untilMs) {
          return entry.verdict
        }
      }
      const reason = refusalByForm(token, config.algorithms)
      if (reason !== undefined) return refused(reason)
      const running = inProgress.get(digest)
      if (running !== undefined) return running
      const checking = checkWithNewKeys(token, digest, refreshed).finally(() => inProgress.delete(digest))
      inProgress.set(digest, checking)
      return checking
    },
  }
}
