import { isCredentialName } from '../../http/headers/credential-headers.ts'
import { isForwardable } from '../../http/headers/forwardable-headers.ts'
import type { JsonObject } from '../../http/json-text.ts'

/** An item's headers never set these: inside a batch they have no effect, on a separate request they would. */
const withoutEffect: ReadonlySet<string> = new Set([
  'authorization',
  'cookie',
  'range',
  'accept',
  'cache-control',
  'pragma',
  'origin',
  'referer',
  'cdn-loop',
  'max-forwards',
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
  'x-original-',
  'x-rewrite-',
  'x-http-',
  'x-method-',
  'x-real-',
  'x-client-',
  'x-cluster-',
  'x-host',
  'x-request-',
  'cf-',
  'http2-',
]

const longestName = 64
const valuePattern = /^[\t\x20-\x7e]{0,1024}$/

/** Within an upstream batch an item's headers are part of the content: none is there that a request of its own would lose. */
const isSettable = (name: string, furtherPrefixes: readonly string[]): boolean =>
  name.length <= longestName &&
  isForwardable(name) &&
  !withoutEffect.has(name) &&
  !isCredentialName(name) &&
  !prefixesWithoutEffect.some((prefix) => name.startsWith(prefix)) &&
  !furtherPrefixes.some((prefix) => name.startsWith(prefix))

const headerText = (value: unknown): string | undefined => {
  const text = Array.isArray(value) ? value.join(', ') : String(value)
  return valuePattern.test(text) ? text : undefined
}

/** The headers of an item that are sent with it: what may not be set is dropped, as it has no effect inside a batch. */
export const itemHeaders = (
  headers: JsonObject | undefined,
  hasContent: boolean,
  furtherPrefixes: readonly string[],
): Record<string, string> => {
  const headerLines: Record<string, string> = Object.create(null)
  for (const [name, value] of Object.entries(headers ?? {})) {
    const text = headerText(value)
    if (text !== undefined && isSettable(name.toLowerCase(), furtherPrefixes))
      headerLines[name.toLowerCase()] = text
  }
  if (hasContent) headerLines['content-type'] = 'application/json'
  return headerLines
}
