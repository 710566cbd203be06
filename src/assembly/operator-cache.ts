import type { Cache } from '../cache/cache.ts'
import { targetKey } from '../cache/cache-key.ts'
import type { CacheEntry, EntryOrder } from '../cache/entries.ts'
import type { Purge } from '../cache/invalidation.ts'
import type { Coherence } from '../coherence/coherence.ts'
import type { Note } from '../coherence/note.ts'
import type { WorkerLink } from '../workers/worker-link.ts'

type Maybe<Value> = Value | Promise<Value>

/** What the admin side sees of the cache: of all processes where there are several. */
export type OperatorCache = {
  /** `unheard`: dropped here, and other instances cannot be told. */
  purge(purge: Purge): Maybe<number | 'unheard'>
  entries(order: EntryOrder, limit: number): Maybe<readonly CacheEntry[]>
}

export type OperatorCacheParts = {
  readonly cache: Pick<Cache, 'purgeInTurns' | 'entries'>
  readonly coherence: Coherence | undefined
  readonly worker: WorkerLink | undefined
  /** Nobody is to believe that others have heard of what they have not. */
  readonly refusesUnheard: boolean
}

const noteOf = ({ selector, mode }: Purge): Note => {
  switch (selector.kind) {
    case 'target':
      return { kind: 'tag', tag: targetKey(selector.service, selector.target), mode }
    case 'tag':
      return { kind: 'tag', tag: selector.tag, mode }
    case 'prefix':
      return { kind: 'prefix', service: selector.service, prefix: selector.prefix, mode }
    case 'all':
      return { kind: 'all', mode }
    case 'matching':
      throw new TypeError('a purge by predicate cannot be sent to other processes')
  }
}

const ranks: Readonly<Record<EntryOrder, (entry: CacheEntry) => number>> = {
  bytes: ({ bytes }) => bytes,
  hits: ({ hits }) => hits,
  age: ({ ageSeconds }) => ageSeconds,
}

/** What one worker asks of all about their memories. */
export type CacheQuestion =
  | { readonly topic: 'count'; readonly content: Purge['selector'] }
  | { readonly topic: 'entries'; readonly content: { readonly order: EntryOrder; readonly limit: number } }

/** Answers what another worker asks. */
export const answerCacheQuestion = (
  cache: Pick<Cache, 'purge' | 'entries'>,
  { topic, content }: CacheQuestion,
): unknown =>
  topic === 'count'
    ? cache.purge({ selector: content, mode: 'hard', dryRun: true })
    : cache.entries(content.order, content.limit)

/** The cache of this process, or of all that share the port or the store. */
export const operatorCache = ({
  cache,
  coherence,
  worker,
  refusesUnheard,
}: OperatorCacheParts): OperatorCache => {
  if (coherence === undefined) {
    return { purge: cache.purgeInTurns, entries: (order, limit) => cache.entries(order, limit) }
  }
  const count = async (purge: Purge): Promise<number> => {
    if (worker === undefined) return cache.purgeInTurns(purge)
    const counts = await worker.ask({ topic: 'count', content: purge.selector })
    return counts.reduce<number>((sum, one) => sum + Number(one), 0)
  }
  return {
    purge: async (purge) => {
      if (purge.dryRun) return count(purge)
      const here = await cache.purgeInTurns(purge)
      const elsewhere = await coherence.spread([noteOf(purge)])
      return elsewhere.unheard && refusesUnheard ? 'unheard' : here + elsewhere.entries
    },
    entries: async (order, limit) => {
      if (worker === undefined) return cache.entries(order, limit)
      const lists = (await worker.ask({ topic: 'entries', content: { order, limit } })) as (
        | CacheEntry[]
        | null
      )[]
      const rank = ranks[order]
      return lists
        .flatMap((list) => list ?? [])
        .sort((a, b) => rank(b) - rank(a))
        .slice(0, limit)
    },
  }
}
