import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { examine } from '../../src/gateway/doctor.ts'
import { keyPair } from '../support/certificates.ts'
import { runCommand } from '../support/command.ts'
import { type Origin, type Script, startOrigin } from '../support/origin.ts'
import { freePort } from '../support/ports.ts'

let folder: string
let origin: Origin
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trellis-doctor-'))
  origin = await startOrigin()
})
afterAll(async () => {
  await origin.close()
  await rm(folder, { recursive: true })
})

const doctor = async (config: object, words: readonly string[] = []) => {
  const file = join(folder, 'trellis.yaml')
  await writeFile(file, JSON.stringify(config))
  const { end, ...output } = await runCommand(['doctor', '-c', file, ...words], { examine })
  const stdout = output.stdout + output.stderr
  return { end, stdout, lines: stdout.trimEnd().split('\n') }
}

const served: Script = (_, wire) => wire.respond({ content: '{}' })
const open = (upstream: object = {}) => ({
  contract: 'open',
  mount: '/',
  upstream: { targets: [origin.origin], ...upstream },
})
const site = (more: object = {}) => ({
  contract: 'site',
  names: 'same',
  mount: '/wp-json',
  upstream: { targets: [origin.origin], basePath: '/wp-json', host: 'preserve' },
  ...more,
})
const withPorts = async (config: { services?: object; [key: string]: unknown } = {}) => ({
  listen: { port: await freePort() },
  admin: { port: await freePort() },
  services: { api: open() },
  ...config,
})

const index = (root: string) =>
  JSON.stringify({
    name: 'Site',
    home: 'http://site.example',
    namespaces: ['wp/v2'],
    routes: { '/': { _links: { self: [{ href: `http://site.example${root}/` }] } } },
  })
const wordpress =
  (
    path: string,
    root: string,
    more: Script = (_, wire) => wire.respond({ status: 404, content: '{}' }),
  ): Script =>
  (request, wire, count) =>
    request.target === path
      ? wire.respond({ headers: { 'Content-Type': 'application/json' }, content: index(root) })
      : more(request, wire, count)

const takenPort = async (): Promise<number> => {
  const port = await freePort()
  const server = createServer().listen(port, '127.0.0.1')
  onTestFinished(() => void server.close())
  return port
}

type Broken = readonly [what: string, first: RegExp, config: () => Promise<object>, script?: Script]

const named = ([what, first, config, script = served]: Broken) => ({ what, first, config, script })

const publicUrl = 'http://site.example'

describe('trellis doctor names in its first line', () => {
  const broken: readonly Broken[] = [
    [
      'a port that is taken',
      /^fault +listen\.port: .*another program listens there: stop it/,
      async () => ({ ...(await withPorts()), listen: { port: await takenPort() } }),
    ],
    [
      'an address of another machine',
      /^fault +admin\.port: 203\.0\.113\.9:\d+: that is no address of this machine/,
      async () => withPorts({ admin: { host: '203.0.113.9', port: await freePort(), token: 'x' } }),
    ],
    [
      'more memory than there is',
      /^fault +memory: .*write cache\.maxBytes: \d+MiB$/,
      () => withPorts({ cache: { maxBytes: '900GiB' } }),
    ],
    [
      'an expired certificate',
      /^fault +listen\.tls\.cert: expired on .*: renew it/,
      async () => withPorts({ listen: { port: await freePort(), tls: keyPair('expired') } }),
    ],
    [
      'a certificate of another host',
      /^fault +listen\.tls\.cert: does not name shop\.example, .*correct publicUrl$/,
      async () =>
        withPorts({
          publicUrl: 'https://shop.example',
          listen: { port: await freePort(), tls: keyPair('good') },
        }),
    ],
    [
      'a server that is down',
      /^fault +upstream of api: http:\/\/127\.0\.0\.1:1 does not respond \(ECONNREFUSED\): start it/,
      () => withPorts({ services: { api: open({ targets: ['http://127.0.0.1:1'] }) } }),
    ],
    [
      'a name that does not exist',
      /^fault +upstream of pets: http:\/\/nosuchhost\.invalid has no address \(\w+\): correct upstream\.targets/,
      () =>
        withPorts({
          services: {
            pets: {
              contract: 'openapi',
              document: join(process.cwd(), 'config/pets.example.yaml'),
              mount: '/',
              upstream: { targets: ['http://nosuchhost.invalid'] },
            },
          },
        }),
    ],
    [
      'a health check that fails',
      /^fault +upstream of api: .*health check GET \/up with 404.*upstream\.health\.path/,
      () => withPorts({ services: { api: open({ health: { path: '/up' } }) } }),
      (_, wire) => wire.respond({ status: 404 }),
    ],
    [
      'a clock that is wrong',
      /^fault +upstream of api: The clock of .* is 36\d\d s behind .*NTP/,
      () => withPorts(),
      (_, wire) =>
        wire.respond({ headers: { Date: new Date(Date.now() - 3_610_000).toUTCString() }, content: '{}' }),
    ],
    [
      'another REST root',
      /^fault +upstream of site: .*set upstream\.basePath to \/index\.php\/wp-json/,
      () => withPorts({ publicUrl, services: { site: site() } }),
      wordpress('/index.php/wp-json/', '/index.php/wp-json'),
    ],
    [
      'plain permalinks',
      /^fault +upstream of site: .*Settings, Permalinks/,
      () => withPorts({ publicUrl, services: { site: site() } }),
      wordpress('/?rest_route=/', '/wp-json'),
    ],
    [
      'a companion with another token',
      /^fault +upstream of site: .*token/i,
      () =>
        withPorts({
          publicUrl,
          services: { site: site({ changes: { token: 'a-token-of-at-least-32-characters-x' } }) },
        }),
      wordpress('/wp-json/', '/wp-json', (request, wire) =>
        wire.respond({ status: request.target.startsWith('/?trellis') ? 401 : 404 }),
      ),
    ],
    [
      'a Redis that is down',
      /^fault +cache\.shared: 127\.0\.0\.1:1 does not respond .*correct cache\.shared\.url$/,
      () => withPorts({ cache: { shared: { url: 'redis://127.0.0.1:1' } } }),
    ],
    [
      'rate limits of workers',
      /^warning rateLimits: each worker admits its part.*cache\.shared\.url/,
      () =>
        withPorts({
          workers: 0,
          rateLimits: [{ name: 'all', service: 'api', match: '* /**', by: 'address', max: 10, window: '1m' }],
        }),
    ],
    [
      'API keys that browsers may not send',
      /^warning cors\.headers: lacks x-api-key/,
      async () => {
        await writeFile(join(folder, 'keys'), `a:${'0'.repeat(64)}\n`)
        return withPorts({
          cors: { origins: ['https://front.example'], headers: ['Content-Type'] },
          services: { api: { ...open(), access: { apiKeys: { file: join(folder, 'keys') } } } },
        })
      },
    ],
  ]
  test.each(broken.map(named))('$what', async ({ first, config, script }) => {
    origin.script = script
    const { end, lines } = await doctor(await config())
    expect(lines[0]).toMatch(first)
    expect(end).toBe(first.source.startsWith('^fault') ? 1 : 0)
  })
})

