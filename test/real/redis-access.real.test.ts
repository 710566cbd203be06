import { readFileSync } from 'node:fs'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { storeIssues } from '../../src/cluster/store-issues.ts'
import { checkConfig } from '../../src/gateway/load-config.ts'
import { certificatePath, keyPair, pem } from '../support/certificates.ts'
import { pause } from '../support/origin.ts'
import { freePort } from '../support/ports.ts'
import { describeWith } from '../support/requirements.ts'
import { startCutLine } from './shared/cut-line.ts'
import { startRedisCluster } from './shared/redis-cluster.ts'
import { type RedisServer, startRedisServer } from './shared/redis-server.ts'
import { leaseMs, type SharingGateways, sharingGateways } from './shared/sharing-gateways.ts'

/** As docs/scale.md lists them. */
const permissions = (): readonly string[] => {
  const page = readFileSync(new URL('../../docs/scale.md', import.meta.url), 'utf8')
  const line = /^ACL SETUSER trellis on >password (.*)$/m.exec(page)?.[1]
  if (line === undefined) throw new Error('docs/scale.md lists no permissions')
  return line.split(' ')
}

/** What a cluster needs besides. */
const clusterPermissions = (): readonly string[] => {
  const page = readFileSync(new URL('../../docs/scale.md', import.meta.url), 'utf8')
  const words = /^A cluster also needs (.*)\.$/m.exec(page)?.[1] ?? ''
  return [...words.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word)
}

describeWith('redis', 'trellis doctor says of a Redis', () => {
  const of = async (
    settings: readonly string[],
    url: (port: number) => string,
  ): Promise<readonly string[]> => {
    const redis = await startRedisServer(...settings)
    onTestFinished(() => redis.stop())
    const services = { a: { contract: 'open', mount: '/', upstream: { targets: ['http://127.0.0.1:9'] } } }
    const checked = await checkConfig(
      JSON.stringify({ services, cache: { shared: { url: url(redis.port) } } }),
      {},
    )
    if (checked.kind === 'faults') throw new Error(JSON.stringify(checked.faults))
    return (await storeIssues(checked.config)).map(({ state, text }) => `${state} ${text}`)
  }
  const plain = (port: number): string => `redis://127.0.0.1:${port}`
  const fitting = ['--maxmemory', '64mb', '--maxmemory-policy', 'volatile-lru']
  const user = (port: number): string => `redis://trellis:password@127.0.0.1:${port}`
  const acl = (rights: readonly string[]): readonly string[] => [
    ...['--user', 'default', 'on', 'nopass', '+@all', '~*', '&*', '--user', 'trellis', 'on', '>password'],
    ...rights,
  ]

  test.each<[string, readonly string[], (port: number) => string, readonly RegExp[]]>([
    ['that fits', fitting, plain, [/^ok .*version \d/, /^ok .*volatile-lru/]],
    [
      'with the rights of docs/scale.md',
      [...fitting, ...acl(permissions())],
      user,
      [/^ok .*version \d/, /^ok .*volatile-lru/],
    ],
    [
      'that evicts everything and has no bound',
      ['--maxmemory-policy', 'allkeys-lru'],
      plain,
      [
        /^ok /,
        /^fault .*coordination data too: set maxmemory-policy volatile-lru/,
        /^warning .*maxmemory is 0/,
      ],
    ],
    [
      'whose user may not publish',
      [...fitting, ...acl(permissions().filter((right) => right !== '+publish'))],
      user,
      [/^ok /, /^ok /, /^fault .*publish.*docs\/scale\.md/],
    ],
    [
      'with another password',
      acl(permissions()),
      (port) => `redis://trellis:wrong@127.0.0.1:${port}`,
      [/^fault .*refuses the login \(WRONGPASS\)/],
    ],
  ])('%s', async (_what, settings, url, expected) => {
    const found = await of(settings, url)
    expect(found).toEqual(expected.map((pattern) => expect.stringMatching(pattern)))
  })
})

