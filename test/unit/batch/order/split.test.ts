import { expect, test } from 'vitest'
import { Splitter } from '../../../../src/batch/order/split.ts'

const splitterAt = (mode: 'item' | 'chunk' | 'whole' | 'auto', maxUpstreamBatchMs = 5_000) => {
  let ms = 0
  const clock = { now: () => ms, monotonic: () => ms }
  const splitter = new Splitter({ mode, concurrency: 8, maxItems: 25, maxUpstreamBatchMs, clock })
  return { splitter, pass: (passed: number) => (ms += passed) }
}

test('two upstream batches at the same time, for independent items', () => {
  const { splitter } = splitterAt('auto')
  expect(splitter.begin({ runnable: 25, groups: 25 })).toEqual({
    parts: 2,
    reason: 'two-parts',
    maxItems: 25,
  })
})

test('a batch whose items all wait for each other is sent whole', () => {
  expect(splitterAt('auto').splitter.begin({ runnable: 9, groups: 1 })).toMatchObject({
    parts: 1,
    reason: 'one-group',
  })
})

test('batches in flight together are sent whole, and the next one alone in two parts again', () => {
  const { splitter } = splitterAt('auto')
  splitter.begin({ runnable: 9, groups: 9 })
  expect(splitter.begin({ runnable: 9, groups: 9 })).toMatchObject({ parts: 1, reason: 'beside-others' })
  splitter.ended()
  splitter.ended()
  expect(splitter.begin({ runnable: 9, groups: 9 })).toMatchObject({ parts: 2 })
})

test.each([
  ['item', 25, Number.POSITIVE_INFINITY, 'configured'],
  ['whole', 25, 1, 'configured'],
  ['auto', 1, Number.POSITIVE_INFINITY, 'few-items'],
  ['chunk', 2, Number.POSITIVE_INFINITY, 'few-items'],
] as const)('split: %s, %s items: %s parts', (mode, runnable, parts, reason) => {
  expect(splitterAt(mode).splitter.begin({ runnable, groups: runnable })).toMatchObject({ parts, reason })
})

test('an upstream without the batch route gets single items for five minutes', () => {
  const { splitter, pass } = splitterAt('auto')
  splitter.upstreamBatchEnded('not-run', 9, 10)
  expect(splitter.begin({ runnable: 9, groups: 9 }).reason).toBe('no-batch-route')
  splitter.ended()
  pass(5 * 60_000)
  expect(splitter.begin({ runnable: 9, groups: 9 }).reason).toBe('two-parts')
})

test('after a batch that broke, items go one by one for half a minute', () => {
  const { splitter, pass } = splitterAt('auto')
  splitter.upstreamBatchEnded('broken', 9, 10)
  expect(splitter.begin({ runnable: 9, groups: 9 }).reason).toBe('broken-chunks')
  splitter.ended()
  pass(30_000)
  expect(splitter.begin({ runnable: 9, groups: 9 }).reason).toBe('two-parts')
})

test('an upstream batch has as many items as fit into its time', () => {
  const { splitter } = splitterAt('auto', 1_000)
  splitter.upstreamBatchEnded('answered', 10, 1_000)
  expect(splitter.begin({ runnable: 25, groups: 25 }).maxItems).toBe(10)
  const { splitter: unbounded } = splitterAt('auto', 0)
  unbounded.upstreamBatchEnded('answered', 10, 1_000)
  expect(unbounded.begin({ runnable: 25, groups: 25 }).maxItems).toBe(25)
})
