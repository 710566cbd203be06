import { Transform } from 'node:stream'
import { BodyBuffer } from './bodies/read-body.ts'
import type { Reservation } from './bounds/byte-budget.ts'

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
  let bytes = 0
  let buffer: BodyBuffer | undefined = new BodyBuffer(maxBytes, reservation)
  let isDone = false
  const stop = (): void => {
    buffer = undefined
    reservation.release()
  }
  const finish = async (isWhole: boolean): Promise<void> => {
    if (isDone) return
    isDone = true
    const content = isWhole ? buffer?.joined() : undefined
    stop()
    await done(content)
  }
  return new Transform({
    transform(chunk: Buffer, _encoding, next) {
      bytes += chunk.length
      if (buffer?.add(chunk) !== undefined) stop()
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
