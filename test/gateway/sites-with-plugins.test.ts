import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { checkConfig } from '../../src/gateway/load-config.ts'
import { describeLearnedRoutes, upstreamHints } from '../../src/gateway/upstream-issues.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, type Script, startOrigin } from '../support/origin.ts'

const basePath = '/index.php/wp-json'
const json = { 'Content-Type': 'application/json; charset=UTF-8' }

type Argument = Record<string, unknown>
type Index = {
  namespaces: string[]
  routes: Record<string, { endpoints: { methods: string[]; args: Record<string, Argument> }[] }>
}

const plain = (): Index =>
  JSON.parse(
    readFileSync(new URL('../contracts/fixtures/discovery-wordpress-6.9.json', import.meta.url), 'utf8'),
  )

const argsOf = (index: Index, pattern: string, method: string): Record<string, Argument> => {
  const found = index.routes[pattern]?.endpoints.find(({ methods }) => methods.includes(method))
  if (found === undefined) throw new Error(`no ${method} ${pattern}`)
  return found.args
}

/** What filters such as `rest_post_collection_params` make of the core routes, and a plugin with routes of its own. */
const widened = (): Index => {
  const index = plain()
  const valuesOf = (argument: Argument | undefined): readonly unknown[] =>
    Object.values(argument?.['enum'] ?? [])
  const list = argsOf(index, '/wp/v2/posts', 'GET')
  list['per_page'] = { ...list['per_page'], default: 24, maximum: 1000 }
  const orders = [...valuesOf(list['orderby']), 'rand', 'menu_order']
  list['orderby'] = { ...list['orderby'], default: 'menu_order', enum: orders }
  list['lang'] = { type: 'string', required: false }
  // A taxonomy of a plugin.
  const terms = argsOf(index, '/wp/v2/tags', 'GET')
  const genres = { ...terms, orderby: { ...terms['orderby'], enum: [...valuesOf(terms['orderby']), 'rank'] } }
  for (const method of ['POST', 'PUT']) {
    const pattern = method === 'POST' ? '/wp/v2/posts' : '/wp/v2/posts/(?P<id>[\\d]+)'
    const args = argsOf(index, pattern, method)
    args['status'] = { ...args['status'], enum: [...valuesOf(args['status']), 'archived'] }
  }
  const address = { type: 'object', properties: { company: { type: 'string', required: true } } }
  const args = {
    per_page: { type: 'integer', minimum: 1, maximum: 100, default: 10 },
    page: { type: 'integer', default: 1, minimum: 1 },
    flag: { type: 'boolean', default: false },
    order: { type: 'string', enum: ['asc', 'desc'] },
    day: { type: 'string', format: 'date-time' },
    names: { type: 'array', items: { type: 'string' } },
    ids: { type: 'array', items: { type: 'integer' } },
    user: { type: 'integer', default: 0 },
    needed: { type: 'string', required: true },
    address,
    post_id: { type: 'integer' },
  }
  index.namespaces.push('shop/v1')
  const endpoints = [
    { methods: ['GET'], args },
    { methods: ['POST'], args },
  ]
  const shop = { namespace: 'shop/v1', methods: ['GET', 'POST'], endpoints }
  index.routes = {
    '/shop/v1/things': shop,
    '/wp/v2/genres': {
      namespace: 'wp/v2',
      methods: ['GET'],
      endpoints: [{ methods: ['GET'], args: genres }],
    },
    '/wp/v2/sheets': { ...shop, namespace: 'wp/v2' },
    ...index.routes,
  } as never
  return index
}

let origin: Origin
let index: Index

const script: Script = (request, wire) => {
  const isIndex = request.target === `${basePath}/`
  wire.respond({
    headers: json,
    content: JSON.stringify(isIndex ? index : [{ id: 1, asked: request.target }]),
  })
}

beforeAll(async () => {
  index = widened()
  origin = await startOrigin(script)
})
afterAll(() => origin.close())

