import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { connect } from '../../../src/cluster/redis/connections.ts'
import { connectorFor } from '../../../src/cluster/redis/connector.ts'
import { createRedisLedger, listen } from '../../../src/cluster/redis/redis-ledger.ts'
import { createCountedRequests, createIdempotencyKeys } from '../../../src/cluster/redis/stores.ts'
import { createTier } from '../../../src/cluster/redis/tier.ts'
import { createSignatures, encodeEntry, entryVersion } from '../../../src/cluster/redis/values.ts'
import { connectedTo, maxReplyBytes } from './connected-to.ts'
import { type ScriptedNode, startScriptedNode } from './scripted-node.ts'

const timeoutMs = 1_000
const patient = { timeout: 20_000, interval: 5 }
const noTls = { ca: '', cert: '', key: '', serverName: '' }

const bulk = (text: string): string => `$${Buffer.byteLength(text)}\r\n${text}\r\n`
const list = (...parts: readonly string[]): string => `*${parts.length}\r\n${parts.join('')}`
const push = (...parts: readonly string[]): string => `>${parts.length}\r\n${parts.join('')}`
const empty = '$-1\r\n'
const proto3 = `%1\r\n${bulk('proto')}:3\r\n`

type Asked = {
  readonly name: string
  /** What it asks with. */
  readonly commands: readonly string[]
  readonly run: () => Promise<unknown>
  readonly healthy: string
  /** What comes of the healthy answer. */
  readonly said: unknown
}

const synced = ['e', '3', '0', ['t:x', '3'], ['b', '3', '9'], 'granted', '1700000000000', '0'] as const
const syncReply = (parts: readonly (string | readonly string[])[]): string =>
  list(...parts.map((one) => (typeof one === 'string' ? bulk(one) : list(...one.map(bulk)))))

/** Takes what has one status, and names its key as the only tag. */
const query = {
  key: 'key',
  contentId: '',
  secondary: () => '',
  take: ({ facts }: { readonly facts: unknown }) =>
    (facts as { status: unknown }).status === 200 ? { tags: ['key'] } : ('malformed' as const),
}

/** Everything that is asked of a store, on connections to one node. */
const askedOf = async (node: ScriptedNode, cluster: boolean): Promise<readonly Asked[]> => {
  const common = { cluster, timeoutMs, maxReplyBytes, tls: noTls, troubled: () => undefined }
  const ledger = createRedisLedger({
    ...common,
    url: `redis://127.0.0.1:${node.port}`,
    prefix: 'test',
    member: 'a',
    leaseMs: 1_000,
    forgetAfterMs: 5_000,
    changed: () => undefined,
    signatures: {
      invalidations: createSignatures([], 'note'),
      acknowledgements: createSignatures([], 'acknowledgement'),
    },
  })
  onTestFinished(() => ledger.leave(false))
  const connection = await connectedTo(node, { cluster, timeoutMs })
  let passed = 0
  const tier = createTier({
    connection,
    prefix: 'test',
    invalidated: { touchedSince: () => false },
    targetTag: (key) => key,
    signatures: createSignatures([], 'entry'),
    maxBytes: 1024 * 1024,
    position: () => ({ epoch: 'e', applied: 3 }),
    mayTrust: () => true,
    // After each failure it rests for a second.
    clock: { ...systemClock, monotonic: () => (passed += 10_000) },
    report: () => undefined,
    troubled: () => undefined,
  })
  const keys = createIdempotencyKeys(connection, {
    prefix: 'test',
    ttlMs: 60_000,
    maxBytes: 100,
    signatures: createSignatures([], 'answer'),
  })
  const counted = createCountedRequests(connection, 'test')
  const scripts = ['evalsha', 'eval']
  return [
    {
      name: 'sync',
      commands: scripts,
      run: () => ledger.sync({ epoch: 'e', applied: 0 }),
      healthy: syncReply(synced),
      said: {
        epoch: 'e',
        seq: 3,
        floor: 0,
        invalidations: [{ text: 't:x', seq: 3 }],
        members: [{ member: 'b', applied: 3, beat: 9 }],
        lease: 'granted',
      },
    },
    {
      name: 'begin',
      commands: scripts,
      run: () => ledger.begin('a#1', []),
      healthy: ':1\r\n',
      said: undefined,
    },
    {
      name: 'append',
      commands: scripts,
      run: () => ledger.append(['t:x'], []),
      healthy: list(bulk('e'), bulk('4'), list()),
      said: { epoch: 'e', seq: 4, members: [] },
    },
    { name: 'forget', commands: scripts, run: () => ledger.forget('b'), healthy: ':1\r\n', said: undefined },
    {
      name: 'an idempotency key',
      commands: scripts,
      run: () => keys.begin('key', 'what'),
      healthy: bulk('begun'),
      said: { kind: 'begun' },
    },
    {
      name: 'a count',
      commands: scripts,
      run: () => counted.take('limit', 'key', { windowMs: 1_000, intervalMs: 100 }),
      healthy: list(':1\r\n', bulk('99.5')),
      said: { admitted: true, usedMs: 99.5 },
    },
    {
      name: 'an entry',
      commands: ['pttl', 'getrange'],
      run: () => tier.load(query).then((taken) => taken?.tags[0]),
      healthy: bulk(''),
      said: undefined,
    },
    {
      name: 'a claim',
      commands: ['set'],
      run: () => tier.claim(query).then(({ kind }) => kind),
      healthy: '+OK\r\n',
      said: 'mine',
    },
  ]
}

