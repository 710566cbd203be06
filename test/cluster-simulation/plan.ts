import { type Random, randomFrom } from '../support/random.ts'
import type { BatchPlan } from './client-batches.ts'
import type { MemberSettings } from './member-settings.ts'
import { inFrontOf } from './plan-front.ts'
import { withRequests } from './plan-requests.ts'
import type { Roughness } from './redis/network.ts'
import { between, surveyOf } from './scene.ts'
import { items } from './services/interface.ts'
import { storiesOf } from './stories.ts'
import { type WriteSpec, writeFates } from './upstream.ts'

export type PurgeKind = 'all' | 'prefix' | 'target'

/** `slot`: a place in which one process after another runs. */
type Traffic =
  | {
      readonly does: 'read'
      readonly slot: number
      readonly item: number
      readonly leavesAfterMs: number | undefined
    }
  /** Through the cache in front of all gateways, which asks this one. */
  | { readonly does: 'read-front'; readonly slot: number; readonly item: number }
  | ({ readonly does: 'write'; readonly slot: number } & WriteSpec)
  | ({ readonly does: 'batch'; readonly slot: number } & BatchPlan)
  | { readonly does: 'purge'; readonly slot: number; readonly item: number; readonly what: PurgeKind }

type Disturbance =
  | { readonly does: 'reload'; readonly slot: number }
  | { readonly does: 'pause'; readonly slot: number; readonly ms: number }
  /** The machine stands still: its monotonic clock does not count the time. */
  | { readonly does: 'suspend'; readonly slot: number; readonly ms: number }
  | { readonly does: 'crash'; readonly slot: number; readonly ms: number }
  /** It waits for its open requests, but no longer than `drainMs`. */
  | { readonly does: 'leave'; readonly slot: number; readonly ms: number; readonly drainMs: number }
  | { readonly does: 'set-clock'; readonly slot: number; readonly ms: number }
  | {
      readonly does: 'partition'
      readonly slot: number
      readonly ms: number
      readonly way: 'out' | 'back' | 'both'
      /** Before it, messages of the machine take up to five leases more, each another time. */
      readonly sluggishMs: number
    }
  | { readonly does: 'cut'; readonly slot: number; readonly isSilent: boolean }
  | { readonly does: 'redis-pause'; readonly ms: number }
  | { readonly does: 'redis-refuses'; readonly ms: number; readonly error: string }
  /** Of the data the state of `lagMs` ago is left, or none. */
  | { readonly does: 'redis-restart'; readonly ms: number; readonly lagMs: number; readonly keeps: boolean }
  /** A replica with the state of `lagMs` ago becomes the master; the old one serves its connections for `splitMs`. */
  | { readonly does: 'redis-fails-over'; readonly lagMs: number; readonly splitMs: number }
  /** The same, and after `ms` the old master, with its own data, becomes the master again. */
  | { readonly does: 'redis-fails-back'; readonly ms: number }
  | { readonly does: 'redis-loses-key'; readonly key: string }
  | { readonly does: 'redis-cuts-all' }
  /** The cache in front refuses purges, carries them out without saying so, or is started again, without what it had. */
  | { readonly does: 'front-refuses' | 'front-loses-responses' | 'front-restarts'; readonly ms: number }

type Timed<Kind> = Kind & { readonly at: number }

/** What a fault of the plan is. */
export type FaultAction = Timed<Disturbance>
/** What clients, operators and faults do, each at a moment. */
export type Action = Timed<Traffic> | FaultAction

export type WriteAction = Extract<Action, { does: 'write' }>

export type Plan = {
  readonly seed: number
  readonly settings: MemberSettings
  readonly instances: number
  /** Of each instance; 0: it is one process without a parent. */
  readonly workers: number
  readonly roughness: Roughness
  readonly upstreamSlowness: number
  readonly actions: readonly Action[]
  readonly endsAt: number
}

const leaseMs = 400

/** Members are forgotten after the longest write, or before its end, as with the defaults. */
const limits = [
  { weight: 3, forgetAfterMs: 3_000, totalMs: 400 },
  { weight: 1, forgetAfterMs: 1_600, totalMs: 4_000 },
] as const

