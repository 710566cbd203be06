import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { closeAfterEach } from '../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { audience, createKey, type Issuer, issuerName, keyLine, startIssuer } from '../support/issuer.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

type Tree = { readonly [key: string]: unknown }
type HeaderValues = Readonly<Record<string, string>>

let folder: string
let file: string
let issuer: Issuer
let origin: Origin
let gateway: TestGateway

const jsonHeaders = { 'Content-Type': 'application/json; charset=UTF-8' }
const site = '/index.php/site-json'

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trellis-access-caching-'))
  file = join(folder, 'keys')
  await writeFile(file, `${keyLine('ann', 'key-of-ann')}\n${keyLine('bob', 'key-of-bob')}\n`)
  issuer = await startIssuer([await createKey('first')])
})
afterAll(() => issuer.close())
beforeEach(async () => {
  origin = await startOrigin()
  // Each response names the user that the upstream saw.
  origin.script = ({ headers }, wire, count) =>
    wire.respond({
      headers: jsonHeaders,
      content: JSON.stringify({ user: headers['x-user-id'] ?? '', count }),
    })
})
closeAfterEach(() => [gateway, origin])

const jwt = (more: Tree = {}): Tree => ({
  jwks: issuer.url,
  issuer: issuerName,
  audience,
  forward: { sub: 'X-User-Id' },
  ...more,
})
const apiKeys = (more: Tree = {}): Tree => ({ file, ...more })
const start = async (service: Tree, more: Tree = {}): Promise<void> => {
  gateway = await startTestGateway({
    services: { api: { contract: 'open', mount: '/', upstream: { targets: [origin.origin] }, ...service } },
    ...more,
  })
}
const rule = (scope: string): Tree => ({ cache: { rules: [{ match: 'GET /**', ttl: '60s', scope }] } })

type Got = { readonly status: number; readonly cache: string; readonly user: string; readonly text: string }
const get = async (headers: HeaderValues = {}, path = '/x'): Promise<Got> => {
  const response = await fetch(gateway.publicAddress + path, { headers: headers })
  const text = await response.text()
  const user = text.startsWith('{"user"') ? String(JSON.parse(text).user) : ''
  const cache = /;\s*hit/.test(response.headers.get('cache-status') ?? '') ? 'hit' : 'other'
  return { status: response.status, cache, user, text }
}
const key = (name: string): HeaderValues => ({ 'X-Api-Key': `key-of-${name}` })
const as = async (sub: string, header = 'Authorization'): Promise<HeaderValues> => {
  const token = await issuer.token({ claims: { sub } })
  return { [header]: header === 'Authorization' ? `Bearer ${token}` : token }
}

