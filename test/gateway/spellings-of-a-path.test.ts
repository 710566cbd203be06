import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { closeAfterAll, closeAfterEach } from '../support/close.ts'
import { postBatch, siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { createLatch } from '../support/latch.ts'
import { type Origin, startOrigin } from '../support/origin.ts'
import { exchangeBytes } from '../support/raw-client.ts'

type Tree = { readonly [key: string]: unknown }

const json = { 'Content-Type': 'application/json; charset=UTF-8' }

let origin: Origin
let gateway: TestGateway
beforeAll(async () => {
  origin = await startOrigin()
})
closeAfterAll(() => [origin])
beforeEach(() => {
  origin.script = (_, wire) => wire.respond({ headers: json, content: '{"id":1}' })
  origin.received.length = 0
})

const openService = (more: Tree = {}): Tree => ({
  contract: 'open',
  mount: '/',
  upstream: { targets: [origin.origin] },
  ...more,
})

const start = async (services: Tree, rateLimits: readonly Tree[] = []): Promise<void> => {
  gateway = await startTestGateway({ rateLimits, services })
}

const request = async (method: string, path: string): Promise<Response> => {
  const response = await fetch(gateway.publicAddress + path, { method })
  await response.arrayBuffer()
  return response
}
const statusOf = async (method: string, path: string): Promise<number> => (await request(method, path)).status

describe('a limit of a site counts every spelling of its path', () => {
  const limit = { name: 'comments', service: 'wp', match: 'POST /site/v2/comments', max: 1, window: '1h' }
  const login = { name: 'login', service: 'wp', match: 'POST /jwt-auth/v1/token', max: 1, window: '1h' }
  beforeAll(async () => {
    await start({ wp: siteService(origin.origin, { mount: '/wp' }) }, [limit, login])
    expect(await statusOf('POST', '/wp/site/v2/comments')).toBe(200)
    expect(await statusOf('POST', '/wp/jwt-auth/v1/token')).toBe(200)
  })
  closeAfterAll(() => [gateway])

  test.each([
    '/wp/site/v2/Comments',
    '/wp/SITE/v2/comments',
    '/wp/site/V2/comments/',
    '/wp/site//v2/comments',
    '/wp/site/v2/c%6Fmments',
    '/wp//%73ite/v2///comm%65nts//',
  ])('%s', async (spelling) => {
    expect(await statusOf('POST', spelling)).toBe(429)
  })

  test.each(['/wp/jwt-auth/v1/Token', '/wp/JWT-auth/v1/token', '/wp/jwt-auth/v1//token/'])(
    '%s of a plugin',
    async (spelling) => expect(await statusOf('POST', spelling)).toBe(429),
  )
})

describe('a limit of a site counts items of a batch', () => {
  const limit = { name: 'posts', service: 'site', match: 'PUT /site/v2/posts/*', max: 1, window: '1h' }
  closeAfterEach(() => [gateway])

  test('in every spelling', async () => {
    await start({ site: siteService(origin.origin, { batch: { split: 'item' } }) }, [limit])
    const requests = ['/site/v2/posts/1', '/site/v2/Posts/2', '/SITE/v2/posts/3'].map((path) => ({
      method: 'PUT',
      path,
      body: {},
    }))
    const response = await postBatch(gateway, { requests }, { Authorization: 'Basic YTpi' })
    const { responses } = (await response.json()) as { responses: { status: number }[] }
    expect(responses.map(({ status }) => status).sort()).toEqual([200, 429, 429])
  })
})

describe('a limit of an open service counts every spelling that a server may read as its path', () => {
  const limit = {
    name: 'login',
    service: 'blog',
    match: 'POST /blog/wp-login.php',
    max: 1,
    window: '1h',
  }
  beforeAll(async () => {
    await start({ blog: openService() }, [limit])
    expect(await statusOf('POST', '/blog/wp-login.php')).toBe(200)
  })
  closeAfterAll(() => [gateway])

  test.each([
    '/blog//wp-login.php',
    '//blog///wp-login.php',
    '/blog%2fwp-login.php',
    '/blog/wp-login.php/',
    '/blog/wp-login.php/x/y',
    '/blog/wp-login.php;a',
    '/blog/wp-login.php%3Ba',
    '/blog;x/wp-login.php',
    '/blog/wp-login.php%20',
    '/blog/wp-login.php.',
    '/blog/wp-login.php%20/x',
    '/blog/WP-login.php',
    '/Blog;x%2f%2fwp-login.PHP%20/x?y',
  ])('%s', async (spelling) => expect(await statusOf('POST', spelling)).toBe(429))

  test('and counts no other path', async () => {
    for (const path of ['/blog', '/blog/wp-login', '/blog/x/wp-login.php'])
      expect(await statusOf('POST', path)).toBe(200)
  })

  test('random ones among them', async () => {
    const letter = (text: string) =>
      fc.constantFrom(text, text.toUpperCase(), `%${text.charCodeAt(0).toString(16)}`)
    const letters = (text: string) => fc.tuple(...[...text].map(letter)).map((all) => all.join(''))
    const slash = fc.constantFrom('/', '//', '%2f', '/%2F', ';x/', ';a=b;c/', '%3b/', './', '%20/', '/;a/')
    const end = fc.constantFrom('', '/', '//', '/a/b', ';', ';a/b', '%20', '.', '.%20', '%2Fx', '/x.php')
    await fc.assert(
      fc.asyncProperty(letters('blog'), slash, letters('wp-login.php'), end, async (...parts) => {
        expect(await statusOf('POST', `/${parts.join('')}`)).toBe(429)
      }),
      { numRuns: 60 },
    )
  })
})

describe('all spellings of a site are one resource', () => {
  closeAfterEach(() => [gateway])
  const headers = { 'Content-Type': 'application/json', Authorization: 'Basic YTpi' }
  const spellings = [
    '/posts/4',
    '/p%6Fsts/4',
    '/posts/%34',
    '/posts//4',
    '/posts/4/',
    '/Posts/04',
    '/%50osts//%30%34//',
  ]
  let version: number
  beforeEach(async () => {
    version = 0
    origin.script = ({ method }, wire) => {
      if (method !== 'GET') version += 1
      wire.respond({ headers: json, content: JSON.stringify({ id: 4, type: 'post', slug: 'a', version }) })
    }
    const cache = { rules: [{ match: 'GET /**', ttl: '60s' }] }
    await start({ wp: siteService(origin.origin, { mount: '/wp', names: 'same', cache }) })
  })
  const read = async (path: string): Promise<readonly [number, boolean]> => {
    const response = await fetch(`${gateway.publicAddress}/wp/wp/v2${path}`)
    const { version: seen } = (await response.json()) as { version: number }
    return [seen, (response.headers.get('cache-status') ?? '').includes('; hit')]
  }
  const write = async (method: string, path: string): Promise<void> => {
    const response = await fetch(`${gateway.publicAddress}/wp/wp/v2${path}`, {
      method,
      headers: headers,
      body: '{"slug":"b"}',
    })
    await response.arrayBuffer()
    expect(response.status).toBe(200)
  }

  test('they share one stored response, and the upstream gets one spelling', async () => {
    for (const [at, path] of spellings.entries()) expect(await read(path)).toEqual([0, at > 0])
    expect(origin.received.map(({ target }) => target)).toEqual(['/index.php/wp-json/wp/v2/posts/4'])
    expect(await read('/p%6Fsts')).toEqual([0, false])
    expect(await read('//posts/')).toEqual([0, true])
    expect(origin.received.map(({ target }) => target).at(-1)).toBe('/index.php/wp-json/wp/v2/posts')
  })

  test('after a write in any spelling, reads in every spelling show it', async () => {
    const methods = ['POST', 'PUT', 'DELETE']
    for (const [at, path] of spellings.entries()) {
      for (const one of ['/posts/4', '/posts']) await read(one)
      await write(methods[at % methods.length] ?? '', path)
      for (const one of [...spellings, '/posts', '/p%6Fsts'])
        expect([path, one, (await read(one))[0]]).toEqual([path, one, version])
    }
    expect(version).toBe(spellings.length)
    const sent = new Set(origin.received.map(({ target }) => target))
    expect([...sent].sort()).toEqual(['/index.php/wp-json/wp/v2/posts', '/index.php/wp-json/wp/v2/posts/4'])
  })

  test('a batch decodes and merges nothing, as in WordPress: such an item writes nothing', async () => {
    for (const path of spellings) {
      await read('/posts/4')
      const before = version
      const requests = [{ method: 'PUT', path: `/wp/v2${path}`, body: { slug: 'b' } }]
      const body = JSON.stringify({ requests })
      const response = await fetch(`${gateway.publicAddress}/wp/batch/v1`, {
        method: 'POST',
        headers: headers,
        body,
      })
      const { responses } = (await response.json()) as { responses: { status: number }[] }
      const isPlain = path === '/posts/4' || path === '/Posts/04'
      expect([path, responses[0]?.status, version - before]).toEqual([
        path,
        isPlain ? 200 : 404,
        isPlain ? 1 : 0,
      ])
      expect(await read('/posts/4')).toEqual([version, !isPlain])
    }
  })
})

describe('a write to an open service reaches its URL in every spelling that a server may read as the same', () => {
  closeAfterEach(() => [gateway])
  const profiles = ['safe', 'rfc-shared-cache'] as const
  const numbered = Array.from({ length: 150 }, (_, at) => `name${at}=${at}`)
  const spellings = [
    ['/users/a@b.test', '/users/a%40b.test'],
    ["/docs/it's", '/docs/it%27s'],
    ['/docs/a,b:c', '/docs/a%2Cb%3ac'],
    ['/docs/a%2Fb', '/docs/a%2fb'],
    ['/items/5', '/items/5/'],
    ['/items/5', '/Items//5;v=1'],
    ['/docs?id=a~b', '/docs?id=a%7Eb'],
    ['/docs?id=a%20b', '/docs?id=a+b'],
    ['/docs?id=%C3%A9&%FF=%41', '/docs?id=%c3%a9&%ff=A'],
    ['/docs?id=1&', '/docs?&i%64=1'],
    ['/docs?id', '/docs?id='],
    ['/docs?a=1&b=2', '/docs?b=2&a=1'],
    ['/docs', '/docs?&'],
    [`/docs?${numbered.join('&')}`, `/docs?&${numbered.toReversed().join('&')}`],
    [`/docs?id=${'a~'.repeat(1_000)}`, `/docs?i%64=${'a%7E'.repeat(1_000)}`],
  ] as const
  const ways = spellings.flatMap(([one, other]) => [
    [one, other],
    [other, one],
  ])
  let version: number
  const startOpen = async (profile: (typeof profiles)[number]): Promise<void> => {
    version = 1
    origin.script = ({ method }, wire) => {
      if (method !== 'GET') version += 1
      wire.respond({ headers: json, content: `{"version":${version}}` })
    }
    await start({ open: openService({ cache: { profile, rules: [{ match: 'GET /**', ttl: '1h' }] } }) })
  }
  /** As written: `fetch` would spell it in its own way. */
  const send = async (method: string, path: string): Promise<readonly [string, boolean]> => {
    const head = `${method} ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`
    const answer = await exchangeBytes(gateway.publicAddress, head)
    return [answer.slice(answer.indexOf('{')), answer.includes('trellis; hit')]
  }
  const purge = (url: string): Promise<Response> =>
    fetch(`${gateway.adminAddress}/cache/purge`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ url }),
    })
  /** The spellings in which the response stays stored. */
  const left = async (drop: (path: string) => Promise<unknown>): Promise<readonly string[]> => {
    const stays: string[] = []
    for (const [at, [read, written]] of ways.entries()) {
      await send('GET', `/${at}${read}`)
      expect([read, (await send('GET', `/${at}${read}`))[1]]).toEqual([read, true])
      await drop(`/${at}${written}`)
      const [content, isHit] = await send('GET', `/${at}${read}`)
      if (isHit || content !== `{"version":${version}}`) stays.push(`${read} after ${written}`)
    }
    return stays
  }

  test.each(profiles)('with %s', async (profile) => {
    await startOpen(profile)
    expect(await left((path) => send('PUT', path))).toEqual([])
  })

  test('and so does a purge', async () => {
    await startOpen('safe')
    expect(await left(purge)).toEqual([])
  })

  test.each([
    ['/docs', '/Docs/x'],
    ["/it's", '/it%27s/x'],
    ['/docs', '/docs%2Fx'],
  ])('through another service with the base path %s: %s', async (basePath, written) => {
    await startOpen('safe')
    await gateway.close()
    const { cache } = openService({ cache: { rules: [{ match: 'GET /**', ttl: '1h' }] } })
    const below = openService({ mount: '/below', upstream: { targets: [origin.origin], basePath }, cache })
    await start({ open: openService({ cache }), below })
    await send('GET', '/below/x')
    expect(await send('GET', '/below/x')).toEqual(['{"version":1}', true])
    await send('PUT', written)
    expect(await send('GET', '/below/x')).toEqual(['{"version":2}', false])
  })

  test('through another service, with the tag by which instances of earlier versions know it', async () => {
    const below = openService({ mount: '/below', upstream: { targets: [origin.origin], basePath: '/Docs' } })
    await start({ open: openService(), below })
    await send('PUT', '/Docs/X?b=1&a=2')
    const recent = await fetch(`${gateway.adminAddress}/recent`)
    const { invalidations } = (await recent.json()) as { invalidations: { reach: string[] }[] }
    expect(invalidations.map(({ reach }) => reach)).toEqual([
      ['4:open15:/Docs/X?b=1&a=2', '5:below10:/X?b=1&a=2'],
    ])
  })

  test('a URL that ends like the tag of a whole service empties no cache', async () => {
    await startOpen('safe')
    for (const path of ['/docs', '/items/all']) await send('GET', path)
    await send('POST', '/items/all')
    expect((await send('GET', '/docs'))[1]).toBe(true)
    await expect.poll(() => gateway.metric('trellis_cache_writes_total{', 'service="open"')).toBe(1)
    expect(await gateway.metric('trellis_cache_lost_hits_total{', 'reason="emptied"')).toBe(0)
  })

  test('a read that began before the write is not stored', async () => {
    await startOpen('safe')
    const writes = createLatch()
    origin.script = async ({ method }, wire) => {
      if (method === 'GET') await writes.opened
      wire.respond({ headers: json, content: '{"version":1}' })
    }
    const early = send('GET', '/users/a@b.test')
    await origin.until(() => origin.received.length === 1)
    await send('PUT', '/users/a%40b.test')
    writes.open()
    await early
    expect(await send('GET', '/users/a@b.test')).toEqual(['{"version":1}', false])
  })

  test('other URLs stay stored', async () => {
    await startOpen('safe')
    for (const path of ['/docs/a-c', '/docs?id=a', '/docs']) await send('GET', path)
    await send('PUT', '/docs/a%2Dc/d')
    for (const path of ['/docs/a-c', '/docs?id=a', '/docs'])
      expect(await send('GET', path)).toEqual(['{"version":1}', true])
  })
})

