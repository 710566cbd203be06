import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import type { CliPorts } from '../../src/cli/cli-ports.ts'
import { runCli } from '../../src/cli/run-cli.ts'
import type { ExplainedRequest } from '../../src/gateway/explain-sentences.ts'
import type { RouteReport } from '../../src/gateway/upstream-issues.ts'
import { documentHints } from '../../src/openapi/hints.ts'
import type { Difference } from '../../src/service/connection.ts'

let folder = ''
let faulty = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trellis-cli-'))
  faulty = join(folder, 'faulty.yaml')
  const lines = [
    'listen: { prot: 80 }',
    'log: { level: loud }',
    'drain: { delay: 5 }',
    'cache: { maxBytes: 1MB }',
    'services: { site: { contract: site, batch: { maxItems: 0 } } }',
  ]
  await writeFile(faulty, lines.join('\n'))
})

const listed: RouteReport['lines'] = [
  {
    method: 'GET',
    path: '/plants',
    hosts: [],
    service: 'plants',
    cached: '5s per credential',
    batchable: false,
    source: 'contract',
  },
  {
    method: 'POST',
    path: '/index.php/site-json/site/v2/posts',
    hosts: [],
    service: 'site',
    cached: '-',
    batchable: true,
    source: 'contract',
  },
]
const learned: RouteReport['lines'][number] = {
  method: 'GET',
  path: '/index.php/site-json/shop/v1/carts',
  hosts: [],
  service: 'site',
  cached: '60s',
  batchable: false,
  source: 'learned',
}

const demo = 'config/gateway.yaml'

const run = async (argv: readonly string[], changes: Partial<CliPorts> = {}) => {
  let stdout = ''
  let stderr = ''
  const asked: ExplainedRequest[] = []
  const stops: number[] = []
  const notices: string[] = []
  const end = await runCli({
    argv,
    env: {},
    version: '1.2.3',
    defaultFile: demo,
    demoFile: demo,
    upstreamFreshness: async () => 'unknown',
    packageFolder: new URL('../../', import.meta.url),
    initFile: join(folder, 'trellis.yaml'),
    readInput: async () => '',
    handedConfig: undefined,
    stdout: { write: (text) => (stdout += text) },
    stderr: { write: (text) => (stderr += text) },
    startGateway: async ({ listen }) => ({
      publicAddress: `http://127.0.0.1:${listen.port}`,
      adminAddress: 'http://127.0.0.1:9090',
      reload: async () => ({ kind: 'unchanged', hash: '' }),
      warn: () => {},
      faulted: () => {},
      drain: async () => 'finished',
    }),
    startTrial: () => Promise.reject(new Error('not here')),
    describeRoutes: async (_config, learn) => ({
      lines: learn ? [...listed, learned] : listed,
      unread: [],
      refused: [],
    }),
    siteFacts: async () => ({ root: undefined, fault: undefined, hasCompanion: false }),
    upstreamIssues: async () => [],
    upstreamHints: async () => [],
    documentHints: async () => [],
    driftReport: async () => [],
    examine: async () => [],
    explain: async (_config, request, learn) => {
      if (learn) return { row: request.target, rowFrom: 'learned' }
      asked.push(request)
      return { row: '/plants', tags: ['plants'], reason: 'no \u001b[31mrule', rule: undefined }
    },
    reloadOnChange: () => {},
    stopOnSignal: (_gateway, graceMs, notice) => {
      stops.push(graceMs)
      notices.push(notice('after-delay'), notice('at-once'))
    },
    ...changes,
  })
  return { end, stdout, stderr, asked, stops, notices }
}

