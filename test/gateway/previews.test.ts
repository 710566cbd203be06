import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

let origin: Origin
let gateway: TestGateway

beforeAll(async () => {
  origin = await startOrigin((_request, wire) =>
    wire.respond({ headers: { 'Content-Type': 'application/json' }, content: '{"id":1}' }),
  )
  gateway = await startTestGateway({
    services: {
      site: siteService(origin.origin, {
        cache: {
          rules: [
            { match: 'GET /site/v2/users/me', ttl: '10s', scope: 'credential' },
            { match: 'GET /site/v2/**', ttl: '1m' },
          ],
        },
      }),
    },
  })
})
closeAfterAll(() => [gateway, origin])

/** Cache-Status of the second of two equal requests. */
const second = async (path: string, headers: Record<string, string>): Promise<string> => {
  let status = ''
  for (let time = 0; time < 2; time += 1) {
    const response = await fetch(`${gateway.publicAddress}/index.php/site-json/site/v2${path}`, { headers })
    await response.arrayBuffer()
    status = response.headers.get('cache-status') ?? ''
  }
  return status.replace(/; ttl=\d+/, '')
}

const authorization = { Authorization: 'Basic ZWRpdG9yOnNlY3JldA==' }

// The rows of docs/previews.md.
test.each([
  ['a reader', '/posts/1', {}, 'hit'],
  ['cookies that change nothing', '/posts/1', { Cookie: '_ga=1; wordpress_test_cookie=1' }, 'hit'],
  ['an editor', '/posts/1', { Cookie: 'wordpress_logged_in_ab=1' }, 'fwd=bypass; detail=cookie'],
  ['a post password', '/posts/1', { Cookie: 'wp-postpass_ab=1' }, 'fwd=bypass; detail=cookie'],
  ['an author of comments', '/posts/1', { Cookie: 'comment_author_ab=1' }, 'fwd=bypass; detail=cookie'],
  ['draft mode of Next.js', '/posts/1', { Cookie: '__prerender_bypass=1' }, 'fwd=bypass; detail=cookie'],
  ['an application password', '/posts/1/autosaves', authorization, 'fwd=bypass; detail=authorization'],
  ['a nonce', '/posts/1', { 'X-WP-Nonce': 'ab' }, 'fwd=bypass; detail=nonce'],
  ['drafts', '/posts?status=draft', {}, 'fwd=bypass; detail=non-public-status'],
  ['what editors see', '/posts?context=edit', {}, 'fwd=bypass; detail=context-edit'],
  ['a password', '/posts/1?password=ab', {}, 'fwd=bypass; detail=password'],
  ['a token', '/posts/1?token=ab', {}, 'fwd=bypass; detail=api-key'],
  ['a secret', '/posts/1?secret=ab', {}, 'fwd=bypass; detail=api-key'],
  ['a token of a preview', '/posts/1?preview_token=ab', {}, 'fwd=bypass; detail=api-key'],
  ['a token in a header', '/posts/1', { 'X-Preview-Token': 'ab' }, 'fwd=bypass; detail=authorization'],
  ['a parameter that is no secret', '/posts/1?preview=true', {}, 'hit'],
  ['a rule for credentials', '/users/me', authorization, 'hit'],
] as [string, string, Record<string, string>, string][])('%s', async (_who, path, headers, expected) => {
  expect(await second(path, headers)).toMatch(
    new RegExp(`^trellis; ${expected}`.replace('; detail', '.*; detail')),
  )
})

