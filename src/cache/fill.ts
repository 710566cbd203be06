import type { Readable } from 'node:stream'
import { GatewayError } from '../errors.ts'
import { overheadOfChunk, type Reservation } from '../http/byte-budget.ts'
import { FillReader } from './fill-reader.ts'
import { joined } from './read-content.ts'

/** How a fill ended. `overflowed`: it goes on for those who have begun, and is not kept. */
export type FillEnd =
  | { readonly kind: 'complete'; readonly content: Buffer }
  | { readonly kind: 'overflowed' }
  | { readonly kind: 'failed'; readonly error: unknown }

export type FillOptions = {
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
