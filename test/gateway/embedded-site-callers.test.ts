import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { EmbeddedUpstream, SeenRequest } from '../../demo/embedded-server.ts'
import { admin, ask, reader, startSite } from '../demo/wired-upstreams.ts'

const seen: SeenRequest[] = []
let site: EmbeddedUpstream & { readonly rest: string }
beforeAll(async () => {
  site = await startSite('wordpress', { onRequest: (request) => seen.push(request) })
})
afterAll(() => site.close())

const wrong = `Basic ${Buffer.from('admin:wrong').toString('base64')}`

describe('rights of anonymous clients, a subscriber and the administrator', () => {
  test.each<[method: string, path: string, statuses: [number, number, number], code: string | undefined]>([
    ['GET', 'posts', [200, 200, 200], undefined],
    ['GET', 'posts?context=edit', [401, 403, 200], 'rest_forbidden_context'],
    ['GET', 'posts?status=draft', [400, 400, 200], 'rest_invalid_param'],
    ['GET', 'posts/58', [401, 403, 200], 'rest_forbidden'],
    ['GET', 'posts/59', [401, 403, 200], 'rest_forbidden'],
    ['GET', 'posts/5?context=edit', [401, 403, 200], 'rest_forbidden_context'],
    ['POST', 'posts', [401, 403, 400], 'rest_cannot_create'],
    ['PUT', 'posts/5', [401, 403, 200], 'rest_cannot_edit'],
    ['DELETE', 'posts/5', [401, 403, 200], 'rest_cannot_delete'],
    ['GET', 'posts/6/revisions', [401, 403, 200], 'rest_cannot_read'],
    ['GET', 'posts/6/autosaves', [401, 403, 200], 'rest_cannot_read'],
    ['POST', 'posts/6/autosaves', [401, 403, 200], 'rest_cannot_edit'],
    ['GET', 'menu-items', [401, 403, 200], 'rest_cannot_view'],
    ['GET', 'templates', [401, 403, 200], 'rest_cannot_manage_templates'],
    ['GET', 'template-parts/lookup?slug=header', [401, 403, 200], 'rest_cannot_manage_templates'],
    ['GET', 'global-styles/themes/twentytwentyfive', [401, 403, 200], 'rest_cannot_manage_global_styles'],
    ['GET', 'navigation', [200, 200, 200], undefined],
    ['GET', 'themes', [401, 403, 200], 'rest_cannot_view_themes'],
    ['GET', 'posts/5?password=x', [403, 403, 403], 'rest_post_incorrect_password'],
    ['GET', 'comments?post=58', [401, 403, 200], 'rest_cannot_read_post'],
    ['GET', 'users', [200, 200, 200], undefined],
    ['GET', 'users/4', [401, 200, 200], 'rest_user_cannot_view'],
    ['GET', 'users/me', [401, 200, 200], 'rest_not_logged_in'],
    ['PUT', 'posts/99999', [404, 404, 404], 'rest_post_invalid_id'],
  ])('%s %s', async (method, path, statuses, code) => {
    const callers = [undefined, reader, admin]
    for (const [index, as] of callers.entries()) {
      const reply = await ask(`${site.rest}/wp/v2/${path}`, {
        method,
        ...(as === undefined ? {} : { as }),
        ...(method === 'GET' ? {} : { body: {} }),
      })
      expect(reply.status, `caller ${index}: ${reply.text.slice(0, 200)}`).toBe(statuses[index])
      if (index === 0 && code !== undefined) expect(reply.body.code).toBe(code)
    }
  })

  test('contact forms say 403 to the anonymous too', async () => {
    const reply = await ask(`${site.rest}/contact-form-7/v1/contact-forms`)
    expect([reply.status, reply.body.code]).toEqual([403, 'wpcf7_forbidden'])
  })
})

