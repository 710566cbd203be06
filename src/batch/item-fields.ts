import { isCredentialName } from '../http/credential-fields.ts'

/** An item's headers never set these: inside a batch they have no effect in WordPress, on a request of its own they would. */
const withoutEffect: ReadonlySet<string> = new Set([
  'authorization',
  'cookie',
  'host',
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
  'range',
  'accept',
  'accept-encoding',
  'cache-control',
  'pragma',
  'origin',
  'referer',
  'forwarded',
  'via',
  'cdn-loop',
  'max-forwards',
  'client-ip',
  'true-client-ip',
  'idempotency-key',
  'traceparent',
  'tracestate',
  'baggage',
])

const prefixesWithoutEffect: readonly string[] = [
  'content-',
  'if-',
  'proxy',
  'sec-',
  'access-control-',
  'x-forwarded-',
  'x-original-',
  'x-rewrite-',
  'x-http-',
  'x-method-',
  'x-real-',
  'x-client-',
  'x-cluster-',
  'x-host',
  'x-request-',
  'x-wp-',
  'cf-',
  'http2-',
]

const tokenPattern = /^[!#$%&'*+.^`|~0-9a-z-]{1,64}$/
const valuePattern = /^[\t\x20-\x7e]{0,1024}$/

/** `_` is not in the pattern: PHP reads it as `-`, and so a name with it could be one of those above. */
const isSettable = (name: string): boolean =>
  tokenPattern.test(name) &&
  !withoutEffect.has(name) &&
  !isCredentialName(name) &&
  !prefixesWithoutEffect.some((prefix) => name.startsWith(prefix))

const fieldText = (value: unknown): string | undefined => {
  const text = Array.isArray(value) ? value.join(', ') : String(value)
  return valuePattern.test(text) ? text : undefined
}

/** The fields of an item that are sent with it; what may not be set is dropped without a word, as it has no effect in WordPress. */
export const itemFields = (headers: unknown, hasContent: boolean): Record<string, string> => {
  const fields: Record<string, string> = Object.create(null)
  if (typeof headers === 'object' && headers !== null && !Array.isArray(headers)) {
    for (const [name, value] of Object.entries(headers)) {
      const text = fieldText(value)
      if (text !== undefined && isSettable(name.toLowerCase())) fields[name.toLowerCase()] = text
    }
  }
  if (hasContent) fields['content-type'] = 'application/json'
  return fields
}
