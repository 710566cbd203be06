/** What routing, validation and the canonical query of an OpenAPI request cost: npm run bench:openapi. Medians of CPU time. */

import { atOnce } from '../src/http/bodies/turns.ts'
import { loadDocument } from '../src/openapi/document/load-document.ts'
import { createOpenApiRequests } from '../src/openapi/requests/openapi-requests.ts'
import { median } from './statistics.ts'

const integer = { type: 'integer', minimum: 1, maximum: 100000 }
const text = { type: 'string', maxLength: 100 }
const item = {
  type: 'object',
  required: ['id', 'name'],
  properties: {
    id: { type: 'integer', format: 'int64' },
    name: text,
    price: { type: 'number' },
    on: { type: 'boolean' },
  },
}
const query = (name: string, schema: object) => ({ name, in: 'query', schema })
const shop = { name: 'shop', in: 'path', required: true, schema: integer }
const seven = [
  query('page', integer),
  query('per_page', integer),
  query('q', text),
  query('sort', { type: 'string', enum: ['name', 'price'] }),
  query('on', { type: 'boolean' }),
  query('ids', { type: 'array', items: integer }),
  query('since', { type: 'string', format: 'date' }),
]
const requestBody = { content: { 'application/json': { schema: { type: 'array', items: item } } } }
const document = {
  openapi: '3.1.0',
  info: { title: 'x', version: '1' },
  paths: {
    '/shops/{shop}/items': {
      get: { parameters: [shop, ...seven] },
      post: { parameters: [shop, ...seven], requestBody },
    },
  },
}

const reading = loadDocument({ root: 'api.json', files: { 'api.json': document } })
if (reading.kind === 'faults') throw new Error(JSON.stringify(reading.faults))
const { find, validator } = atOnce(
  createOpenApiRequests(reading.contract, {
    limits: { queryParameters: 256, jsonDepth: 64 },
    unknownParameters: 'forward',
    trackingParameters: ['utm_*'],
  }),
)

const items = Array.from({ length: 36 }, (_, id) => ({
  id,
  name: `item number ${id}`,
  price: id / 4,
  on: true,
}))
const content = Buffer.from(JSON.stringify(items))
const full = 'page=2&per_page=50&q=red%20shoes&sort=name&on=true&ids=1&ids=2&since=2026-01-31'

const validate = (method: string, path: string, query: string, body?: Buffer): void => {
  const found = find(method, path)
  if (found.kind !== 'found') throw new Error(found.kind)
  const { row, endpoint, pathParameters } = found
  const headers = {
    host: 'a.example',
    accept: '*/*',
    'content-type': 'application/json',
    'content-length': '1',
  }
  const result = validator.validate({
    method,
    row,
    endpoint,
    pathParameters,
    query,
    contentType: headers['content-type'],
    content: body,
    headers,
  })
  if (result.kind !== 'valid') throw new Error(JSON.stringify(result.body))
}

const cases: readonly (readonly [string, () => unknown])[] = [
  ['GET without parameters in the query', () => validate('GET', '/shops/12/items', '')],
  ['GET with 7 parameters in the query', () => validate('GET', '/shops/12/items', full)],
  [`POST with ${content.length} bytes`, () => validate('POST', '/shops/12/items', '', content)],
  ['the same with 7 parameters in the query', () => validate('POST', '/shops/12/items', full, content)],
  ['JSON.parse of the same bytes', () => JSON.parse(content.toString())],
  ['route alone', () => find('GET', '/shops/12/items')],
]

const rounds = 41
const perRound = 2_000
for (const [name, run] of cases) {
  for (let i = 0; i < 5_000; i++) run()
  const micros: number[] = []
  for (let round = 0; round < rounds; round++) {
    const before = process.cpuUsage()
    for (let i = 0; i < perRound; i++) run()
    const { user, system } = process.cpuUsage(before)
    micros.push((user + system) / perRound)
  }
  console.log(`${name.padEnd(40)} ${median(micros).toFixed(1)} µs`)
}
