import { readFileSync } from 'node:fs'
import { beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

let origin: Origin
let gateway: TestGateway
const json = { 'Content-Type': 'application/json; charset=UTF-8' }
const editor = { Authorization: 'Basic ZWRpdG9yOng=' }
const admin = { Authorization: 'Basic YWRtaW46eA==', 'Content-Type': 'application/json' }
const root = (): string => `${gateway.publicAddress}/index.php/site-json/site/v2`

const statusOf = async (path: string, headers: Readonly<Record<string, string>>): Promise<string | null> => {
  const response = await fetch(root() + path, { headers })
  await response.arrayBuffer()
  return response.headers.get('cache-status')
}

beforeAll(async () => {
  origin = await startOrigin()
  origin.script = ({ method, target }, wire) => {
    if (target === '/index.php/wp-json/') wire.respond({ headers: json, content: JSON.stringify(index) })
    else if (target.includes('/categories'))
      wire.respond({ headers: { ...json, 'X-WP-Total': '0', 'X-WP-TotalPages': '1' }, content: '[]' })
    else wire.respond({ headers: json, content: method === 'GET' ? '[{"id":"a//b"}]' : '{"id":7}' })
  }
  gateway = await startTestGateway({
    services: {
      site: siteService(origin.origin, {
        discovery: { source: 'upstream', refresh: '1h' },
        cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1h', scope: 'credential', override: true }] },
      }),
    },
  })
  // What the site announces has been read.
  await vi.waitFor(
    async () => expect((await fetch(`${gateway.publicAddress}/index.php/site-json/`)).status).toBe(200),
    { timeout: 60_000 },
  )
})
closeAfterAll(() => [gateway, origin])

/** Of a real WordPress: what the index does not show, a write may reach. */
const index: unknown = JSON.parse(
  readFileSync(new URL('../contracts/fixtures/discovery-wordpress-6.9.json', import.meta.url), 'utf8'),
)

const drafts = '/templates?context=edit'

beforeEach(async () => {
  await statusOf(drafts, editor)
  await statusOf('/categories', {})
})

// Roles and credentials decide what a user may see: a user who lost them must not get the stored responses of before.
test.each([
  ['a change of roles', '/users/7', 'PUT', '{"roles":["subscriber"]}'],
  [
    'a password that is revoked',
    '/users/7/application-passwords/67ecac34-3115-49cb-b80b-268f0c090924',
    'DELETE',
    undefined,
  ],
])('%s leaves nothing in the parts of callers', async (_, path, method, body) => {
  expect(await statusOf(drafts, editor)).toContain('hit')
  const written = await fetch(root() + path, {
    method,
    headers: admin,
    ...(body === undefined ? {} : { body }),
  })
  expect(written.status).toBe(200)
  expect(await statusOf(drafts, editor)).toContain('fwd=uri-miss')
})

test('a change of roles leaves shared responses', async () => {
  await fetch(`${root()}/users/7`, { method: 'PUT', headers: admin, body: '{"roles":["subscriber"]}' })
  expect(await statusOf('/categories', {})).toContain('hit')
})

test('a write that gives no rights leaves the parts of callers', async () => {
  await fetch(`${root()}/tags/7`, { method: 'PUT', headers: admin, body: '{"name":"x"}' })
  expect(await statusOf(drafts, editor)).toContain('hit')
})
