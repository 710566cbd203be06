import { Readable } from 'node:stream'
import { overheadOfChunk, type Reservation, unlimited } from '../bounds/byte-budget.ts'
import { withHeader } from '../headers/header-lines.ts'
import type { GatewayResponse } from '../message.ts'

/** Why a body is not read to its end: it is longer than its bound, or the reservation is refused. */
export type BodyOverflow = 'too-large' | 'no-room'

/** The chunks of a body, within a bound and a reservation. */
export class BodyBuffer {
  readonly #maxBytes: number
  readonly #reservation: Reservation
  #chunks: Buffer[] = []
  #bytes = 0
  #reservedBytes = 0

  constructor(maxBytes: number, reservation: Reservation) {
    this.#maxBytes = maxBytes
    this.#reservation = reservation
  }

  get chunks(): readonly Buffer[] {
    return this.#chunks
  }

  /** Takes the chunk in any case: what was read of a body that is too long can still be sent on. */
  add(chunk: Buffer): BodyOverflow | undefined {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    if (this.#bytes > this.#maxBytes) return 'too-large'
    const cost = chunk.length + overheadOfChunk
    if (!this.#reservation.reserve(cost)) return 'no-room'
    this.#reservedBytes += cost
    return undefined
  }

  /** All chunks as one, which a body that came in one chunk already is. */
  joined(): Buffer {
    return this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks)
  }

  /** Gives back what it has reserved. */
  release(): void {
    this.#reservation.shrink(this.#reservedBytes)
    this.#reservedBytes = 0
  }
}

export type BodyReading =
  | {
      readonly kind: 'whole'
      readonly content: Buffer
      /** Gives back what is reserved for it. */
      release(): void
    }
  | {
      readonly kind: BodyOverflow
      /** What was read and what is still to come; destroying it destroys the body. */
      all(): Readable
    }

const chained = (read: readonly Buffer[], rest: AsyncIterator<Buffer>, body: Readable): Readable =>
  Readable.from(
    (async function* () {
      yield* read
      yield* { [Symbol.asyncIterator]: () => rest }
    })(),
    { objectMode: false },
  )
    // A generator that was never started does not end its source.
    .on('close', () => body.destroy())

/** Reads a body to its end or to its bound. It throws what the body fails with; only what is read whole stays reserved. */
export const readBody = async (
  body: Readable,
  maxBytes: number,
  reservation: Reservation = unlimited,
): Promise<BodyReading> => {
  const buffer = new BodyBuffer(maxBytes, reservation)
  const iterator = body.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer>
  let isWhole = false
  try {
    for (;;) {
      const step = await iterator.next()
      if (step.done === true) {
        isWhole = true
        return { kind: 'whole', content: buffer.joined(), release: () => buffer.release() }
      }
      const overflow = buffer.add(step.value)
      if (overflow !== undefined) return { kind: overflow, all: () => chained(buffer.chunks, iterator, body) }
    }
  } finally {
    if (!isWhole) buffer.release()
  }
}

/** The response with its content in memory, where bound and reservation allow it; otherwise it streams. Nothing is left reserved. */
export const bufferedResponse = async (
  response: GatewayResponse,
  maxBytes: number,
  reservation: Reservation,
): Promise<GatewayResponse> => {
  const { content } = response
  if (content === undefined || Buffer.isBuffer(content)) return response
  const reading = await readBody(content, maxBytes, reservation)
  if (reading.kind !== 'whole') return { ...response, content: reading.all() }
  reading.release()
  const headers = withHeader(response.headers, 'Content-Length', String(reading.content.length))
  return { ...response, headers, content: reading.content }
}
