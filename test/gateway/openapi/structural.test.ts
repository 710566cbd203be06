import { fileURLToPath } from 'node:url'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { closeAfterAll } from '../../support/close.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, startOrigin } from '../../support/origin.ts'

let origin: Origin
let gateway: TestGateway
let config: { services: { api: Record<string, unknown> } }

/** Responses of the upstream to writes, by path. */
const responses: Record<string, { status: number; headers?: Record<string, string> } | 'reset'> = {}

beforeAll(async () => {
  origin = await startOrigin(({ method, target }, wire) => {
    const path = decodeURIComponent(target.split('?')[0] ?? '')
    const response = responses[path]
    if (method === 'GET' && path === '/shops/9/items/9') wire.respond({ status: 404, content: 'none' })
    else if (method === 'GET')
      wire.respond({ content: JSON.stringify({ shops: [{ id: 1 }, { id: '3' }], item: { item: 5 } }) })
    else if (response === 'reset') wire.reset()
    else wire.respond(response ?? { status: 200 })
  })
  config = {
    services: {
      api: {
        contract: 'openapi',
        mount: '/',
        document: fileURLToPath(new URL('./structural.yaml', import.meta.url)),
        upstream: { targets: [origin.origin], retry: { attempts: 1 } },
        invalidation: 'structural',
        resources: [{ operation: 'runJob', invalidates: ['/visits/{shop}'] }],
        cache: { rules: [{ match: 'GET,QUERY /**', ttl: '1h', negativeTtl: '1h' }] },
      },
    },
  }
  gateway = await startTestGateway(config)
})

closeAfterAll(() => [gateway, origin])

const send = async (method: string, path: string): Promise<string> => {
  const response = await fetch(gateway.publicAddress + path, { method }).catch(() => undefined)
  await response?.text()
  return response?.headers.get('cache-status') ?? ''
}

const targets = [
  '/shops',
  '/shops/1',
  '/shops/2',
  '/shops/1/items',
  '/shops/1/items?cheap=true',
  '/shops/1/items/5',
  '/shops/1/items/6',
  '/shops/1/items/6?include=shop',
  '/shops/2/items',
  '/shops/2/items/5',
  '/shops/9/items/9',
  '/visits/1',
  '/visits/2',
  '/featured',
  '/found/x',
  '/stats',
]

/** Is the response to a list of another resource stored after a write to a shop? */
const staysAfterWrite = async (target: string, init: RequestInit = {}): Promise<boolean> => {
  const read = async (): Promise<boolean> => {
    const response = await fetch(gateway.publicAddress + target, init)
    await response.text()
    return response.headers.get('cache-status')?.includes('; hit') === true
  }
  await read()
  if (!(await read())) throw new Error(`${target} is not stored`)
  await send('PUT', '/shops/2')
  return read()
}

describe('every write drops responses that may show other resources', () => {
  test.each([
    ...['$expand', '_embed', '_expand', '_include', '_revinclude', 'embed[]', 'expand[]', 'include[]'],
    ...['embeds', 'expands', 'Includes', 'includeRelated', 'include_related', 'x-include', 'withRelations'],
    ...['joins', 'populated', 'relation', 'sideload', 'preload', 'resolve', 'hydrate', 'nested', 'depth'],
    ...['fields', 'opt_fields', '$select', 'projection', 'expansions', 'inclusions', 'inline', 'eager'],
    ...['filter[include]', 'filter[include][][of]', 'options[with]'],
  ])('by the name of a parameter: %s', async (name) => {
    expect(await staysAfterWrite(`/visits?${encodeURIComponent(name)}=shop`)).toBe(false)
  })

  test.each([
    ['members of JSON', '/visits?where={"any":[{"include":"shop"}]}'],
    ['JSON in a text', '/visits?text={"include":"shop"}'],
    ['braces in a text', '/visits?text=id,shop{id}'],
    ['a query that is one value', '/whole?include=shop'],
  ])('by %s', async (_what, target) => {
    expect(await staysAfterWrite(target)).toBe(false)
  })

  test.each(['X-Expand', 'Prefer'])('by the header %s, which the document does not declare', async (name) => {
    expect(await staysAfterWrite('/visits', { headers: { [name]: 'shop' } })).toBe(false)
  })

  test('other responses stay: a header that the document declares, and one that clients send by themselves', async () => {
    const headers = { 'X-Version': '2', 'X-Requested-With': 'a' }
    expect(await staysAfterWrite('/visits', { headers })).toBe(true)
  })

  test('by the content of a QUERY', async () => {
    const init = {
      method: 'QUERY',
      headers: { 'content-type': 'application/json' },
      body: '{"include":"shop"}',
    }
    expect(await staysAfterWrite('/visits', init)).toBe(false)
  })

  test.each(['', '?page=2&sort=name', '?width=5', '?filter[page]=2', '?where={"page":2}'])(
    'other responses stay: %s',
    async (query) => {
      expect(await staysAfterWrite(`/visits${query}`)).toBe(true)
    },
  )
})

