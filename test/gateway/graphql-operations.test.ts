import { beforeAll, expect, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

let origin: Origin
let gateway: TestGateway

beforeAll(async () => {
  const headers = { 'Content-Type': 'application/json' }
  origin = await startOrigin((_, wire) => wire.respond({ headers, content: '{"data":{"a":1}}' }))
  gateway = await startTestGateway({
    services: {
      graph: {
        ...{ contract: 'graphql', upstream: { targets: [origin.origin] } },
        cache: { rules: [{ match: 'query Ruled', ttl: '1h' }] },
      },
    },
  })
})
closeAfterAll(() => [gateway, origin])

type Row = { readonly route: string }

const send = async (body: unknown): Promise<void> => {
  const response = await fetch(`${gateway.publicAddress}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
  await response.arrayBuffer()
}

/** Operations in the place of routes. */
const routes = async (): Promise<readonly string[]> => {
  const metrics = await (await fetch(`${gateway.adminAddress}/metrics`)).text()
  return [
    ...new Set(
      [...metrics.matchAll(/trellis_requests_total\{[^}]*route="([^"]*)"/g)].map(([, name = '']) => name),
    ),
  ]
}

test('requests are counted by the operations that they ask for', async () => {
  const query = 'query Posts { a } query Pages { a }'
  await send({ query, operationName: 'Posts' })
  await send({ query, operationName: 'Posts' })
  await send({ query, operationName: 'Pages' })
  await send({ query: '{ a }' })
  await send({ query: 'mutation Add { a }' })
  await send([{ query: '{ a }' }, { query: '{ b }' }])
  await send({ id: 'stored' })
  expect(await routes()).toEqual(
    expect.arrayContaining(['query Posts', 'query Pages', 'query', 'mutation Add', 'batch', 'unknown']),
  )
  expect(await routes()).not.toContain('/')
})

test('the status page has a row for each operation', async () => {
  await expect
    .poll(async () => {
      const response = await fetch(`${gateway.adminAddress}/status`)
      const { routes: rows } = (await response.json()) as { readonly routes: readonly Row[] }
      return rows.map(({ route }) => route)
    })
    .toEqual(expect.arrayContaining(['query Posts', 'mutation Add']))
})

test('names that clients invent are counted together', async () => {
  for (let nth = 0; nth < 150; nth += 1) await send({ query: `query Invented${nth} { a }` })
  const seen = await routes()
  expect(seen.length).toBeLessThan(110)
  expect(seen).toContain('query other')
  expect(seen).not.toContain('query Ruled')
  await send({ query: 'query Ruled { a }' })
  expect(await routes()).toContain('query Ruled')
})
