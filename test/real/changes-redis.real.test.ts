import { afterAll, beforeAll, expect, test } from 'vitest'
import { times } from '../support/breadth.ts'
import { checkChanges, checkedPath, checkedRules } from '../support/changes-checker.ts'
import { type Companion, startCompanion } from '../support/companion.ts'
import { siteService } from '../support/gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '../support/gateway-process.ts'
import { describeWith } from '../support/requirements.ts'
import { type RedisServer, startRedisServer } from './shared/redis-server.ts'

const forMs = Number(process.env['TRELLIS_SECONDS'] ?? times(2, 30)) * 1000
const pollMs = 400

describeWith('redis', 'two instances with a change feed on one Redis', () => {
  const opened: { close(): Promise<unknown> }[] = []
  afterAll(async () => {
    for (const one of opened.splice(0).reverse()) await one.close()
  })

  const startInstance = async (companion: Companion, redis: RedisServer): Promise<GatewayProcess> => {
    const gateway = await startGatewayProcess({
      cache: {
        shared: { url: `redis://127.0.0.1:${redis.port}`, lease: '500ms', key: 'k'.repeat(32) },
      },
      services: {
        blog: siteService(companion.origin.origin, {
          cache: { rules: checkedRules(pollMs) },
          changes: { token: companion.token, poll: `${pollMs}ms` },
        }),
      },
    })
    opened.push({ close: gateway.stop })
    return gateway
  }

  const start = async () => {
    const companion = await startCompanion()
    opened.push(companion)
    const redis = await startRedisServer()
    opened.push({ close: redis.stop })
    const gateways = [await startInstance(companion, redis), await startInstance(companion, redis)]
    return { companion, redis, gateways }
  }

  const metric = async ({ adminOrigin }: GatewayProcess, ...texts: readonly string[]): Promise<number> => {
    const lines = (await (await fetch(`${adminOrigin}/metrics`)).text()).split('\n')
    const line = lines.find((one) => !one.startsWith('#') && texts.every((text) => one.includes(text)))
    return Number(line?.split(' ')[1] ?? 0)
  }
  const heard = (gateway: GatewayProcess) =>
    expect.poll(() => metric(gateway, 'changes_state', '"heard"')).toBe(1)
  const read = async ({ origin }: GatewayProcess) => {
    const response = await fetch(`${origin}${checkedPath}/posts/1`)
    const body = (await response.json()) as { title: { rendered: string } }
    return { version: body.title.rendered, status: response.headers.get('cache-status') ?? '' }
  }

  let shared: Awaited<ReturnType<typeof start>>
  beforeAll(async () => {
    shared = await start()
  })

  test('a push to one of them drops the entries of both before it is acknowledged', async () => {
    const { companion, gateways } = shared
    for (const gateway of gateways) await heard(gateway)
    for (const gateway of gateways) await read(gateway)
    const [first] = gateways
    const response = await companion.push(first?.adminOrigin ?? '', companion.write(1))
    expect(response.status).toBe(200)
    await response.text()
    for (const gateway of gateways) expect((await read(gateway)).version).toBe(`v${companion.version(1)}`)
  })

  test('random changes, reported by push or found by a poll: no older data', async () => {
    const { companion, gateways } = await start()
    const run = await checkChanges({ companion, gateways, pollMs, forMs })
    expect(run.stale).toEqual([])
  }, 240_000)

  test('an instance that starts later leaves the entries of the others alone', async () => {
    const { companion, redis, gateways } = shared
    for (const gateway of gateways) await heard(gateway)
    const [first] = gateways
    if (first === undefined) throw new Error('no instance')
    const outcome = async () => {
      // What is stored before the first lease is dropped with it.
      await expect.poll(async () => (await read(first)).status, { timeout: 60_000 }).toContain('; hit')
      const later = await startInstance(companion, redis)
      await heard(later)
      // While the new member proves that it receives invalidations, the others may bypass their memory for a moment.
      const isDropped = (await read(first)).status.includes('uri-miss')
      return { isDropped, drops: await metric(later, 'changes_service_drops_total') }
    }
    // An instance that a busy machine has held up for longer than its lease drops its entries too: another one starts then.
    await expect.poll(outcome, { timeout: 170_000 }).toEqual({ isDropped: false, drops: 0 })
  })

  test('a push is refused while the cluster cannot be reached, and found by a poll later', async () => {
    const { companion, redis, gateways } = shared
    const [first] = gateways
    if (first === undefined) throw new Error('no instance')
    await heard(first)
    redis.signal('SIGSTOP')
    const row = companion.write(1)
    const response = await companion.push(first.adminOrigin, row)
    expect([response.status, await response.json()]).toMatchObject([503, { code: 'not-spread' }])
    redis.signal('SIGCONT')
    await expect.poll(async () => (await read(first)).version).toBe(`v${companion.version(1)}`)
  })
})
