import { createHash } from 'node:crypto'

/** What an Idempotency-Key field says. */
export type IdempotencyKey =
  | { readonly kind: 'none' }
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'malformed' }

/** RFC 9651 §3.3.3: a String; many clients send it without its quotes, which is understood as well. */
const quotedPattern = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\]){1,255})"$/
const barePattern = /^[A-Za-z0-9._~:+/=-]{1,255}$/

/** Reads the field (draft-ietf-httpapi-idempotency-key-header §2.1). */
export const readIdempotencyKey = (value: string | undefined): IdempotencyKey => {
  if (value === undefined) return { kind: 'none' }
  const quoted = quotedPattern.exec(value)?.[1]
  if (quoted !== undefined) return { kind: 'key', key: quoted.replaceAll(/\\(["\\])/g, '$1') }
  return barePattern.test(value) ? { kind: 'key', key: value } : { kind: 'malformed' }
}

/** One hash of several texts; their lengths keep the borders. */
export const hashOf = (parts: readonly (string | Buffer)[]): string => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(`${part.length}:`).update(part)
  return hash.digest('base64url')
}
