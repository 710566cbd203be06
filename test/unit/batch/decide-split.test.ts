import { expect, test } from 'vitest'
import { noExperience, withBatch } from '../../../src/batch/choose-chunks.ts'
import { decideSplit, type Learned, type SplitInput } from '../../../src/batch/decide-split.ts'

const input: SplitInput = {
  mode: 'auto',
  runnable: 25,
  groups: 25,
  concurrency: 8,
  active: 1,
  mostItems: 25,
  mostChunkMs: 5_000,
}
const learned: Learned = {
  experience: noExperience,
  cost: undefined,
  firstGuess: 2,
  noRouteUntilMs: 0,
  brokenUntilMs: 0,
}
const fourIsBest = [4, 4, 6, 6, 3, 3, 0, 0].reduce(
  (experience, way) => withBatch(experience, way, way === 4 ? 5 : 6),
  noExperience,
)

const items = (reason: string) => ({ cut: { kind: 'items' }, reason })
const chunks = (count: number, reason: string) => ({ cut: { kind: 'chunks', count }, reason })

test.each<[what: string, input: Partial<SplitInput>, learned: Partial<Learned>, decision: unknown]>([
  ['item by item when told so', { mode: 'item' }, {}, items('configured')],
  ['one item', { runnable: 1, groups: 1 }, {}, items('few-items')],
  ['two items', { runnable: 2, groups: 2, mode: 'chunk' }, {}, items('few-items')],
  ['no batch route upstream', {}, { noRouteUntilMs: 1_001 }, items('no-batch-route')],
  ['the route may be back', {}, { noRouteUntilMs: 1_000 }, chunks(2, 'first-guess')],
  ['chunks broke', {}, { brokenUntilMs: 2_000 }, items('broken-chunks')],
  ['chunks broke, and are asked for', { mode: 'chunk' }, { brokenUntilMs: 2_000 }, chunks(2, 'first-guess')],
  ['everything in one line', { groups: 1 }, {}, chunks(1, 'one-group')],
  ['nothing known', {}, {}, chunks(2, 'first-guess')],
  ['nothing known, and only one at a time', { concurrency: 1 }, {}, chunks(1, 'first-guess')],
  ['measured', {}, { experience: fourIsBest }, chunks(4, 'measured')],
  [
    'measured, with fewer groups than chunks',
    { groups: 3 },
    { experience: fourIsBest },
    chunks(3, 'measured'),
  ],
  ['other batches under way', { active: 2 }, { experience: fourIsBest }, chunks(2, 'shared')],
  ['many others under way', { active: 40 }, { experience: fourIsBest }, chunks(1, 'shared')],
  [
    'slow items, so that a chunk stays within its time',
    { mostChunkMs: 1_000 },
    { cost: { startUpMs: 100, itemMs: 200 } },
    { ...chunks(7, 'first-guess'), mostItems: 4 },
  ],
  [
    'items that are slower than the time of a chunk',
    { mostChunkMs: 100 },
    { cost: { startUpMs: 0, itemMs: 200 } },
    { ...chunks(25, 'first-guess'), mostItems: 1 },
  ],
])('%s', (_, batch, known, decision) => {
  expect(decideSplit({ ...input, ...batch }, { ...learned, ...known }, 1_000)).toMatchObject(
    decision as Record<string, unknown>,
  )
})
