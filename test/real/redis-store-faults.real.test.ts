import { afterEach, beforeEach, expect, test } from 'vitest'
import type { TestGateway } from '../support/gateway.ts'
import { pause } from '../support/origin.ts'
import { describeWith } from '../support/requirements.ts'
import { type CutLine, startCutLine } from './shared/cut-line.ts'
import { type RedisServer, startRedisServer } from './shared/redis-server.ts'
import { leaseMs, type SharingGateways, sharingGateways } from './shared/sharing-gateways.ts'

describeWith('redis', 'a Redis that does not do what it is asked', () => {
  let redis: RedisServer
  let line: CutLine
  let gateways: SharingGateways
  const others: RedisServer[] = []
  let a: TestGateway
  let b: TestGateway

  const bothTrust = async (): Promise<void> => {
    await Promise.all([gateways.trusts(a, true), gateways.trusts(b, true)])
  }
  /** In both memories, and in the store. */
  const warm = async (): Promise<void> => {
    await bothTrust()
    for (const gateway of [a, b]) {
      await expect.poll(async () => (await gateways.get(gateway)).status).toContain('; hit')
    }
  }
  const port = (server: RedisServer): string => String(server.port)
  const replica = async (): Promise<RedisServer> => {
    const server = await startRedisServer(
      '--replicaof',
      '127.0.0.1',
      port(redis),
      '--repl-diskless-sync-delay',
      '0',
    )
    others.push(server)
    while (!(await server.command('INFO', 'replication')).includes('master_link_status:up')) await pause(25)
    return server
  }
  const epochOf = (server: RedisServer): Promise<string> =>
    server.command('HGET', '{trellis}:ledger', 'epoch')

  beforeEach(async () => {
    redis = await startRedisServer()
    line = await startCutLine(redis.port)
    gateways = await sharingGateways()
    const shared = { url: `redis://127.0.0.1:${line.port}` }
    a = await gateways.start(shared)
    b = await gateways.start(shared)
  })
  afterEach(async () => {
    await gateways.stop()
    line.close()
    for (const server of [redis, ...others.splice(0)]) await server.stop()
  })

  test('full (noeviction): no response from memory, writes are seen at once, and it takes part again', async () => {
    await warm()
    await redis.command('CONFIG', 'SET', 'maxmemory', '1')
    await gateways.trusts(b, false)
    expect((await gateways.put(a)).status).toBe(200)
    expect(await gateways.get(b)).toMatchObject({ version: 1 })
    expect(await gateways.trouble(a, 'OOM')).toBeGreaterThan(0)
    await redis.command('CONFIG', 'SET', 'maxmemory', '0')
    await bothTrust()
    expect(await gateways.get(b)).toMatchObject({ version: 1 })
  })

  test('read-only: the same; each error is a reason to connect anew', async () => {
    await warm()
    const before = await a.metric('trellis_shared_connection_losses_total')
    // Of a master that is not there: it keeps what it has, and takes nothing.
    await redis.command('REPLICAOF', '127.0.0.1', '1')
    await gateways.trusts(b, false)
    expect((await gateways.put(a)).status).toBe(200)
    expect(await gateways.get(b)).toMatchObject({ version: 1 })
    expect(await gateways.trouble(a, 'READONLY')).toBeGreaterThan(0)
    expect(await a.metric('trellis_shared_connection_losses_total')).toBeGreaterThan(before)
    await redis.command('REPLICAOF', 'NO', 'ONE')
    await bothTrust()
    expect(await gateways.get(b)).toMatchObject({ version: 1 })
  })

  test('slow: reads go to the upstream, a write waits for three leases once, and what was late renews nothing', async () => {
    await warm()
    let version = 0
    const write = async (): Promise<number> => {
      const { status, tookMs } = await gateways.put(a)
      expect(status).toBe(200)
      version += 1
      expect(await gateways.get(b)).toMatchObject({ version })
      return tookMs
    }
    redis.signal('SIGSTOP')
    try {
      await gateways.trusts(b, false)
      // All of them are answered while it says nothing.
      await write()
      await expect.poll(write).toBeLessThan(3 * leaseMs)
      await expect.poll(() => gateways.trouble(a, 'timeout')).toBeGreaterThan(0)
    } finally {
      redis.signal('SIGCONT')
    }
    await bothTrust()
    expect(await gateways.get(b)).toMatchObject({ version })
  })

  test('restarted empty: another epoch, and nothing stored before counts', async () => {
    await warm()
    const before = await epochOf(redis)
    await redis.restartEmpty(100)
    expect((await gateways.put(a)).status).toBe(200)
    expect(await gateways.get(b)).toMatchObject({ version: 1 })
    await bothTrust()
    expect(await epochOf(redis)).not.toBe(before)
    expect(await b.metric('trellis_memory_dropped_total')).toBeGreaterThan(0)
    expect(await gateways.get(b)).toMatchObject({ version: 1 })
  })

  test('killed, and its replica is the master behind the same address: another epoch, though it has all the keys', async () => {
    const second = await replica()
    await warm()
    await expect.poll(() => second.command('KEYS', 'trellis:e:*')).not.toBe('*0\r\n')
    const before = await epochOf(second)
    expect(before).toBe(await epochOf(redis))
    await redis.stop()
    expect((await gateways.put(a)).status).toBe(200)
    expect(await gateways.get(b)).toMatchObject({ version: 1 })
    await second.command('REPLICAOF', 'NO', 'ONE')
    line.target = second.port
    await bothTrust()
    expect(await epochOf(second)).not.toBe(before)
    expect(await b.metric('trellis_memory_dropped_total')).toBeGreaterThan(0)
    expect(await gateways.get(b)).toMatchObject({ version: 1 })
    expect((await gateways.put(b)).status).toBe(200)
    expect(await gateways.get(a)).toMatchObject({ version: 2 })
  })

  test('made a replica while connections to it stay open: they are given up for the new master', async () => {
    const second = await replica()
    await warm()
    line.target = second.port
    await second.command('REPLICAOF', 'NO', 'ONE')
    const before = await epochOf(second)
    await redis.command('REPLICAOF', '127.0.0.1', port(second))
    expect((await gateways.put(a)).status).toBe(200)
    expect(await gateways.get(b)).toMatchObject({ version: 1 })
    await gateways.trusts(a, false)
    await bothTrust()
    expect(await epochOf(second)).not.toBe(before)
    expect(await gateways.trouble(a, 'READONLY')).toBeGreaterThan(0)
    expect(await gateways.get(b)).toMatchObject({ version: 1 })
  })

  test('two servers that both take writes, for less than it takes to forget: instances at the old one see a write at the new one', async () => {
    const second = await replica()
    const own = await startCutLine(redis.port)
    try {
      const c = await gateways.start({ url: `redis://127.0.0.1:${own.port}` })
      await gateways.trusts(c, true)
      await warm()
      await second.command('REPLICAOF', 'NO', 'ONE')
      own.state = 'broken'
      own.target = second.port
      own.state = 'whole'
      expect((await gateways.put(c)).status).toBe(200)
      const responded = performance.now()
      while (performance.now() - responded < leaseMs) {
        expect(await gateways.get(a)).toMatchObject({ version: 1 })
        await pause(5)
      }
    } finally {
      own.close()
    }
  })

  test('foreign messages on its channels are ignored, and end no process', async () => {
    await bothTrust()
    const [, epoch = ''] = /\r\n(.*)\r\n/.exec(await epochOf(redis)) ?? []
    const wrong = ['no json', '', 'null', '{}', `["${epoch}","1","x",null]`, `["${epoch}","1","x",[null]]`]
    const odd = [`["${epoch}","x","x",[]]`, `["${epoch}",{},"x",["a:"]]`, '['.repeat(10_000)]
    for (const message of [...wrong, ...odd]) {
      for (const channel of ['{trellis}:noted', '{trellis}:applied:all']) {
        expect(await redis.command('PUBLISH', channel, message)).toBe(':2\r\n')
      }
    }
    // It has dropped all it held, and perhaps its lease was over meanwhile.
    await expect.poll(async () => (await gateways.get(b)).status).toContain('; hit')
    expect((await gateways.put(a)).status).toBe(200)
    expect(await gateways.get(b)).toMatchObject({ version: 1 })
  })
})
