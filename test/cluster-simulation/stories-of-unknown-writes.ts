import { oneOf } from '../support/random.ts'
import type { Action } from './plan.ts'
import { ledgerKeys, type Scene, type Story, tools } from './scene.ts'
import { items } from './services/interface.ts'

// Stories of writes that are carried out after the gateway has given them up, or after the process that sent them has ended.

/** A new ledger has to hear of a write that is carried out late. */
const lateBeforeLoss: Story = (scene) => {
  const { random, at } = scene
  const { forgets, ms, other, reads, slot, survey, totals, write } = tools(scene)
  const restarts = other()
  const lossAt = at + totals(1, 1) + ms(5, 200)
  return {
    actions: [
      ...survey(at - ms(15, 60)),
      ...items.slice(0, 3).map((item) => write(at + ms(0, 20), slot, 'late', item)),
      { at: lossAt - ms(5, 100), does: 'crash', slot: restarts, ms: ms(1, 20) },
      { at: lossAt, does: 'redis-loses-key', key: oneOf(random, ledgerKeys) },
      ...reads(16, lossAt + 20, at + totals(1.8, 1.8), () => restarts),
      ...survey(lossAt + forgets(1.2, 1.5)),
    ],
    endsAt: Math.max(at + totals(2, 2), lossAt + forgets(1.6, 1.7)),
  }
}

/** The items that stay the same, so that what is noted of the others is forgotten. */
const writesOfOthers = (scene: Scene, from: number, by: () => number): readonly Action[] => {
  const { ms, write } = tools(scene)
  return [...items.slice(2), ...items.slice(2)].map((item) =>
    write(from + ms(5, 100), by(), 'answered', item),
  )
}

/** A member that was away, or is new, has to hear of a late write that the ledger has forgotten. */
const lateBehindOthers: Story = (scene) => {
  const { random, at } = scene
  const { forgets, ms, other, reads, slot, survey, totals, write } = tools(scene)
  const behind = other()
  const knownAt = at + totals(1, 1)
  const awayAt = knownAt - ms(10, 60)
  const away: Action =
    random() < 0.5 && scene.settings.hasRedis
      ? { at: awayAt, does: 'partition', slot: behind, ms: ms(100, 250), way: 'both', sluggishMs: 0 }
      : { at: knownAt + ms(20, 100), does: 'crash', slot: behind, ms: ms(1, 60) }
  return {
    actions: [
      ...survey(at - ms(15, 60)),
      ...items.slice(0, 2).map((item) => write(at + ms(0, 10), slot, 'late', item)),
      away,
      ...writesOfOthers(scene, knownAt + 5, () => slot),
      ...reads(12, knownAt + 120, at + totals(1.8, 1.8), () => behind),
      ...survey(knownAt + ms(150, 300)),
    ],
    endsAt: at + totals(2, 2) + forgets(0.3, 0.4),
  }
}

/** A process ends while its writes are on their way, and others write meanwhile. */
const endsUnsettled: Story = (scene) => {
  const { random, at } = scene
  const { forgets, ms, other, reads, slot, survey, totals, write } = tools(scene)
  const crashAt = at + ms(40, 150)
  // The parent of a worker sees at once that it has ended.
  const knownAt = scene.workers > 0 ? crashAt + 5 : crashAt + forgets(1.02, 1.1)
  const behind = other()
  const away: readonly Action[] =
    random() < 0.5 && scene.settings.hasRedis
      ? [
          {
            at: knownAt - ms(10, 60),
            does: 'partition',
            slot: behind,
            ms: ms(60, 250),
            way: 'both',
            sluggishMs: 0,
          },
        ]
      : []
  return {
    actions: [
      ...survey(at - ms(15, 60)),
      ...items
        .slice(0, 2)
        .map((item) => write(at + ms(0, 20), slot, oneOf(random, ['late', 'late', 'streamed']), item)),
      write(at + ms(25, 40), other(), 'answered', 5),
      { at: crashAt, does: 'crash', slot, ms: ms(1, 100) },
      ...away,
      ...writesOfOthers(scene, knownAt, other),
      ...reads(12, knownAt + 5, Math.max(knownAt + 300, at + totals(0.8, 0.8)), other),
      ...survey(knownAt + ms(20, 200)),
    ],
    endsAt: Math.max(knownAt + 400, at + totals(1, 1)) + forgets(0.3, 0.4),
  }
}

/** A member leaves while its write waits for another one that cannot hear of it. */
const leavesWriting: Story = (scene) => {
  const { at } = scene
  const { forgets, leases, ms, other, reads, slot, survey, writes } = tools(scene)
  const rounds = [0, 1, 2].flatMap((round): readonly Action[] => {
    const begins = at + round * (leases(3, 3.5) + 300)
    const deaf = other()
    return [
      ...survey(begins - ms(15, 60)),
      { at: begins, does: 'partition', slot: deaf, ms: leases(1, 1.4), way: 'both', sluggishMs: 0 },
      ...writes(3, begins + 5, begins + leases(0.2, 0.6), () => slot),
      { at: begins + leases(0.2, 0.6), does: 'leave', slot, ms: ms(1, 60), drainMs: ms(0, 60) },
      ...reads(8, begins + 10, begins + leases(0.9, 1), () => deaf),
    ]
  })
  return { actions: rounds, endsAt: at + leases(12, 13) + 900 + forgets(0.3, 0.4) }
}

export const unknownWritesOfRedis: readonly Story[] = [
  lateBeforeLoss,
  lateBehindOthers,
  lateBehindOthers,
  endsUnsettled,
  leavesWriting,
]
export const unknownWritesOfWorkers: readonly Story[] = [lateBehindOthers, endsUnsettled]