describe('stored responses', () => {
  test('a hit needs the same access as a miss', async () => {
    await start({ ...rule('public'), access: { apiKeys: apiKeys() } })
    expect(await get(key('ann'))).toMatchObject({ status: 200, cache: 'other' })
    expect(await get(key('ann'))).toMatchObject({ status: 200, cache: 'hit' })
    expect((await get()).status).toBe(401)
    expect((await get({ 'X-Api-Key': 'guess' })).status).toBe(401)
    expect(origin.received).toHaveLength(1)
  })

  test('a hit needs an admitted address', async () => {
    await start({ ...rule('public'), access: { deny: ['192.0.2.0/24'] } }, { trustedProxies: ['127.0.0.1'] })
    await get({ 'X-Forwarded-For': '198.51.100.1' })
    expect(await get({ 'X-Forwarded-For': '198.51.100.2' })).toMatchObject({ status: 200, cache: 'hit' })
    expect((await get({ 'X-Forwarded-For': '192.0.2.1' })).status).toBe(403)
  })

  test('public: clients with different API keys share a response, since the upstream sees no key', async () => {
    await start({ ...rule('public'), access: { apiKeys: apiKeys() } })
    await get(key('ann'))
    expect(await get(key('bob'))).toMatchObject({ cache: 'hit' })
    expect(JSON.stringify(origin.received)).not.toContain('key-of')
  })

  test('credential: each API key has separate responses, also when its header does not look like a credential', async () => {
    await start({ ...rule('credential'), access: { apiKeys: apiKeys({ header: 'X-Partner' }) } })
    const partner = (name: string): HeaderValues => ({ 'X-Partner': `key-of-${name}` })
    await get(partner('ann'))
    expect(await get(partner('bob'))).toMatchObject({ cache: 'other' })
    expect(await get(partner('ann'))).toMatchObject({ cache: 'hit' })
    expect(await get(partner('bob'))).toMatchObject({ cache: 'hit' })
    expect(origin.received).toHaveLength(2)
  })

  test.each(['key ann', '\tkey ann', '[null,"key ann"]'])(
    'credential: no Authorization (%j) reads the responses of an API key',
    async (forged) => {
      await start({ ...rule('credential'), access: { apiKeys: apiKeys({ required: 'writes' }) } })
      await get(key('ann'))
      expect(await get({ Authorization: forged })).toMatchObject({ status: 200, cache: 'other' })
      expect(origin.received).toHaveLength(2)
    },
  )

  test('public: a response for a token is not stored, and no client with a token gets a stored one', async () => {
    await start({ ...rule('public'), access: { jwt: jwt({ required: 'never' }) } })
    expect(await get(await as('ann'))).toMatchObject({ user: 'ann', cache: 'other' })
    expect(await get()).toMatchObject({ user: '', cache: 'other' })
    expect(await get()).toMatchObject({ user: '', cache: 'hit' })
    expect(await get(await as('ann'))).toMatchObject({ user: 'ann', cache: 'other' })
  })

  test.each(['public', 'credential'])(
    '%s: a token in a header that does not look like a credential counts as one',
    async (scope) => {
      await start({ ...rule(scope), access: { jwt: jwt({ header: 'X-Who', required: 'never' }) } })
      const [ann, bob] = [await as('ann', 'X-Who'), await as('bob', 'X-Who')]
      expect(await get()).toMatchObject({ user: '' })
      expect(await get(ann)).toMatchObject({ user: 'ann' })
      expect(await get(bob)).toMatchObject({ user: 'bob' })
      expect(await get(ann)).toMatchObject({ user: 'ann', cache: scope === 'public' ? 'other' : 'hit' })
      expect(await get()).toMatchObject({ user: '', cache: 'hit' })
    },
  )

  test('rfc-shared-cache: a token in a header of another name bypasses the cache', async () => {
    const headers = { ...jsonHeaders, 'Cache-Control': 'max-age=60' }
    origin.script = ({ headers: sent }, wire) =>
      wire.respond({ headers, content: JSON.stringify({ user: sent['x-user-id'] ?? '' }) })
    const access = { jwt: jwt({ header: 'X-Who', required: 'never' }) }
    await start({ cache: { profile: 'rfc-shared-cache' }, access })
    expect(await get(await as('ann', 'X-Who'))).toMatchObject({ user: 'ann' })
    expect(await get(await as('bob', 'X-Who'))).toMatchObject({ user: 'bob' })
    expect(await get()).toMatchObject({ user: '', cache: 'other' })
    expect(await get()).toMatchObject({ user: '', cache: 'hit' })
    expect(await get(await as('ann', 'X-Who'))).toMatchObject({ user: 'ann' })
  })

  test('rfc-shared-cache: the response to a POST with such a token serves no later read', async () => {
    const headerLines = { ...jsonHeaders, 'Cache-Control': 'max-age=60', 'Content-Location': '/x' }
    origin.script = ({ headers: sent }, wire) =>
      wire.respond({ headers: headerLines, content: JSON.stringify({ user: sent['x-user-id'] ?? '' }) })
    const access = { jwt: jwt({ header: 'X-Who', required: 'never' }) }
    await start({ cache: { profile: 'rfc-shared-cache' }, access })
    const headers = await as('ann', 'X-Who')
    await (await fetch(`${gateway.publicAddress}/x`, { method: 'POST', headers, body: 'x' })).text()
    expect(await get()).toMatchObject({ user: '', cache: 'other' })
  })

  test('rfc-shared-cache: Vary by a claim keeps users apart, and a client cannot name another one', async () => {
    const headers = { ...jsonHeaders, 'Cache-Control': 'public, max-age=60', Vary: 'X-User-Id' }
    origin.script = ({ headers: sent }, wire) =>
      wire.respond({ headers, content: JSON.stringify({ user: sent['x-user-id'] ?? '' }) })
    await start({ cache: { profile: 'rfc-shared-cache' }, access: { jwt: jwt({ required: 'never' }) } })
    const [ann, bob] = [await as('ann'), await as('bob')]
    expect(await get(ann)).toMatchObject({ user: 'ann' })
    expect(await get(bob)).toMatchObject({ user: 'bob' })
    expect(await get(ann)).toMatchObject({ user: 'ann', cache: 'hit' })
    expect(await get({ ...bob, 'X-User-Id': 'ann' })).toMatchObject({ user: 'bob', cache: 'hit' })
    expect(await get({ 'X-User-Id': 'ann' })).toMatchObject({ user: '', cache: 'other' })
    expect(await get({ 'X-User-Id': 'bob' })).toMatchObject({ user: '', cache: 'hit' })
  })

  test('a client cannot split or bypass the cache with a header that the gateway writes', async () => {
    await start({ ...rule('public'), access: { jwt: jwt({ required: 'never' }) } })
    await get()
    expect(await get({ 'X-User-Id': 'root' })).toMatchObject({ user: '', cache: 'hit' })
  })

  test('concurrent users never share a request to the upstream', async () => {
    await start({ ...rule('credential'), access: { jwt: jwt() } })
    const users = ['ann', 'bob', 'cleo', 'dan']
    const headers = await Promise.all(users.map((user) => as(user)))
    const responses = await Promise.all([...headers, ...headers].map((one) => get(one)))
    expect(responses.map(({ user }) => user)).toEqual([...users, ...users])
  })
})

