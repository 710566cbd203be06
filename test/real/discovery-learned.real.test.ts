import { afterAll, beforeAll, expect, test } from 'vitest'
import WPAPI from 'wpapi'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'
import { describeWith } from '../support/requirements.ts'
import { caseHeader, type Relay, startRelay } from './differential/relay.ts'
import { basic } from './site-under-test.ts'
import { startWordPress, type WordPress } from './wordpress/start-wordpress.ts'

// The recommended way to run WordPress behind the gateway: its own address is the gateway's.

describeWith('php', 'routes learned from a real WordPress', () => {
  let wordpress: WordPress
  let relay: Relay
  let gateway: TestGateway
  let root: string
  let cases = 0

  beforeAll(async () => {
    const port = await freePort()
    wordpress = await startWordPress({
      publicUrl: `http://127.0.0.1:${port}`,
      plugins: ['due-posts'],
      inactivePlugins: ['garden-notes'],
    })
    relay = await startRelay(wordpress.origin, { restoresHost: true })
    gateway = await startTestGateway({
      listen: { host: '127.0.0.1', port },
      services: {
        site: {
          contract: 'site',
          mount: '/index.php/wp-json',
          names: 'same',
          upstream: { targets: [relay.origin], basePath: '/index.php/wp-json' },
          cache: { rules: [{ match: 'GET /*/v2/**', ttl: '60s' }], harmlessFields: [caseHeader] },
        },
        pages: { contract: 'open', mount: '/', upstream: { targets: [relay.origin] } },
      },
    })
    root = `${gateway.publicAddress}/index.php/wp-json`
    // The index waits for the upstream's; from then on its routes are known.
    await expectStatus('/', 200)
  })
  afterAll(async () => {
    await gateway?.close()
    await relay?.close()
    await wordpress?.stop()
  })

  type Seen = { status: number; cacheStatus: string; reached: number; body: unknown }

  const ask = async (path: string, init: RequestInit & { asAdmin?: boolean } = {}): Promise<Seen> => {
    cases += 1
    const { asAdmin = false, ...rest } = init
    const headers: Record<string, string> = { [caseHeader]: String(cases) }
    if (asAdmin) headers['Authorization'] = basic(wordpress.credentials.admin)
    if (rest.body !== undefined) headers['Content-Type'] = 'application/json'
    const response = await fetch(root + path, { ...rest, headers })
    return {
      status: response.status,
      cacheStatus: response.headers.get('cache-status') ?? '',
      reached: relay.passages(String(cases)).length,
      body: await response.json(),
    }
  }

  const expectStatus = async (path: string, status: number): Promise<void> => {
    expect((await ask(path)).status).toBe(status)
  }

  test('a wrong request to a learned route is refused without the upstream', async () => {
    const seen = await ask('/wp/v2/categories?per_page=0')
    expect(seen).toMatchObject({ status: 400, reached: 0, body: { code: 'rest_invalid_param' } })
  })

  test('a second GET of a learned list is a hit, in another spelling as well', async () => {
    expect((await ask('/wp/v2/tags?per_page=3')).reached).toBe(1)
    const second = await ask('/WP/v2/tags/?per.page=+3&page=1&utm_source=mail')
    expect(second.cacheStatus).toMatch(/^trellis; ?hit/)
    expect(second.reached).toBe(0)
  })

  test('a write to a learned collection outdates its lists and its item, and no other collection', async () => {
    const list = '/wp/v2/categories?per_page=5&_fields=id,description'
    for (const path of [list, '/wp/v2/categories/3', '/wp/v2/comments?per_page=2']) {
      await ask(path)
      expect((await ask(path)).cacheStatus, path).toMatch(/^trellis; ?hit/)
    }
    const body = JSON.stringify({ description: 'written' })
    const write = await ask('/wp/v2/categories/3', { method: 'PUT', asAdmin: true, body })
    expect(write.status).toBe(200)
    expect(JSON.stringify((await ask(list)).body)).toContain('written')
    expect((await ask('/wp/v2/categories/3')).body).toMatchObject({ description: 'written' })
    expect((await ask('/wp/v2/comments?per_page=2')).cacheStatus).toMatch(/^trellis; ?hit/)
  })

  test('wpapi discovers the site through the gateway and follows its links there', async () => {
    const client = await WPAPI.discover(gateway.publicAddress)
    const posts = (await client.root('wp/v2/posts').param('per_page', 2).get()) as {
      _paging: { links: Record<string, string> }
    }
    expect(posts).toHaveLength(2)
    expect(posts._paging.links['next']).toContain(`${root}/wp/v2/posts`)
  })

  test('a changed title is announced after the write', async () => {
    const body = JSON.stringify({ title: 'Another garden' })
    expect((await ask('/wp/v2/settings', { method: 'POST', asAdmin: true, body })).status).toBe(200)
    expect((await ask('/?_fields=name')).body).toEqual({ name: 'Another garden' })
  })

  const announced = async (): Promise<readonly string[]> => {
    const { body } = await ask('/')
    const { routes, namespaces } = body as { routes: Record<string, unknown>; namespaces: string[] }
    return [...namespaces, ...Object.keys(routes)].filter((name) => /garden-notes|contact-form/.test(name))
  }
  const garden = [
    'garden-notes/v1',
    '/garden-notes/v1',
    '/garden-notes/v1/notes',
    '/garden-notes/v1/notes/(?P<id>[\\d]+)',
  ]
  const switchPlugin = async (status: string): Promise<void> => {
    const body = JSON.stringify({ status })
    expect((await ask('/wp/v2/plugins/garden-notes', { method: 'PUT', asAdmin: true, body })).status).toBe(
      200,
    )
  }

  test('the index announces the routes of a plugin as long as it is active, and none of a plugin that is not there', async () => {
    expect(await announced()).toEqual([])
    await switchPlugin('active')
    expect(await announced()).toEqual(garden)
    await expectStatus('/garden-notes/v1/notes', 200)
    await switchPlugin('inactive')
    expect(await announced()).toEqual([])
    await expectStatus('/garden-notes/v1/notes', 404)
  })

  test('a plugin that is deactivated by a link of wp-admin is announced no more', async () => {
    await switchPlugin('active')
    expect(await announced()).toEqual(garden)
    const { publicAddress } = gateway
    const body = new URLSearchParams({ log: 'admin', pwd: 'admin-password' })
    const login = { method: 'POST', body, redirect: 'manual', headers: { Cookie: 'wordpress_test_cookie=1' } }
    const entered = await fetch(`${publicAddress}/wp-login.php`, login as RequestInit)
    const cookie = entered.headers.getSetCookie().map((line) => line.split(';', 1)[0])
    const headers = { Cookie: cookie.join('; ') }
    const page = await (await fetch(`${publicAddress}/wp-admin/plugins.php`, { headers })).text()
    const link = /plugins\.php\?action=deactivate[^"]*garden-notes[^"]*/
      .exec(page)?.[0]
      .replaceAll('&amp;', '&')
    const left = await fetch(`${publicAddress}/wp-admin/${link}`, { headers, redirect: 'manual' })
    expect(left.status).toBe(302)
    expect(await announced()).toEqual([])
  })

  test('a scheduled post shows after the request for scheduled tasks has published it', async () => {
    const date = new Date(Date.now() + 86_400_000).toISOString().slice(0, 19)
    const body = JSON.stringify({ title: 'Scheduled', status: 'future', date_gmt: date })
    const made = await ask('/wp/v2/posts', { method: 'POST', asAdmin: true, body })
    expect(made.body).toMatchObject({ status: 'future' })
    const list = '/wp/v2/posts?per_page=1&_fields=title'
    await ask(list)
    expect((await ask(list)).cacheStatus).toMatch(/^trellis; ?hit/)
    // Its time comes, of which the gateway learns nothing.
    const { id } = made.body as { id: number }
    const due = await fetch(`${wordpress.restRoot}/due-posts/v1/posts/${id}`, { method: 'POST' })
    expect(due.status).toBe(200)
    expect((await ask(list)).cacheStatus).toMatch(/^trellis; ?hit/)
    await fetch(`${gateway.publicAddress}/wp-cron.php`)
    expect(await ask(list)).toMatchObject({ body: [{ title: { rendered: 'Scheduled' } }] })
  })

  test('with the upstream gone, documents and checks stay', async () => {
    await relay.close()
    expect(await ask('/?_fields=name')).toMatchObject({ status: 200, body: { name: 'Another garden' } })
    expect(await ask('/wp/v2/categories?per_page=0')).toMatchObject({ status: 400 })
    expect((await ask('/wp/v2')).status).toBe(200)
    expect((await ask('/wp/v2/categories/4')).status).toBe(502)
    relay = await startRelay(wordpress.origin)
  })
})
