import { type EventLoopUtilization, monitorEventLoopDelay, performance } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'

/** What the process measures about itself. */
export type PressureReading = {
  readonly eventLoopDelayMs: number
  readonly eventLoopUtilization: number
  readonly heapBytes: number
  readonly rssBytes: number
}

export type PressureSensor = { close(): Promise<void> }

/** How often the delay is sampled; that much of each sample is waiting that was asked for. */
const resolutionMs = 10

/** Linux tells it in a file, and when descriptors have run out there is none to be opened: what was known last then holds. */
const rssOr = (known: number): number => {
  try {
    return process.memoryUsage.rss()
  } catch {
    return known
  }
}

/** Measures every `intervalMs`, and hands each reading over; keeps no process alive. */
export const startPressureSensor = async (
  intervalMs: number,
  measured: (reading: PressureReading) => void,
): Promise<PressureSensor> => {
  const delays = monitorEventLoopDelay({ resolution: resolutionMs })
  delays.enable()
  let before: EventLoopUtilization = performance.eventLoopUtilization()
  let rssBytes = rssOr(0)

  const timer = setInterval(
    () => {
      // Nothing was sampled: nothing was running, or the loop stood still all the time.
      const delayMs = delays.count === 0 ? Number.POSITIVE_INFINITY : delays.mean / 1e6 - resolutionMs
      delays.reset()
      const now = performance.eventLoopUtilization()
      const { utilization } = performance.eventLoopUtilization(now, before)
      before = now
      rssBytes = rssOr(rssBytes)
      measured({
        eventLoopDelayMs: Math.max(0, delayMs),
        eventLoopUtilization: utilization,
        heapBytes: getHeapStatistics().used_heap_size,
        rssBytes,
      })
    },
    Math.max(intervalMs, resolutionMs),
  )
  timer.unref()
  return {
    close: async () => {
      clearInterval(timer)
      delays.disable()
    },
  }
}
