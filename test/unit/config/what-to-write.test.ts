import { mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { faultLine } from '../../../src/config/fault.ts'
import { checkConfig, loadConfig, warningsOf } from '../../../src/gateway/load-config.ts'

const service = (more: string, upstream = "targets: ['http://127.0.0.1:3000']"): string =>
  `services: { a: { contract: open, mount: /, upstream: { ${upstream} }, ${more} } }`
const document =
  'services: { a: { contract: openapi, document: ./config/pets.example.yaml, mount: /, upstream: { targets: [embedded] }, cache: { rules: [{ operation: listPet, ttl: 1m }] } } }'

test.each([
  ['the word of init', service('').replace('contract: open', 'contract: wordpress'), 'did you mean "site"?'],
  ['a text for a list', service('', 'targets: http://127.0.0.1:3000'), 'write ["http://127.0.0.1:3000"]'],
  ['a text for a section', service('', 'health: /health'), 'write { path: /health }'],
  [
    'the health check of other programs',
    service('', 'healthCheck: { path: / }'),
    'write health: { path: /health }',
  ],
  ['a log file', `log: { file: /var/log/x }\n${service('')}`, 'the log goes to standard output'],
  [
    'a quota with its window',
    `rateLimits: [{ name: x, service: a, match: '* /**', by: address, max: 10/m, window: 1m }]\n${service('')}`,
    'write max: 10, window: 1m',
  ],
  ['workers in words', `workers: auto\n${service('')}`, 'write 0 for one for each core'],
  ['a header of responses', service('responseHeaders: { X-A: b }'), 'write set: { Name: value }'],
  ['the level of other logs', `log: { level: warning }\n${service('')}`, 'did you mean "warn"?'],
  ['a misspelt operation', document, 'did you mean "listPets"?'],
  [
    'no cache',
    `cache: { maxBytes: 0 }\n${service('')}`,
    'cache.maxBytes: must be at least cache.maxEntryBytes',
  ],
  [
    'a slash at the end',
    service('').replace('mount: /', 'mount: /wp-json/'),
    'must not end with "/": leave it out',
  ],
])('the fault says what to write: %s', async (_what, text, expected) => {
  const checked = await checkConfig(text, {}, process.cwd())
  expect(checked.kind === 'faults' ? checked.faults.map(faultLine).join('\n') : 'no fault').toContain(
    expected,
  )
})

let folder = ''
const pem = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
const operations = '/pets: { get: { operationId: listPets }, post: { operationId: addPet } }'
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mistakes-'))
  await mkdir(join(folder, 'parts'))
  const files = {
    'api.yaml': `openapi: 3.1.0\ninfo: { title: x, version: "1" }\npaths:\n  ${operations}\n`,
    'empty.yaml': '',
    'swagger.yaml': 'swagger: "2.0"\n',
    'page.html': '<!doctype html>',
    'tabs.yaml': 'openapi: 3.1.0\npaths:\n\t/a: {}\n',
    'four.yaml': 'openapi: 4.0.0\n',
    'nothing.yaml': 'openapi: 3.1.0\ninfo: { title: x, version: "1" }\n',
    'bad.pem': pem,
    'long.pem': 'x'.repeat(100_000),
  }
  await Promise.all(Object.entries(files).map(([name, text]) => writeFile(join(folder, name), text)))
})

const api = (more: string, name = 'api.yaml'): string =>
  `services: { a: { contract: openapi, mount: /, document: ${name}, upstream: { targets: ["http://b"] }, ${more} } }`
const top = (more: string): string => `${more}\n${service('')}`
const up = (more: string): string => service('', `targets: ["http://b"], ${more}`)
const tls = (file: string): string =>
  top(`listen: { tls: { cert: "file:FOLDER/${file}", key: "file:FOLDER/${file}" } }`)

