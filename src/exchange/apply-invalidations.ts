import type { Cache } from '../cache/cache.ts'
import { shownTags } from '../cache/cache-key.ts'
import type { Invalidation } from '../cache/invalidation.ts'
import type { ValidatedContext } from './request-context.ts'
import { publicPrefix, type Service } from './service.ts'
import { type Reaching, reachedBy } from './write/write-invalidations.ts'

type Invalidator = Parameters<Cache['invalidate']>[1]

/** The list of a key, to be added to: a removed member may leave as many invalidations as a ledger stores. */
const listAt = <Key, Item>(lists: Map<Key, Item[]>, key: Key): Item[] => {
  const list = lists.get(key) ?? []
  lists.set(key, list)
  return list
}

/**
 * Applies the invalidations of a write, here or in another process, to this process's memory; returns the number of stored responses
 * concerned. All tags of a write are invalidated in one step, since most writes have dozens.
 */
export const applyInvalidations = (
  invalidations: readonly Invalidation[],
  cache: Pick<Cache, 'invalidate' | 'quarantine' | 'purge'>,
  documentsStale: (service: string, collection: string) => void,
  by: Invalidator,
  byRequest?: string | undefined,
): number => {
  const dropped: string[] = []
  const quarantined = new Map<number, string[]>()
  /** By service and mode: everything that is stored is gone through once for all prefixes. */
  const under = new Map<string, Extract<Invalidation, { kind: 'prefix' }>[]>()
  let entries = 0
  for (const invalidation of invalidations) {
    if (invalidation.kind === 'documents') documentsStale(invalidation.service, invalidation.collection)
    else if (invalidation.kind === 'quarantine')
      listAt(quarantined, invalidation.forMs).push(invalidation.tag)
    else if (invalidation.kind === 'tag' && invalidation.mode === 'hard') dropped.push(invalidation.tag)
    else if (invalidation.kind === 'prefix')
      listAt(under, `${invalidation.mode} ${invalidation.service}`).push(invalidation)
    else entries += cache.purge({ selector: invalidation, mode: invalidation.mode, dryRun: false })
  }
  for (const invalidations of under.values()) {
    const { mode, service } = invalidations[0] as (typeof invalidations)[number]
    const selector = { kind: 'prefix', service, prefixes: invalidations.map(({ prefix }) => prefix) } as const
    entries += cache.purge({ selector, mode, dryRun: false })
  }
  if (dropped.length > 0) entries += cache.invalidate(dropped, by, byRequest)
  for (const [forMs, tags] of quarantined) {
    cache.quarantine(tags, forMs)
    entries += cache.invalidate(tags, by)
  }
  return entries
}

/** What an operator sees of the responses that a write drops. */
const maxUrls = 8

/** Public URLs of some stored responses with one of the tags. */
const urlsShowing = (
  cache: Cache,
  tags: readonly string[],
  services: readonly Service[],
): readonly string[] =>
  cache.someTargets(tags, maxUrls).map(
    ({ service: name, host, target }) =>
      publicPrefix(
        services.find((service) => service.name === name),
        host,
      ) + target,
  )

/** Invalidates what a write may have changed. To be called before the response leaves the gateway. */
export const invalidateWrite = (
  cache: Cache,
  { service, snapshot, record }: Reaching & Pick<ValidatedContext, 'record'>,
  invalidations: readonly Invalidation[],
): void => {
  const documentsStale = (name: string, collection: string): void =>
    [service, ...snapshot.sharing(service)]
      .find((candidate) => candidate.name === name)
      ?.documents?.written(collection)
  const tags = invalidations.flatMap((invalidation) => ('tag' in invalidation ? [invalidation.tag] : []))
  const { entries: before = 0, urls: named = [] } = record.invalidated ?? {}
  const services = reachedBy({ service, snapshot })
  const urls = [...named, ...urlsShowing(cache, tags, services)].slice(0, maxUrls)
  const reachesEverything = services.some(({ contract: { tagger } }) =>
    tags.some((tag) => tag === tagger.everything),
  )
  const entries = applyInvalidations(invalidations, cache, documentsStale, 'write')
  record.invalidated = { tags: shownTags(tags), entries: entries + before, urls, reachesEverything }
}
