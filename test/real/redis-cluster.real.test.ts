import { afterEach, beforeEach, expect, test } from 'vitest'
import { certificatePath, pem } from '../support/certificates.ts'
import type { TestGateway } from '../support/gateway.ts'
import { pause } from '../support/origin.ts'
import { freePort } from '../support/ports.ts'
import { describeWith } from '../support/requirements.ts'
import { type RedisServer, startRedisServer } from './shared/redis-server.ts'
import { type SharingGateways, sharingGateways } from './shared/sharing-gateways.ts'
import { redisWriter } from './shared/stored-entries.ts'

const wanted = 3
const slots = 16_384
const firstSlot = (node: number): number => Math.floor((slots * node) / wanted)

/** A client without a user name gets no key: nodes that the first one lists need the user as well. */
const settings = [
  ...['--cluster-enabled', 'yes', '--cluster-node-timeout', '2000', '--cluster-announce-ip', '127.0.0.1'],
  ...['--user', 'default', 'on', 'nopass', 'resetkeys', 'resetchannels', '+@all'],
  ...['--user', 'gateway', 'on', '>secret', '~*', '&*', '+@all'],
  ...['--tls-cert-file', certificatePath('good.pem'), '--tls-key-file', certificatePath('good.key')],
  ...['--tls-ca-cert-file', certificatePath('ca.pem'), '--tls-auth-clients', 'no'],
]

/** A busy machine seldom blocks a process that long. */
const steady = { lease: '2s', forgetAfter: '6s' }

describeWith('redis', 'a Redis cluster of three nodes', () => {
  let nodes: readonly RedisServer[]
  let tlsPorts: readonly number[]
  let gateways: SharingGateways

  const numberOf = (response: string): number => Number(response.slice(1).trim())
  const holderOfLedger = async ([first]: readonly RedisServer[]): Promise<RedisServer> => {
    const slot = numberOf((await first?.command('CLUSTER', 'KEYSLOT', '{trellis}:ledger')) ?? '')
    return nodes.findLast((_, node) => firstSlot(node) <= slot) as RedisServer
  }

  /** A new ledger grants no leases before forgetAfter has passed. */
  const makeLedgerOld = async (): Promise<void> => {
    await (await holderOfLedger(nodes)).command('HSET', '{trellis}:ledger', 'born', '1')
  }

  /** Who does not trust its memory at the moment asks the upstream, and keeps nothing. */
  const expectStatus = (gateway: TestGateway, id: number, status: string): Promise<void> =>
    expect.poll(async () => (await gateways.get(gateway, id)).status).toContain(status)

  const addressOf = (node: RedisServer | undefined): readonly string[] =>
    node === undefined ? [] : [String(node.port), String(node.busPort)]

  const form = async (...more: readonly string[]): Promise<void> => {
    tlsPorts = [await freePort(), await freePort(), await freePort()]
    nodes = await Promise.all(
      tlsPorts.map((port) => startRedisServer(...settings, ...more, '--tls-port', String(port))),
    )
    for (const [at, node] of nodes.entries()) {
      await node.command('CLUSTER', 'ADDSLOTSRANGE', `${firstSlot(at)}`, `${firstSlot(at + 1) - 1}`)
      await node.command('CLUSTER', 'SET-CONFIG-EPOCH', String(at + 1))
      if (at > 0) await node.command('CLUSTER', 'MEET', '127.0.0.1', ...addressOf(nodes[0]))
    }
    for (const node of nodes) {
      while (!(await node.command('CLUSTER', 'INFO')).includes('cluster_state:ok')) await pause(50)
    }
  }

  beforeEach(async () => {
    gateways = await sharingGateways()
  })
  afterEach(async () => {
    await gateways.stop()
    for (const node of nodes) await node.stop()
  })

  test('entries lie on all nodes and the ledger on one; when that one is empty, nothing stored counts', async () => {
    await form()
    const shared = { url: `redis://gateway:secret@127.0.0.1:${nodes[0]?.port}`, cluster: true, ...steady }
    const [a, b]: TestGateway[] = [await gateways.start(shared), await gateways.start(shared)]
    if (a === undefined || b === undefined) return
    await makeLedgerOld()
    const bothTrust = () => Promise.all([gateways.trusts(a, true), gateways.trusts(b, true)])
    await bothTrust()
    const posts = Array.from({ length: 24 }, (_, index) => index + 1)
    for (const id of posts) await expectStatus(a, id, '; hit')
    await expect.poll(() => a.metric('trellis_shared_stored_total')).toBeGreaterThanOrEqual(posts.length)
    for (const node of nodes) expect(numberOf(await node.command('DBSIZE'))).toBeGreaterThan(0)
    for (const id of posts) await expectStatus(b, id, 'detail=shared')
    expect((await gateways.put(b)).status).toBe(200)
    expect(await gateways.get(a)).toMatchObject({ version: 1 })
    for (const gateway of [a, b]) {
      expect(await gateway.metric('trellis_shared_failures_total')).toBe(0)
      // Each node was given the name and the password.
      for (const trouble of ['NOPERM', 'NOAUTH']) expect(await gateways.trouble(gateway, trouble)).toBe(0)
    }
    const holder = await holderOfLedger(nodes)
    await holder.restartEmpty(100)
    expect((await gateways.put(a)).status).toBe(200)
    expect(await gateways.get(b)).toMatchObject({ version: 2 })
    await gateways.trusts(a, false)
    await bothTrust()
    expect(await b.metric('trellis_memory_dropped_total')).toBeGreaterThan(0)
    expect(await gateways.get(b)).toMatchObject({ version: 2 })
  })

  test('rediss:// is spoken with each node', async () => {
    // Else it names the ports for those who come in the clear.
    await form('--tls-cluster', 'yes')
    const shared = {
      url: `rediss://gateway:secret@127.0.0.1:${tlsPorts[0]}`,
      cluster: true,
      tls: { ca: pem('ca.pem') },
      key: 'k'.repeat(32),
      ...steady,
    }
    const [a, b] = [await gateways.start(shared), await gateways.start(shared)]
    await makeLedgerOld()
    await Promise.all([gateways.trusts(a, true), gateways.trusts(b, true)])
    const posts: number[] = []
    // Of another post each time: what was not shared at once is not shared later.
    const shareOneMore = async (): Promise<number> => {
      posts.push(posts.length + 1)
      await expectStatus(a, posts.length, '; hit')
      return a.metric('trellis_shared_stored_total')
    }
    await expect.poll(shareOneMore).toBeGreaterThanOrEqual(12)
    // A changed entry, on whichever node it is, is a miss; the others are not.
    const writers = nodes.map(({ port }) => redisWriter(port, { username: 'gateway', password: 'secret' }))
    const entries = (await Promise.all(writers.map((writer) => writer.keys()))).flat().length
    for (const writer of writers) {
      const [key] = await writer.keys()
      if (key === undefined) continue
      const bytes = await writer.read(key)
      bytes.writeUInt8(bytes.readUInt8(bytes.length - 1) ^ 1, bytes.length - 1)
      await writer.write(key, bytes)
    }
    for (const id of posts) await expectStatus(b, id, '')
    for (const writer of writers) writer.close()
    expect(await b.metric('trellis_shared_lookups_total{', '"found"')).toBe(entries - nodes.length)
    expect(await b.metric('trellis_shared_refused_total{', '"signature"')).toBe(nodes.length)
    expect((await gateways.put(b)).status).toBe(200)
    expect(await gateways.get(a)).toMatchObject({ version: 1 })
  })
})
