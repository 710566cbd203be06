import { type GatewayProcess, startGatewayProcess } from '../test/support/gateway-process.ts'
import { batchClient, mount } from './batch-client.ts'
import { startSlowUpstream } from './batch-upstream.ts'

const warmMount = '/warm/wp-json'

type Settings = Readonly<Record<'upstream' | 'batch' | 'discovery', Record<string, unknown>>>

/** A scripted upstream has no index to learn from. */
const nothingToLearn = { source: 'static', identity: { name: 'Bench' } }

const asItComes: Settings = { upstream: {}, batch: {}, discovery: nothingToLearn }

const site = (at: string, origin: string, { upstream, batch, discovery }: Settings, basePath = at) => ({
  contract: 'site',
  mount: at,
  names: 'same',
  discovery,
  upstream: { targets: [origin], basePath, ...upstream },
  batch,
  cache: { rules: [{ match: 'GET /wp/v2/**', ttl: '1h' }] },
})

/** Until the compiler has seen the way of an item often enough: the first batches after a start cost several times as much. */
const warmUp = Number(process.env['BENCH_WARM'] ?? 400)

/** Other settings of `batch.split`, each in a separate service in front of the same upstream. */
const splits = ['whole', 'chunk'] as const
export type OtherSplit = (typeof splits)[number]
export const mountOf = (split: OtherSplit): string => `/${split}/wp-json`

/** A gateway in front of a WordPress, as it comes but for an hour of caching, and as it is when it has run for some minutes. */
export async function batchGateway(
  origin: string,
  settings: Partial<Settings> = {},
): Promise<GatewayProcess> {
  const chosen = { ...asItComes, ...settings }
  const other = await startSlowUpstream({ workers: 16, startUpMs: 0, itemMs: 0, batchRoute: true })
  const gateway = await startGatewayProcess({
    log: { level: 'error' },
    // Another service, so that `auto` starts without measurements of the service under test.
    services: {
      site: site(mount, origin, chosen),
      ...Object.fromEntries(
        splits.map((split) => [split, site(mountOf(split), origin, { ...chosen, batch: { split } }, mount)]),
      ),
      warm: site(warmMount, other.origin, asItComes),
    },
  })
  const ids = Array.from({ length: 25 }, (_, at) => at + 4)
  const shared = {
    connections: 8,
    authorization: 'Basic YTpi',
    ids,
    update: 'title',
    root: warmMount,
  } as const
  const client = batchClient(gateway.origin, shared)
  for (let at = 0; at < warmUp; at += 1) await client.batches(1, at)
  await client.close()
  await other.close()
  return gateway
}

/** The same in front of a real WordPress, when it has learned the routes that the contract does not list: those of terms and users. */
export async function siteGateway(origin: string): Promise<GatewayProcess> {
  const gateway = await batchGateway(origin, { discovery: {} })
  for (const at of [mount, ...splits.map(mountOf)])
    await routesLearned(`${gateway.origin}${at}/wp/v2/tags?_fields=id`)
  return gateway
}

async function routesLearned(url: string): Promise<void> {
  for (let time = 0; ; time += 1) {
    const response = await fetch(url)
    await response.arrayBuffer()
    if (response.status === 200) return
    if (time === 100) throw new Error(`the routes of the site are not known: ${response.status}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
