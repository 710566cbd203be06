import { beforeAll, beforeEach, expect, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

let origin: Origin
let gateway: TestGateway
/** Of the response to the next mutation. */
let answer: { readonly headers?: Record<string, string>; readonly content?: string; readonly status?: number }

const json = { 'Content-Type': 'application/json' }

beforeAll(async () => {
  origin = await startOrigin(({ content }, wire) => {
    const { query } = JSON.parse(content.toString()) as { readonly query: string }
    const [, name = ''] = /^query (\w+)/.exec(query) ?? []
    if (name === '')
      wire.respond({ content: '{"data":{}}', ...answer, headers: { ...json, ...answer.headers } })
    else wire.respond({ headers: { ...json, 'Cache-Groups': `"${name}", "shop"` }, content: '{"data":{}}' })
  })
  const graph = {
    contract: 'graphql',
    upstream: { targets: [origin.origin] },
    cache: { rules: [{ match: 'query *', ttl: '1h' }] },
  }
  gateway = await startTestGateway({
    services: {
      complete: { ...graph, graphql: { tags: 'complete' } },
      partial: { ...graph, mount: '/partial' },
    },
  })
})
closeAfterAll(() => [gateway, origin])

const send = async (path: string, query: string): Promise<boolean> => {
  const response = await fetch(gateway.publicAddress + path, {
    method: 'POST',
    headers: json,
    body: JSON.stringify({ query }),
  })
  await response.arrayBuffer()
  return (response.headers.get('cache-status') ?? '').includes('; hit')
}

/** Which of two queries are left. */
const left = async (path: string): Promise<readonly string[]> => {
  const hits: string[] = []
  for (const name of ['Plants', 'Pots']) if (await send(path, `query ${name} { a }`)) hits.push(name)
  return hits
}

beforeEach(async () => {
  for (const path of ['/graphql', '/partial']) {
    await left(path)
    expect(await left(path)).toEqual(['Plants', 'Pots'])
  }
})

test.each<[string, typeof answer, readonly string[]]>([
  ['one group', { headers: { 'Cache-Group-Invalidation': '"Plants"' } }, ['Pots']],
  ['a group of both', { headers: { 'Cache-Group-Invalidation': '"shop"' } }, []],
  ['a group that nothing has', { headers: { 'Cache-Group-Invalidation': '"none"' } }, ['Plants', 'Pots']],
  ['no group', {}, []],
  ['a list that cannot be read', { headers: { 'Cache-Group-Invalidation': '"Plants' } }, []],
  ['an error without data', { content: '{"errors":[{"message":"no"}]}' }, ['Plants', 'Pots']],
  ['an error of the server', { status: 500, content: 'x' }, []],
])('tags: complete: a mutation whose response names %s', async (_, next, kept) => {
  answer = next
  await send('/graphql', 'mutation { a }')
  expect(await left('/graphql')).toEqual(kept)
  // Its upstream is the same, and nobody says that the groups are all.
  expect(await left('/partial')).not.toContain('Plants')
})
