import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Pool } from 'undici'
import { basic } from '../test/real/site-under-test.ts'
import { startWordPress } from '../test/real/wordpress/start-wordpress.ts'
import { startGatewayProcess } from '../test/support/gateway-process.ts'
import { type SlowUpstream, startSlowUpstream } from './batch-upstream.ts'
import type { PacedGets } from './paced-gets.ts'
import { median, quantile } from './statistics.ts'

// npm run bench batch                       batches in front of a real WordPress (needs PHP), and of slow upstreams
// BENCH_ROUNDS=10 npm run bench batch       a short look
// BENCH_WORDPRESS=http://user:application-password@host:port npm run bench batch
//   another WordPress, with posts 4 to 28: the one that comes along keeps its data in SQLite, which lets one writer in at a time
const rounds = Number(process.env['BENCH_ROUNDS'] ?? 40)
const warmUp = 24
const size = 25
const mount = '/index.php/wp-json'

type Way = { readonly name: string; run(round: number): Promise<void> }

/** All ways once in each round, so that what disturbs the machine disturbs all; their times in milliseconds. */
async function interleaved(ways: readonly Way[]): Promise<Map<string, number[]>> {
  const times = new Map<string, number[]>(ways.map(({ name }) => [name, []]))
  for (let round = 0; round < rounds; round += 1) {
    for (const { name, run } of ways) {
      const began = performance.now()
      await run(round)
      times.get(name)?.push(performance.now() - began)
    }
  }
  return times
}

function report(title: string, times: ReadonlyMap<string, readonly number[]>, measured: string): void {
  console.log(`\n${title}`)
  const own = times.get(measured) ?? []
  for (const [name, all] of times) {
    const spread = `${quantile(all, 0.25).toFixed(0)}-${quantile(all, 0.75).toFixed(0)}`
    const ratios = own.map((ms, round) => ms / (all[round] ?? Number.NaN))
    const ratio =
      name === measured
        ? ''
        : `  ratio ${median(ratios).toFixed(2)} (${quantile(ratios, 0.25).toFixed(2)}-${quantile(ratios, 0.75).toFixed(2)})`
    console.log(`  ${name.padEnd(46)}${median(all).toFixed(0).padStart(6)} ms  ${spread.padStart(9)}${ratio}`)
  }
}

const updates = (round: number) =>
  Array.from({ length: size }, (_, at) => ({
    method: 'PUT',
    path: `/wp/v2/posts/${at + 4}`,
    body: { title: `Round ${round}, ${at}` },
  }))

function client(origin: string, connections: number, authorization: string) {
  const pool = new Pool(origin, { connections })
  const headers = { 'content-type': 'application/json', authorization }
  const ask = async (
    method: 'POST' | 'PUT',
    path: string,
    body: unknown,
    expected: number,
    mayFail = false,
  ): Promise<number> => {
    const answer = await pool.request({
      method,
      path: `${mount}${path}`,
      headers,
      body: JSON.stringify(body),
    })
    const text = await answer.body.text()
    const failed = text.split('"status":5').length - 1
    if (answer.statusCode !== expected || (failed > 0 && !mayFail)) {
      throw new Error(`${path}: ${answer.statusCode} ${text.slice(0, 200)}`)
    }
    return failed
  }
  return {
    batch: async (round: number) => {
      await ask('POST', '/batch/v1', { requests: updates(round) }, 207)
    },
    /** Gives back how many of its items got no answer in time. */
    hurriedBatch: (round: number) => ask('POST', '/batch/v1', { requests: updates(round) }, 207, true),
    singles: async (round: number) => {
      await Promise.all(updates(round).map(({ path, body }) => ask('PUT', path, body, 200)))
    },
    close: () => pool.close(),
  }
}

const gatewayBefore = (origin: string, upstream: Record<string, unknown> = {}) =>
  startGatewayProcess({
    log: { level: 'error' },
    services: {
      site: {
        contract: 'site',
        mount,
        names: 'same',
        discovery: { source: 'static', identity: { name: 'Bench' } },
        upstream: { targets: [origin], basePath: mount, ...upstream },
        cache: { rules: [{ match: 'GET /wp/v2/**', ttl: '1h' }] },
      },
    },
  })

async function splits(adminOrigin: string): Promise<string> {
  const text = await (await fetch(`${adminOrigin}/metrics`)).text()
  const lines = text.split('\n').filter((line) => line.startsWith('trellis_batch_splits_total'))
  const chunks = /trellis_batch_chunk_items_count\{[^}]*\} (\d+)/.exec(text)?.[1] ?? '0'
  return `${lines.map((line) => line.replace(/.*split="(\w+)",reason="([\w-]+)"\} /, '$1 $2 ')).join(', ')}; ${chunks} chunks`
}

const run = promisify(execFile)

