import { expect } from 'vitest'
import type { createChecker } from './concurrency-checker.ts'

type Run = Awaited<ReturnType<ReturnType<typeof createChecker>['run']>>

/** What a run has to have seen: else it would have proved nothing. */
export type Minimum = { readonly hits: number; readonly acrossStops: number }

const minRespondedWrites = 6
const minPurges = 2

/** Has a run seen as much, and met all that was to disturb it? */
export const sawEnough =
  (min: Minimum, disturbances: { isComplete(): boolean }) =>
  (seen: Run['seen']): boolean =>
    disturbances.isComplete() &&
    seen.hits > min.hits &&
    seen.respondedWrites >= minRespondedWrites &&
    seen.purges >= minPurges &&
    seen.acrossStops >= min.acrossStops

/** No read was older than an acknowledged write, and there was enough to see; prints the counts. */
export const expectPromiseKept = (
  { seen, refusals, staleReads, crossed, wrong }: Run,
  faults: Readonly<Record<string, number>>,
  min: Minimum,
): void => {
  const told = { ...seen, stale: staleReads.length, refusals: Object.fromEntries(refusals), faults }
  process.stdout.write(`${JSON.stringify(told)}\n`)
  expect(staleReads).toEqual([])
  expect(wrong).toEqual([])
  expect(crossed).toEqual([])
  expect(seen.hits).toBeGreaterThan(min.hits)
  expect(seen.respondedWrites).toBeGreaterThanOrEqual(minRespondedWrites)
  expect(seen.purges).toBeGreaterThanOrEqual(minPurges)
  expect(seen.acrossStops).toBeGreaterThanOrEqual(min.acrossStops)
  for (const [fault, count] of Object.entries(faults)) expect(count, fault).toBeGreaterThan(0)
}
