import { Transform } from 'node:stream'
import { overheadOfChunk, type Reservation } from '../http/byte-budget.ts'

/** Passes content on and gives it away in one piece at the end; not when it is too long, contradicts its length, or there is no room for it. */
export const collecting = (
  maxBytes: number,
  declared: number | undefined,
  room: Reservation,
  done: (content: Buffer) => void,
): Transform => {
  let chunks: Buffer[] = []
  let bytes = 0
  let isKept = true
  const giveUp = (): void => {
    isKept = false
    chunks = []
    room.release()
  }
  return new Transform({
    transform(chunk: Buffer, _encoding, next) {
      bytes += chunk.length
      if (isKept && bytes <= maxBytes && room.reserve(chunk.length + overheadOfChunk)) chunks.push(chunk)
      else if (isKept) giveUp()
      next(null, chunk)
    },
    flush(next) {
      if (isKept && (declared === undefined || declared === bytes)) done(Buffer.concat(chunks))
      giveUp()
      next()
    },
    destroy(error, next) {
      giveUp()
      next(error)
    },
  })
}
