import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { explain } from '../../src/gateway/explain.ts'
import { describeRoutes } from '../../src/gateway/upstream-issues.ts'
import { runCommand } from '../support/command.ts'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trellis-explain-'))
})
afterAll(() => rm(folder, { recursive: true }))

/** Without -c with the configuration of the demo. */
const run = (words: readonly string[]) =>
  runCommand(words.includes('-c') ? words : [...words, '--demo'], {
    demoFile: 'config/gateway.yaml',
    describeRoutes: (config) => describeRoutes(config),
    explain: (config, request) => explain(config, request),
  })

const fileWith = async (name: string, text: string): Promise<string> => {
  const file = join(folder, name)
  await writeFile(file, text)
  return file
}

test('routes lists both services', async () => {
  const { end, stdout } = await run(['routes'])
  expect(stdout).toMatch(/^GET +\/plants +plants +5s/m)
  expect(stdout).toMatch(/^GET +\/index\.php\/site-json\/site\/v2\/posts +site +60s.* +yes$/m)
  expect(end).toBe(0)
})

test('routes lists the rules of an open service, and no ttl for a plant store that never stores', async () => {
  const target =
    'upstream: { targets: ["http://127.0.0.1:1"] }, cache: { rules: [{ match: GET /RULE, ttl: 60s }] }'
  const file = await fileWith(
    'rules.yaml',
    `services:
  open: { contract: open, mount: /api, ${target.replace('RULE', 'v1/**')} }
  plants: { contract: plants, ${target.replace('RULE', 'plants')} }`,
  )
  const { stdout } = await run(['routes', '-c', file])
  expect(stdout).toMatch(/^GET,HEAD +\/api\/v1\/\*\* +open +60s/m)
  expect(stdout).toMatch(/^GET +\/plants +plants +- /m)
})

test('explain prints the canonical form without sending a request', async () => {
  const { end, stdout } = await run(['explain', 'GET', '/index.php/site-json/site/v2/posts/007?utm_source=x'])
  expect(stdout).toContain('/site/v2/posts/7\n')
  expect(end).toBe(0)
})

test.each([
  [
    'GET',
    '/index.php/site-json/site/v2/posts?per_page=x&page=0',
    '400 rest_invalid_param: Invalid parameter(s): page, per_page',
  ],
  ['BREW', '/plants', '400: no HTTP method has this name'],
  ['PROPFIND', '/plants', '405: the path takes GET, POST'],
  ['PROPFIND', '/index.php/site-json/site/v2/posts', '404: the path takes GET, POST'],
])('explain says why it would refuse %s %s', async (method, url, reason) => {
  const { stdout } = await run(['explain', method, url])
  expect(stdout).toMatch(/^refused {2}/m)
  expect(stdout).toContain(`  ${reason}\n`)
})

test.each([
  ['without a credential', '/plants', []],
  ['with a credential that is no bearer token', '/plants', ['-H', 'Authorization: Basic YTpi']],
  ['with arguments that nobody comes to look at', '/plants?limit=none', []],
])(
  'explain says that a plant store refuses who comes %s, and nothing of a cache',
  async (_what, url, more) => {
    const { stdout } = await run(['explain', 'GET', url, ...more])
    expect(stdout).toContain('refused  401: no bearer token\n')
    expect(stdout).not.toContain('cache')
  },
)

test.each([
  [
    'QUERY /api/search',
    'QUERY /api/search is for the service api, route /search.\nIt is a read. Its response comes from the cache, and is stored for all clients together.\nIts rule says: ttl 1m, staleWhileRevalidate 0s, staleIfError 0s.\n\n',
  ],
  [
    'QUERY /api/other',
    'QUERY /api/other is for the service api.\nIt goes to the upstream each time, and nothing is stored. The reason is no-rule; docs/why-not-cached.md says what you can do.\n\n',
  ],
  [
    'GET /api/v1/x?b=1',
    'GET /api/v1/x?b=1 is for the service api, route /v1/**.\nIt is a read. Its response comes from the cache, and is stored for each credential, so that no other client gets it.\nIts rule says: ttl 90s, staleWhileRevalidate 0s, staleIfError 1h.\n\n',
  ],
  [
    'POST /api/search',
    'POST /api/search is for the service api, route /search.\nIt is a write. Before the client gets the response, stored responses of these are invalidated: /search.\n\n',
  ],
  [
    'GET /other',
    'GET /other is refused: 404: no service is mounted there; trellis routes lists the paths.\n\n',
  ],
])('explain says in sentences what happens to %s', async (request, sentences) => {
  const file = await fileWith(
    'explained.yaml',
    `services:
  api:
    contract: open
    mount: /api
    upstream: { targets: ["http://127.0.0.1:1"] }
    cache:
      rules:
        - { match: QUERY /search, ttl: 60s }
        - { match: 'GET /v1/**', ttl: 90s, staleIfError: 1h, scope: credential }`,
  )
  const header = request.includes('/v1') ? ['-H', 'Authorization: Bearer a'] : []
  const { stdout } = await run(['explain', '-c', file, ...request.split(' '), ...header])
  expect(stdout.slice(0, sentences.length)).toBe(sentences)
  expect(stdout).not.toContain('index of the upstream')
})

test('explain prints how a response to a request with a bearer token is stored', async () => {
  const { stdout } = await run(['explain', 'GET', '/plants', '-H', 'Authorization: Bearer a'])
  expect(stdout).toMatch(/^cache +read, credential/m)
  expect(stdout).not.toContain('refused')
})

test.each([
  ['/index.php/site-json/site/v2/posts/7', ['site/any/posts', 'site/any/search']],
  ['/plants/7', ['plants/all']],
])('explain names what DELETE %s may invalidate', async (url, tags) => {
  const { stdout } = await run(['explain', '--json', 'DELETE', url, '-H', 'Authorization: Bearer a'])
  expect(JSON.parse(stdout).mayInvalidate).toEqual(expect.arrayContaining(tags))
})
