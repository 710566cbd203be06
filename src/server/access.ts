import { createHash } from 'node:crypto'
import { isIP } from 'node:net'
import type { Clock } from '../clock.ts'
import { readApiKeys } from '../config/access.ts'
import type { AccessConfig } from '../config/config.ts'
import { sameSettings } from '../config/same-settings.ts'
import type { Access, CredentialVerdict, Identity } from '../exchange/access.ts'
import { jwtSegments } from '../http/headers/credential-headers.ts'
import { type RequestHeaders, requestHeader } from '../http/headers/header-lines.ts'
import { whenKnown } from '../http/message.ts'
import { createAddressList } from './access/client-address.ts'
import type { JwtConfig, TokenIdentity, TokenVerdict, TokenVerifier } from './access/verify-token.ts'
import type { AccessEvent } from './events.ts'

type ApiKeysConfig = NonNullable<AccessConfig['apiKeys']>

const noClaims: ReadonlyMap<string, string> = new Map()

/** Admits addresses: `deny` takes precedence; without `allow` every other address is admitted. A text that is not an address matches neither list. */
const createAddressCheck = ({ allow, deny }: AccessConfig): ((address: string) => boolean) => {
  if (allow.length === 0 && deny.length === 0) return () => true
  const isDenied = createAddressList(deny)
  const isAllowed = allow.length === 0 ? () => true : createAddressList(allow)
  return (address) => isIP(address) !== 0 && !isDenied(address) && isAllowed(address)
}

const bearer = /^bearer(?: +|$)/i

/** `Bearer` where it is no part of a longer word, or in front of anything: some upstreams split a value on white space or commas. */
const namesBearer = /^\W*bearer|(?:^|[^\w+/=-])bearer(?![\w+/-])/i

/**
 * The token that was sent. Authorization may have another scheme than Bearer; then there is none, unless the value looks like a token
 * that some upstream would take: that counts as a malformed one.
 */
const tokenIn = (headers: RequestHeaders, header: string): string | undefined => {
  const value = requestHeader(headers, header)
  if (value === undefined) return undefined
  const scheme = bearer.exec(value)
  if (scheme !== null) return value.slice(scheme[0].length)
  if (header !== 'authorization') return value === '' ? undefined : value
  return namesBearer.test(value) || jwtSegments(value).length > 0 ? '' : undefined
}

const maxKeyCharacters = 512

/** Finds the name of a key by its digest: the time of the look-up reveals nothing about the keys. */
const createKeyLookup = ({ file }: ApiKeysConfig): ((key: string) => string | undefined) => {
  const reading = readApiKeys(file.reveal())
  const names = new Map(
    (reading.kind === 'read' ? reading.value : []).map(({ name, digest }) => [digest, name]),
  )
  return (key) =>
    key.length > maxKeyCharacters ? undefined : names.get(createHash('sha256').update(key).digest('hex'))
}

type AccessParts = {
  readonly service: string
  readonly clock: Clock
  readonly report: (event: AccessEvent) => void
}

const createTokens = async (
  jwt: JwtConfig,
  { service, clock, report }: AccessParts,
): Promise<TokenVerifier> => {
  // Loaded only here: a gateway without tokens does not load the library.
  const { createJwks, createTokenVerifier } = await import('./access/verify-token.ts')
  const jwks = createJwks({
    source: jwt.jwks,
    refreshMs: jwt.refreshMs,
    clock,
    report: (result) => report({ kind: 'jwks-fetched', service, result }),
  })
  return createTokenVerifier(jwt, jwks, clock)
}

const verified = (token: TokenIdentity | undefined, apiKey: string | undefined): CredentialVerdict => {
  if (token === undefined && apiKey === undefined) return { kind: 'verified', identity: undefined }
  const credentials = [token?.credential, apiKey === undefined ? undefined : `key ${apiKey}`]
  const identity: Identity = {
    credential: credentials.filter((text) => text !== undefined).join(' '),
    hasToken: token !== undefined,
    apiKey,
    claims: token?.claims ?? noClaims,
    headers: token?.headers ?? noClaims,
  }
  return { kind: 'verified', identity }
}

const withKey = (verdict: TokenVerdict, apiKey: string | undefined): CredentialVerdict =>
  verdict.kind === 'refused' ? verdict : verified(verdict.identity, apiKey)

/** The access of a service, and the parts that a later configuration can take over. */
export type BuiltAccess = Access & {
  readonly jwt: JwtConfig | undefined
  readonly tokens: TokenVerifier | undefined
}

/** Builds the access of a service; takes over the keys and the verified tokens of `last` when `jwt` is the same. */
export const createAccess = async (
  config: AccessConfig,
  parts: AccessParts,
  last: BuiltAccess | undefined,
): Promise<BuiltAccess> => {
  const { jwt, apiKeys } = config
  parts.report({ kind: 'access-configured', service: parts.service })
  const nameOfKey = apiKeys && createKeyLookup(apiKeys)
  const kept = last?.tokens !== undefined && sameSettings(last.jwt, jwt) ? last.tokens : undefined
  const tokens = kept ?? (jwt && (await createTokens(jwt, parts)))
  const claimHeaders = Object.values(jwt?.forward ?? {})
  return {
    jwt,
    tokens,
    required: { token: jwt?.required ?? 'never', apiKey: apiKeys?.required ?? 'never' },
    credentialHeaders: [jwt?.header, apiKeys?.header].filter((header) => header !== undefined),
    claimHeaders,
    stripped: new Set(apiKeys === undefined ? claimHeaders : [...claimHeaders, apiKeys.header]),
    admits: createAddressCheck(config),
    verify: (headers) => {
      const sentKey = apiKeys && requestHeader(headers, apiKeys.header)
      const apiKey = sentKey === undefined ? undefined : nameOfKey?.(sentKey)
      if (sentKey !== undefined && apiKey === undefined) return { kind: 'refused', reason: 'api-key-unknown' }
      const token = jwt && tokenIn(headers, jwt.header)
      if (token === undefined || tokens === undefined) return verified(undefined, apiKey)
      return whenKnown(tokens.verify(token), (verdict) => withKey(verdict, apiKey))
    },
  }
}
