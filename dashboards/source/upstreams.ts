import type { DashboardFacts } from './dashboard.ts'
import { lines, states } from './panel.ts'
import { quantile, rate, series, total } from './query.ts'

/** The services behind: what they are asked, how they answer, and what the gateway does about it. */
export const upstreams: DashboardFacts = {
  name: 'upstreams',
  title: 'Trellis upstreams',
  description: 'Attempts, targets, retries, queue and breaker of each service.',
  sections: [
    {
      title: 'Attempts',
      panels: [
        lines({
          title: 'By outcome',
          description: 'Attempts per second, by outcome.',
          unit: 'reqps',
          stacked: true,
          queries: [[rate(series('upstreamAttempts'), ['service', 'outcome']), '{{service}} {{outcome}}']],
        }),
        lines({
          title: 'By status',
          description: 'Attempts per second, by status class; `none` = no response headers.',
          unit: 'reqps',
          stacked: true,
          queries: [
            [rate(series('upstreamAttempts'), ['service', 'status_class']), '{{service}} {{status_class}}'],
          ],
        }),
        lines({
          title: 'By target',
          description: 'Attempts per second; equal targets should get equal load.',
          unit: 'reqps',
          queries: [[rate(series('upstreamAttempts'), ['service', 'target']), '{{service}} {{target}}']],
        }),
        lines({
          title: 'Time to the response headers, 99 %',
          description: 'Time from the start of an attempt to the response headers.',
          unit: 's',
          queries: [[quantile(0.99, 'upstreamHeadSeconds', ['service', 'target']), '{{service}} {{target}}']],
        }),
        lines({
          title: 'Whole attempt, 99 %',
          description: 'Time from the start of an attempt to the last byte.',
          unit: 's',
          queries: [[quantile(0.99, 'upstreamSeconds', ['service', 'target']), '{{service}} {{target}}']],
        }),
        lines({
          title: 'Connections',
          description: 'Connections to each target, busy and idle.',
          unit: 'short',
          queries: [
            [
              total(series('upstreamConnections'), ['service', 'target', 'state']),
              '{{service}} {{target}} {{state}}',
            ],
          ],
        }),
      ],
    },
    {
      title: 'Health',
      panels: [
        states({
          title: 'Targets',
          description: '1 = healthy, 0 = its checks or requests fail.',
          unit: 'short',
          queries: [
            [total(series('upstreamTargetUp'), ['service', 'target'], 'min'), '{{service}} {{target}}'],
          ],
        }),
        states({
          title: 'Ejected targets',
          description: '1 = the target gets no requests; eject.maxShare limits how many.',
          unit: 'short',
          queries: [
            [total(series('upstreamTargetLeftOut'), ['service', 'target'], 'max'), '{{service}} {{target}}'],
          ],
        }),
        lines({
          title: 'Active checks',
          description: 'Health checks, by result.',
          unit: 'ops',
          queries: [
            [
              rate(series('upstreamChecks'), ['service', 'target', 'result']),
              '{{service}} {{target}} {{result}}',
            ],
          ],
        }),
        states({
          title: 'Breaker',
          description: '1 for the current state; open = all requests to the service are refused.',
          unit: 'short',
          queries: [
            [total(series('upstreamBreakerState'), ['service', 'state'], 'max'), '{{service}} {{state}}'],
          ],
        }),
        lines({
          title: 'State changes of targets',
          description: 'Changes between healthy, failing (still in use) and left-out (ejected).',
          unit: 'ops',
          queries: [
            [
              rate(series('upstreamTargetChanges'), ['service', 'target', 'to']),
              '{{service}} {{target}} to {{to}}',
            ],
          ],
        }),
        lines({
          title: 'Breaker: changes and refused requests',
          description: 'Requests not sent because the breaker was open, and state changes.',
          unit: 'reqps',
          queries: [
            [rate(series('upstreamBreakerRefused'), ['service']), '{{service}} refused'],
            [rate(series('upstreamBreakerChanges'), ['service', 'to']), '{{service}} to {{to}}'],
          ],
        }),
        lines({
          title: 'Retries and final failures',
          description: 'Attempts that were retried, and failed attempts that were not, by reason.',
          unit: 'reqps',
          queries: [
            [rate(series('upstreamRetries'), ['service', 'reason']), '{{service}} retried: {{reason}}'],
            [rate(series('upstreamGaveUp'), ['service', 'reason']), '{{service}} passed on: {{reason}}'],
            [rate(series('upstreamConnectionFaults'), ['service', 'target']), '{{target}} connection fault'],
          ],
        }),
      ],
    },
    {
      title: 'Load',
      panels: [
        lines({
          title: 'In flight and waiting',
          description: 'Requests at the targets, and requests that wait for a slot.',
          unit: 'short',
          queries: [
            [total(series('upstreamInFlight'), ['service']), '{{service}} in flight'],
            [total(series('upstreamWaiting'), ['service']), '{{service}} waiting'],
            [total(series('upstreamWaitingForClients'), ['service']), '{{service}} waiting for clients'],
          ],
        }),
        lines({
          title: 'In flight by target',
          description: 'Requests in flight to each target.',
          unit: 'short',
          queries: [
            [total(series('upstreamTargetOutstanding'), ['service', 'target']), '{{service}} {{target}}'],
          ],
        }),
        lines({
          title: 'Wait for a slot, 99 %',
          description: 'Time that requests wait for a free slot.',
          unit: 's',
          queries: [[quantile(0.99, 'upstreamQueueSeconds', ['service']), '{{service}}']],
        }),
        lines({
          title: 'Queue outcomes',
          description: '`full` and `timeout` were refused with 503.',
          unit: 'reqps',
          width: 12,
          queries: [
            [rate(series('upstreamQueued'), ['service', 'outcome']), '{{service}} {{outcome}}'],
            [
              rate(series('upstreamSlowClients'), ['service', 'wait']),
              '{{service}} slow client ended: {{wait}}',
            ],
          ],
        }),
        lines({
          title: 'Retries left',
          description: 'Retries that the budget still allows; at 0, failures reach clients.',
          unit: 'short',
          width: 12,
          queries: [[total(series('upstreamRetriesLeft'), ['service'], 'min'), '{{service}}']],
        }),
      ],
    },
    {
      title: 'Contract',
      panels: [
        lines({
          title: 'Index reads',
          description: 'Reads of the upstream index: `ok`, or the reason of the failure.',
          unit: 'ops',
          queries: [[rate(series('discoveryRefreshes'), ['service', 'result']), '{{service}} {{result}}']],
        }),
        lines({
          title: 'Unlisted routes',
          description: 'Upstream routes outside the contract: learned and not learned.',
          unit: 'short',
          queries: [
            [total(series('discoveryUnlistedRoutes'), ['service'], 'max'), '{{service}} announced'],
            [total(series('discoveryLearnedRows'), ['service'], 'max'), '{{service}} learned'],
            [total(series('discoveryRefusedRoutes'), ['service', 'reason'], 'max'), '{{service}} {{reason}}'],
          ],
        }),
        lines({
          title: 'Differences',
          description: 'Differences between the upstream index and the contract.',
          unit: 'short',
          queries: [
            [total(series('discoveryDifferences'), ['service', 'kind'], 'max'), '{{service}} {{kind}}'],
          ],
        }),
      ],
    },
  ],
}