/* biome-ignore-start lint/suspicious/noTemplateCurlyInString: references as the file spells them */
/** Beside those of single-mistakes.test.ts: the file, the line and column, and the key with what to write. */
const rows: readonly (readonly [mistake: string, text: string, said: string])[] = [
  // The document.
  [
    'a document that is not there',
    api('', 'no.yaml'),
    'services.a.document: no.yaml: the file cannot be read, it does not exist',
  ],
  [
    'a folder for a document',
    api('', 'parts'),
    'services.a.document: parts: the file cannot be read, it is a folder',
  ],
  [
    'an empty document',
    api('', 'empty.yaml'),
    'empty.yaml:1:1 expected an OpenAPI document, which begins with openapi: 3.1.0',
  ],
  [
    'a page for a document',
    api('', 'page.html'),
    'page.html:1:1 expected an OpenAPI document, which begins with openapi: 3.1.0',
  ],
  [
    'a document of Swagger',
    api('', 'swagger.yaml'),
    'swagger.yaml:1:1 expected an OpenAPI document of version 3.0, 3.1 or 3.2: convert this one',
  ],
  [
    'a document of another version',
    api('', 'four.yaml'),
    'four.yaml:1:1 expected an OpenAPI document of version 3.0, 3.1 or 3.2',
  ],
  ['a document with tabs', api('', 'tabs.yaml'), 'tabs.yaml:3:1 not YAML or JSON: Tabs are not allowed'],
  [
    'the address of a document',
    api('', '"https://b/openapi.json"'),
    'services.a.document: expected the path of a file, without a scheme: nothing is fetched',
  ],
  [
    'a document as a secret file',
    api('', '"file:/api.yaml"'),
    'services.a.document: expected the path of a file, without a scheme',
  ],
  [
    'no document',
    'services: { a: { contract: openapi, mount: /, upstream: { targets: ["http://b"] } } }',
    '1:13 services.a.document: is required: expected the path',
  ],
  // Rules.
  [
    'a rule for an operation that writes',
    api('cache: { rules: [{ operation: addPet, ttl: 1m }] }'),
    'rules[0].operation: only responses to GET, HEAD and QUERY are stored',
  ],
  [
    'a rule for nothing',
    api('cache: { rules: [{ ttl: 1m }] }'),
    'rules[0]: expected either match or operation',
  ],
  [
    'a rule for two things',
    api('cache: { rules: [{ operation: listPets, match: GET /pets, ttl: 1m }] }'),
    'rules[0]: expected either match or operation',
  ],
  [
    'a rule for POST',
    service('cache: { rules: [{ match: POST /a, ttl: 1m }] }'),
    'rules[0].match: only responses to GET, HEAD and QUERY are stored',
  ],
  [
    'a rule for a query',
    service('cache: { rules: [{ match: "GET /a?b=1", ttl: 1m }] }'),
    'rules[0].match: the path has no query',
  ],
  [
    'a rule without its ttl',
    service('cache: { rules: [{ match: GET /a }] }'),
    'rules[0].ttl: is required: expected a duration with its unit',
  ],
  [
    'one rule in place of a list',
    service('cache: { rules: { "GET /a": 60s } }'),
    'cache.rules: expected a list, found a section; begin each entry with "-"',
  ],
  [
    'a ttl without rules',
    service('cache: { ttl: 60s }'),
    'cache.ttl: unknown key: write rules: [{ match: GET /**, ttl: 60s }]',
  ],
  [
    'a cache that is on',
    service('cache: true'),
    'services.a.cache: expected a section with keys and values, found true or false; its keys are: profile',
  ],
  // What other programs have in other places.
  ['bind', top('bind: 0.0.0.0'), '1:1 bind: unknown key: write listen: { host: 0.0.0.0, port: 8080 }'],
  ['port', top('port: 8080'), '1:1 port: unknown key: write listen: { port: 8080 }'],
  ['server', top('server: { port: 80 }'), '1:1 server: unknown key: write listen'],
  ['tls', top('tls: { cert: x }'), '1:1 tls: unknown key: write listen: { tls: { cert: file:/path'],
  ['ssl', top('listen: { ssl: { cert: x } }'), '1:11 listen.ssl: unknown key: write tls'],
  [
    'an address',
    top('listen: { address: 0.0.0.0 }'),
    '1:11 listen.address: unknown key; the keys here are: host, port',
  ],
  ['a path of keys', top('listen.port: 8080'), '1:1 listen.port: unknown key; write listen: { port: ... }'],
  ['redis', top('redis: { url: x }'), '1:1 redis: unknown key: write cache: { shared: { url: "redis://'],
  ['cache.redis', top('cache: { redis: x }'), '1:10 cache.redis: unknown key: write shared: { url'],
  [
    'a Redis that is a text',
    top('cache: { shared: "redis://b" }'),
    '1:18 cache.shared: expected a section with keys and values, found a text; write { url: "redis://',
  ],
  [
    'a Redis on an impossible port',
    top('cache: { shared: { url: "redis://b:99999" } }'),
    'cache.shared.url: expected a URL with a host and a port up to 65535',
  ],
  ['an OpenAPI document', 'openapi: 3.1.0', '1:1 openapi: unknown key: this is an OpenAPI document'],
  ['access for all', top('access: {}'), 'access: unknown key: each of services has its own access'],
  ['rules for all', top('cache: { rules: [] }'), 'cache.rules: unknown key: each of services has its own'],
  ['a ttl for all', top('cache: { ttl: 60s }'), 'cache.ttl: unknown key: each of services has its own'],
  ...[
    ['rateLimits: []', 'rateLimits is beside services'],
    ['targets: []', 'write upstream: { targets: '],
    ['rules: []', 'write cache: { rules: '],
    ['headers: {}', 'write responseHeaders: { set: '],
    ['timeout: 30s', 'write upstream: { timeouts: '],
  ].map(([key = '', remedy = '']): [string, string, string] => [
    `${key} of a service`,
    service(key),
    `unknown key: ${remedy}`,
  ]),
  ['upstreams', top('upstreams: {}'), '1:1 upstreams: unknown key: each of services has its own upstream'],
  ['routes', top('routes: {}'), '1:1 routes: unknown key: write services'],
  ['include', top('include: b.yaml'), '1:1 include: unknown key: a configuration is one file'],
  ['a tag', 'services: !include b.yaml', '1:11 not YAML: a value that begins with "!" must be in quotes'],
  [
    'services in a list',
    'services:\n  - contract: open',
    '2:3 services: expected a section with keys and values, found a list; write NAME: { contract',
  ],
  [
    'a port for metrics',
    top('metrics: { port: 9100 }'),
    '1:12 metrics.port: unknown key: GET /metrics is at admin.port',
  ],
  [
    'an endpoint for traces',
    top('tracing: { endpoint: x }'),
    '1:12 tracing.endpoint: unknown key: write otlpUrl',
  ],
  [
    'a level alone',
    top('log: debug'),
    '1:6 log: expected a section with keys and values, found a text; its keys are: level',
  ],
  [
    'a time alone',
    top('drain: 5s'),
    '1:8 drain: expected a section with keys and values, found a text; write { timeout: 30s }',
  ],
  [
    'an admin side that is off',
    top('admin: false'),
    '1:8 admin: expected a section with keys and values, found true or false; its keys are: host, port, token',
  ],
  [
    'a password',
    top('admin: { password: x }'),
    '1:10 admin.password: unknown key; the keys here are: host, port, token',
  ],
  ['a prefix', service('prefix: /b'), 'services.a.prefix: unknown key: write mount: /path'],
  ['auth', service('auth: {}'), 'services.a.auth: unknown key: write access'],
  [
    'a host in place of hosts',
    service('host: b.example'),
    'services.a.host: unknown key (did you mean "hosts"?)',
  ],
  // Upstreams.
  [
    'a url for targets',
    service('', 'url: "http://b"'),
    'upstream.url: unknown key: write targets: ["http://',
  ],
  [
    'an upstream that is a text',
    'services: { a: { contract: open, mount: /, upstream: "http://b" } }',
    'services.a.upstream: expected a section with keys and values, found a text; write { targets',
  ],
  [
    'a timeout alone',
    up('timeouts: 10s'),
    'upstream.timeouts: expected a section with keys and values, found a text; its keys are: connect',
  ],
  [
    'another timeout',
    up('timeouts: { read: 10s }'),
    'timeouts.read: unknown key; the keys here are: connect, headers, idle, total',
  ],
  ['retries', up('retries: 3'), 'upstream.retries: unknown key: write retry: { attempts: 2 }'],
  [
    'no check of certificates',
    up('tls: { verify: false }'),
    'tls.verify: unknown key: write acceptAnyCertificate: true, or better ca',
  ],
  ['weights', up('weights: [1]'), 'upstream.weights: unknown key; the keys here are: targets, basePath'],
  [
    'the gateway itself',
    top('listen: { port: 3000 }'),
    '2:66 services.a.upstream.targets[0]: is the address of the gateway itself',
  ],
  [
    'the gateway itself, listening everywhere',
    top('listen: { host: 0.0.0.0, port: 3000 }'),
    'targets[0]: is the address of the gateway itself',
  ],
  // CORS.
  [
    'cors as a text',
    top('cors: "*"'),
    '1:7 cors: expected a section with keys and values, found a text; write { origins',
  ],
  [
    'origins as a text',
    top('cors: { origins: "*" }'),
    '1:18 cors.origins: expected a list, found a text; put it in brackets',
  ],
  [
    'allowed origins',
    top('cors: { allowedOrigins: ["*"] }'),
    '1:9 cors.allowedOrigins: unknown key; the keys here are: origins',
  ],
  [
    'an origin with a wildcard',
    top('cors: { origins: ["https://*.b"] }'),
    '1:19 cors.origins[0]: an origin has no wildcard: write each one, or "*" alone',
  ],
  // Files and variables.
  [
    'a certificate that is none',
    tls('bad.pem'),
    'listen.tls.cert: cert and key do not match or are not PEM; write file:/path',
  ],
  [
    'a certificate that is too long',
    tls('long.pem'),
    'listen.tls.cert: the secret file is larger than 65536 bytes',
  ],
  ['a folder for a certificate', tls('parts'), 'parts cannot be read, it is a folder (EISDIR)'],
  [
    'a variable of a shell',
    top('listen: { port: $PORT }'),
    '1:17 listen.port: expected a whole number from 0 to 65535, found a text; write "${NAME}"',
  ],
  [
    'a variable of Windows',
    top('listen: { port: "%PORT%" }'),
    '1:17 listen.port: expected a whole number from 0 to 65535, found a text; write "${NAME}"',
  ],
  // Limits: the key that is written is named, not the one with its default.
  [
    'headers shorter than a URL',
    top('limits: { headerBytes: 2KiB }'),
    '1:24 limits.headerBytes: must be at least limits.urlBytes (8KiB if it is not set)',
  ],
  [
    'a body longer than the buffers',
    top('limits: { bodyBytes: 100MiB }'),
    '1:22 limits.bodyBytes: must be at most half of limits.bufferedBytes (32MiB if it is not set)',
  ],
  [
    'the port of the admin side',
    top('listen: { port: 9090 }'),
    '1:17 listen.port: must differ from admin.port (9090 if it is not set)',
  ],
  [
    'a limit per minute',
    top('rateLimits: [{ name: b, service: a, max: 1, per: minute }]'),
    'rateLimits[0].per: unknown key; the keys here are: name, service, match, by, max, window',
  ],
]
/* biome-ignore-end lint/suspicious/noTemplateCurlyInString: references as the file spells them */