describe('check', () => {
  test('lists every fault with its position, prints their number, and ends with 1', async () => {
    const { end, stdout } = await run(['check', '-c', faulty])
    expect(end).toBe(1)
    expect(stdout.split('\n')).toEqual([
      `${faulty}:1:11 listen.prot: unknown key (did you mean "port"?)`,
      `${faulty}:2:15 log.level: expected one of: trace, debug, info, warn, error, fatal, silent`,
      `${faulty}:3:17 drain.delay: expected a duration with its unit: 250ms, 10s, 5m, 1h or 30d, found a number (did you mean "5s"?)`,
      `${faulty}:4:20 cache.maxBytes: expected a size: bytes as a whole number, or 64KiB, 256MiB, 1GiB (did you mean "1MiB"?)`,
      `${faulty}:5:56 services.site.batch.maxItems: expected a whole number from 1 to 1000`,
      '5 faults',
      '',
    ])
  })

  test.each([
    ['config/gateway.yaml', '2 services'],
    ['config/production.example.yaml', '3 services'],
    ['config/wordpress.example.yaml', '2 services'],
    ['config/openapi.example.yaml', '1 service'],
  ])('finds no fault in %s', async (file, services) => {
    const { end, stdout } = await run(['check', '-c', file], { env: { TRELLIS_ADMIN_TOKEN: 'secret' } })
    expect(stdout.split(': ').at(-1)).toMatch(new RegExp(`^valid, ${services}, hash [0-9a-f]{16}\n$`))
    expect(end).toBe(0)
  })

  test('prints warnings and ends with 0', async () => {
    const file = join(folder, 'allowed.yaml')
    await writeFile(file, 'admin: { host: 0.0.0.0 }\nservices: { plants: { contract: plants } }')
    const { end, stdout } = await run(['check', '-c', file])
    expect(stdout).toContain('warning: admin.host: other machines can reach the admin side')
    expect(end).toBe(0)
  })

  test.each([
    ['an empty file', ''],
    ['a file without services', 'listen: { port: 8080 }'],
    ['no services', 'services: {}'],
  ])('refuses %s, whose demo has public passwords', async (_description, text) => {
    const file = join(folder, 'none.yaml')
    await writeFile(file, text)
    for (const command of ['check', 'start', 'routes']) {
      const { end, stdout, stderr } = await run([command, '-c', file])
      expect([end, stdout + stderr]).toEqual([1, expect.stringContaining(`services: `)])
    }
    const none = await run(['check', '-c', '-'], { readInput: async () => text })
    expect([none.end, none.stdout]).toEqual([1, expect.stringContaining('at least one service')])
  })

  test('warns that a service without targets runs the demo upstream', async () => {
    const file = join(folder, 'implicit.yaml')
    await writeFile(file, 'services: { plants: { contract: plants } }')
    const expected = `${file}: warning: services.plants.upstream.targets: is not set, so that the embedded demo upstream is used`
    expect((await run(['check', '-c', file])).stdout).toContain(expected)
    expect((await run(['start', '-c', file])).stderr).toContain(expected)
    expect((await run(['check', '-c', 'config/gateway.yaml'])).stdout).not.toContain('warning')
  })

  test('names the request headers that pages of other origins cannot send', async () => {
    const file = join(folder, 'cors.yaml')
    const keys = join(folder, 'keys')
    const document = join(folder, 'pets.json')
    await writeFile(keys, `app:${'0'.repeat(64)}`)
    const parameters = ['X-Tenant', 'Accept-Language'].map((name) => ({
      name,
      in: 'header',
      schema: { type: 'string' },
    }))
    const paths = { '/pets': { get: { parameters, responses: {} } } }
    await writeFile(
      document,
      JSON.stringify({ openapi: '3.1.0', info: { title: 'Pets', version: '1' }, paths }),
    )
    const upstream = { targets: ['http://127.0.0.1:1'] }
    const access = { apiKeys: { file: keys, header: 'X-Partner' } }
    const services = {
      site: { contract: 'site', upstream },
      pets: { contract: 'openapi', mount: '/pets', document, upstream, access },
    }
    const checked = async (cors: unknown) => {
      await writeFile(file, JSON.stringify({ cors, services }))
      return (await run(['check', '-c', file], { documentHints })).stdout.split('\n').slice(0, -2)
    }
    const origins = ['https://app.test']
    const lacks = `${file}: warning: cors.headers: lacks`
    const notSent = 'pages of other origins cannot send it'
    expect(await checked({ origins })).toEqual([
      `${lacks} x-partner, which carries the keys of access.apiKeys (services.pets): ${notSent}`,
      `${file}: document of pets: pages of other origins cannot send declared headers that cors.headers lacks: x-tenant`,
    ])
    const headers = [
      'authorization',
      'X-WP-Nonce',
      'Content-Type',
      'Content-Disposition',
      'x-partner',
      'x-tenant',
    ]
    expect(await checked({ origins, headers })).toEqual([
      `${lacks} Content-MD5, which WordPress allows (services.site): ${notSent}`,
    ])
    expect(await checked({})).toEqual([])
  })

  test('prints JSON with --json', async () => {
    const good = await run(['check', '--json'])
    expect(JSON.parse(good.stdout)).toMatchObject({ valid: true, warnings: [], notes: [], upstreams: [] })
    const bad = await run(['check', '--json', '-c', faulty])
    expect(JSON.parse(bad.stdout)).toMatchObject({
      file: faulty,
      valid: false,
      faults: [
        { path: 'listen.prot', line: 1, column: 11, message: 'unknown key', suggestion: 'port' },
        {},
        {},
        {},
        {},
      ],
    })
    expect([good.end, bad.end]).toEqual([0, 1])
  })

  test('prints what of OpenAPI documents is not checked, with --json all of it', async () => {
    const argv = ['check', '-c', 'config/openapi.example.yaml']
    const invalidations = Array.from({ length: 60 }, (_, index) => ({
      service: 'pets',
      text: `note ${index}`,
    }))
    const ports = { documentHints: async () => invalidations, env: { TRELLIS_ADMIN_TOKEN: 'secret' } }
    const { stdout } = await run(argv, ports)
    expect(stdout).toContain('config/openapi.example.yaml: document of pets: note 49\n')
    expect(stdout).toContain('config/openapi.example.yaml: 10 more notes on documents\n')
    const { end, stdout: json } = await run([...argv, '--json'], ports)
    expect([end, JSON.parse(json)]).toMatchObject([0, { valid: true, notes: invalidations }])
  })

  test('reads the file named by -c, or else by TRELLIS_CONFIG', async () => {
    expect((await run(['check'], { env: { TRELLIS_CONFIG: faulty } })).end).toBe(1)
    expect((await run(['check', '-c', 'config/gateway.yaml'], { env: { TRELLIS_CONFIG: faulty } })).end).toBe(
      0,
    )
    expect((await run(['check'], { env: { TRELLIS_CONFIG: '' } })).stdout).toMatch(
      /^config\/gateway.yaml: valid/,
    )
    expect((await run(['check', faulty])).end).toBe(1)
  })

  test('reads standard input with -c -', async () => {
    const readInput = async () => 'listen: { prot: 1 }'
    const { end, stdout } = await run(['check', '-c', '-'], { readInput })
    expect(stdout).toBe('(standard input):1:11 listen.prot: unknown key (did you mean "port"?)\n1 fault\n')
    expect(end).toBe(1)
  })

  test('a missing file is a fault', async () => {
    const { end, stdout } = await run(['check', '-c', 'nowhere.yaml'])
    expect(stdout).toBe(
      'nowhere.yaml:1:1 the file cannot be read, it does not exist (ENOENT)\n1 fault\nName another file with -c FILE, or write ./trellis.yaml with trellis init\n',
    )
    expect(end).toBe(1)
  })
})

