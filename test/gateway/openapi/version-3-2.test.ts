import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { checkConfig } from '../../../src/gateway/load-config.ts'
import { closeAfterAll } from '../../support/close.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, startOrigin } from '../../support/origin.ts'
import { exchangeBytes } from '../../support/raw-client.ts'

// What OpenAPI 3.2 has and 3.1 has not; QUERY and additionalOperations are in ../query.test.ts.

const document = `
openapi: 3.2.0
$self: https://api.example/v1/openapi
info: { title: weather, summary: a station, version: "1" }
servers: [{ name: production, url: https://api.example/v1 }]
tags:
  - { name: weather, summary: Weather, kind: nav }
  - { name: rain, parent: weather, kind: badge }
paths:
  /search:
    get:
      tags: [rain]
      parameters:
        - { $ref: 'https://api.example/v1/openapi#/components/parameters/filter' }
      responses: { '200': { summary: found } }
  /select:
    get:
      parameters:
        - name: selector
          in: querystring
          required: true
          content:
            application/json: { schema: { type: object, required: [at], properties: { at: { type: integer } } } }
      responses: { '200': { summary: found } }
  /path:
    get:
      parameters: [{ name: pointer, in: querystring, content: { application/jsonpath: { schema: { type: string } } } }]
      responses: { '200': { summary: found } }
  /readings:
    post:
      security: [{ device: [] }]
      requestBody:
        content:
          application/json: { $ref: '#/components/mediaTypes/reading' }
          application/jsonl: { itemSchema: { $ref: '#/components/schemas/reading' } }
          multipart/mixed: { prefixEncoding: [{ contentType: application/json }], itemEncoding: { contentType: image/* } }
      responses:
        '200':
          description: as they come
          content: { text/event-stream: { itemSchema: { type: object, properties: { data: { type: string } } } } }
    get:
      parameters: [{ name: session, in: cookie, style: cookie, schema: { type: string } }]
      responses: { '200': { summary: found } }
  /many:
    get:
      parameters:
${Array.from({ length: 25 }, (_, at) => `        - { name: p${at}, in: query, schema: { type: integer } }`).join('\n')}
      responses: { '200': { summary: found } }
components:
  mediaTypes:
    reading:
      schema: { $ref: '#/components/schemas/reading' }
      examples: { one: { dataValue: { value: 1 }, serializedValue: '{"value":1}' } }
  parameters:
    filter:
      name: filter
      in: querystring
      content:
        application/x-www-form-urlencoded:
          schema: { type: object, properties: { near: { type: string }, most: { type: integer, maximum: 9 } } }
  schemas:
    reading:
      type: object
      properties: { value: { type: number } }
      discriminator: { propertyName: kind, defaultMapping: reading }
      xml: { nodeType: element }
  securitySchemes:
    device:
      type: oauth2
      deprecated: true
      oauth2MetadataUrl: https://id.example/.well-known/oauth-authorization-server
      flows:
        deviceAuthorization:
          deviceAuthorizationUrl: https://id.example/device
          tokenUrl: https://id.example/token
          scopes: {}
`

let origin: Origin
let gateway: TestGateway
let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'version-'))
  await writeFile(join(folder, 'api.yaml'), document)
  await writeFile(join(folder, 'form.yaml'), `x-trellis-query: form\n${document}`)
  origin = await startOrigin()
  gateway = await startTestGateway({
    services: {
      api: {
        contract: 'openapi',
        document: join(folder, 'api.yaml'),
        mount: '/',
        parameters: { unknown: 'strip' },
        upstream: { targets: [origin.origin] },
      },
      form: {
        contract: 'openapi',
        document: join(folder, 'form.yaml'),
        mount: '/form',
        upstream: { targets: [origin.origin] },
      },
    },
  })
})
closeAfterAll(() => [gateway, origin])

