import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkConfig, configWarnings, loadConfig } from '../../../src/gateway/load-config.ts'

const load = async (file: string | undefined, env: Record<string, string> = {}) => {
  const result = await loadConfig({ file, env })
  if (result.kind === 'faults') throw new Error(JSON.stringify(result.faults))
  return result
}

test('config/gateway.yaml states the defaults', async () => {
  const [spelled, empty] = [await load('config/gateway.yaml'), await load(undefined)]
  expect(spelled.config).toEqual(empty.config)
  expect(spelled.hash).toBe(empty.hash)
  expect(configWarnings(empty.config)).toEqual([])
})

test.each(['config/production.example.yaml', 'config/wordpress.example.yaml'])(
  '%s is valid',
  async (file) => {
    expect((await load(file, { TRELLIS_ADMIN_TOKEN: 'secret' })).hash).toMatch(/^[0-9a-f]{16}$/)
  },
)

test('without a file both services are embedded', async () => {
  const { config } = await load(undefined)
  expect(config.services.map(({ name, mount, upstream }) => [name, mount, upstream.targets])).toEqual([
    ['plants', '/', 'embedded'],
    ['site', '/index.php/site-json', 'embedded'],
  ])
  expect(config.publicUrl).toBe('http://127.0.0.1:8080')
})

test.each([
  ['neutral names', '{ contract: site }', 'GET /site/v2/**'],
  ["the upstream's own names", '{ contract: site, names: same }', 'GET /wp/v2/**'],
  [
    'own names that are the neutral ones',
    '{ contract: site, names: same, upstream: { basePath: /index.php/site-json } }',
    'GET /site/v2/**',
  ],
])('without rules, a site with %s caches its main namespace', async (_description, site, match) => {
  const result = await checkConfig(`services: { a: ${site} }`, {})
  expect(
    result.kind === 'ok' && result.config.services[0]?.cache.rules.map((rule) => rule.match.text),
  ).toEqual([match])
})

const upstream = 'upstream: { targets: ["http://127.0.0.1:1"] }'

test.each([
  ['contract: site, names: same', 'POST /wp/v2/**', 'covers /site/v2/'],
  ['contract: site, names: same', 'PUT /wp/v2/posts/5', 'covers /site/v2/posts/'],
  ['contract: site', 'DELETE /site/v2/posts/*', 'covers /site/v2/posts/'],
  ['contract: site, names: same', 'POST /acme/v1/ping', undefined],
  [`contract: open, mount: /, ${upstream}`, 'POST /wp/v2/**', undefined],
])('{ %s } with the harmless write %j has the warning %j', async (service, match, expected) => {
  const result = await checkConfig(
    `services: { a: { ${service}, cache: { harmlessWrites: ["${match}"] } } }`,
    {},
  )
  const warnings = result.kind === 'ok' ? configWarnings(result.config) : []
  const found = warnings.filter(({ path }) => path === 'services.a.cache.harmlessWrites[0]')
  expect(found.map(({ message }) => message)).toEqual(
    expected === undefined ? [] : [expect.stringContaining(expected)],
  )
})

const site = 'contract: site, names: same, upstream: { targets: ["http://127.0.0.1:1"], basePath: /wp-json }'

test.each([
  ['POST /?wc-ajax=*', site, 'covers /?wc-ajax=checkout'],
  ['POST /?wc-ajax=get_refreshed_fragments', site, undefined],
  ['POST /**', site, 'covers /wp-admin/admin-ajax.php'],
  ['POST /wp-json/wc/store/v1/**', site, 'covers /wp-json/wc/store/v1/checkout'],
  ['POST /wp-json/wc/store/v1/cart/*', site, undefined],
  ['POST /**', 'contract: open, mount: /b, upstream: { targets: ["http://127.0.0.1:1"] }', undefined],
  ['POST /**', site.replace(':1"', ':2"'), undefined],
  ['heartbeat', site, undefined],
  ['failed-login', site.replace('/wp-json', '/api'), 'has no effect'],
  ['heartbeat', site.replace(':1"', ':2"'), 'has no effect'],
])(
  'an open service with the harmless write %j beside { %s } has the warning %j',
  async (write, other, expected) => {
    const result = await checkConfig(
      `services: { b: { ${other.includes('mount') ? other : `mount: /b, ${other}`} }, a: { contract: open, mount: /, ${upstream}, cache: { harmlessWrites: ["${write}"] } } }`,
      {},
    )
    if (result.kind !== 'ok') throw new Error(JSON.stringify(result))
    const found = configWarnings(result.config).filter(
      ({ path }) => path === 'services.a.cache.harmlessWrites[0]',
    )
    expect(found.map(({ message }) => message)).toEqual(
      expected === undefined ? [] : [expect.stringContaining(expected)],
    )
  },
)

