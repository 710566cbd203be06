import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../clock.ts'
import { Deadline } from './deadline.ts'
import type { CheckResult } from './events.ts'
import { checkFault } from './failure.ts'
import type { UpstreamOptions } from './options.ts'
import type { Target, Targets } from './targets.ts'

/** How a check ended, with its cause in words that hold nothing of what the target sent but a status. */
type Finding = { readonly result: CheckResult; readonly cause: string }

const passed: Finding = { result: 'good', cause: '' }

/** More of an answer is not read. */
const mostBytes = 64 * 1024

const joined = (basePath: string, path: string): string =>
  `${basePath.replace(/\/$/, '')}/${path.replace(/^\//, '')}`

/** Settles as `work` does, and rejects when it is aborted before: undici does not abort what still waits for its connection. */
const unlessAborted = <Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> =>
  new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason))
    work.then(resolve, reject)
  })

/** One GET beside the slots: an upstream that is busy must not look like a dead one. Redirects are answers like others. */
const ask = async (
  { pool }: Target,
  { basePath, hostField, health }: UpstreamOptions,
  signal: AbortSignal,
): Promise<Finding> => {
  const { statusCode, body } = await pool.request({
    path: joined(basePath, health.path),
    method: 'GET',
    // The Host of requests: undici opens another connection for another name.
    headers: { 'user-agent': 'trellis', ...(hostField === '' ? {} : { host: hostField }) },
    signal,
  })
  await body.dump({ limit: mostBytes, signal })
  if (health.expect.some(([first, last]) => first <= statusCode && statusCode <= last)) return passed
  const expected = health.expect
    .map(([first, last]) => (first === last ? first : `${first}-${last}`))
    .join(',')
  return { result: 'status', cause: `check answered ${statusCode}, expected ${expected}` }
}

const check = async (target: Target, options: UpstreamOptions, stopped: AbortSignal): Promise<Finding> => {
  const { timeoutMs } = options.health
  const abort = new AbortController()
  const stop = (): void => abort.abort()
  let timedOut = false
  const deadline = new Deadline(timeoutMs, () => {
    timedOut = true
    stop()
  })
  stopped.addEventListener('abort', stop)
  try {
    return await unlessAborted(ask(target, options, abort.signal), abort.signal)
  } catch (error) {
    return timedOut
      ? { result: 'timeout', cause: `check got no complete answer in ${timeoutMs} ms` }
      : checkFault(error)
  } finally {
    deadline.stop()
    stopped.removeEventListener('abort', stop)
  }
}

/**
 * Starts active checks when a path is set; gives back what stops them. Each target is checked by itself, one check after the
 * other. Pauses differ a little, so that the checks of many gateways do not come at once.
 */
export const startProbes = (
  options: UpstreamOptions,
  targets: Targets,
  { clock, random }: { readonly clock: Clock; readonly random: () => number },
): (() => void) => {
  const { path, intervalMs } = options.health
  const stop = new AbortController()
  const { signal } = stop
  const pause = (ms: number): Promise<void> => sleep(ms, undefined, { signal, ref: false })

  const watch = async (target: Target): Promise<void> => {
    await pause(random() * intervalMs)
    while (!signal.aborted) {
      const startedMs = clock.monotonic()
      const { result, cause } = await check(target, options, signal)
      if (signal.aborted) return
      targets.checked(target, result, cause)
      // Shorter than the interval and never longer: failAfter intervals and a timeout are enough to find a dead target.
      const pauseMs = intervalMs * (1 - 0.1 * random()) - (clock.monotonic() - startedMs)
      await pause(Math.max(0, pauseMs))
    }
  }
  if (path !== '') {
    for (const target of targets.all) {
      watch(target).catch((error: unknown) => {
        if (!signal.aborted) throw error
      })
    }
  }
  return () => stop.abort()
}
