import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts'
import { logLinesOf } from '../../support/log-lines-of.ts'
import { type Origin, startOrigin } from '../../support/origin.ts'
import { exchangeBytes } from '../../support/raw-client.ts'

// A document declares the parameter `hush` as a key, and others as passwords. Every spelling goes every way in; then every way out is searched.

const document = {
  openapi: '3.1.0',
  info: { title: 'Hush', version: '1' },
  components: {
    securitySchemes: { key: { type: 'apiKey', in: 'query', name: 'hush' } },
    schemas: { Password: { type: 'string', format: 'password' } },
  },
  paths: {
    '/a': {
      parameters: [
        { name: 'whisper', in: 'query', schema: { type: 'string', format: 'password' } },
        { name: 'murmur', in: 'query', schema: { $ref: '#/components/schemas/Password' } },
        {
          name: 'mumble',
          in: 'query',
          schema: { type: 'array', items: { $ref: '#/components/schemas/Password' } },
        },
        {
          name: 'mutter',
          in: 'query',
          content: { 'text/plain': { schema: { type: 'string', format: 'password' } } },
        },
      ],
      get: { responses: { 200: { description: 'a' } } },
      post: { responses: { 200: { description: 'a' } } },
    },
  },
}

const json = (value: unknown): string => encodeURIComponent(JSON.stringify(value))

/** Behind the path of a target. The planted value differs in each, so that a leak names its spelling. */
const spellings: Readonly<Record<string, string>> = {
  plain: '?hush=planted-plain',
  'a name in capitals': '?HUSH=planted-capitals',
  'an escaped name': '?%68ush=planted-escaped',
  'a name escaped twice': '?%2568ush=planted-twice',
  'a name that cannot be decoded': '?%68ush%zz=planted-undecodable',
  'a list': '?hush[]=planted-list',
  'a member': '?hush%5B0%5D=planted-member',
  'one of several': '?a=1&hush=planted-first&hush=planted-second',
  'behind a semicolon': '?a=1;hush=planted-semicolon',
  'behind another question mark': '?a=1?hush=planted-question',
  'a URL as a value': '?next=%2Fb%3Fhush%3Dplanted-nested',
  'a parameter of the path': ';hush=planted-path-parameter',
  'JSON as a value': `?variables=${json({ input: { hush: 'planted-json' } })}`,
  'a list in JSON': `?variables=${json({ hush: ['planted-json-list'] })}`,
  'JSON with an escaped name': `?variables=${encodeURIComponent('{"\\u0068ush":"planted-json-escaped"}')}`,
  'an argument of GraphQL': `?query=${encodeURIComponent('{ a(hush: "planted-argument") }')}`,
  'a persisted query': `?extensions=${json({ persistedQuery: { version: 1, sha256Hash: '0'.repeat(64) } })}&variables=${json({ hush: 'planted-persisted' })}`,
  'a password': '?whisper=planted-password',
  'a password by reference': '?murmur=planted-referenced',
  'a list of passwords': '?mumble=planted-one,planted-two',
  'a password as a content': '?mutter=planted-content',
  'an escaped parameter of the path': '%3Bhush=planted-escaped-path-parameter',
  'behind a name and a semicolon': '?a;hush=planted-name-semicolon',
  'a member of another one': '?x[hush]=planted-inner',
  'a member with a dot': '?x.hush=planted-dot',
  'a word in GraphQL': `?query=${encodeURIComponent('{a(hush:planted_word)}')}`,
  'a URL with userinfo as a value': '?u=https://user:planted-user@h/x',
  'a key of a URL': '?next=https%3A%2F%2Fmaps%2Fapi%3Fkey%3Dplanted-map-key',
  'a well-known name': '?%74oken=planted-token',
  'a session in the path': ';jsessionid=planted-session',
}

