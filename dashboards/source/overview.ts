import type { DashboardFacts } from './dashboard.ts'
import { lines, number, states, table } from './panel.ts'
import { ofProcess, quantile, rate, series, share, total } from './query.ts'

const requests = series('requests')
const responded = rate(requests)
const asked = series('requests', { cache: '~hit|stale|collapsed|miss|revalidated' })
const served = series('requests', { cache: '~hit|stale|collapsed' })

/** The first dashboard to look at. */
export const overview: DashboardFacts = {
  name: 'overview',
  title: 'Trellis overview',
  description: 'Requests, errors, durations, hits, targets and the process at a glance.',
  sections: [
    {
      title: 'At a glance',
      panels: [
        number({
          title: 'Requests',
          description: 'Requests per second, without batch items.',
          unit: 'reqps',
          queries: [[responded, '']],
        }),
        number({
          title: 'Errors',
          description: 'Share of responses with status 500 or above.',
          unit: 'percentunit',
          thresholds: [0.001, 0.01],
          queries: [[share(rate(series('requests', { status_class: '5xx' })), responded), '']],
        }),
        number({
          title: 'Duration, 99 %',
          description: '99th percentile of the request duration.',
          unit: 's',
          thresholds: [1, 2.5],
          queries: [[quantile(0.99, 'requestSeconds'), '']],
        }),
        number({
          title: 'Hits',
          description: 'Share of cacheable requests that needed no upstream request.',
          unit: 'percentunit',
          queries: [[share(rate(served), rate(asked)), '']],
        }),
        number({
          title: 'In flight',
          description: 'Requests in flight.',
          unit: 'short',
          queries: [[total(series('inFlight')), '']],
        }),
        number({
          title: 'Failing targets',
          description: 'Upstream targets whose checks or requests fail, ejected or still in use.',
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
          description: 'Responses per second, by status class.',
          unit: 'reqps',
          stacked: true,
          queries: [[rate(requests, ['status_class']), '{{status_class}}']],
        }),
        lines({
          title: 'Duration',
          description: 'Time from the request read to the response ready.',
          unit: 's',
          queries: [
            [quantile(0.5, 'requestSeconds'), 'half'],
            [quantile(0.95, 'requestSeconds'), '95 %'],
            [quantile(0.99, 'requestSeconds'), '99 %'],
          ],
        }),
        lines({
          title: 'Own duration and upstream wait, 99 %',
          description: 'Time spent in the gateway, and time spent waiting for the upstream.',
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
          description: 'Requests per second, by method; unknown methods are _OTHER.',
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
          description: 'Refused or failed requests, by error code.',
          unit: 'reqps',
          queries: [[rate(series('refusals'), ['service', 'code']), '{{service}} {{code}}']],
        }),
        lines({
          title: 'Malformed requests',
          description:
            'Connections closed because of malformed HTTP; `framing` and `chunking` are possible request smuggling.',
          unit: 'ops',
          queries: [[rate(series('protocolRefusals'), ['reason']), '{{reason}}']],
        }),
        table({
          title: 'Most refused routes',
          description: 'Ten routes with the most refusals.',
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
          title: 'Refused because of overload',
          description: 'Refused requests by class and signal, and times limits.bufferedBytes was exhausted.',
          unit: 'reqps',
          queries: [
            [rate(series('shed'), ['class', 'signal']), '{{class}}: {{signal}}'],
            [rate(series('bufferedRefusals'), ['work']), 'buffer full: {{work}}'],
          ],
        }),
        lines({
          title: 'Pressure',
          description:
            'Overload level: 0 = none, 1 = refuses batches and misses, 2 = all upstream requests, 3 = everything.',
          unit: 'short',
          queries: [[total(series('pressureLevel'), ['instance'], 'max'), '{{instance}}']],
        }),
        lines({
          title: 'Rate limits, access and closed connections',
          description:
            "Requests refused with 429, by limit, and by `access`, by reason; fetches of an issuer's keys; connections closed by the gateway.",
          unit: 'ops',
          queries: [
            [rate(series('rateLimited'), ['limit']), '429: {{limit}}'],
            [rate(series('accessRefused'), ['service', 'reason']), '{{service}}: {{reason}}'],
            [rate(series('jwksFetches'), ['service', 'result']), '{{service}} keys: {{result}}'],
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
          description: 'Bytes on client connections, with headers and framing.',
          unit: 'Bps',
          queries: [
            [rate(series('receivedBytes')), 'received'],
            [rate(series('sentBytes')), 'sent'],
          ],
        }),
        states({
          title: 'Targets',
          description: '1 = healthy, 0 = its checks or requests fail.',
          unit: 'short',
          width: 8,
          queries: [
            [total(series('upstreamTargetUp'), ['service', 'target'], 'min'), '{{service}} {{target}}'],
          ],
        }),
        lines({
          title: 'Event loop delay, 99 %',
          description: 'Delay of the event loop; above 250 ms the process is overloaded.',
          unit: 's',
          queries: [[ofProcess('nodejs_eventloop_lag_p99_seconds'), '{{instance}}']],
        }),
      ],
    },
  ],
}
