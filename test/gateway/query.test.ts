import { execFile } from 'node:child_process'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { runCommand } from '../support/command.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'
import { describeWith } from '../support/requirements.ts'

// RFC 10008.

const document = `
openapi: 3.2.0
info: { title: search, version: "1" }
paths:
  /pets:
    get: { responses: { '200': { description: all } } }
    post: { responses: { '201': { description: new } } }
    query:
      x-trellis-cache: { ttl: 1m }
      requestBody:
        required: true
        content:
          application/json:
            schema:
              type: object
              properties: { name: { type: string }, most: { type: integer }, all: { type: array } }
          text/plain: {}
      responses: { '200': { description: found } }
    additionalOperations:
      COPY: { responses: { '204': { description: copied } } }
  /find:
    get:
      parameters: [{ name: at, in: query, required: true, schema: { type: string } }]
      responses: { '200': { description: one } }
    query: &found
      x-trellis-cache: { ttl: 1m }
      parameters:
        - { name: a, in: query, schema: { type: string } }
        - { name: b, in: query, schema: { type: string } }
      requestBody: { required: true, content: { application/json: {} } }
      responses: { '200': { description: found } }
  /only:
    query: *found
  /loose:
    query:
      requestBody: { content: { application/json: {} } }
      responses: { '200': { description: found } }
  /signed:
    query:
      parameters: [{ name: body_seal, in: header, schema: { type: string } }]
      requestBody: { content: { application/json: {} } }
      responses: { '200': { description: found } }
`

let origin: Origin
let gateway: TestGateway
beforeAll(async () => {
  const file = join(await mkdtemp(join(tmpdir(), 'query-')), 'search.yaml')
  await writeFile(file, document)
  origin = await startOrigin()
  const upstream = { targets: [origin.origin] }
  gateway = await startTestGateway({
    limits: { bodyBytes: '64KiB' },
    services: {
      open: {
        contract: 'open',
        mount: '/open',
        upstream,
        cache: {
          rules: [
            { match: 'GET,QUERY /own/**', ttl: '1m', scope: 'credential' },
            { match: 'QUERY /search', ttl: '1m' },
          ],
        },
      },
      api: {
        contract: 'openapi',
        document: file,
        mount: '/api',
        upstream,
        cache: { rules: [{ match: 'QUERY /signed', ttl: '1m', scope: 'credential' }] },
      },
    },
  })
})
closeAfterAll(() => [gateway, origin])
let count = 0
beforeEach(async () => {
  await fetch(`${gateway.adminAddress}/cache/purge`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"all":true}',
  })
  origin.received.length = 0
  origin.script = ({ method }, wire) => {
    count += 1
    wire.respond({
      status: method === 'POST' ? 201 : 200,
      headers: { 'Content-Type': 'text/plain' },
      content: `answer ${count}`,
    })
  }
})

const json = { 'content-type': 'application/json' }

const query = async (
  path: string,
  body: string | undefined,
  headers: Readonly<Record<string, string>> = json,
): Promise<{ readonly text: string; readonly cache: string; readonly status: number }> => {
  const response = await fetch(gateway.publicAddress + path, {
    method: 'QUERY',
    headers,
    ...(body === undefined ? {} : { body }),
  })
  const cache = response.headers.get('cache-status') ?? ''
  return { text: await response.text(), cache, status: response.status }
}

const isHit = ({ cache }: { readonly cache: string }): boolean => /^trellis; hit/.test(cache)

