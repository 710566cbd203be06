import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { builtGateway } from '../support/built-gateway.ts'
import { startGatewayProcess } from '../support/gateway-process.ts'

let main = ''
let folder = ''
beforeAll(async () => {
  main = await builtGateway()
  folder = await mkdtemp(join(tmpdir(), 'trellis-program-'))
})

type End = { readonly code: number | string | null; readonly stdout: string; readonly stderr: string }

/** Runs the program to its end, without -c with the configuration of the demo; a start that does not end is a failure. */
const run = (words: readonly string[], env: Record<string, string> = {}): Promise<End> =>
  new Promise((resolve) => {
    const hasFile = words.includes('-c') || words.includes('schema')
    const args = hasFile ? words : [...words, '--demo']
    const options = { env: { PATH: process.env['PATH'], ...env }, timeout: 50_000 }
    execFile(process.execPath, [main, ...args], options, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : (error.code ?? error.signal ?? null), stdout, stderr })
    })
  })

const fileWith = async (name: string, text: string): Promise<string> => {
  const file = join(folder, name)
  await writeFile(file, text)
  return file
}

test('check reports valid and faulty files, in its exit code too', async () => {
  expect(await run(['check'])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('config/gateway.yaml: valid'),
  })
  const file = await fileWith('faulty.yaml', 'a: 1\nb: 2\nlisten: { port: x }')
  const { code, stdout } = await run(['check', '-c', file])
  expect(stdout).toContain('3 faults')
  expect(code).toBe(1)
})

test('schema prints config/gateway.schema.json', async () => {
  const { code, stdout } = await run(['schema'])
  expect(stdout).toBe(await readFile('config/gateway.schema.json', 'utf8'))
  expect(code).toBe(0)
})

test('the shipped configuration takes its addresses from the environment', async () => {
  const { code, stdout } = await run(['check'], { TRELLIS_PORT: '9090' })
  expect(stdout).toContain('must differ from listen.port (9090)')
  expect(code).toBe(1)
})

test('routes lists both services', async () => {
  const { code, stdout } = await run(['routes'])
  expect(stdout).toMatch(/^GET +\/plants +plants +5s/m)
  expect(stdout).toMatch(/^GET +\/index\.php\/site-json\/site\/v2\/posts +site +60s.* +yes$/m)
  expect(code).toBe(0)
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
  const { code, stdout } = await run([
    'explain',
    'GET',
    '/index.php/site-json/site/v2/posts/007?utm_source=x',
  ])
  expect(stdout).toContain('/site/v2/posts/7\n')
  expect(code).toBe(0)
})

test.each([
  [
    'GET',
    '/index.php/site-json/site/v2/posts?per_page=x&page=0',
    '400 rest_invalid_param: Invalid parameter(s): page, per_page',
  ],
  ['BREW', '/plants', '405: the path takes GET, POST'],
  ['BREW', '/index.php/site-json/site/v2/posts', '404: the path takes GET, POST'],
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

test('explain prints how a response to a request with a bearer token is stored', async () => {
  const { stdout } = await run(['explain', 'GET', '/plants', '-H', 'Authorization: Bearer a'])
  expect(stdout).toMatch(/^cache +read, credential/m)
  expect(stdout).not.toContain('refused')
})

test.each([
  ['/index.php/site-json/site/v2/posts/7', ['site/any/posts', 'site/any/search']],
  ['/plants/7', ['plants/all']],
])('explain names what DELETE %s may invalidate', async (url, tags) => {
  const { stdout } = await run(['explain', 'DELETE', url, '-H', 'Authorization: Bearer a'])
  const [, named = ''] = /^may invalidate +(.*)$/m.exec(stdout) ?? []
  expect(named.split(', ')).toEqual(expect.arrayContaining(tags))
})

test('a port in use is reported, and the process ends with 3 although servers are already open', async () => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const { port } = taken.address() as AddressInfo
  const file = await fileWith(
    'taken.yaml',
    `listen: { port: ${port} }\nadmin: { port: 0 }\nservices: { plants: { contract: plants } }`,
  )
  const { code, stderr } = await run(['start', '-c', file])
  taken.close()
  expect(stderr).toContain(
    `trellis: cannot start: listen.port: another program listens on 127.0.0.1:${port}; `,
  )
  expect(code).toBe(3)
})

test('a started gateway answers, and ends with 0 on SIGTERM', async () => {
  const gateway = await startGatewayProcess({})
  const answer = await fetch(`${gateway.origin}/index.php/site-json/site/v2/posts?per_page=1`)
  expect(answer.status).toBe(200)
  const metrics = await (await fetch(`${gateway.adminOrigin}/metrics`)).text()
  expect(metrics).toContain('trellis_requests_total{service="site",route="/site/v2/posts",method="GET"')
  expect(await gateway.stop()).toBe(0)
}, 120_000)