test('routes prints an aligned table', async () => {
  const { end, stdout } = await run(['routes'])
  expect(stdout).toBe(
    [
      'METHOD  PATH                                SERVICE  CACHED             BATCHABLE',
      'GET     /plants                             plants   5s per credential  -',
      'POST    /index.php/site-json/site/v2/posts  site     -                  yes',
      '',
    ].join('\n'),
  )
  expect(end).toBe(0)
})

describe('routes --drift', () => {
  const compared = (differences: readonly Difference[]): Partial<CliPorts> => ({
    driftReport: async () => [{ service: 'site', outcome: { kind: 'compared', differences } }],
  })

  test('prints each difference, those that matter first, and their number, and ends with 1', async () => {
    const { end, stdout } = await run(
      ['routes', '--drift'],
      compared([
        { kind: 'argument-missing' as const, matters: false, route: '/site/v2/blocks', argument: 'new' },
        { kind: 'route-missing', matters: true, route: '/site/v2/blocks' },
        {
          kind: 'argument-changed',
          matters: true,
          route: '/site/v2/posts',
          method: 'GET',
          argument: 'per_page\u001b[31m',
          keyword: 'maximum',
          ours: 100,
          theirs: 'x'.repeat(100),
        },
      ]),
    )
    expect(stdout.split('\n')).toEqual([
      'KIND              DRIFT  SERVICE  METHOD  ROUTE            ARGUMENT       KEYWORD  CONTRACT  UPSTREAM',
      'route-missing     yes    site     -       /site/v2/blocks  -              -        -         -',
      `argument-changed  yes    site     GET     /site/v2/posts   per_page?[31m  maximum  100       ${'x'.repeat(59)}…`,
      'argument-missing  -      site     -       /site/v2/blocks  new            -        -         -',
      '3 differences, 2 of drift',
      '',
    ])
    expect(end).toBe(1)
  })

  test('without a difference it ends with 0', async () => {
    expect(await run(['routes', '--drift'], compared([]))).toMatchObject({
      end: 0,
      stdout: '0 differences, 0 of drift\n',
    })
  })

  test('with differences of another version only it ends with 0', async () => {
    const version = {
      kind: 'argument-missing' as const,
      matters: false,
      route: '/site/v2/posts',
      argument: 'format',
    }
    const { end, stdout } = await run(['routes', '--drift'], compared([version]))
    expect(end).toBe(0)
    expect(stdout).toContain('1 difference, 0 of drift\n')
  })

  test('ends with 6 when an index cannot be read', async () => {
    const driftReport: CliPorts['driftReport'] = async () => [
      { service: 'site', outcome: { kind: 'unread', reason: 'unreachable' } },
    ]
    const { end, stdout } = await run(['routes', '--drift'], { driftReport })
    expect(stdout).toBe('site: the index of its upstream could not be read: unreachable\n')
    expect(end).toBe(6)
  })
})

