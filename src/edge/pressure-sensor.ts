import underPressure from '@fastify/under-pressure'
import { fastify } from 'fastify'

/** What the process measures about itself. */
export type PressureReading = {
  readonly eventLoopDelayMs: number
  readonly eventLoopUtilization: number
  readonly heapBytes: number
  readonly rssBytes: number
}

export type PressureSensor = { close(): Promise<void> }

/**
 * Measures by @fastify/under-pressure, on an instance that serves nothing: its hook would be run for each hit, and refuses
 * whatever comes, while here the cheapest work is to be given up last.
 */
export const startPressureSensor = async (
  intervalMs: number,
  measured: (reading: PressureReading) => void,
): Promise<PressureSensor> => {
  const server = fastify({ logger: false })
  await server.register(underPressure, { sampleInterval: intervalMs, eventLoopUtilizationMode: 'interval' })
  await server.ready()
  const timer = setInterval(() => {
    const { eventLoopDelay, eventLoopUtilized, heapUsed, rssBytes } = server.memoryUsage()
    measured({
      eventLoopDelayMs: eventLoopDelay,
      eventLoopUtilization: eventLoopUtilized,
      heapBytes: heapUsed,
      rssBytes,
    })
  }, intervalMs)
  timer.unref()
  return {
    close: async () => {
      clearInterval(timer)
      await server.close()
    },
  }
}
