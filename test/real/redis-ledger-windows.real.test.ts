import { afterEach, beforeEach, expect, test } from 'vitest'
import type { LedgerPosition } from '../../src/cache/shared-tier.ts'
import type { Ledger, Synced } from '../../src/cluster/ledger.ts'
import { createRedisLedger } from '../../src/cluster/redis/redis-ledger.ts'
import { createSignatures } from '../../src/cluster/redis/values.ts'
import { pause } from '../support/origin.ts'
import { describeWith } from '../support/requirements.ts'
import { startCutLine } from './shared/cut-line.ts'
import { type RedisServer, startRedisServer } from './shared/redis-server.ts'

const leaseMs = 300
const forgetAfterMs = 1_100
const nowhere: LedgerPosition = { epoch: '', applied: 0 }

describeWith('redis', 'when the ledger in Redis may take a member for gone', () => {
  let redis: RedisServer
  const ledgers: Ledger[] = []
  const replicas: RedisServer[] = []

  const join = (member: string, port = redis.port, itsLeaseMs = leaseMs): Ledger => {
    const ledger = createRedisLedger({
      url: `redis://127.0.0.1:${port}`,
      cluster: false,
      tls: { ca: '', cert: '', key: '', serverName: '' },
      troubled: () => undefined,
      timeoutMs: 1_000,
      maxReplyBytes: 1024 * 1024,
      prefix: 'test',
      member,
      leaseMs: itsLeaseMs,
      forgetAfterMs,
      changed: () => undefined,
      signatures: {
        invalidations: createSignatures([], 'note'),
        acknowledgements: createSignatures([], 'acknowledgement'),
      },
    })
    ledger.listen(() => undefined)
    ledgers.push(ledger)
    return ledger
  }
  /** Repeats `sync`, as a live member does, until the reply is the expected one. */
  const until = async (ledger: Ledger, wanted: (said: Synced) => boolean): Promise<Synced> => {
    for (let tries = 0; tries < 200; tries += 1) {
      const said = await ledger.sync(nowhere).catch(() => undefined)
      if (said !== undefined && wanted(said)) return said
      await pause(25)
    }
    throw new Error('was not told what is wanted')
  }
  const granted = ({ lease }: Synced): boolean => lease === 'granted'
  const both = (a: Ledger, b: Ledger): Promise<readonly Synced[]> =>
    Promise.all([a, b].map((one) => until(one, (said) => granted(said) && said.members.length === 1)))

  beforeEach(async () => {
    redis = await startRedisServer()
  })
  afterEach(async () => {
    for (const ledger of ledgers.splice(0)) await ledger.leave(false)
    for (const server of [redis, ...replicas.splice(0)]) await server.stop()
  })

  test('a member that comes back after it was forgotten beats nothing that was seen of it before', async () => {
    const [a, b] = [join('a'), join('b')]
    await both(a, b)
    const seen = await until(a, ({ members }) => (members[0]?.beat ?? 0) > 0)
    await until(a, ({ members }) => members.length === 0)
    const beats = new Set<number | undefined>()
    for (let turn = 0; turn < 5; turn += 1) {
      await until(b, granted)
      const { members } = await until(a, (said) => said.members.length === 1)
      beats.add(members[0]?.beat)
    }
    expect(beats).not.toContain(seen.members[0]?.beat)
    expect(Math.min(...[...beats].map(Number))).toBeGreaterThan(seen.members[0]?.beat ?? 0)
  })

  test('a store that was unreachable for long does not remove the member that returns last', async () => {
    const [a, b] = [join('a'), join('b')]
    await both(a, b)
    redis.signal('SIGSTOP')
    await pause(forgetAfterMs + leaseMs)
    redis.signal('SIGCONT')
    const back = performance.now()
    // It may still acknowledge writes that other members do not receive: no lease until it returns or is removed.
    const said = await until(a, granted)
    expect(performance.now() - back).toBeGreaterThan(forgetAfterMs - leaseMs)
    expect(said.members).toEqual([])
    expect(said.invalidations.map(({ text }) => text)).toContain('a:')
  })

  test('a new store that falls silent at once gives those who look for it their time again', async () => {
    const a = join('a')
    expect(await until(a, () => true)).toMatchObject({ lease: 'young-ledger' })
    redis.signal('SIGSTOP')
    await pause(forgetAfterMs + leaseMs)
    redis.signal('SIGCONT')
    const back = performance.now()
    await until(a, granted)
    expect(performance.now() - back).toBeGreaterThan(forgetAfterMs - leaseMs)
  })

  test('what a process began that has never read the ledger is noted when it falls silent', async () => {
    const [a, b] = [join('a'), join('b')]
    await until(a, granted)
    const begun = (): Promise<boolean> =>
      b.begin('b#1', ['t:x']).then(
        () => true,
        () => false,
      )
    // Its connection may not be open yet.
    await expect.poll(begun).toBe(true)
    const { invalidations } = await until(a, ({ invalidations: noted }) => noted.length > 0)
    expect(invalidations.map(({ text }) => text)).toContain('t:x')
  })

  test.each(['ledger', 'log', 'members', 'pending'])(
    'a ledger that has lost its %s is another one',
    async (key) => {
      const a = join('a')
      const { epoch } = await until(a, granted)
      await redis.command('DEL', `{test}:${key}`)
      expect((await a.sync(nowhere)).epoch).not.toBe(epoch)
    },
  )

  test('no member waits for one that has left, and its unsettled writes have an unknown outcome', async () => {
    const [a, b] = [join('a'), join('b')]
    await both(a, b)
    await b.begin('b#1', ['h500:x'])
    await b.begin('b#2', ['h500:y'])
    await b.append([], ['b#2'])
    await b.leave(true)
    const said = await until(a, (now) => granted(now) && now.members.length === 0)
    expect(said.invalidations).toMatchObject([{ text: 'h500:x' }])
  })

  const follow = async (server: RedisServer, master: RedisServer): Promise<void> => {
    await server.command('REPLICAOF', '127.0.0.1', String(master.port))
    while (!(await server.command('INFO', 'replication')).includes('master_link_status:up')) await pause(25)
  }

  test('a server that was master before, and has lost by replication what it had answered, is another ledger', async () => {
    const second = await startRedisServer('--repl-diskless-sync-delay', '0')
    replicas.push(second)
    await redis.command('CONFIG', 'SET', 'repl-diskless-sync-delay', '0')
    await follow(second, redis)
    const [a, b] = [join('a'), join('b')]
    await both(a, b)
    const first = await a.append(['t:one'], [])
    await until(b, ({ seq }) => seq === first.seq)
    // No member finds it while it is the master, and it does not have later writes.
    await second.command('REPLICAOF', 'NO', 'ONE')
    await a.append(['t:two'], [])
    await follow(redis, second)
    await redis.command('REPLICAOF', 'NO', 'ONE')
    // The one that was behind is the first to be there.
    const said = await until(b, () => true)
    expect(said).toMatchObject({ lease: 'young-ledger' })
    expect(said.epoch).not.toBe(first.epoch)
  })

  test('the first replica that is attached makes the ledger another one, and a second one does not', async () => {
    await redis.command('CONFIG', 'SET', 'repl-diskless-sync-delay', '0')
    for (const _ of [1, 2]) replicas.push(await startRedisServer('--repl-diskless-sync-delay', '0'))
    const [a, b] = [join('a'), join('b')]
    const [before] = await both(a, b)
    const epochs: (string | undefined)[] = [before?.epoch]
    for (const replica of replicas) {
      await follow(replica, redis)
      epochs.push((await until(a, () => true)).epoch)
    }
    const [alone, one, two] = epochs
    expect(one).not.toBe(alone)
    expect(two).toBe(one)
  })

  test('acknowledgements of another server do not count, whatever its clock shows', async () => {
    const other = await startRedisServer()
    replicas.push(other)
    const line = await startCutLine(redis.port)
    try {
      // Long enough for the other one to be found meanwhile.
      const a = join('a', line.port, 60_000)
      const first = await until(a, granted)
      await until(join('b', other.port), granted)
      line.target = other.port
      line.state = 'broken'
      line.state = 'whole'
      const said = await until(a, ({ epoch }) => epoch !== first.epoch)
      expect(said.lease).toBe('unproven')
      expect(await until(a, () => true)).toMatchObject({ epoch: said.epoch, lease: 'granted' })
    } finally {
      line.close()
    }
  })

  test('a position that the ledger has not come to yet makes it another one', async () => {
    const [a, b] = [join('a'), join('b')]
    await both(a, b)
    await a.append(['t:one'], [])
    const before = await a.append(['t:two'], [])
    // As an attacker does who restores an old value.
    await redis.command('HSET', '{test}:ledger', 'seq', '1')
    const ahead = { epoch: before.epoch, applied: before.seq }
    expect((await a.sync(ahead)).epoch).not.toBe(before.epoch)
    expect((await b.sync(ahead)).epoch).not.toBe(before.epoch)
  })
})
