import { expect } from 'vitest'
import type { createChecker } from './concurrency-checker.ts'

type Run = Awaited<ReturnType<ReturnType<typeof createChecker>['run']>>

/** No read fell behind an answered write, and there was enough to see; tells what was seen. */
export const expectPromiseKept = (
  { seen, staleReads, crossed, wrong }: Run,
  faults: Readonly<Record<string, number>>,
  least: { readonly hits: number; readonly acrossStops: number },
): void => {
  process.stdout.write(`${JSON.stringify({ ...seen, stale: staleReads.length, faults })}\n`)
  expect(staleReads).toEqual([])
  expect(wrong).toEqual([])
  expect(crossed).toEqual([])
  // Else it would have proved nothing.
  expect(seen.hits).toBeGreaterThan(least.hits)
  expect(seen.answeredWrites).toBeGreaterThan(5)
  expect(seen.purges).toBeGreaterThan(1)
  expect(seen.acrossStops).toBeGreaterThanOrEqual(least.acrossStops)
  for (const [fault, count] of Object.entries(faults)) expect(count, fault).toBeGreaterThan(0)
}
