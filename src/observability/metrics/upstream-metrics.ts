import { counter, gauge, histogram, httpSeconds, type MetricRow } from './metric-row.ts'

/** Metrics of the upstreams and their targets. */
export const upstreamMetrics = {
  upstreamAttempts: counter(
    'upstream_attempts_total',
    ['service', 'target', 'outcome', 'status_class'],
    'Attempts at a target, by outcome.',
  ),
  upstreamHeadSeconds: histogram(
    'upstream_head_seconds',
    ['service', 'target'],
    httpSeconds,
    'Time from the start of an attempt to the response headers.',
  ),
  upstreamSeconds: histogram(
    'upstream_attempt_duration_seconds',
    ['service', 'target'],
    httpSeconds,
    'Time from the start of an attempt to the last byte.',
  ),
  upstreamRetries: counter(
    'upstream_retries_total',
    ['service', 'target', 'reason'],
    'Retried attempts, by reason.',
  ),
  upstreamGaveUp: counter(
    'upstream_gave_up_total',
    ['service', 'target', 'reason'],
    'Failed attempts that were not retried, by reason; `budget` = the retry budget was empty.',
  ),
  upstreamQueued: counter(
    'upstream_queue_total',
    ['service', 'outcome'],
    'Requests that asked for a slot: `sent`, `aborted`, or refused because of `full` (queue), `client-share`, `arriving-share` (bodies still arriving) or `timeout`.',
  ),
  upstreamQueueSeconds: histogram(
    'upstream_queue_seconds',
    ['service'],
    httpSeconds,
    'Wait for a free slot.',
  ),
  upstreamSlowClients: counter(
    'upstream_slow_clients_total',
    ['service', 'wait'],
    'Requests ended because a slow client occupied a slot: `request-body` or `reader`.',
  ),
  upstreamTargetChanges: counter(
    'upstream_target_changes_total',
    ['service', 'target', 'to'],
    'State changes of a target: `healthy`, `failing` (still used), `left-out`.',
  ),
  upstreamChecks: counter(
    'upstream_checks_total',
    ['service', 'target', 'result'],
    'Health checks: `good`, or the failure `status`, `timeout`, `connect`, `tls`, `broken`.',
  ),
  upstreamRetriesLeft: gauge('upstream_retries_left', ['service'], 'Retries that the budget still allows.'),
  upstreamConnections: gauge(
    'upstream_connections',
    ['service', 'target', 'state'],
    'Connections to a target, `busy` or `idle`.',
  ),
  upstreamTargetUp: gauge(
    'upstream_target_up',
    ['service', 'target'],
    '1 = healthy, 0 = its checks or requests fail; with workers, the lowest.',
    'min',
  ),
  upstreamTargetLeftOut: gauge(
    'upstream_target_left_out',
    ['service', 'target'],
    '1 = the target is ejected and gets no requests; with workers, the highest.',
    'max',
  ),
  upstreamTargetOutstanding: gauge(
    'upstream_target_outstanding_requests',
    ['service', 'target'],
    'Requests in flight to a target.',
  ),
  upstreamBreakerState: gauge(
    'upstream_breaker_state',
    ['service', 'state'],
    '1 for the current breaker state (`closed`, `open`, `half-open`), 0 for the others.',
    'max',
  ),
  upstreamBreakerChanges: counter(
    'upstream_breaker_changes_total',
    ['service', 'to'],
    'Breaker changes, by new state.',
  ),
  upstreamBreakerRefused: counter(
    'upstream_breaker_refused_total',
    ['service'],
    'Requests not sent because the breaker was open.',
  ),
  upstreamInFlight: gauge(
    'upstream_in_flight_requests',
    ['service'],
    'Requests in flight to all targets of a service.',
  ),
  upstreamWaitingForClients: gauge(
    'upstream_waiting_for_clients_requests',
    ['service'],
    'Requests in flight that wait for their client to send or to read.',
  ),
  upstreamWaiting: gauge('upstream_waiting_requests', ['service'], 'Requests that wait for a slot.'),
} as const satisfies Record<string, MetricRow>
