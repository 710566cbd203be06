import { Pool } from 'undici'
import type { Load } from './generator.ts'
import { quantile } from './statistics.ts'

/** Sends GETs over `connections` kept-alive connections for `seconds`, one after the other on each. */
export async function generate(
  url: string,
  seconds: number,
  connections: number,
  lines: readonly string[],
): Promise<Load> {
  const headers = Object.fromEntries(lines.map((line) => line.split(/: (.*)/s, 2)))
  const { origin, pathname, search } = new URL(url)
  const pool = new Pool(origin, { connections, pipelining: 1 })
  const timesMs: number[] = []
  let failures = 0
  const begin = performance.now()
  const end = begin + seconds * 1000
  const one = async (): Promise<void> => {
    while (performance.now() < end) {
      const sent = performance.now()
      try {
        const response = await pool.request({ path: pathname + search, method: 'GET', headers })
        await response.body.dump({ limit: Number.MAX_SAFE_INTEGER })
        if (response.statusCode >= 400) failures += 1
      } catch {
        failures += 1
      }
      timesMs.push(performance.now() - sent)
    }
  }
  await Promise.all(Array.from({ length: connections }, one))
  const took = (performance.now() - begin) / 1000
  await pool.close()
  return {
    requests: timesMs.length,
    seconds: took,
    failures,
    p50Ms: quantile(timesMs, 0.5),
    p99Ms: quantile(timesMs, 0.99),
  }
}
