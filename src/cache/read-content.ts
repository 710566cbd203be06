import { Readable } from 'node:stream'
import { GatewayError } from '../errors.ts'
import { overheadOfChunk, type Reservation } from '../http/byte-budget.ts'
import { fieldValue } from '../http/fields.ts'
import type { GatewayResponse, ResponseHead } from '../http/message.ts'

/** A response's content in one piece, or, where it is longer than allowed, still to be streamed. */
export type ReadContent =
  | { readonly kind: 'complete'; readonly content: Buffer }
  | { readonly kind: 'too-large' | 'no-room'; readonly content: Buffer | Readable }

const empty = Buffer.alloc(0)

/** Content-Length, where it is one. */
export const declaredLength = (response: ResponseHead): number | undefined => {
  const value = fieldValue(response.fields, 'content-length')
  return value !== undefined && /^\d{1,15}$/.test(value) ? Number(value) : undefined
}

/** What was read, then what is left of the stream; an error in it reaches the reader. */
async function* resumed(chunks: readonly Buffer[], rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  let done = false
  try {
    yield* chunks
    for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value
    done = true
  } finally {
    if (!done) await rest.return?.()
  }
}

/** The whole content as a stream again; its source ends with it even if nothing is ever read. */
const resume = (
  chunks: readonly Buffer[],
  rest: AsyncIterator<Buffer>,
  source: Readable,
  room: Reservation,
): Readable =>
  Readable.from(resumed(chunks, rest), { objectMode: false }).on('close', () => {
    source.destroy()
    room.release()
  })

/** The pieces in one allocation of its own, not in a slice of the pool, which would be kept whole with it. */
export const joined = (chunks: readonly Buffer[], length: number): Buffer => {
  const content = Buffer.allocUnsafeSlow(length)
  let at = 0
  for (const chunk of chunks) at += chunk.copy(content, at)
  return content
}

const readStream = async (
  content: Readable,
  declared: number | undefined,
  maxBytes: number,
  room: Reservation,
): Promise<ReadContent> => {
  const chunks: Buffer[] = []
  let length = 0
  const iterator: AsyncIterator<Buffer> = content[Symbol.asyncIterator]()
  try {
    for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) {
      chunks.push(next.value)
      length += next.value.length
      const hasRoom = room.reserve(next.value.length + overheadOfChunk)
      if (!hasRoom || length > maxBytes) {
        const kind = hasRoom ? 'too-large' : 'no-room'
        return { kind, content: resume(chunks, iterator, content, room) }
      }
    }
  } catch (error) {
    room.release()
    throw error
  }
  room.release()
  if (declared !== undefined && declared !== length) {
    throw new GatewayError('upstream_broken', { detail: 'the body is shorter than its Content-Length' })
  }
  return { kind: 'complete', content: joined(chunks, length) }
}

/**
 * At once where it has all come. Rejects when the content breaks off or contradicts its length (RFC 9112 §8): an incomplete
 * content is never kept.
 */
export const readContent = (
  response: GatewayResponse,
  maxBytes: number,
  room: Reservation,
): ReadContent | Promise<ReadContent> => {
  const { content } = response
  if (content === undefined) return { kind: 'complete', content: empty }
  const declared = declaredLength(response)
  if (declared !== undefined && declared > maxBytes) return { kind: 'too-large', content }
  if (!Buffer.isBuffer(content)) return readStream(content, declared, maxBytes, room)
  return content.length > maxBytes ? { kind: 'too-large', content } : { kind: 'complete', content }
}
