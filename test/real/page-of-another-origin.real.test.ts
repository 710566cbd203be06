import { readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startBrowser } from '../support/browser.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { describeWith } from '../support/requirements.ts'
import { blocksOf } from '../support/shown-commands.ts'
import { pngImage } from './image.ts'
import { basic } from './site-under-test.ts'
import { startWordPress, type WordPress } from './wordpress/start-wordpress.ts'

// A page of another origin does through the gateway what it can do with WordPress itself.

const mount = '/index.php/wp-json'

type Given = {
  readonly root: string
  readonly authorization: string
  readonly nonce: string
  readonly image: readonly number[]
}
/** What the script of the page could read of a response. `blocked`: the browser kept it, or did not send the request. */
type Read = Readonly<Record<string, string>>

/** Runs in the page. */
const useSite = async ({ root, authorization, nonce, image }: Given): Promise<Read> => {
  const read: Record<string, string> = {}
  const ask = async (name: string, path: string, init: RequestInit = {}, exposed: readonly string[] = []) => {
    try {
      const response = await fetch(root + path, init)
      const text = await response.text()
      const body = text.startsWith('{') || text.startsWith('[') ? JSON.parse(text) : {}
      const headers = exposed.map((header) => `${header}=${response.headers.has(header)}`)
      read[name] = [response.status, body.code, ...headers].filter((part) => part !== undefined).join(' ')
      return body
    } catch (error) {
      read[name] = `blocked: ${(error as Error).name}`
      return {}
    }
  }
  const write = (body: unknown, more: Record<string, string> = {}, method = 'POST'): RequestInit => ({
    method,
    headers: { 'Content-Type': 'application/json', Authorization: authorization, ...more },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  const totals = ['X-WP-Total', 'X-WP-TotalPages', 'Link']

  for (const time of ['first', 'second']) await ask(`read ${time}`, '/wp/v2/posts?per_page=2', {}, totals)
  await ask('read with cookies', '/wp/v2/posts?per_page=2', { credentials: 'include' }, totals)
  await ask('HEAD', '/wp/v2/posts', { method: 'HEAD' }, totals)
  await ask('index', '/')
  await ask('namespace', '/wp/v2')
  await ask('oembed', '/oembed/1.0/embed?url=http://nowhere.test/')
  await ask('OPTIONS', '/wp/v2/posts', { method: 'OPTIONS' })
  await ask('OPTIONS of the index', '/', { method: 'OPTIONS' })
  await ask('OPTIONS of the batch', '/batch/v1', { method: 'OPTIONS' })
  await ask('If-None-Match', '/wp/v2/posts', { headers: { 'If-None-Match': '"x"' } })

  await ask('invalid parameter', '/wp/v2/posts?per_page=1000')
  await ask('unknown route', '/nothing/v1/here')
  await ask('unknown item', '/wp/v2/posts/987654')
  await ask('wrong method', '/wp/v2/posts', { method: 'DELETE' })
  await ask('no credentials', '/wp/v2/posts', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: '{"title":"x"}',
  })
  await ask('bad JSON', '/wp/v2/posts', write('{'))
  await ask('invalid argument', '/wp/v2/posts', write({ status: 7 }))
  await ask('wrong password', '/wp/v2/posts', write({ title: 'x' }, { Authorization: 'Basic eDp5' }))

  const { id } = await ask('create', '/wp/v2/posts', write({ title: 'From a page', status: 'draft' }))
  const item = `/wp/v2/posts/${id}`
  await ask('edit context', `${item}?context=edit`, { headers: { Authorization: authorization } })
  for (const method of ['PUT', 'PATCH']) await ask(method, item, write({ title: method }, {}, method))
  await ask('method override', item, write({ title: 'x' }, { 'X-HTTP-Method-Override': 'PATCH' }))
  await ask('DELETE', `${item}?force=true`, {
    method: 'DELETE',
    headers: { Authorization: authorization },
  })
  await ask('nonce', '/wp/v2/posts', {
    ...write({ title: 'By cookie', status: 'draft' }),
    credentials: 'include',
    headers: { 'Content-Type': 'application/json', 'X-WP-Nonce': nonce },
  })
  await ask('wrong nonce', '/wp/v2/posts', {
    ...write({ title: 'x' }),
    credentials: 'include',
    headers: { 'Content-Type': 'application/json', 'X-WP-Nonce': 'wrong' },
  })

  const requests = ['One', 'Two'].map((title) => ({
    method: 'POST',
    path: '/wp/v2/posts',
    body: { title, status: 'draft' },
  }))
  await ask('batch', '/batch/v1', write({ requests }))
  await ask('batch without requests', '/batch/v1', write({}))
  await ask('batch with Idempotency-Key', '/batch/v1', write({ requests }, { 'Idempotency-Key': '"page-1"' }))

  const file = new Blob([new Uint8Array(image)], { type: 'image/png' })
  const raw = (more: Record<string, string>): RequestInit => ({
    method: 'POST',
    headers: {
      Authorization: authorization,
      'Content-Type': 'image/png',
      'Content-Disposition': 'attachment; filename="raw.png"',
      ...more,
    },
    body: file,
  })
  await ask('raw upload', '/wp/v2/media', raw({}))
  await ask('raw upload with a wrong hash', '/wp/v2/media', raw({ 'Content-MD5': '0'.repeat(32) }))
  const form = new FormData()
  form.set('file', file, 'form.png')
  form.set('title', 'Of a form')
  await ask('multipart upload', '/wp/v2/media', {
    method: 'POST',
    headers: { Authorization: authorization },
    body: form,
  })
  return read
}

/** What docs/browser.md shows. */
type ShownModule = {
  posts(page?: number): Promise<{
    readonly posts: readonly { readonly id: number }[]
    readonly pages: number
    readonly from: string
  }>
  createPost(user: string, password: string, post: object): Promise<number>
  createPosts(
    user: string,
    password: string,
    posts: readonly object[],
  ): Promise<readonly { readonly status: number; readonly code?: string }[]>
  upload(user: string, password: string, file: File): Promise<string>
}

describeWith('php', 'a page of another origin', () => {
  describeWith('chromium', 'in Chromium', () => {
    let wordpress: WordPress
    let browser: Browser
    let pages: Server
    let origin: string
    let given: Omit<Given, 'root'>
    const gateways: TestGateway[] = []

    const start = async (cors: Record<string, unknown>): Promise<string> => {
      const gateway = await startTestGateway({
        cors,
        services: {
          site: {
            contract: 'site',
            mount,
            names: 'same',
            upstream: { targets: [wordpress.origin], basePath: mount },
            cache: { rules: [{ match: 'GET /wp/v2/**', ttl: '60s' }] },
          },
        },
      })
      gateways.push(gateway)
      return gateway.publicAddress + mount
    }
    /** Of a browser that is logged in to WordPress. */
    let cookies: Awaited<ReturnType<BrowserContext['storageState']>>

    const logIn = async (): Promise<void> => {
      const context = await browser.newContext()
      const { username } = wordpress.credentials.admin
      await context.request.post(`${wordpress.origin}/wp-login.php`, {
        maxRedirects: 0,
        form: { log: username, pwd: 'admin-password', testcookie: '1' },
        headers: { Cookie: 'wordpress_test_cookie=WP%20Cookie%20check' },
      })
      const nonce = await context.request.get(`${wordpress.origin}/wp-admin/admin-ajax.php?action=rest-nonce`)
      given = {
        authorization: basic(wordpress.credentials.admin),
        nonce: await nonce.text(),
        image: [...pngImage(20, 10)],
      }
      expect(given.nonce).toMatch(/^[0-9a-f]{10}$/)
      cookies = await context.storageState()
      await context.close()
    }
    const page = async (): Promise<Page> => {
      const context = await browser.newContext({ storageState: cookies })
      const opened = await context.newPage()
      await opened.goto(origin)
      return opened
    }
    const readAt = async (root: string): Promise<Read> => {
      const opened = await page()
      const read = await opened.evaluate(useSite, { root, ...given })
      await opened.context().close()
      return read
    }

    beforeAll(async () => {
      wordpress = await startWordPress()
      browser = await startBrowser()
      pages = createServer((_, response) => response.setHeader('Content-Type', 'text/html').end('<p>Page'))
      await new Promise<void>((resolve) => pages.listen(0, '127.0.0.1', resolve))
      origin = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`
      await logIn()
    })
    afterAll(async () => {
      for (const gateway of gateways) await gateway.close()
      await browser?.close()
      pages?.close()
      await wordpress?.stop()
    })

    let direct: Read

    test('reads from the gateway what it reads from WordPress, refusals included', async () => {
      direct = await readAt(wordpress.restRoot)
      expect(direct).toMatchObject({
        index: '200',
        'bad JSON': '400 rest_invalid_json',
        nonce: '201',
        batch: '207',
      })
      expect(await readAt(await start({}))).toEqual(direct)
    })

    test('with cors, features of the gateway are added', async () => {
      const root = await start({ origins: [origin], credentials: true })
      expect(await readAt(root)).toEqual({
        ...direct,
        'If-None-Match': '200',
        'method override': '200',
        'batch with Idempotency-Key': '207',
      })
    })

    test('a page of an origin that cors does not list reads nothing', async () => {
      const root = await start({ origins: ['http://app.test'], credentials: true })
      const read = await readAt(root)
      expect(new Set(Object.values(read))).toEqual(new Set(['blocked: TypeError']))
    })

    test('docs/browser.md goes as it is written', async () => {
      const document = await readFile(new URL('../../docs/browser.md', import.meta.url), 'utf8')
      const root = await start({ origins: [origin] })
      const module = blocksOf(document, 'js').join('\n').replace('http://127.0.0.1:8080/wp-json', root)
      const opened = await page()
      const { username, password } = wordpress.credentials.admin
      await opened.addScriptTag({
        type: 'module',
        content: `${module}\nglobalThis.api = { posts, createPost, createPosts, upload }`,
      })
      const seen = await opened.evaluate(
        async ([user = '', secret = '', ...image]) => {
          const { api } = globalThis as unknown as { api: ShownModule }
          const thrown = (promise: Promise<unknown>) =>
            promise.then(
              () => 'nothing',
              ({ status, code, params }) => [status, code, Object.keys(params ?? {}).join()].join(' ').trim(),
            )
          const first = await api.posts()
          // The first reading of the site's index may come in between: responses from before it are fetched again.
          let again = await api.posts()
          for (let reads = 0; reads < 20 && !again.from.includes('hit'); reads += 1) again = await api.posts()
          const id = await api.createPost(user, secret, { title: 'From the page', status: 'publish' })
          const after = await api.posts()
          const many = [{ title: 'One' }, { title: 'Two', status: 7 }]
          const file = new File([new Uint8Array(image.map(Number))], 'page.png', { type: 'image/png' })
          return {
            count: first.posts.length,
            pages: first.pages > 1,
            hit: again.from.includes('hit'),
            isFirst: after.posts[0]?.id === id,
            many: (await api.createPosts(user, secret, many)).map(({ status, code }) =>
              [status, code].join(' ').trim(),
            ),
            source: /page.*\.png$/.test(await api.upload(user, secret, file)),
            wrongPassword: await thrown(api.createPost(user, 'wrong', {})),
            wrongPage: await thrown(api.posts(0)),
          }
        },
        [username, password, ...given.image.map(String)],
      )
      expect(seen).toEqual({
        count: 5,
        pages: true,
        hit: true,
        isFirst: true,
        many: ['201', '400 rest_invalid_param'],
        source: true,
        wrongPassword: expect.stringMatching(/^401 /),
        wrongPage: '400 rest_invalid_param page',
      })
      await opened.context().close()
    })

    test('it can read that WordPress is down', async () => {
      const root = await start({})
      const opened = await page()
      const statusOf = (path: string) =>
        opened.evaluate(async (url) => (await fetch(url)).status, root + path)
      expect(await statusOf('/wp/v2/posts?page=2')).toBe(200)
      // By then the gateway has been told whom the route allows.
      await expect.poll(() => statusOf('/wp/v2/posts?page=0').catch(() => 0)).toBe(400)
      await wordpress.stop()
      expect([502, 503]).toContain(await statusOf('/wp/v2/posts?page=3'))
    })
  })
})
