import { counter, gauge, histogram, httpSeconds, type MetricRow } from './metric-row.ts'

/** Metrics of the upstreams and their targets. */
export const upstreamMetrics = {
  upstreamAttempts: counter(
    'upstream_attempts_total',
    ['service', 'target', 'outcome', 'status_class'],
    'Attempts at a target, by how they ended.',
  ),
  upstreamHeadSeconds: histogram(
    'upstream_head_seconds',
    ['service', 'target'],
    httpSeconds,
    'From an attempt begun to its response head, in seconds.',
  ),
  upstreamSeconds: histogram(
    'upstream_attempt_duration_seconds',
    ['service', 'target'],
    httpSeconds,
    'Whole attempt with the last byte of the answer, in seconds.',
  ),
  upstreamRetries: counter(
    'upstream_retries_total',
    ['service', 'target', 'reason'],
    'Attempts tried again, by reason.',
  ),
  upstreamGaveUp: counter(
    'upstream_gave_up_total',
    ['service', 'target', 'reason'],
    'Failed attempts that were not tried again, by reason; `budget` says that the retry budget is used up.',
  ),
  upstreamQueued: counter(
    'upstream_queue_total',
    ['service', 'outcome'],
    'Requests that asked for a free place, by how the wait ended: `sent`; refused since the queue is full (`full`), its client has its share (`client-share`), too many wait whose bodies are still arriving (`arriving-share`), or it took too long (`timeout`); `aborted`.',
  ),
  upstreamQueueSeconds: histogram(
    'upstream_queue_seconds',
    ['service'],
    httpSeconds,
    'Wait for a free place, in seconds.',
  ),
  upstreamSlowClients: counter(
    'upstream_slow_clients_total',
    ['service', 'wait'],
    'Requests ended because they held a slot and their client was too slow: the rest of the body did not come (`request-body`), or the answer was not read (`reader`).',
  ),
  upstreamTargetChanges: counter(
    'upstream_target_changes_total',
    ['service', 'target', 'to'],
    'Changes of what is known of a target, by what it became: `healthy`, `failing` (and in use all the same), `left-out`.',
  ),
  upstreamChecks: counter(
    'upstream_checks_total',
    ['service', 'target', 'result'],
    'Active checks (upstream.health), by result: `good`, or why they failed: `status`, `timeout`, `connect`, `tls`, `broken`.',
  ),
  upstreamRetriesLeft: gauge(
    'upstream_retries_left',
    ['service'],
    'Retries that the budget of the last ten seconds still grants.',
  ),
  upstreamConnections: gauge(
    'upstream_connections',
    ['service', 'target', 'state'],
    'Connections to a target, `busy` or `idle`.',
  ),
  upstreamTargetUp: gauge(
    'upstream_target_up',
    ['service', 'target'],
    '1 while a target is healthy, 0 while its checks or its requests fail, whether it is left out or stays in use; with workers, for any of them.',
    'min',
  ),
  upstreamTargetLeftOut: gauge(
    'upstream_target_left_out',
    ['service', 'target'],
    '1 while a target that fails gets no requests; one that fails stays in use when too many others are out (eject.maxShare); with workers, by any of them.',
    'max',
  ),
  upstreamTargetOutstanding: gauge(
    'upstream_target_outstanding_requests',
    ['service', 'target'],
    'Requests in flight at a target.',
  ),
  upstreamBreakerState: gauge(
    'upstream_breaker_state',
    ['service', 'state'],
    '1 for the state that the breaker is in (`closed`, `open`, `half-open`), 0 for the others; with workers, that any of them is in.',
    'max',
  ),
  upstreamBreakerChanges: counter(
    'upstream_breaker_changes_total',
    ['service', 'to'],
    'Changes of the breaker, by the state that it came to.',
  ),
  upstreamBreakerRefused: counter(
    'upstream_breaker_refused_total',
    ['service'],
    'Requests not sent because the breaker was open; stale answers may have stood in for them.',
  ),
  upstreamInFlight: gauge(
    'upstream_in_flight_requests',
    ['service'],
    'Requests in flight at all targets of a service.',
  ),
  upstreamWaitingForClients: gauge(
    'upstream_waiting_for_clients_requests',
    ['service'],
    'Requests in flight that wait for their client: for the rest of a body, or for the answer to be read.',
  ),
  upstreamWaiting: gauge('upstream_waiting_requests', ['service'], 'Requests that wait for a free place.'),
} as const satisfies Record<string, MetricRow>
