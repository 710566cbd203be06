import { beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { type Companion, postChange, startCompanion } from '../support/companion.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import type { Script } from '../support/origin.ts'

let companion: Companion
let gateway: TestGateway

const json = { 'Content-Type': 'application/json' }
const state = 'trellis_changes_state'

beforeAll(async () => {
  companion = await startCompanion()
  const upstream = { targets: [companion.origin.origin] }
  const cache = { rules: [{ match: 'query *', ttl: '1h', scope: 'credential' }] }
  gateway = await startTestGateway({
    services: {
      graph: { contract: 'graphql', upstream, cache, changes: { token: companion.token, poll: '1m' } },
      pages: { contract: 'open', mount: '/', upstream },
    },
  })
  await vi.waitFor(async () => expect(await gateway.metric(state, 'service="graph",state="heard"')).toBe(1), {
    timeout: 60_000,
  })
})
closeAfterAll(() => [gateway, companion])

/** What the companion says of the response to a query, by the name of its operation; nothing of others. */
const descriptions: Readonly<Record<string, string>> = {
  One: 'v1;n=1;complete;blogs=1;p=1',
  Two: 'v1;n=2;complete;blogs=1;p=2;q=sd:page:publish',
  Partial: 'v1;n=1;blogs=1;list=any',
  Damaged: 'v2;AAAA',
}

type Answer = (
  asked: string | undefined,
) => Readonly<Record<string, string>> | Promise<Record<string, string>>
let answerMutation: Answer

const respond: Script = async ({ content, headers }, wire) => {
  const { query } = JSON.parse(content.toString()) as { query: string }
  const [, name = ''] = /^query (\w+)/.exec(query) ?? []
  const tags = descriptions[name]
  const more = query.startsWith('mutation')
    ? await answerMutation(headers['trellis-nonce'])
    : tags === undefined
      ? {}
      : { 'Trellis-Tags': tags }
  wire.respond({ headers: { ...json, ...more }, content: '{"data":{"a":1}}' })
}

const send = async (query: string, headers: Record<string, string> = {}): Promise<boolean> => {
  const response = await fetch(`${gateway.publicAddress}/graphql`, {
    method: 'POST',
    headers: { ...json, ...headers },
    body: JSON.stringify({ query }),
  })
  await response.arrayBuffer()
  expect(response.headers.get('trellis-tags')).toBeNull()
  return (response.headers.get('cache-status') ?? '').includes('; hit')
}

const names = [...Object.keys(descriptions), 'Plain']
const left = async (): Promise<readonly string[]> => {
  const hits: string[] = []
  for (const name of names) if (await send(`query ${name} { a }`)) hits.push(name)
  return hits
}
const mutate = () => send('mutation { a }')

const reported: Answer = async (asked) => {
  const row = companion.write(1)
  await companion.push(gateway.adminAddress, row)
  const text = `rows ${companion.incarnation}.${row.sequence}.${row.check}`
  return { 'Trellis-Statement': companion.state(text, asked) }
}

beforeEach(async () => {
  companion.respondToWrite = respond
  answerMutation = () => ({})
  await mutate()
  await left()
  expect(await left()).toEqual(names)
})

describe('responses that the companion of a site describes', () => {
  test('a change drops what shows it, and all that are not described completely', async () => {
    await companion.push(gateway.adminAddress, companion.write(1))
    expect(await left()).toEqual(['Two'])
  })

  test('a post that comes to a list drops the list', async () => {
    companion.last += 1
    const after = { status: 'publish', slug: 'a', parent: 0, author: 1, date: '2026-01-01 00:00:00' }
    const page = { menu_order: 0, protected: false, relations: [], terms: {} }
    const change = postChange(9, { type: 'page', before: null, after: { ...after, ...page } })
    await companion.push(gateway.adminAddress, {
      sequence: companion.last,
      state: 'closed',
      changes: [change],
    })
    expect(await left()).toEqual(['One'])
  })

  test('an unknown change drops all', async () => {
    companion.last += 1
    const changes = [{ kind: 'all', reason: 'overflow' }]
    await companion.push(gateway.adminAddress, { sequence: companion.last, state: 'closed', changes })
    expect(await left()).toEqual([])
  })
})

describe('a mutation', () => {
  test('that wrote nothing drops nothing', async () => {
    answerMutation = (asked) => ({ 'Trellis-Statement': companion.state('nothing', asked) })
    await mutate()
    expect(await left()).toEqual(names)
  })

  test('whose writes are reported drops what they reach', async () => {
    answerMutation = reported
    await mutate()
    expect(await left()).toEqual(['Two'])
  })

  test.each<[string, Answer]>([
    ['that says nothing of its writes', () => ({})],
    ['with a forged statement', () => ({ 'Trellis-Statement': 'nothing; hmac=00' })],
    [
      'whose row the gateway has not got',
      (asked) => ({
        'Trellis-Statement': companion.state(`rows ${companion.incarnation}.900.aaaaaaaaaaaaaaaa`, asked),
      }),
    ],
  ])('%s drops all', async (_, answer) => {
    answerMutation = answer
    await mutate()
    expect(await left()).toEqual([])
  })

  test('that changed a session drops what callers are shown, and keeps what all share', async () => {
    const session = { 'woocommerce-session': 'Session abc' }
    const cart = () => send('query One { a }', session)
    await expect.poll(cart).toBe(true)
    answerMutation = (asked) => ({ 'Trellis-Statement': companion.state('own', asked) })
    await send('mutation { a }', session)
    expect(await cart()).toBe(false)
    expect(await left()).toEqual(names)
  })
})

test('a form of the administration without a statement drops all', async () => {
  companion.respondToWrite = (_, wire) => wire.respond({ content: '{}' })
  await fetch(`${gateway.publicAddress}/wp-admin/post.php`, { method: 'POST', body: 'a=b' })
  companion.respondToWrite = respond
  expect(await left()).toEqual([])
})
