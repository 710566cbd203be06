import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { connect, type RedisConnection } from '../../src/cluster/redis/connections.ts'
import { createRedisLedger } from '../../src/cluster/redis/redis-ledger.ts'
import { createCountedRequests, createIdempotencyKeys } from '../../src/cluster/redis/stores.ts'
import { createSignatures } from '../../src/cluster/redis/values.ts'
import { pause } from '../support/origin.ts'
import { testIdempotencyStore } from '../support/port-suites/idempotency-store.ts'
import { testLedger } from '../support/port-suites/ledger.ts'
import { testRateLimiter } from '../support/port-suites/rate-limiter.ts'
import { describeWith } from '../support/requirements.ts'
import { type RedisServer, startRedisServer } from './shared/redis-server.ts'

describeWith('redis', 'the stores of several instances on a real Redis', () => {
  let redis: RedisServer
  let connection: RedisConnection
  let prefix = 0
  const options = () => ({
    url: `redis://127.0.0.1:${redis.port}`,
    cluster: false,
    tls: { ca: '', cert: '', key: '', serverName: '' },
    troubled: () => undefined,
    timeoutMs: 2_000,
    maxReplyBytes: 16 * 1024 * 1024,
  })

  beforeAll(async () => {
    redis = await startRedisServer()
    connection = connect(options(), () => undefined)
    while (connection.status !== 'ready') await pause(10)
  })
  // Each test has its own keys.
  beforeEach(() => {
    prefix += 1
  })
  afterAll(async () => {
    connection.disconnect()
    await redis.stop()
  })

  describe('idempotency keys', () => {
    testIdempotencyStore((maxBytes) =>
      createIdempotencyKeys(connection, {
        prefix: `${prefix}`,
        ttlMs: 60_000,
        maxBytes,
        signatures: createSignatures(['a secret of the tests'], 'answer'),
      }),
    )
  })

  describe('rate limits', () => {
    testRateLimiter(() => createCountedRequests(connection, `${prefix}`))

    test('another window begins anew: a client is not refused for as long as the earlier one lasts', async () => {
      const counted = createCountedRequests(connection, `${prefix}`)
      for (let request = 0; request < 2; request += 1)
        await counted.take('reads', 'a', { windowMs: 3_600_000, intervalMs: 1_800_000 })
      const shorter = { windowMs: 1_000, intervalMs: 500 }
      expect(await counted.take('reads', 'a', shorter)).toMatchObject({ admitted: true })
    })
  })

  describe('the ledger', () => {
    const ledgers: ReturnType<typeof createRedisLedger>[] = []
    afterEach(async () => {
      for (const ledger of ledgers.splice(0)) await ledger.leave(false)
    })
    testLedger((member) => {
      const ledger = createRedisLedger({
        ...options(),
        prefix: `${prefix}`,
        member,
        leaseMs: 300,
        forgetAfterMs: 1_100,
        changed: () => undefined,
        signatures: {
          invalidations: createSignatures(['a secret of the tests'], 'note'),
          acknowledgements: createSignatures(['a secret of the tests'], 'acknowledgement'),
        },
      })
      ledgers.push(ledger)
      return ledger
    })
  })
})