describe('a rule stores responses to QUERY by what is sent', () => {
  test('content that is nested too deep is refused before it is written anew', async () => {
    const deep = `{"all":${'['.repeat(20_000)}${']'.repeat(20_000)}}`
    expect((await query('/api/pets', deep)).status).toBe(400)
    expect(origin.received).toEqual([])
    expect((await query('/api/pets', '{"all":[]}')).status).toBe(200)
  })

  test('the same content is a hit, and the upstream gets it once, byte for byte', async () => {
    const first = await query('/open/search', '{"a": 1}')
    const again = await query('/open/search', '{"a": 1}')
    expect(first.cache).toContain('fwd=uri-miss')
    expect([isHit(again), again.text]).toEqual([true, first.text])
    expect(origin.received.map(({ method, content }) => `${method} ${content}`)).toEqual(['QUERY {"a": 1}'])
  })

  test.each([
    ['content', '/open/search', '{"a":2}', json],
    ['spaces in content of an unknown meaning', '/open/search', '{"a": 1}', json],
    ['type of the content', '/open/search', '{"a":1}', { 'content-type': 'text/plain' }],
    ['coding of the content', '/open/search', '{"a":1}', { ...json, 'content-encoding': 'x-a' }],
    ['language of the content', '/open/search', '{"a":1}', { ...json, 'content-language': 'de' }],
    ['query', '/open/search?b', '{"a":1}', json],
    ['no content', '/open/search', undefined, json],
  ] as const)('another %s is another request', async (_name, path, body, headers) => {
    const first = await query('/open/search', '{"a":1}')
    const other = await query(path, body, headers)
    expect(isHit(other)).toBe(false)
    expect(other.text).not.toBe(first.text)
    expect(await query('/open/search', '{"a":1}')).toMatchObject({ text: first.text })
    expect(isHit(await query(path, body, headers))).toBe(true)
  })

  test('GET of the same URL is another request', async () => {
    const sent = await query('/open/own/a', '{}')
    const got = await fetch(`${gateway.publicAddress}/open/own/a`)
    expect(await got.text()).not.toBe(sent.text)
    expect(isHit(await query('/open/own/a', '{}'))).toBe(true)
  })

  test('a credential that spells the content of a QUERY is another key than that content', async () => {
    const response = await fetch(`${gateway.publicAddress}/open/own/b`, {
      method: 'QUERY',
      headers: json,
      body: '{}',
    })
    const text = await response.text()
    const hash = 'RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o'
    const spelled = JSON.stringify([null, null, null, ['application/json', null, null, null, hash]])
    const got = await fetch(`${gateway.publicAddress}/open/own/b`, { headers: { authorization: spelled } })
    expect(await got.text()).not.toBe(text)
  })

  test('responses to a credential are stored for it alone', async () => {
    const ann = { ...json, authorization: 'Bearer ann' }
    const first = await query('/open/own/c', '{}', ann)
    expect(isHit(await query('/open/own/c', '{}', { ...json, authorization: 'Bearer bob' }))).toBe(false)
    expect(await query('/open/own/c', '{}', ann)).toMatchObject({ text: first.text })
    expect((await query('/open/search', '{}', ann)).cache).toContain('detail=authorization')
  })

  test('two at the same moment are one request to the upstream', async () => {
    const responses = await Promise.all([query('/open/search', '{}'), query('/open/search', '{}')])
    expect(responses[0]?.text).toBe(responses[1]?.text)
    expect(origin.received).toHaveLength(1)
  })

  test('its validator is answered with 304', async () => {
    const response = await fetch(`${gateway.publicAddress}/open/search`, {
      method: 'QUERY',
      headers: json,
      body: '{}',
    })
    await response.text()
    const etag = response.headers.get('etag') ?? ''
    expect(etag).not.toBe('')
    expect(await query('/open/search', '{}', { ...json, 'if-none-match': etag })).toMatchObject({
      status: 304,
    })
  })

  test('content above limits.bodyBytes is 413, and reaches no upstream', async () => {
    expect((await query('/open/search', 'x'.repeat(65 * 1024))).status).toBe(413)
    expect(origin.received).toHaveLength(0)
  })
})

test('without a rule it passes with any content, is not stored and drops nothing', async () => {
  const kept = await query('/open/search', '{}')
  for (const _ of [1, 2]) {
    const { status, cache } = await query('/open/elsewhere', 'x'.repeat(65 * 1024))
    expect([status, cache]).toEqual([200, 'trellis; fwd=bypass; detail=no-rule'])
  }
  expect(await query('/open/search', '{}')).toMatchObject({ text: kept.text })
})

test('a write to its URL drops what is stored for every content', async () => {
  const stored = [await query('/open/search', '{"a":1}'), await query('/open/search', '{"a":2}')]
  await fetch(`${gateway.publicAddress}/open/search`, { method: 'POST', body: 'x' })
  for (const [index, body] of ['{"a":1}', '{"a":2}'].entries())
    expect((await query('/open/search', body)).text).not.toBe(stored[index]?.text)
})

test.each([
  ['that no document describes', '/open/search', '/open/search'],
  ['that takes GET with other parameters', '/api/find?b=2&a=1', '/api/find?a=1&b=2'],
  ['that takes no GET', '/api/only?a=1&b=2', '/api/only?b=2&a=1'],
])('a purge of a URL %s drops what is stored for every content', async (_what, asked, purged) => {
  const bodies = ['{"a":1}', '{"a":2}']
  const texts: string[] = []
  for (const body of bodies) texts.push((await query(asked, body)).text)
  for (const [at, body] of bodies.entries())
    expect(await query(asked, body)).toMatchObject({ text: texts[at], status: 200 })
  const { stdout, stderr } = await runCommand(['purge', '--url', purged, '--admin', gateway.adminAddress])
  expect([stdout, stderr]).toEqual(['2 stored responses removed\n', ''])
  for (const [at, body] of bodies.entries()) expect((await query(asked, body)).text).not.toBe(texts[at])
})

test('warming is for GET: a path that takes QUERY alone is refused', async () => {
  const { end, stdout } = await runCommand(['warm', '/api/only', '--admin', gateway.adminAddress])
  expect([end, stdout]).toEqual([
    7,
    '0 URLs fetched in the background\n/api/only: GET of this URL is refused, so nothing is stored for it: 405: the path takes QUERY\n',
  ])
})