/** A node that answers some commands as the test says, and all others normally. */
const scripted = async (hello: string) => {
  const script = { commands: [] as readonly string[], wire: '' }
  const node = await startScriptedNode(([name = '']) => {
    if (name === 'hello') return hello
    return script.commands.includes(name) ? script.wire : 'usual'
  })
  return { script, node }
}

const nobodysResponses: readonly (readonly [what: string, wire: string])[] = [
  ['a null', empty],
  ['a null of RESP3', '_\r\n'],
  ['no list', '*-1\r\n'],
  ['an empty list', '*0\r\n'],
  ['a negative number', ':-5\r\n'],
  ['a number that is none', ':NaN\r\n'],
  ['a number and a rest', ':1e9\r\n'],
  ['a boolean', '#f\r\n'],
  ['a double', ',1.5\r\n'],
  ['nothing but nulls', list(...Array<string>(7).fill(empty))],
  ['a list that is too long', list(...Array<string>(40).fill(bulk('1')))],
  ['a map', `%1\r\n${bulk('a')}:1\r\n`],
  ['an error within a list', list('-ERR no\r\n', '-ERR no\r\n')],
  ['lists in lists', `${'*1\r\n'.repeat(100)}:1\r\n`],
  ['a text of four gigabytes', '$4000000000\r\n'],
  ['a text that does not end', `$${2 ** 25}\r\n${'x'.repeat(2 ** 21)}`],
  ['a line that does not end', `+${'x'.repeat(2 ** 21)}`],
  ['a negative length', '$-7\r\n'],
  ['a length that is none', '$NaN\r\n'],
  ['a list of two thousand millions', '*2000000000\r\n'],
  ['lists of thirty millions in each other', '*30000000\r\n'.repeat(12)],
  ['a message where nobody listens', push(bulk('message'), bulk('c'), bulk('x'))],
  ['a subscription where nobody listens', push(bulk('subscribe'), bulk('c'), ':1\r\n')],
  ['a message of nulls', push('_\r\n', '_\r\n', '_\r\n')],
  ['an empty message', '>0\r\n'],
  ['more answers than questions', `:7\r\n${empty.repeat(5)}`],
  ['another protocol', 'HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n'],
  ['a line that ends wrongly', '+O\rK\r\n'],
  ['a slot that was moved, without its number', '-MOVED\r\n'],
  ['a slot that was moved to nowhere', '-MOVED 1\r\n'],
  ['a slot that was moved to a name without a port', '-MOVED 1 nowhere\r\n'],
  ['another slot than there is', '-MOVED 99999999 127.0.0.1:1\r\n'],
  ['a slot to be asked for nowhere', '-ASK 1\r\n'],
  ['a slot to be asked for at a name without a port', '-ASK 1 nowhere\r\n'],
]

