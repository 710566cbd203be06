import type { RequestFields } from './fields.ts'

/**
 * Fields beside Authorization and Cookie by which a service may know its caller: keys and tokens, and what a proxy in
 * front that has asked for a login says of the user.
 */
export const credentialFields = [
  'x-api-key',
  'x-apikey',
  'api-key',
  'apikey',
  'x-auth-token',
  'x-access-token',
  'x-authorization',
  'x-session-token',
  'private-token',
  'remote-user',
  'x-remote-user',
  'x-authenticated-user',
  'x-auth-request-user',
  'x-goog-iap-jwt-assertion',
  'cf-access-jwt-assertion',
  'x-amzn-oidc-data',
  'x-ms-client-principal',
] as const

/** Written out: a loop over the names costs more than twice as much, on every hit. */
const hasOne = (fields: RequestFields): boolean =>
  fields['x-api-key'] !== undefined ||
  fields['x-apikey'] !== undefined ||
  fields['api-key'] !== undefined ||
  fields['apikey'] !== undefined ||
  fields['x-auth-token'] !== undefined ||
  fields['x-access-token'] !== undefined ||
  fields['x-authorization'] !== undefined ||
  fields['x-session-token'] !== undefined ||
  fields['private-token'] !== undefined ||
  fields['remote-user'] !== undefined ||
  fields['x-remote-user'] !== undefined ||
  fields['x-authenticated-user'] !== undefined ||
  fields['x-auth-request-user'] !== undefined ||
  fields['x-goog-iap-jwt-assertion'] !== undefined ||
  fields['cf-access-jwt-assertion'] !== undefined ||
  fields['x-amzn-oidc-data'] !== undefined ||
  fields['x-ms-client-principal'] !== undefined

/** Who asks, by all that says so: one text for one caller. Undefined where only Authorization could say it. */
export const otherCredential = (fields: RequestFields): string | undefined =>
  hasOne(fields)
    ? JSON.stringify(['authorization', ...credentialFields].map((name) => fields[name] ?? null))
    : undefined
