import type { Transform } from 'node:stream'
import { promisify } from 'node:util'
import * as zlib from 'node:zlib'
import { parseCacheControl } from '../caching-fields.ts'
import { tagOfCoded } from '../conditional/entity-tags.ts'
import { remembered } from '../memo.ts'
import {
  type FieldLines,
  fieldValue,
  hasField,
  type ResponseHead,
  withField,
  withoutFields,
} from '../message.ts'

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

/** May its content be sent in another content coding? Not with no-transform (RFC 9111 §5.2.2.6). */
export const mayBeCoded = (head: ResponseHead): boolean =>
  isCodableType(fieldValue(head.fields, 'content-type') ?? '') &&
  !hasField(head.fields, fieldsOfBytes) &&
  !parseCacheControl(fieldValue(head.fields, 'cache-control')).has('no-transform')

/** Fields of the uncoded form that a coded one does not have, or has with another value. */
const ofUncoded: ReadonlySet<string> = new Set(['etag', 'content-length', 'accept-ranges'])

/** The fields of a response in another coding; its strong entity tag differs, since the bytes do (RFC 9110 §8.8.3.3). */
export const codedFields = (fields: FieldLines, coding: Coding): string[] => {
  const coded = withoutFields(fields, ofUncoded)
  const tag = fieldValue(fields, 'etag')
  if (tag !== undefined) coded.push('ETag', tagOfCoded(tag, coding))
  coded.push('Content-Encoding', coding)
  return coded
}

const differsByCoding = remembered((vary) =>
  vary.split(',').some((name) => ['accept-encoding', '*'].includes(name.trim().toLowerCase())),
)

/** Coded and uncoded forms differ by Accept-Encoding alone (RFC 9110 §12.5.5). */
export const withVaryByCoding = (fields: FieldLines): FieldLines => {
  const vary = fieldValue(fields, 'vary')
  if (vary === undefined) return [...fields, 'Vary', 'Accept-Encoding']
  return differsByCoding(vary) ? fields : withField(fields, 'Vary', `${vary}, Accept-Encoding`)
}

/** Content codings that the gateway makes (RFC 9110 §8.4.1; zstd: RFC 8878). */
export const codings = ['br', 'gzip', 'zstd'] as const
export type Coding = (typeof codings)[number]

type Compress = (content: Buffer) => Promise<Buffer>

const brotli = promisify(zlib.brotliCompress)
const gzip = promisify(zlib.gzip)

/** A stream is coded while its client waits, and only for this client. */
const streamLevels = { br: 4, gzip: 6 } as const

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

/** Codings in which a stream is coded as it passes. */
export type StreamCoding = 'br' | 'gzip'

export const isStreamCoding = (coding: Coding): coding is StreamCoding => coding !== 'zstd'

type Coder = { readonly stream: Transform; readonly flush: () => void }

/** A stream that codes what is written to it, and the function that makes it pass on all that it has. */
export const createCoder = (coding: StreamCoding): Coder => {
  if (coding === 'gzip') {
    const stream = zlib.createGzip({ level: streamLevels.gzip })
    return { stream, flush: () => stream.flush(zlib.constants.Z_SYNC_FLUSH) }
  }
  const stream = zlib.createBrotliCompress({
    params: {
      [zlib.constants.BROTLI_PARAM_QUALITY]: streamLevels.br,
      [zlib.constants.BROTLI_PARAM_MODE]: zlib.constants.BROTLI_MODE_TEXT,
      // A window of 256 KiB in place of 4 MiB: each of many streams has one.
      [zlib.constants.BROTLI_PARAM_LGWIN]: 18,
    },
  })
  return { stream, flush: () => stream.flush() }
}

/** The codings of the list that this Node can make, in the same order. */
export const availableCodings = (codings: readonly Coding[]): readonly Coding[] =>
  codings.filter((coding) => compressors[coding] !== undefined)

/** Undefined if it saves too little to be worth storing. */
export const compress = async (content: Buffer, coding: Coding): Promise<Buffer | undefined> => {
  const coded = await compressors[coding]?.(content)
  return coded !== undefined && coded.length <= content.length * 0.9 ? coded : undefined
}
