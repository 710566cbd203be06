import type { DashboardFacts } from './dashboard.ts'
import { lines } from './panel.ts'
import { mean, quantile, rate, series } from './query.ts'

/** What batches become at the upstream, and what that saves. */
export const batch: DashboardFacts = {
  name: 'batch',
  title: 'Trellis batch',
  description: 'Batches and their items: number, results, parallelism, duration.',
  sections: [
    {
      title: 'Batches',
      panels: [
        lines({
          title: 'Batches',
          description: 'Batches per second, by result.',
          unit: 'reqps',
          stacked: true,
          queries: [[rate(series('batches'), ['service', 'result']), '{{service}} {{result}}']],
        }),
        lines({
          title: 'Size',
          description: 'Items per batch.',
          unit: 'short',
          queries: [
            [mean('batchSize', ['service']), '{{service}} mean'],
            [quantile(0.99, 'batchSize', ['service']), '{{service}} 99 %'],
          ],
        }),
        lines({
          title: 'Duration',
          description: 'Time of a whole batch.',
          unit: 's',
          queries: [
            [quantile(0.5, 'batchSeconds', ['service']), '{{service}} half'],
            [quantile(0.99, 'batchSeconds', ['service']), '{{service}} 99 %'],
          ],
        }),
        lines({
          title: 'Parallelism',
          description: 'Largest number of items of a batch in flight at once.',
          unit: 'short',
          queries: [[mean('batchParallelism', ['service']), '{{service}} mean']],
        }),
        lines({
          title: 'Time saved',
          description: 'Seconds saved per second by running items in parallel.',
          unit: 's',
          queries: [[rate(series('batchSavedSeconds'), ['service']), '{{service}}']],
        }),
        lines({
          title: 'Split chosen',
          description: 'How items were sent, and the reason (docs/batch.md).',
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
          description: 'Items per second, by outcome.',
          unit: 'reqps',
          stacked: true,
          queries: [[rate(series('batchItems'), ['service', 'outcome']), '{{service}} {{outcome}}']],
        }),
        lines({
          title: 'Items by route and status',
          description: 'The ten most frequent combinations.',
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
          description: 'Time from the start of a batch to the start of an item.',
          unit: 's',
          queries: [
            [quantile(0.5, 'batchItemQueueSeconds', ['service']), '{{service}} half'],
            [quantile(0.99, 'batchItemQueueSeconds', ['service']), '{{service}} 99 %'],
          ],
        }),
        lines({
          title: 'Items that wait for others',
          description:
            'Items that had to wait for an earlier item of their batch because they touch the same resource.',
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
            'Upstream batches per second, by result; `broken` means that the outcome of the items is unknown.',
          unit: 'reqps',
          queries: [[rate(series('upstreamBatches'), ['service', 'result']), '{{service}} {{result}}']],
        }),
        lines({
          title: 'Upstream requests per batch',
          description: 'Number of upstream requests for one batch.',
          unit: 'short',
          queries: [[mean('batchRequests', ['service', 'split']), '{{service}} {{split}}']],
        }),
        lines({
          title: 'Duration and size',
          description: 'Time and items of one upstream batch.',
          unit: 's',
          queries: [
            [quantile(0.99, 'upstreamBatchSeconds', ['service']), '{{service}} 99 %'],
            [mean('upstreamBatchItems', ['service']), '{{service}} items'],
          ],
        }),
      ],
    },
  ],
}
