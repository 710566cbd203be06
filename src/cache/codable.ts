import { parseCacheControl } from '../http/cache-control.ts'
import { parseEntityTag } from '../http/entity-tags.ts'
import { fieldValue, hasField } from '../http/fields.ts'
import type { ResponseHead } from '../http/message.ts'
import { remembered } from '../http/remembered.ts'

const codableTypes: ReadonlySet<string> = new Set([
  'application/javascript',
  'application/json',
  'application/manifest+json',
  'application/wasm',
  'application/xml',
  'application/x-javascript',
  'font/otf',
  'font/ttf',
  'image/bmp',
  'image/svg+xml',
  'image/vnd.microsoft.icon',
  'image/x-icon',
])

const isCodableType = remembered((contentType) => {
  const type = (contentType.split(';', 1)[0] ?? '').trim().toLowerCase()
  if (type.startsWith('text/')) return type !== 'text/event-stream'
  return codableTypes.has(type) || type.endsWith('+json') || type.endsWith('+xml')
})

/** Fields that speak of the bytes as they are, or that say they are coded already. */
const tiedToBytes: ReadonlySet<string> = new Set([
  'content-encoding',
  'content-range',
  'content-digest',
  'repr-digest',
  'digest',
  'content-md5',
])

/**
 * May a complete stored response be given in other content codings too? Not when somebody forbids it (RFC 9111
 * §5.2.2.6), and not without a usable entity tag: two forms of one resource must be told apart (RFC 9110 §8.8.3.3).
 */
export const isCodable = (head: ResponseHead, contentBytes: number, minBytes: number): boolean =>
  contentBytes >= minBytes &&
  head.status === 200 &&
  isCodableType(fieldValue(head.fields, 'content-type') ?? '') &&
  !hasField(head.fields, tiedToBytes) &&
  parseEntityTag(fieldValue(head.fields, 'etag') ?? '') !== undefined &&
  !parseCacheControl(fieldValue(head.fields, 'cache-control')).has('no-transform')
