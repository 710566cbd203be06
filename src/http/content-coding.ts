import type { Transform } from 'node:stream'
import { promisify } from 'node:util'
import * as zlib from 'node:zlib'
import { tagOfCoded } from './conditional/preconditions.ts'
import { cacheControlOf } from './headers/caching-headers.ts'
import {
  type HeaderLines,
  hasHeader,
  headerValue,
  withHeader,
  withoutHeaders,
} from './headers/header-lines.ts'
import { essence } from './headers/media-type.ts'
import { memoize } from './memo.ts'
import type { ResponseHead } from './message.ts'

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

const isCodableType = memoize((contentType) => {
  const type = essence(contentType)
  if (type.startsWith('text/')) return type !== 'text/event-stream'
  return codableTypes.has(type) || type.endsWith('+json') || type.endsWith('+xml')
})

/** Headers that describe the uncoded bytes, or show that the content has a coding already. */
const headersOfBytes: ReadonlySet<string> = new Set([
  'content-encoding',
  'content-range',
  'content-digest',
  'repr-digest',
  'digest',
  'content-md5',
])

/** May its content be sent in another content coding? Not with no-transform (RFC 9111 §5.2.2.6). */
export const mayBeCoded = (head: ResponseHead): boolean =>
  isCodableType(headerValue(head.headers, 'content-type') ?? '') &&
  !hasHeader(head.headers, headersOfBytes) &&
  !cacheControlOf(head.headers).has('no-transform')

/** Headers of the uncoded form that a coded one does not have, or has with another value. */
const ofUncoded: ReadonlySet<string> = new Set(['etag', 'content-length', 'accept-ranges'])

/** The headers of a response in another coding; its strong entity tag differs, since the bytes do (RFC 9110 §8.8.3.3). */
export const codedHeaders = (headers: HeaderLines, coding: Coding): string[] => {
  const coded = withoutHeaders(headers, ofUncoded)
  const tag = headerValue(headers, 'etag')
  if (tag !== undefined) coded.push('ETag', tagOfCoded(tag, coding))
  coded.push('Content-Encoding', coding)
  return coded
}

const differsByCoding = memoize((vary) =>
  vary.split(',').some((name) => ['accept-encoding', '*'].includes(name.trim().toLowerCase())),
)

