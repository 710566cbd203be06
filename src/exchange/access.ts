import { type ErrorCode, GatewayError } from '../errors.ts'
import type { RequestHeaders } from '../http/headers/header-lines.ts'
import { whenKnown } from '../http/message.ts'

/** Where a refusal comes from: the address, a token, or an API key. Each has its error and, for 401, its challenge (RFC 9110 §11.6.1). */
type RefusalFacts = {
  readonly code: ErrorCode
  readonly challenge?: 'Bearer' | 'ApiKey'
  readonly detail?: string
}

const badToken = (detail: string): RefusalFacts => ({
  code: 'credential_invalid',
  challenge: 'Bearer',
  detail,
})

/** Every reason for which `access` refuses a request; also the values of a metric label. */
const refusals = {
  address: { code: 'access_denied' },
  'token-missing': { code: 'credential_missing', challenge: 'Bearer' },
  'token-malformed': badToken('The token is malformed.'),
  'token-too-large': badToken('The token is too large.'),
  algorithm: badToken('The algorithm of the token is not accepted.'),
  'unknown-key': badToken('The key of the token is unknown.'),
  signature: badToken('The signature of the token is wrong.'),
  expired: badToken('The token has expired.'),
  'not-yet-valid': badToken('The token is not valid yet.'),
  issuer: badToken('The issuer of the token is not accepted.'),
  audience: badToken('The token is for another audience.'),
  claim: badToken('A claim of the token is missing or cannot be used.'),
  'keys-unavailable': { code: 'token_keys_unavailable' },
  'api-key-missing': { code: 'api_key_missing', challenge: 'ApiKey' },
  'api-key-unknown': { code: 'credential_invalid', challenge: 'ApiKey', detail: 'The API key is unknown.' },
} as const satisfies Record<string, RefusalFacts>

export type AccessRefusal = keyof typeof refusals

export const accessRefusals = Object.keys(refusals) as readonly AccessRefusal[]

/** After a failure the issuer's keys are fetched again when this time has passed. */
const keysRetrySeconds = 5

/** The error for a client; a token that was sent and refused is `invalid_token` (RFC 6750 §3). */
export const accessError = (service: string, reason: AccessRefusal): GatewayError => {
  const { code, challenge, detail }: RefusalFacts = refusals[reason]
  const invalid =
    challenge === 'Bearer' && detail !== undefined
      ? `, error="invalid_token", error_description="${detail}"`
      : ''
  return new GatewayError(code, {
    detail,
    headers: challenge === undefined ? [] : ['WWW-Authenticate', `${challenge} realm="${service}"${invalid}`],
    retryAfterSeconds: code === 'token_keys_unavailable' ? keysRetrySeconds : undefined,
  })
}

export type Identity = {
  /** Identifies the verified credentials, without containing them: part of the key of per-credential responses. */
  readonly credential: string
  /** The upstream gets the token, so its response may depend on it. An API key is not forwarded. */
  readonly hasToken: boolean
  readonly apiKey: string | undefined
  /** Short claims of the token, as text: rate limits count by them. */
  readonly claims: ReadonlyMap<string, string>
  /** Request headers made of claims, by lower-case name. */
  readonly headers: ReadonlyMap<string, string>
}

export type Required = 'all' | 'writes' | 'never'

export type CredentialVerdict =
  | { readonly kind: 'verified'; readonly identity: Identity | undefined }
  | { readonly kind: 'refused'; readonly reason: AccessRefusal }

/** Who may use a service (`services.*.access`). Implemented in src/server/access.ts. */
export type Access = {
  admits(address: string): boolean
  /** Verifies the credentials that are there. Synchronous for a token that was verified before. */
  verify(headers: RequestHeaders): CredentialVerdict | Promise<CredentialVerdict>
  readonly required: { readonly token: Required; readonly apiKey: Required }
  /** Headers of clients that are never forwarded: the API key, and those that the gateway makes of claims. */
  readonly stripped: ReadonlySet<string>
  readonly credentialHeaders: readonly string[]
  readonly claimHeaders: readonly string[]
}

const appliesTo = (required: Required, isWrite: boolean): boolean =>
  required === 'all' || (required === 'writes' && isWrite)

export const lackingCredential = (
  { required }: Pick<Access, 'required'>,
  identity: Identity | undefined,
  isWrite: boolean,
): AccessRefusal | undefined => {
  if (appliesTo(required.apiKey, isWrite) && identity?.apiKey === undefined) return 'api-key-missing'
  return appliesTo(required.token, isWrite) && identity?.hasToken !== true ? 'token-missing' : undefined
}

type AccessCheck =
  | { readonly kind: 'allowed'; readonly identity: Identity | undefined }
  | { readonly kind: 'refused'; readonly reason: AccessRefusal }

/** What `access` says of a client before it is known whether its request writes. */
export const checkAccess = (
  access: Access,
  address: string,
  headers: RequestHeaders,
): AccessCheck | Promise<AccessCheck> => {
  if (!access.admits(address)) return { kind: 'refused', reason: 'address' }
  return whenKnown(access.verify(headers), (verdict): AccessCheck => {
    if (verdict.kind === 'refused') return verdict
    const { identity } = verdict
    const reason = lackingCredential(access, identity, false)
    return reason === undefined ? { kind: 'allowed', identity } : { kind: 'refused', reason }
  })
}

/** Without the keys of the issuer it is not known whether a token still counts: what has begun goes on. */
export const isRevoked = (check: AccessCheck): boolean =>
  check.kind === 'refused' && check.reason !== 'keys-unavailable'
