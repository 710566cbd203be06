import type { BatchEnvelope } from '../../../src/batch/envelope/read-envelope.ts'
import type { BatchItem, ItemCheck } from '../../../src/batch/item.ts'
import { Splitter } from '../../../src/batch/order/split.ts'
import { type BatchOptions, createBatch } from '../../../src/batch/run-batch.ts'
import type { ItemHandlers } from '../../../src/batch/send/run-items.ts'
import { createSemaphore } from '../../../src/batch/send/semaphore.ts'
import { systemClock } from '../../../src/clock.ts'
import { interfaceItems } from '../../../src/wordpress/batch.ts'
import { siteShape } from '../../../src/wordpress/contract.ts'

type Sending = ItemHandlers & { admit(item: BatchItem): ItemCheck }

/** A batch route, and how the items of its batches are admitted and sent. */
export type TestBatch = { readonly batch: ReturnType<typeof createBatch>; readonly sending: Sending }

/** Defaults for what a test does not set: all items run, and answer with their own path. */
export const batchOf = ({
  admit,
  flow,
  handleItem: dispatch,
  handleTogether: dispatchTogether,
  ...options
}: Partial<BatchOptions & Sending>): TestBatch => ({
  batch: createBatch({
    itemRules: interfaceItems,
    errors: siteShape,
    turn: () => new Promise(setImmediate),
    concurrency: 8,
    deadlineMs: 5_000,
    clock: systemClock,
    report: () => {},
    semaphore: createSemaphore(100, 100),
    splitter: new Splitter({
      mode: 'item',
      concurrency: 8,
      maxItems: 25,
      maxUpstreamBatchMs: 0,
      clock: systemClock,
    }),
    ...options,
  }),
  sending: {
    flow: flow ?? 'client',
    handleTogether:
      dispatchTogether ??
      (() => {
        throw new Error('no upstream batches here')
      }),
    admit:
      admit ??
      ((item) => {
        const [, , , collection = '', itemId] = item.path.split('/')
        return {
          kind: 'runnable',
          conflict: {
            collection,
            kind: itemId === undefined ? 'collection' : 'item',
            itemId,
            method: item.method,
            effect: item.method === 'GET' ? 'read' : 'write',
          },
        }
      }),
    handleItem:
      dispatch ??
      (async (item) => ({ status: 200, headers: [], content: Buffer.from(JSON.stringify(item.path)) })),
  },
})

/** The response to a batch. */
export const wholeResponse = (
  { batch, sending }: TestBatch,
  envelope: unknown,
  signal: AbortSignal = new AbortController().signal,
  text?: string,
): Promise<{ readonly status: number; readonly content: Buffer }> =>
  batch({
    envelope: envelope as BatchEnvelope,
    text,
    signal,
    *check(item) {
      yield
      return sending.admit(item)
    },
    sender: sending,
  })

/** Runs a batch of these requests and gives back the parsed envelope. */
export const runBatch = async (
  batch: TestBatch,
  requests: readonly unknown[],
  signal: AbortSignal = new AbortController().signal,
): Promise<{ failed?: string; responses: { body: unknown; status: number; headers: unknown }[] }> =>
  JSON.parse((await wholeResponse(batch, { requests }, signal)).content.toString())
