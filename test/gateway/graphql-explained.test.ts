import { expect, test } from 'vitest'
import { explain } from '../../src/gateway/explain.ts'
import { checkConfig } from '../../src/gateway/load-config.ts'
import { describeRoutes } from '../../src/gateway/upstream-issues.ts'

const file = `
services:
  graph:
    contract: graphql
    upstream: { targets: ['http://127.0.0.1:9'] }
    cache: { rules: [{ match: query Me, ttl: 5s }, { match: 'query *', ttl: 1h }] }
`

const explained = async (method: string, body: unknown, url = '/graphql') => {
  const checked = await checkConfig(file, {})
  if (checked.kind === 'faults') throw new Error(JSON.stringify(checked.faults))
  const content = body === undefined ? undefined : Buffer.from(JSON.stringify(body))
  return explain(checked.config, { method, target: url, headers: {}, content })
}

test.each([
  [
    'a query',
    { query: '{ a }' },
    { operation: 'query', cache: 'read, public', rule: expect.stringContaining('ttl 1h') },
  ],
  [
    'a query by its rule',
    { query: 'query Me { a }' },
    { operation: 'query Me', rule: expect.stringContaining('ttl 5s') },
  ],
  [
    'a mutation',
    { query: 'mutation Add { a }' },
    { operation: 'mutation Add', cache: 'write: invalidates', mayInvalidate: ['graph/all'] },
  ],
  ['a body that cannot be read', { id: 'a' }, { operation: 'unknown', cache: 'write: invalidates' }],
])('%s is explained by its operation', async (_, body, facts) => {
  expect(await explained('POST', body)).toMatchObject({ service: 'graph', row: '/', ...facts })
})

test('routes says that operations decide what is stored', async () => {
  const checked = await checkConfig(file, {})
  if (checked.kind === 'faults') throw new Error(JSON.stringify(checked.faults))
  const { lines } = await describeRoutes(checked.config)
  expect(lines).toEqual([expect.objectContaining({ service: 'graph', cached: 'by operation' })])
})

test('a mutation by GET is explained as refused', async () => {
  expect(await explained('GET', undefined, '/graphql?query=mutation{a}')).toMatchObject({
    refused: expect.stringContaining('405 mutation_by_get'),
  })
})

test('a rule with a path, and one for mutations, are faults', async () => {
  for (const match of ['GET /graphql', 'mutation *']) {
    const checked = await checkConfig(file.replace('query Me', `'${match}'`), {})
    expect(checked).toMatchObject({
      kind: 'faults',
      faults: [{ message: expect.stringContaining('expected query') }],
    })
  }
})
