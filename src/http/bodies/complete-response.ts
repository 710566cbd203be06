import { Readable } from 'node:stream'
import { overheadOfChunk, type Reservation } from '../bounds/byte-budget.ts'
import { withHeader } from '../headers/header-lines.ts'
import type { GatewayResponse } from '../message.ts'

/** A stream of the bytes already read and of those still to come; destroying it destroys its source. */
const chained = (read: readonly Buffer[], rest: AsyncIterator<Buffer>, source: Readable): Readable =>
  Readable.from(
    (async function* () {
      yield* read
      yield* { [Symbol.asyncIterator]: () => rest }
    })(),
    { objectMode: false },
  )
    // A generator that was never started does not end its source.
    .on('close', () => source.destroy())

/**
 * The response with its content read, as far as `maxBytes` and the budget allow; otherwise it streams, beginning with what was
 * read. Nothing is left reserved afterwards.
 */
export const completed = async (
  response: GatewayResponse,
  maxBytes: number,
  reservation: Reservation,
): Promise<GatewayResponse> => {
  const { content } = response
  if (content === undefined || Buffer.isBuffer(content)) return response
  const chunks: Buffer[] = []
  let bytes = 0
  let reservedBytes = 0
  const iterator = (content as Readable).iterator({ destroyOnReturn: false })
  try {
    for (;;) {
      const step = await iterator.next()
      if (step.done === true) {
        const whole = Buffer.concat(chunks)
        const headers = withHeader(response.headers, 'Content-Length', String(whole.length))
        return { ...response, headers, content: whole }
      }
      const chunk = step.value as Buffer
      chunks.push(chunk)
      bytes += chunk.length
      const cost = chunk.length + overheadOfChunk
      const hasRoom = reservation.reserve(cost)
      if (hasRoom) reservedBytes += cost
      if (!hasRoom || bytes > maxBytes)
        return { ...response, content: chained(chunks, iterator, content as Readable) }
    }
  } finally {
    reservation.shrink(reservedBytes)
  }
}
