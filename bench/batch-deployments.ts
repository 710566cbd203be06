import { loadavg } from 'node:os'
import { type BatchClient, batchClient, updatable } from './batch-client.ts'
import { siteGateway } from './batch-gateway.ts'
import { type Site, siteStarts, startOf } from './batch-sites.ts'
import { chosenUpdates, type Update } from './batch-updates.ts'
import { processorSeconds } from './processor-time.ts'
import { median, quantile } from './statistics.ts'

// npm run bench batch-deployments                 all of bench/batch-sites.ts: what a request costs beside its items
// BENCH_SITE=stack,sqlite BENCH_ROUNDS=10 npm run bench batch-deployments      a short look at some
// BENCH_UPDATES=all npm run bench batch-deployments      all of bench/batch-updates.ts; or some, as tag,user
const rounds = Number(process.env['BENCH_ROUNDS'] ?? 20)
const chosen = process.env['BENCH_SITE']?.split(',') ?? Object.keys(siteStarts)
const size = 25
const connections = 8

/** Milliseconds of one way in one round: by the clock, and of processors. */
type Cost = { readonly wall: number; readonly site: number; readonly gateway: number }
type Costs = Record<'one' | 'own' | 'two' | 'three' | 'four' | 'singles' | 'through', Cost[]>

const ways: Record<keyof Costs, (clients: Clients, round: number) => Promise<void>> = {
  one: ({ first }, round) => first.batches(1, round),
  own: ({ direct }, round) => direct.batches(1, round),
  two: ({ direct }, round) => direct.batches(2, round),
  three: ({ direct }, round) => direct.batches(3, round),
  four: ({ direct }, round) => direct.batches(4, round),
  singles: ({ direct }, round) => direct.singles(round),
  through: ({ through }, round) => through.batches(1, round),
}

type Clients = Record<'first' | 'direct' | 'through', BatchClient>

const spent = (pids: readonly number[]): number =>
  pids.reduce((sum, pid) => sum + processorSeconds(pid), 0) * 1000

/** Each way once in every round, so that what disturbs the machine disturbs all. */
async function measured(site: Site, update: Update): Promise<Costs> {
  const gateway = await siteGateway(site.origin)
  const { authorization } = site
  const ids = await updatable(site.origin, { authorization, update, count: size })
  const shared = { authorization, ids, update, connections }
  const clients: Clients = {
    first: batchClient(site.origin, { ...shared, ids: ids.slice(0, 1) }),
    direct: batchClient(site.origin, shared),
    through: batchClient(gateway.origin, shared),
  }
  const costs: Costs = { one: [], own: [], two: [], three: [], four: [], singles: [], through: [] }
  const names = Object.keys(ways) as (keyof Costs)[]
  // What `auto` has to find out, it finds out before.
  for (let at = 0; at < 16; at += 1) await ways.through(clients, -1 - at)
  for (const name of names) await ways[name](clients, -20)
  for (let round = 0; round < rounds; round += 1) {
    await site.forgetRevisions()
    for (const [at, name] of names.entries()) {
      const [siteBefore, gatewayBefore] = [spent(site.pids), spent([gateway.program.pid])]
      const began = performance.now()
      await ways[name](clients, round * names.length + at)
      const wall = performance.now() - began
      costs[name].push({
        wall,
        site: spent(site.pids) - siteBefore,
        gateway: spent([gateway.program.pid]) - gatewayBefore,
      })
    }
  }
  await Promise.all(Object.values(clients).map((client) => client.close()))
  await gateway.stop()
  return costs
}

/** A part for the request and a part for each item, from a batch of one and a batch of 25. */
const parts = (one: number, whole: number): { readonly startUp: number; readonly item: number } => {
  const item = (whole - one) / (size - 1)
  return { startUp: one - item, item }
}

const mean = (costs: readonly Cost[], of: 'site' | 'gateway'): number =>
  costs.reduce((sum, cost) => sum + cost[of], 0) / costs.length

const wall = (costs: readonly Cost[]): number => median(costs.map((cost) => cost.wall))

/** Round by round, so that a slow moment is on both sides. */
const ratio = (costs: readonly Cost[], others: readonly Cost[]): string => {
  const all = costs.map((cost, round) => cost.wall / (others[round]?.wall ?? Number.NaN))
  return `${median(all).toFixed(2)} (${quantile(all, 0.25).toFixed(2)}-${quantile(all, 0.75).toFixed(2)})`
}

type Row = Readonly<Record<'whole' | 'documented', readonly string[]>>

const rowOf = (name: string, update: Update, costs: Costs): Row => {
  const processor = parts(mean(costs.one, 'site'), mean(costs.own, 'site'))
  const clock = parts(wall(costs.one), wall(costs.own))
  const hands = [costs.two, costs.three, costs.four]
  const best = hands.reduce((min, hand) => (wall(hand) < wall(min) ? hand : min), costs.two)
  const site = `${name}, ${update}`
  const split = `${processor.startUp.toFixed(1)} + ${processor.item.toFixed(1)}`
  const startUpInItems = (processor.startUp / processor.item).toFixed(1)
  const compared = [
    [best, costs.own],
    [best, costs.singles],
    [costs.through, costs.own],
    [costs.through, costs.singles],
  ] as const
  return {
    whole: [
      ...[site, split, `${clock.startUp.toFixed(0)} + ${clock.item.toFixed(1)}`, startUpInItems],
      ...[costs.own, ...hands, costs.singles, costs.through].map((way) => wall(way).toFixed(0)),
      ...compared.map(([one, other]) => ratio(one, other)),
      ...[ratio(costs.through, best), mean(costs.through, 'gateway').toFixed(1)],
    ],
    documented: [
      ...[site, split, startUpInItems],
      ...compared.map(([one, other]) => ratio(one, other).split(' ', 1)[0] ?? ''),
    ],
  }
}

const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`

const heading = [
  ...['deployment', 'ms of processor: start-up + item', 'ms by the clock', 'start-up in items'],
  ...['own', 'two', 'three', 'four', 'singles', 'Trellis'],
  ...['by hand / own', 'by hand / singles', 'Trellis / own', 'Trellis / singles', 'Trellis / by hand'],
  'ms of processor of Trellis',
]

/** Of the table in docs/batch.md. */
const documentedHeading = [
  ...['WordPress, and what is updated', 'start-up + item, ms of processor', 'start-up, in items'],
  ...['by hand / own batch', 'by hand / singles', 'Trellis / own batch', 'Trellis / singles'],
]

/** What a batch costs in front of differently run WordPresses, without the gateway and with it. */
export async function benchDeployments(): Promise<void> {
  console.log(`${line(heading)}\n|${' --- |'.repeat(heading.length)}`)
  const documented: (readonly string[])[] = []
  for (const name of chosen) {
    const site = await startOf(name)()
    for (const update of chosenUpdates(process.env['BENCH_UPDATES'], ['switch', 'title'])) {
      const row = rowOf(name, update, await measured(site, update))
      console.log(line(row.whole))
      documented.push(row.documented)
    }
    await site.stop()
  }
  const rule = `|${' --- |'.repeat(documentedHeading.length)}`
  console.log(['', line(documentedHeading), rule, ...documented.map(line), ''].join('\n'))
  console.log(`${rounds} rounds, load at the end ${loadavg()[0]?.toFixed(1)}`)
}
