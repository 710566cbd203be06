import { promisify } from 'node:util'
import * as zlib from 'node:zlib'

/** Content codings that the gateway makes (RFC 9110 §8.4.1; zstd: RFC 8878). */
export type Coding = 'br' | 'gzip' | 'zstd'

type Compress = (content: Buffer) => Promise<Buffer>

const brotli = promisify(zlib.brotliCompress)
const gzip = promisify(zlib.gzip)

/** Node has it from 22.15 on; a named import would keep older ones from starting. */
const zstd = (zlib as { readonly zstdCompress?: typeof zlib.deflate }).zstdCompress

/**
 * All of them work in libuv's threads. Levels at which a megabyte takes some ten milliseconds: each content is
 * compressed once, but the threads are shared with name look-ups and files.
 */
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

/** The content in another coding, or undefined when that saves too little to be worth a place. */
export const compress = async (content: Buffer, coding: Coding): Promise<Buffer | undefined> => {
  const coded = await compressors[coding]?.(content)
  return coded !== undefined && coded.length <= content.length * 0.9 ? coded : undefined
}