test.each([
  ['contract: site, names: same', ['GET /site/v2/**'], [[0, 'matches nothing']]],
  ['contract: site', ['GET /wp/v2/**'], [[0, 'matches nothing: the public names are neutral']]],
  ['contract: site, mount: /api', ['GET /api/site/v2/**'], [[0, 'so write /site/v2/**']]],
  [`contract: open, mount: /api, ${upstream}`, ['GET /api/v1/**', 'GET /v1/**'], [[0, 'so write /v1/**']]],
  [`contract: open, mount: /, ${upstream}`, ['GET /api/v1/**'], []],
  [
    `contract: open, mount: /, ${upstream}`,
    ['GET /a/**', 'GET /a/b', 'GET,HEAD /a/*/c', 'GET /*/b'],
    [
      [1, 'never applies: "GET /a/**"'],
      [2, 'never applies: "GET /a/**"'],
    ],
  ],
  [
    `contract: open, mount: /, ${upstream}`,
    ['GET /*', 'GET /a', 'GET /**', 'GET /a/b'],
    [
      [1, 'never applies: "GET /*"'],
      [3, 'never applies: "GET /**"'],
    ],
  ],
  ['contract: plants', ['GET /plants'], [[0, 'add scope: credential']]],
] as const)('{ %s } with the rules %j has the warnings %j', async (service, matches, expected) => {
  const rules = matches.map((match) => `{ match: "${match}", ttl: 1s }`).join(', ')
  const result = await checkConfig(`services: { a: { ${service}, cache: { rules: [${rules}] } } }`, {})
  expect(result.kind === 'ok' && configWarnings(result.config)).toEqual(
    expected.map(([index, message]) => ({
      path: `services.a.cache.rules[${index}].match`,
      message: expect.stringContaining(message),
    })),
  )
})

test.each([
  ['10.0.0.0/8, "fd00::/8"', false],
  ['10.0.0.0/8, 0.0.0.0/0', true],
  ['"::/0"', true],
])(
  'that every client may choose its address is a warning: trustedProxies [%s]',
  async (proxies, isWarned) => {
    const result = await checkConfig(`trustedProxies: [${proxies}]`, {})
    const paths = result.kind === 'ok' ? configWarnings(result.config).map(({ path }) => path) : []
    expect(paths.includes('trustedProxies')).toBe(isWarned)
  },
)

test.each([
  ['127.0.0.1', 'http://127.0.0.1:8080'],
  ['0.0.0.0', 'http://127.0.0.1:8080'],
  ['"::"', 'http://[::1]:8080'],
  ['fe80::1', 'http://[fe80::1]:8080'],
  ['gateway', 'http://gateway:8080'],
])('without a publicUrl, links of a gateway on %s begin with %s', async (host, expected) => {
  const result = await checkConfig(`listen: { host: ${host} }`, {})
  expect(result.kind === 'ok' && result.config.publicUrl).toBe(expected)
})

test.each([
  ['https://api.example.org/', 'https://api.example.org'],
  ['https://example.org/api', 'https://example.org/api'],
])('publicUrl %s is %s', async (url, expected) => {
  const result = await checkConfig(`publicUrl: ${url}`, {})
  expect(result.kind === 'ok' && result.config.publicUrl).toBe(expected)
})

test.each([
  ['mount: /wp-json', 1],
  ['mount: /blog/index.php/wp-json, names: wordpress', 1],
  ['mount: /wp-json, names: same', 0],
  ['', 0],
])('a site with { %s } has %i warnings about its names', async (more, count) => {
  const result = await checkConfig(`services: { a: { contract: site, ${more} } }`, {})
  const warnings = result.kind === 'ok' ? configWarnings(result.config) : []
  expect(warnings.filter(({ path }) => path === 'services.a.names')).toHaveLength(count)
})