const settled = (run: () => Promise<unknown>): Promise<unknown> => run().catch(() => 'refused')

/** What is the same for both need not be looked at twice. */
const ofClusters = /^(a slot|another slot|a null$|more answers)/

test.each(
  nobodysResponses.flatMap(([what, wire]) => [
    { what, wire, cluster: false, where: 'a server' },
    ...(ofClusters.test(what) ? [{ what, wire, cluster: true, where: 'a cluster' }] : []),
  ]),
)('$what from $where is no response to anything, and the next one is', async ({ wire, cluster }) => {
  const { script, node } = await scripted(proto3)
  for (const { name, commands, run, healthy, said } of await askedOf(node, cluster)) {
    Object.assign(script, { commands, wire: healthy })
    await expect.poll(() => settled(run), patient).toEqual(said)
    script.wire = wire
    // An instance without the claim asks the upstream itself.
    const refused = name === 'an entry' ? [undefined] : name === 'a claim' ? ['mine', 'theirs'] : ['refused']
    expect(refused, name).toContain(await settled(run))
  }
})

const head = {
  version: entryVersion,
  key: 'key',
  contentId: '',
  epoch: 'e',
  applied: 3,
  tags: ['t'],
  varyKey: '',
  ageMs: 0,
  keptMs: 60_000,
  storedAt: Date.now(),
  facts: { status: 200 },
} as const

test.each([
  ['whole', {}, ':59000\r\n', 'key'],
  ['of another version', { version: 2 }, ':59000\r\n', undefined],
  ['of another key', { key: 'other' }, ':59000\r\n', undefined],
  ['without tags', { tags: null }, ':59000\r\n', undefined],
  ['with a tag that is a number', { tags: [1] }, ':59000\r\n', undefined],
  ['without the variant', { varyKey: undefined }, ':59000\r\n', undefined],
  ['without an age', { ageMs: null }, ':59000\r\n', undefined],
  ['of a negative age', { ageMs: -1e9 }, ':59000\r\n', undefined],
  ['without the time at which it was stored', { storedAt: '1' }, ':59000\r\n', undefined],
  ['without the time for which it is kept', { keptMs: null }, ':59000\r\n', undefined],
  ['without a position', { applied: 'x' }, ':59000\r\n', undefined],
  ['with other facts', { facts: { status: 'x' } }, ':59000\r\n', undefined],
  ['whose time is over', {}, ':-2\r\n', undefined],
  ['that is kept for ever', {}, ':-1\r\n', undefined],
  ['that is kept for longer than it was stored for', {}, ':60001\r\n', undefined],
  ['whose time is a text', {}, '+soon\r\n', undefined],
  ['whose time is a text of digits', {}, '+59000\r\n', undefined],
  ['whose time is a null', {}, empty, undefined],
] as const)('an entry %s', async (_, changed, pttl, key) => {
  const parts = encodeEntry({ ...head, ...(changed as object) }, Buffer.from('content')) ?? []
  const bytes = Buffer.concat(parts).toString('latin1')
  const order: string[] = []
  const node = await startScriptedNode(([name = '']) => {
    order.push(name)
    if (name === 'getrange') return `$${bytes.length}\r\n${bytes}\r\n`
    return name === 'pttl' ? pttl : 'usual'
  })
  const entry = (await askedOf(node, false)).find(({ name }) => name === 'an entry')
  expect(await entry?.run()).toBe(key)
  // The other way round a new one's time would be taken for that of the one before.
  expect(order.indexOf('pttl')).toBeLessThan(order.indexOf('getrange'))
})

const other = (at: number, value: string | readonly string[]): string =>
  syncReply(synced.with(at, value as never))

