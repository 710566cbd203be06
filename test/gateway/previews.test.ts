import { afterAll, beforeAll, expect, test } from 'vitest'
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
afterAll(async () => {
  await gateway?.close()
  await origin?.close()
})

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