describe('a mistake is one line with its position, its key and what to write', () => {
  test.each(rows)('%s', async (_mistake, text, said) => {
    const checked = await checkConfig(text.replaceAll('FOLDER', folder), {}, folder)
    const lines = checked.kind === 'faults' ? checked.faults.map(faultLine) : []
    expect(lines.map((line) => line.slice(line.indexOf(said)).slice(0, said.length))).toContain(said)
    for (const line of lines) expect(line).toMatch(/^[1-9]\d*:[1-9]\d* \S/)
  })

  test.each([
    ['no.yaml', 'it does not exist (ENOENT)'],
    ['parts', 'it is a folder (EISDIR)'],
  ])('a configuration that cannot be read: %s', async (name, said) => {
    const read = await loadConfig({ file: join(folder, name), env: {} })
    expect(read.kind === 'faults' ? read.faults.map(faultLine) : []).toEqual([
      `1:1 the file cannot be read, ${said}`,
    ])
  })

  test.each([
    [
      'a rule that no operation matches',
      api('cache: { rules: [{ match: GET /nope, ttl: 1m }] }'),
      'services.a.cache.rules[0].match matches nothing: the document has no such operation',
    ],
    [
      'a document without operations',
      api('', 'nothing.yaml'),
      'services.a.document describes no operation: every request gets 404',
    ],
    [
      'resources that nothing reads',
      api('resources: [{ operation: listPets, invalidates: [/pets] }]'),
      'services.a.resources has no effect without invalidation: structural',
    ],
    [
      'rules that match',
      api('cache: { rules: [{ match: GET /*, ttl: 1m }, { match: "GET /pets/**", ttl: 1m }] }'),
      undefined,
    ],
  ])('what has no effect is a warning: %s', async (_mistake, text, said) => {
    const checked = await checkConfig(text, {}, folder)
    const warnings = checked.kind === 'ok' ? warningsOf(checked) : []
    const lines = warnings.map(({ path, message }) => `${path} ${message}`)
    expect(lines).toEqual(said === undefined ? [] : [said])
  })
})
