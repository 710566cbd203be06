import { counter, gauge, type MetricRow } from './metric-row.ts'

/** Metrics of the process's own life. */
export const lifecycleMetrics = {
  configReloads: counter(
    'config_reloads_total',
    ['outcome'],
    'Reloads of the configuration: `applied`, `unchanged`, or why the one before stayed: `invalid`, `restart-needed`, `failed`.',
  ),
  configReloadGood: gauge(
    'config_last_reload_good',
    [],
    '1 when the last reload was applied or had nothing to change, 0 when it was refused; absent before the first.',
    'min',
  ),
  configReloadTime: gauge(
    'config_last_reload_timestamp_seconds',
    ['outcome'],
    'When a reload last had this outcome, in seconds since 1970.',
    'max',
  ),
  processFaults: counter(
    'process_faults_total',
    [],
    'Errors that nothing caught; each makes the process drain and end.',
  ),
  certificateExpiry: gauge(
    'tls_certificate_expiry_timestamp_seconds',
    [],
    "When the public side's certificate runs out, in seconds since 1970; absent without TLS.",
    'min',
  ),
} as const satisfies Record<string, MetricRow>
