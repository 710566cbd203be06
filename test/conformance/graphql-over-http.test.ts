import { createRequire } from 'node:module'
import { beforeAll, expect, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type GraphqlServer, startGraphqlServer } from '../support/graphql-server.ts'

type Audit = {
  readonly id: string
  readonly name: string
  readonly fn: () => Promise<{ readonly status: 'ok' | 'notice' | 'warn' | 'error' }>
}
type AuditModule = { serverAudits(options: { readonly url: string }): readonly Audit[] }

// Not imported: its types bring the DOM into all of the source.
const require = createRequire(import.meta.url)
const { serverAudits } = require('graphql-http') as AuditModule

let server: GraphqlServer
let gateway: TestGateway

beforeAll(async () => {
  server = await startGraphqlServer()
  gateway = await startTestGateway({
    services: { graph: { contract: 'graphql', upstream: { targets: [server.origin] } } },
  })
})
closeAfterAll(() => [gateway, server])

/** The audits of graphql-http, by name. */
const audited = async (url: string): Promise<ReadonlyMap<string, string>> => {
  const results = new Map<string, string>()
  for (const { id, name, fn } of serverAudits({ url })) results.set(`${id} ${name}`, (await fn()).status)
  return results
}

test('an audit of GraphQL over HTTP that a server passes, it passes through the gateway', async () => {
  const direct = await audited(`${server.origin}/graphql`)
  const through = await audited(`${gateway.publicAddress}/graphql`)
  const worse = [...direct].filter(([name, status]) => status === 'ok' && through.get(name) !== 'ok')
  expect(direct.size).toBeGreaterThan(50)
  expect(worse).toEqual([])
})