const pick = <Value>(random: Random, values: readonly Value[]): Value =>
  values[Math.floor(random() * values.length)] as Value

const topologies = [
  { weight: 4, hasRedis: true, workers: 0, instances: [2, 3] },
  { weight: 1, hasRedis: false, workers: 3, instances: [1] },
  { weight: 2, hasRedis: true, workers: 2, instances: [2] },
] as const

const weighted = <Value extends { readonly weight: number }>(
  random: Random,
  values: readonly Value[],
): Value => {
  let left = random() * values.reduce((sum, { weight }) => sum + weight, 0)
  for (const value of values) {
    left -= value.weight
    if (left < 0) return value
  }
  return values[0] as Value
}

type Does = FaultAction['does']

/** Faults that lose data of Redis: nothing else that docs/scale.md excludes beside them happens near them. */
const losing = new Set<Does>(['redis-restart', 'redis-fails-over', 'redis-fails-back', 'redis-loses-key'])
/** Faults after which an instance is without contact to Redis for a while. */
const cutting = new Set<Does>(['partition', 'cut', 'crash', 'leave', 'pause', 'suspend'])

const comingBack = new Set<Does>(['partition', 'pause', 'suspend'])

const isOfRedis = (does: Does): boolean => does.startsWith('redis') || does === 'partition' || does === 'cut'

type Kind = { readonly weight: number; readonly does: Does }
const kinds: readonly Kind[] = [
  { weight: 4, does: 'pause' },
  { weight: 2, does: 'suspend' },
  { weight: 4, does: 'crash' },
  { weight: 2, does: 'leave' },
  { weight: 1, does: 'set-clock' },
  { weight: 2, does: 'reload' },
  { weight: 6, does: 'partition' },
  { weight: 4, does: 'cut' },
  { weight: 2, does: 'redis-pause' },
  { weight: 1, does: 'redis-refuses' },
  { weight: 2, does: 'redis-restart' },
  { weight: 2, does: 'redis-fails-over' },
  { weight: 2, does: 'redis-fails-back' },
  { weight: 2, does: 'redis-loses-key' },
  { weight: 1, does: 'redis-cuts-all' },
]

/** Most runs have faults of one sort, close together. */
const sorts: readonly (readonly Does[])[] = [
  ['pause', 'suspend', 'crash', 'leave', 'set-clock', 'reload'],
  ['pause', 'suspend', 'set-clock'],
  ['partition', 'cut', 'redis-pause', 'redis-refuses', 'redis-cuts-all'],
  ['partition', 'cut', 'crash', 'pause'],
  ['redis-restart', 'redis-fails-over', 'redis-fails-back', 'redis-loses-key'],
  ['redis-restart', 'redis-fails-over', 'redis-fails-back', 'redis-loses-key', 'partition', 'cut', 'pause'],
  ['redis-loses-key', 'redis-fails-over', 'redis-pause', 'partition'],
  ['partition'],
  kinds.map(({ does }) => does),
]

const ledgerKeys = ['ledger', 'log', 'members', 'pending'].map((name) => `{sim}:${name}`)