describe.each(['wordpress', 'same'])('a site with plugins, names: %s', (names) => {
  let gateway: TestGateway
  const mount = '/site'
  const namespace = names === 'same' ? 'wp/v2' : 'site/v2'

  beforeAll(async () => {
    gateway = await startTestGateway({
      services: {
        site: siteService(origin.origin, {
          mount,
          names,
          discovery: { source: 'upstream' },
          cache: { rules: [{ match: 'GET /**', ttl: '60s' }] },
        }),
      },
    })
    expect((await fetch(`${gateway.publicAddress}${mount}/`)).status).toBe(200)
  })
  afterAll(() => gateway.close())
  beforeEach(() => {
    origin.received.length = 0
  })

  const get = async (path: string): Promise<readonly [number, string]> => {
    const response = await fetch(`${gateway.publicAddress}${mount}/${path}`)
    await response.arrayBuffer()
    return [response.status, response.headers.get('cache-status') ?? '']
  }
  const post = async (path: string, body: unknown): Promise<number> => {
    const init = {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    }
    const response = await fetch(`${gateway.publicAddress}${mount}/${path}`, init)
    await response.arrayBuffer()
    return response.status
  }
  const sent = (): readonly string[] =>
    origin.received.map(({ target }) => decodeURIComponent(target.slice(basePath.length)))

  test.each([
    ['per_page=10'],
    ['orderby=date'],
    ['per_page=500'],
    ['orderby=rand'],
    ['orderby=menu_order'],
    ['lang=de'],
  ])('forwards posts?%s as it is, since the site announces other values', async (query) => {
    expect(await get(`${namespace}/posts?${query}`)).toEqual([200, expect.stringContaining('stored')])
    expect(sent()).toEqual([`/wp/v2/posts?${query}`])
  })

  test('keeps apart what the contract takes for its default and the default of the site', async () => {
    await get(`${namespace}/posts?order=desc&page=1`)
    await get(`${namespace}/posts?per_page=10&order=desc`)
    expect(sent()).toEqual(['/wp/v2/posts', '/wp/v2/posts?per_page=10'].filter((one) => sent().includes(one)))
    expect((await get(`${namespace}/posts`))[1]).toContain('hit')
  })

  test('keeps the order of a list that may be the order of the response', async () => {
    for (const query of [
      'include=3,2&orderby=include',
      'include=2,3&orderby=include',
      'orderby=include_slugs&slug=b,a',
    ])
      await get(`${namespace}/posts?${query}`)
    await get(`${namespace}/genres?include=3,2&orderby=include`)
    expect(sent()).toEqual([
      '/wp/v2/posts?include=3,2&orderby=include',
      '/wp/v2/posts?include=2,3&orderby=include',
      '/wp/v2/posts?orderby=include_slugs&slug=b,a',
      '/wp/v2/genres?include=3,2&orderby=include',
    ])
  })

  test('still refuses and merges what the site announces as the contract has it', async () => {
    expect(await get(`${namespace}/posts?page=0`)).toEqual([400, expect.anything()])
    expect(await get(`${namespace}/pages?per_page=500`)).toEqual([400, expect.anything()])
    await get(`${namespace}/pages?per_page=07&page=1`)
    expect(sent()).toEqual(['/wp/v2/pages?per_page=7'])
  })

  test('takes a status in a write that only the site has', async () => {
    expect(await post(`${namespace}/posts`, { status: 'archived' })).toBe(200)
    expect(await post(`${namespace}/posts/5`, { status: 'archived' })).toBe(200)
    expect(await post(`${namespace}/posts`, { comment_status: 'zzz' })).toBe(400)
  })

  test('every write reaches a list in an order that the contract does not know', async () => {
    await get(`${namespace}/posts?orderby=date&per_page=9`)
    await get(`${namespace}/posts?orderby=rand&per_page=9`)
    await post(`${namespace}/menu-items/3`, { attr_title: 'x' })
    expect((await get(`${namespace}/posts?orderby=rand&per_page=9`))[1]).not.toContain('hit')
  })

  test('announces the values that the site announces', async () => {
    const document = (await (await fetch(`${gateway.publicAddress}${mount}/${namespace}`)).json()) as Index
    const args = argsOf(document, `/${namespace}/posts`, 'GET')
    expect(args['per_page']).toMatchObject({ default: 24, maximum: 1000 })
    expect(args['orderby']).toMatchObject({ default: 'menu_order' })
    expect(args['lang']).toMatchObject({ type: 'string' })
  })

  describe.each([
    ['of a plugin', 'shop/v1/things', '/shop/v1/things'],
    ['of a plugin in the namespace of WordPress', `${namespace}/sheets`, '/wp/v2/sheets'],
  ])('on a learned route %s', (_what, route, upstream) => {
    test.each([
      ['per_page=-1'],
      ['per_page='],
      ['flag=on'],
      ['flag=false'],
      ['order=DESC'],
      ['day=2024-01-01'],
      ['user=0'],
      ['names[0]=x'],
      ['ids[0]=1&ids[1]=2'],
      ['ids[b]=1&ids[a]=2'],
    ])('%s is forwarded as it is', async (query) => {
      expect((await get(`${route}?${query}`))[0]).toBe(200)
      expect(sent()).toEqual([`${upstream}?${query}`])
    })

    test('arrays stay arrays, and a text stays a text', async () => {
      await get(`${route}?names[]=y`)
      await get(`${route}?names=y`)
      expect(sent()).toEqual([`${upstream}?names[0]=y`, `${upstream}?names=y`])
    })

    test('bytes that are not UTF-8 are forwarded', async () => {
      expect((await get(`${route}?order=%E9`))[0]).toBe(200)
      expect(origin.received[0]?.target).toContain('order=%E9')
    })

    test.each([
      [{ post_id: '' }],
      [{ address: {} }],
      [{ address: { company: 5 }, order: 'DESC', ids: 'a b' }],
    ])('a write with %j is forwarded, whatever the index says is required', async (body) => {
      expect(await post(route, body)).toBe(200)
      expect(origin.received[0]?.content.toString()).toBe(JSON.stringify(body))
    })
  })

  test('what merging is left on a learned route: names and the last of equal names, as in PHP, and the order of names', async () => {
    await get('shop/v1/things?user=3&order=a&order=b&per.page=2')
    expect(sent()).toEqual(['/shop/v1/things?order=b&per_page=2&user=3'])
  })

  test('ambiguous requests stay refused', async () => {
    expect((await get('shop/v1/things?rest_route=/wp/v2/posts'))[0]).toBe(400)
    expect((await get('shop/v1/things?_method=DELETE'))[0]).toBe(400)
  })
})

