import { counter, gauge, type MetricRow } from './metric-row.ts'

/** Metrics of the process's own life. */
export const lifecycleMetrics = {
  configReloads: counter(
    'config_reloads_total',
    ['outcome'],
    'Reloads: `applied`, `unchanged`, `invalid`, `restart-needed` or `failed`.',
  ),
  configReloadGood: gauge(
    'config_last_reload_good',
    [],
    '1 = the last reload succeeded, 0 = it was refused; absent before the first.',
    'min',
  ),
  configReloadTime: gauge(
    'config_last_reload_timestamp_seconds',
    ['outcome'],
    'Unix time of the last reload with this outcome.',
    'max',
  ),
  processFaults: counter('process_faults_total', [], 'Uncaught errors; each ends the process.'),
  certificateExpiry: gauge(
    'tls_certificate_expiry_timestamp_seconds',
    [],
    'Unix time at which the certificate expires; absent without TLS.',
    'min',
  ),
} as const satisfies Record<string, MetricRow>
