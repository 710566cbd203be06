import { afterEach, beforeEach, expect, test } from 'vitest'
import type { LedgerPush } from '../../src/cluster/ledger.ts'
import { createRedisLedger } from '../../src/cluster/redis/redis-ledger.ts'
import { createSignatures } from '../../src/cluster/redis/values.ts'
import type { TestGateway } from '../support/gateway.ts'
import { pause } from '../support/origin.ts'
import { describeWith } from '../support/requirements.ts'
import { type RedisServer, startRedisServer } from './shared/redis-server.ts'
import { type SharingGateways, sharingGateways } from './shared/sharing-gateways.ts'
import { openEntry, packEntry, type RedisWriter, redisWriter } from './shared/stored-entries.ts'

const key = 'k'.repeat(32)
const other = 'o'.repeat(32)
const steady = { lease: '3s', forgetAfter: '9s' }

describeWith('redis', 'a Redis whose content is signed', () => {
  let redis: RedisServer
  let writer: RedisWriter
  let gateways: SharingGateways

  const start = async (keys: string | readonly string[]): Promise<TestGateway> => {
    const gateway = await gateways.start({ url: `redis://127.0.0.1:${redis.port}`, key: keys, ...steady })
    // A new ledger gives no lease before forgetAfter is over.
    await writer.redis.hset('{trellis}:ledger', 'born', '1')
    await gateways.trusts(gateway, true)
    return gateway
  }
  const refused = (gateway: TestGateway): Promise<number> =>
    gateway.metric('trellis_shared_refused_total{', '"signature"')
  const stored = async (count = 1): Promise<readonly string[]> => {
    await expect.poll(async () => (await writer.keys()).length).toBe(count)
    return writer.keys()
  }
  const only = async (): Promise<string> => (await stored())[0] ?? ''

  beforeEach(async () => {
    redis = await startRedisServer()
    writer = redisWriter(redis.port)
    gateways = await sharingGateways()
  })
  afterEach(async () => {
    await gateways.stop()
    writer.close()
    await redis.stop()
  })

  test("instances with the same key share entries and receive each other's writes", async () => {
    const [a, b] = [await start(key), await start([key])]
    await gateways.get(a)
    await stored()
    expect((await gateways.get(b)).status).toContain('detail=shared')
    expect((await gateways.put(a)).status).toBe(200)
    expect(await gateways.get(b)).toMatchObject({ version: 1 })
    expect((await gateways.put(b)).status).toBe(200)
    expect(await gateways.get(a)).toMatchObject({ version: 2 })
    for (const gateway of [a, b]) {
      expect(await gateways.trouble(gateway, 'UNSIGNED')).toBe(0)
      expect(await gateway.metric('trellis_memory_dropped_total')).toBe(0)
    }
  })

  test('an acknowledged write does not wait for a lease', async () => {
    const [a] = [await start(key), await start(key)]
    const acknowledged = (): Promise<number> =>
      a.metric('trellis_write_spread_seconds_count{', '"acknowledged"')
    // The first one waits for those who knew the ledger before.
    await gateways.put(a)
    const before = await acknowledged()
    await gateways.put(a)
    expect(await acknowledged()).toBe(before + 1)
  })

  test('an entry without a signature is a miss, counted, logged and replaced', async () => {
    const [a, b] = [await start(key), await start(key)]
    await gateways.get(a)
    const at = await only()
    const bytes = await writer.read(at)
    await writer.write(at, packEntry(bytes.subarray(36), openEntry(bytes.subarray(36))))
    expect((await gateways.get(b)).status).toContain('fwd=')
    expect(await refused(b)).toBe(1)
    expect(await gateways.trouble(b, 'UNSIGNED')).toBe(1)
    await expect.poll(async () => (await writer.read(at)).subarray(0, 4).toString()).toBe('TS02')
  })

  test('an entry with another content, or under the key of another target, is a miss', async () => {
    const [a, b] = [await start(key), await start(key)]
    await gateways.get(a, 1)
    const at = await only()
    const one = await writer.read(at)
    await gateways.get(a, 2)
    const elsewhere = (await stored(2)).find((name) => name !== at) ?? ''
    await writer.write(elsewhere, one)
    expect((await gateways.get(b, 2)).status).toContain('fwd=')
    const changed = Buffer.from(one)
    changed.write('X', changed.length - 3)
    await writer.write(at, changed)
    expect((await gateways.get(b, 1)).status).toContain('fwd=')
    expect(await refused(b)).toBe(2)
  })

  test('an entry from before a write that is put back is a miss', async () => {
    const [a, b] = [await start(key), await start(key)]
    await gateways.get(a)
    const at = await only()
    const before = await writer.read(at)
    await gateways.put(a)
    await writer.redis.set(at, before, 'PX', 59_000)
    expect(await gateways.get(b)).toMatchObject({ version: 1 })
    expect(await b.metric('trellis_shared_lookups_total{', '"outdated"')).toBe(1)
    // Nor is it one to an instance that has just come.
    await writer.redis.set(at, before, 'PX', 59_000)
    const c = await start(key)
    expect(await gateways.get(c)).toMatchObject({ version: 1 })
  })

  test('instances with different keys, and one without a key, share nothing, say so, and keep the promise', async () => {
    const [a, b, c] = [await start(key), await start(other), await start('')]
    await gateways.get(a)
    await stored()
    expect((await gateways.get(b)).status).toContain('fwd=')
    await gateways.get(a, 2)
    expect((await gateways.get(c, 2)).status).toContain('fwd=')
    for (const gateway of [b, c]) expect(await refused(gateway)).toBe(1)
    expect((await gateways.put(a)).status).toBe(200)
    for (const gateway of [a, b, c]) expect(await gateways.get(gateway)).toMatchObject({ version: 1 })
    expect((await gateways.put(c)).status).toBe(200)
    for (const gateway of [c, a, b]) expect(await gateways.get(gateway)).toMatchObject({ version: 2 })
    for (const gateway of [a, b, c]) expect(await gateways.trouble(gateway, 'UNSIGNED')).toBeGreaterThan(0)
  })

  test('a key is changed while instances run: known everywhere, then first everywhere, then alone', async () => {
    const [a, b] = [await start([key, other]), await start([other, key])]
    for (const [id, from, to] of [
      [1, a, b],
      [2, b, a],
    ] as const) {
      await gateways.get(from, id)
      await stored(id)
      expect((await gateways.get(to, id)).status).toContain('detail=shared')
    }
    expect((await gateways.put(a)).status).toBe(200)
    expect(await gateways.get(b)).toMatchObject({ version: 1 })
    for (const gateway of [a, b]) expect(await gateways.trouble(gateway, 'UNSIGNED')).toBe(0)
  })

  test('a forged message with the number of the next note hides no write', async () => {
    const [a, b] = [await start(key), await start(key)]
    await gateways.put(a)
    for (let turn = 2; turn < 6; turn += 1) {
      await gateways.get(b)
      const [epoch, seq] = await writer.redis.hmget('{trellis}:ledger', 'epoch', 'seq')
      const next = [epoch, String(Number(seq) + 1), 'x', []]
      await writer.redis.publish('{trellis}:noted', JSON.stringify(next))
      await pause(30)
      expect((await gateways.put(a)).status).toBe(200)
      expect(await gateways.get(b)).toMatchObject({ version: turn })
    }
  })

  test('forged messages remove nothing', async () => {
    const b = await start(key)
    await gateways.get(b)
    const [epoch, seq] = await writer.redis.hmget('{trellis}:ledger', 'epoch', 'seq')
    for (const invalidations of [['a:'], ['b:'], ['t:x'], ['h9e9:x'], ['v:x:a:']]) {
      const next = JSON.stringify([epoch, String(Number(seq) + 1), 'x', invalidations])
      await writer.redis.publish('{trellis}:noted', next)
    }
    await pause(200)
    expect((await gateways.get(b)).status).toMatch(/^trellis; hit; ttl=\d+$/)
    expect(await b.metric('trellis_memory_trusted ')).toBe(1)
  })

  test('an unsigned note in the ledger means everything, once', async () => {
    const [a, b] = [await start(key), await start(key)]
    await gateways.get(b, 7)
    await writer.redis.zadd('{trellis}:log', 1, 't:something')
    await writer.redis.hset('{trellis}:ledger', 'seq', '1')
    await expect.poll(async () => (await gateways.get(b, 7)).status).toContain('fwd=')
    await expect.poll(async () => (await gateways.get(b, 7)).status).toContain('; hit')
    await pause(1_500)
    expect((await gateways.get(b, 7)).status).toContain('; hit')
    for (const gateway of [a, b]) expect(await gateways.trouble(gateway, 'UNSIGNED')).toBeGreaterThan(0)
  })

  test('only an acknowledgement signed with the key counts', async () => {
    const acknowledgements = createSignatures([key], 'acknowledgement')
    const ledger = createRedisLedger({
      url: `redis://127.0.0.1:${redis.port}`,
      cluster: false,
      tls: { ca: '', cert: '', key: '', serverName: '' },
      troubled: () => undefined,
      timeoutMs: 1_000,
      maxReplyBytes: 1024 * 1024,
      prefix: 'test',
      member: 'm',
      leaseMs: 200,
      forgetAfterMs: 1_000,
      changed: () => undefined,
      signatures: { invalidations: createSignatures([key], 'note'), acknowledgements },
    })
    const pushes: LedgerPush[] = []
    ledger.listen((push) => pushes.push(push))
    const channel = '{test}:applied:m'
    await expect.poll(async () => (await writer.redis.pubsub('NUMSUB', channel))[1]).toBe(1)
    const said = (seq: string): string => JSON.stringify(['e', seq, 'b', '1'])
    const stranger = createSignatures([other], 'acknowledgement')
    await writer.redis.publish(channel, said('1'))
    await writer.redis.publish(channel, stranger.signText('test', said('2')))
    await writer.redis.publish(channel, acknowledgements.signText('elsewhere', said('3')))
    await writer.redis.publish(channel, acknowledgements.signText('test', said('4')))
    await expect
      .poll(() => pushes)
      .toEqual([{ kind: 'applied', epoch: 'e', seq: 4, member: 'b', entries: 1 }])
    await ledger.leave(false)
  })
})