/** Status, the first fault, and the target that the upstream got. */
const get = async (target: string, init: RequestInit = {}): Promise<string> => {
  const before = origin.received.length
  const response = await fetch(gateway.publicAddress + target, init)
  const text = await response.text()
  const { errors = [] } = response.status === 400 ? (JSON.parse(text) as { errors?: unknown[] }) : {}
  const sent = origin.received.slice(before).map((request) => request.target)
  return [response.status, ...errors.map((error) => JSON.stringify(error)), ...sent].join(' ')
}

test.each([
  ['/search?most=5&near=a%20b', '200 /search?most=5&near=a%20b'],
  [
    '/search?most=50',
    '400 {"pointer":"#/most","detail":"must be at most 9","parameter":"filter","in":"querystring"}',
  ],
  ['/search', '200 /search'],
  ['/select?%7B%22at%22%3A1%7D', '200 /select?%7B%22at%22%3A1%7D'],
  [
    '/select?%7B%22at%22%3A%22x%22%7D',
    '400 {"pointer":"#/at","detail":"must be integer","parameter":"selector","in":"querystring"}',
  ],
  ['/select', '400 {"pointer":"#","detail":"is required","parameter":"selector","in":"querystring"}'],
  ['/path?%24.a%5B0%5D', '200 /path?%24.a%5B0%5D'],
  ['/path?$%5B?(@.x%3E1&&@.y%3C2)%5D', '200 /path?$%5B?(@.x%3E1&&@.y%3C2)%5D'],
  ['/path?&', '200 /path?&'],
  ['/form/path?a+b&&b', '200 /path?a+b&&b'],
  ['/select?%7B%22at%22:1,%22z%22:%22a&&b&%22%7D', '200 /select?%7B%22at%22:1,%22z%22:%22a&&b&%22%7D'],
])('in: querystring describes the whole query, which is sent as it is: %s', async (target, expected) => {
  expect(await get(target)).toBe(expected)
})

test('a query that is one value needs escapes that every decoder reads alike', async () => {
  const target = '/select?{"at":1,"z":"=%ff%22,%22at%22:%22x"}'
  const bytes = `GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`
  expect(await exchangeBytes(gateway.publicAddress, bytes)).toContain(
    '"detail":"has a percent-encoding that is not valid","parameter":"selector","in":"querystring"',
  )
})

const send = (type: string, body: string): Promise<string> =>
  get('/readings', { method: 'POST', headers: { 'content-type': type, authorization: 'Bearer x' }, body })

test('a media type may be a reference, contents of sequences are streamed, and the device flow is a bearer token', async () => {
  expect(await send('application/json', '{"value":1}')).toBe('200 /readings')
  expect(await send('application/json', '{"value":"x"}')).toMatch(/^400 .*"#\/value"/)
  expect(await send('application/jsonl', '{"value":1}\n{"value":2}\n')).toBe('200 /readings')
  expect(await get('/readings', { method: 'POST' })).toBe('401')
  expect(await get('/readings', { headers: { cookie: 'session=a' } })).toBe('200 /readings')
})

test('a refusal names every parameter that does not fit, and at most twenty', async () => {
  expect(await get('/many?p0=x&p1=5&p24=y')).toBe(
    `400 ${[0, 24].map((at) => `{"pointer":"#","parameter":"p${at}","in":"query","detail":"must be integer"}`).join(' ')}`,
  )
  const all = Array.from({ length: 25 }, (_, at) => `p${at}=x`).join('&')
  expect((await get(`/many?${all}`)).match(/must be integer/g)).toHaveLength(20)
})

test('a querystring without a media type is a fault with its line', async () => {
  const api =
    'openapi: 3.2.0\ninfo: { title: x, version: "1" }\npaths:\n  /a:\n    get:\n      parameters:\n        - { name: a, in: querystring, schema: {} }\n'
  await writeFile(join(folder, 'fault.yaml'), api)
  const config =
    'services: { api: { contract: openapi, mount: /, document: fault.yaml, upstream: { targets: ["http://127.0.0.1:9"] } } }'
  const result = await checkConfig(config, {}, folder)
  expect(result.kind === 'faults' ? result.faults.map(({ message }) => message) : []).toEqual([
    'fault.yaml:7:11 a parameter in: querystring needs a name and content with one media type',
  ])
})