test('an admin side without a token on a public address gives a warning', async () => {
  const result = await checkConfig('admin: { host: 0.0.0.0 }', {})
  expect(result.kind === 'ok' && configWarnings(result.config).map(({ path }) => path)).toEqual([
    'admin.host',
  ])
})

test.each([
  ['workers that divide limits', 'workers: 4', ['rateLimits']],
  ['as many workers as cores', 'workers: 0', ['rateLimits']],
  ['one process', 'workers: 1', []],
  ['workers that count together in Redis', 'workers: 4\ncache: { shared: { url: redis://127.0.0.1 } }', []],
])('rate limits and %s', async (_, more, expected) => {
  const limits =
    'rateLimits: [{ name: reads, service: plants, max: 100 }]\nservices: { plants: { contract: plants } }'
  const result = await checkConfig(`${limits}\n${more}`, {})
  expect(result.kind === 'ok' && configWarnings(result.config).map(({ path }) => path)).toEqual(expected)
})

test.each([
  ['redis://10.0.0.5', undefined, true],
  ['rediss://redis.test:6380', undefined, true],
  ['redis://[fd00::1]', undefined, true],
  ['redis://10.0.0.5', 'k'.repeat(32), false],
  ['redis://127.0.0.1', undefined, false],
  ['redis://localhost:6379', undefined, false],
  ['redis://[::1]', undefined, false],
])('a Redis on another machine and no key is told: %s, key %s', async (url, key, is) => {
  const result = await checkConfig(JSON.stringify({ cache: { shared: { url, key } } }), {})
  expect(result.kind === 'ok' && configWarnings(result.config).map(({ path }) => path)).toEqual(
    is ? ['cache.shared.key'] : [],
  )
})

test('keys of the shared cache are a text or a list, from the environment or files; empty ones are ignored', async () => {
  const file = join(await mkdtemp(join(tmpdir(), 'trellis-key-')), 'key')
  await writeFile(file, `${'f'.repeat(64)}\n`)
  const keysOf = async (key: unknown): Promise<readonly string[] | false> => {
    const result = await checkConfig(JSON.stringify({ cache: { shared: { key } } }), { KEY: 'e'.repeat(32) })
    return result.kind === 'ok' && result.config.cache.shared.key.map((one) => one.reveal())
  }
  expect(await keysOf('')).toEqual([])
  expect(await keysOf(`\${KEY}`)).toEqual(['e'.repeat(32)])
  expect(await keysOf(`file:${file}`)).toEqual(['f'.repeat(64)])
  expect(await keysOf([`\${KEY}`, `file:${file}`, `\${OLD:-}`])).toEqual(['e'.repeat(32), 'f'.repeat(64)])
})

test('the configuration is deeply frozen', async () => {
  const { config } = await load(undefined)
  const open: string[] = []
  const visit = (value: unknown, path: string): void => {
    if (typeof value !== 'object' || value === null) return
    if (!Object.isFrozen(value)) open.push(path)
    for (const [key, inner] of Object.entries(value)) visit(inner, `${path}.${key}`)
  }
  visit(config, 'config')
  expect(open).toEqual([])
})

test('an unreadable file is a fault', async () => {
  expect(await loadConfig({ file: 'config/nowhere.yaml', env: {} })).toEqual({
    kind: 'faults',
    faults: [
      {
        path: '',
        line: 1,
        column: 1,
        message: 'the file cannot be read, it does not exist (ENOENT)',
      },
    ],
  })
})

test.each([
  [
    '{ path: /up }',
    { timeoutMs: 2_000, intervalMs: 5_000, expect: [[200, 399]], failAfter: 2, recoverAfter: 1 },
  ],
  ['{ path: /up, interval: 1s }', { timeoutMs: 1_000, intervalMs: 1_000 }],
  ['{ path: /up, expect: 204 }', { expect: [[204, 204]] }],
  [
    '{ path: /up, expect: "200-299, 401" }',
    {
      expect: [
        [200, 299],
        [401, 401],
      ],
    },
  ],
])('active checks with %s', async (health, expected) => {
  const result = await checkConfig(
    `services: { a: { contract: plants, upstream: { health: ${health} } } }`,
    {},
  )
  expect(result.kind === 'ok' && result.config.services[0]?.upstream.health).toMatchObject(expected)
})
