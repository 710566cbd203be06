import { afterAll, beforeAll, expect, test } from 'vitest'
import type { TestGateway } from '../support/gateway.ts'
import { pause } from '../support/origin.ts'
import { describeWith } from '../support/requirements.ts'
import { type RedisCluster, startRedisCluster } from './shared/redis-cluster.ts'
import type { RedisServer } from './shared/redis-server.ts'
import { leaseMs, type SharingGateways, sharingGateways } from './shared/sharing-gateways.ts'

/** A node that is silent for this time counts as dead; a busy machine seldom blocks one that long. */
const nodeTimeoutMs = 2_000
/** On a machine that is busy with other things, beside what this process stands still. */
const graceMs = 1_500
/** No write waits longer for a ledger that is not there. */
const maxMs = 3 * leaseMs + graceMs

/** How long this process has stood still since then: what a timer of ten milliseconds was late, all in all. */
const standstill = () => {
  const everyMs = 10
  let lateMs = 0
  let last = performance.now()
  const timer = setInterval(() => {
    const now = performance.now()
    lateMs += Math.max(0, now - last - everyMs)
    last = now
  }, everyMs)
  return {
    end: (): number => {
      clearInterval(timer)
      return lateMs
    },
  }
}

describeWith('redis', 'a Redis cluster whose nodes change places', () => {
  let cluster: RedisCluster
  let gateways: SharingGateways
  let a: TestGateway
  let b: TestGateway
  let version = 0

  const warm = async (): Promise<void> => {
    await Promise.all([gateways.trusts(a, true), gateways.trusts(b, true)])
    for (const gateway of [a, b]) {
      await expect.poll(async () => (await gateways.get(gateway)).status).toContain('; hit')
    }
  }
  /** Returns how long it took, less what this process stood still; both show it then. */
  const write = async (): Promise<number> => {
    const still = standstill()
    const { status, tookMs } = await gateways.put(version % 2 === 0 ? a : b)
    const lateMs = still.end()
    version += 1
    expect(status).toBe(200)
    for (const gateway of [a, b]) expect((await gateways.get(gateway)).version).toBe(version)
    return tookMs - lateMs
  }
  /** Writes here and there for as long as something goes on; returns the longest that one took. */
  const writesDuring = async (what: Promise<unknown>): Promise<number> => {
    let isOver = false
    const over = what.finally(() => {
      isOver = true
    })
    let slowestMs = 0
    while (!isOver) {
      slowestMs = Math.max(slowestMs, await write())
      await pause(20)
    }
    await over
    return slowestMs
  }
  const drops = async (): Promise<readonly number[]> =>
    Promise.all([a, b].map(({ metric }) => metric('trellis_memory_dropped_total')))
  /** Everything that was stored before counts for nothing, in both. */
  const expectAnotherLedger = async (before: readonly number[]): Promise<void> => {
    await warm()
    for (const [at, now] of (await drops()).entries()) expect(now).toBeGreaterThan(before[at] ?? 0)
  }
  const replica = async (): Promise<RedisServer> => {
    for (const node of cluster.nodes) {
      if ((await node.command('INFO', 'replication')).includes('role:slave')) return node
    }
    throw new Error('there is no replica')
  }
  /** One that does not have the ledger. */
  const anotherMaster = async (): Promise<RedisServer> => {
    const others = [await cluster.holder(), await replica()]
    return cluster.nodes.find((node) => !others.includes(node)) as RedisServer
  }
  const listenersAt = async (node: RedisServer): Promise<number> =>
    Number(/:(\d+)\r\n$/.exec(await node.command('PUBSUB', 'NUMSUB', '{trellis}:noted'))?.[1])
  const listeners = async (nodes: readonly RedisServer[]): Promise<number> =>
    (await Promise.all(nodes.map(listenersAt))).reduce((sum, count) => sum + count, 0)
  /** Listeners at other nodes are disconnected until one connects to this node. */
  const untilListenedAt = async (wanted: RedisServer): Promise<void> => {
    for (let tries = 0; tries < 60 && (await listenersAt(wanted)) === 0; tries += 1) {
      for (const node of cluster.nodes) {
        if (node !== wanted) await node.command('CLIENT', 'KILL', 'TYPE', 'pubsub')
      }
      await pause(150)
    }
    expect(await listenersAt(wanted)).toBeGreaterThan(0)
    await expect.poll(() => listeners(cluster.nodes)).toBe(2)
  }

  beforeAll(async () => {
    gateways = await sharingGateways()
    cluster = await startRedisCluster({
      masters: 3,
      replicas: 1,
      settings: () => [
        ...['--cluster-node-timeout', String(nodeTimeoutMs), '--cluster-require-full-coverage', 'no'],
        ...['--cluster-replica-validity-factor', '0', '--repl-diskless-sync-delay', '0'],
      ],
    })
    const shared = { url: `redis://127.0.0.1:${cluster.nodes[0]?.port}`, cluster: true, key: 'k'.repeat(32) }
    a = await gateways.start(shared)
    b = await gateways.start(shared)
  })
  afterAll(async () => {
    await gateways.stop()
    await cluster.stop()
  })

  test('the slot of the ledger is moved to another node, key by key, and back', async () => {
    const from = await cluster.holder()
    const to = await anotherMaster()
    for (const next of [to, from]) {
      await warm()
      const before = await drops()
      expect(await writesDuring(cluster.moveLedger(next, leaseMs / 4))).toBeLessThan(maxMs)
      expect(await cluster.holder()).toBe(next)
      await expectAnotherLedger(before)
    }
  })

  test('the replica of the node that has the ledger replaces it, in order', async () => {
    await warm()
    const [from, to, before] = [await cluster.holder(), await replica(), await drops()]
    await to.command('CLUSTER', 'FAILOVER')
    expect(await writesDuring(cluster.untilRole(to, 'master'))).toBeLessThan(maxMs)
    await cluster.untilRole(from, 'slave')
    expect(await cluster.holder()).toBe(to)
    await expectAnotherLedger(before)
  })

  test('the node that has the ledger is killed, and its replica lacks what was answered last', async () => {
    await warm()
    const [from, to, before] = [await cluster.holder(), await replica(), await drops()]
    to.signal('SIGSTOP')
    await write()
    const back = from.restartEmpty(() => cluster.untilRole(to, 'master'))
    to.signal('SIGCONT')
    expect(await writesDuring(back)).toBeLessThan(maxMs)
    await cluster.untilRole(from, 'slave')
    expect(await cluster.holder()).toBe(to)
    await expectAnotherLedger(before)
  })

  test('a node at which an instance listens falls silent: writes take a lease at most, and it listens elsewhere', async () => {
    const holder = await cluster.holder()
    const node = await anotherMaster()
    await untilListenedAt(node)
    await warm()
    node.signal('SIGSTOP')
    try {
      const others = cluster.nodes.filter((one) => one !== node)
      const again = expect.poll(() => listeners(others)).toBe(2)
      expect(await writesDuring(again)).toBeLessThan(leaseMs + graceMs)
    } finally {
      node.signal('SIGCONT')
    }
    expect(await cluster.holder()).toBe(holder)
  })

  test('a node at which an instance listens leaves the cluster: the same', async () => {
    const node = await replica()
    // Makes the instances read the list of nodes.
    await cluster.moveLedger(await anotherMaster(), 0)
    await untilListenedAt(node)
    await warm()
    const others = cluster.nodes.filter((one) => one !== node)
    const id = (await node.command('CLUSTER', 'MYID')).split('\r\n')[1] ?? ''
    await node.command('CLUSTER', 'RESET')
    for (const one of others) await one.command('CLUSTER', 'FORGET', id)
    const again = expect.poll(() => listenersAt(node)).toBe(0)
    expect(await writesDuring(again)).toBeLessThan(leaseMs + graceMs)
  })
})
