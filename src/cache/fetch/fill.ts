import { Readable } from 'node:stream'
import { Deadline } from '../../clock.ts'
import { GatewayError } from '../../errors.ts'
import { overheadOfChunk, type Reservation } from '../../http/bounds/byte-budget.ts'
import { createFairTurns } from '../../http/bounds/fair-turns.ts'
import { headerValue } from '../../http/headers/header-lines.ts'
import type { ResponseHead } from '../../http/message.ts'

/** A chunk of the content; the last one of the list is empty, until its octets arrive. */
type Chunk = {
  bytes: Buffer | undefined
  next: Chunk | undefined
  /** Readers that get this chunk next: the slowest ones are found without asking all of them. */
  readers: number
}

const emptyChunk = (): Chunk => ({ bytes: undefined, next: undefined, readers: 0 })

/** One reader of a fill, at its own pace. */
class FillReader extends Readable {
  readonly #onRead: (reader: FillReader) => void
  readonly #onDestroy: (reader: FillReader) => void
  /** For turns: the address of its client. */
  readonly client: string
  /** The chunk that it gets next; undefined once the content is complete. */
  next: Chunk | undefined
  /** Bytes that were passed to it. */
  bytes = 0
  /** It has requested more than was passed to it. */
  isWaiting = false
  /** A turn of the event loop will serve it. */
  hasTurn = false
  /** Ends it in its next turn. */
  failure: Error | undefined

  constructor(
    client: string,
    next: Chunk | undefined,
    onRead: (reader: FillReader) => void,
    onDestroy: (reader: FillReader) => void,
  ) {
    super({ highWaterMark: 16 * 1024 })
    this.client = client
    this.next = next
    this.#onRead = onRead
    this.#onDestroy = onDestroy
    // It may fail before a listener is added: a later reader still gets the error.
    this.on('error', () => {})
  }

  override _read(): void {
    this.isWaiting = true
    this.#onRead(this)
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#onDestroy(this)
    callback(error)
  }
}

/** Readers of all fills that one turn of the event loop serves, and the pieces that each of them gets: some milliseconds. */
const turns = createFairTurns(32)
const piecesPerTurn = 8

export const declaredLength = (response: ResponseHead): number | undefined => {
  const value = headerValue(response.headers, 'content-length')
  return value !== undefined && /^\d{1,15}$/.test(value) ? Number(value) : undefined
}

/** How a fill ended. `overflowed`: its readers get the rest, and it is not stored. */
export type FillEnd =
  | { readonly kind: 'complete'; readonly content: Buffer }
  | { readonly kind: 'overflowed' }
  | { readonly kind: 'failed'; readonly error: unknown }

/** Bytes at a time out of a complete content. */
const sliceBytes = 65_536

/**
 * A content that is stored while any number of readers follow it. The source is read into the buffer that will be stored, so a slow
 * reader does not delay the others. If the content exceeds the maximum, only what the slowest reader has not received stays in
 * memory, and the slowest reader sets the pace.
 */
export class Fill {
  readonly done: Promise<FillEnd>
  readonly #source: Readable
  readonly #declared: number | undefined
  readonly #maxBytes: number
  readonly #reservation: Reservation
  readonly #stallTimeoutMs: number
  readonly #readers = new Set<FillReader>()
  /** Kept for readers that are made later. */
  #places = 0
  readonly #settle: (end: FillEnd) => void
  /** The first chunk that some reader has not received, while the content is not complete. */
  #first: Chunk = emptyChunk()
  #last: Chunk = this.#first
  #droppedBytes = 0
  #length = 0
  #content: Buffer | undefined
  #overflow: 'too-large' | 'no-room' | undefined
  #ended = false
  #failure: Error | undefined
  #threshold: { readonly bytes: number; readonly passed: () => void } | undefined
  #stallTimer: NodeJS.Timeout | undefined

