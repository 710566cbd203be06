import { oneOf } from '../support/random.ts'
import type { Action, FaultAction } from './plan.ts'
import { ledgerKeys, type Scene, type Story, type Told, tools } from './scene.ts'
import { items } from './services/interface.ts'
import { unknownWritesOfRedis, unknownWritesOfWorkers } from './stories-of-unknown-writes.ts'

// Sequences of faults and requests, each near a window of the protocol that faults at random moments seldom meet.

/** Redis loses data while a member is cut off that has missed invalidations, or still has a lease. */
const lossBehindCut: Story = (scene) => {
  const { random, at } = scene
  const { anyway, forgets, leases, ms, other, slot, survey, writes } = tools(scene)
  const cutMs = Math.max(leases(1, 2), forgets(0.2, 0.6))
  const lossAt = at + (random() < 0.5 ? leases(0, 0.7) : ms(0, cutMs * 0.8))
  const loss: FaultAction = oneOf(random, [
    { at: lossAt, does: 'redis-loses-key', key: '{sim}:log' },
    { at: lossAt, does: 'redis-loses-key', key: '{sim}:members' },
    { at: lossAt, does: 'redis-loses-key', key: oneOf(random, ledgerKeys) },
    { at: lossAt, does: 'redis-fails-back', ms: Math.max(10, ms(0, at + cutMs - lossAt - 20)) },
    { at: lossAt, does: 'redis-fails-over', lagMs: 0, splitMs: 0 },
    { at: lossAt, does: 'redis-restart', ms: ms(10, 200), lagMs: 0, keeps: random() < 0.8 },
  ])
  return {
    actions: [
      ...survey(at - ms(15, 60)),
      { at, does: 'partition', slot, ms: cutMs, way: anyway(), sluggishMs: 0 },
      ...writes(2, at + 5, lossAt, other),
      loss,
      // Many make the ledger forget what was noted before, and everything is dropped for it.
      ...writes(oneOf(random, [0, 1, 3]), lossAt, lossAt + leases(0.1, 1), other),
      ...survey(at + cutMs + leases(0, 1)),
      ...survey(at + cutMs + leases(1, 3)),
      ...survey(at + cutMs + forgets(1, 1.2)),
    ],
    endsAt: at + cutMs + forgets(1.2, 1.3),
  }
}

/** Redis loses what it has just been told, and writes wait until it is back. */
const lossOfLast: Story = (scene) => {
  const { random, at } = scene
  const { forgets, leases, ms, other, slot, survey, writes } = tools(scene)
  const lagMs = ms(10, 400)
  const downMs = leases(0.05, 1.6)
  const action: FaultAction =
    random() < 0.6
      ? { at, does: 'redis-restart', ms: downMs, lagMs, keeps: random() < 0.9 }
      : { at, does: 'redis-fails-over', lagMs, splitMs: random() < 0.5 ? 0 : forgets(0.05, 0.6) }
  const any = (): number => (random() < 0.6 ? slot : other())
  return {
    actions: [
      ...survey(at - ms(15, 60)),
      action,
      ...writes(3, at, at + lagMs, any),
      ...writes(3, at + lagMs - 20, at + lagMs + downMs, any),
      ...writes(2, at + lagMs + downMs, at + lagMs + downMs + leases(0, 1), any),
      ...survey(at + lagMs + downMs + leases(1, 3)),
      ...writes(2, at + lagMs + downMs + leases(1, 4), at + lagMs + downMs + forgets(0.9, 1), any),
      ...survey(at + lagMs + downMs + forgets(1, 1.3)),
    ],
    endsAt: at + lagMs + downMs + forgets(1.6, 1.7),
  }
}

/** Redis is away for long, and one member finds it later than the others; perhaps the ledger is new. */
const allAway: Story = (scene) => {
  const { random, at } = scene
  const { forgets, leases, ms, other, slot, survey, writes } = tools(scene)
  const isNew = random() < 0.4
  const pauseAt = at + ms(100, 300)
  const pauseMs = forgets(1.02, 1.3)
  const backAt = pauseAt + pauseMs
  const lateMs = forgets(0.1, 0.5)
  const cutAt = isNew ? at : pauseAt + ms(0, pauseMs)
  const lost: readonly Action[] = isNew
    ? [{ at: at + ms(20, 60), does: 'redis-loses-key', key: oneOf(random, ledgerKeys) }]
    : []
  return {
    actions: [
      ...survey(at - ms(15, 60)),
      { at: cutAt, does: 'partition', slot, ms: backAt + lateMs - cutAt, way: 'both', sluggishMs: 0 },
      ...lost,
      { at: pauseAt, does: 'redis-pause', ms: pauseMs },
      ...survey(backAt + leases(0.3, 1)),
      ...survey(backAt + leases(1, 2)),
      ...writes(3, backAt + leases(0.5, 2), backAt + lateMs, () => slot),
      ...writes(1, backAt, backAt + lateMs, other),
      ...survey(backAt + lateMs + leases(0, 2)),
    ],
    endsAt: backAt + lateMs + forgets(1.2, 1.3),
  }
}

