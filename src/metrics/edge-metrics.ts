import { counter, gauge, type MetricRow } from './metric-row.ts'

/** Metrics of the public port, and of what is refused to protect the process. */
export const edgeMetrics = {
  connectionsCut: counter(
    'connections_cut_total',
    ['reason'],
    'Connections ended by the gateway: `too-many` (limits.connections), `address` (limits.connectionsPerAddress), `slow-reader` (limits.readerTimeout), `resets` (too many HTTP/2 streams reset), `drain` (drain.timeout).',
  ),
  rateLimited: counter(
    'rate_limited_total',
    ['limit'],
    'Requests and items of batches refused with 429, by limit.',
  ),
  shed: counter(
    'shed_total',
    ['class', 'signal'],
    'Work given up because of overload: `batch` and `miss` first, then `pass`, `hit` last; and the signal that showed it.',
  ),
  bufferedBytes: gauge(
    'buffered_bytes',
    [],
    'Bytes held for requests under way: responses that are being stored, request bodies that are read whole, answers of batches, and answers that slow clients have not taken (limits.bufferedBytes).',
  ),
  bufferedRefusals: counter(
    'buffered_refusals_total',
    ['work'],
    'Times that limits.bufferedBytes, or the half of it that one client may hold, had no room: `fill` is passed on and not stored, `request-body` and `batch-item` get 503, `write-answer` is passed on unread, for `slow-reader` the oldest connection of the client is ended.',
  ),
  pressureLevel: gauge(
    'pressure_level',
    [],
    'How much is given up now: 0 nothing, 1 batches and misses, 2 all that asks an upstream, 3 everything.',
    'max',
  ),
} as const satisfies Record<string, MetricRow>
