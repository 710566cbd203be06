/** How many upstream requests a batch becomes: 1 = it is sent whole; infinitely many = each item is a request of its own. */
export type Parts = number

/** A split other than the best: the logarithm of its time against the best one's, and when it was measured. */
type Rival = { readonly ratio: number; readonly trials: number; readonly atBatch: number }

/** What has been measured of one kind of batch. */
export type Measured = {
  readonly best: Parts
  /** Logarithm of the best one's milliseconds per item, a moving mean; undefined before the first. */
  readonly level: number | undefined
  readonly atMs: number
  readonly batches: number
  /** The batch before was a trial. The best one comes next, so that both are measured at about the same time. */
  readonly tried: boolean
  readonly rivals: ReadonlyMap<Parts, Rival>
}

/** Nothing measured yet. */
export const unmeasured = (best: Parts): Measured => {
  return { best, level: undefined, atMs: 0, batches: 0, tried: false, rivals: new Map() }
}

const steps = [1, 2, 3, 4, 6, 8, 12, 16, 25, Number.POSITIVE_INFINITY]

/** The splits to choose from: of at most so many upstream batches, and into single items if they may be. */
export const splitsUpTo = (most: number, items: boolean): readonly Parts[] =>
  steps.filter((step) => step <= most || (items && step === Number.POSITIVE_INFINITY))

/** The trials of one rival may cost this share of the time of all batches. */
const trialShare = 0.01
/** A rival with more requests must be so much faster; one with fewer need not be slower. */
const worthMoreRequests = Math.log(0.95)
/** One measure counts at most as twice or half of what was expected: a hiccup decides nothing. */
const mostSurprise = Math.log(2)
const levelShare = 0.2
/** The first batches run code that has not been compiled, here and in PHP. */
const coldBatches = 3
const rivalShare = 0.5
/** Before that it must be so much faster. */
const enoughTrials = 2
const clearlyBetter = Math.log(0.8)
/** What was measured longer ago says nothing about now. */
const oldMs = 60_000
const oldBatches = 30

/** Whole and what is near the best one is tried soon; what is far has to wait, as it may cost much. */
const nearby: Rival = { ratio: 0, trials: 0, atBatch: coldBatches }
const farOff: Rival = { ...nearby, ratio: Math.log(1.4) }

/** One trial alone may be wrong: the second comes sooner. */
const dueAt = ({ ratio, trials, atBatch }: Rival): number =>
  trials < enoughTrials
    ? atBatch + Math.max(2, Math.expm1(ratio) / (2 * trialShare))
    : atBatch + Math.max(8, Math.expm1(ratio) / trialShare)

/**
 * The split of the next batch: the best one, or now and then another to see whether it is better by now. What the upstream
 * can work on at once is for all batches that are `active` together. Pure.
 */
export const nextSplit = (
  { best, level, tried, rivals, batches }: Measured,
  splits: readonly Parts[],
  active: number,
): { readonly parts: Parts; readonly reason: 'shared' | 'first-guess' | 'explored' | 'measured' } => {
  const share = Math.max(1, Math.round(best / active))
  const parts = splits.findLast((split) => split <= share) ?? 1
  if (active > 1) return { parts, reason: 'shared' }
  if (level === undefined) return { parts, reason: 'first-guess' }
  if (tried || parts !== best) return { parts, reason: 'measured' }
  const bestAt = splits.indexOf(best)
  const isNear = (at: number): boolean => at === 0 || (at >= bestAt - 1 && at <= bestAt + 2)
  const due = splits
    .map((split, at) => ({ split, at, ...(rivals.get(split) ?? (isNear(at) ? nearby : farOff)) }))
    .filter(({ split, at }) => split !== best && (isNear(at) || at === splits.length - 1))
    .filter((rival) => dueAt(rival) <= batches)
    .sort((one, other) => dueAt(one) - dueAt(other))[0]
  return due === undefined ? { parts, reason: 'measured' } : { parts: due.split, reason: 'explored' }
}

const bounded = (surprise: number): number => Math.max(-mostSurprise, Math.min(mostSurprise, surprise))

/** With one more batch, that took so many milliseconds per item. Pure. */
export const withBatch = (before: Measured, parts: Parts, msPerItem: number, nowMs: number): Measured => {
  const { best, level, rivals } = before
  const batches = before.batches + 1
  const measured = Math.log(Math.max(msPerItem, 1e-3))
  if (level === undefined || parts === best) {
    const isOld = level === undefined || nowMs - before.atMs > oldMs || batches <= coldBatches
    const next = isOld ? measured : level + levelShare * bounded(measured - level)
    return { ...before, best: parts, level: next, atMs: nowMs, batches, tried: false }
  }
  const earlier = rivals.get(parts)
  const known = earlier !== undefined && batches - earlier.atBatch <= oldBatches ? earlier : undefined
  const now = measured - level
  const ratio = known === undefined ? now : known.ratio + rivalShare * bounded(now - known.ratio)
  const trials = (known?.trials ?? 0) + 1
  const tried = new Map(rivals).set(parts, { ratio, trials, atBatch: batches })
  const worth = (parts < best ? 0 : worthMoreRequests) + (trials < enoughTrials ? clearlyBetter : 0)
  if (ratio > worth) {
    return { ...before, batches, tried: true, rivals: tried }
  }
  // It is the best one from now on, and all others are compared with it.
  const others = [...tried].map(([one, rival]) => [one, { ...rival, ratio: rival.ratio - ratio }] as const)
  const next = new Map(others).set(best, { ratio: -ratio, trials: 1, atBatch: batches })
  return { ...before, best: parts, level: level + ratio, batches, tried: false, rivals: next }
}