describe('headers of a response that depend on its caller', () => {
  test('Allow and the target hints differ by caller, so that one must never get the other’s body', async () => {
    const anonymous = await ask(`${site.rest}/wp/v2/posts/7`)
    const signedIn = await ask(`${site.rest}/wp/v2/posts/7`, { as: admin })
    expect(anonymous.headers.get('allow')).toBe('GET')
    expect(signedIn.headers.get('allow')).toBe('GET, POST, PUT, PATCH, DELETE')
    expect(anonymous.body._links.self[0].targetHints.allow).toEqual(['GET'])
    expect(signedIn.body._links.self[0].targetHints.allow).toHaveLength(5)
  })

  test.each([
    ['anonymous', undefined, null, 'Origin'],
    ['a wrong password', wrong, null, 'Origin'],
    ['an unknown scheme', 'Bearer xyz', null, 'Origin'],
    ['a subscriber', reader, 'no-cache, must-revalidate, max-age=0, no-store, private', null],
    ['the administrator', admin, 'no-cache, must-revalidate, max-age=0, no-store, private', null],
  ])('%s', async (_who, as, cacheControl, vary) => {
    const { status, headers } = await ask(`${site.rest}/wp/v2/posts/8`, as === undefined ? {} : { as })
    expect(status).toBe(200)
    expect([headers.get('cache-control'), headers.get('vary')]).toEqual([cacheControl, vary])
    for (const absent of ['etag', 'last-modified', 'content-length', 'set-cookie'])
      expect(headers.get(absent)).toBeNull()
  })

  test('an Origin is echoed, with credentials allowed', async () => {
    const { headers } = await ask(`${site.rest}/wp/v2/posts/8`, {
      headers: { Origin: 'https://example.com' },
    })
    expect(headers.get('access-control-allow-origin')).toBe('https://example.com')
    expect(headers.get('vary')).toBe('Origin')
  })
})

describe('requests that mean something other than their path', () => {
  test('_method and X-HTTP-Method-Override replace the method', async () => {
    const target = `${site.rest}/wp/v2/posts/11`
    expect((await ask(`${target}?_method=DELETE`, { as: admin })).body.status).toBe('trash')
    const put = await ask(target, {
      method: 'POST',
      as: admin,
      headers: { 'X-HTTP-Method-Override': 'PUT' },
      body: { title: 'Over' },
    })
    expect(put.body.title.raw).toBe('Over')
  })

  test('rest_route replaces the path', async () => {
    const { body } = await ask(`${site.rest}/wp/v2/posts/1?rest_route=/wp/v2/pages`)
    expect(body[0].type).toBe('page')
    expect((await ask(`${site.origin}/?rest_route=/wp/v2/pages/61`)).body.type).toBe('page')
  })

  test('_jsonp makes a script, a bad callback an error without data', async () => {
    const script = await ask(`${site.rest}/wp/v2/posts/1?_jsonp=cb&_fields=id`)
    expect([script.headers.get('content-type'), script.text]).toEqual([
      'application/javascript; charset=UTF-8',
      '/**/cb({"id":1})',
    ])
    const bad = await ask(`${site.rest}/wp/v2/posts/1?_jsonp=a(b)`)
    expect([bad.status, bad.body.code]).toEqual([400, 'rest_callback_invalid'])
  })
})

test('OPTIONS describes a route, and of an unknown one says nothing', async () => {
  const known = await ask(`${site.rest}/wp/v2/posts`, { method: 'OPTIONS' })
  expect(Object.keys(known.body)).toEqual(['namespace', 'methods', 'endpoints', '_links', 'schema'])
  const unknown = await ask(`${site.rest}/wp/v2/nope`, { method: 'OPTIONS' })
  expect([unknown.status, unknown.body]).toEqual([200, []])
})

test('the index announces the contract and the routes beside it, as real clients parse them', async () => {
  const { body } = await ask(`${site.rest}/`)
  expect(body.namespaces[2]).toBe('wp/v2')
  expect(Object.keys(body.routes)).toContain('/wp/v2/posts/(?P<id>[\\d]+)')
  expect(Object.keys(body.routes)).toContain('/wp/v2/users/me')
  expect(body.routes['/wp/v2/posts'].endpoints[0].args.per_page).toMatchObject({
    type: 'integer',
    default: 10,
    maximum: 100,
    required: false,
  })
  expect(body.routes['/wp/v2/posts'].endpoints[0].allow_batch).toEqual({ v1: true })
  expect(body.routes['/contact-form-7/v1/contact-forms'].endpoints[0].args).toEqual([])
})

test('for tests, requests are reported and responses can be delayed', async () => {
  seen.length = 0
  await ask(`${site.rest}/wp/v2/posts?per_page=1`, { as: reader })
  expect(seen).toHaveLength(1)
  expect(seen[0]).toMatchObject({ method: 'GET', target: '/index.php/wp-json/wp/v2/posts?per_page=1' })
  const slow = await startSite('neutral', { latencyMs: 60 })
  try {
    const began = performance.now()
    await ask(`${slow.rest}/site/v2/posts/1`)
    expect(performance.now() - began).toBeGreaterThanOrEqual(55)
  } finally {
    await slow.close()
  }
})

test('a path outside the REST root is a page, and there are no pages', async () => {
  const { status, headers } = await ask(`${site.origin}/index.php/post-number-1/`)
  expect([status, headers.get('content-type')]).toEqual([404, 'text/html; charset=UTF-8'])
})
