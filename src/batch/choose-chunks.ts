/** A way to send a batch: so many upstream batches at once; 0 = every item a request of its own. */
export type Way = number

/** What a way has cost so far. */
export type WayMeasure = {
  /** Moving mean of the time of the whole batch, divided by its items. */
  readonly msPerItem: number
  readonly samples: number
  /** Number of the batch that was measured last. */
  readonly atBatch: number
}

/** What has been measured of batches of about one size, sent while no other batch was under way. */
export type Experience = {
  readonly batches: number
  readonly measures: ReadonlyMap<Way, WayMeasure>
}

/** Nothing measured yet. */
export const noExperience: Experience = { batches: 0, measures: new Map() }

export type ChunkChoice = {
  readonly way: Way
  readonly reason: 'first-guess' | 'explored' | 'measured'
}

const ladder: readonly Way[] = [1, 2, 3, 4, 6, 8, 12, 16, 25]

/** A newer measure moves the mean by this share. */
const share = 0.3
/** A way is known after so many measures, or after one that was this much worse than the best. */
const enoughSamples = 2
const hopeless = 1.5
/** One batch in sixteen looks at a neighbour, one in sixty-four also at one that was hopeless. */
const exploreEvery = 16
const exploreHopelessEvery = 64

/** The experience with one more batch. */
export const withBatch = (experience: Experience, way: Way, msPerItem: number): Experience => {
  const before = experience.measures.get(way)
  const mean = before === undefined ? msPerItem : before.msPerItem + share * (msPerItem - before.msPerItem)
  const measure = { msPerItem: mean, samples: (before?.samples ?? 0) + 1, atBatch: experience.batches }
  return {
    batches: experience.batches + 1,
    measures: new Map([...experience.measures, [way, measure]]),
  }
}

/** The largest step of the ladder that is not above `most`. */
const stepBelow = (most: number): Way => ladder.findLast((step) => step <= most) ?? 1

type Known = WayMeasure & { readonly way: Way }

/** What is within this of the cheapest is as good: measures of a busy machine differ by more. */
const asGood = 1.05

/** More requests are more work for the upstream; single items are the most. */
const requestsOf = (way: Way): number => (way === 0 ? Number.POSITIVE_INFINITY : way)

/** Of the ways that are about as cheap as the cheapest, the one with the fewest requests; undefined when none was measured. */
export const bestWay = (experience: Experience, mostChunks: number): Known | undefined => {
  const known = [...experience.measures]
    .map(([way, measure]): Known => ({ way, ...measure }))
    .filter(({ way }) => way <= mostChunks)
  const cheapest = Math.min(...known.map(({ msPerItem }) => msPerItem))
  return known
    .filter(({ msPerItem }) => msPerItem <= cheapest * asGood)
    .sort((one, other) => requestsOf(one.way) - requestsOf(other.way))[0]
}

/** Which ways there are. */
type Bounds = {
  readonly mostChunks: number
  readonly firstGuess: Way
  /** May items go one by one? */
  readonly items: boolean
}

/** One step up, one step down, and the other kind of way. */
const neighbours = (best: Way, experience: Experience, { mostChunks, items }: Bounds): readonly Way[] => {
  if (best === 0) {
    const chunks = new Map([...experience.measures].filter(([way]) => way > 0))
    const bestChunks = bestWay({ ...experience, measures: chunks }, mostChunks)
    return [bestChunks?.way ?? stepBelow(mostChunks)]
  }
  const at = ladder.indexOf(best)
  const [above, below] = [ladder[at + 1], ladder[at - 1]]
  const near = [above, below, items ? 0 : undefined]
  return near.filter((way) => way !== undefined).filter((way) => way <= mostChunks)
}

const isKnown = (measure: WayMeasure | undefined, best: WayMeasure): boolean =>
  measure !== undefined && (measure.samples >= enoughSamples || measure.msPerItem > hopeless * best.msPerItem)

/**
 * Which way the next batch goes: climbs from a first guess towards the cheapest way, and then looks at a neighbour now
 * and then, because the upstream's real parallelism may change. Pure: the same experience gives the same choice.
 */
export const chooseChunks = (experience: Experience, bounds: Bounds): ChunkChoice => {
  const { mostChunks } = bounds
  const best = bestWay(experience, mostChunks)
  if (best === undefined)
    return { way: stepBelow(Math.min(bounds.firstGuess, mostChunks)), reason: 'first-guess' }
  if (best.samples < enoughSamples) return { way: best.way, reason: 'measured' }
  const near = neighbours(best.way, experience, bounds)
  const unknown = near.find((way) => !isKnown(experience.measures.get(way), best))
  if (unknown !== undefined) return { way: unknown, reason: 'explored' }
  const turn = experience.batches + 1
  if (turn % exploreEvery !== 0) return { way: best.way, reason: 'measured' }
  const candidates = near.filter((way) => {
    const ms = experience.measures.get(way)?.msPerItem ?? 0
    return turn % exploreHopelessEvery === 0 || ms <= hopeless * best.msPerItem
  })
  const age = (way: Way): number => experience.measures.get(way)?.atBatch ?? -1
  const stalest = candidates.sort((a, b) => age(a) - age(b))[0]
  return stalest === undefined ? { way: best.way, reason: 'measured' } : { way: stalest, reason: 'explored' }
}
