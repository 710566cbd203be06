import type { Section } from './dashboard.ts'
import { lines } from './panel.ts'
import { rate, series, total } from './query.ts'

/** Changes that bypass the gateway: of interest with `changes` in a service. */
export const changeFeeds: Section = {
  title: 'Changes that bypass the gateway',
  panels: [
    lines({
      title: 'Change feeds',
      description:
        'The state of the change feed of each service; only while it is heard, long lifetimes hold.',
      unit: 'short',
      queries: [[total(series('changesState'), ['service', 'state']), '{{service}}: {{state}}']],
    }),
    lines({
      title: 'Time since the last complete poll',
      description: 'How old the knowledge of changes is.',
      unit: 's',
      queries: [[total(series('changesLag'), ['service']), '{{service}}']],
    }),
    lines({
      title: 'Changes and what they dropped',
      description: 'Changes that were applied and stored responses that they dropped, by source.',
      unit: 'ops',
      queries: [
        [rate(series('changesApplied'), ['source']), 'changes: {{source}}'],
        [rate(series('changesDropped'), ['source']), 'responses: {{source}}'],
      ],
    }),
    lines({
      title: 'Missed changes',
      description: 'Times everything of a service was dropped, and polls and requests that failed.',
      unit: 'ops',
      queries: [
        [rate(series('changesServiceDrops'), ['reason']), 'service dropped: {{reason}}'],
        [rate(series('changesPollFailures'), ['reason']), 'poll failed: {{reason}}'],
        [rate(series('changesRefused'), ['reason']), 'refused: {{reason}}'],
      ],
    }),
  ],
}
