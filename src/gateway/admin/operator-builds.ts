import { randomUUID } from 'node:crypto'
import type { BuildChanges, Operator } from '../../admin/operator.ts'
import type { BuildReport } from '../../cache/builds.ts'
import type { Cache } from '../../cache/cache.ts'
import { partsOfKey } from '../../cache/cache-key.ts'
import type { WarmTarget } from '../parts/warmer.ts'

/** `of`: what has changed since this build? `begin`: a build of this id begins, which follows it. */
export type BuildQuestion = { readonly of: string | undefined; readonly begin: string | undefined }

const nothing: BuildReport = {
  reads: 0,
  changed: [],
  changedAt: null,
  lastReadAt: 0,
  isOverflowed: false,
}

/** Of this process. What may have changed is fetched again, and compared. Null: it knows no such build. */
export const respondToBuildQuestion = async (
  cache: Pick<Cache, 'beginBuild' | 'buildReport' | 'compareBuild' | 'doubtfulOfBuild'>,
  { of, begin }: BuildQuestion,
  fetch: (targets: readonly WarmTarget[]) => Promise<unknown>,
): Promise<BuildReport | null> => {
  if (of !== undefined) {
    const parts = (await cache.doubtfulOfBuild(of)).map(partsOfKey)
    await fetch(parts.filter(({ partition }) => partition === 'public'))
    await cache.compareBuild(of)
  }
  // In one step: what changes from here on is a change since the new build.
  const report = of === undefined ? nothing : (cache.buildReport(of) ?? null)
  if (report !== null && begin !== undefined) cache.beginBuild(begin, of)
  return report
}

/** A write between two reads of a build falls into it, whichever processes they reached. */
export const mergedChanges = (reports: readonly (BuildReport | null)[]): BuildChanges | undefined => {
  const known = reports.filter((report) => report !== null)
  if (known.length < reports.length || known.length === 0) return undefined
  const changedAt = Math.min(...known.flatMap((report) => report.changedAt ?? []))
  const lastReadAt = Math.max(...known.map((report) => report.lastReadAt))
  return {
    reads: known.reduce((sum, { reads }) => sum + reads, 0),
    changed: [...new Set(known.flatMap(({ changed }) => changed))].sort(),
    torn: changedAt <= lastReadAt,
    everything: known.some(({ isOverflowed }) => isOverflowed),
  }
}

/** Builds begin here alone: an id that no process knows is refused, so that no read of a build is missed. */
export const operatorBuilds = (cache: {
  build(question: BuildQuestion): Promise<BuildChanges | undefined>
}): Operator['builds'] => ({
  begin: async (since) => {
    const build = randomUUID()
    const changes = await cache.build({ of: since, begin: build })
    if (changes === undefined) return undefined
    return { build, changes: since === undefined ? undefined : changes }
  },
  changes: (build) => cache.build({ of: build, begin: undefined }),
})
