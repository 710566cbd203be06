import { availableParallelism, loadavg } from 'node:os'
import { basic } from '../test/real/site-under-test.ts'
import type { GatewayProcess } from '../test/support/gateway-process.ts'
import { type RunningProcess, startProcess } from '../test/support/processes.ts'
import { batchClient, comparison, interleaved, mount, updatable, type Way } from './batch-client.ts'
import { batchGateway, mountOf, siteGateway } from './batch-gateway.ts'
import { hitsBesideBatches } from './batch-hits.ts'
import { chosenSites, keepsRevisions, type Site } from './batch-sites.ts'
import { chosenUpdates, type Update } from './batch-updates.ts'
import { type Pace, startSlowUpstream } from './batch-upstream.ts'
import { pin } from './pin.ts'

// npm run bench batch                       batches in front of a real WordPress, and of slow upstreams
// BENCH_ROUNDS=10 npm run bench batch       a short look
// BENCH_UPDATES=tag,user                    what is updated: see bench/batch-updates.ts; or all of it; no scripted upstreams, no hits
// BENCH_LOAD=2                              beside two programs that always want a processor
// BENCH_SITE=stack,sqlite                 some of bench/batch-sites.ts
// BENCH_WARM=0                              a gateway that has just been started
// BENCH_LAYOUT=apart                        the WordPress on the last processor, the gateway and the clients on the others
// BENCH_SITE=slow                           the scripted upstreams only, where the gateway's own share shows
const isApart = process.env['BENCH_LAYOUT'] === 'apart'
const rounds = Number(process.env['BENCH_ROUNDS'] ?? 40)
const size = 25

async function splits(adminOrigin: string): Promise<string> {
  const text = await (await fetch(`${adminOrigin}/metrics`)).text()
  const lines = text
    .split('\n')
    .filter((line) => line.startsWith('trellis_batch_splits_total{service="site"'))
  const chunks = /trellis_batch_chunk_items_count\{service="site"[^}]*\} (\d+)/.exec(text)?.[1] ?? '0'
  return `${lines.map((line) => line.replace(/.*split="(\w+)",reason="([\w-]+)"\} /, '$1 $2 ')).join(', ')}; ${chunks} chunks`
}

const load = (): string => `load ${loadavg()[0]?.toFixed(1)}`
const hitPath = `${mount}/wp/v2/pages?_fields=id,slug`
const throughTrellis = (split: string): string => `batch of 25 through Trellis, ${split}`
const trellis = throughTrellis('auto')
const own = "WordPress's own batch of 25"

/** Few enough that what `auto` still has to learn shows, were it much. */
const warmUp = 12

/** In a deployment WordPress has its own machines; here it has its own processor. */
async function setApart(site: Site, gateway: GatewayProcess): Promise<void> {
  const last = availableParallelism() - 1
  const others = last === 0 ? '0' : `0-${last - 1}`
  for (const pid of site.pids) await pin(pid, String(last))
  for (const pid of [gateway.program.pid, process.pid]) await pin(pid, others)
}

async function againstSite(site: Site, update: Update, measuresHits: boolean): Promise<void> {
  const gateway = await siteGateway(site.origin)
  if (isApart) await setApart(site, gateway)
  const { authorization } = site
  const ids = await updatable(site.origin, { authorization, update, count: size })
  const shared = { authorization, ids, update }
  const direct = batchClient(site.origin, { ...shared, connections: 8 })
  const through = batchClient(gateway.origin, { ...shared, connections: 64 })
  const others = (['whole', 'chunk'] as const).map((split) => ({
    name: throughTrellis(split),
    client: batchClient(gateway.origin, { ...shared, connections: 64, root: mountOf(split) }),
  }))
  const ways: Way[] = [
    { name: trellis, run: (round) => through.batches(1, round) },
    ...others.map(({ name, client }): Way => ({ name, run: (round) => client.batches(1, round) })),
    { name: 'best by hand: two batches at once', run: (round) => direct.batches(2, round) },
    { name: own, run: (round) => direct.batches(1, round) },
    { name: '25 requests to WordPress on 8 connections', run: direct.singles },
  ]
  for (let at = 0; at < warmUp; at += 1)
    for (const client of [through, ...others.map((other) => other.client)]) await client.batches(1, -1 - at)
  await direct.batches(1, -1)
  console.log(
    `\n${site.name}, 25 updates (${update}), ${rounds} rounds, ${isApart ? 'each on its own processors, ' : ''}${load()}`,
  )
  const times = await interleaved(ways, rounds, site.forgetRevisions)
  console.log(comparison(times, trellis))
  for (const { name } of others) {
    console.log(comparison(new Map([name, own].map((one) => [one, times.get(one) ?? []])), name))
  }
  console.log(`  how they were sent: ${await splits(gateway.adminOrigin)}; ${load()}`)
  let number = 1_000_000
  if (measuresHits) {
    console.log(await hitsBesideBatches(`${gateway.origin}${hitPath}`, () => through.hurriedBatch(number++)))
  }
  await Promise.all([direct, through, ...others.map(({ client }) => client)].map((client) => client.close()))
  await gateway.stop()
}

