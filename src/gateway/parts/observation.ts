import type { Clock } from '../../clock.ts'
import type { Config } from '../../config/config.ts'
import { Redaction } from '../../http/redaction.ts'
import { startWatches } from '../../observability/access-log.ts'
import { createEmptyingLog, createStateLog } from '../../observability/event-lines.ts'
import { createHistory } from '../../observability/history.ts'
import { createLogger, createLogLevel, createSampled, factsLogger } from '../../observability/logger.ts'
import { createMetrics, observedBy } from '../../observability/metrics.ts'
import { descriptionLabels } from '../../wordpress/tags/description-labels.ts'
import type { GatewayOptions } from '../gateway-options.ts'

/** Starts log, metrics, history and traces: all other parts report to them. */
export const startObservation = async (config: Config, options: GatewayOptions, clock: Clock) => {
  const { configHash, version } = options
  const counted = createMetrics({ descriptionLabels, configHash, version, processMetrics: true })
  const logger = createLogger({ ...config.log, dropped: counted.observe.log })
  const logLevel = createLogLevel(logger, clock.now)
  if (options.logLevel !== undefined) logLevel.set(options.logLevel)
  const redaction = new Redaction()
  const history = createHistory(counted.totals, clock, redaction)
  const metrics = observedBy(counted, createStateLog(logger), createEmptyingLog(logger), {
    exchange: history.observe,
    upstream: history.observeUpstream,
  })
  const watches = await startWatches(config, { lines: factsLogger(logger), metrics, redaction, version })
  /** Samples log lines of frequent refusals. */
  const sampled = createSampled(10_000, clock.monotonic)
  return { logger, logLevel, metrics, history, redaction, watches, sampled }
}

export type Observation = Awaited<ReturnType<typeof startObservation>>