test.each([
  ['no epoch', other(0, '')],
  ['a number that is none', other(1, 'NaN')],
  ['a negative number', other(1, '-1')],
  ['a number beyond all', other(1, '9007199254740993')],
  ['a floor that is none', other(2, '')],
  ['a floor above the number', other(2, '4')],
  ['a note without a number', other(3, ['t:x'])],
  ['a note whose number is none', other(3, ['t:x', 'inf'])],
  ['a note of later', other(3, ['t:x', '4'])],
  ['notes that are no list', other(3, 't:x')],
  ['a member without a beat', other(4, ['b', '3'])],
  ['a member that is nowhere', other(4, ['b', 'NaN', '9'])],
  ['a member without a name', other(4, ['', '3', '9'])],
  ['another word for the lease', other(5, 'Granted')],
  ['a lease that is a list', other(5, ['granted'])],
  ['no time', other(6, '')],
  ['one part too few', syncReply(synced.slice(0, 6))],
  ['one part too many', syncReply([...synced, ''])],
])('the ledger is not taken at its word: %s', async (_, wire) => {
  const { script, node } = await scripted(proto3)
  const [sync] = await askedOf(node, false)
  Object.assign(script, { commands: sync?.commands, wire: sync?.healthy })
  await expect.poll(() => settled(() => sync?.run() ?? Promise.reject()), patient).toEqual(sync?.said)
  script.wire = wire
  await expect(sync?.run()).rejects.toThrow(/^MALFORMED/)
})

test.each([
  ['null', empty],
  ['a number', ':1\r\n'],
  ['a row that is null', list(empty)],
  ['a row without an end', list(list(':0\r\n'))],
  ['slots without end', list(list(':0\r\n', ':9007199254740991\r\n', list(bulk('127.0.0.1'), ':1\r\n')))],
  ['slots named over and over', list(...Array<string>(9).fill(list(':0\r\n', ':16383\r\n')))],
  ['a slot that is a text', list(list(bulk('a'), bulk('b')))],
  ['a node that is null', list(list(':0\r\n', ':16383\r\n', empty))],
  ['a port that is a text', list(list(':0\r\n', ':16383\r\n', list(bulk('127.0.0.1'), bulk('x'))))],
])('slots of a cluster that are none are asked for again: %s', async (_, wire) => {
  let isHealthy = false
  const node = await startScriptedNode(([name, what]) =>
    name === 'cluster' && what === 'SLOTS' && !isHealthy ? wire : 'usual',
  )
  const connection = connect(
    {
      ...{ url: `redis://127.0.0.1:${node.port}`, cluster: true, tls: noTls, timeoutMs, maxReplyBytes },
      troubled: () => undefined,
    },
    () => undefined,
  )
  onTestFinished(() => {
    connection.disconnect()
    node.close()
  })
  await expect.poll(() => node.counts.get('cluster') ?? 0, patient).toBeGreaterThan(2)
  expect(connection.status).not.toBe('ready')
  isHealthy = true
  await expect.poll(() => connection.status, patient).toBe('ready')
})

const subscribed = list(bulk('subscribe'), bulk('c'), ':1\r\n')
const pong = list(bulk('pong'), bulk(''))
const message = (text: string): string => list(bulk('message'), bulk('c'), bulk(text))