describeWith('redis', 'a Redis that does not let everybody in', () => {
  let redis: RedisServer
  let gateways: SharingGateways

  beforeEach(async () => {
    gateways = await sharingGateways()
  })
  afterEach(async () => {
    await gateways.stop()
    await redis.stop()
  })

  /** Two instances share what one has asked for, and a write. */
  const expectShared = async (shared: Readonly<Record<string, unknown>>): Promise<void> => {
    const a = await gateways.start(shared)
    const b = await gateways.start(shared)
    await Promise.all([gateways.trusts(a, true), gateways.trusts(b, true)])
    let id = 1
    /** Of another post each time: one that is asked for before the first instance has shared it is fetched. */
    const again = async (): Promise<string> => {
      id += 1
      for (const gateway of [a, b]) await gateways.get(gateway, id)
      const { status } = await gateways.get(b, id)
      return `${status}, found ${await b.metric('trellis_shared_lookups_total{', '"found"')}`
    }
    // A machine that is busy for as long as the lease makes an instance fetch anew.
    await expect.poll(again).toMatch(/; hit.*, found [1-9]/)
    const { version } = await gateways.get(a)
    expect((await gateways.put(b)).status).toBe(200)
    expect(await gateways.get(a)).toMatchObject({ version: version + 1 })
    expect(await a.metric('trellis_shared_failures_total')).toBe(0)
  }

  const withTls = async (...settings: readonly string[]): Promise<string> => {
    const port = await freePort()
    redis = await startRedisServer(
      ...['--tls-port', String(port), '--tls-cert-file', certificatePath('good.pem')],
      ...['--tls-key-file', certificatePath('good.key'), ...settings],
    )
    return `rediss://127.0.0.1:${port}`
  }

  test('rediss:// with its own authority: an instance without it trusts nothing, and reports why', async () => {
    const url = await withTls('--tls-auth-clients', 'no', '--tls-ca-cert-file', certificatePath('ca.pem'))
    await expectShared({ url, tls: { ca: pem('ca.pem') }, key: 'k'.repeat(32) })
    const stranger = await gateways.start({ url })
    expect((await gateways.get(stranger)).status).toContain('fwd=')
    expect(await stranger.metric('trellis_memory_trusted ')).toBe(0)
    expect(await gateways.trouble(stranger, 'SELF_SIGNED_CERT_IN_CHAIN')).toBeGreaterThan(0)
    const misnamed = await gateways.start({ url, tls: { ca: pem('ca.pem'), serverName: 'elsewhere.test' } })
    expect(await misnamed.metric('trellis_memory_trusted ')).toBe(0)
    expect(await gateways.trouble(misnamed, 'ERR_TLS_CERT_ALTNAME_INVALID')).toBeGreaterThan(0)
  })

  test('bytes that are no record of TLS end their connection, and nothing else', async () => {
    const url = await withTls('--tls-auth-clients', 'no', '--tls-ca-cert-file', certificatePath('ca.pem'))
    const line = await startCutLine(Number(new URL(url).port))
    try {
      const shared = { url: `rediss://127.0.0.1:${line.port}`, tls: { ca: pem('ca.pem') } }
      const gateway = await gateways.start(shared)
      await gateways.trusts(gateway, true)
      line.interject('this is a text and no record\r\n')
      await expect.poll(() => gateways.trouble(gateway, 'other')).toBeGreaterThan(0)
      // Each of the connections writes once more, where Node has a second error to tell.
      await pause(2 * leaseMs)
      await gateways.trusts(gateway, true)
      expect((await gateways.put(gateway)).status).toBe(200)
    } finally {
      line.close()
    }
  })

  test('rediss:// with client certificates', async () => {
    const url = await withTls('--tls-ca-cert-file', certificatePath('client.pem'))
    await expectShared({
      url,
      tls: { ca: pem('ca.pem'), ...keyPair('client') },
    })
    const stranger = await gateways.start({ url, tls: { ca: pem('ca.pem') } })
    expect(await stranger.metric('trellis_memory_trusted ')).toBe(0)
    expect((await gateways.put(stranger)).status).toBe(200)
  })

  test('a user with only the necessary rights; a wrong password and missing rights are reported', async () => {
    redis = await startRedisServer()
    const set = await redis.command('ACL', 'SETUSER', 'trellis', 'on', '>p@ss word', ...permissions())
    expect(set).toBe('+OK\r\n')
    await redis.command('ACL', 'SETUSER', 'little', 'on', '>little', 'resetkeys', '-@all', '+info')
    await redis.command('ACL', 'SETUSER', 'default', 'resetkeys', '-@all', '+ping')
    const at = `127.0.0.1:${redis.port}`
    await expectShared({ url: `redis://trellis:p%40ss%20word@${at}` })
    const wrong = await gateways.start({ url: `redis://trellis:wrong@${at}` })
    expect(await wrong.metric('trellis_memory_trusted ')).toBe(0)
    expect(await gateways.trouble(wrong, 'WRONGPASS')).toBeGreaterThan(0)
    const little = await gateways.start({ url: `redis://little:little@${at}` })
    expect(await little.metric('trellis_memory_trusted ')).toBe(0)
    expect(await gateways.trouble(little, 'NOPERM')).toBeGreaterThan(0)
  })
})