/** A shop: WordPress registers the routes of plugins before its own. */
const crowded = (count: number): Index => {
  const own = plain()
  const args = { page: { type: 'integer', default: 1 } }
  const route = (number: number) => ({
    namespace: 'shop/v1',
    methods: ['GET'],
    endpoints: [{ methods: ['GET'], args }],
    _links: { self: [{ href: `http://wordpress.test/index.php/wp-json/shop/v1/${number}` }] },
  })
  const plugins = Array.from({ length: count }, (_, number) => [`/shop/v1/r${number}`, route(number)])
  own.namespaces.unshift('shop/v1')
  own.routes = Object.fromEntries([...plugins, ...Object.entries(own.routes)])
  return own
}

test.each([['upstream'], ['static']])(
  'core is known beside 800 routes of plugins, discovery: %s',
  async (source) => {
    const shop = crowded(800)
    const ids: Readonly<Record<string, number>> = { categories: 7, tags: 8, users: 4, comments: 9 }
    const own = await startOrigin((request, wire, count) => {
      const { target, method } = request
      const collection = target.split('/')[5]?.split('?')[0] ?? ''
      if (target === `${basePath}/`) return wire.respond({ headers: json, content: JSON.stringify(shop) })
      const item = { id: ids[collection] ?? 1, count }
      const list = method === 'GET' && !/\/\d+$/.test(target.split('?')[0] ?? '')
      return wire.respond({
        status: method === 'POST' ? 201 : 200,
        headers: json,
        content: JSON.stringify(list ? [item] : item),
      })
    })
    const gateway = await startTestGateway({
      services: {
        site: siteService(own.origin, {
          mount: '/site',
          names: 'same',
          discovery: source === 'static' ? { source, identity: { name: 'Site' } } : { source },
          batch: { split: 'item' },
          cache: { rules: [{ match: 'GET /**', ttl: '60s' }] },
        }),
      },
    })
    try {
      expect((await fetch(`${gateway.publicAddress}/site/`)).status).toBe(200)
      const get = async (path: string): Promise<string> => {
        const response = await fetch(`${gateway.publicAddress}/site/wp/v2/${path}`)
        await response.arrayBuffer()
        return `${response.status} ${response.headers.get('cache-status')}`
      }
      await get('categories?per_page=7')
      expect(await get('categories?utm_source=mail&per_page=07')).toContain('hit')
      expect(await get('users?page=1&per_page=7')).toContain('stored')
      expect(await get('users?per_page=07')).toContain('hit')
      expect(await get('comments?per_page=1000')).toMatch(/^400/)
      await get('media?per_page=9')
      const requests = [
        { method: 'POST', path: '/wp/v2/categories', body: { name: 'x' } },
        { method: 'POST', path: '/wp/v2/tags', body: { name: 'x' } },
        { method: 'PUT', path: '/wp/v2/users/4', body: { name: 'x' } },
        { method: 'GET', path: '/wp/v2/categories/7' },
      ]
      const response = await fetch(`${gateway.publicAddress}/site/batch/v1`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', Authorization: 'Basic YTpi' },
        body: JSON.stringify({ requests }),
      })
      const { responses } = (await response.json()) as { responses: { status: number }[] }
      expect(responses.map(({ status }) => status)).toEqual([201, 201, 200, 200])
      expect(await get('categories?per_page=7')).not.toContain('hit')
      expect(await get('users?per_page=7')).not.toContain('hit')
      const shopRoutes = await fetch(`${gateway.publicAddress}/site/`)
      const { routes } = (await shopRoutes.json()) as Index
      const plugins = Object.keys(routes).filter((pattern) => pattern.startsWith('/shop/')).length
      expect(plugins).toBe(source === 'static' ? 0 : 800)
    } finally {
      await gateway.close()
      await own.close()
    }
  },
)