describe('rate limits', () => {
  const limit = (by: string): Tree => ({
    rateLimits: [{ name: 'all', service: 'api', by, max: 1, window: '1h' }],
  })
  const statuses = async (...headers: readonly HeaderValues[]): Promise<number[]> => {
    const seen: number[] = []
    for (const one of headers) seen.push((await get(one)).status)
    return seen
  }

  test('by key: one count for each name of a key, one for each address without a key', async () => {
    await start({ access: { apiKeys: apiKeys({ required: 'never' }) } }, limit('key'))
    expect(await statuses(key('ann'), key('ann'), key('bob'), {}, {})).toEqual([200, 429, 200, 200, 429])
  })

  test('by claim: tokens of one user share a count', async () => {
    await start({ access: { jwt: jwt({ required: 'never' }) } }, limit('claim:sub'))
    const [ann, again, bob] = [await as('ann'), await as('ann'), await as('bob')]
    expect(ann).not.toEqual(again)
    expect(await statuses(ann, again, bob, {}, {})).toEqual([200, 429, 200, 200, 429])
  })

  test('a refused credential is not counted for its owner', async () => {
    await start({ access: { apiKeys: apiKeys() } }, limit('key'))
    expect(await statuses({ 'X-Api-Key': 'ann' }, { 'X-Api-Key': 'key-of-ann ' }, key('ann'))).toEqual([
      401, 200, 429,
    ])
  })
})

describe('batches', () => {
  const batch = async (
    requests: readonly Tree[],
    headers: HeaderValues = {},
    more: Tree = {},
  ): Promise<Response> =>
    fetch(`${gateway.publicAddress}${site}/batch/v1`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
      body: JSON.stringify({ requests, ...more }),
    })
  type Items = {
    readonly responses: readonly { readonly status: number; readonly body: { readonly code?: string } }[]
  }
  const itemsOf = async (response: Response): Promise<Items['responses']> =>
    ((await response.json()) as Items).responses
  const startSite = async (access: Tree, more: Tree = {}): Promise<void> => {
    gateway = await startTestGateway({
      services: {
        site: siteService(origin.origin, { batch: { split: 'item', ...more }, access }),
      },
    })
  }

  test('an item needs what the same request needs on its own', async () => {
    await startSite({ jwt: jwt({ required: 'writes' }) })
    const requests = [
      { method: 'GET', path: '/site/v2/posts/1' },
      { method: 'POST', path: '/site/v2/posts/2', body: { title: 'x' } },
      { method: 'DELETE', path: '/site/v2/posts/3' },
    ]
    const without = await itemsOf(await batch(requests))
    expect(without.map(({ status }) => status)).toEqual([200, 401, 401])
    expect(without[1]?.body.code).toBe('trellis_credential_missing')
    expect(origin.received.map(({ method }) => method)).toEqual(['GET'])
    const withToken = await itemsOf(await batch(requests, await as('ann')))
    expect(withToken.map(({ status }) => status)).toEqual([200, 200, 200])
  })

  test.each(['all', 'writes'])(
    'required: %s, with a bad token: the whole batch is refused',
    async (required) => {
      await startSite({ jwt: jwt({ required }) })
      const response = await batch([{ method: 'GET', path: '/site/v2/posts/1' }], {
        Authorization: 'Bearer bad',
      })
      expect(response.status).toBe(401)
      expect(origin.received).toEqual([])
    },
  )

  test('required: all: the whole batch is refused without a token', async () => {
    await startSite({ jwt: jwt({ required: 'all' }) })
    expect((await batch([{ method: 'GET', path: '/site/v2/posts/1' }])).status).toBe(401)
  })

  test.each(['item', 'whole'])('split %s: an item cannot set a credential or a claim', async (split) => {
    const sent: string[] = []
    origin.script = ({ head, content }, wire) => {
      sent.push(head + content.toString())
      const item = { body: { id: 1 }, status: 200, headers: [] }
      const isBatch = head.includes('/batch/v1')
      wire.respond({
        status: isBatch ? 207 : 200,
        headers: jsonHeaders,
        content: JSON.stringify(isBatch ? { responses: [item, item] } : { id: 1 }),
      })
    }
    await startSite(
      {
        jwt: jwt({ header: 'X-Who', required: 'writes', forward: { sub: 'X-User-Id', tenant: 'X-Tenant' } }),
        apiKeys: apiKeys({ header: 'X-Partner', required: 'never' }),
      },
      { split },
    )
    const own = async (): Promise<Tree> => ({
      'X-User-Id': 'root',
      'X-Tenant': 'root',
      x_user_id: 'root',
      'X-Partner': 'key-of-bob',
      'X-Who': (await as('root', 'X-Who'))['X-Who'],
    })
    const headers = await own()
    const requests = [1, 2].map((id) => ({
      method: 'POST',
      path: `/site/v2/posts/${id}`,
      body: {},
      headers,
    }))
    const without = await itemsOf(await batch(requests))
    expect(without.map(({ status }) => status)).toEqual([401, 401])
    expect(sent).toEqual([])
    const items = await itemsOf(
      await batch(requests, { ...(await as('ann', 'X-Who')), 'X-Partner': 'key-of-ann' }),
    )
    expect(items.map(({ status }) => status)).toEqual([200, 200])
    expect(sent.join('\n').toLowerCase()).toContain('x-user-id')
    expect(sent.join('\n')).toContain('ann')
    expect(sent.join('\n')).not.toMatch(/root|key-of/)
    expect(sent.join('\n')).not.toContain(headers['X-Who'])
  })

  test('split whole: each item of an upstream batch carries the claims of the token', async () => {
    const bodies: string[] = []
    origin.script = ({ head, content }, wire) => {
      bodies.push(content.toString())
      const item = { body: { id: 1 }, status: 200, headers: [] }
      const isBatch = head.includes('/batch/v1')
      wire.respond({
        status: isBatch ? 207 : 200,
        headers: jsonHeaders,
        content: JSON.stringify(isBatch ? { responses: [item, item] } : { id: 1 }),
      })
    }
    await startSite({ jwt: jwt({ required: 'writes' }) }, { split: 'whole' })
    const requests = [1, 2].map((id) => ({ method: 'POST', path: `/site/v2/posts/${id}`, body: {} }))
    expect((await batch(requests, await as('ann'))).status).toBe(207)
    expect(bodies).toHaveLength(1)
    expect(bodies[0]?.toLowerCase().match(/"x-user-id":"ann"/g)).toHaveLength(2)
  })

  test('an Idempotency-Key belongs to one API key: another client at the same address gets its own response', async () => {
    await startSite({ apiKeys: apiKeys() })
    const requests = [{ method: 'POST', path: '/site/v2/posts/1', body: { title: 'x' } }]
    const once = { 'Idempotency-Key': '"k-1"' }
    const first = await (await batch(requests, { ...key('ann'), ...once })).text()
    expect(await (await batch(requests, { ...key('ann'), ...once })).text()).toBe(first)
    expect(origin.received).toHaveLength(1)
    await (await batch(requests, { ...key('bob'), ...once })).text()
    expect(origin.received).toHaveLength(2)
  })
})

