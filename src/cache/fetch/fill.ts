import { Readable } from 'node:stream'
import { GatewayError } from '../../errors.ts'
import { overheadOfChunk, type Reservation } from '../../http/bounds.ts'
import { fieldValue, type ResponseHead } from '../../http/message.ts'

/** One reader of a fill, at its own pace. */
class FillReader extends Readable {
  readonly #serve: (reader: FillReader) => void
  readonly #gone: (reader: FillReader) => void
  /** Bytes and chunks that were passed to it. */
  bytes = 0
  chunks = 0
  /** It has requested more than has arrived. */
  isWaiting = false

  constructor(serve: (reader: FillReader) => void, gone: (reader: FillReader) => void) {
    super({ highWaterMark: 16 * 1024 })
    this.#serve = serve
    this.#gone = gone
    // It may fail before a listener is added: a later reader still gets the error.
    this.on('error', () => {})
  }

  override _read(): void {
    this.#serve(this)
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#gone(this)
    callback(error)
  }
}

/** Content-Length, where it is valid. */
export const declaredLength = (response: ResponseHead): number | undefined => {
  const value = fieldValue(response.fields, 'content-length')
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
  readonly #settle: (end: FillEnd) => void
  #chunks: Buffer[] = []
  /** Chunks and bytes that all readers have received; they are released. */
  #droppedChunks = 0
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

  /** How it ended, or undefined as soon as more than `bytes` have arrived without an overflow. */
  async endOrLongerThan(bytes: number): Promise<FillEnd | undefined> {
    if (this.#length <= bytes && !this.overflowed) {
      const passed = new Promise<void>((resolve) => {
        this.#threshold = { bytes, passed: resolve }
      })
      const end = await Promise.race([this.done, passed])
      if (end !== undefined) return end
    }
    return this.overflowed ? { kind: 'overflowed' } : undefined
  }

  /** From the first byte; of an overflowed fill only the first reader gets that. */
  reader(): Readable {
    const reader = new FillReader(
      (one) => this.#serve(one),
      (one) => this.#gone(one),
    )
    this.#readers.add(reader)
    if (this.#failure !== undefined) reader.destroy(this.#failure)
    return reader
  }

  /** The last reader has left. */
  stop(reason: Error): void {
    this.#source.destroy(reason)
  }

  /** Ends an overflowed fill without readers, which will not be stored. */
  abandon(): void {
    if (this.#readers.size === 0 && !this.#ended) this.#source.destroy()
  }

  #take(chunk: Buffer): void {
    if (this.#failure !== undefined) return
    this.#chunks.push(chunk)
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

  #wake(): void {
    for (const reader of this.#readers) if (reader.isWaiting) this.#serve(reader)
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
      this.#content = Buffer.concat(this.#chunks, this.#length)
      this.#chunks = []
      this.#settle({ kind: 'complete', content: this.#content })
    }
    this.#wake()
    this.#releaseReservation()
  }

  #fail(error: Error): void {
    if (this.#ended || this.#failure !== undefined) return
    this.#failure = error
    this.#chunks = []
    this.#reservation.release()
    clearTimeout(this.#stallTimer)
    this.#settle({ kind: 'failed', error })
    // Readers that have received a part must see that it is incomplete.
    for (const reader of this.#readers) reader.destroy(error)
    this.#source.destroy()
  }

  #next(reader: FillReader): Buffer | undefined {
    if (this.#content === undefined) return this.#chunks[reader.chunks - this.#droppedChunks]
    if (reader.bytes >= this.#content.length) return undefined
    return this.#content.subarray(reader.bytes, reader.bytes + sliceBytes)
  }

  /** Pushes the next bytes to the reader, as long as it accepts more. */
  #serve(reader: FillReader): void {
    reader.isWaiting = false
    for (let chunk = this.#next(reader); chunk !== undefined; chunk = this.#next(reader)) {
      reader.chunks += 1
      reader.bytes += chunk.length
      if (!reader.push(chunk)) break
    }
    const isBehind = this.#next(reader) !== undefined
    if (!isBehind && this.#ended) reader.push(null)
    else reader.isWaiting = !isBehind
    if (this.overflowed) this.#release()
  }

  #gone(reader: FillReader): void {
    this.#readers.delete(reader)
    this.#releaseReservation()
    if (!this.overflowed || this.#ended) return
    this.abandon()
    this.#release()
  }

  /** The content counts as buffered until its readers have received it: the cache may evict it before. */
  #releaseReservation(): void {
    if (this.#ended && this.#readers.size === 0) this.#reservation.release()
  }

  /** Releases what all readers have received; pauses the source while the slowest reader is too far behind. */
  #release(): void {
    const source = this.#source
    if (this.#readers.size === 0) {
      // The first reader is added next.
      source.pause()
      return
    }
    const slowest = Math.min(...[...this.#readers].map(({ chunks }) => chunks))
    while (this.#droppedChunks < slowest && this.#chunks.length > 0) {
      const bytes = this.#chunks.shift()?.length ?? 0
      this.#droppedBytes += bytes
      this.#droppedChunks += 1
      this.#reservation.shrink(bytes + overheadOfChunk)
    }
    // If the reservation is used up, the next chunk is read after all readers have received this one.
    const most = this.#overflow === 'no-room' ? 0 : this.#maxBytes
    if (this.#length - this.#droppedBytes > most && !this.#ended) {
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
    const slow = [...this.#readers].filter(({ chunks }) => chunks === this.#droppedChunks)
    if (slow.length === this.#readers.size) return
    for (const reader of slow) {
      reader.destroy(new GatewayError('client_gone', { detail: 'too slow to share a response' }))
    }
  }
}
