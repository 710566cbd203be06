import { expect, onTestFinished, test, vi } from 'vitest'
import type { BatchEvent } from '../../../src/batch/events.ts'
import type { BatchItem, ItemResponse } from '../../../src/batch/item.ts'
import { batchOf, runBatch } from './batch-of.ts'

const update = (id: number) => ({ method: 'PUT', path: `/site/v2/posts/${id}`, body: { title: 'x' } })
const turn = () => new Promise<void>((resolve) => setImmediate(resolve))
const ok: ItemResponse = { status: 200, headers: [], content: Buffer.from('{}') }

type Watch = { readonly begun: readonly string[]; max(): number }

/** Others that want to begin have some turns of the event loop for it. */
const minTurns = 20

/** A dispatch that notes what runs beside what; an item ends when it may. */
const watched = (mayEnd: (path: string, watch: Watch) => boolean = () => true) => {
  const running = new Set<string>()
  const begun: string[] = []
  const ended: string[] = []
  let max = 0
  const dispatch = async (item: BatchItem): Promise<ItemResponse> => {
    running.add(item.path)
    begun.push(item.path)
    max = Math.max(max, running.size)
    for (let turns = 0; turns < minTurns || !mayEnd(item.path, watch); turns += 1) await turn()
    running.delete(item.path)
    ended.push(item.path)
    return ok
  }
  const watch = { dispatch, begun, ended, max: () => max }
  return watch
}

test.each([1, 3, 8])('runs at most %i items at once, and as many', async (concurrency) => {
  const watch = watched((_, { max }) => max() >= concurrency)
  const batch = batchOf({ concurrency, handleItem: watch.dispatch })
  const { responses } = await runBatch(
    batch,
    Array.from({ length: 25 }, (_, i) => update(i + 1)),
  )
  expect(responses.map(({ status }) => status)).toEqual(Array(25).fill(200))
  expect(watch.max()).toBe(concurrency)
})

test('two writes to one item never run side by side', async () => {
  const watch = watched((_, { begun }) => begun.includes('/site/v2/posts/2'))
  await runBatch(batchOf({ handleItem: watch.dispatch }), [update(1), update(1), update(2)])
  expect(watch.begun).toEqual(['/site/v2/posts/1', '/site/v2/posts/2', '/site/v2/posts/1'])
})

test('waiting items hold no slot', async () => {
  const first = '/site/v2/posts/1'
  const watch = watched((path, { begun }) => path !== first || begun.includes('/site/v2/posts/3'))
  await runBatch(batchOf({ concurrency: 2, handleItem: watch.dispatch }), [
    update(1),
    update(1),
    update(1),
    update(2),
    update(3),
  ])
  expect(watch.begun.slice(0, 3)).toEqual(['/site/v2/posts/1', '/site/v2/posts/2', '/site/v2/posts/3'])
})

test('after the deadline an item that never began and one without a response say so', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => {
    vi.useRealTimers()
  })
  let responded = false
  const watch = watched(() => responded)
  const clock = { now: () => 0, monotonic: () => 0 }
  const batch = batchOf({ concurrency: 1, deadlineMs: 20, clock, handleItem: watch.dispatch })
  const run = runBatch(batch, [update(1), update(2)])
  await expect.poll(() => watch.begun).toEqual(['/site/v2/posts/1'])
  vi.advanceTimersByTime(20)
  const { responses } = await run
  expect(responses).toMatchObject([
    { status: 504, body: { code: 'trellis_outcome_unknown' } },
    { status: 504, body: { code: 'trellis_not_sent' } },
  ])
  responded = true
  await expect.poll(() => watch.ended).toEqual(['/site/v2/posts/1'])
  expect(watch.begun).toEqual(['/site/v2/posts/1'])
})

test('when the client disconnects, no further item starts, and a write in flight is finished', async () => {
  const client = new AbortController()
  const watch = watched(() => client.signal.aborted)
  const signals: AbortSignal[] = []
  const events: BatchEvent[] = []
  const batch = batchOf({
    concurrency: 2,
    report: (event) => events.push(event),
    handleItem: (item, signal) => {
      signals.push(signal)
      return watch.dispatch(item)
    },
  })
  const run = runBatch(
    batch,
    [update(1), { method: 'GET', path: '/site/v2/posts/2' }, update(3)],
    client.signal,
  )
  await expect.poll(() => watch.begun.length).toBe(2)
  client.abort()
  await run
  await expect.poll(() => watch.ended).toEqual(['/site/v2/posts/1', '/site/v2/posts/2'])
  // Only the read is cancelled.
  expect(signals.map(({ aborted }) => aborted)).toEqual([false, true])
  expect(events.at(-1)).toMatchObject({ kind: 'batch-finished', result: 'client-gone', items: 3 })
})

test('reports every item and the batch', async () => {
  const watch = watched((_, { begun }) => begun.includes('/site/v2/posts/2'))
  const events: BatchEvent[] = []
  const batch = batchOf({ report: (event) => events.push(event), handleItem: watch.dispatch })
  await runBatch(batch, [update(1), update(2), update(1), { path: 'nowhere' }])
  expect(
    events.map((event) =>
      event.kind === 'batch-item-finished' ? [event.method, event.outcome, event.status] : event.kind,
    ),
  ).toEqual([
    'batch-split',
    ['PUT', 'answered', 200],
    ['PUT', 'answered', 200],
    ['PUT', 'answered', 200],
    ['_OTHER', 'refused', 404],
    'batch-finished',
  ])
  expect(events.at(-1)).toMatchObject({ result: 'ran', items: 4, parallelism: 2, ordered: 1 })
})