test('of a set-up without a fault it says what it has seen', async () => {
  origin.script = served
  const { end, lines } = await doctor(await withPorts())
  expect(lines.filter((line) => !line.startsWith('ok'))).toEqual([])
  expect(lines.map((line) => line.slice(8).split(':')[0])).toEqual([
    'Node',
    'workers',
    'memory',
    'listen.port',
    'admin.port',
    'upstream of api',
  ])
  expect(end).toBe(0)
})

test('it says how many core lists the companion describes completely, and what keeps the others from it', async () => {
  origin.script = wordpress('/wp-json/', '/wp-json', ({ target }, wire) =>
    target.endsWith('/wp/v2/posts')
      ? wire.respond({
          headers: {
            'Content-Type': 'application/json',
            'Trellis-Tags': 'v1;n=0;blogs=1',
            'Trellis-Incomplete': 'plugin shop: all options',
          },
          content: '[]',
        })
      : wire.respond({
          headers: { 'Content-Type': 'application/json', 'Trellis-Tags': 'v1;n=0;complete;blogs=1' },
          content: '[]',
        }),
  )
  const { lines } = await doctor(await withPorts({ publicUrl, services: { blog: site() } }))
  expect(lines.filter((line) => line.includes('core lists'))).toEqual([
    expect.stringMatching(
      /^note +upstream of blog: the companion describes 6 of 7 core lists completely; .*: posts \(plugin shop: all options\)$/,
    ),
  ])
})

test('it names the plugins that the companion was tested with in other versions', async () => {
  origin.script = wordpress('/wp-json/', '/wp-json', (_seen, wire) =>
    wire.respond({
      headers: {
        'Content-Type': 'application/json',
        'Trellis-Tags': 'v1;n=0;complete;blogs=1',
        'Trellis-Untested': 'woocommerce 10.6.1, pods 3.4',
      },
      content: '[]',
    }),
  )
  const { lines } = await doctor(await withPorts({ publicUrl, services: { blog: site() } }))
  expect(lines.filter((line) => line.includes('was not tested with'))).toEqual([
    expect.stringMatching(
      /^note +upstream of blog: the companion was not tested with woocommerce 10\.6\.1, pods 3\.4, only with other versions: /,
    ),
  ])
})

test('with --json it prints the same for scripts', async () => {
  const { end, stdout } = await doctor(
    await withPorts({ services: { api: open({ targets: ['http://127.0.0.1:1'] }) } }),
    ['--json'],
  )
  expect(JSON.parse(stdout)).toMatchObject({
    faults: 1,
    checks: [{ state: 'fault', subject: 'upstream of api' }, ...Array(5).fill({ state: 'ok' })],
  })
  expect(end).toBe(1)
})

test('a configuration with faults is not examined', async () => {
  const { end, lines } = await doctor({ listen: { prot: 1 }, services: { api: open() } })
  expect(lines[0]).toMatch(/listen\.prot: unknown key \(did you mean "port"\?\)$/)
  expect(end).toBe(1)
})
