import type { UpstreamOptions } from './options.ts'
import type { Target, Targets } from './targets.ts'

/** A target counts as gone after so many bad checks in a row; one good one brings it back. */
const badChecksToFail = 2

const joined = (basePath: string, path: string): string =>
  `${basePath.replace(/\/$/, '')}/${path.replace(/^\//, '')}`

/** One GET beside the slots: a full upstream must not look like a dead one. Anything below 500 is good. */
const check = async (
  target: Target,
  path: string,
  { hostField, health }: UpstreamOptions,
): Promise<boolean> => {
  // The same as for requests: undici opens another connection for another name.
  const headers = hostField === '' ? {} : { host: hostField }
  try {
    const signal = AbortSignal.timeout(health.intervalMs)
    const { statusCode, body } = await target.pool.request({ path, method: 'GET', headers, signal })
    await body.dump({ limit: 64 * 1024, signal })
    return statusCode < 500
  } catch {
    return false
  }
}

/** Starts active checks when a path is set; gives back what stops them. */
export const startProbes = (options: UpstreamOptions, targets: Targets): (() => void) => {
  const { path, intervalMs } = options.health
  if (path === '') return () => {}
  const bad = new Map<Target, number>()
  let running = false

  const checkOne = async (target: Target): Promise<void> => {
    const good = await check(target, joined(options.basePath, path), options)
    const count = good ? 0 : (bad.get(target) ?? 0) + 1
    bad.set(target, count)
    if (good || count >= badChecksToFail) targets.probed(target, good)
  }
  const checkAll = async (): Promise<void> => {
    if (running) return
    running = true
    await Promise.all(targets.all.map(checkOne))
    running = false
  }

  const timer = setInterval(() => void checkAll(), intervalMs)
  timer.unref()
  return () => clearInterval(timer)
}
