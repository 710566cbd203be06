import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { connect } from '../../src/cluster/redis/connections.ts'
import { createTier } from '../../src/cluster/redis/tier.ts'
import { createSignatures } from '../../src/cluster/redis/values.ts'
import { describeWith } from '../support/requirements.ts'
import { type RedisServer, startRedisServer } from './shared/redis-server.ts'

describeWith('redis', 'an entry that is refused', () => {
  let redis: RedisServer
  beforeAll(async () => {
    redis = await startRedisServer()
  })
  afterAll(() => redis.stop())

  /** A tier, and what it has stored under the one name in Redis. */
  const stored = async () => {
    await redis.command('FLUSHALL')
    await redis.command('SCRIPT', 'FLUSH')
    await redis.command('CONFIG', 'RESETSTAT')
    const connection = connect(
      {
        url: `redis://127.0.0.1:${redis.port}`,
        tls: { ca: '', cert: '', key: '', serverName: '' },
        troubled: () => undefined,
        maxReplyBytes: 1024 * 1024,
        cluster: false,
        timeoutMs: 5_000,
      },
      () => undefined,
    )
    onTestFinished(() => connection.disconnect())
    await expect.poll(() => connection.status).toBe('ready')
    const tier = createTier({
      connection,
      prefix: 'test',
      invalidated: { touchedSince: () => false },
      targetTag: (key) => key,
      signatures: createSignatures([], 'entry'),
      maxBytes: 1024 * 1024,
      position: () => ({ epoch: 'e', applied: 3 }),
      mayTrust: () => true,
      clock: systemClock,
      report: () => undefined,
      troubled: () => undefined,
    })
    const record = {
      ...{
        key: 'key',
        contentId: '',
        tags: ['key'],
        varyKey: '',
        varyNames: [],
        ageMs: 0,
        lifetimeMs: 600_000,
      },
      content: Buffer.from('content'),
      facts: { status: 200, headers: [] },
    }
    tier.store(record as never, { epoch: 'e', applied: 3 })
    await expect.poll(() => connection.keys('*')).toHaveLength(1)
    const [name = ''] = await connection.keys('*')
    const load = (whileTaken: () => void) =>
      tier.load({
        key: 'key',
        contentId: '',
        secondary: () => '',
        take: () => {
          whileTaken()
          return 'malformed' as const
        },
      })
    return { connection, load, name }
  }

  test('is deleted', async () => {
    const { connection, load, name } = await stored()
    await load(() => undefined)
    await expect.poll(() => connection.exists(name)).toBe(0)
  })

  test('is not deleted if another instance has stored a new entry meanwhile', async () => {
    const { connection, load, name } = await stored()
    // One connection keeps the order: the new entry is there before the old one is deleted.
    await load(() => void connection.set(name, 'new'))
    // The script counts when it has run, whatever it has decided.
    await expect.poll(() => connection.info('commandstats')).toMatch(/cmdstat_eval:/)
    expect(await connection.get(name)).toBe('new')
  })

  test('of another type is deleted', async () => {
    const { connection, load, name } = await stored()
    await redis.command('DEL', name)
    await redis.command('LPUSH', name, 'x')
    await load(() => undefined)
    await expect.poll(() => connection.exists(name)).toBe(0)
  })
})