describe('an editor who saves, by every door of a preview', () => {
  /** What the site has published, and the draft beside it: WordPress shows the draft to credentials alone. */
  let published = 0
  let draft = 0
  let wordpress: Origin
  let site: TestGateway

  beforeAll(async () => {
    wordpress = await startOrigin(({ method, target, headers, content }, wire) => {
      if (method === 'POST' && target.includes('autosaves')) draft += 1
      if (method === 'POST' && content.includes('publish')) published = draft
      const isEditor = /Basic|wordpress_logged_in|_wpnonce/.test(JSON.stringify([headers, target]))
      const title = isEditor ? `draft ${draft}` : `published ${published}`
      const post = { id: 1, type: 'post', status: 'publish', title }
      wire.respond({
        // As a plugin for caches in front of WordPress might send.
        headers: { 'Content-Type': 'application/json', 'Cache-Control': 'public, max-age=600' },
        content: JSON.stringify(target.includes('graphql') ? { data: { post } } : post),
      })
    })
    const upstream = { targets: [wordpress.origin] }
    site = await startTestGateway({
      services: {
        site: siteService(wordpress.origin, { cache: { rules: [{ match: 'GET /site/v2/**', ttl: '10m' }] } }),
        graphql: {
          contract: 'graphql',
          mount: '/graphql',
          upstream: { ...upstream, basePath: '/graphql' },
          cache: { rules: [{ match: 'query *', ttl: '10m' }] },
        },
        pages: {
          contract: 'open',
          mount: '/',
          upstream,
          cache: { rules: [{ match: 'GET /**', ttl: '10m' }] },
        },
      },
    })
  })
  afterAll(async () => {
    await site?.close()
    await wordpress?.close()
  })

  const root = '/index.php/site-json/site/v2'
  const query = '{ post(id: 1, asPreview: true) { title } }'
  const post = (body: object, headers: Record<string, string> = {}): RequestInit => ({
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  const editor = { headers: authorization }
  const loggedIn = { headers: { Cookie: 'wordpress_logged_in_ab=editor' } }
  const doors: readonly (readonly [door: string, path: string, init: RequestInit])[] = [
    ['autosaves by REST', `${root}/posts/1/autosaves`, editor],
    ['revisions by REST', `${root}/posts/1/revisions?per_page=1`, editor],
    ['the post itself', `${root}/posts/1`, editor],
    ['preview=true with a nonce', `${root}/posts/1?preview=true&_wpnonce=ab`, {}],
    ['a page with a nonce', '/?p=1&preview=true&_wpnonce=ab', loggedIn],
    ['a page, logged in', '/?p=1&preview=true', loggedIn],
    ['GraphQL by POST', '/graphql', post({ query }, authorization)],
    ['GraphQL by GET', `/graphql?query=${encodeURIComponent(query)}`, editor],
  ]
  const titleAt = async (path: string, init: RequestInit): Promise<string> =>
    /(?:draft|published) \d+/.exec(await (await fetch(site.publicAddress + path, init)).text())?.[0] ?? 'none'
  /** The same request as anybody sends it. */
  const anonymous = (init: RequestInit): RequestInit => (init.method === 'POST' ? post({ query }) : {})

  test.each(doors)('%s: never older than the last save, and for no reader', async (_door, path, init) => {
    const readerPath = path.replace(/&?_wpnonce=ab/, '')
    const write = async (to: string, body: object): Promise<void> => {
      const response = await fetch(site.publicAddress + root + to, post(body, authorization))
      expect(response.status).toBe(200)
    }
    for (let nth = 0; nth < 5; nth += 1) {
      // Readers before and after the editor, of the same URL.
      expect(await titleAt(readerPath, anonymous(init))).toMatch(/^published/)
      await write('/posts/1/autosaves', {})
      expect(await titleAt(path, init)).toBe(`draft ${draft}`)
      expect(await titleAt(path, init)).toBe(`draft ${draft}`)
      expect(await titleAt(readerPath, anonymous(init))).toMatch(/^published/)
    }
    await write('/posts/1', { status: 'publish' })
    expect(published).toBe(draft)
    // A write to the interface drops no pages, as docs/previews.md says.
    if (!path.startsWith('/?')) expect(await titleAt(readerPath, anonymous(init))).toBe(`published ${draft}`)
  })
})
