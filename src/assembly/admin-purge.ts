import type { PurgeOutcome } from '../admin/operator.ts'
import type { PurgeRequest } from '../admin/purge-request.ts'
import type { Purge } from '../cache/invalidation.ts'
import { type AskedService, canonicalTarget, publicTarget } from './admin-target.ts'
import type { OperatorCache } from './operator-cache.ts'

/** What a purge by public URLs needs to know. */
export type PurgeParts = {
  readonly services: readonly AskedService[]
  readonly publicUrl: string
  readonly cache: Pick<OperatorCache, 'purge'>
}

type Selector = Purge['selector']
type Selection =
  | { readonly kind: 'selectors'; readonly selectors: readonly Selector[] }
  | { readonly kind: 'refused'; readonly detail: string }

const refused = (detail: string): Selection => ({ kind: 'refused', detail })
const one = (selector: Selector): Selection => ({ kind: 'selectors', selectors: [selector] })

const byUrl = ({ services, publicUrl }: PurgeParts, url: string, only: string | undefined): Selection => {
  const found = publicTarget(services, publicUrl, url)
  if (found === undefined) return refused('no service is mounted at this URL')
  const { name } = found.service.config
  if (only !== undefined && only !== name) return refused('the URL belongs to another service')
  const canonical = canonicalTarget(found)
  if (canonical.kind === 'refused') return canonical
  return one({ kind: 'target', service: name, target: canonical.target })
}

/** What of a service lies under a public path; undefined when nothing does. */
const insidePrefix = (mount: string, prefix: string): string | undefined => {
  const bare = mount === '/' ? '' : mount
  if (prefix.startsWith(bare)) return prefix.slice(bare.length)
  return bare.startsWith(prefix) ? '' : undefined
}

const byPrefix = ({ services }: PurgeParts, prefix: string, only: string | undefined): Selection => {
  const selectors: Selector[] = []
  for (const { config } of services) {
    const inside = insidePrefix(config.mount, prefix)
    if (inside === undefined || (only !== undefined && only !== config.name)) continue
    selectors.push({ kind: 'prefix', service: config.name, prefix: inside })
  }
  return selectors.length === 0
    ? refused('no service is mounted at this path')
    : { kind: 'selectors', selectors }
}

const select = (parts: PurgeParts, { selection, service }: PurgeRequest): Selection => {
  if (service !== undefined && !parts.services.some(({ config }) => config.name === service)) {
    return refused('service: no service has this name')
  }
  switch (selection.by) {
    case 'url':
      return byUrl(parts, selection.url, service)
    case 'tag':
      // Tags begin with the name of their service.
      return service === undefined || selection.tag.startsWith(`${service}/`)
        ? one({ kind: 'tag', tag: selection.tag })
        : refused('the tag belongs to another service')
    case 'prefix':
      return byPrefix(parts, selection.prefix, service)
    case 'all':
      return one(service === undefined ? { kind: 'all' } : { kind: 'prefix', service, prefix: '' })
  }
}

/** Drops, marks stale or counts what an operator names; all variants, in all partitions. */
export const purgeCache = async (parts: PurgeParts, request: PurgeRequest): Promise<PurgeOutcome> => {
  const selection = select(parts, request)
  if (selection.kind === 'refused') return selection
  const { mode, dryRun } = request
  let entries = 0
  for (const selector of selection.selectors) {
    const purged = await parts.cache.purge({ selector, mode, dryRun })
    if (purged === 'unheard') return { kind: 'unheard' }
    entries += purged
  }
  return { kind: 'purged', entries }
}
