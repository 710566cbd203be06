import { Transform } from 'node:stream'
import { overheadOfChunk, type Reservation } from './bounds/byte-budget.ts'

/**
 * Passes a content through and calls `done` with all of it at its end; not when it is longer than `maxBytes`, differs from its
 * declared length, or the reservation is refused.
 */
export const teeContent = (
  maxBytes: number,
  declared: number | undefined,
  reservation: Reservation,
  done: (content: Buffer) => void,
): Transform => {
  let chunks: Buffer[] = []
  let bytes = 0
  let isCollecting = true
  const stop = (): void => {
    isCollecting = false
    chunks = []
    reservation.release()
  }
  return new Transform({
    transform(chunk: Buffer, _encoding, next) {
      bytes += chunk.length
      if (isCollecting && bytes <= maxBytes && reservation.reserve(chunk.length + overheadOfChunk)) {
        chunks.push(chunk)
      } else if (isCollecting) stop()
      next(null, chunk)
    },
    flush(next) {
      if (isCollecting && (declared === undefined || declared === bytes)) done(Buffer.concat(chunks))
      stop()
      next()
    },
    destroy(error, next) {
      stop()
      next(error)
    },
  })
}