/** A member that goes on alone ends before it can say what it has acknowledged. */
const endsAlone: Story = (scene) => {
  const { random, at } = scene
  const { anyway, forgets, leases, longestCutMs, ms, slot, survey, writes } = tools(scene)
  const cutMs = Math.min(longestCutMs, leases(3.6, 4.8))
  const crashAt = at + cutMs + (random() < 0.3 ? -ms(0, 200) : ms(0, 300))
  return {
    actions: [
      ...survey(at - ms(15, 60)),
      {
        at,
        does: 'partition',
        slot,
        ms: cutMs,
        way: anyway(),
        sluggishMs: random() < 0.3 ? leases(0, 0.5) : 0,
      },
      ...writes(3, at + leases(3, 3.4), crashAt, () => slot),
      { at: crashAt, does: 'crash', slot, ms: leases(0.1, 1) },
      ...survey(crashAt + leases(0.2, 2)),
      ...survey(at + forgets(1, 1.1)),
      ...survey(at + forgets(1.1, 1.4)),
    ],
    endsAt: at + forgets(2, 2.1),
  }
}

/** Old messages of a member that goes on alone arrive. */
const strays: Story = (scene) => {
  const { at } = scene
  const { anyway, forgets, leases, longestCutMs, ms, slot, survey, writes, reads, other } = tools(scene)
  const cutMs = Math.min(longestCutMs, leases(3.8, 4.8))
  return {
    actions: [
      ...survey(at - ms(15, 60)),
      { at, does: 'partition', slot, ms: cutMs, way: anyway(), sluggishMs: leases(0.2, 1) },
      ...reads(12, at + leases(2.5, 3), at + cutMs, other),
      ...writes(4, at + leases(3, 3.5), at + cutMs, () => slot),
      ...survey(at + cutMs + leases(0, 1)),
    ],
    endsAt: at + cutMs + forgets(1, 1.1),
  }
}

/** A member stands still for so long that it is forgotten, and gets writes as it continues; or ends then. */
const standsStill: Story = (scene) => {
  const { random, at } = scene
  const { forgets, leases, ms, slot, survey, write, writes } = tools(scene)
  const cutMs = leases(0.3, 1)
  const pauseAt = at + (random() < 0.5 ? ms(0.5, 1) * cutMs : 0)
  const resumesAt = pauseAt + forgets(1, 1.4)
  const cut: readonly Action[] =
    pauseAt > at ? [{ at, does: 'partition', slot, ms: cutMs, way: 'both', sluggishMs: 0 }] : []
  const ends: readonly Action[] =
    random() < 0.6 ? [{ at: resumesAt + ms(0.5, 40), does: 'crash', slot, ms: leases(0.1, 1) }] : []
  return {
    actions: [
      ...survey(at - ms(15, 60)),
      ...cut,
      write(pauseAt - ms(0, 20), slot),
      { at: pauseAt, does: random() < 0.7 ? 'pause' : 'suspend', slot, ms: resumesAt - pauseAt },
      ...survey(resumesAt - leases(0.2, 0.6)),
      ...writes(4, resumesAt - 5, resumesAt + 15, () => slot),
      ...ends,
      ...survey(resumesAt + leases(0, 1)),
    ],
    endsAt: resumesAt + forgets(1, 1.1),
  }
}

/** Processes end while their writes are carried out. */
const endsWriting: Story = (scene) => {
  const { at } = scene
  const { forgets, leases, ms, other, slot, survey, writes, reads } = tools(scene)
  const rounds = [0, 1, 2].flatMap((round): readonly Action[] => {
    const crashAt = at + round * leases(4, 5)
    return [
      ...survey(crashAt - ms(100, 200)),
      ...writes(3, crashAt - 40, crashAt, () => slot),
      ...writes(2, crashAt - 60, crashAt, other),
      ...reads(6, crashAt - 60, crashAt + 40, other),
      { at: crashAt, does: 'crash', slot, ms: leases(0.1, 1) },
    ]
  })
  return { actions: rounds, endsAt: at + leases(14, 15) + forgets(1, 1.1) }
}

