import { describe, expect, test } from 'vitest'
import { checkConfig } from '../../../src/gateway/load-config.ts'

const faultsOf = async (text: string, env: Record<string, string> = {}): Promise<string[]> => {
  const result = await checkConfig(text, env)
  if (result.kind === 'ok') return []
  return result.faults.map(({ line, column, path, message, suggestion }) => {
    const hint = suggestion === undefined ? '' : ` <${suggestion}>`
    return `${line}:${column} ${path}: ${message}${hint}`
  })
}

describe('all faults of a file are reported at once, with their positions', () => {
  test('five faults of five kinds', async () => {
    const text = [
      'listen: { host: 127.0.0.1, prot: 80 }',
      'log: { level: loud }',
      'drain: { delay: 5 }',
      'trustedProxies: [10.0.0.0/8, 1.2.3.4/99]',
      'services:',
      '  legacy: { contract: open, upstream: { targets: ["http://a.test"] } }',
    ].join('\n')
    expect(await faultsOf(text)).toEqual([
      '1:28 listen.prot: unknown key <port>',
      '2:15 log.level: expected one of: trace, debug, info, warn, error, fatal, silent',
      '3:17 drain.delay: expected a duration with its unit: 250ms, 10s, 5m, 1h or 30d, found a number <5s>',
      '4:30 trustedProxies[1]: the prefix length must be 0 to 32',
      '6:3 services.legacy.mount: is required: expected a path',
    ])
  })

  test('durations of timers are limited to 12d, other durations are not', async () => {
    const text = [
      'drain: { timeout: 30d }',
      'services:',
      '  site:',
      '    contract: site',
      '    discovery: { refresh: 13d }',
      '    upstream: { timeouts: { total: 12d, headers: 600h } }',
      '    cache: { rules: [{ match: GET /site/v2/**, ttl: 30d }] }',
    ].join('\n')
    const message = 'expected at most 12d: the longest time of a timer'
    expect(await faultsOf(text)).toEqual([
      `1:19 drain.timeout: ${message}`,
      `5:27 services.site.discovery.refresh: ${message}`,
      `6:50 services.site.upstream.timeouts.headers: ${message}`,
    ])
  })

  test('faults across values are reported together with faults of single values', async () => {
    const text = 'listen: { port: 9090, hots: x }\ncache: { maxBytes: 1MiB, maxEntryBytes: 2MiB }'
    expect(await faultsOf(text)).toEqual([
      '1:17 listen.port: must differ from admin.port (9090 if it is not set): change one of both',
      '1:23 listen.hots: unknown key <host>',
      '2:20 cache.maxBytes: must be at least cache.maxEntryBytes (4MiB if it is not set), because a larger response cannot be stored: raise it, or lower that',
    ])
  })

  test('a faulty value gives no second fault in checks across values', async () => {
    const text = 'listen: { port: 9090 }\nadmin: { port: nine }'
    expect(await faultsOf(text)).toEqual([
      '2:16 admin.port: expected a whole number from 0 to 65535, found a text',
    ])
  })

  test('HTTP/2 with a certificate that cannot be read gives no second fault', async () => {
    const faults = await faultsOf('workers: many\nlisten: { http2: true, tls: { cert: file:./a } }')
    expect(faults).toEqual([
      expect.stringContaining('workers'),
      expect.stringContaining('listen.tls.cert: expected an absolute path'),
    ])
  })

  test('a service with a missing key does not hide faults across other services', async () => {
    const text = [
      'services:',
      '  a: { contract: open, upstream: { targets: ["http://a.test"] } }',
      '  b: { contract: plants, mount: /b }',
      '  c: { contract: plants, mount: /b }',
    ].join('\n')
    expect(await faultsOf(text)).toEqual([
      '2:3 services.a.mount: is required: expected a path',
      '4:33 services.c.mount: /b is already the mount of b: give each service its own path, or hosts',
    ])
  })

  test('an unset variable does not hide faults across values', async () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference as the file spells it
    const text = "admin: { token: '${NONE}' }\nlisten: { port: 9090 }"
    expect(await faultsOf(text)).toHaveLength(2)
  })

  test('broken YAML is reported with its position and no other faults', async () => {
    const faults = await faultsOf('listen: { port: 80\nadmin: [')
    expect(faults.length).toBeGreaterThan(0)
    for (const fault of faults) expect(fault).toMatch(/^\d+:\d+ : not YAML: /)
  })

  test('an unquoted reference inside braces is one fault that shows the quotes', async () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference as the file spells it
    expect(await faultsOf('listen: { port: ${PORT:-8081} }\nworkers: 1')).toEqual([
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference as the file spells it
      '1:18 : not YAML: inside braces write "${PORT:-8081}", in quotes',
    ])
  })

  test('a second YAML document is a fault with an understandable message', async () => {
    expect(await faultsOf('workers: 1\n---\nworkers: 2')).toEqual([
      '2:1 : expected one YAML document, but "---" begins another one',
    ])
  })

  test('at most ten faults of syntax are reported', async () => {
    expect((await faultsOf(`a: ${'['.repeat(3000)}`)).length).toBeLessThanOrEqual(10)
  })

  test('a duplicate key is a fault', async () => {
    expect(await faultsOf('workers: 1\nworkers: 2')).toEqual([
      '2:1 : not YAML: this key occurs twice in its section',
    ])
  })
})

