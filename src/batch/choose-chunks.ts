import { type KnownWay, type PromiseInput, promisedMs, type Way, type WayMeasure } from './promised-ms.ts'

/** What has been measured of batches of about one size, sent while no other batch was under way. */
export type Experience = {
  /** Batches for which a way was chosen, and those of them that tried one out. */
  readonly choices: number
  readonly explored: number
  /** Batches that were measured. */
  readonly batches: number
  readonly measures: ReadonlyMap<Way, WayMeasure>
}

/** Nothing measured yet. */
export const noExperience: Experience = { choices: 0, explored: 0, batches: 0, measures: new Map() }

export type ChunkChoice = {
  readonly way: Way
  readonly reason: 'first-guess' | 'explored' | 'measured'
}

const ladder: readonly Way[] = [1, 2, 3, 4, 6, 8, 12, 16, 25]

/** A newer measure moves the mean by this share, and takes its place when the last one is so many batches old. */
const share = 0.3
const oldAfter = 16
/** A way is known after so many measures, or after one that was this much worse than the best. */
const enoughSamples = 2
const clearlyWorse = 1.15
/** Once near ways are known, one batch in sixteen looks at one again, one in sixty-four also at one that was hopeless. */
const exploreEvery = 16
const exploreHopelessEvery = 64
const hopeless = 2
/** At most one batch in so many tries something out, whatever there is to learn. */
const batchesPerTrial = 10

/** The experience with one more choice. */
export const withChoice = (experience: Experience, explored: boolean): Experience => ({
  ...experience,
  choices: experience.choices + 1,
  explored: experience.explored + (explored ? 1 : 0),
})

/** The experience with one more batch measured. */
export const withBatch = (experience: Experience, way: Way, msPerItem: number): Experience => {
  const { batches, measures } = experience
  const before = measures.get(way) ?? { msPerItem, samples: 0, atBatch: batches }
  const moves = batches - before.atBatch > oldAfter ? 1 : share
  const mean = before.msPerItem + moves * (msPerItem - before.msPerItem)
  const measure = { msPerItem: mean, samples: before.samples + 1, atBatch: batches }
  return { ...experience, batches: batches + 1, measures: new Map([...measures, [way, measure]]) }
}

/** The largest step of the ladder that is not above `most`. */
const stepBelow = (most: number): Way => ladder.findLast((step) => step <= most) ?? 1

/** What is within this of the cheapest is as good: measures of a busy machine differ by more. */
const asGood = 1.05

/** More requests are more work for the upstream; single items are the most. */
const requestsOf = (way: Way): number => (way === 0 ? Number.POSITIVE_INFINITY : way)

/** Of the ways that are about as cheap as the cheapest, the one with the fewest requests; undefined when none was measured. */
export const bestWay = (experience: Experience, mostChunks: number): KnownWay | undefined => {
  const known = [...experience.measures]
    .map(([way, measure]): KnownWay => ({ way, ...measure }))
    .filter(({ way }) => way <= mostChunks)
  const cheapest = Math.min(...known.map(({ msPerItem }) => msPerItem))
  return known
    .filter(({ msPerItem }) => msPerItem <= cheapest * asGood)
    .sort((one, other) => requestsOf(one.way) - requestsOf(other.way))[0]
}

/** Which ways there are, and for what. */
type Bounds = PromiseInput & {
  readonly mostChunks: number
  readonly firstGuess: Way
  /** May items go one by one? */
  readonly items: boolean
}

/** Two steps up and one down, and the other kind of way. */
const neighbours = (best: Way, experience: Experience, { mostChunks, items }: Bounds): readonly Way[] => {
  if (best === 0) {
    const chunks = new Map([...experience.measures].filter(([way]) => way > 0))
    const bestChunks = bestWay({ ...experience, measures: chunks }, mostChunks)
    return [bestChunks?.way ?? stepBelow(mostChunks)]
  }
  const at = ladder.indexOf(best)
  const near = [ladder[at + 2], ladder[at + 1], ladder[at - 1], items ? 0 : undefined]
  return near.filter((way) => way !== undefined).filter((way) => way <= mostChunks)
}

const isKnown = (measure: WayMeasure | undefined, best: WayMeasure): boolean =>
  measure !== undefined &&
  (measure.samples >= enoughSamples || measure.msPerItem > clearlyWorse * best.msPerItem)

/** The way that is worth a trial: of those hardly known the one that promises most, then the stalest now and then. */
const trial = (experience: Experience, best: KnownWay, bounds: Bounds): Way | undefined => {
  const turn = experience.choices + 1
  if ((experience.explored + 1) * batchesPerTrial > turn) return undefined
  const near = neighbours(best.way, experience, bounds)
  const promising = near
    .filter((way) => !isKnown(experience.measures.get(way), best))
    .map((way) => ({
      way,
      ms: experience.measures.get(way)?.msPerItem ?? promisedMs(way, best, experience, bounds),
    }))
    .filter(({ ms }) => ms * asGood < best.msPerItem)
    .sort((one, other) => one.ms - other.ms)[0]
  if (promising !== undefined) return promising.way
  if (turn % exploreEvery !== 0) return undefined
  // What was not worth a first trial is left to the rare ones.
  const msOf = (way: Way): number => experience.measures.get(way)?.msPerItem ?? Number.POSITIVE_INFINITY
  const age = (way: Way): number => experience.measures.get(way)?.atBatch ?? -1
  return near
    .filter((way) => turn % exploreHopelessEvery === 0 || msOf(way) <= hopeless * best.msPerItem)
    .sort((one, other) => age(one) - age(other))[0]
}

/**
 * Which way the next batch goes: from a first guess towards the cheapest way, by trials of ways that may be cheaper as far
 * as is known, and then a look now and then, because the upstream's real parallelism may change. Pure: the same
 * experience gives the same choice.
 */
export const chooseChunks = (experience: Experience, bounds: Bounds): ChunkChoice => {
  const { mostChunks } = bounds
  const best = bestWay(experience, mostChunks)
  if (best === undefined)
    return { way: stepBelow(Math.min(bounds.firstGuess, mostChunks)), reason: 'first-guess' }
  // A way that was lucky once is measured again before anything is compared with it.
  const tried = best.samples < enoughSamples ? undefined : trial(experience, best, bounds)
  return tried === undefined ? { way: best.way, reason: 'measured' } : { way: tried, reason: 'explored' }
}