test('a route that cannot be read is a warning on the status page, in check and in routes', async () => {
  const odd = crowded(1)
  const endpoints = [{ methods: ['GET'], args: {} }]
  Object.assign(odd.routes, {
    '/shop/v1/(?!x)\u001by': { namespace: 'shop/v1', methods: ['GET'], endpoints },
  })
  const own = await startOrigin((_, wire) => wire.respond({ headers: json, content: JSON.stringify(odd) }))
  const services = {
    site: siteService(own.origin, { mount: '/site', names: 'same', discovery: { source: 'upstream' } }),
  }
  const gateway = await startTestGateway({ services })
  try {
    const text = '1 announced routes are passed on unread: pattern-unreadable /shop/v1/(?!x)?y'
    expect((await fetch(`${gateway.publicAddress}/site/`)).status).toBe(200)
    const report = (await (await fetch(`${gateway.adminAddress}/status`)).json()) as { notices: unknown }
    expect(report.notices).toEqual([{ subject: 'site', text }])
    const checked = await checkConfig(JSON.stringify({ services }), {})
    if (checked.kind === 'faults') throw new Error('faulty')
    expect(await upstreamHints(checked.config)).toContainEqual({ service: 'site', text })
    expect((await describeLearnedRoutes(checked.config)).refused).toEqual([{ service: 'site', text }])
  } finally {
    await gateway.close()
    await own.close()
  }
})

