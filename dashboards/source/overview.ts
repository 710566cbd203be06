import type { DashboardFacts } from './dashboard.ts'
import { lines, number, states, table } from './panel.ts'
import { ofProcess, quantile, rate, series, share, total } from './query.ts'

const requests = series('requests')
const answered = rate(requests)
const asked = series('requests', { cache: '~hit|stale|collapsed|miss|revalidated' })
const served = series('requests', { cache: '~hit|stale|collapsed' })

/** What somebody looks at first. */
export const overview: DashboardFacts = {
  name: 'overview',
  title: 'Trellis overview',
  description: 'Is it well? Requests, errors, durations, hits, targets and the process, at a glance.',
  sections: [
    {
      title: 'At a glance',
      panels: [
        number({
          title: 'Requests',
          description: 'Requests answered a second, batch items not counted.',
          unit: 'reqps',
          queries: [[answered, '']],
        }),
        number({
          title: 'Errors',
          description: 'Share of answers with a status of 500 or more.',
          unit: 'percentunit',
          thresholds: [0.001, 0.01],
          queries: [[share(rate(series('requests', { status_class: '5xx' })), answered), '']],
        }),
        number({
          title: 'Slowest in a hundred',
          description: '99th percentile of the request duration.',
          unit: 's',
          thresholds: [1, 2.5],
          queries: [[quantile(0.99, 'requestSeconds'), '']],
        }),
        number({
          title: 'Hits',
          description: 'Of the requests for which the cache was asked, those that cost the upstream nothing.',
          unit: 'percentunit',
          queries: [[share(rate(served), rate(asked)), '']],
        }),
        number({
          title: 'In flight',
          description: 'Requests that are being answered.',
          unit: 'short',
          queries: [[total(series('inFlight')), '']],
        }),
        number({
          title: 'Failing targets',
          description: 'Upstream targets whose checks or requests fail, left out or still in use.',
          unit: 'short',
          thresholds: [1, 2],
          queries: [[`count(${series('upstreamTargetUp').text} == 0) or vector(0)`, '']],
        }),
      ],
    },
    {
      title: 'Requests',
      panels: [
        lines({
          title: 'By status',
          description: 'Answers a second by status class.',
          unit: 'reqps',
          stacked: true,
          queries: [[rate(requests, ['status_class']), '{{status_class}}']],
        }),
        lines({
          title: 'Duration',
          description: 'From the request read to the answer ready.',
          unit: 's',
          queries: [
            [quantile(0.5, 'requestSeconds'), 'half'],
            [quantile(0.95, 'requestSeconds'), '95 %'],
            [quantile(0.99, 'requestSeconds'), '99 %'],
          ],
        }),
        lines({
          title: 'Own part and wait for the upstream, 99 %',
          description: 'Which of the two is to blame for a long duration.',
          unit: 's',
          queries: [
            [quantile(0.99, 'ownSeconds', ['cache']), 'own, {{cache}}'],
            [quantile(0.99, 'upstreamWaitSeconds'), 'upstream'],
          ],
        }),
        lines({
          title: 'Busiest routes',
          description: 'Ten routes with the most requests.',
          unit: 'reqps',
          queries: [[`topk(10, ${rate(requests, ['service', 'route'])})`, '{{service}} {{route}}']],
        }),
        lines({
          title: 'Slowest routes, 99 %',
          description: 'Ten routes with the longest duration.',
          unit: 's',
          queries: [
            [`topk(10, ${quantile(0.99, 'routeSeconds', ['service', 'route'])})`, '{{service}} {{route}}'],
          ],
        }),
        lines({
          title: 'By method',
          description: 'Requests a second by method; what is none of the usual ones is _OTHER.',
          unit: 'reqps',
          stacked: true,
          queries: [[rate(requests, ['method']), '{{method}}']],
        }),
      ],
    },
    {
      title: 'Refusals',
      panels: [
        lines({
          title: 'Refusals by code',
          description: 'Requests that the gateway refused, or that failed on their way.',
          unit: 'reqps',
          queries: [[rate(series('refusals'), ['service', 'code']), '{{service}} {{code}}']],
        }),
        lines({
          title: 'What is no request',
          description:
            'Connections ended because of what came over them; `framing` and `chunking` are how requests are smuggled.',
          unit: 'ops',
          queries: [[rate(series('protocolRefusals'), ['reason']), '{{reason}}']],
        }),
        table({
          title: 'Most refused routes',
          description: 'Ten routes with the most refusals now.',
          unit: 'reqps',
          width: 8,
          queries: [[`topk(10, ${rate(series('refusals'), ['service', 'route', 'code'])})`, '']],
        }),
      ],
    },
    {
      title: 'Protection',
      panels: [
        lines({
          title: 'Given up because of overload',
          description:
            'Work refused, by its class and by the signal that showed the overload; and what found no room in limits.bufferedBytes.',
          unit: 'reqps',
          queries: [
            [rate(series('shed'), ['class', 'signal']), '{{class}}: {{signal}}'],
            [rate(series('bufferedRefusals'), ['work']), 'no room: {{work}}'],
          ],
        }),
        lines({
          title: 'Pressure',
          description:
            '0 all is done, 1 no batches and misses, 2 nothing that asks an upstream, 3 nothing at all.',
          unit: 'short',
          queries: [[total(series('pressureLevel'), ['instance'], 'max'), '{{instance}}']],
        }),
        lines({
          title: 'Limited and cut',
          description:
            'Requests refused with 429 by limit, and connections that the gateway ended by reason.',
          unit: 'ops',
          queries: [
            [rate(series('rateLimited'), ['limit']), '429: {{limit}}'],
            [rate(series('connectionsCut'), ['reason']), 'cut: {{reason}}'],
          ],
        }),
      ],
    },
    {
      title: 'Clients, upstreams, process',
      panels: [
        lines({
          title: 'Bytes',
          description: 'Over the connections of the public side, fields and framing included.',
          unit: 'Bps',
          queries: [
            [rate(series('receivedBytes')), 'received'],
            [rate(series('sentBytes')), 'sent'],
          ],
        }),
        states({
          title: 'Targets',
          description: '1 while a target is healthy, 0 while its checks or its requests fail.',
          unit: 'short',
          width: 8,
          queries: [
            [total(series('upstreamTargetUp'), ['service', 'target'], 'min'), '{{service}} {{target}}'],
          ],
        }),
        lines({
          title: 'Event loop delay, 99 %',
          description: 'How late the process comes to its work; beyond 250 ms it cannot keep up.',
          unit: 's',
          queries: [[ofProcess('nodejs_eventloop_lag_p99_seconds'), '{{instance}}']],
        }),
      ],
    },
  ],
}
