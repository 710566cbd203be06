import { expect, test } from 'vitest'
import { rowsOf } from '../../support/breadth.ts'
import { meanMs, singly, type Upstream } from './queueing-model.ts'

const batches = 400
const seeds = [1, 2, 3, 4]
const fixed = [1, 2, 3, 4, 6, 8, singly]

type Drift = (answered: number) => Upstream

const meanOf = (upstream: Drift, clients: number, parts: number | 'auto', count = batches): number => {
  const times = seeds.map((seed) => meanMs({ upstream, batches: count, clients, seed }, parts))
  return times.reduce((sum, ms) => sum + ms, 0) / times.length
}

const upstreams = [1, 2, 4, 8].flatMap((cores) =>
  [0, 2, 6].flatMap((others) =>
    (
      [
        [5, 5],
        [15, 5],
        [25, 5],
        [40, 2],
      ] as const
    ).flatMap(([startUpMs, itemMs]) =>
      [0, 0.6].flatMap((locked) =>
        [4, 100].map((workers): Upstream => ({ cores, others, startUpMs, itemMs, locked, workers })),
      ),
    ),
  ),
)
const titled = (upstream: Upstream) => ({ title: JSON.stringify(upstream), upstream })
const grid = rowsOf(upstreams.map(titled), 8)

test.each(grid)('auto takes at most a tenth longer than the best fixed split: $title', ({ upstream }) => {
  const times = fixed.map((parts) => meanOf(() => upstream, 1, parts))
  const best = Math.min(...times)
  const whole = times[0] ?? Number.NaN
  const auto = meanOf(() => upstream, 1, 'auto')
  expect(auto / best).toBeLessThanOrEqual(1.1)
  if (best / whole <= 0.54) expect(auto / whole).toBeLessThanOrEqual(0.6)
})

test.each(grid)(
  'batches beside each other take no longer than if each were sent whole: $title',
  ({ upstream }) => {
    for (const clients of [3, 10]) {
      expect(
        meanOf(() => upstream, clients, 'auto') / meanOf(() => upstream, clients, 1),
      ).toBeLessThanOrEqual(1.02)
    }
  },
)

const usual: Upstream = { cores: 2, workers: 100, startUpMs: 15, itemMs: 5, locked: 0, others: 0 }

test.each<[what: string, before: Partial<Upstream>, after: Partial<Upstream>]>([
  ['other programs come and go', {}, { others: 6 }],
  ['writers come to wait for each other', {}, { locked: 0.8 }],
  ['processors are taken away and given back', { cores: 4 }, { cores: 1 }],
  ['processors are given and taken away', { cores: 1 }, { cores: 4 }],
  ['requests become expensive, items cheap', {}, { startUpMs: 60, itemMs: 2 }],
])('where %s, auto takes at most a tenth longer than the best fixed split', (_, before, after) => {
  const upstream: Drift = (answered) => ({
    ...usual,
    ...(Math.floor(answered / 150) % 2 === 0 ? before : after),
  })
  const best = Math.min(...fixed.map((parts) => meanOf(upstream, 1, parts, 600)))
  expect(meanOf(upstream, 1, 'auto', 600) / best).toBeLessThanOrEqual(1.1)
})

/** The first batches meet PHP and a gateway that have compiled nothing yet. */
const afterStart =
  (upstream: Upstream): Drift =>
  (answered) => {
    const slow = 1 + 3 * Math.exp(-answered / 4)
    return { ...upstream, startUpMs: upstream.startUpMs * slow, itemMs: upstream.itemMs * slow }
  }

test.each<[what: string, Partial<Upstream>]>([
  ['two processors', {}],
  ['one processor', { cores: 1 }],
  ['a busy machine', { others: 6 }],
  ['one writer at a time', { locked: 0.9, others: 6 }],
])('a slow start misleads auto for some batches only: %s', (_, more) => {
  const upstream = afterStart({ ...usual, ...more })
  const best = Math.min(...fixed.map((parts) => meanOf(upstream, 1, parts)))
  expect(meanOf(upstream, 1, 'auto') / best).toBeLessThanOrEqual(1.1)
  const first = fixed.map((parts) => meanOf(upstream, 1, parts, 40))
  expect(meanOf(upstream, 1, 'auto', 40) / Math.min(...first)).toBeLessThanOrEqual(1.25)
})