describe('a spelling that servers read in several ways is never stored longer than in the strictest of them', () => {
  const rules = [
    { match: 'GET /site/v2/users/**', ttl: '0s' },
    { match: 'GET /acme/v1/secret', ttl: '0s' },
    { match: 'GET /**', ttl: '60s' },
  ]
  const isStored = async (path: string): Promise<boolean> => {
    await request('GET', path)
    return ((await request('GET', path)).headers.get('cache-status') ?? '').includes('; hit')
  }

  describe('of a site', () => {
    beforeAll(() => start({ wp: siteService(origin.origin, { mount: '/wp', cache: { rules } }) }))
    closeAfterAll(() => [gateway])

    test.each([
      ['/wp/site/v2/Users/5', false],
      ['/wp/SITE/V2/users/5', false],
      ['/wp/acme/v1/Secret', false],
      ['/wp/acme/v1/secret/', false],
      ['/wp/acme/v1/public', true],
      ['/wp/acme/v1/Public', true],
    ])('%s, stored: %s', async (path, stored) => expect(await isStored(path)).toBe(stored))
  })

  describe('of an open service', () => {
    const ruled = [
      { match: 'GET /account/*', ttl: '0s' },
      { match: 'GET /index.php', ttl: '0s' },
      { match: 'GET /**', ttl: '60s' },
    ]
    beforeAll(() => start({ blog: openService({ cache: { rules: ruled } }) }))
    closeAfterAll(() => [gateway])

    test.each([
      ['/account/me', false],
      ['/Account/me', false],
      ['//account/me', false],
      ['/account%2Fme', false],
      ['/account/me/', false],
      ['/account;x/me', false],
      ['/account/me;x', false],
      ['/account/me%20', false],
      ['/index.php/x', false],
      ['/news/me', true],
      ['/news/a;b', true],
    ])('%s, stored: %s', async (path, stored) => expect(await isStored(path)).toBe(stored))
  })

  describe('that the rules describe', () => {
    closeAfterEach(() => [gateway])

    test('with the narrower scope, and without an override that holds for one reading only', async () => {
      const ruled = [
        { match: 'GET /mine/*', ttl: '60s', scope: 'credential' },
        { match: 'GET /live/*', ttl: '0s', override: true },
        { match: 'GET /**', ttl: '60s' },
      ]
      await start({ blog: openService({ cache: { rules: ruled } }) })
      const as = async (name: string, path: string) => {
        const response = await fetch(gateway.publicAddress + path, {
          headers: { Authorization: `Bearer ${name}` },
        })
        await response.arrayBuffer()
        return response.headers.get('cache-status') ?? ''
      }
      await as('ann', '/Mine/a')
      expect(await as('ann', '/Mine/a')).toContain('; hit')
      expect(await as('bob', '/Mine/a')).not.toContain('; hit')
      expect(await as('ann', '/Live/a')).toContain('detail=ambiguous-path')
    })
  })
})

