import { type RequestFields, requestField } from './fields.ts'
import { isForwardable } from './forwardable-fields.ts'
import { remembered } from './memo.ts'

/** RFC 6750 §2.1: the scheme in any case, then one token68. */
const bearer = /^bearer +[A-Za-z0-9._~+/-]+=*$/i

/** Is a bearer token there? Whether it is good, only the upstream knows. */
export const hasBearer = (fields: RequestFields): boolean => {
  const credential = requestField(fields, 'authorization')
  return credential !== undefined && bearer.test(credential)
}

/**
 * Names by which a service may know its caller, beside Authorization and Cookie: keys, tokens, sessions, and what a proxy in front
 * that asks for a login says of the user. No list of them is complete, so that a name that looks like one counts as one.
 */
const credentialName =
  /token|session|secret|passw|credential|nonce|auth|jwt|oidc|saml|dpop|principal|csrf|xsrf|(?:api|access|subscription|functions|master)-?key|(?:^|-)(?:user|email|sso|cert)|ssl-client|clientcert/

/** Names that look like credentials but do not identify a client; Authorization is checked separately. */
const harmlessNames: ReadonlySet<string> = new Set([
  'authorization',
  'authority',
  'user-agent',
  'x-user-agent',
  'sec-fetch-user',
])

/** May a field of this name (lower case) identify a client? A field that is not forwarded does not. */
export const isCredentialName = remembered(
  (name) =>
    credentialName.test(name) &&
    !harmlessNames.has(name) &&
    !name.startsWith('sec-ch-') &&
    isForwardable(name),
)

const none: readonly string[] = []

/**
 * Names of the fields beside Authorization and Cookie that may identify a client, in order; `harmless`: configured exceptions;
 * `declared`: credentials by the description of the service.
 */
export const credentialFieldsOf = (
  fields: RequestFields,
  harmless: readonly string[],
  declared: readonly string[] = none,
): readonly string[] =>
  Object.keys(fields)
    .filter((name) => (isCredentialName(name) && !harmless.includes(name)) || declared.includes(name))
    .sort()

/** A loop that makes nothing: every hit comes by. */
const hasOne = (fields: RequestFields, harmless: readonly string[], declared: readonly string[]): boolean => {
  for (const name in fields) {
    if (isCredentialName(name) && !harmless.includes(name)) return true
  }
  for (const name of declared) if (fields[name] !== undefined) return true
  return false
}

/** Everything that identifies the client, as one text. Undefined where only Authorization could. */
export const otherCredential = (
  fields: RequestFields,
  harmless: readonly string[],
  declared: readonly string[] = none,
): string | undefined =>
  hasOne(fields, harmless, declared)
    ? JSON.stringify(
        ['authorization', ...credentialFieldsOf(fields, harmless, declared)].map((name) => [
          name,
          fields[name] ?? null,
        ]),
      )
    : undefined