const single: readonly (readonly [string, string, string])[] = [
  ['unknown key, near a known one', 'cache: { max_bytes: 1MiB }', 'cache.max_bytes: unknown key <maxBytes>'],
  [
    'unknown key, near none',
    'zzzzzzzz: 1',
    'zzzzzzzz: unknown key; the keys here are: listen, limits, cors, overload, rateLimits, rateLimitKeys, reload, admin, publicUrl, workers, trustedProxies, log, tracing, metrics, cache, drain, services',
  ],
  [
    'unknown key in a service knows its contract',
    'services: { site: { contract: site, naems: same } }',
    'services.site.naems: unknown key <names>',
  ],
  [
    'unknown key in a rule',
    'services: { p: { contract: plants, cache: { rules: [{ match: GET /a, ttl: 1s, scop: public }] } } }',
    'services.p.cache.rules[0].scop: unknown key <scope>',
  ],
  [
    'a prototype key is an unknown key',
    'listen: { __proto__: { port: 1 } }',
    'listen.__proto__: unknown key',
  ],
  [
    'a prototype key is no service',
    'services: { constructor: { contract: plants }, a: { contract: site }, __proto__: { contract: plants } }',
    'services.__proto__: unknown key',
  ],
  [
    'service name',
    'services: { A: { contract: plants } }',
    'services.A: a service name is 1 to 32 lower-case letters, digits and hyphens',
  ],
  ['no services', 'services: {}', 'services: at least one service is needed'],
  [
    'unknown contract',
    'services: { a: { contract: plnts } }',
    'services.a.contract: expected one of: plants, site, openapi, graphql, open <plants>',
  ],
  [
    'contract missing',
    'services: { a: {} }',
    'services.a.contract: is required: expected one of: plants, site, openapi, graphql, open',
  ],
  ['an empty section', 'drain:', 'drain: is empty: leave the key out, or give it a value'],
  [
    'a list where a section belongs',
    'drain: []',
    'drain: expected a section with keys and values, found a list; write { timeout: 30s }',
  ],
  [
    'a text where a list belongs',
    'trustedProxies: 10.0.0.0/8',
    'trustedProxies: expected a list, found a text; put it in brackets',
  ],
  ['port out of range', 'listen: { port: 65536 }', 'listen.port: expected a whole number from 0 to 65535'],
  [
    'share out of range',
    'services: { a: { contract: plants, upstream: { retry: { budget: 2 } } } }',
    'services.a.upstream.retry.budget: expected a share from 0 to 1, e.g. 0.2',
  ],
  [
    'size unit',
    'cache: { maxBytes: 1MB }',
    'cache.maxBytes: expected a size: bytes as a whole number, or 64KiB, 256MiB, 1GiB <1MiB>',
  ],
  [
    'host with a port',
    'listen: { host: "a/b" }',
    'listen.host: expected a host name or an IP address, without a port',
  ],
  [
    'publicUrl relative',
    'publicUrl: /api',
    'publicUrl: expected an absolute URL, e.g. https://api.example.org',
  ],
  [
    'publicUrl with credentials',
    'publicUrl: http://a:b@c.test',
    'publicUrl: the URL must not carry credentials',
  ],
  [
    'tracing scheme',
    'tracing: { otlpUrl: "grpc://x" }',
    'tracing.otlpUrl: expected a URL that starts with http:// or https://',
  ],
  [
    'shared cache scheme',
    'cache: { shared: { url: "http://x" } }',
    'cache.shared.url: expected a URL that starts with redis:// or rediss://',
  ],
  [
    'key of the shared cache that is short',
    `cache: { shared: { key: "${'k'.repeat(31)}" } }`,
    'cache.shared.key: expected at least 32 characters: openssl rand -hex 32',
  ],
  [
    'key of the shared cache that is short, in a list',
    `cache: { shared: { key: ["${'k'.repeat(32)}", "short"] } }`,
    'cache.shared.key: expected at least 32 characters: openssl rand -hex 32',
  ],
  [
    'key of the shared cache that is a number',
    'cache: { shared: { key: 5 } }',
    'cache.shared.key: expected a text, or a list of at most 8 texts',
  ],
  [
    'CORS origin with a slash',
    'cors: { origins: ["https://a.test/"] }',
    'cors.origins[0]: browsers write this origin as https://a.test',
  ],
  [
    'target with a path',
    'services: { a: { contract: plants, upstream: { targets: ["http://a/b"] } } }',
    'services.a.upstream.targets[0]: an origin has no path: it ends after host and port (basePath takes the path)',
  ],
  [
    'target with credentials',
    'services: { a: { contract: plants, upstream: { targets: ["http://u:p@a"] } } }',
    'services.a.upstream.targets[0]: an origin has no credentials',
  ],
  [
    'target scheme',
    'services: { a: { contract: plants, upstream: { targets: ["ftp://a"] } } }',
    'services.a.upstream.targets[0]: the scheme must be http or https',
  ],
  [
    'no target',
    'services: { a: { contract: plants, upstream: { targets: [] } } }',
    'services.a.upstream.targets: expected at least 1 entry; write ["http://127.0.0.1:3000"]',
  ],
  [
    'target twice',
    'services: { a: { contract: plants, upstream: { targets: ["http://a", "http://a:80"] } } }',
    'services.a.upstream.targets: a target is listed twice',
  ],
  [
    'embedded beside another',
    'services: { a: { contract: site, upstream: { targets: [embedded, "http://a"] } } }',
    'services.a.upstream.targets: embedded cannot be combined with other targets',
  ],
  [
    'embedded for open',
    'services: { a: { contract: open, mount: /a, upstream: { targets: [embedded] } } }',
    'services.a.upstream.targets: a service with contract open has no embedded upstream',
  ],
  [
    'mount twice',
    'services: { a: { contract: plants }, b: { contract: open, mount: /, upstream: { targets: ["http://a"] } } }',
    'services.b.mount: / is already the mount of a: give each service its own path, or hosts',
  ],
  [
    'batch items for other services, which earlier versions had',
    'services: { a: { contract: site, batch: { services: [plants] } } }',
    'services.a.batch.services: removed in 0.1.0: send items for another service to that service; leave the key out',
  ],
  [
    'extensions of batches, which earlier versions had',
    'services: { a: { contract: site, batch: { extensions: on } } }',
    'services.a.batch.extensions: removed in 0.1.0: reads and Idempotency-Key work in every batch; send references and items for other services as requests of their own; leave the key out',
  ],
  [
    'mount with an end slash',
    'services: { a: { contract: plants, mount: /a/ } }',
    'services.a.mount: the path must not end with "/": leave it out',
  ],
  [
    'mount with dot segments',
    'services: { a: { contract: plants, mount: /a/../b } }',
    'services.a.mount: the path must not have dot segments',
  ],
  [
    'mount with a percent sign',
    'services: { a: { contract: plants, mount: /a%2Fb } }',
    "services.a.mount: the path has a character that must be written another way (only letters, digits and -._~!$&'()*+,;=:@)",
  ],
  [
    'rule for a method that is not stored',
    'services: { a: { contract: plants, cache: { rules: [{ match: POST /a, ttl: 1s }] } } }',
    'services.a.cache.rules[0].match: only responses to GET, HEAD and QUERY are stored: the rule must start with one of them',
  ],
  [
    'rule without a path',
    'services: { a: { contract: plants, cache: { rules: [{ match: GET, ttl: 1s }] } } }',
    'services.a.cache.rules[0].match: expected methods and a path, e.g. "GET /site/v2/**"',
  ],
  [
    'rule without a ttl',
    'services: { a: { contract: plants, cache: { rules: [{ match: GET /a }] } } }',
    'services.a.cache.rules[0].ttl: is required: expected a duration with its unit: 250ms, 10s, 5m, 1h or 30d',
  ],
  [
    'static discovery without an identity',
    'services: { a: { contract: site, discovery: { source: static } } }',
    'services.a.discovery.identity: is required with source: static',
  ],
  [
    'total shorter than headers',
    'services: { a: { contract: plants, upstream: { timeouts: { total: 5s } } } }',
    'services.a.upstream.timeouts.total: must be at least timeouts.headers, which is a part of it',
  ],
  [
    'check timeout longer than its interval',
    'services: { a: { contract: plants, upstream: { health: { path: /up, interval: 1s, timeout: 2s } } } }',
    'services.a.upstream.health.timeout: must be at most health.interval, because checks of a target do not overlap',
  ],
  [
    'checks without a pause',
    'services: { a: { contract: plants, upstream: { health: { path: /up, interval: 0s } } } }',
    'services.a.upstream.health.interval: must be more than 0s: otherwise checks never pause',
  ],
  [
    'checks that cannot pass in time',
    'services: { a: { contract: plants, upstream: { health: { path: /up, timeout: 0s } } } }',
    'services.a.upstream.health.timeout: must be more than 0s: otherwise no check can pass',
  ],
  ...['2xx', '399-200', '100-199', '200,', '', '200-299;401', '700'].map(
    (expected): readonly [string, string, string] => [
      `expected statuses "${expected}"`,
      `services: { a: { contract: plants, upstream: { health: { path: /up, expect: "${expected}" } } } }`,
      'services.a.upstream.health.expect: expected statuses from 200 to 599, e.g. 200-399, or 200,204, or 200-299,401',
    ],
  ),
]

test.each(single)('%s', async (_description, text, expected) => {
  const faults = await faultsOf(text)
  expect(faults.map((fault) => fault.replace(/^\d+:\d+ /, ''))).toEqual([expected])
})
