import type { LookupFunction } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from 'undici'
import { type Clock, Deadline } from '../../clock.ts'
import type { CheckResult, UpstreamEvent } from '../events.ts'
import { checkFault } from '../failure.ts'
import type { UpstreamOptions } from '../options.ts'
import { poolOf, type Target, type Targets } from './targets.ts'

/** How a check ended. The words of the cause contain nothing that the target sent, except a status. */
type CheckEnd = { readonly result: CheckResult; readonly cause: string }

const passed: CheckEnd = { result: 'good', cause: '' }

/** More of a response is not read. */
const maxBytes = 64 * 1024

const joined = (basePath: string, path: string): string =>
  `${basePath.replace(/\/$/, '')}/${path.replace(/^\//, '')}`

/** The status of the response to a GET, when the response is complete or long. */
const statusOf = (
  pool: Pool,
  options: { readonly path: string; readonly headers: string[] },
): Promise<number> =>
  new Promise((resolve, reject) => {
    let status = 0
    let bytes = 0
    pool.dispatch(
      { ...options, method: 'GET' },
      {
        onConnect: () => undefined,
        onHeaders: (code) => {
          status = code
          return true
        },
        onData: (chunk) => {
          bytes += chunk.length
          if (bytes > maxBytes) resolve(status)
          return true
        },
        onComplete: () => resolve(status),
        onError: reject,
      },
    )
  })

/** One GET. Redirects are responses like others. Throws without a complete response. */
const ask = async (pool: Pool, { basePath, hostHeader, health }: UpstreamOptions): Promise<CheckEnd> => {
  const statusCode = await statusOf(pool, {
    path: joined(basePath, health.path),
    headers: ['user-agent', 'trellis', ...(hostHeader === '' ? [] : ['host', hostHeader])],
  })
  if (health.expect.some(([first, last]) => first <= statusCode && statusCode <= last)) return passed
  const expected = health.expect
    .map(([first, last]) => (first === last ? first : `${first}-${last}`))
    .join(',')
  return { result: 'status', cause: `the check got status ${statusCode}, expected ${expected}` }
}

/**
 * One check, beside the slots: an upstream that is busy must not look like a dead one. It has its own connection, as a new
 * client would: a target may close a kept one at any moment, which is no sign of a fault.
 */
const check = async (pool: Pool, options: UpstreamOptions, stopped: AbortSignal): Promise<CheckEnd> => {
  const { timeoutMs } = options.health
  const end = (): void => void pool.destroy()
  let timedOut = false
  const deadline = new Deadline(timeoutMs, () => {
    timedOut = true
    end()
  })
  stopped.addEventListener('abort', end)
  try {
    return await ask(pool, options)
  } catch (error) {
    return timedOut
      ? { result: 'timeout', cause: `the check got no complete response in ${timeoutMs} ms` }
      : checkFault(error)
  } finally {
    deadline.stop()
    stopped.removeEventListener('abort', end)
    end()
  }
}

/**
 * Starts active checks when a path is set; gives back what stops them. Each target is checked by itself, one check after the
 * other. Pauses differ a little, so that the checks of many gateways do not coincide.
 */
export const startProbes = (
  options: UpstreamOptions,
  targets: Targets,
  lookup: LookupFunction,
  {
    clock,
    random,
    report,
  }: {
    readonly clock: Clock
    readonly random: () => number
    readonly report: (event: UpstreamEvent) => void
  },
): (() => void) => {
  const { path, intervalMs, timeoutMs } = options.health
  const connecting = { ...options, timeouts: { ...options.timeouts, connectMs: timeoutMs } }
  const stop = new AbortController()
  const { signal } = stop
  const pause = (ms: number): Promise<void> => sleep(ms, undefined, { signal, ref: false })

  const watch = async (target: Target): Promise<void> => {
    await pause(random() * intervalMs)
    while (!signal.aborted) {
      const startedMs = clock.monotonic()
      const pool = poolOf(target.origin, connecting, lookup, report)
      const { result, cause } = await check(pool, options, signal)
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
