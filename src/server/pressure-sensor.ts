import { type EventLoopUtilization, monitorEventLoopDelay, performance } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'

/** Measurements of the process. */
export type PressureReading = {
  readonly eventLoopDelayMs: number
  readonly eventLoopUtilization: number
  readonly heapBytes: number
  readonly rssBytes: number
}

export type PressureSensor = { close(): Promise<void> }

/** Sampling interval of the delay; each sample includes one interval of intended waiting. */
const resolutionMs = 10

/** Linux reports it in a file. Without a free file descriptor the last value stays valid. */
const rssOr = (known: number): number => {
  try {
    return process.memoryUsage.rss()
  } catch {
    return known
  }
}

/** Measures every `intervalMs` and reports each measurement; does not keep the process alive. */
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
      // No sample: the process was idle, or the event loop was blocked for the whole interval.
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