/** Several members write within a few milliseconds; some of what is pushed gets lost. */
const together: Story = (scene) => {
  const { random, at } = scene
  const { forgets, leases, ms, other, slot, survey, write } = tools(scene)
  const isCut = random() < 0.5
  const rounds = Array.from({ length: 8 }, (_, round): readonly Action[] => {
    const begins = at + round * leases(1.3, 1.5)
    const cut: readonly Action[] = isCut
      ? [
          { at: begins, does: 'cut', slot, isSilent: random() < 0.2 },
          write(begins + ms(0, 45), other()),
          write(begins + ms(45, 110), other()),
        ]
      : []
    return [
      ...survey(begins - ms(15, 60)),
      ...cut,
      write(begins, slot, random() < 0.4 ? 'refused' : 'answered'),
      write(begins + ms(-1.5, 1.5), other()),
      write(begins + ms(0, 3), random() < 0.5 ? slot : other()),
    ]
  }).flat()
  return { actions: rounds, endsAt: at + leases(13, 14) + forgets(0.5, 0.6) }
}

/** Writes while a member that is cut off still has its lease, whatever its clocks say. */
const lastLease: Story = (scene) => {
  const { random, at } = scene
  const { anyway, forgets, leases, ms, other, reads, slot, survey, writes } = tools(scene)
  const rounds = Array.from({ length: 4 }, (_, round): readonly Action[] => {
    const begins = at + round * leases(6, 6.5)
    const clock: readonly Action[] =
      random() < 0.3 ? [{ at: begins + leases(-0.3, 0.5), does: 'set-clock', slot, ms: -ms(200, 5_000) }] : []
    return [
      ...survey(begins - ms(15, 60)),
      ...clock,
      {
        at: begins,
        does: 'partition',
        slot,
        ms: leases(1.5, 2.5),
        way: anyway(),
        sluggishMs: random() < 0.5 ? leases(0.1, 0.6) : 0,
      },
      ...writes(3, begins + 1, begins + leases(0.3, 1.2), other),
      ...reads(6, begins + leases(0.5, 0.8), begins + leases(1, 1.6), () => slot),
    ]
  }).flat()
  return { actions: rounds, endsAt: at + leases(26, 27) + forgets(0.5, 0.6) }
}

/** A member starts while the ledger is made anew. */
const startsAnew: Story = (scene) => {
  const { random, at } = scene
  const { forgets, leases, ms, other, slot, survey, writes } = tools(scene)
  const lossAt = at + leases(0, 0.4)
  const loss: FaultAction =
    random() < 0.7
      ? { at: lossAt, does: 'redis-loses-key', key: oneOf(random, ledgerKeys) }
      : { at: lossAt, does: 'redis-fails-over', lagMs: 0, splitMs: 0 }
  return {
    actions: [
      ...survey(at - ms(15, 60)),
      random() < 0.7
        ? { at, does: 'crash', slot, ms: ms(1, 100) }
        : { at, does: 'leave', slot, ms: ms(1, 100), drainMs: 1_000 },
      loss,
      {
        at: lossAt - ms(0, 20),
        does: 'partition',
        slot: other(),
        ms: leases(0.5, 2),
        way: 'both',
        sluggishMs: 0,
      },
      ...writes(5, at + 10, at + leases(0.4, 1), () => slot),
      ...survey(at + forgets(1, 1.3)),
    ],
    endsAt: at + forgets(1.4, 1.5),
  }
}

/** An old master serves some connections for a while, and writes are acknowledged there. */
const splitRedis: Story = (scene) => {
  const { random, at, slots } = scene
  const { forgets, leases, ms, reads, survey, writes } = tools(scene)
  const any = (): number => Math.floor(random() * slots)
  const lagMs = random() < 0.5 ? 0 : ms(0, 60)
  const splitMs = forgets(0.35, 0.58)
  const from = at + lagMs
  return {
    actions: [
      ...survey(at - ms(15, 60)),
      { at, does: 'redis-fails-over', lagMs, splitMs },
      ...survey(from + leases(0.2, 0.8)),
      ...writes(5, from + leases(0.5, 1), from + splitMs, any),
      ...reads(20, from + leases(0.3, 1), from + splitMs, any),
      ...survey(from + splitMs + forgets(1, 1.1)),
      ...survey(from + splitMs + forgets(1.1, 1.5)),
    ],
    endsAt: from + splitMs + forgets(1.5, 1.6),
  }
}

