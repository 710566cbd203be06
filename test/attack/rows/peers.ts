import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { decodeEntry, encodeEntry } from '../../../src/cluster/redis/values.ts'
import { type RedisServer, startRedisServer } from '../../real/shared/redis-server.ts'
import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts'
import type { Script } from '../../support/origin.ts'
import { exchangeBytes } from '../../support/raw-client.ts'
import { requirements } from '../../support/requirements.ts'
import { type AttackRow, faultsOf, row, type Tree } from '../attack-row.ts'
import { ask } from '../clients.ts'
import { originOf, type Resources, type Scene, scriptedOrigin } from '../scene.ts'
import { openService } from '../services.ts'

// Someone can write into the Redis that several gateways share.

const genuine = 'genuine-content'
const tampered = 'tampered-conten'

type Head = { status?: number; headers?: string[] }
type Forgery = {
  readonly title: string
  /** Changes the head of a decoded entry, and gives the content. */
  readonly forge: (facts: Head, content: Buffer) => Buffer
  /** What a response to a client must not hold. */
  readonly wrong: RegExp
}

const withLine =
  (name: string, value: string) =>
  (facts: Head, content: Buffer): Buffer => {
    const { headers = [] } = facts
    const kept: string[] = []
    for (let at = 0; at < headers.length; at += 2) {
      if (headers[at]?.toLowerCase() !== name.toLowerCase())
        kept.push(headers[at] ?? '', headers[at + 1] ?? '')
    }
    facts.headers = [...kept, name, value]
    return content
  }
const withStatus =
  (status: number) =>
  (facts: Head, content: Buffer): Buffer => {
    facts.status = status
    return content
  }

const forgeries: readonly Forgery[] = [
  { title: 'a short Content-Length', forge: withLine('Content-Length', '3'), wrong: /content-length: 3\r/i },
  {
    title: 'a long Content-Length',
    forge: withLine('Content-Length', '999'),
    wrong: /content-length: 999\r/i,
  },
  {
    title: 'Transfer-Encoding',
    forge: withLine('Transfer-Encoding', 'chunked'),
    wrong: /transfer-encoding/i,
  },
  { title: 'Connection', forge: withLine('Connection', 'X-Planted'), wrong: /x-planted/i },
  { title: 'Set-Cookie', forge: withLine('Set-Cookie', 'planted=1'), wrong: /planted=1/ },
  { title: 'status 204', forge: withStatus(204), wrong: /^HTTP\/1\.1 204/ },
  { title: 'status 304', forge: withStatus(304), wrong: /^HTTP\/1\.1 304/ },
  { title: 'status 101', forge: withStatus(101), wrong: /^HTTP\/1\.1 101/ },
  { title: 'status 500', forge: withStatus(500), wrong: /^HTTP\/1\.1 500/ },
  {
    title: 'a line end in a value',
    forge: withLine('X-Kind', 'a\r\nX-Planted: 1'),
    wrong: /\r\nX-Planted/i,
  },
  {
    title: 'more than maxEntryBytes',
    forge: () => Buffer.alloc(300_000, 'planted '),
    wrong: /planted planted/,
  },
]

const redisOf = new WeakMap<Resources, RedisServer>()

const responding: Script = (_, wire) =>
  wire.respond({ headers: { 'Content-Type': 'text/plain', 'X-Kind': 'genuine' }, content: genuine })

const settingsWith =
  (shared: Tree) =>
  async (scene: Pick<Scene, 'upstream' | 'resources'>): Promise<Tree> => {
    const origin = await scriptedOrigin(scene, responding)
    const redis = await startRedisServer()
    redisOf.set(scene.resources, redis)
    scene.resources.add(() => redis.stop())
    return {
      cache: {
        maxEntryBytes: '200KiB',
        shared: { url: `redis://127.0.0.1:${redis.port}`, ...shared },
      },
      services: {
        open: openService(scene.upstream),
        echo: {
          contract: 'open',
          mount: '/echo',
          upstream: { targets: [origin.origin] },
          cache: { rules: [{ match: 'GET /**', ttl: '10m' }] },
        },
      },
    }
  }

/** A gateway uses what others stored when it has acknowledged all their writes for long enough: a new ledger is made to look old. */
const trusting = async (scene: Scene, gateway: GatewayProcess): Promise<void> => {
  await redisOf.get(scene.resources)?.command('HSET', '{trellis}:ledger', 'born', '1')
  for (let tries = 0; tries < 200; tries += 1) {
    const text = await (await fetch(`${gateway.adminOrigin}/metrics`)).text()
    if (/^trellis_memory_trusted 1$/m.test(text)) return
    await sleep(50)
  }
  throw new Error('the gateway does not trust what it shares for ten seconds')
}

/** Binary values: through its own client, since the one of the tests reads text. */
const redisClient = async (scene: Scene) => {
  const { Redis } = await import('ioredis')
  const redis = redisOf.get(scene.resources)
  const client = new Redis(redis?.port ?? 0, '127.0.0.1')
  scene.resources.add(() => client.disconnect())
  return client
}

type Client = Awaited<ReturnType<typeof redisClient>>

