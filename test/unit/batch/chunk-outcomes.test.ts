import { expect, test } from 'vitest'
import {
  type ChunkOutcomes,
  type EndedChunk,
  fittingItems,
  noOutcomes,
  withChunk,
} from '../../../src/batch/splitter.ts'

const mostMs = 1_000
const after = (before: ChunkOutcomes, chunk: Partial<EndedChunk>, times = 1): ChunkOutcomes => {
  let outcomes = before
  for (let time = 0; time < times; time += 1) {
    const whole = { result: 'answered', items: 10, ms: 65, isAlone: false, ...chunk } as const
    outcomes = withChunk(outcomes, whole, mostMs, 5_000)
  }
  return outcomes
}
const known = after(noOutcomes, { isAlone: true })

test('fewer upstream batches go at once while they only wait for each other, and slowly more while they do not', () => {
  const crowded = after(known, { ms: 400 }, 100)
  expect(crowded.limit).toBe(2)
  const free = after(crowded, { ms: 65 }, 100)
  expect(free.limit).toBeGreaterThan(10)
  expect(after(free, { ms: 130.1 }).limit).toBe(free.limit)
  expect(after(free, { result: 'broken', ms: 5_000 }).limit).toBe(free.limit / 2)
  expect(after(noOutcomes, { ms: 5_000 }).limit).toBe(noOutcomes.limit)
})

test('an upstream batch gets no more items than it can work on in its time, as far as is known', () => {
  expect(fittingItems(noOutcomes, 25, mostMs)).toBe(25)
  expect(fittingItems(known, 25, mostMs)).toBe(25)
  const slow = after(noOutcomes, { ms: 2_000, isAlone: true })
  expect(fittingItems(slow, 25, mostMs)).toBe(5)
  expect(fittingItems(slow, 25, 0)).toBe(25)
  expect(fittingItems(after(noOutcomes, { items: 1, ms: 9_000, isAlone: true }), 25, mostMs)).toBe(1)
})

test('items of a batch that were too late count as slow ones', () => {
  const late = after(noOutcomes, { result: 'broken', items: 25, ms: 2_500, isAlone: true })
  expect(fittingItems(late, 25, mostMs)).toBe(10)
  const cutOff = after(noOutcomes, { result: 'broken', items: 25, ms: 3, isAlone: true })
  expect(cutOff.itemMs).toBeUndefined()
})

test('a start-up before the items lets the size settle where an upstream batch keeps its time', () => {
  let outcomes = noOutcomes
  for (let time = 0; time < 200; time += 1) {
    const items = fittingItems(outcomes, 25, mostMs)
    outcomes = after(outcomes, { items, ms: 600 + items * 40, isAlone: true })
  }
  expect(fittingItems(outcomes, 25, mostMs)).toBe(10)
})

test('the time beside other batches does not count as what items cost', () => {
  expect(after(known, { ms: 600 }).itemMs).toBe(known.itemMs)
})

test('a refused batch and a broken one are remembered for as long as it is likely to go on', () => {
  expect(after(noOutcomes, { result: 'not-run' })).toMatchObject({ noRouteUntilMs: 305_000 })
  expect(after(noOutcomes, { result: 'broken' })).toMatchObject({ brokenUntilMs: 35_000 })
  for (const result of ['limited', 'not-sent'] as const)
    expect(after(noOutcomes, { result })).toEqual(noOutcomes)
})