/** A member that the others have forgotten still gets writes. */
const awayForLong: Story = (scene) => {
  const { at } = scene
  const { anyway, forgets, leases, longestCutMs, ms, slot, survey, writes } = tools(scene)
  const cutMs = Math.min(longestCutMs, forgets(1.4, 1.6))
  return {
    actions: [
      ...survey(at - ms(15, 60)),
      { at, does: 'partition', slot, ms: cutMs, way: anyway(), sluggishMs: 0 },
      ...survey(at + forgets(1, 1) + leases(0.4, 0.8)),
      ...writes(4, at + forgets(1, 1) + leases(0.8, 1), at + cutMs, () => slot),
      ...survey(at + cutMs + leases(0, 1)),
    ],
    endsAt: at + cutMs + forgets(1, 1.1),
  }
}

/** A member stands still soon after its start until it is forgotten; another one hears nothing while it joins again. */
const joinsTwice: Story = (scene) => {
  const { at, slots } = scene
  const { forgets, leases, ms, slot, survey, writes, reads } = tools(scene)
  const third = (slot + 1) % slots
  const pauseAt = at + ms(40, 260)
  const resumesAt = pauseAt + forgets(1, 1) + ms(20, 100)
  const deafAt = resumesAt - ms(20, 60)
  const endsAt = deafAt + ms(80, 300)
  return {
    actions: [
      { at, does: 'crash', slot, ms: ms(1, 10) },
      { at: pauseAt, does: 'pause', slot, ms: resumesAt - pauseAt },
      { at: deafAt, does: 'partition', slot: third, ms: endsAt - deafAt, way: 'both', sluggishMs: 0 },
      ...survey(endsAt - ms(10, 60)),
      { at: endsAt - ms(0, 15), does: 'partition', slot, ms: leases(1, 1.5), way: 'back', sluggishMs: 0 },
      ...writes(3, endsAt, endsAt + 20, () => third),
      ...reads(10, endsAt + 10, endsAt + leases(0.3, 0.9), () => slot),
    ],
    endsAt: endsAt + forgets(0.5, 0.6),
  }
}

/** Slow responses and writes, without any fault. */
const onItsWay: Story = (scene) => {
  const { random, at, slots } = scene
  const { leases, other, reads, slot, survey, write } = tools(scene)
  const any = (): number => Math.floor(random() * slots)
  const rounds = Array.from({ length: 10 }, (_, round): readonly Action[] => {
    const begins = at + round * leases(1, 1.2)
    const purge: Action = {
      at: begins,
      does: 'purge',
      slot,
      item: oneOf(random, items),
      what: oneOf(random, ['all', 'prefix', 'target']),
    }
    return [
      random() < 0.3
        ? purge
        : write(begins, random() < 0.5 ? slot : other(), random() < 0.4 ? 'streamed' : undefined),
      ...reads(10, begins - 60, begins + 100, any),
    ]
  }).flat()
  return { actions: [...survey(at), ...rounds], endsAt: at + leases(13, 14) }
}

const ofRedis: readonly Story[] = [
  ...[lossBehindCut, lossBehindCut, lossBehindCut, lossOfLast, lossOfLast, startsAnew, splitRedis],
  ...[allAway, endsAlone, endsAlone, strays, strays, standsStill],
  ...[together, lastLease, lastLease, onItsWay, awayForLong, joinsTwice],
  ...unknownWritesOfRedis,
]
const ofWorkers: readonly Story[] = [
  ...[endsWriting, endsWriting, onItsWay, standsStill],
  ...unknownWritesOfWorkers,
]
const ofBoth: readonly Story[] = [
  ...[endsWriting, endsWriting, endsWriting, endsWriting],
  ...unknownWritesOfWorkers,
  ...ofRedis,
]

/** Two of the stories, one after the other, for these processes. */
export const storiesOf = (scene: Scene): Told => {
  const { forgetAfterMs, hasRedis } = scene.settings
  const choices = !hasRedis ? ofWorkers : scene.workers > 0 ? ofBoth : ofRedis
  const first = oneOf(scene.random, choices)(scene)
  const at = first.endsAt + forgetAfterMs * 0.4
  const second = oneOf(scene.random, choices)({ ...scene, at })
  return { actions: [...first.actions, ...second.actions], endsAt: second.endsAt }
}