/** Entries of the scripted origin: the honest reader has its own beside them. Storing goes on after the response. */
const storedEntries = async (
  client: Client,
  count: number,
): Promise<readonly (readonly [name: string, bytes: Buffer])[]> => {
  let found: [string, Buffer][] = []
  for (let tries = 0; tries < 40 && found.length < count; tries += 1) {
    await sleep(50)
    found = []
    for (const name of await client.keys('trellis:e:*')) {
      const bytes = await client.getBuffer(name)
      if (bytes?.includes(genuine) === true) found.push([name, bytes])
    }
  }
  return found
}

/** A gateway that has nothing in its memory, on the same Redis. */
const startAnother = async (scene: Scene, shared: Tree) => {
  const redis = redisOf.get(scene.resources)
  const other = await startGatewayProcess({
    cache: {
      maxEntryBytes: '200KiB',
      shared: { url: `redis://127.0.0.1:${redis?.port}`, ...shared },
    },
    services: {
      echo: {
        contract: 'open',
        mount: '/echo',
        upstream: { targets: [originOf(scene).origin] },
        cache: { rules: [{ match: 'GET /**', ttl: '10m' }] },
      },
    },
  })
  scene.resources.add(() => other.stop())
  await trusting(scene, other)
  return other
}

const fill = async (scene: Scene, count: number): Promise<void> => {
  await trusting(scene, scene.gateway)
  for (let at = 0; at < count; at += 1) await ask(scene.origin, `/echo/e${at}x`)
}

const numberOf = (key: string): number => Number(/\/e(\d+)x/.exec(key)?.[1] ?? -1)

const forgeEntries = async (scene: Scene): Promise<readonly string[]> => {
  const client = await redisClient(scene)
  await fill(scene, forgeries.length)
  let forged = 0
  for (const [name, bytes] of await storedEntries(client, forgeries.length)) {
    const entry = decodeEntry(bytes)
    if (entry?.kind !== 'entry') continue
    const forgery = forgeries[numberOf(entry.head.key)]
    if (forgery === undefined) continue
    const content = forgery.forge(entry.head.facts as Head, Buffer.from(entry.content))
    await client.set(name, Buffer.concat(encodeEntry(entry.head, content) ?? []), 'KEEPTTL')
    forged += 1
  }
  if (forged < forgeries.length)
    return [`only ${forged} of ${forgeries.length} entries were found and forged`]
  const other = await startAnother(scene, {})
  const found: string[] = []
  for (const [at, { title, wrong }] of forgeries.entries()) {
    const one = (close: string) => `GET /echo/e${at}x HTTP/1.1\r\nHost: a\r\n${close}\r\n`
    const bytes = await exchangeBytes(other.origin, one('') + one('Connection: close\r\n'), 1_500)
    const responses = bytes.match(/HTTP\/1\.1 \d{3}/g)?.length ?? 0
    if (wrong.test(bytes) || responses !== 2) {
      found.push(
        `${title}: ${responses} answers to two requests, the first begins ${JSON.stringify(bytes.slice(0, 40))}`,
      )
    }
  }
  return found
}

const key = 'a key of at least thirty-two octets, for tests'

const tamperWithSigned = async (scene: Scene): Promise<readonly string[]> => {
  const client = await redisClient(scene)
  await fill(scene, 4)
  let changed = 0
  for (const [name, bytes] of await storedEntries(client, 4)) {
    bytes.write(tampered, bytes.indexOf(genuine))
    await client.set(name, bytes, 'KEEPTTL')
    changed += 1
  }
  if (changed === 0) return ['no entry holds the content that was to be changed']
  const other = await startAnother(scene, { key })
  const found: string[] = []
  for (let at = 0; at < 4; at += 1) {
    const { text } = await ask(other.origin, `/echo/e${at}x`)
    if (text !== genuine) found.push(`an entry with a wrong signature was served: ${JSON.stringify(text)}`)
  }
  return found
}

const withoutRedis = (): string | undefined => {
  const [command, ...args] = requirements.redis.probe
  return spawnSync(command, args, { stdio: 'ignore' }).status === 0
    ? undefined
    : 'redis-server is not installed'
}

const withoutKey = (): string | undefined => {
  const schema = readFileSync(new URL('../../../config/gateway.schema.json', import.meta.url), 'utf8')
  const root = JSON.parse(schema) as {
    properties?: { cache?: { properties?: { shared?: { properties?: object } } } }
  }
  const isThere = 'key' in (root.properties?.cache?.properties?.shared?.properties ?? {})
  return isThere ? withoutRedis() : 'there is no setting cache.shared.key'
}

export const peerRows: readonly AttackRow[] = [
  row<readonly string[]>({
    name: 'forged-entries',
    description:
      'Entries in Redis with framing, statuses, cookies and sizes that no gateway stores are not served.',
    missing: withoutRedis,
    settings: settingsWith({}),
    attack: forgeEntries,
    verdict: ({ found }) => faultsOf(found),
  }),
  row<readonly string[]>({
    name: 'forged-signature',
    description: 'With cache.shared.key an entry that was changed in Redis is not served.',
    missing: withoutKey,
    settings: settingsWith({ key }),
    attack: tamperWithSigned,
    verdict: ({ found }) => faultsOf(found),
  }),
]