describeWith('redis', 'a cluster that does not let everybody in', () => {
  test('the documented rights include the commands that the client sends by itself, also while the ledger moves', async () => {
    const cluster = await startRedisCluster({
      masters: 3,
      replicas: 1,
      settings: () => ['--cluster-node-timeout', '2000', '--repl-diskless-sync-delay', '0'],
    })
    const gateways = await sharingGateways()
    try {
      const rights = [...permissions(), ...clusterPermissions()]
      expect(rights).toContain('+asking')
      for (const node of cluster.nodes) {
        const set = await node.command('ACL', 'SETUSER', 'trellis', 'on', '>secret', ...rights)
        expect(set).toBe('+OK\r\n')
      }
      const shared = { url: `redis://trellis:secret@127.0.0.1:${cluster.nodes[0]?.port}`, cluster: true }
      const [a, b] = [await gateways.start(shared), await gateways.start(shared)]
      const bothTrust = () => Promise.all([gateways.trusts(a, true), gateways.trusts(b, true)])
      await bothTrust()
      const from = await cluster.holder()
      const to = cluster.nodes.find((node, at) => at < 3 && node !== from) as RedisServer
      let version = 0
      for (const next of [undefined, to, from]) {
        if (next !== undefined) await cluster.moveLedger(next, leaseMs / 4)
        await bothTrust()
        for (const id of [1, 2, 3, 4, 5, 6]) {
          await gateways.get(a, id)
          await expect.poll(async () => (await gateways.get(b, id)).status).toMatch(/; hit/)
        }
        expect((await gateways.put(b)).status).toBe(200)
        version += 1
        expect(await gateways.get(a)).toMatchObject({ version })
      }
      for (const node of cluster.nodes) expect(await node.command('ACL', 'LOG')).not.toMatch(/trellis/)
      for (const gateway of [a, b]) expect(await gateways.trouble(gateway, 'NOPERM')).toBe(0)
    } finally {
      await gateways.stop()
      await cluster.stop()
    }
  })
})

test('certificates for Redis are checked with the rest of the file, and are of no use in the clear', async () => {
  const faultsOf = async (shared: object): Promise<readonly string[]> => {
    const result = await checkConfig(JSON.stringify({ cache: { shared } }), {})
    return result.kind === 'ok' ? [] : result.faults.map(({ path }) => path)
  }
  const url = 'rediss://redis.test'
  expect(await faultsOf({ url, tls: { ca: `file:${certificatePath('ca.pem')}` } })).toEqual([])
  expect(await faultsOf({ url, tls: { ca: 'no certificate' } })).toEqual(['cache.shared.tls.ca'])
  expect(await faultsOf({ url, tls: { cert: pem('client.pem') } })).toEqual(['cache.shared.tls.cert'])
  expect(await faultsOf({ url: 'redis://redis.test', tls: { ca: pem('ca.pem') } })).toEqual([
    'cache.shared.tls',
  ])
})
