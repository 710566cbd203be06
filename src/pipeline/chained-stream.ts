import { Readable } from 'node:stream'

/** A stream of what has been read already and of what is still to come; destroying it destroys its source. */
export const chained = (read: readonly Buffer[], rest: AsyncIterator<Buffer>, source: Readable): Readable =>
  Readable.from(
    (async function* () {
      yield* read
      yield* { [Symbol.asyncIterator]: () => rest }
    })(),
    { objectMode: false },
  )
    // A generator that was never begun has no end of its own.
    .on('close', () => source.destroy())
