import { Redis } from 'ioredis'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ledgerScripts } from '../../src/cluster/redis/ledger-scripts.ts'
import { createRedisStore, type Reply } from '../cluster-simulation/redis/store.ts'
import { times } from '../support/breadth.ts'
import { oneOf, type Random, randomFrom } from '../support/random.ts'
import { describeWith } from '../support/requirements.ts'
import { type RedisServer, startRedisServer } from './shared/redis-server.ts'

/** With the time among the keys, so that both have the same. */
const scripts = Object.fromEntries(
  Object.entries(ledgerScripts).map(([name, text]) => [
    name,
    text.replace("redis.call('TIME')", '{ KEYS[5], KEYS[6] }'),
  ]),
) as Record<keyof typeof ledgerScripts, string>

const ledgerKeys = ['ledger', 'log', 'members', 'pending'].map((name) => `{t}:${name}`)
const invalidationTexts = ['t:a', 't:b', 't:c', 't:d', 't:e', 's:a', 'h400:a', 'a:', 'p:site:/ü']
const members = ['one', 'two', 'three']

type Command = readonly string[]

/** Positions and times that members have seen, some of an earlier ledger. */
const createCommands = (random: Random) => {
  const epochs = ['', 'fresh0']
  const numbers = ['0']
  let now = 1_700_000_000_000
  let made = 0
  const some = (...first: readonly number[]): string =>
    JSON.stringify([...first, ...invalidationTexts.filter(() => random() < 0.3)])
  const holdMs = (): number => oneOf(random, [0, 0, 700, 4_000])
  const script = (name: keyof typeof scripts, more: readonly string[]): Command => {
    made += 1
    epochs.push(`fresh${made}`)
    const keys = [...ledgerKeys, String(Math.floor(now / 1000)), String((now % 1000) * 1000)]
    return ['EVAL', scripts[name], '6', ...keys, `fresh${made}`, '{t}:', oneOf(random, members), ...more]
  }
  const own: readonly (() => Command)[] = [
    () => {
      const epoch = oneOf(random, epochs.slice(-4))
      const proof = random() < 0.2 ? '0' : String(now - Math.floor(random() * 1_500))
      const proven = random() < 0.8 ? epoch : oneOf(random, epochs)
      return script('sync', [epoch, oneOf(random, numbers), proof, '1000', '5000', '4', proven])
    },
    () => script('begin', [`${oneOf(random, members)}#${Math.floor(random() * 5)}`, some(holdMs())]),
    () => script('append', [some(), JSON.stringify([`${oneOf(random, members)}#1`]), '4', String(holdMs())]),
    () => script('append', ['[]', '[]', '4', '0']),
    () => script('forget', [oneOf(random, members), '1000', '4']),
    () => script('leave', ['4']),
  ]
  const plain: readonly (() => Command)[] = [
    () => ['DEL', oneOf(random, ledgerKeys)],
    () => ['HSET', 'h', oneOf(random, members), String(random())],
    () => ['HSETNX', 'h', oneOf(random, members), 'x'],
    () => ['HDEL', 'h', oneOf(random, members)],
    () => ['HGET', 'h', oneOf(random, members)],
    () => ['HMGET', 'h', ...members],
    () => ['HGETALL', 'h'],
    () => [
      'ZADD',
      'z',
      oneOf(random, ['1', '2', '2.5', 'inf', '9007199254740991']),
      oneOf(random, invalidationTexts),
    ],
    () => ['ZSCORE', 'z', oneOf(random, invalidationTexts)],
    () => ['ZCARD', 'z'],
    () => ['ZRANGE', 'z', '0', '-1', 'WITHSCORES'],
    () => ['ZRANGE', 'z', '1', '2'],
    () => ['ZRANGEBYSCORE', 'z', oneOf(random, ['(1', '1', '(-1']), '9007199254740991', 'WITHSCORES'],
    () => ['ZREMRANGEBYRANK', 'z', '0', oneOf(random, ['0', '1'])],
    () => [
      'SET',
      's',
      oneOf(random, ['text', 'another', '']),
      'PX',
      '100000',
      ...oneOf(random, [['NX'], []]),
    ],
    () => ['GET', oneOf(random, ['s', 'nothing', 'h'])],
    () => ['GETRANGE', oneOf(random, ['s', 'z']), '0', oneOf(random, ['2', '100'])],
    () => ['EXISTS', oneOf(random, ['s', 'nothing'])],
    () => ['INCR', 'n'],
    () => ['PTTL', oneOf(random, ['nothing', 'n'])],
    () => ['DEL', oneOf(random, ['s', 'h', 'z', 'n'])],
    () => ['PUBLISH', '{t}:noted', '"text"'],
  ]
  return {
    next: (): Command => {
      now += random() < 0.1 ? 6_000 : Math.floor(random() * 600)
      return oneOf(random, random() < 0.7 ? own : plain)()
    },
    /** Members know the epochs and numbers of replies. */
    learn: (reply: Reply): void => {
      if (!Array.isArray(reply) || typeof reply[0] !== 'string' || typeof reply[1] !== 'string') return
      if (!reply[0].startsWith('fresh')) return
      epochs.push(reply[0])
      numbers.push(reply[1])
      numbers.splice(0, numbers.length - 4)
    },
  }
}

/** Texts, as the client and the model give them. */
const asText = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(asText)
  return Buffer.isBuffer(value) ? value.toString() : value
}

describeWith('redis', 'the model of Redis in the simulation of the cluster', () => {
  let server: RedisServer
  let client: Redis
  let subscriber: Redis

  beforeEach(async () => {
    server = await startRedisServer()
    client = new Redis(server.port, { protocol: 2 })
    subscriber = client.duplicate()
    await subscriber.subscribe('{t}:noted')
  })
  afterEach(async () => {
    client.disconnect()
    subscriber.disconnect()
    await server.stop()
  })

  const idIn = async (section: string, name: string): Promise<string> =>
    new RegExp(`${name}:(\\w+)`).exec(await client.info(section))?.[1] ?? ''

  test('replies as a server does, to the scripts and to every command that src/cluster sends', async () => {
    const [runId, replicationId] = await Promise.all([
      idIn('server', 'run_id'),
      idIn('replication', 'master_replid'),
    ])
    const heard: unknown[] = []
    subscriber.on('message', (_, text: string) => heard.push(JSON.parse(text)))
    const published: unknown[] = []
    const model = createRedisStore({
      now: () => Date.now(),
      runId: () => runId,
      replicationId: () => replicationId,
      publish: (_, text) => published.push(JSON.parse(text)) && 1,
    })
    const commands = createCommands(randomFrom(11))
    const seen = new Set<string>()
    for (let count = 0; count < times(4_000, 40_000); count += 1) {
      const [name = '', ...args] = commands.next()
      const real: unknown = await client.call(name, ...args).catch((error: Error) => error.message)
      let modelled: Reply
      try {
        modelled = model.run([name, ...args])
      } catch (error) {
        modelled = (error as Error).message
      }
      expect(asText(modelled), `${count}: ${name} ${args.slice(1)}`).toEqual(asText(real))
      commands.learn(modelled)
      seen.add(name === 'EVAL' && Array.isArray(modelled) ? String(modelled[5]) : name)
    }
    await expect.poll(() => heard.length).toBe(published.length)
    expect(heard).toEqual(published)
    for (const said of ['granted', 'unproven', 'member-silent', 'young-ledger']) expect(seen).toContain(said)
  })
})