/** With its time of effect, after which the next may begin. */
const faultOf = (
  random: Random,
  does: Does,
  at: number,
  slot: number,
  { forgetAfterMs, longestCutMs }: { readonly forgetAfterMs: number; readonly longestCutMs: number },
): { readonly action: FaultAction; readonly ms: number } => {
  // Short ones are over within a lease, long ones outlast it, and the longest make others forget a member.
  const length = random()
  const ms =
    length < 0.35
      ? between(random, 1, leaseMs)
      : length < 0.75
        ? between(random, leaseMs, forgetAfterMs)
        : between(random, 1, 1.3) * forgetAfterMs
  const cutMs = Math.min(ms, longestCutMs)
  switch (does) {
    case 'pause':
    case 'suspend':
    case 'crash':
      return { action: { at, does, slot, ms }, ms }
    case 'leave':
      return { action: { at, does, slot, ms, drainMs: pick(random, [0, 100, 1_000]) }, ms }
    case 'set-clock':
      return { action: { at, does, slot, ms: between(random, -1, 1) * pick(random, [500, 30_000]) }, ms: 0 }
    case 'partition':
      return {
        action: {
          at,
          does,
          slot,
          ms: cutMs,
          way: pick(random, ['out', 'back', 'both']),
          sluggishMs: random() < 0.4 ? between(random, 0, leaseMs) : 0,
        },
        ms: cutMs,
      }
    case 'cut':
      return { action: { at, does, slot, isSilent: random() < 0.3 }, ms: leaseMs }
    case 'redis-pause':
      return { action: { at, does, ms }, ms }
    case 'redis-refuses':
      return {
        action: {
          at,
          does,
          ms: cutMs,
          error: pick(random, ['OOM no memory', 'READONLY a replica', 'LOADING']),
        },
        ms: cutMs,
      }
    case 'redis-restart': {
      const lagMs = random() < 0.3 ? 0 : between(random, 0, 2 * leaseMs)
      return { action: { at, does, ms: cutMs, lagMs, keeps: random() < 0.7 }, ms: cutMs + lagMs }
    }
    case 'redis-fails-over': {
      const lagMs = between(random, 0, leaseMs)
      const splitMs = random() < 0.5 ? 0 : between(random, 0, forgetAfterMs * 0.6)
      return { action: { at, does, lagMs, splitMs }, ms: lagMs + splitMs }
    }
    case 'redis-fails-back':
      return { action: { at, does, ms: cutMs }, ms: cutMs }
    case 'redis-loses-key':
      return { action: { at, does, key: pick(random, ledgerKeys) }, ms: 0 }
    case 'redis-cuts-all':
      return { action: { at, does }, ms: 0 }
    default:
      return { action: { at, does: 'reload', slot }, ms: 0 }
  }
}

/** When a fault begins, and the time of its effect. */
type Spell = { readonly at: number; readonly ms: number; readonly slot: number }

/** Faults one after the other, some at the same time, but none that docs/scale.md names as not covered. */
const faultsOf = (
  random: Random,
  plan: Pick<Plan, 'settings' | 'endsAt'>,
  slots: number,
): { readonly actions: readonly Action[]; readonly spells: readonly Spell[] } => {
  const { forgetAfterMs, hasRedis, refuses } = plan.settings
  const sort = pick(random, hasRedis ? sorts : sorts.slice(0, 2))
  const choices = kinds.filter(({ does }) => sort.includes(does) && (hasRedis || !isOfRedis(does)))
  // `go-on` keeps the promise if an instance is cut off for less than `forgetAfter`; it takes a moment to connect again.
  const longestCutMs = refuses ? forgetAfterMs * 1.6 : forgetAfterMs * 0.65
  const calmMs = forgetAfterMs + 3 * leaseMs
  const actions: FaultAction[] = []
  const spells: Spell[] = []
  let at = forgetAfterMs + between(random, 500, 1500)
  let slot = 0
  /** No other fault concerns an instance until then. */
  let quietUntil = 0
  /** Some instance is without contact until then. */
  let cutUntil = 0
  const add = (action: FaultAction, ms: number): void => {
    const { does } = action
    // The last of these messages arrive five leases late (faults.ts).
    const isSluggish = action.does === 'partition' && action.sluggishMs > 0
    const sluggishMs = isSluggish ? action.sluggishMs + 5 * leaseMs : 0
    const until = action.at + ms
    actions.push(action)
    spells.push({ at: action.at, ms, slot })
    if (losing.has(does)) quietUntil = until + calmMs
    if (cutting.has(does) || does === 'redis-refuses')
      cutUntil = Math.max(cutUntil, until + sluggishMs + 3 * leaseMs)
  }
  const earliest = (does: Does): number => {
    if (losing.has(does)) return Math.max(at, quietUntil, cutUntil + calmMs)
    // Two short cuts, one after the other, keep an instance away for as long as both, and the time to connect again.
    if (cutting.has(does)) return Math.max(at, quietUntil, isOfRedis(does) || !refuses ? cutUntil : 0)
    return does === 'redis-refuses' ? Math.max(at, cutUntil) : at
  }
  while (at < plan.endsAt - 1_500) {
    const { does } = weighted(random, choices)
    at = earliest(does)
    // Two faults of one member meet more often.
    if (random() < 0.5) slot = Math.floor(random() * slots)
    const { action, ms } = faultOf(random, does, at, slot, { forgetAfterMs, longestCutMs })
    add(action, ms)
    // A member without contact ends, or one that has just come back.
    if (comingBack.has(does) && random() < 0.25) {
      const crashAt = at + (random() < 0.5 ? random() * ms : ms + between(random, 1, 40))
      add({ at: crashAt, does: 'crash', slot, ms: between(random, 1, leaseMs) }, leaseMs)
    }
    // A machine that stands still in the moment in which its clock is set back cannot see that it did (docs/scale.md).
    if (does === 'set-clock') at += between(random, 1, 2) * leaseMs
    at += random() < 0.4 ? between(random, 0, ms) : ms + between(random, 20, 900)
  }
  return { actions, spells }
}

