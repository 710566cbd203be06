import { promisify } from 'node:util'
import * as zlib from 'node:zlib'
import { parseCacheControl } from '../../http/caching-fields.ts'
import { parseEntityTag } from '../../http/conditional/entity-tags.ts'
import { remembered } from '../../http/memo.ts'
import { fieldValue, hasField, type ResponseHead } from '../../http/message.ts'

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

/** Fields that describe the uncoded bytes, or show that the content has a coding already. */
const fieldsOfBytes: ReadonlySet<string> = new Set([
  'content-encoding',
  'content-range',
  'content-digest',
  'repr-digest',
  'digest',
  'content-md5',
])

/**
 * May a complete stored response be sent in other content codings? Not with no-transform (RFC 9111 §5.2.2.6), and not without an
 * entity tag, by which the forms differ (RFC 9110 §8.8.3.3).
 */
export const isCodable = (head: ResponseHead, contentBytes: number, minBytes: number): boolean =>
  contentBytes >= minBytes &&
  head.status === 200 &&
  isCodableType(fieldValue(head.fields, 'content-type') ?? '') &&
  !hasField(head.fields, fieldsOfBytes) &&
  parseEntityTag(fieldValue(head.fields, 'etag') ?? '') !== undefined &&
  !parseCacheControl(fieldValue(head.fields, 'cache-control')).has('no-transform')

/** Content codings that the gateway makes (RFC 9110 §8.4.1; zstd: RFC 8878). */
export type Coding = 'br' | 'gzip' | 'zstd'

type Compress = (content: Buffer) => Promise<Buffer>

const brotli = promisify(zlib.brotliCompress)
const gzip = promisify(zlib.gzip)

/** Node has it since 22.15; with a named import older versions would not start. */
const zstd = (zlib as { readonly zstdCompress?: typeof zlib.deflate }).zstdCompress

/** They run in libuv's threads, which DNS and files share; at these levels a megabyte takes about ten milliseconds. */
const compressors: Readonly<Record<Coding, Compress | undefined>> = {
  br: (content) =>
    brotli(content, {
      params: {
        [zlib.constants.BROTLI_PARAM_QUALITY]: 5,
        [zlib.constants.BROTLI_PARAM_MODE]: zlib.constants.BROTLI_MODE_TEXT,
        [zlib.constants.BROTLI_PARAM_SIZE_HINT]: content.length,
      },
    }),
  gzip: (content) => gzip(content, { level: 6 }),
  zstd: zstd === undefined ? undefined : promisify<Buffer, Buffer>(zstd),
}

/** The codings of the list that this Node can make, in the same order. */
export const availableCodings = (codings: readonly Coding[]): readonly Coding[] =>
  codings.filter((coding) => compressors[coding] !== undefined)

/** Undefined if it saves too little to be worth storing. */
export const compress = async (content: Buffer, coding: Coding): Promise<Buffer | undefined> => {
  const coded = await compressors[coding]?.(content)
  return coded !== undefined && coded.length <= content.length * 0.9 ? coded : undefined
}