  /**
   * `reservation` counts the buffered bytes until all readers have received them and the source has ended or failed. `stallTimeoutMs`:
   * longest time without progress of a reader of an overflowed fill while others wait for it.
   */
  constructor(
    response: ResponseHead,
    source: Readable,
    maxBytes: number,
    reservation: Reservation,
    stallTimeoutMs = 10_000,
  ) {
    this.#source = source
    this.#declared = declaredLength(response)
    this.#maxBytes = maxBytes
    this.#reservation = reservation
    this.#stallTimeoutMs = stallTimeoutMs
    let settle: (end: FillEnd) => void = () => {}
    this.done = new Promise((resolve) => {
      settle = resolve
    })
    this.#settle = settle
    source.on('error', (error) => this.#fail(error))
    source.on('close', () =>
      this.#fail(new GatewayError('upstream_broken', { detail: 'the body ended early' })),
    )
    source.on('end', () => this.#end())
    source.on('data', (chunk: Buffer) => this.#take(chunk))
  }

  get overflowed(): boolean {
    return this.#overflow !== undefined
  }

  get reasonOfOverflow(): 'too-large' | 'no-room' {
    return this.#overflow ?? 'too-large'
  }

  /**
   * How it ended, or undefined: more than `bytes` have arrived without an overflow, or it has not ended within `maxMs` (undefined =
   * any time).
   */
  async endOrLongerThan(bytes: number, maxMs?: number): Promise<FillEnd | undefined> {
    if (this.#length <= bytes && !this.overflowed) {
      let deadline: Deadline | undefined
      const passed = new Promise<void>((resolve) => {
        this.#threshold = { bytes, passed: resolve }
        if (maxMs !== undefined) deadline = new Deadline(maxMs, resolve)
      })
      const end = await Promise.race([this.done, passed])
      deadline?.stop()
      if (end !== undefined) return end
    }
    return this.overflowed ? { kind: 'overflowed' } : undefined
  }

  /** From the first byte; of an overflowed fill only the first reader gets that. */
  reader(client = ''): Readable {
    return this.place()(client)
  }

  /** Keeps the place of a reader that is made later, by the returned function: making thousands of them takes long. */
  place(): (client?: string) => Readable {
    const first = this.#first
    first.readers += 1
    this.#places += 1
    return (client = '') => {
      this.#places -= 1
      return this.#readerFrom(first, client)
    }
  }

  #readerFrom(first: Chunk, client: string): Readable {
    const reader = new FillReader(
      client,
      this.#content === undefined ? first : undefined,
      (reader) => this.#serveInTurn(reader),
      (reader) => this.#gone(reader),
    )
    this.#readers.add(reader)
    if (this.#failure !== undefined) this.#endReader(reader, this.#failure)
    return reader
  }

  stop(reason: Error): void {
    this.#source.destroy(reason)
  }

  /** Ends an overflowed fill without readers, which will not be stored. */
  abandon(): void {
    if (this.#readers.size + this.#places === 0 && !this.#ended) this.#source.destroy()
  }

  #take(chunk: Buffer): void {
    if (this.#failure !== undefined || chunk.length === 0) return
    this.#last.bytes = chunk
    this.#last.next = emptyChunk()
    this.#last = this.#last.next
    this.#length += chunk.length
    const isReserved = this.#reservation.reserve(chunk.length + overheadOfChunk)
    if (!this.overflowed && (!isReserved || this.#length > this.#maxBytes)) {
      this.#overflow = isReserved ? 'too-large' : 'no-room'
      this.#settle({ kind: 'overflowed' })
    }
    if (this.#threshold !== undefined && this.#length > this.#threshold.bytes) this.#threshold.passed()
    this.#wake()
    if (this.overflowed) this.#release()
  }

  /** Readers that wait get what has come, each in its turn. */
  #wake(): void {
    for (const reader of this.#readers) if (reader.isWaiting) this.#serveInTurn(reader)
  }

  #serveInTurn(reader: FillReader): void {
    if (reader.hasTurn) return
    reader.hasTurn = true
    turns.begin(reader.client, () => {
      reader.hasTurn = false
      this.#serve(reader)
    })
  }

  #endReader(reader: FillReader, failure: Error): void {
    reader.failure ??= failure
    this.#serveInTurn(reader)
  }

  #end(): void {
    // A content of another length is incomplete (RFC 9112 §8).
    if (this.#declared !== undefined && this.#declared !== this.#length) {
      this.#fail(
        new GatewayError('upstream_broken', { detail: 'the body is shorter than its Content-Length' }),
      )
      return
    }
    this.#ended = true
    if (!this.overflowed) {
      this.#content = this.#joined()
      this.#settle({ kind: 'complete', content: this.#content })
    }
    this.#wake()
    this.#releaseReservation()
  }

  /** The whole content; readers go on in it, so that the chunks are in memory no longer. */
  #joined(): Buffer {
    const chunks: Buffer[] = []
    for (let chunk: Chunk | undefined = this.#first; chunk !== undefined; chunk = chunk.next)
      if (chunk.bytes !== undefined) chunks.push(chunk.bytes)
    for (const reader of this.#readers) reader.next = undefined
    this.#first = this.#last
    return Buffer.concat(chunks, this.#length)
  }

  #fail(error: Error): void {
    if (this.#ended || this.#failure !== undefined) return
    this.#failure = error
    this.#first = this.#last
    this.#reservation.release()
    clearTimeout(this.#stallTimer)
    this.#settle({ kind: 'failed', error })
    // Readers that have received a part must see that it is incomplete.
    for (const reader of this.#readers) this.#endReader(reader, error)
    this.#source.destroy()
  }

  /** The next bytes for the reader; undefined: they have not arrived, or there are none. */
  #next(reader: FillReader): Buffer | undefined {
    if (this.#content === undefined) return reader.next?.bytes
    if (reader.bytes >= this.#content.length) return undefined
    return this.#content.subarray(reader.bytes, reader.bytes + sliceBytes)
  }

  #moveTo(reader: FillReader, chunk: Chunk | undefined): void {
    if (reader.next !== undefined) reader.next.readers -= 1
    if (chunk !== undefined) chunk.readers += 1
    reader.next = chunk
  }

  #isAtEnd(reader: FillReader): boolean {
    return this.#ended && reader.bytes >= this.#length
  }

  /** Passes the next pieces to the reader, as long as it accepts more. */
  #serve(reader: FillReader): void {
    if (reader.destroyed) return
    if (reader.failure !== undefined) {
      reader.destroy(reader.failure)
      return
    }
    for (let pieces = 0; reader.isWaiting && pieces < piecesPerTurn; pieces += 1) {
      const bytes = this.#next(reader)
      if (bytes === undefined) break
      reader.bytes += bytes.length
      this.#moveTo(reader, reader.next?.next)
      // Where it is full it requests more itself.
      reader.isWaiting = false
      if (reader.push(bytes)) reader.isWaiting = true
    }
    if (this.#isAtEnd(reader)) reader.push(null)
    else if (reader.isWaiting && this.#next(reader) !== undefined) this.#serveInTurn(reader)
    if (this.overflowed) this.#release()
  }

  #gone(reader: FillReader): void {
    this.#readers.delete(reader)
    this.#moveTo(reader, undefined)
    this.#releaseReservation()
    if (!this.overflowed || this.#ended) return
    this.abandon()
    this.#release()
  }

  /** The content counts as buffered until its readers have received it: the cache may evict it before. */
  #releaseReservation(): void {
    if (this.#ended && this.#readers.size + this.#places === 0) this.#reservation.release()
  }

  /** Releases what all readers have received; pauses the source while the slowest reader is too far behind. */
  #release(): void {
    const source = this.#source
    if (this.#readers.size === 0) {
      // The first reader is added next.
      source.pause()
      return
    }
    while (this.#first.readers === 0 && this.#first.next !== undefined) {
      const bytes = this.#first.bytes?.length ?? 0
      this.#droppedBytes += bytes
      this.#reservation.shrink(bytes + overheadOfChunk)
      this.#first = this.#first.next
    }
    // If the reservation is used up, the next chunk is read after all readers have received this one.
    const max = this.#overflow === 'no-room' ? 0 : this.#maxBytes
    if (this.#length - this.#droppedBytes > max && !this.#ended) {
      source.pause()
      this.#stallTimer ??= setTimeout(() => this.#dropSlowest(), this.#stallTimeoutMs)
      return
    }
    clearTimeout(this.#stallTimer)
    this.#stallTimer = undefined
    if (source.isPaused()) source.resume()
  }

  /** Ends readers without progress while others wait for them; a single reader may take any time. */
  #dropSlowest(): void {
    this.#stallTimer = undefined
    if (this.#first.readers === this.#readers.size + this.#places) return
    const error = new GatewayError('client_gone', { detail: 'too slow to share a response' })
    for (const reader of this.#readers) if (reader.next === this.#first) this.#endReader(reader, error)
  }
}