type Shape = {
  readonly random: Random
  readonly slots: number
  readonly forgetAfterMs: number
  readonly totalMs: number
}

/** A write or a purge, and reads that may meet it on the way. */
const changeOf = (
  { random, totalMs, slots }: Pick<Shape, 'random' | 'totalMs' | 'slots'>,
  at: number,
  slot: number,
): readonly Action[] => {
  const item = pick(random, items)
  const fate = random() < 0.5 ? 'answered' : pick(random, writeFates)
  const change: Action =
    random() < 0.15
      ? { at, does: 'purge', slot, item, what: pick(random, ['all', 'prefix', 'target']) }
      : { at, does: 'write', slot, item, verb: 'save', way: 'rest', fate }
  const reads = Array.from({ length: 4 }, (): Action => {
    // Some after the gateway has given up a late write.
    const meets =
      fate === 'late' && random() < 0.5 ? (1 + random() * 0.8) * totalMs : between(random, -30, 60)
    const shown = random() < 0.5 ? item : 0
    const other = Math.floor(random() * slots)
    return { at: at + meets, does: 'read', slot: other, item: shown, leavesAfterMs: undefined }
  })
  return [change, ...reads]
}

/** When a write meets a fault: as it begins or ends, when a member without contact goes on alone, or when it is forgotten. */
const meetingOf = ({ random, forgetAfterMs }: Shape, { at, ms }: Spell): number => {
  const chance = random()
  if (chance < 0.15) return at + between(random, -40, 20)
  if (chance < 0.35) return at + between(random, -0.2, 1.2) * leaseMs
  if (chance < 0.5) return at + between(random, 3, 4.5) * leaseMs
  if (chance < 0.65) return at + ms + between(random, -10, 40)
  if (chance < 0.9) return at + ms + between(random, -0.3, 1.5) * leaseMs
  return at + ms + forgetAfterMs + between(random, -1, 1) * leaseMs
}

const trafficOf = (shape: Shape, endsAt: number, spells: readonly Spell[]): readonly Action[] => {
  const { random, forgetAfterMs, slots } = shape
  const actions: Action[] = []
  const anySlot = (): number => Math.floor(random() * slots)
  const survey = (at: number): void => {
    actions.push(...surveyOf(random, at, slots))
  }
  const changes = (at: number, slot: number): void => {
    actions.push(...changeOf(shape, at, slot))
    // Two at the same time, through different members.
    if (random() < 0.3) actions.push(...changeOf(shape, at + random() * pick(random, [2, 60]), anySlot()))
  }
  for (const spell of spells) {
    const { at, ms, slot } = spell
    survey(at - between(random, 10, 60))
    survey(at + ms + between(random, 0, 0.5) * leaseMs)
    if (ms > leaseMs) survey(at + ms + forgetAfterMs + between(random, 0, 1) * leaseMs)
    for (let left = pick(random, [1, 2, 3, 6]); left > 0; left -= 1)
      changes(meetingOf(shape, spell), random() < 0.5 ? slot : anySlot())
  }
  for (let at = between(random, 0, 500); at < endsAt; at += -Math.log(1 - random()) * 50) {
    if (random() < 0.02) changes(at, anySlot())
    else
      actions.push({
        at,
        does: 'read',
        slot: anySlot(),
        item: pick(random, [0, ...items]),
        leavesAfterMs: undefined,
      })
  }
  return actions
}