/** Coded and uncoded forms differ by Accept-Encoding alone (RFC 9110 §12.5.5). */
export const withVaryByCoding = (headers: HeaderLines): HeaderLines => {
  const vary = headerValue(headers, 'vary')
  if (vary === undefined) return [...headers, 'Vary', 'Accept-Encoding']
  return differsByCoding(vary) ? headers : withHeader(headers, 'Vary', `${vary}, Accept-Encoding`)
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

/** Codings that the gateway can undo; also those it asks an upstream for when it stores the response. */
const decoders = {
  br: () => zlib.createBrotliDecompress(),
  gzip: () => zlib.createGunzip(),
  deflate: () => zlib.createInflate(),
} as const satisfies Record<string, () => Transform>

export type Decodable = keyof typeof decoders

/** Codings that clients decode and the gateway does not. */
const others: ReadonlySet<string> = new Set(['compress', 'x-compress', 'zstd', 'dcb', 'dcz'])

/**
 * The content coding of a response. `unknown`: a name that no registry has, so the content is used as it is. `opaque`: clients may
 * not accept it, and the gateway cannot undo it, or no-transform forbids that (RFC 9111 §5.2.2.6).
 */
export type ContentCoding =
  | { readonly kind: 'none' | 'unknown' | 'opaque' }
  | { readonly kind: 'coded'; readonly coding: Decodable }

const none: ContentCoding = { kind: 'none' }
const unknown: ContentCoding = { kind: 'unknown' }
const opaque: ContentCoding = { kind: 'opaque' }

const isDecodable = (coding: string): coding is Decodable => Object.hasOwn(decoders, coding)

export const contentCodingOf = (head: ResponseHead): ContentCoding => {
  const value = headerValue(head.headers, 'content-encoding')
  if (value === undefined) return none
  const names = value
    .toLowerCase()
    .split(',', 8)
    .map((name) => name.trim())
    .map((name) => (name === 'x-gzip' ? 'gzip' : name))
    .filter((name) => name !== '' && name !== 'identity')
  const [coding] = names
  if (coding === undefined) return none
  if (!names.some((name) => isDecodable(name) || others.has(name))) return unknown
  if (names.length > 1 || !isDecodable(coding)) return opaque
  return cacheControlOf(head.headers).has('no-transform') ? opaque : { kind: 'coded', coding }
}

/** A stream that undoes the coding; it fails at a content that is not of the coding, or is incomplete. */
export const createDecoder = (coding: Decodable): Transform => decoders[coding]()

/** Headers that describe the coded bytes. */
const ofCoded: ReadonlySet<string> = new Set([
  'content-encoding',
  'content-length',
  'accept-ranges',
  'content-digest',
  'repr-digest',
  'digest',
  'content-md5',
  'etag',
])

/** A strong tag that names the coded bytes must not name the decoded ones (RFC 9110 §8.8.3.3). */
export const tagOfDecoded = (tag: string): string => tagOfCoded(tag, 'identity')

/** The head of a response whose coding was undone. */
export const decodedHead = (head: ResponseHead): ResponseHead => {
  const headers = withoutHeaders(head.headers, ofCoded)
  const tag = headerValue(head.headers, 'etag')
  if (tag !== undefined) headers.push('ETag', tagOfDecoded(tag))
  return { status: head.status, headers }
}

/** More members than any client sends; the rest is not read. */
const maxMembers = 32

/** A weight is the only parameter that a coding has; the rest is not read. */
const maxParameters = 4

/** RFC 9110 §12.4.2: at most three digits after the point. An invalid weight counts as absent. */
const weightPattern = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/

/** RFC 9110 §8.4.1.1 and §8.4.1.3: old names of the same coding. */
const sameAs: Readonly<Record<string, string>> = { 'x-gzip': 'gzip', 'x-compress': 'compress' }

const weightIn = (parameters: readonly string[]): number => {
  for (const parameter of parameters) {
    const [name = '', value = ''] = parameter.split('=', 2)
    if (name.trim().toLowerCase() !== 'q') continue
    const text = value.trim()
    return weightPattern.test(text) ? Number(text) : 1
  }
  return 1
}

/** Reads any text without failing; a coding that is named twice keeps its first weight. */
const weightsIn = (value: string): ReadonlyMap<string, number> => {
  const weights = new Map<string, number>()
  for (const member of value.split(',', maxMembers)) {
    const [name = '', ...parameters] = member.split(';', 1 + maxParameters)
    const written = name.trim().toLowerCase()
    const coding = Object.hasOwn(sameAs, written) ? (sameAs[written] as string) : written
    if (coding !== '' && !weights.has(coding)) weights.set(coding, weightIn(parameters))
  }
  return weights
}

/** Does a client prefer HTML to JSON (RFC 9110 §12.5.1)? The most specific range that names a type says its weight. */
export const prefersHtml = (accept: string): boolean => {
  const weights = weightsIn(accept)
  const weightOf = (group: string, subtype: string): number =>
    weights.get(`${group}/${subtype}`) ?? weights.get(`${group}/*`) ?? weights.get('*/*') ?? 0
  const json = Math.max(weightOf('application', 'json'), weightOf('application', 'problem+json'))
  return weightOf('text', 'html') > json
}

/** Weights as a client states them (RFC 9110 §12.5.3). 0 = refused; undefined = not named, neither itself nor by `*`. */
export const parseAcceptEncoding = (value: string) => {
  const weights = weightsIn(value)
  const others = weights.get('*')
  return { weightOf: (coding: string): number | undefined => weights.get(coding) ?? others }
}

export type AcceptedForms<Coding extends string> = {
  /** Codings that the client prefers to the uncoded form, best first. */
  readonly codings: readonly Coding[]
  readonly uncoded: boolean
}

/** With equal weights, the first of `offered` is best. */
export const acceptedForms = <Coding extends string>(
  value: string,
  offered: readonly Coding[],
): AcceptedForms<Coding> => {
  const accepted = parseAcceptEncoding(value)
  const weightOf = (coding: Coding): number => accepted.weightOf(coding) ?? 0
  // If identity is not listed, it is acceptable but not preferred (RFC 9110 §12.5.3).
  const uncoded = accepted.weightOf('identity')
  const codings = offered
    .filter((coding) => weightOf(coding) > 0 && weightOf(coding) >= (uncoded ?? 0))
    .sort((a, b) => weightOf(b) - weightOf(a))
  return { codings, uncoded: uncoded !== 0 }
}

/** Every coding that an upstream may be asked for (IANA HTTP Content Coding Registry), without those that need a dictionary. */
const askable: ReadonlySet<string> = new Set(['br', 'gzip', 'deflate', 'zstd', 'compress', 'identity', '*'])

const memberText = ([coding, weight]: [string, number]): string =>
  weight === 1 ? coding : `${coding};q=${weight}`

/** A client's Accept-Encoding as it is forwarded: known codings, each once. Without any, `identity`: the client can decode none. */
export const forwardedCodings = (value: string): string => {
  const codings = [...weightsIn(value)].filter(([coding]) => askable.has(coding))
  return codings.length === 0 ? 'identity' : codings.map(memberText).join(', ')
}