describe('a dot segment with parameters leaves no mount, base path or document', () => {
  const document = {
    openapi: '3.1.0',
    info: { title: 'files', version: '1' },
    paths: {
      '/files/{name}': {
        get: {
          parameters: [{ name: 'name', in: 'path', required: true, schema: { type: 'string' } }],
          responses: { 200: { description: 'a file' } },
        },
      },
    },
  }

  let folder = ''
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'spellings-'))
    await writeFile(join(folder, 'api.json'), JSON.stringify(document))
    await start({
      shop: openService({ mount: '/shop' }),
      api: {
        contract: 'openapi',
        mount: '/api',
        document: join(folder, 'api.json'),
        upstream: { targets: [origin.origin], basePath: '/v1/internal' },
      },
      wp: siteService(origin.origin, { mount: '/wp' }),
    })
  })
  closeAfterAll(() => [gateway])
  afterAll(() => rm(folder, { recursive: true }))

  test.each([
    '/shop/..;/admin',
    '/shop/%2e%2e;/admin',
    '/shop/..%3B/admin',
    '/shop/a/.;x/..;/..;/admin',
    '/shop/..;',
    '/shop/..%20/admin',
    '/api/files/..;',
    '/api/files/..;%2f..;%2fadmin',
    '/api/files/..%3Bx',
    '/wp/site/v2/..;/x',
    '/wp/site/v2/posts/.%3B',
  ])('%s is refused', async (path) => {
    const response = await exchangeBytes(
      gateway.publicAddress,
      `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
    )
    expect(response).toMatch(/^HTTP\/1\.1 400 /)
    expect(origin.received).toHaveLength(0)
  })
})
