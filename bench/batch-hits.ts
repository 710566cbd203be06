import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { PacedGets } from './paced-gets.ts'
import { median, quantile } from './statistics.ts'

const run = promisify(execFile)

/** In a separate process, so that this process does not disturb the measurement. */
async function hitTimes(url: string, seconds: number): Promise<PacedGets> {
  const main = fileURLToPath(new URL('./run.ts', import.meta.url))
  const args = ['--import', 'tsx', main, 'paced-gets', url, String(seconds)]
  return JSON.parse((await run(process.execPath, args, { maxBuffer: 1 << 24 })).stdout) as PacedGets
}

/** Hits while nothing else happens, and while 40 clients send one batch after the other. */
export async function hitsBesideBatches(hit: string, batch: () => Promise<number>): Promise<string> {
  for (let time = 0; time < 2; time += 1) await (await fetch(hit)).arrayBuffer()
  const idle = await hitTimes(hit, 4)
  let isOver = false
  let batches = 0
  let failed = 0
  const senders = Array.from({ length: 40 }, async () => {
    while (!isOver) {
      failed += await batch()
      batches += 1
    }
  })
  const busy = await hitTimes(hit, 8)
  isOver = true
  await Promise.all(senders)
  const [idle99, busy99] = [quantile(idle.hits, 0.99), quantile(busy.hits, 0.99)]
  return [
    `  hits, idle: p50 ${median(idle.hits).toFixed(2)} p99 ${idle99.toFixed(2)} ms (${idle.hits.length} hits, ${idle.others} others)`,
    `  hits beside 40 batches at once (${batches} in all, ${failed} items not answered in time): p50 ${median(busy.hits).toFixed(2)} p99 ${busy99.toFixed(2)} ms, ratio of p99 ${(busy99 / idle99).toFixed(2)} (${busy.hits.length} hits, ${busy.others} others)`,
  ].join('\n')
}
