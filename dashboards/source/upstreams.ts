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
          description: 'Attempts a second by how they ended.',
          unit: 'reqps',
          stacked: true,
          queries: [[rate(series('upstreamAttempts'), ['service', 'outcome']), '{{service}} {{outcome}}']],
        }),
        lines({
          title: 'By status',
          description: 'Attempts a second by the status class of the answer; `none` got no head.',
          unit: 'reqps',
          stacked: true,
          queries: [
            [rate(series('upstreamAttempts'), ['service', 'status_class']), '{{service}} {{status_class}}'],
          ],
        }),
        lines({
          title: 'By target',
          description: 'Attempts a second: the load should spread evenly over targets that are alike.',
          unit: 'reqps',
          queries: [[rate(series('upstreamAttempts'), ['service', 'target']), '{{service}} {{target}}']],
        }),
        lines({
          title: 'Time to the head, 99 %',
          description: 'From an attempt begun to its response head.',
          unit: 's',
          queries: [[quantile(0.99, 'upstreamHeadSeconds', ['service', 'target']), '{{service}} {{target}}']],
        }),
        lines({
          title: 'Whole attempt, 99 %',
          description: 'With the last byte of the answer.',
          unit: 's',
          queries: [[quantile(0.99, 'upstreamSeconds', ['service', 'target']), '{{service}} {{target}}']],
        }),
        lines({
          title: 'Connections',
          description: 'To each target, busy and idle.',
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
          description: '1 while a target is healthy, 0 while its checks or its requests fail.',
          unit: 'short',
          queries: [
            [total(series('upstreamTargetUp'), ['service', 'target'], 'min'), '{{service}} {{target}}'],
          ],
        }),
        states({
          title: 'Targets left out',
          description:
            '1 while a target that fails gets no requests; eject.maxShare keeps the others in use.',
          unit: 'short',
          queries: [
            [total(series('upstreamTargetLeftOut'), ['service', 'target'], 'max'), '{{service}} {{target}}'],
          ],
        }),
        lines({
          title: 'Active checks',
          description: 'Checks of upstream.health by result: good, or why they failed.',
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
          description: '1 for the state that the breaker is in; open refuses all of a service.',
          unit: 'short',
          queries: [
            [total(series('upstreamBreakerState'), ['service', 'state'], 'max'), '{{service}} {{state}}'],
          ],
        }),
        lines({
          title: 'Changes of targets',
          description: 'Changes of targets between healthy, failing (and in use) and left out.',
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
          description: 'Requests that were not sent because the breaker was open, and its changes.',
          unit: 'reqps',
          queries: [
            [rate(series('upstreamBreakerRefused'), ['service']), '{{service}} refused'],
            [rate(series('upstreamBreakerChanges'), ['service', 'to']), '{{service}} to {{to}}'],
          ],
        }),
        lines({
          title: 'Retries and failures passed on',
          description: 'Attempts tried again, and those that were not, by reason.',
          unit: 'reqps',
          queries: [
            [rate(series('upstreamRetries'), ['service', 'reason']), '{{service}} retried: {{reason}}'],
            [rate(series('upstreamGaveUp'), ['service', 'reason']), '{{service}} passed on: {{reason}}'],
          ],
        }),
      ],
    },
    {
      title: 'Load',
      panels: [
        lines({
          title: 'In flight and waiting',
          description: 'Requests at the targets, and requests that wait for a free place.',
          unit: 'short',
          queries: [
            [total(series('upstreamInFlight'), ['service']), '{{service}} in flight'],
            [total(series('upstreamWaiting'), ['service']), '{{service}} waiting'],
            [total(series('upstreamWaitingForClients'), ['service']), '{{service}} waiting for clients'],
          ],
        }),
        lines({
          title: 'In flight by target',
          description: 'Requests at each target.',
          unit: 'short',
          queries: [
            [total(series('upstreamTargetOutstanding'), ['service', 'target']), '{{service}} {{target}}'],
          ],
        }),
        lines({
          title: 'Wait for a place, 99 %',
          description: 'Of the requests that asked for one.',
          unit: 's',
          queries: [[quantile(0.99, 'upstreamQueueSeconds', ['service']), '{{service}}']],
        }),
        lines({
          title: 'How the wait ended',
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
          description: 'What the budget of the last ten seconds still grants; at 0 failures reach clients.',
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
          title: 'Readings of the index',
          description: "Of the upstream's own index, `ok` or why it could not be used.",
          unit: 'ops',
          queries: [[rate(series('discoveryRefreshes'), ['service', 'result']), '{{service}} {{result}}']],
        }),
        lines({
          title: 'Unlisted routes',
          description:
            'Routes that the contract does not list: of how many rows were made, and of how many not.',
          unit: 'short',
          queries: [
            [total(series('discoveryUnlistedRoutes'), ['service'], 'max'), '{{service}} announced'],
            [total(series('discoveryLearnedRows'), ['service'], 'max'), '{{service}} learned'],
            [total(series('discoveryRefusedRoutes'), ['service', 'reason'], 'max'), '{{service}} {{reason}}'],
          ],
        }),
        lines({
          title: 'Differences',
          description: "Between the upstream's index and the contract's table.",
          unit: 'short',
          queries: [
            [total(series('discoveryDifferences'), ['service', 'kind'], 'max'), '{{service}} {{kind}}'],
          ],
        }),
      ],
    },
  ],
}
