import type { DashboardFacts } from './dashboard.ts'
import { lines } from './panel.ts'
import { mean, quantile, rate, series } from './query.ts'

/** What batches become at the upstream, and what that saves. */
export const batch: DashboardFacts = {
  name: 'batch',
  title: 'Trellis batch',
  description: 'Batches and their items: how many, how they ended, how parallel, how long.',
  sections: [
    {
      title: 'Batches',
      panels: [
        lines({
          title: 'Batches',
          description: 'Batches a second by how they ended.',
          unit: 'reqps',
          stacked: true,
          queries: [[rate(series('batches'), ['service', 'result']), '{{service}} {{result}}']],
        }),
        lines({
          title: 'Size',
          description: 'Items of a batch.',
          unit: 'short',
          queries: [
            [mean('batchSize', ['service']), '{{service}} mean'],
            [quantile(0.99, 'batchSize', ['service']), '{{service}} 99 %'],
          ],
        }),
        lines({
          title: 'Duration',
          description: 'Whole batch.',
          unit: 's',
          queries: [
            [quantile(0.5, 'batchSeconds', ['service']), '{{service}} half'],
            [quantile(0.99, 'batchSeconds', ['service']), '{{service}} 99 %'],
          ],
        }),
        lines({
          title: 'Achieved parallelism',
          description: 'Most items of a batch that ran at one moment.',
          unit: 'short',
          queries: [[mean('batchParallelism', ['service']), '{{service}} mean']],
        }),
        lines({
          title: 'Time saved',
          description: 'Seconds a second by which batches were faster than their items one after the other.',
          unit: 's',
          queries: [[rate(series('batchSavedSeconds'), ['service']), '{{service}}']],
        }),
        lines({
          title: 'Split chosen',
          description: 'How items were sent, and why so (docs/batch.md).',
          unit: 'reqps',
          stacked: true,
          queries: [
            [
              rate(series('batchSplits'), ['service', 'split', 'reason']),
              '{{service}} {{split}}: {{reason}}',
            ],
          ],
        }),
      ],
    },
    {
      title: 'Items',
      panels: [
        lines({
          title: 'Items by outcome',
          description: 'Items a second by how they ended.',
          unit: 'reqps',
          stacked: true,
          queries: [[rate(series('batchItems'), ['service', 'outcome']), '{{service}} {{outcome}}']],
        }),
        lines({
          title: 'Items by route and status',
          description: 'The ten most frequent, as they went the way of a request.',
          unit: 'reqps',
          queries: [
            [
              `topk(10, ${rate(series('itemRequests'), ['service', 'route', 'status_class'])})`,
              '{{service}} {{route}} {{status_class}}',
            ],
          ],
        }),
        lines({
          title: 'Wait of items',
          description: 'From the start of a batch to the start of an item.',
          unit: 's',
          queries: [
            [quantile(0.5, 'batchItemQueueSeconds', ['service']), '{{service}} half'],
            [quantile(0.99, 'batchItemQueueSeconds', ['service']), '{{service}} 99 %'],
          ],
        }),
        lines({
          title: 'Items that wait for others',
          description:
            'Items that had to wait for another one of their batch because they touch the same thing.',
          unit: 'ops',
          width: 24,
          queries: [[rate(series('batchOrdered'), ['service']), '{{service}}']],
        }),
      ],
    },
    {
      title: 'Upstream batches',
      panels: [
        lines({
          title: 'By outcome',
          description:
            'Upstream batches a second by how they ended; `broken` says that nobody knows which items took effect.',
          unit: 'reqps',
          queries: [[rate(series('batchChunks'), ['service', 'result']), '{{service}} {{result}}']],
        }),
        lines({
          title: 'Requests for one batch',
          description: 'Upstream requests that one batch became.',
          unit: 'short',
          queries: [[mean('batchRequests', ['service', 'split']), '{{service}} {{split}}']],
        }),
        lines({
          title: 'Duration and size',
          description: 'Of one upstream batch.',
          unit: 's',
          queries: [
            [quantile(0.99, 'batchChunkSeconds', ['service']), '{{service}} 99 %'],
            [mean('batchChunkItems', ['service']), '{{service}} items'],
          ],
        }),
      ],
    },
  ],
}
