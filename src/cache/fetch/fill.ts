import { Readable } from 'node:stream'
import { GatewayError } from '../../errors.ts'
import { overheadOfChunk, type Reservation } from '../../http/byte-budget.ts'
import { fieldValue } from '../../http/fields.ts'
import type { GatewayResponse, ResponseHead } from '../../http/message.ts'

/** What a reader takes its content from. */
type Supply = {
  /** Pushes what the reader has not got yet, as long as it takes more. */
  serve(reader: FillReader): void
  gone(reader: FillReader): void
}

/** One reader's way through a fill. */
class FillReader extends Readable {
  readonly #supply: Supply
  /** Bytes and chunks that it has got. */
  position = 0
  taken = 0
  /** Has asked for more than there is. */
  waits = false

  constructor(supply: Supply) {
    super({ highWaterMark: 16 * 1024 })
    this.#supply = supply
    // It may fail before anybody listens: who reads it then learns of it.
    this.on('error', () => {})
  }

  override _read(): void {
    this.#supply.serve(this)
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#supply.gone(this)
    callback(error)
  }
}

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
const joined = (chunks: readonly Buffer[], length: number): Buffer => {
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

/** How a fill ended. `overflowed`: it goes on for those who have begun, and is not kept. */
type FillEnd =
  | { readonly kind: 'complete'; readonly content: Buffer }
  | { readonly kind: 'overflowed' }
  | { readonly kind: 'failed'; readonly error: unknown }

type FillOptions = {
  readonly source: Readable
  /** Content-Length, where the upstream said one. */
  readonly declared: number | undefined
  readonly maxBytes: number
  /** So long a reader may take nothing while others wait for it, in an overflowed fill. */
  readonly patienceMs: number
  /** Of what is held: until all have got it, and the source has ended or failed. */
  readonly room: Reservation
}

/** Bytes at a time out of a complete content. */
const sliceBytes = 65_536

/**
 * A content on its way into the cache, followed by any number of readers, each at its own pace. What is to be stored
 * is the buffer: the source is read as fast as it comes, and a slow reader holds back nobody and costs nothing. One that
 * turns out longer than may be stored is kept only from the slowest reader on, and then its pace is the source's.
 */
export class Fill {
  readonly done: Promise<FillEnd>
  readonly #options: FillOptions
  readonly #readers = new Set<FillReader>()
  readonly #settle: (end: FillEnd) => void
  #chunks: Buffer[] = []
  /** Chunks and bytes no longer held: all have got them. */
  #dropped = 0
  #start = 0
  #length = 0
  #content: Buffer | undefined
  #overflowed = false
  #crowded = false
  #ended = false
  #failure: Error | undefined
  #mark: { readonly bytes: number; readonly pass: () => void } | undefined
  #hurry: NodeJS.Timeout | undefined

  constructor(options: FillOptions) {
    this.#options = options
    let settle: (end: FillEnd) => void = () => {}
    this.done = new Promise((resolve) => {
      settle = resolve
    })
    this.#settle = settle
    const { source } = options
    source.on('error', (error) => this.#fail(error))
    source.on('close', () =>
      this.#fail(new GatewayError('upstream_broken', { detail: 'the body ended early' })),
    )
    source.on('end', () => this.#end())
    source.on('data', (chunk: Buffer) => this.#take(chunk))
  }

  get overflowed(): boolean {
    return this.#overflowed
  }

  /** It overflowed because too much was buffered, not because of its length. */
  get crowded(): boolean {
    return this.#crowded
  }

  /** How it ended, or undefined as soon as more than so many bytes have come. */
  begun(bytes: number): Promise<FillEnd | undefined> {
    if (this.#length > bytes && !this.#overflowed) return Promise.resolve(undefined)
    const passed = new Promise<undefined>((pass) => {
      this.#mark = { bytes, pass: () => pass(undefined) }
    })
    return Promise.race([this.done, passed])
  }

  /** From the beginning; in an overflowed fill only for who reserved one before. */
  reader(): FillReader {
    const reader = new FillReader({
      serve: (one) => this.#serve(one),
      gone: (one) => this.#gone(one),
    })
    this.#readers.add(reader)
    if (this.#failure !== undefined) reader.destroy(this.#failure)
    return reader
  }

  /** Nobody waits for it any more. */
  stop(reason: Error): void {
    this.#options.source.destroy(reason)
  }

  /** Ends an overflowed fill that nobody reads: nothing of it will be kept. */
  abandon(): void {
    if (this.#readers.size === 0 && !this.#ended) this.#options.source.destroy()
  }

  #take(chunk: Buffer): void {
    if (this.#failure !== undefined) return
    this.#chunks.push(chunk)
    this.#length += chunk.length
    const hasRoom = this.#options.room.reserve(chunk.length + overheadOfChunk)
    if (!this.#overflowed && (!hasRoom || this.#length > this.#options.maxBytes)) {
      this.#overflowed = true
      this.#crowded = !hasRoom
      this.#settle({ kind: 'overflowed' })
    }
    if (this.#mark !== undefined && this.#length > this.#mark.bytes) this.#mark.pass()
    this.#wake()
    if (this.#overflowed) this.#release()
  }

  #wake(): void {
    for (const reader of this.#readers) if (reader.waits) this.#serve(reader)
  }

  #end(): void {
    const { declared } = this.#options
    if (declared !== undefined && declared !== this.#length) {
      this.#fail(
        new GatewayError('upstream_broken', { detail: 'the body is shorter than its Content-Length' }),
      )
      return
    }
    this.#ended = true
    if (!this.#overflowed) {
      this.#content = joined(this.#chunks, this.#length)
      this.#chunks = []
      this.#settle({ kind: 'complete', content: this.#content })
    }
    this.#wake()
    this.#giveBack()
  }

  #fail(error: Error): void {
    if (this.#ended || this.#failure !== undefined) return
    this.#failure = error
    this.#chunks = []
    this.#options.room.release()
    clearTimeout(this.#hurry)
    this.#settle({ kind: 'failed', error })
    // Those who have begun must see that it is not the whole.
    for (const reader of this.#readers) reader.destroy(error)
    this.#options.source.destroy()
  }

  #next(reader: FillReader): Buffer | undefined {
    if (this.#content === undefined) return this.#chunks[reader.taken - this.#dropped]
    if (reader.position >= this.#content.length) return undefined
    return this.#content.subarray(reader.position, reader.position + sliceBytes)
  }

  #serve(reader: FillReader): void {
    reader.waits = false
    for (let chunk = this.#next(reader); chunk !== undefined; chunk = this.#next(reader)) {
      reader.taken += 1
      reader.position += chunk.length
      if (!reader.push(chunk)) break
    }
    const behind = this.#next(reader) !== undefined
    if (!behind && this.#ended) reader.push(null)
    else reader.waits = !behind
    if (this.#overflowed) this.#release()
  }

  #gone(reader: FillReader): void {
    this.#readers.delete(reader)
    this.#giveBack()
    if (!this.#overflowed || this.#ended) return
    this.abandon()
    this.#release()
  }

  /** A content that its readers have not taken is held, stored or not: it may be evicted before them. */
  #giveBack(): void {
    if (this.#ended && this.#readers.size === 0) this.#options.room.release()
  }

  /** Lets go of what all have got, and of the source when the slowest has too much before it. */
  #release(): void {
    const { source, maxBytes } = this.#options
    if (this.#readers.size === 0) {
      // Somebody is about to come for it.
      source.pause()
      return
    }
    const slowest = Math.min(...[...this.#readers].map(({ taken }) => taken))
    while (this.#dropped < slowest && this.#chunks.length > 0) {
      const bytes = this.#chunks.shift()?.length ?? 0
      this.#start += bytes
      this.#dropped += 1
      this.#options.room.shrink(bytes + overheadOfChunk)
    }
    // Where there is no room for more, the next piece is read when all have got this one.
    const full = this.#length - this.#start > (this.#crowded ? 0 : maxBytes)
    if (full && !this.#ended) {
      source.pause()
      this.#hurry ??= setTimeout(() => this.#cutSlowest(), this.#options.patienceMs)
      return
    }
    clearTimeout(this.#hurry)
    this.#hurry = undefined
    if (source.isPaused()) source.resume()
  }

  /** Whoever holds up others and takes nothing is let go; one who reads alone may take all the time it wants. */
  #cutSlowest(): void {
    this.#hurry = undefined
    const slow = [...this.#readers].filter(({ taken }) => taken === this.#dropped)
    if (slow.length === this.#readers.size) return
    for (const reader of slow) {
      reader.destroy(new GatewayError('client_gone', { detail: 'too slow to share a response' }))
    }
  }
}
