import { randomFrom, zipf } from './random.ts'

/** What a site and those who run it are like. Times in seconds. */
type Scenario = {
  readonly name: string
  readonly regions: number
  readonly instancesPerRegion: number
  readonly readsPerSecond: number
  readonly writesPerSecond: number
  /** Keys that one write invalidates. */
  readonly fanOut: number
  readonly keys: number
  readonly ttl: number
  /** One ledger for all regions, or one in each. */
  readonly ledgers: 'one' | 'one-per-region'
  /** Between two regions and back. */
  readonly regionRoundTrip: number
}

type Outcome = {
  /** Shares of all reads. */
  readonly memoryHits: number
  readonly tierHits: number
  readonly upstreamPerSecond: number
  /** At the busiest store. */
  readonly commandsPerSecond: number
  readonly messagesPerSecond: number
  /** Share of one core of the busiest store. */
  readonly storeLoad: number
  /** What a write waits for beside the upstream, in milliseconds, when nothing is wrong. */
  readonly writeWaitMs: number
  /** Oldest state that a read can show after a write was answered. */
  readonly stalenessSeconds: number
}

/** Measured with `INFO commandstats` (docs/evidence/scale.md): microseconds of the store. */
const cost = { script: 60, plain: 3, delivery: 2 } as const
const syncsPerSecond = 4
/** Within a region: network and both event loops. */
const localRoundTrip = 0.0005

/** When each key was last fetched, by cache; minus infinity for a key that was never fetched. */
const fetchTimes = (caches: number, keys: number): Float64Array =>
  new Float64Array(caches * keys).fill(Number.NEGATIVE_INFINITY)

type Counts = { memory: number; tier: number; upstream: number; lookups: number }

/** As many as let what was there at the start go, and no run take minutes. */
const minEvents = 600_000
const maxEvents = 3_000_000

/** Plays reads and writes until what was there at the start no longer matters, then counts as many again. */
const play = (scenario: Scenario): { readonly counts: Counts; readonly reads: number } => {
  const { instancesPerRegion, keys, regions, ttl } = scenario
  const random = randomFrom(20_26)
  const pick = zipf(random, keys, 1)
  const memory = fetchTimes(regions * instancesPerRegion, keys)
  const tier = fetchTimes(regions, keys)
  // What is known of writes: everywhere the same with one ledger, otherwise those of the own region.
  const knowers = scenario.ledgers === 'one' ? 1 : regions
  const writtenAt = fetchTimes(knowers, keys)
  const counts: Counts = { memory: 0, tier: 0, upstream: 0, lookups: 0 }
  const perSecond = scenario.readsPerSecond + scenario.writesPerSecond
  const events = Math.min(maxEvents, Math.max(minEvents, perSecond * ttl * 3))
  const isFresh = (fetchedAt: number, known: number, now: number): boolean =>
    fetchedAt > (writtenAt[known] as number) && now - fetchedAt < ttl

  const read = (now: number, counted: boolean): void => {
    const key = pick()
    const instance = Math.floor(random() * regions * instancesPerRegion)
    const region = Math.floor(instance / instancesPerRegion)
    const inMemory = instance * keys + key
    const inTier = region * keys + key
    const known = (region % knowers) * keys + key
    let how: keyof Counts = 'memory'
    if (!isFresh(memory[inMemory] as number, known, now)) {
      how = 'tier'
      if (!isFresh(tier[inTier] as number, known, now)) {
        how = 'upstream'
        tier[inTier] = now
      }
      memory[inMemory] = tier[inTier] as number
    }
    if (!counted) return
    counts[how] += 1
    if (how !== 'memory') counts.lookups += 1
  }
  let reads = 0
  for (let event = 0; event < events; event += 1) {
    const now = event / perSecond
    const counted = event >= events / 2
    if (random() < scenario.writesPerSecond / perSecond) {
      const knower = Math.floor(random() * knowers) * keys
      for (let touched = 0; touched < scenario.fanOut; touched += 1) writtenAt[knower + pick()] = now
    } else {
      if (counted) reads += 1
      read(now, counted)
    }
  }
  return { counts, reads }
}

