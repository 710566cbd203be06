import { expect, test } from 'vitest'
import {
  chooseChunks,
  type Experience,
  noExperience,
  withBatch,
  withChoice,
} from '../../../src/batch/choose-chunks.ts'
import type { Way } from '../../../src/batch/promised-ms.ts'

/** An upstream of so many processors: requests beyond those share them. */
const upstream =
  (processors: number, startUpMs: number, itemMs: number) =>
  (way: Way, items: number): number => {
    const requests = way === 0 ? items : Math.min(way, items)
    const inFlight = way === 0 ? Math.min(8, items) : requests
    const work = requests * startUpMs + items * itemMs
    const slowest = way === 0 ? startUpMs + itemMs : startUpMs + Math.ceil(items / requests) * itemMs
    return Math.max(work / Math.min(processors, inFlight), slowest)
  }

type Upstream = ReturnType<typeof upstream>

const items = 25
const bounds: Parameters<typeof chooseChunks>[1] = {
  mostChunks: 8,
  firstGuess: 2,
  items: true,
  count: items,
  atOnce: 8,
  cost: undefined,
}

/** Ways of so many batches, one after the other, and what is known at the end. */
const follow = (
  before: Experience,
  model: Upstream,
  batches: number,
  more = bounds,
): { ways: Way[]; experience: Experience } => {
  let experience = before
  const ways: Way[] = []
  for (let at = 0; at < batches; at += 1) {
    const { way, reason } = chooseChunks(experience, more)
    ways.push(way)
    experience = withBatch(withChoice(experience, reason === 'explored'), way, model(way, items) / items)
  }
  return { ways, experience }
}

const most = (ways: readonly Way[]): Way | undefined => {
  const counts = new Map<Way, number>()
  for (const way of ways) counts.set(way, (counts.get(way) ?? 0) + 1)
  return [...counts].sort(([, a], [, b]) => b - a)[0]?.[0]
}

test.each([
  ['one processor', upstream(1, 15, 5), 1],
  ['two processors', upstream(2, 15, 5), 2],
  ['four processors', upstream(4, 15, 5), 4],
  ['eight processors', upstream(8, 15, 5), 8],
  ['more processors than chunks may be', upstream(16, 15, 5), 8],
] as const)('finds the parallelism of %s', (_, model, best) => {
  const { experience } = follow(noExperience, model, 60)
  expect(most(follow(experience, model, 40).ways)).toBe(best)
})

test('stays with single items where upstream batches cost more', () => {
  const model: Upstream = (way, count) => (way === 0 ? count * 5 : count * 12)
  const { experience } = follow(noExperience, model, 60)
  expect(most(follow(experience, model, 40).ways)).toBe(0)
})

test('follows an upstream that loses processors, and one that gains some', () => {
  const four = follow(noExperience, upstream(4, 15, 5), 60).experience
  const two = follow(four, upstream(2, 15, 5), 120).experience
  expect(most(follow(two, upstream(2, 15, 5), 60).ways)).toBe(2)
  const fourAgain = follow(two, upstream(4, 15, 5), 200).experience
  expect(most(follow(fourAgain, upstream(4, 15, 5), 60).ways)).toBe(4)
})

const trials = (experience: Experience): number => experience.explored

test.each([1, 2, 3, 4, 8, 16])(
  'tries something out in a tenth of the first batches at most: %i processors',
  (processors) => {
    let experience = noExperience
    for (let batches = 1; batches <= 120; batches += 1) {
      experience = follow(experience, upstream(processors, 15, 5), 1).experience
      expect(trials(experience)).toBeLessThanOrEqual(batches / 10)
    }
  },
)

test('a known cost spares the trials that cannot pay', () => {
  const model = upstream(2, 15, 5)
  const knowing = { ...bounds, cost: { startUpMs: 15, itemMs: 5 } }
  // Single items would take 25 start-ups.
  expect(follow(noExperience, model, 60).ways).toContain(0)
  expect(follow(noExperience, model, 60, knowing).ways).not.toContain(0)
})

test('explores in one batch of sixteen at most, once the way is known', () => {
  const model = upstream(2, 15, 5)
  const { experience } = follow(noExperience, model, 20)
  const { ways } = follow(experience, model, 160)
  expect(ways.filter((way) => way !== 2).length).toBeLessThanOrEqual(10)
})

test('never goes beyond its bounds', () => {
  const { ways } = follow(noExperience, upstream(32, 15, 5), 100)
  expect(Math.max(...ways)).toBe(8)
  const only = chooseChunks(noExperience, { ...bounds, mostChunks: 1, firstGuess: 4 })
  expect(only).toEqual({ way: 1, reason: 'first-guess' })
})

test('the same experience gives the same choice', () => {
  const { experience } = follow(noExperience, upstream(3, 15, 5), 31)
  expect(chooseChunks(experience, bounds)).toEqual(chooseChunks(experience, bounds))
})