/** The targets that a write drops. */
const dropped = async (method: string, path: string): Promise<readonly string[]> => {
  await send(method, path)
  const statuses = await Promise.all(targets.map((target) => send('GET', target)))
  return targets.filter((_, index) => statuses[index]?.includes('; hit') !== true)
}

/** Paths that are neither items nor lists, and responses that include other resources: every write drops them. */
const always = ['/shops/1/items/6?include=shop', '/featured', '/stats']
const with1 = (...more: readonly string[]) => targets.filter((one) => [...always, ...more].includes(one))

describe('with invalidation: structural a write drops', () => {
  beforeEach(async () => {
    for (const target of targets) await send('GET', target)
  })

  test.each([
    [
      'its item, what is in front of it, and what is declared to show it',
      'PUT',
      '/shops/1/items/5',
      [
        '/shops',
        '/shops/1',
        '/shops/1/items',
        '/shops/1/items?cheap=true',
        '/shops/1/items/5',
        '/shops/2/items/5',
        '/found/x',
      ],
    ],
    [
      'an item with all that is below it',
      'PUT',
      '/shops/2',
      ['/shops', '/shops/2', '/shops/2/items', '/shops/2/items/5'],
    ],
    [
      'the same item in another spelling',
      'PUT',
      '/shops/%30%32',
      ['/shops', '/shops/2', '/shops/2/items', '/shops/2/items/5'],
    ],
    [
      'with an action its item, and what the document declares',
      'POST',
      '/shops/2/close',
      ['/shops', '/shops/2', '/shops/2/items', '/shops/2/items/5', '/visits/2'],
    ],
    ['what the configuration declares', 'POST', '/jobs', ['/visits/1', '/visits/2']],
  ])('%s', async (_what, method, path, expected) => {
    expect(await dropped(method, path)).toEqual(with1(...expected))
  })

  test('only the list, after 201 with the Location of the new item', async () => {
    responses['/shops/9/items'] = { status: 201, headers: { Location: '/shops/9/items/9' } }
    expect(await dropped('POST', '/shops/9/items')).toEqual(with1('/shops', '/shops/9/items/9', '/found/x'))
    responses['/shops/1/items'] = { status: 201 }
    // Items of a collection that a declaration names are dropped under every path.
    const all = targets.filter((one) => /^\/shops(?:\/1|$)|\/items\//.test(one))
    expect(await dropped('POST', '/shops/1/items')).toEqual(with1(...all, '/found/x'))
  })

  test('the same when its outcome is unknown, and nothing when it is refused', async () => {
    responses['/shops/1/items/6'] = { status: 422 }
    expect(await dropped('PUT', '/shops/1/items/6')).toEqual([])
    responses['/shops/1/items/6'] = 'reset'
    expect(await dropped('PUT', '/shops/1/items/6')).toContain('/shops/1/items/6')
  })
})

test('another invalidation drops all stored responses of the service', async () => {
  const [api] = Object.values(config.services)
  await send('GET', '/shops/2')
  expect((await gateway.put({ services: { api: { ...api, invalidation: 'service' } } })).kind).toBe('applied')
  expect(await send('GET', '/shops/2')).toContain('fwd=uri-miss')
  await send('PUT', '/shops/1')
  expect(await send('GET', '/shops/2')).toContain('fwd=uri-miss')
  expect((await gateway.put(config)).kind).toBe('applied')
})

test('explain shows the kind of a path, the reason, and the tags that a write drops', async () => {
  const explain = async (method: string, url: string) =>
    (await fetch(`${gateway.adminAddress}/explain?${new URLSearchParams({ method, url })}`)).json()
  expect(await explain('PUT', '/shops/1/items/05')).toMatchObject({
    resource: 'item of /shops/{shop}/items',
    mayInvalidate: expect.arrayContaining(['api/within/shops/1/items/5', 'api/at/shops/1', 'api/at/shops']),
  })
  expect(await explain('GET', '/shops')).toMatchObject({ resource: 'list of /shops' })
  expect(await explain('POST', '/shops/1/close')).toMatchObject({
    resource: 'action on /shops/{shop}; invalidates /visits/{shop}',
  })
  expect(await explain('GET', '/stats')).toMatchObject({ resource: 'unknown: neither an item nor a list' })
})
