import { afterAll, beforeAll, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { examine } from '../../src/gateway/doctor.ts'
import { checkConfig } from '../../src/gateway/load-config.ts'
import { allUpstreamIssues } from '../../src/gateway/upstream-issues.ts'
import { startTestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

let origin: Origin
beforeAll(async () => {
  origin = await startOrigin()
})
afterAll(() => origin.close())

const issuesOf = async (changes: object = {}): Promise<readonly string[]> => {
  const graph = { contract: 'graphql', upstream: { targets: [origin.origin] }, ...changes }
  const checked = await checkConfig(stringify({ services: { graph } }), {})
  if (checked.kind === 'faults') throw new Error(JSON.stringify(checked.faults))
  return (await allUpstreamIssues(checked.config)).map(({ text }) => text)
}

const json = { 'Content-Type': 'application/json' }
const answers =
  (objectCache: object): Origin['script'] =>
  ({ target }, wire) =>
    wire.respond({
      headers: json,
      status: target.startsWith('/graphql?') ? 200 : 404,
      content: JSON.stringify({
        data: { __typename: 'RootQuery' },
        extensions: { graphqlSmartCache: { graphqlObjectCache: objectCache } },
      }),
    })

test('the object cache of WPGraphQL Smart Cache is an issue, and the plugin without it is none', async () => {
  origin.script = answers({})
  expect(await issuesOf()).toEqual([])
  origin.script = answers({ message: 'This response was cached', cacheKey: 'abc' })
  expect(await issuesOf()).toEqual([expect.stringContaining('"Use Object Cache"')])
})

test('a token without a companion is an issue', async () => {
  origin.script = answers({})
  const changes = { token: 'token-of-a-companion', poll: '5s' }
  expect(await issuesOf({ changes })).toEqual([expect.stringContaining('companion')])
})

test('doctor counts the documents that the limits of a running gateway have refused, by reason', async () => {
  origin.script = answers({})
  const token = 'token-of-the-admin-side'
  const upstream = { targets: [origin.origin] }
  const services = { graph: { contract: 'graphql', upstream, graphql: { introspection: false } } }
  const gateway = await startTestGateway({ services, admin: { port: 0, token } })
  try {
    const { port } = new URL(gateway.adminAddress)
    const checked = await checkConfig(stringify({ services, admin: { port: Number(port), token } }), {})
    if (checked.kind === 'faults') throw new Error(JSON.stringify(checked.faults))
    const refused = async () =>
      (await examine(checked.config)).filter(({ text }) => text.startsWith('refused by the limits'))
    expect(await refused()).toEqual([])
    for (const query of [
      '{ __schema { description } }',
      '{ __type(name: "A") { name } }',
      `{ a${'{ a'.repeat(20)}${'}'.repeat(21)}`,
    ]) {
      const target = `${gateway.publicAddress}/graphql?query=${encodeURIComponent(query)}`
      expect((await fetch(target)).status).toBe(400)
    }
    const text = expect.stringContaining('document_too_deep 1, introspection_refused 2;')
    expect(await refused()).toEqual([{ state: 'note', subject: 'graph', text }])
  } finally {
    await gateway.close()
  }
})

test.each([
  ['open by default', {}, true],
  ['refused by the gateway', { graphql: { introspection: false } }, false],
  ['behind access', { access: { allow: ['127.0.0.1'] } }, false],
])('doctor notes introspection that is open: %s', async (_, more, isNoted) => {
  origin.script = answers({})
  const graph = { contract: 'graphql', upstream: { targets: [origin.origin] }, ...more }
  const checked = await checkConfig(stringify({ services: { graph } }), {})
  if (checked.kind === 'faults') throw new Error(JSON.stringify(checked.faults))
  const texts = (await examine(checked.config)).map(({ state, text }) => `${state} ${text}`)
  expect(texts.some((text) => text.startsWith('note introspection is open'))).toBe(isNoted)
})