/** The result of a scenario: instances that are notified of a write show it at once, others when the ttl has passed. */
const simulate = (scenario: Scenario): Outcome => {
  const { counts, reads } = play(scenario)
  const { instancesPerRegion, regions, readsPerSecond, writesPerSecond } = scenario
  const one = scenario.ledgers === 'one'
  const members = one ? instancesPerRegion * regions : instancesPerRegion
  const share = (count: number): number => count / Math.max(1, reads)
  const perRegion = readsPerSecond / regions
  const lookups = share(counts.lookups) * perRegion
  const fetches = share(counts.upstream) * perRegion
  const writes = one ? writesPerSecond : writesPerSecond / regions
  const scripts = members * syncsPerSecond + writes * 2 + fetches
  // Content, its time to live; a claim and what is stored; acknowledgements of writes.
  const plain = lookups * 4 + fetches * 3 + writes * (members - 1)
  const messages = writes * members + writes * (members - 1)
  const far = one && regions > 1 ? scenario.regionRoundTrip : localRoundTrip
  return {
    memoryHits: share(counts.memory),
    tierHits: share(counts.tier),
    upstreamPerSecond: share(counts.upstream) * readsPerSecond,
    commandsPerSecond: scripts + plain,
    messagesPerSecond: messages,
    storeLoad: (scripts * cost.script + plain * cost.plain + messages * cost.delivery) / 1_000_000,
    // Begin, append, the push and its acknowledgement.
    writeWaitMs: far * 3 * 1000,
    stalenessSeconds: one || regions === 1 ? 0 : scenario.ttl,
  }
}

const site = {
  regions: 1,
  readsPerSecond: 2_000,
  writesPerSecond: 1,
  fanOut: 20,
  keys: 20_000,
  ttl: 60,
  ledgers: 'one',
  regionRoundTrip: 0.08,
} as const

/** The rows of docs/evidence/scale.md. */
const scenarios: readonly Scenario[] = [
  { ...site, name: 'one instance', instancesPerRegion: 1 },
  { ...site, name: 'two', instancesPerRegion: 2 },
  { ...site, name: 'ten', instancesPerRegion: 10 },
  { ...site, name: 'ten, busy editors', instancesPerRegion: 10, writesPerSecond: 20 },
  { ...site, name: 'ten, writes that touch much', instancesPerRegion: 10, fanOut: 400 },
  { ...site, name: 'ten, ttl of ten minutes', instancesPerRegion: 10, ttl: 600 },
  { ...site, name: 'fifty', instancesPerRegion: 50, readsPerSecond: 20_000, writesPerSecond: 5 },
  {
    ...site,
    name: 'two hundred, many writers',
    instancesPerRegion: 200,
    readsPerSecond: 50_000,
    writesPerSecond: 200,
  },
  { ...site, name: 'three regions, one ledger', regions: 3, instancesPerRegion: 10, readsPerSecond: 6_000 },
  {
    ...site,
    name: 'three regions, a ledger each',
    regions: 3,
    instancesPerRegion: 10,
    readsPerSecond: 6_000,
    ledgers: 'one-per-region',
  },
]

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`
const whole = (value: number): string => value.toFixed(0)

/** The table of docs/evidence/scale.md, one line each. */
export const simulationTable = (): readonly string[] => [
  '| scenario | instances | reads/s | writes/s | from memory | from the tier | upstream/s | store commands/s | messages/s | store load | write waits | shows a write after |',
  '|---|---|---|---|---|---|---|---|---|---|---|---|',
  ...scenarios.map((scenario) => {
    const outcome = simulate(scenario)
    const cells = [
      scenario.name,
      scenario.regions * scenario.instancesPerRegion,
      scenario.readsPerSecond,
      scenario.writesPerSecond,
      percent(outcome.memoryHits),
      percent(outcome.tierHits),
      whole(outcome.upstreamPerSecond),
      whole(outcome.commandsPerSecond),
      whole(outcome.messagesPerSecond),
      percent(outcome.storeLoad),
      `${outcome.writeWaitMs.toFixed(1)} ms`,
      outcome.stalenessSeconds === 0 ? 'at once' : `${outcome.stalenessSeconds} s`,
    ]
    return `| ${cells.join(' | ')} |`
  }),
]