/** Most requests that the gateway may have at the scripted upstreams at once. */
const bound = 16

async function againstSlow(title: string, pace: Pace, split: 'auto' | 'chunk'): Promise<void> {
  const upstream = await startSlowUpstream(pace)
  const gateway = await batchGateway(upstream.origin, {
    upstream: { maxConcurrent: bound },
    batch: { split },
  })
  const ids = Array.from({ length: size }, (_, at) => at + 4)
  const shared = { authorization: basic({ username: 'a', password: 'b' }), ids, update: 'title' } as const
  const one = batchClient(upstream.origin, { ...shared, connections: 1 })
  const eight = batchClient(upstream.origin, { ...shared, connections: 8 })
  const through = batchClient(gateway.origin, { ...shared, connections: 64 })
  for (let at = 0; at < warmUp; at += 1) await through.batches(1, -1 - at)
  const trellis = throughTrellis(split)
  const ways: Way[] = [
    { name: trellis, run: (round) => through.batches(1, round) },
    { name: '25 requests one after the other', run: one.singles },
    { name: '25 requests on 8 connections', run: eight.singles },
  ]
  if (pace.batchRoute) {
    const hands = Math.min(pace.workers, 8)
    ways.push({ name: `by hand: ${hands} batches at once`, run: (round) => eight.batches(hands, round) })
    ways.push({ name: "the upstream's own batch", run: (round) => eight.batches(1, round) })
  }
  const slowRounds = Math.min(rounds, 20)
  console.log(`\n${title}, 25 updates, ${slowRounds} rounds, ${load()}`)
  console.log(comparison(await interleaved(ways, slowRounds, keepsRevisions), trellis))
  console.log(`  how they were sent: ${await splits(gateway.adminOrigin)}`)
  // From here on only what the gateway sends.
  upstream.forget()
  let number = 1_000_000
  console.log(await hitsBesideBatches(`${gateway.origin}${hitPath}`, () => through.hurriedBatch(number++)))
  console.log(`  most upstream requests at once: ${upstream.maxAtOnce()} (bound ${bound}); ${load()}`)
  await Promise.all([one, eight, through].map((client) => client.close()))
  await gateway.stop()
  await upstream.close()
}

const fifty = { workers: 16, startUpMs: 0, itemMs: 50 }
/** What a WordPress on two cores was once seen to take; and with more cores. */
const usual = { startUpMs: 15, itemMs: 5, batchRoute: true }

/** Programs that always want a processor, one for each in turn. */
async function startLoad(programs: number): Promise<readonly RunningProcess[]> {
  const started = Array.from({ length: programs }, () => startProcess(process.execPath, ['-e', 'for (;;);']))
  for (const [at, { pid }] of started.entries()) await pin(pid, String(at % availableParallelism()))
  return started
}

/** Ratios of one run; the times are this machine's. */
export async function benchBatches(): Promise<void> {
  const busy = await startLoad(Number(process.env['BENCH_LOAD'] ?? 0))
  try {
    await benchAll()
  } finally {
    for (const program of busy) await program.stop(0)
  }
}

async function benchAll(): Promise<void> {
  const updates = process.env['BENCH_UPDATES']
  const chosen = chosenUpdates(updates, ['switch', 'category', 'title'])
  for (const start of chosenSites(process.env['BENCH_SITE'])) {
    const site = await start()
    for (const [at, update] of chosen.entries())
      await againstSite(site, update, updates === undefined && at === chosen.length - 1)
    await site.stop()
  }
  if (updates !== undefined) return
  await againstSlow('50 ms each, 16 workers, no batch route', { ...fifty, batchRoute: false }, 'auto')
  await againstSlow('50 ms each, 16 workers, with a batch route', { ...fifty, batchRoute: true }, 'auto')
  for (const workers of [2, 4]) {
    for (const split of ['auto', 'chunk'] as const) {
      const title = `15 ms a request and 5 ms an item, ${workers} workers`
      await againstSlow(title, { ...usual, workers }, split)
    }
  }
}