describe('explain', () => {
  type Explained = Readonly<Record<string, unknown>>
  const explain = async (method: string, url: string, headers: HeaderValues = {}): Promise<Explained> => {
    const query = new URLSearchParams({ method, url })
    for (const [name, value] of Object.entries(headers)) query.append('header', `${name}: ${value}`)
    return (await (await fetch(`${gateway.adminAddress}/explain?${query}`)).json()) as Explained
  }

  test('says what access decides about a request, and what follows for the cache', async () => {
    const access = { deny: ['192.0.2.1'], jwt: jwt({ required: 'writes' }) }
    await start({ ...rule('credential'), access })
    expect(await explain('GET', '/x')).toMatchObject({
      access: 'admitted without a credential',
      addressesNotCheckedHere: 'allow none; deny 192.0.2.1',
      cache: 'read, public',
    })
    expect(await explain('POST', '/x')).toMatchObject({ access: '401: token-missing' })
    const ann = await as('ann')
    const explained = await explain('GET', '/x', ann)
    expect(explained).toMatchObject({ access: 'admitted: token of ann', cache: 'read, credential' })
    expect(JSON.stringify(explained)).not.toContain(ann['Authorization']?.slice(7))
    expect(await explain('GET', '/x', { Authorization: 'Bearer bad' })).toMatchObject({
      access: '401: token-malformed',
    })
    expect(await explain('GET', '/x?_method=DELETE')).toMatchObject({ access: '401: token-missing' })
    expect(origin.received).toEqual([])
  })

  test('names the API key, never shows it', async () => {
    await start({ access: { apiKeys: apiKeys() } })
    const explained = await explain('GET', '/x', key('ann'))
    expect(explained).toMatchObject({ access: 'admitted: API key ann' })
    expect(JSON.stringify(explained)).not.toContain('key-of-ann')
  })

  test('says nothing of access where a service has none', async () => {
    await start({})
    expect(await explain('GET', '/x')).not.toHaveProperty('access')
  })
})
