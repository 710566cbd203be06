import type { Tracing, TracingOptions } from './tracing.ts'

/** Starts tracing. OpenTelemetry is loaded here and nowhere else, so that a gateway without it does not carry it. */
export const startTracing = async (options: TracingOptions): Promise<Tracing> => {
  const { createTracing } = await import('./open-telemetry.ts')
  return createTracing(options)
}