test.each([
  ['a name that is null', list(bulk('subscribe'), empty, ':1\r\n')],
  ['a name that is null, pushed', push(bulk('subscribe'), '_\r\n', ':1\r\n')],
  ['null', empty],
  ['null of RESP3', '_\r\n'],
  ['a number', ':1\r\n'],
  ['one letter', '+O\r\n'],
  ['no text', '+\r\n'],
  ['an empty list', '*0\r\n'],
  ['a list of null', list(empty)],
  ['an empty message', '>0\r\n'],
  ['a message without an end', `*3\r\n${bulk('message')}$4000000000\r\n`],
  ['a message from a null', subscribed + list(bulk('message'), empty, bulk('x'))],
  ['a message from a null, pushed', subscribed + push(bulk('message'), '_\r\n', '_\r\n')],
  ['a status after the subscription', `${subscribed}+ab\r\n`],
  ['an error after the subscription', `${subscribed}-ERR x\r\n`],
  ['a text after the subscription', subscribed + bulk('ab')],
  ['more replies than commands', `${'+ab\r\n'.repeat(9)}${subscribed}`],
  ['messages of nothing', subscribed + list(empty, empty, empty)],
  ['what is no message', `${subscribed}:1\r\n`],
  ['a message of lists', subscribed + list(list(bulk('message')), list(bulk('c')), bulk('x'))],
  ['lists in lists', `${subscribed}${'*1\r\n'.repeat(9_000)}:1\r\n`],
  ['a message of RESP3', subscribed + push(bulk('message'), bulk('c'), bulk('x'))],
])('a server that answers SUBSCRIBE with what it is not is left: %s', async (_, wire) => {
  let isHealthy = false
  const acknowledged: string[] = []
  const node = await startScriptedNode(([name]) => {
    if (name === 'subscribe') return isHealthy ? subscribed : wire
    return name === 'ping' ? pong + message('[]') : 'usual'
  })
  const calls = await connectedTo(node, { cluster: false, timeoutMs })
  const listener = listen(
    calls,
    {
      channels: ['c'],
      everyMs: 20,
      speak: () => Promise.resolve(),
      troubled: () => undefined,
      connector: connectorFor('listens', { timeoutMs, maxReplyBytes }),
    },
    (_channel, text) => acknowledged.push(text),
  )
  onTestFinished(() => listener.close())
  await expect.poll(() => node.counts.get('subscribe') ?? 0, patient).toBeGreaterThan(1)
  isHealthy = true
  const before = acknowledged.length
  await expect.poll(() => acknowledged.length, patient).toBeGreaterThan(before + 2)
})

test('a server that sends single bytes and no complete response is left for another', async () => {
  let connections = 0
  let commands = 0
  const node = await startScriptedNode(([name]) => {
    if (name === 'info') connections += 1
    if (name !== 'get') return 'usual'
    commands += 1
    return commands === 1 ? '$900000\r\n' : 'x'
  })
  const connection = await connectedTo(node, { cluster: false, timeoutMs: 50 })
  expect(connections).toBe(1)
  const asked = async (): Promise<number> => {
    await settled(() => connection.get('key'))
    return connections
  }
  await expect.poll(asked, patient).toBeGreaterThan(1)
})

/** A node whose replies to GET are given, and the number of its connections. */
const respondingGet = async (wire: string) => {
  let connections = 0
  const node = await startScriptedNode(([name]) => {
    if (name === 'info') connections += 1
    return name === 'get' ? wire : 'usual'
  })
  const connection = await connectedTo(node, { cluster: false, timeoutMs })
  return { connection, connections: () => connections }
}

test.each([
  ['a second reply to one command', bulk('x') + bulk('y')],
  ['an error without a command', `${bulk('x')}-ERR no\r\n`],
  ['a message without a subscription', push(bulk('message'), bulk('c'), bulk('x'))],
  ['a reply that is longer than the bound', bulk('x'.repeat(maxReplyBytes))],
  [
    'a reply of parts that are longer than the bound',
    list(...Array(5).fill(bulk('x'.repeat(maxReplyBytes / 4)))),
  ],
  ['a length that is longer than the bound', `$${maxReplyBytes}\r\n`],
])('the connection ends after %s', async (_, wire) => {
  const { connection, connections } = await respondingGet(wire)
  await settled(() => connection.get('key'))
  await expect.poll(connections, patient).toBe(2)
})

test.each([
  [
    'a text with line ends and types of replies in it',
    bulk('\r\n$-1\r\n*9\r\n-MOVED 1\r\n'),
    '\r\n$-1\r\n*9\r\n-MOVED 1\r\n',
  ],
  ['an empty text', bulk(''), ''],
  ['lists in lists', list(list(), list(bulk('a'), list(':1\r\n')), empty), [[], ['a', [1]], null]],
  ['a text of nearly the bound', bulk('x'.repeat(maxReplyBytes - 100)), 'x'.repeat(maxReplyBytes - 100)],
])('the connection stays after %s', async (_, wire, said) => {
  const { connection, connections } = await respondingGet(wire)
  for (let i = 0; i < 3; i += 1) expect(await connection.get('key')).toEqual(said)
  expect(connections()).toBe(1)
})
