import { Transform } from 'node:stream'
import { overheadOfChunk, type Reservation } from './bounds/byte-budget.ts'

/**
 * Passes a content through and calls `done` once: before its last octet or its end is passed on, which waits for the promise, or when
 * it breaks off. `content`: all of it; undefined where it is longer than `maxBytes`, differs from its declared length, or the
 * reservation is refused.
 */
export const teeContent = (
  maxBytes: number,
  declared: number | undefined,
  reservation: Reservation,
  done: (content: Buffer | undefined) => unknown,
): Transform => {
  let chunks: Buffer[] = []
  let bytes = 0
  let isCollecting = true
  let isDone = false
  const stop = (): void => {
    isCollecting = false
    chunks = []
    reservation.release()
  }
  const finish = async (isWhole: boolean): Promise<void> => {
    if (isDone) return
    isDone = true
    const content = isCollecting && isWhole ? Buffer.concat(chunks) : undefined
    stop()
    await done(content)
  }
  return new Transform({
    transform(chunk: Buffer, _encoding, next) {
      bytes += chunk.length
      if (isCollecting && bytes <= maxBytes && reservation.reserve(chunk.length + overheadOfChunk)) {
        chunks.push(chunk)
      } else if (isCollecting) stop()
      if (bytes === declared) void finish(true).then(() => next(null, chunk), next)
      else next(null, chunk)
    },
    flush(next) {
      void finish(declared === undefined || declared === bytes).then(() => next(), next)
    },
    destroy(error, next) {
      void finish(false).catch(() => {})
      next(error)
    },
  })
}
