import type { Section } from './dashboard.ts'
import { lines } from './panel.ts'
import { quantile, rate, series, total } from './query.ts'

/** Caches in front of the gateway: of interest with `downstream` in a service. */
export const downstream: Section = {
  title: 'Caches in front of the gateway',
  panels: [
    lines({
      title: 'Receivers that are behind',
      description: 'How long a receiver has had unconfirmed purges: until then it may show older data.',
      unit: 's',
      queries: [
        [total(series('downstreamLag'), ['service', 'receiver']), '{{service}}: {{receiver}}'],
        [total(series('downstreamBehind'), ['service', 'receiver']), '{{service}}: {{receiver}} behind'],
      ],
    }),
    lines({
      title: 'Purges sent',
      description: 'Purges that receivers have confirmed, and those that failed and are sent again.',
      unit: 'ops',
      queries: [[rate(series('downstreamPurges'), ['receiver', 'outcome']), '{{receiver}}: {{outcome}}']],
    }),
    lines({
      title: 'Wait of writes for receivers',
      description: 'Added to a write after `settle`: until the receiver confirms, or until `timeout`.',
      unit: 's',
      queries: [
        [quantile(0.5, 'downstreamWait', ['receiver']), '{{receiver}}: median'],
        [quantile(0.99, 'downstreamWait', ['receiver']), '{{receiver}}: 99 in 100'],
      ],
    }),
  ],
}
