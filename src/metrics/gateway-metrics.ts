import { counter, gauge, type MetricRow } from './metric-row.ts'

/** Metrics of the gateway as a whole: what runs, and how its metrics are. */
export const gatewayMetrics = {
  seriesOverflow: counter(
    'metrics_overflow_total',
    ['metric'],
    'Observations counted under the label `_overflow` because the metric has too many series.',
  ),
  traceSpans: counter('trace_spans_total', ['outcome'], 'Spans: `ended`, `exported`, or `failed` to export.'),
  logLinesDropped: counter(
    'log_lines_dropped_total',
    [],
    'Log lines dropped because the output is too slow, closed or full.',
  ),
  draining: gauge('draining', [], '1 = the gateway is shutting down.', 'max'),
  buildInfo: gauge('build_info', ['version', 'node'], 'Always 1; labels show version and Node.', 'max'),
  configInfo: gauge('config_info', ['hash'], 'Always 1; the label identifies the configuration.', 'max'),
} as const satisfies Record<string, MetricRow>