test('routes and explain print JSON with --json, with keys of one word', async () => {
  expect(JSON.parse((await run(['routes', '--json'])).stdout)).toEqual({
    routes: listed,
    unread: [],
    refused: [],
  })
  const { stdout } = await run(['explain', '--json', 'GET', '/plants'])
  expect(JSON.parse(stdout)).toMatchObject({ row: '/plants', tags: ['plants'] })
  const drift = await run(['routes', '--drift', '--json'])
  expect(JSON.parse(drift.stdout)).toEqual({ services: [] })
})

test('routes has a column for hosts where a service has some', async () => {
  const lines = [...listed.slice(0, 1), { ...learned, hosts: ['blog.example', '*.shop.example'] }]
  const { stdout } = await run(['routes'], {
    describeRoutes: async () => ({ lines, unread: [], refused: [] }),
  })
  const cells = stdout.split('\n').map((line) => line.split(/ {2,}/))
  expect(cells.map(([, hosts]) => hosts)).toEqual(['HOSTS', '*', 'blog.example,*.shop.example', undefined])
  expect((await run(['routes'])).stdout).not.toContain('HOSTS')
})

test('schema prints the content of config/gateway.schema.json', async () => {
  const { end, stdout } = await run(['schema'])
  expect(JSON.parse(stdout)).toMatchObject({ title: 'Trellis configuration', additionalProperties: false })
  expect(end).toBe(0)
})