describe('an OpenAPI 3.2 document describes QUERY', () => {
  test('JSON has one spelling, which is keyed and sent: spaces and the order of members mean nothing, digits stay', async () => {
    const first = await query(
      '/api/pets',
      '{ "name": "a\\u0041 b", "most": 5, "all": [ {"b": 1.0, "a": 10000000000000000001} ] }',
    )
    const other = '{"most":5,\n"all":[{"a":10000000000000000001,"b":1.0}],"name":"a\\u0041 b"}'
    expect(first.status).toBe(200)
    expect(await query('/api/pets', other)).toMatchObject({ text: first.text })
    expect(origin.received.map(({ content }) => content.toString())).toEqual([
      '{"all":[{"a":10000000000000000001,"b":1.0}],"most":5,"name":"a\\u0041 b"}',
    ])
    expect(isHit(await query('/api/pets', other.replace('1.0', '1.00')))).toBe(false)
  })

  test.each([
    ['Content-Digest', '', { 'content-digest': 'sha-256=:x:' }],
    ['Signature', '', { signature: 'sig1=:x:', 'signature-input': 'sig1=()' }],
    ['X-Signature', '', { 'x-signature': 'x' }],
    ['X-Hub-Signature-256', '', { 'x-hub-signature-256': 'sha256=x' }],
    ['X-Amz-Content-Sha256', '', { 'x-amz-content-sha256': 'x' }],
    ['X-HMAC', '', { 'x-hmac': 'x' }],
    ['X-Content-MD5', '', { 'x-content-md5': 'x' }],
    ['DPoP', '', { dpop: 'a.b.c' }],
    ['a field of unknown meaning', '', { 'x-seal': 'x' }],
    ['a declared field with an underscore', '', { body_seal: 'x' }],
    ['Authorization: AWS4-HMAC-SHA256', '', { authorization: 'AWS4-HMAC-SHA256 Credential=a, Signature=b' }],
    ['a token, which may contain a digest', '', { authorization: 'Bearer a.b.c' }],
    ['X-Amz-Signature in its query', '?X-Amz-Signature=x', {}],
    ['sig in its query', '?s%69g=x', {}],
  ])('content of a request with %s is keyed and sent as it is', async (_what, search, headers) => {
    const contents = ['{ "most": 5 }', '{"most":5}']
    for (const content of contents) await query(`/api/signed${search}`, content, { ...json, ...headers })
    expect(origin.received.map(({ content }) => content.toString())).toEqual(contents)
  })

  test('content that has a signature in it is sent as it is', async () => {
    await query('/api/pets', '{ "most": 5, "body_sig": "x" }')
    expect(origin.received.at(-1)?.content.toString()).toBe('{ "most": 5, "body_sig": "x" }')
  })

  test.each([
    ['that no rule stores', '/api/loose', {}, 'no-rule'],
    ['with no-store', '/api/pets', { 'cache-control': 'no-store' }, 'request-no-store'],
  ])('content of a request %s is sent as it is', async (_what, path, headers, detail) => {
    const { cache } = await query(path, '{ "most": 5 }', { ...json, ...headers })
    expect([cache, origin.received.at(-1)?.content.toString()]).toEqual([
      `trellis; fwd=bypass; detail=${detail}`,
      '{ "most": 5 }',
    ])
  })

  test('content that does not fit is 400, another type 415, and neither reaches the upstream', async () => {
    expect((await query('/api/pets', '{"most":"x"}')).status).toBe(400)
    expect((await query('/api/pets', undefined)).status).toBe(400)
    expect((await query('/api/pets', '<a/>', { 'content-type': 'text/xml' })).status).toBe(415)
    expect(origin.received).toHaveLength(0)
  })

  test('a write drops it; an operation with another method is a write', async () => {
    const first = await query('/api/pets', '{}')
    await fetch(`${gateway.publicAddress}/api/pets`, { method: 'POST' })
    const second = await query('/api/pets', '{}')
    expect(second.text).not.toBe(first.text)
    await fetch(`${gateway.publicAddress}/api/pets`, { method: 'COPY' })
    expect(origin.received.at(-1)?.method).toBe('COPY')
    expect((await query('/api/pets', '{}')).text).not.toBe(second.text)
  })

  test('other methods of the path are 405 with those that it takes', async () => {
    const response = await fetch(`${gateway.publicAddress}/api/pets`, { method: 'DELETE' })
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, POST, QUERY, COPY, HEAD'])
  })
})

describeWith('curl', 'QUERY sent by curl', () => {
  test('is a hit on its second request', async () => {
    const run = async (): Promise<string> => {
      const url = `${gateway.publicAddress}/open/search`
      const args = ['-sS', '-i', '-X', 'QUERY', '-H', 'Content-Type: text/plain', '--data', 'from curl', url]
      return (await promisify(execFile)('curl', args)).stdout
    }
    expect(await run()).toMatch(/^cache-status: trellis; fwd=uri-miss/im)
    expect(await run()).toMatch(/^cache-status: trellis; hit/im)
    expect(origin.received.map(({ content }) => content.toString())).toEqual(['from curl'])
  })
})