let folder: string
let origin: Origin
let gateway: GatewayProcess

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trellis-declared-'))
  await writeFile(join(folder, 'openapi.json'), JSON.stringify(document))
  origin = await startOrigin(({ target }, wire) =>
    wire.respond({
      headers: { 'Content-Type': 'application/json', 'Cache-Control': 'max-age=60' },
      content: target.includes('graph') ? '{"data":{"a":1}}' : '[]',
    }),
  )
  const upstream = { targets: [origin.origin] }
  const rules = [{ match: 'GET /**', ttl: '60s' }]
  gateway = await startGatewayProcess({
    log: { level: 'trace', format: 'json', access: { requests: 'all', path: true, userAgent: true } },
    services: {
      api: {
        contract: 'openapi',
        mount: '/api',
        document: join(folder, 'openapi.json'),
        parameters: { unknown: 'forward' },
        upstream,
        cache: { rules },
        batch: { maxItems: 50 },
      },
      graph: {
        contract: 'graphql',
        mount: '/graph',
        upstream,
        cache: { rules: [{ match: 'query *', ttl: '60s' }] },
      },
      open: { contract: 'open', mount: '/open', upstream, cache: { profile: 'rfc-shared-cache' } },
    },
  })
})
afterAll(async () => {
  await gateway.stop()
  await origin.close()
  await rm(folder, { recursive: true, force: true })
})

const send = async (url: string, init?: RequestInit): Promise<string> => (await fetch(url, init)).text()

const post = (content: unknown): RequestInit => ({
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify(content),
})

const admin = (path: string, init?: RequestInit): Promise<string> => send(gateway.adminOrigin + path, init)

const sendEverywhere = async (spelling: string): Promise<void> => {
  for (const start of ['/api/a', '/open/a', '/graph'])
    for (const init of [{}, post({})]) await send(gateway.origin + start + spelling, init)
  await send(
    `${gateway.origin}/api/batch/v1`,
    post({ requests: [{ method: 'POST', path: `/a${spelling}`, body: {} }] }),
  )
  // Refused before it reaches a service.
  await exchangeBytes(
    gateway.origin,
    `GET http://user:planted-userinfo@a/open/a${spelling} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
  )
  await admin('/cache/purge', post({ urls: [`/open/a${spelling}`] }))
  // Stored once more, for the list of what is stored.
  for (const start of ['/api/a', '/open/a', '/graph']) await send(gateway.origin + start + spelling)
}

const explained = Object.values(spellings).flatMap((spelling) =>
  ['/api/a', '/open/a', '/graph'].map((start) => start + spelling),
)

/** By place: what leaves the process. */
const places = async (): Promise<Readonly<Record<string, string>>> => ({
  log: gateway.program.output(),
  '/recent': await admin('/recent'),
  '/cache/entries': (
    await Promise.all(['size', 'hits', 'age'].map((sort) => admin(`/cache/entries?limit=1000&sort=${sort}`)))
  ).join(),
  '/explain': (
    await Promise.all(
      explained.flatMap((url) =>
        ['GET', 'POST'].map((method) => admin(`/explain?${new URLSearchParams({ url, method })}`)),
      ),
    )
  ).join(),
  '/status': await admin('/status'),
  '/metrics': await admin('/metrics'),
})

test('a parameter that a document declares as secret is shown nowhere, in no spelling', async () => {
  for (const spelling of Object.values(spellings)) await sendEverywhere(spelling)
  // Log lines come through a pipe of their own.
  await expect
    .poll(() => logLinesOf(gateway.program, 'request').length)
    .toBeGreaterThanOrEqual(10 * Object.keys(spellings).length)
  const shown = await places()
  expect(Object.values(shown).map((text) => text.length > 100)).not.toContain(false)
  const leaks = Object.entries(shown).flatMap(([place, text]) =>
    [...new Set(text.match(/planted[-_][\w-]+/g))].map((secret) => `${secret} in ${place}`),
  )
  expect(leaks).toEqual([])
  // Harmless parts are still there.
  expect(shown['/cache/entries']).toContain('/open/a?a=1')
  expect(shown['/explain']).toContain('[redacted]')
  expect(shown['/recent']).toContain('[redacted]')
})
