import { type GatewayProcess, startGatewayProcess } from '../test/support/gateway-process.ts'
import { batchClient, mount } from './batch-client.ts'
import { startSlowUpstream } from './batch-upstream.ts'

const warmMount = '/warm/wp-json'

type Settings = Readonly<Record<'upstream' | 'batch', Record<string, unknown>>>

const asItComes: Settings = { upstream: {}, batch: {} }

const site = (at: string, origin: string, { upstream, batch }: Settings) => ({
  contract: 'site',
  mount: at,
  names: 'same',
  discovery: { source: 'static', identity: { name: 'Bench' } },
  upstream: { targets: [origin], basePath: at, ...upstream },
  batch,
  cache: { rules: [{ match: 'GET /wp/v2/**', ttl: '1h' }] },
})

/** Until the compiler has seen the way of an item often enough: the first batches after a start cost several times as much. */
const warmUp = Number(process.env['BENCH_WARM'] ?? 400)

/** A gateway in front of a WordPress, as it comes but for an hour of caching, and as it is when it has run for some minutes. */
export async function batchGateway(
  origin: string,
  settings: Partial<Settings> = {},
): Promise<GatewayProcess> {
  const other = await startSlowUpstream({ workers: 16, startUpMs: 0, itemMs: 0, batchRoute: true })
  const gateway = await startGatewayProcess({
    log: { level: 'error' },
    // Another service, so that what `auto` learns of the measured one it learns before everybody's eyes.
    services: {
      site: site(mount, origin, { ...asItComes, ...settings }),
      warm: site(warmMount, other.origin, asItComes),
    },
  })
  const posts = Array.from({ length: 25 }, (_, at) => at + 4)
  const shared = {
    connections: 8,
    authorization: 'Basic YTpi',
    posts,
    update: 'title',
    root: warmMount,
  } as const
  const client = batchClient(gateway.origin, shared)
  for (let at = 0; at < warmUp; at += 1) await client.batches(1, at)
  await client.close()
  await other.close()
  return gateway
}