test('before the index was read nothing is dropped or refused, and every write reaches what is stored', async () => {
  const slow = await startOrigin((request, wire, count) => {
    if (request.target !== `${basePath}/`) return script(request, wire, count)
    wire.respond({ status: 503 })
  })
  const service = siteService(slow.origin, {
    mount: '/site',
    names: 'same',
    discovery: { source: 'upstream' },
    cache: { rules: [{ match: 'GET /**', ttl: '60s' }] },
  })
  const gateway = await startTestGateway({ services: { site: service } })
  try {
    const get = async (query: string): Promise<string> => {
      const response = await fetch(`${gateway.publicAddress}/site/wp/v2/posts?${query}`)
      await response.arrayBuffer()
      return `${response.status} ${response.headers.get('cache-status')}`
    }
    expect(await get('per_page=10')).toContain('stored')
    expect(await get('per_page=500&orderby=rand')).toMatch(/^200/)
    expect(slow.received.map(({ target }) => target)).toContain(`${basePath}/wp/v2/posts?per_page=10`)
    expect(await get('per_page=10')).toContain('hit')
    const init = {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{"attr_title":"x"}',
    }
    await (await fetch(`${gateway.publicAddress}/site/wp/v2/menu-items/3`, init)).arrayBuffer()
    expect(await get('per_page=10')).not.toContain('hit')
  } finally {
    await gateway.close()
    await slow.close()
  }
})

test('a changed announcement drops what is stored, and its new values count', async () => {
  const own = await startOrigin(script)
  index = plain()
  const service = siteService(own.origin, {
    mount: '/site',
    names: 'same',
    discovery: { source: 'upstream', refresh: '1s' },
    cache: { rules: [{ match: 'GET /**', ttl: '60s' }] },
  })
  const gateway = await startTestGateway({ services: { site: service } })
  try {
    const get = async (query: string): Promise<string> => {
      const response = await fetch(`${gateway.publicAddress}/site/wp/v2/posts${query}`)
      await response.arrayBuffer()
      return response.headers.get('cache-status') ?? ''
    }
    expect((await fetch(`${gateway.publicAddress}/site/`)).status).toBe(200)
    expect(await get('?per_page=10')).toContain('stored')
    expect(await get('')).toContain('hit')
    index = widened()
    await expect.poll(() => get('')).not.toContain('hit')
    expect(await get('?per_page=10')).toContain('stored')
    expect(own.received.at(-1)?.target).toBe(`${basePath}/wp/v2/posts?per_page=10`)
  } finally {
    index = widened()
    await gateway.close()
    await own.close()
  }
})

test.each([
  ['/wp/v2/media/7', true],
  ['/wp/v2/pages/7', true],
  ['/wp/v2/posts/7', false],
])('the index is read again after a deletion of %s: %s', async (path, isRead) => {
  index = plain()
  const own = await startOrigin(script)
  const service = siteService(own.origin, {
    mount: '/site',
    names: 'same',
    discovery: { source: 'upstream' },
  })
  const gateway = await startTestGateway({ services: { site: service } })
  try {
    const readings = (): number => own.received.filter(({ target }) => target === `${basePath}/`).length
    await (await fetch(`${gateway.publicAddress}/site/`)).arrayBuffer()
    const before = readings()
    expect(before).toBeGreaterThan(0)
    await (await fetch(`${gateway.publicAddress}/site${path}?force=true`, { method: 'DELETE' })).arrayBuffer()
    await (await fetch(`${gateway.publicAddress}/site/`)).arrayBuffer()
    expect(readings() > before).toBe(isRead)
  } finally {
    await gateway.close()
    await own.close()
  }
})
