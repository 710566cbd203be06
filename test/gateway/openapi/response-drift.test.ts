import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { withUpstreamLog } from '../../../src/observability/upstream-log.ts'
import { createResponseChecker } from '../../../src/request/openapi-responses.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, startOrigin } from '../../support/origin.ts'

const pet = {
  type: 'object',
  required: ['id', 'secret', 'name'],
  properties: {
    id: { type: 'integer', format: 'int64', readOnly: true },
    secret: { type: 'string', writeOnly: true },
    name: { type: 'string' },
    parent: { $ref: '#/components/schemas/pet' },
  },
  additionalProperties: { type: 'integer' },
}
const ref = { $ref: '#/components/schemas/pet' }
const json = (schema: unknown) => ({ description: '', content: { 'application/json': { schema } } })
const document = {
  openapi: '3.1.0',
  info: { title: 'x', version: '1' },
  paths: {
    '/pets': {
      get: {
        operationId: 'list',
        responses: { 200: json({ type: 'array', items: ref }), '4XX': json(true) },
      },
    },
    '/pets/{id}': {
      parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'integer' } }],
      get: { responses: { 200: json(ref), 204: { description: '' } } },
    },
  },
  components: { schemas: { pet } },
}

describe('a response is compared with its description', () => {
  const { check } = createResponseChecker({ root: 'a.json', files: { 'a.json': document } })
  const sample = (value: unknown, more: object = {}) => ({
    operation: 'GET /pets/{id}',
    status: 200,
    contentType: 'application/json; charset=utf-8',
    coding: '',
    content: Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)),
    ...more,
  })
  const fitting = { id: 1, name: 'Tom' }

  test.each([
    ['one that fits lacks what only requests have', sample(fitting), { result: 'fits' }],
    [
      'a compressed one',
      sample('', { coding: 'gzip', content: gzipSync(JSON.stringify(fitting)) }),
      { result: 'fits' },
    ],
    ['one in an unknown coding', sample(fitting, { coding: 'zstd' }), { result: 'unchecked' }],
    ['one that is not what its coding says', sample(fitting, { coding: 'br' }), { result: 'unchecked' }],
    [
      'one that lacks a member which only responses have',
      sample({ name: 'Tom' }),
      { result: 'differs', pointer: '', detail: 'lacks id' },
    ],
    [
      'a fault in a declared member',
      sample({ ...fitting, parent: { ...fitting, name: 5 } }),
      { result: 'differs', pointer: '/parent/name', detail: 'must be string' },
    ],
    [
      'a fault in a member whose name is data',
      sample({ ...fitting, 'tom@example.com': 'x' }),
      { result: 'differs', pointer: '/*', detail: 'must be integer' },
    ],
    [
      'an integer of more than 64 bits',
      sample('{"name":"a","id":9223372036854775808}'),
      { result: 'differs', pointer: '/id', detail: 'is outside the bounds of the integer' },
    ],
    [
      'content that is not JSON',
      sample('{"id":'),
      { result: 'differs', pointer: '', detail: 'is not valid JSON' },
    ],
    [
      'a status that is not described',
      sample(fitting, { status: 404 }),
      { result: 'undescribed', pointer: '', detail: 'status 404 is not described' },
    ],
    ['a failure that is not described', sample(fitting, { status: 503 }), { result: 'unchecked' }],
    [
      'a status of a described class',
      sample(fitting, { operation: 'GET /pets', status: 404 }),
      { result: 'fits' },
    ],
    [
      'a response that is described without content',
      sample(fitting, { status: 204 }),
      { result: 'unchecked' },
    ],
    [
      'a media type that is not described',
      sample(fitting, { contentType: 'application/hal+json' }),
      { result: 'undescribed', pointer: '', detail: 'its media type is not described' },
    ],
    [
      'an operation that is not described',
      sample(fitting, { operation: 'GET /none' }),
      { result: 'unchecked' },
    ],
  ])('%s', (_title, given, expected) => {
    expect(check(given)).toEqual(expected)
  })
})

describe('the gateway compares some responses of an upstream with the document', () => {
  let folder: string
  let origin: Origin
  let gateway: TestGateway
  let content = ''
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'trellis-drift-'))
    await writeFile(join(folder, 'api.json'), JSON.stringify(document))
    origin = await startOrigin((_request, wire) => {
      wire.respond({ fields: { 'Content-Type': 'application/json' }, content })
    })
    gateway = await startTestGateway({
      services: {
        pets: {
          contract: 'openapi',
          mount: '/',
          document: join(folder, 'api.json'),
          responseChecks: { perSecond: 100 },
          upstream: { targets: [origin.origin], basePath: '/v1' },
          cache: { rules: [{ match: 'GET /pets', ttl: '1h' }] },
        },
      },
    })
  })
  afterAll(async () => {
    await gateway.close()
    await origin.close()
    await rm(folder, { recursive: true })
  })
  const checks = (result: string) => gateway.metric('trellis_response_checks_total', `result="${result}"`)
  const admin = async (path: string) => (await fetch(gateway.adminAddress + path)).json()

  test('responses pass unchanged, differences are counted and listed, and hits are not compared', async () => {
    expect(await gateway.metric('trellis_response_checks_total', 'result="fits"')).toBe(0)
    content = '{"id":"one","name":"Tom"}'
    expect(await (await fetch(`${gateway.publicAddress}/pets/1`)).text()).toBe(content)
    await expect.poll(() => checks('differs'), { timeout: 20_000 }).toBe(1)
    content = '[]'
    for (let round = 0; round < 5; round += 1)
      expect(await (await fetch(`${gateway.publicAddress}/pets`)).text()).toBe(content)
    await expect.poll(() => checks('fits')).toBe(1)
    const difference = { operation: 'GET /pets/{id}', status: 200, pointer: '/id', detail: 'must be integer' }
    expect(await admin('/drift')).toEqual({ services: [{ service: 'pets', responses: [difference] }] })
    expect(await admin(`/explain?method=GET&url=${encodeURIComponent('/pets/7')}`)).toMatchObject({
      responseDrift: difference,
    })
    expect(await admin(`/explain?method=GET&url=${encodeURIComponent('/pets')}`)).not.toHaveProperty(
      'responseDrift',
    )
  })

  test('a response that is longer than what is compared passes unchanged', async () => {
    content = JSON.stringify({ id: 'x'.repeat(600_000) })
    expect(await (await fetch(`${gateway.publicAddress}/pets/2`)).text()).toBe(content)
    expect(await checks('failed')).toBe(0)
  })
})

test('one line is logged for the first difference of an operation, and one when the checks end', () => {
  const lines: unknown[] = []
  const log = { info: () => {}, warn: (facts: object, message: string) => lines.push([message, facts]) }
  const metrics = withUpstreamLog(createMetrics({ version: '', configHash: '', processMetrics: false }), log)
  const { discovery } = metrics.observe
  const difference = { operation: 'GET /a', status: 200, pointer: '/a', detail: 'must be string' }
  discovery({ kind: 'response-checked', service: 'pets', result: 'fits' })
  discovery({ kind: 'response-checked', service: 'pets', result: 'differs', difference })
  discovery({ kind: 'response-checked', service: 'pets', result: 'differs' })
  discovery({ kind: 'response-checks-failed', service: 'pets', cause: 'memory' })
  expect(lines).toEqual([
    ['response-differs', { service: 'pets', ...difference }],
    ['response-checks-failed', { service: 'pets', err: 'memory' }],
  ])
})
