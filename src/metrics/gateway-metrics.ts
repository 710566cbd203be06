import { counter, gauge, type MetricRow } from './metric-row.ts'

/** Metrics of the gateway as a whole: what runs, and how its metrics are. */
export const gatewayMetrics = {
  seriesOverflow: counter(
    'metrics_overflow_total',
    ['metric'],
    'Times a series was asked for and not made because its metric had too many; what it would count is under the label `_overflow`.',
  ),
  traceSpans: counter(
    'trace_spans_total',
    ['outcome'],
    'Spans of recorded traces: `ended`, then `exported`, or `failed` when the collector did not take them; what is missing then was given up because too many waited.',
  ),
  logLinesDropped: counter(
    'log_lines_dropped_total',
    [],
    'Log lines given up because whoever reads them is too slow or has gone, or the disk is full.',
  ),
  draining: gauge('draining', [], '1 from the moment at which the gateway begins to go away.', 'max'),
  buildInfo: gauge('build_info', ['version', 'node'], 'Always 1; the labels say what runs.', 'max'),
  configInfo: gauge('config_info', ['hash'], 'Always 1; the label tells configurations apart.', 'max'),
} as const satisfies Record<string, MetricRow>