describe('explain', () => {
  test.each([
    ['a path', '/plants?limit=5', '/plants?limit=5'],
    ['a URL', 'http://127.0.0.1:8080/plants', 'http://127.0.0.1:8080/plants'],
    ['a path whose spelling matters', '/a/../b//c%2F?x=%41', '/a/../b//c%2F?x=%41'],
    ['a fragment', '/plants#top', '/plants'],
  ])('explains %s in its original spelling', async (_description, url, target) => {
    const { end, asked } = await run(['explain', 'GET', url, '-H', 'Accept: a/b', '-H', 'X-Two:  c '])
    expect(asked).toEqual([{ method: 'GET', target, headers: { accept: 'a/b', 'x-two': 'c' } }])
    const lines = ['Cookie: a=1', 'cookie: b=2', 'Accept: a/b', 'Accept: c/d'].flatMap((line) => ['-H', line])
    const again = await run(['explain', 'GET', url, ...lines])
    expect(again.asked[0]?.headers).toEqual({ cookie: 'a=1; b=2', accept: 'a/b, c/d' })
    expect(end).toBe(0)
  })

  test('prints one line for each aspect, without control characters', async () => {
    const { stdout } = await run(['explain', 'get', '/plants'])
    expect(stdout).toBe('row     /plants\ntags    plants\nreason  no ?[31mrule\nrule    -\n')
  })
})

describe('--upstreams', () => {
  const issue = {
    service: 'site',
    kind: 'redirect-loop' as const,
    text: 'It redirects \u001b to itself: set host.',
  }

  test('check prints one line for each mismatch, without control characters, and ends with 1', async () => {
    const { end, stdout } = await run(['check', '--upstreams'], { upstreamIssues: async () => [issue] })
    expect(stdout).toContain('upstream of site: It redirects ? to itself: set host.\n')
    expect(end).toBe(1)
    expect((await run(['check', '--upstreams'])).stdout).toContain('the upstreams fit\n')
  })

  test('check sends no request to upstreams without the option', async () => {
    const upstreamIssues = async (): Promise<never> => {
      throw new Error('asked')
    }
    expect(await run(['check'], { upstreamIssues })).toMatchObject({ end: 0 })
  })

  test('routes adds learned routes, marked as such', async () => {
    const { stdout } = await run(['routes', '--upstreams'])
    expect(stdout).toMatch(/^METHOD +PATH +SERVICE +CACHED +BATCHABLE +SOURCE\n/)
    expect(stdout).toMatch(/shop\/v1\/carts .* learned\n/)
    expect(stdout).toMatch(/\/plants .* contract\n/)
  })

  test('routes warns of announced routes that cannot be read', async () => {
    const refused = [{ service: 'site', text: '1 announced routes are passed on unread: x' }]
    const describeRoutes: CliPorts['describeRoutes'] = async () => ({ lines: listed, unread: [], refused })
    const { end, stderr } = await run(['routes', '--upstreams'], { describeRoutes })
    expect([end, stderr]).toEqual([0, `${demo}: warning: upstream of site: ${refused[0]?.text}\n`])
  })

  test('routes names the upstreams whose index cannot be read, and ends with 6', async () => {
    const describeRoutes: CliPorts['describeRoutes'] = async () => ({
      lines: listed,
      unread: [{ service: 'site', reason: 'no connection' }],
      refused: [],
    })
    const { end, stderr } = await run(['routes', '--upstreams'], { describeRoutes })
    expect(stderr).toContain('upstream of site: no routes learned')
    expect(end).toBe(6)
  })

  test('explain includes learned routes', async () => {
    const { stdout } = await run(['explain', '--upstreams', 'GET', '/x/v1/y'])
    expect(stdout).toBe('row       /x/v1/y\nrow from  learned\n')
  })
})

describe('the command line', () => {
  test.each(['start', 'check', 'routes'])(
    '%s without a configuration names the ways to give one, and --demo uses that of the demo',
    async (command) => {
      const without = { defaultFile: undefined }
      const { end, stderr } = await run([command], without)
      expect(stderr).toContain('-c FILE')
      expect(stderr).toContain('./trellis.yaml')
      expect(stderr).toContain('trellis start --demo')
      expect(end).toBe(2)
      expect((await run([command, '--demo'], without)).end).toBe(command === 'start' ? 'running' : 0)
    },
  )
})

