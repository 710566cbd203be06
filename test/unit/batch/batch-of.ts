import { type Batch, type BatchOptions, createBatch } from '../../../src/batch/batch.ts'
import { createPlaces } from '../../../src/batch/places.ts'
import { createSplitter } from '../../../src/batch/splitter.ts'
import { systemClock } from '../../../src/clock.ts'

/** A batch route with defaults for what a test does not care about: all items run, and answer with their own path. */
export const batchOf = (options: Partial<BatchOptions>): Batch =>
  createBatch({
    maxItems: 25,
    concurrency: 8,
    deadlineMs: 5_000,
    clock: systemClock,
    report: () => {},
    flow: 'client',
    places: { items: createPlaces(() => 100), chunks: createPlaces(() => 100) },
    splitter: createSplitter({
      mode: 'item',
      concurrency: 8,
      mostItems: 25,
      mostChunkMs: 0,
      clock: systemClock,
    }),
    dispatchChunk: () => {
      throw new Error('no chunks here')
    },
    admit: (item) => {
      const [, , , collection = '', itemId] = item.path.split('/')
      return {
        kind: 'runnable',
        conflict: {
          collection,
          kind: itemId === undefined ? 'collection' : 'item',
          itemId,
          method: item.method,
        },
      }
    },
    dispatch: async (item) => ({ status: 200, fields: [], content: Buffer.from(JSON.stringify(item.path)) }),
    ...options,
  })

/** Runs a batch of these requests and gives back the parsed envelope. */
export const runBatch = async (
  batch: Batch,
  requests: readonly unknown[],
  signal: AbortSignal = new AbortController().signal,
): Promise<{ failed?: string; responses: { body: unknown; status: number; headers: unknown }[] }> =>
  JSON.parse((await batch.run({ requests }, signal)).content.toString())
