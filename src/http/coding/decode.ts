import type { Transform } from 'node:stream'
import * as zlib from 'node:zlib'
import { parseCacheControl } from '../caching-fields.ts'
import { tagOfCoded } from '../conditional/entity-tags.ts'
import { fieldValue, type ResponseHead, withoutFields } from '../message.ts'

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
  const value = fieldValue(head.fields, 'content-encoding')
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
  return parseCacheControl(fieldValue(head.fields, 'cache-control')).has('no-transform')
    ? opaque
    : { kind: 'coded', coding }
}

/** A stream that undoes the coding; it fails at a content that is not of the coding, or is incomplete. */
export const createDecoder = (coding: Decodable): Transform => decoders[coding]()

/** They describe the bytes as they were coded. */
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
  const fields = withoutFields(head.fields, ofCoded)
  const tag = fieldValue(head.fields, 'etag')
  if (tag !== undefined) fields.push('ETag', tagOfDecoded(tag))
  return { status: head.status, fields }
}
