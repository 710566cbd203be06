import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import type { BuildChanges } from '../../admin/operator.ts'
import type { BuildReport } from '../../cache/builds.ts'
import type { Cache } from '../../cache/cache.ts'
import { targetKey } from '../../cache/cache-key.ts'
import type { CacheEntry, EntryOrder } from '../../cache/entries.ts'
import { type Invalidation, type Purge, topTargets, type UsedTarget } from '../../cache/invalidation.ts'
import { systemClock } from '../../clock.ts'
import type { WorkerLink, WorkerRequest } from '../../cluster/worker-link.ts'
import type { WritesInFlight } from '../../exchange/ports.ts'
import type { Broadcast } from '../parts/broadcast.ts'
import type { Warmer, WarmResult, WarmTarget } from '../parts/warmer.ts'
import { type BuildQuestion, mergedChanges, respondToBuildQuestion } from './operator-builds.ts'

export type OperatorCacheParts = {
  readonly cache: Pick<
    Cache,
    'purgeInTurns' | 'entries' | 'topUsed' | 'beginBuild' | 'buildReport' | 'compareBuild' | 'doubtfulOfBuild'
  >
  readonly openWrites: Pick<WritesInFlight['open'], 'reaching'>
  readonly warmer: Pick<Warmer, 'add'>
  /** Drops what invalidations reach in other processes and in front of the gateway. */
  readonly broadcast: Pick<Broadcast, 'send'>
  readonly worker: WorkerLink | undefined
  /** Refuses purges that cannot be sent to other instances. */
  readonly refusesUnacknowledged: boolean
}

const invalidationsOf = (selector: Purge['selector'], mode: Purge['mode']): readonly Invalidation[] => {
  switch (selector.kind) {
    case 'target':
      return [...new Set([selector.target, ...(selector.spellings ?? [])])].map((target) => ({
        kind: 'tag',
        tag: targetKey(selector.service, target),
        mode,
      }))
    case 'tag':
      return [{ kind: 'tag', tag: selector.tag, mode }]
    case 'prefix':
      return selector.prefixes.map((prefix) => ({ kind: 'prefix', service: selector.service, prefix, mode }))
    case 'all':
      return [{ kind: 'all', mode }]
    case 'matching':
      throw new TypeError('a purge by predicate cannot be sent to other processes')
  }
}

const ranks: Readonly<Record<EntryOrder, (entry: CacheEntry) => number>> = {
  bytes: ({ bytes }) => bytes,
  hits: ({ hits }) => hits,
  age: ({ ageSeconds }) => ageSeconds,
}

type OperatorPurge = Omit<Purge, 'selector'> & { readonly selectors: readonly Purge['selector'][] }

const sum = (counts: readonly number[]): number => counts.reduce((all, count) => all + count, 0)

/** Responses. */
const purgedPerTurn = 500
/** What a selector costs that finds nothing, in responses. */
const minPerSelector = 25

const purgeAll = async (
  cache: Pick<Cache, 'purgeInTurns'>,
  { selectors, ...how }: OperatorPurge,
): Promise<number> => {
  let purged = 0
  let sinceYield = 0
  for (const selector of selectors) {
    if (sinceYield >= purgedPerTurn) {
      await setImmediate()
      sinceYield = 0
    }
    const count = await cache.purgeInTurns({ selector, ...how })
    purged += count
    sinceYield += Math.max(count, minPerSelector)
  }
  return purged
}

export type CacheRequest =
  | { readonly topic: 'count'; readonly content: readonly Purge['selector'][] }
  | { readonly topic: 'open-writes'; readonly content: string }
  | { readonly topic: 'entries'; readonly content: { readonly order: EntryOrder; readonly limit: number } }
  | {
      readonly topic: 'most-used'
      readonly content: { readonly selectors: readonly Purge['selector'][]; readonly limit: number }
    }
  | {
      readonly topic: 'warm'
      /** `waitMs`: how long to wait for the results; 0: they are not asked for. */
      readonly content: { readonly targets: readonly WarmTarget[]; readonly waitMs: number }
    }
  | { readonly topic: 'build'; readonly content: BuildQuestion }

export const isWaiting = ({ topic, content }: WorkerRequest): boolean =>
  topic === 'build' ||
  (topic === 'warm' && (content as Extract<CacheRequest, { topic: 'warm' }>['content']).waitMs > 0)

/** Longest time that a request of the admin side waits for fetches. */
export const longestWaitMs = 45_000

type Warmed = { readonly added: number; readonly results: readonly (WarmResult | null)[] }