/** In a process of its own, so that what it measures is not its neighbour in this one. */
async function hitTimes(url: string, seconds: number): Promise<PacedGets> {
  const main = fileURLToPath(new URL('./run.ts', import.meta.url))
  const args = ['--import', 'tsx', main, 'paced-gets', url, String(seconds)]
  return JSON.parse((await run(process.execPath, args, { maxBuffer: 1 << 24 })).stdout) as PacedGets
}

/** Hits while nothing else happens, and while 40 clients send one batch after the other. */
async function hitsBesideBatches(title: string, hit: string, batch: () => Promise<number>): Promise<void> {
  for (let time = 0; time < 2; time += 1) await (await fetch(hit)).arrayBuffer()
  const idle = await hitTimes(hit, 4)
  let isOver = false
  let batches = 0
  let failed = 0
  const senders = Array.from({ length: 40 }, async () => {
    while (!isOver) {
      failed += (await batch()) / 2
      batches += 1
    }
  })
  const busy = await hitTimes(hit, 8)
  isOver = true
  await Promise.all(senders)
  const [idle99, busy99] = [quantile(idle.hits, 0.99), quantile(busy.hits, 0.99)]
  console.log(`\n${title}`)
  console.log(
    `  idle: p50 ${median(idle.hits).toFixed(2)} p99 ${idle99.toFixed(2)} ms (${idle.hits.length} hits, ${idle.others} others)`,
  )
  console.log(
    `  beside 40 batches at once (${batches} in all, ${failed} items not answered in time): p50 ${median(busy.hits).toFixed(2)} p99 ${busy99.toFixed(2)} ms, ratio of p99 ${(busy99 / idle99).toFixed(2)} (${busy.hits.length} hits, ${busy.others} others)`,
  )
}

type Upstream = { readonly origin: string; readonly authorization: string; stop(): Promise<void> }

async function wordPress(): Promise<Upstream> {
  const given = process.env['BENCH_WORDPRESS']
  if (given === undefined) {
    const started = await startWordPress()
    return { ...started, authorization: basic(started.credentials.admin) }
  }
  const { origin, username, password } = new URL(given)
  return { origin, authorization: basic({ username, password }), stop: async () => {} }
}

async function againstWordPress(): Promise<void> {
  const wordpress = await wordPress()
  const gateway = await gatewayBefore(wordpress.origin)
  const { authorization } = wordpress
  const direct = client(wordpress.origin, 8, authorization)
  const through = client(gateway.origin, 64, authorization)
  for (let at = 0; at < warmUp; at += 1) await through.batch(-at)
  const trellis = 'batch of 25 through Trellis, auto'
  const times = await interleaved([
    { name: trellis, run: through.batch },
    { name: "WordPress's own batch of 25", run: direct.batch },
    { name: '25 requests to WordPress on 8 connections', run: direct.singles },
  ])
  report(`25 updates, real WordPress, ${rounds} rounds`, times, trellis)
  console.log(`  how they were sent: ${await splits(gateway.adminOrigin)}`)
  let number = 1_000
  await hitsBesideBatches(
    'cache hits, real WordPress behind',
    `${gateway.origin}${mount}/wp/v2/pages?_fields=id,slug`,
    () => through.hurriedBatch(number++),
  )
  await Promise.all([direct.close(), through.close()])
  await gateway.stop()
  await wordpress.stop()
}

async function againstSlow(title: string, batchRoute: boolean): Promise<void> {
  const upstream: SlowUpstream = await startSlowUpstream({ workers: 16, requestMs: 50, batchRoute })
  const gateway = await gatewayBefore(upstream.origin, { maxConcurrent: 16 })
  const one = client(upstream.origin, 1, 'Basic YTpi')
  const through = client(gateway.origin, 64, 'Basic YTpi')
  for (let at = 0; at < warmUp; at += 1) await through.batch(-at)
  const trellis = 'batch of 25 through Trellis, auto'
  const times = await interleaved([
    { name: trellis, run: through.batch },
    { name: '25 requests one after the other', run: one.singles },
  ])
  report(`25 updates, 50 ms each, 16 workers, ${title}`, times, trellis)
  console.log(`  how they were sent: ${await splits(gateway.adminOrigin)}`)
  let number = 1_000
  await hitsBesideBatches(
    `cache hits, ${title}`,
    `${gateway.origin}${mount}/wp/v2/pages?_fields=id,slug`,
    () => through.hurriedBatch(number++),
  )
  console.log(`  most upstream requests at once: ${upstream.mostAtOnce()} (bound 16)`)
  await Promise.all([one.close(), through.close()])
  await gateway.stop()
  await upstream.close()
}

/** Ratios of one run; the times are this machine's. */
export async function benchBatches(): Promise<void> {
  await againstWordPress()
  await againstSlow('no batch route', false)
  await againstSlow('with a batch route', true)
}
