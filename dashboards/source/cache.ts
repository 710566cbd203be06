import { changeFeeds } from './change-feeds.ts'
import type { DashboardFacts } from './dashboard.ts'
import { downstream } from './downstream.ts'
import { lines } from './panel.ts'
import { quantile, rate, series, share, total } from './query.ts'
import { sharedMemory } from './shared-memory.ts'

const requests = series('requests')
const asked = series('requests', { cache: '~hit|stale|collapsed|miss|revalidated' })
const served = series('requests', { cache: '~hit|stale|collapsed' })

/** What the cache holds, what it saves, and what takes it away again. */
export const cache: DashboardFacts = {
  name: 'cache',
  title: 'Trellis cache',
  description: 'Hits, reasons for misses, stored responses, and invalidations.',
  sections: [
    {
      title: 'Reads',
      panels: [
        lines({
          title: 'Outcomes',
          description: 'Requests per second, by cache outcome.',
          unit: 'reqps',
          stacked: true,
          queries: [[rate(requests, ['cache']), '{{cache}}']],
        }),
        lines({
          title: 'Hit ratio',
          description: 'Share of cacheable requests that needed no upstream request.',
          unit: 'percentunit',
          queries: [[share(rate(served, ['service']), rate(asked, ['service'])), '{{service}}']],
        }),
        lines({
          title: 'Most forwarded routes',
          description: 'Ten routes with the most forwarded requests: candidates for a rule or a longer ttl.',
          unit: 'reqps',
          queries: [
            [
              `topk(10, ${rate(series('requests', { cache: '~miss|bypass|revalidated' }), ['service', 'route'])})`,
              '{{service}} {{route}}',
            ],
          ],
        }),
        lines({
          title: 'Why forwarded',
          description:
            'Forwarded reads, by the reason in Cache-Status (RFC 9211 fwd), and why reads bypassed the cache.',
          unit: 'reqps',
          queries: [
            [
              rate(series('cacheForwards'), ['service', 'reason', 'detail']),
              '{{service}} {{reason}} {{detail}}',
            ],
          ],
        }),
        lines({
          title: 'Stale served',
          description: 'Stale responses, by reason; `error` means that the cache hides an outage.',
          unit: 'reqps',
          queries: [[rate(series('cacheServedStale'), ['service', 'reason']), '{{service}} {{reason}}']],
        }),
        lines({
          title: 'Age of served responses',
          description: 'Age of the stored responses that were served.',
          unit: 's',
          queries: [
            [quantile(0.5, 'cacheServedAge', ['service']), '{{service}} half'],
            [quantile(0.99, 'cacheServedAge', ['service']), '{{service}} 99 %'],
          ],
        }),
        lines({
          title: 'Collapsed',
          description: 'Requests answered by the upstream request of another client.',
          unit: 'reqps',
          queries: [[rate(series('cacheCollapsed'), ['service']), '{{service}}']],
        }),
        lines({
          title: 'Canonical merges',
          description: 'New spellings of URLs that equal an already known request.',
          unit: 'ops',
          queries: [[rate(series('canonicalMerges'), ['service']), '{{service}}']],
        }),
        lines({
          title: 'Undeclared parameters',
          description: 'New URLs with undeclared query parameters, by handling.',
          unit: 'ops',
          queries: [
            [rate(series('undeclaredParameters'), ['service', 'handling']), '{{service}} {{handling}}'],
          ],
        }),
        lines({
          title: 'Warming',
          description: 'Targets fetched after a purge or for POST /cache/warm, by outcome.',
          unit: 'ops',
          queries: [[rate(series('cacheWarmed'), ['outcome']), '{{outcome}}']],
        }),
        lines({
          title: 'Failed background revalidations',
          description: 'Stale responses that could not be refreshed.',
          unit: 'ops',
          queries: [[rate(series('cacheBackgroundFailures'), ['service']), '{{service}}']],
        }),
      ],
    },
    {
      title: 'Storage',
      panels: [
        lines({
          title: 'Memory used',
          description: 'Bytes stored, and the limit.',
          unit: 'bytes',
          queries: [
            [total(series('cacheBytes'), ['instance']), '{{instance}}'],
            [total(series('cacheMaxBytes'), [], 'max'), 'limit'],
          ],
        }),
        lines({
          title: 'Stored responses',
          description: 'Number of stored responses.',
          unit: 'short',
          queries: [[total(series('cacheEntries'), ['instance']), '{{instance}}']],
        }),
        lines({
          title: 'Stored and evicted, bytes',
          description: 'If evictions equal stores, the cache is too small.',
          unit: 'Bps',
          queries: [
            [rate(series('cacheStoredBytes'), ['service']), '{{service}} stored'],
            [rate(series('cacheEvictedBytes')), 'evicted'],
          ],
        }),
        lines({
          title: 'Stored and evicted',
          description: 'The same, in responses.',
          unit: 'ops',
          queries: [
            [rate(series('cacheStored'), ['service']), '{{service}} stored'],
            [rate(series('cacheEvictions')), 'evicted'],
          ],
        }),
        lines({
          title: 'Compressed',
          description: 'Bytes compressed and bytes saved, once for each stored response and coding.',
          unit: 'Bps',
          width: 24,
          queries: [
            [rate(series('cacheCompressedBytes'), ['coding']), '{{coding}} read'],
            [rate(series('cacheSavedBytes'), ['coding']), '{{coding}} saved'],
            [rate(series('cacheCompressions'), ['coding']), '{{coding}} responses'],
          ],
        }),
        lines({
          title: 'Why not stored',
          description: 'Responses not stored, by reason.',
          unit: 'reqps',
          width: 16,
          queries: [[rate(series('cacheNotStored'), ['service', 'reason']), '{{service}} {{reason}}']],
        }),
      ],
    },
    {
      title: 'Invalidation',
      panels: [
        lines({
          title: 'Invalidations',
          description: 'Invalidations by writes and by purges.',
          unit: 'ops',
          queries: [[rate(series('cacheInvalidations'), ['by']), '{{by}}']],
        }),
        lines({
          title: 'Invalidated responses',
          description: 'Stored responses that were removed or marked stale.',
          unit: 'ops',
          queries: [[rate(series('cacheInvalidatedEntries'), ['by']), '{{by}}']],
        }),
        lines({
          title: 'Requests that may write',
          description: 'What they were taken for; `unknown` may have changed everything.',
          unit: 'ops',
          queries: [[rate(series('cacheWrites'), ['taken']), '{{taken}}']],
        }),
        lines({
          title: 'Fetches overtaken by an invalidation',
          description:
            'Upstream requests in flight whose response was not stored because of an invalidation.',
          unit: 'ops',
          queries: [[rate(series('cacheCutForwards'), ['by']), '{{by}}']],
        }),
      ],
    },
    sharedMemory,
    changeFeeds,
    downstream,
  ],
}
