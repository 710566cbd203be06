import type { Config } from '../config/config.ts'
import { createAccessLog } from '../logging/access-log.ts'
import type { FactsLogger } from '../logging/facts-logger.ts'
import type { Metrics } from '../metrics/create-metrics.ts'
import type { ExchangeWatch, OpenSpans } from '../pipeline/exchange-watch.ts'
import { startTracing } from '../tracing/start-tracing.ts'

/** Who sees exchanges, by the configuration; nobody unless it says so. */
export type Watches = {
  readonly watches: readonly ExchangeWatch[] | undefined
  readonly spans: OpenSpans | undefined
  close(): Promise<void>
}

/** Starts the access log and traces, as far as they are asked for. */
export const startWatches = async (
  { log, tracing }: Pick<Config, 'log' | 'tracing'>,
  parts: { readonly lines: FactsLogger; readonly metrics: Metrics; readonly version: string },
): Promise<Watches> => {
  const { lines, metrics, version } = parts
  const access =
    log.access === 'off'
      ? []
      : [
          createAccessLog({
            mode: log.access,
            sampleHits: log.sampleHits,
            write: (line) => lines.info(line, 'request'),
          }),
        ]
  if (tracing.otlpUrl === '') {
    return { watches: access.length === 0 ? undefined : access, spans: undefined, close: async () => {} }
  }
  const traces = await startTracing({ ...tracing, version, report: metrics.observe.tracing })
  // Traces first: the access log names them.
  return { watches: [traces.watch, ...access], spans: traces.openSpans, close: traces.close }
}
