import { beforeEach, expect, test } from 'vitest'
import { createSplitMemory, createSplitter, type SplitMemory } from '../../../src/batch/splitter.ts'

let nowMs = 0
let memory: SplitMemory
beforeEach(() => {
  nowMs = 0
  memory = createSplitMemory()
})

const clock = { now: () => nowMs, monotonic: () => nowMs }
const singly = Number.POSITIVE_INFINITY
type Mode = Parameters<typeof createSplitter>[0]['mode']
const splitterOf = (mode: Mode, concurrency = 8) =>
  createSplitter({ mode, concurrency, mostItems: 25, mostChunkMs: 5_000, clock }, memory)
const batchOf = (runnable: number, groups = runnable, work = 'PUT posts') => ({ runnable, groups, work })

test.each<[what: string, mode: Mode, runnable: number, groups: number, parts: number, reason: string]>([
  ['each item by itself where it is configured', 'item', 25, 25, singly, 'configured'],
  ['all in one where it is configured', 'whole', 25, 25, 1, 'configured'],
  ['two items in one where it is configured', 'whole', 2, 2, 1, 'configured'],
  ['one item by itself', 'whole', 1, 1, singly, 'few-items'],
  ['one item by itself', 'auto', 1, 1, singly, 'few-items'],
  ['two items by themselves rather than in chunks', 'chunk', 2, 2, singly, 'few-items'],
  ['two items in one before anything is measured', 'auto', 2, 2, 1, 'first-guess'],
  ['two chunks before anything is measured', 'auto', 25, 25, 2, 'first-guess'],
  ['items that wait for each other in one', 'auto', 25, 1, 1, 'one-group'],
  ['two groups in one, as a chunk has two of them', 'auto', 25, 2, 1, 'first-guess'],
])('%s (%s)', (_, mode, runnable, groups, parts, reason) => {
  expect(splitterOf(mode).begin(batchOf(runnable, groups))).toMatchObject({ parts, reason })
})

test.each<[mode: Mode, broken: number, refused: number]>([
  ['auto', singly, singly],
  ['chunk', 2, singly],
  ['whole', 1, singly],
])(
  '%s goes on after a broken upstream batch as before, or by items, and by items after a refused one',
  (mode, broken, refused) => {
    const splitter = splitterOf(mode)
    const usual = splitter.begin(batchOf(25))
    usual.chunkEnded('broken', 13, 3)
    usual.ended(10)
    expect(splitter.begin(batchOf(25))).toMatchObject({ parts: broken })
    nowMs = 30_000
    const next = splitter.begin(batchOf(25))
    expect(next.reason).not.toBe('broken-chunks')
    next.chunkEnded('not-run', 13, 3)
    next.ended(10)
    expect(splitter.begin(batchOf(25))).toMatchObject({ parts: refused, reason: 'no-batch-route' })
  },
)

/** Sends batches one after the other to an upstream that takes so long for a split of `parts`. */
const follow = (
  splitter: ReturnType<typeof splitterOf>,
  times: number,
  msOf: (parts: number) => number,
  batch = batchOf(25),
) =>
  Array.from({ length: times }, () => {
    const split = splitter.begin(batch)
    nowMs += msOf(split.parts)
    split.ended(msOf(split.parts))
    return split.parts
  })

/** Times of two processors, at a start-up of five items. */
const twoProcessors = (parts: number): number =>
  parts === singly ? 75 : parts === 1 ? 30 : (parts * 5 + 25) / 2
/** One process at a time, as in front of a database with one writer. */
const oneAtATime = (parts: number): number => Math.min(parts, 25) * 5 + 25

test('auto sends whole what takes longer in parts, within some batches', () => {
  const parts = follow(splitterOf('auto'), 100, oneAtATime)
  expect(parts.slice(0, 2)).toEqual([2, 2])
  expect(parts.slice(12).filter((one) => one !== 1).length).toBeLessThan(12)
})

test('auto stays with items that are faster by themselves than in an upstream batch', () => {
  const parts = follow(splitterOf('auto'), 200, (one) => (one === singly ? 10 : 30))
  expect(parts.slice(100).filter((one) => one === singly).length).toBeGreaterThan(80)
  expect(follow(splitterOf('chunk'), 200, (one) => (one === singly ? 10 : 30))).not.toContain(singly)
})

test('the best split of one kind of batch and size is not used for another', () => {
  const splitter = splitterOf('auto')
  follow(splitter, 50, oneAtATime, batchOf(25, 25, 'PUT categories'))
  follow(splitter, 50, twoProcessors)
  follow(splitter, 50, oneAtATime, batchOf(6))
  expect(splitter.begin(batchOf(25, 25, 'PUT categories')).parts).toBe(1)
})

test('batches beside each other share the number of parts, and are not compared', () => {
  const splitter = splitterOf('auto')
  follow(splitter, 100, (parts) => (parts === singly ? 75 : (parts * 5 + 25) / Math.min(parts, 8)))
  const [first, second, third] = [1, 2, 3].map(() => splitter.begin(batchOf(25)))
  expect([first?.parts, second?.parts, third?.parts]).toEqual([8, 4, 3])
  expect([second?.reason, third?.reason]).toEqual(['shared', 'shared'])
  const before = [...memory.measured.values()]
  for (const split of [first, second, third]) split?.ended(1)
  expect([...memory.measured.values()]).toEqual(before)
})

test('a batch that was disturbed is not compared: an upstream batch broke, or the deadline came', () => {
  const splitter = splitterOf('auto')
  const broken = splitter.begin(batchOf(25))
  broken.chunkEnded('limited', 13, 3)
  broken.ended(10)
  splitter.begin(batchOf(25)).ended(undefined)
  expect(memory.measured.size).toBe(0)
})

test('slow items go in smaller upstream batches, also where they are to go whole', () => {
  const splitter = splitterOf('whole')
  const slow = splitter.begin(batchOf(25))
  slow.chunkEnded('answered', 25, 25_000)
  slow.ended(25_000)
  expect(splitter.begin(batchOf(25)).mostItems).toBe(5)
})

test('no more than a hundred kinds of batches are remembered', () => {
  const splitter = splitterOf('auto')
  for (let kind = 0; kind < 300; kind += 1) follow(splitter, 1, oneAtATime, batchOf(25, 25, `PUT ${kind}`))
  expect(memory.measured.size).toBe(100)
})