/** Any faults, and traffic that meets them. */
const anythingOf = (
  random: Random,
  settings: MemberSettings,
  slots: number,
): { readonly actions: readonly Action[]; readonly endsAt: number } => {
  const endsAt = 12_000
  const { actions, spells } = faultsOf(random, { settings, endsAt }, slots)
  const { forgetAfterMs, totalMs } = settings
  const traffic = trafficOf({ random, slots, forgetAfterMs, totalMs }, endsAt, spells)
  return { actions: [...actions, ...traffic], endsAt }
}

type Services = Pick<
  MemberSettings,
  'contract' | 'hasGraphql' | 'hasFront' | 'frontKind' | 'negativeTtlMs' | 'batchDeadlineMs' | 'batchSplit'
>

const frontKinds = ['varnish', 'varnish', 'next', 'next', 'webhook', 'fastly', 'cloudflare'] as const

/** By random sources of their own, so that a new one leaves the plans of the others as they were. */
const serviceOf = (seed: number) => {
  const ofFront = randomFrom(Math.imul(seed + 1, 0x85ebca6b))
  const isSite = ofFront() < 0.3
  const random = randomFrom(Math.imul(seed + 1, 0xc2b2ae35))
  const isPlants = !isSite && random() < 0.15
  const services: Services = {
    contract: isSite ? 'site' : isPlants ? 'plants' : 'open',
    hasFront: ofFront() < 0.25 && !isPlants,
    frontKind: pick(random, frontKinds),
    hasGraphql: isSite && random() < 0.5,
    negativeTtlMs: pick(random, [0, 1_500, 60_000]),
    batchDeadlineMs: pick(random, [0, 300]),
    batchSplit: pick(random, ['item', 'chunk', 'whole', 'auto']),
  }
  return { services, ofFront, ofRequests: random }
}

/** Everything that happens from outside in the run of a seed. */
export const planOf = (seed: number): Plan => {
  const random = randomFrom(Math.imul(seed + 1, 0x9e3779b1))
  const { hasRedis, workers, instances: counts } = weighted(random, topologies)
  const instances = pick<number>(random, counts)
  const slots = instances * Math.max(1, workers)
  const isRough = random() < 0.6
  const { services, ofFront, ofRequests } = serviceOf(seed)
  const { forgetAfterMs, totalMs } = weighted(random, limits)
  const settings = {
    ...services,
    hasRedis,
    isSigning: hasRedis && random() < 0.25,
    refuses: hasRedis && random() < 0.4,
    leaseMs,
    forgetAfterMs,
    totalMs,
    ttlMs: pick(random, [1_500, 60_000, 60_000]),
    staleWhileRevalidateMs: pick(random, [0, 0, 1_000]),
    staleIfErrorMs: pick(random, [0, 5_000]),
  }
  const told =
    random() < 0.75
      ? storiesOf({ random, settings, slots, workers, at: forgetAfterMs + between(random, 500, 1_000) })
      : anythingOf(random, settings, slots)
  const { endsAt } = told
  const actions = withRequests(ofRequests, settings, told.actions)
  const inFront = services.hasFront ? inFrontOf(ofFront, actions, { endsAt, slots }) : []
  return {
    seed,
    settings,
    instances,
    workers,
    roughness: isRough
      ? { some: 0.05, someMs: 20, long: pick(random, [0.0005, 0.003, 0.01]), longMs: 1.2 * leaseMs }
      : { some: 0.01, someMs: 5, long: 0, longMs: 0 },
    upstreamSlowness: pick(random, [2, 10, 60, 300]),
    endsAt,
    actions: [...actions, ...inFront].sort((one, other) => one.at - other.at),
  }
}