describe('start', () => {
  test('prints its addresses and example requests to stderr, and keeps running', async () => {
    const { end, stdout, stderr, stops, notices } = await run(['start'])
    expect(end).toBe('running')
    expect(stdout).toBe('')
    expect(stderr).toContain('http://127.0.0.1:8080/index.php/site-json/site/v2/posts?per_page=2')
    expect(stderr).toContain("'http://127.0.0.1:8080/plants?limit=3'")
    expect(stops).toEqual([40_000])
    expect(notices).toEqual([
      ': requests are served for another 5 s (drain.delay), then those in flight have 30 s (drain.timeout); a second signal ends it immediately',
      ': those in flight have 30 s (drain.timeout); a second signal ends it immediately',
    ])
  })

  test.each([
    ['0.0.0.0', '127.0.0.1'],
    ['[::]', '[::1]'],
  ])('a gateway that listens on every address (%s) prints examples with %s', async (host, loopback) => {
    const { stderr } = await run(['start'], {
      startGateway: async () => ({
        publicAddress: `http://${host}:8080`,
        adminAddress: `http://${host}:9090`,
        reload: async () => ({ kind: 'unchanged', hash: '' }),
        warn: () => {},
        faulted: () => {},
        drain: async () => 'finished',
      }),
    })
    const [where, ...tries] = stderr.split('\n')
    expect(where).toBe(`Trellis listens on http://${host}:8080 (public) and http://${host}:9090 (admin).`)
    expect(tries.join('\n')).not.toContain(host)
    expect(tries.join('\n')).toContain(`'http://${loopback}:8080/plants?limit=3'`)
    expect(tries.join('\n')).toContain(`curl -s http://${loopback}:9090/metrics`)
  })

  test('a gateway without embedded upstreams prints only its addresses', async () => {
    const { stderr } = await run(['start', '-c', 'config/wordpress.example.yaml'])
    expect(stderr).toBe(
      'Trellis listens on http://127.0.0.1:8080 (public) and http://127.0.0.1:9090 (admin).\n',
    )
  })

  test('ends with 1 for faults of the configuration and with 3 when it cannot start', async () => {
    expect((await run(['start', '-c', faulty])).end).toBe(1)
    const { end, stderr } = await run(['start'], {
      startGateway: () => Promise.reject(new Error('listen EADDRINUSE')),
    })
    expect(stderr).toBe('trellis: cannot start: listen EADDRINUSE\n')
    expect(end).toBe(3)
  })

  test.each([
    [
      { code: 'EADDRINUSE', address: '127.0.0.1', port: 8080 },
      'listen.port: another program listens on 127.0.0.1:8080; stop it, or choose another port (EADDRINUSE)',
    ],
    [
      { code: 'EADDRINUSE', address: '127.0.0.1', port: 9090 },
      'admin.port: another program listens on 127.0.0.1:9090; stop it, or choose another port (EADDRINUSE)',
    ],
    [
      { code: 'EACCES', address: '127.0.0.1', port: 8080 },
      'listen.port: this user may not open port 8080; choose one from 1024 on, or grant CAP_NET_BIND_SERVICE (EACCES)',
    ],
    [
      { code: 'EADDRNOTAVAIL', address: '10.9.9.9', port: 9090 },
      'admin.host: 10.9.9.9 is not an address of this machine; 0.0.0.0 means all addresses (EADDRNOTAVAIL)',
    ],
    [
      { syscall: 'bind', code: 'EADDRINUSE', address: '127.0.0.1', port: 8080 },
      'listen.port: another program listens on 127.0.0.1:8080; stop it, or choose another port (EADDRINUSE)',
    ],
    [{ code: 'EMFILE' }, 'listen failed'],
  ])('names the key and the remedy when a socket cannot be opened: %j', async (facts, said) => {
    const error = Object.assign(new Error('listen failed'), { syscall: 'listen', ...facts })
    const startGateway = () => Promise.reject(error)
    const { stderr } = await run(['start'], { startGateway })
    expect(stderr).toBe(`trellis: cannot start: ${said}\n`)
    const demo = await run(['start', '--demo'], { startGateway })
    const variable = said.startsWith('listen') ? 'TRELLIS_PORT=8081' : 'TRELLIS_ADMIN_PORT=9091'
    expect(demo.stderr).toContain(said.replace('another port (', `another port with ${variable} (`))
  })
})