/** Null where there is no result in time. */
const warmWithin = async (
  warmer: Pick<Warmer, 'add'>,
  targets: readonly WarmTarget[],
  waitMs: number,
): Promise<Warmed> => {
  const { added, results } = warmer.add(targets)
  if (waitMs === 0) return { added, results: [] }
  const end = new AbortController()
  const late = sleep(waitMs, null, { signal: end.signal }).catch(() => null)
  const settled = await Promise.all(results.map((result) => Promise.race([result, late])))
  end.abort()
  return { added, results: settled }
}

/** Best first: of several processes, the worst result of a URL counts. */
const outcomes: readonly WarmResult['outcome'][] = ['hit', 'fetched', 'bypassed', 'dropped', 'failed']

const worst = (results: readonly (WarmResult | null)[]): WarmResult | null =>
  results.reduce((first, second) =>
    first !== null && (second === null || outcomes.indexOf(second.outcome) > outcomes.indexOf(first.outcome))
      ? second
      : first,
  )

export const respondToCacheRequest = (
  { cache, openWrites, warmer }: Pick<OperatorCacheParts, 'cache' | 'openWrites' | 'warmer'>,
  { topic, content }: CacheRequest,
): unknown => {
  switch (topic) {
    case 'count':
      return purgeAll(cache, { selectors: content, mode: 'hard', dryRun: true })
    case 'open-writes':
      return openWrites.reaching(content).map((sinceMs) => systemClock.monotonic() - sinceMs)
    case 'entries':
      return cache.entries(content.order, content.limit)
    case 'most-used':
      return cache.topUsed(content.selectors, content.limit)
    case 'warm':
      return warmWithin(warmer, content.targets, content.waitMs)
    case 'build':
      return respondToBuildQuestion(cache, content, (targets) => warmWithin(warmer, targets, longestWaitMs))
  }
}

/** The cache as the admin side sees it: that of this process, or of all that share the port or the store. */
export const operatorCache = (parts: OperatorCacheParts) => {
  const { cache, broadcast, worker, refusesUnacknowledged } = parts
  /** The responses of all processes that share the port. */
  const ask = async <Value>(question: CacheRequest): Promise<readonly Value[]> => {
    const responses =
      worker === undefined ? [await respondToCacheRequest(parts, question)] : await worker.ask(question)
    return responses as readonly Value[]
  }
  return {
    /** `unacknowledged`: dropped here; other instances could not be notified, or a receiver that must confirm has not. */
    purge: async ({ selectors, mode, dryRun }: OperatorPurge): Promise<number | 'unacknowledged'> => {
      if (dryRun) return sum(await ask<number>({ topic: 'count', content: selectors }))
      const here = await purgeAll(cache, { selectors, mode, dryRun })
      const elsewhere = await broadcast.send(selectors.flatMap((selector) => invalidationsOf(selector, mode)))
      return elsewhere.unconfirmed || (elsewhere.unacknowledged && refusesUnacknowledged)
        ? 'unacknowledged'
        : here + elsewhere.entries
    },
    /** For how many milliseconds each write has been open that reaches a service. */
    openWrites: async (service: string): Promise<readonly number[]> =>
      (await ask<readonly number[]>({ topic: 'open-writes', content: service })).flat(),
    entries: async (order: EntryOrder, limit: number): Promise<readonly CacheEntry[]> => {
      const lists = await ask<readonly CacheEntry[]>({ topic: 'entries', content: { order, limit } })
      const rank = ranks[order]
      return lists
        .flat()
        .sort((a, b) => rank(b) - rank(a))
        .slice(0, limit)
    },
    /** The public targets that a purge would concern, those with most hits first. */
    topUsed: async (
      selectors: readonly Purge['selector'][],
      limit: number,
    ): Promise<readonly UsedTarget[]> => {
      const lists = await ask<readonly UsedTarget[]>({ topic: 'most-used', content: { selectors, limit } })
      return topTargets(lists.flat(), limit)
    },
    /** Begins a build, tells what has changed since another one, or both. Undefined: that one is not known. */
    build: async (question: BuildQuestion): Promise<BuildChanges | undefined> => {
      const reports = await ask<BuildReport | null>({ topic: 'build', content: question })
      // What a process has read that has ended is not known any more.
      const isComplete = worker === undefined || reports.length >= worker.status().wanted
      return isComplete || question.of === undefined ? mergedChanges(reports) : undefined
    },
    /** Fetches the targets in the background, in every process that has its own memory. `added`: how many. */
    warm: async (targets: readonly WarmTarget[], waitMs: number): Promise<Warmed> => {
      const responses = await ask<Warmed>({ topic: 'warm', content: { targets, waitMs } })
      return {
        added: Math.max(0, ...responses.map(({ added }) => added)),
        results:
          waitMs === 0
            ? []
            : targets.map((_, at) => worst(responses.map(({ results }) => results[at] ?? null))),
      }
    },
  }
}

export type OperatorCache = ReturnType<typeof operatorCache>
