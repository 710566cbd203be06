import type { DashboardFacts } from './dashboard.ts'
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
  description: 'Hits, why there are not more, what is stored, and what is dropped.',
  sections: [
    {
      title: 'Reads',
      panels: [
        lines({
          title: 'Outcomes',
          description: 'How the cache took part in the answer.',
          unit: 'reqps',
          stacked: true,
          queries: [[rate(requests, ['cache']), '{{cache}}']],
        }),
        lines({
          title: 'Hit ratio',
          description: 'Of the requests for which the cache was asked, those that cost the upstream nothing.',
          unit: 'percentunit',
          queries: [[share(rate(served, ['service']), rate(asked, ['service'])), '{{service}}']],
        }),
        lines({
          title: 'Least hits',
          description:
            'Ten routes with the most requests that had to be forwarded: where a rule or a longer ttl pays.',
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
          description: 'Reads that the cache sent on, by the reason in Cache-Status (RFC 9211 fwd).',
          unit: 'reqps',
          queries: [[rate(series('cacheForwards'), ['service', 'reason']), '{{service}} {{reason}}']],
        }),
        lines({
          title: 'Stale served',
          description: 'Stale answers by reason; `error` says that an outage is hidden from readers.',
          unit: 'reqps',
          queries: [[rate(series('cacheServedStale'), ['service', 'reason']), '{{service}} {{reason}}']],
        }),
        lines({
          title: 'Age of what is served',
          description: 'How old the stored responses are that readers get.',
          unit: 's',
          queries: [
            [quantile(0.5, 'cacheServedAge', ['service']), '{{service}} half'],
            [quantile(0.99, 'cacheServedAge', ['service']), '{{service}} 99 %'],
          ],
        }),
        lines({
          title: 'Collapsed',
          description: "Readers answered by another reader's upstream request.",
          unit: 'reqps',
          queries: [[rate(series('cacheCollapsed'), ['service']), '{{service}}']],
        }),
        lines({
          title: 'Spellings brought together',
          description: 'New spellings of targets that became the canonical form of others.',
          unit: 'ops',
          queries: [[rate(series('canonicalMerges'), ['service']), '{{service}}']],
        }),
        lines({
          title: 'Undeclared parameters',
          description: 'New targets with query parameters that no route declares, by what becomes of these.',
          unit: 'ops',
          queries: [
            [rate(series('undeclaredParameters'), ['service', 'handling']), '{{service}} {{handling}}'],
          ],
        }),
        lines({
          title: 'Background validations that failed',
          description: 'Stale responses were served meanwhile, and could not be refreshed.',
          unit: 'ops',
          queries: [[rate(series('cacheBackgroundFailures'), ['service']), '{{service}}']],
        }),
      ],
    },
    {
      title: 'What is stored',
      panels: [
        lines({
          title: 'Fill',
          description: 'Bytes stored, beside what may be stored.',
          unit: 'bytes',
          queries: [
            [total(series('cacheBytes'), ['instance']), '{{instance}}'],
            [total(series('cacheMaxBytes'), [], 'max'), 'may hold'],
          ],
        }),
        lines({
          title: 'Stored responses',
          description: 'How many there are.',
          unit: 'short',
          queries: [[total(series('cacheEntries'), ['instance']), '{{instance}}']],
        }),
        lines({
          title: 'Stored and evicted, bytes',
          description: 'As much evicted as stored says that the cache is too small for what is asked.',
          unit: 'Bps',
          queries: [
            [rate(series('cacheStoredBytes'), ['service']), '{{service}} stored'],
            [rate(series('cacheEvictedBytes')), 'evicted'],
          ],
        }),
        lines({
          title: 'Stored and evicted',
          description: 'The same, counted.',
          unit: 'ops',
          queries: [
            [rate(series('cacheStored'), ['service']), '{{service}} stored'],
            [rate(series('cacheEvictions')), 'evicted'],
          ],
        }),
        lines({
          title: 'Compressed',
          description:
            'Stored responses compressed, once for each coding; bytes read for it, and bytes by which the forms are shorter.',
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
          description: 'By writes and by purges.',
          unit: 'ops',
          queries: [[rate(series('cacheInvalidations'), ['by']), '{{by}}']],
        }),
        lines({
          title: 'Responses touched',
          description: 'Stored responses that invalidations dropped or marked stale.',
          unit: 'ops',
          queries: [[rate(series('cacheInvalidatedEntries'), ['by']), '{{by}}']],
        }),
        lines({
          title: 'Requests cut loose',
          description: 'Upstream requests in flight whose answer could no longer be stored.',
          unit: 'ops',
          queries: [[rate(series('cacheCutForwards'), ['by']), '{{by}}']],
        }),
      ],
    },
    sharedMemory,
  ],
}
