import { expect, test, vi } from 'vitest'
import { closeAfterEach } from '../support/close.ts'
import { type Companion, startCompanion } from '../support/companion.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import type { Script } from '../support/origin.ts'

let companion: Companion
let gateway: TestGateway

const json = { 'Content-Type': 'application/json' }

const start = async (split: 'item' | 'whole'): Promise<void> => {
  companion = await startCompanion()
  const { origin } = companion.origin
  const changes = { token: companion.token, poll: '5s' }
  gateway = await startTestGateway({
    services: {
      site: siteService(origin, {
        ...{ mount: '/wp-json', names: 'same', changes, batch: { split } },
        cache: { rules: [{ match: 'GET /wp/v2/**', ttl: '1h' }] },
        upstream: { targets: [origin], basePath: '/wp-json' },
      }),
      graph: { contract: 'graphql', upstream: { targets: [origin] }, changes },
    },
  })
  for (const service of ['site', 'graph'])
    await vi.waitFor(
      async () =>
        expect(await gateway.metric('trellis_changes_state', `service="${service}",state="heard"`)).toBe(1),
      { timeout: 60_000 },
    )
}
closeAfterEach(() => [gateway, companion])

/** Posts of which the companion says what their responses show, and a query. */
const reads: readonly (readonly [string, string])[] = [
  ['/wp-json/wp/v2/posts/1', 'v1;n=1;complete;blogs=1;p=1'],
  ['/wp-json/wp/v2/posts/2', 'v1;n=1;complete;blogs=1;p=2'],
  ['/graphql?query={a}', 'v1;n=1;complete;blogs=1;p=3'],
]

const isHit = async (path: string): Promise<boolean> => {
  const response = await fetch(gateway.publicAddress + path)
  await response.arrayBuffer()
  return response.headers.get('cache-status')?.includes('; hit') === true
}

const left = async (): Promise<readonly string[]> => {
  const paths: string[] = []
  for (const [path, tags] of reads) {
    companion.headers = { 'Trellis-Tags': tags }
    if (await isHit(path)) paths.push(path)
  }
  return paths
}

const all = reads.map(([path]) => path)

const fill = async (): Promise<void> => {
  // GraphQL responses have an object at their top.
  const { script } = companion.origin
  companion.origin.script = (request, wire, count) =>
    request.target.startsWith('/graphql')
      ? wire.respond({ headers: { ...json, ...companion.headers }, content: '{"data":{"a":1}}' })
      : script(request, wire, count)
  await left()
  expect(await left()).toEqual(all)
}

/** The nonces of the requests that wrote. */
const nonces = (): readonly (string | undefined)[] =>
  companion.origin.received
    .filter(({ method }) => method !== 'GET')
    .map(({ headers }) => headers['trellis-nonce'])

const sendBatch = async (): Promise<readonly number[]> => {
  const requests = [1, 2].map((id) => ({ method: 'POST', path: `/wp/v2/posts/${id}`, body: { title: 'x' } }))
  const response = await fetch(`${gateway.publicAddress}/wp-json/batch/v1`, {
    method: 'POST',
    headers: json,
    body: JSON.stringify({ requests }),
  })
  expect(response.status).toBe(207)
  const { responses } = (await response.json()) as { readonly responses: readonly { status: number }[] }
  return responses.map(({ status }) => status)
}

const post = (id: number) => ({ id, type: 'post', title: { rendered: 'x' } })

const wholeResponse = { responses: [1, 2].map((id) => ({ body: post(id), status: 200, headers: {} })) }

type Receipt = (asked: string | undefined) => string | Promise<string>

const nothing: Receipt = (asked) => companion.state('nothing', asked)

/** The companion reports this row while the request is carried out. */
const rowOf =
  (id: number): Receipt =>
  async (asked) => {
    const row = companion.write(id)
    await companion.push(gateway.adminAddress, row)
    return companion.state(`rows ${companion.incarnation}.${row.sequence}.${row.check}`, asked)
  }

/** Answers items, and batches whole, with the same receipt. */
const stating =
  (receipt: Receipt): Script =>
  async ({ target, headers }, wire) => {
    const isWhole = target.endsWith('/batch/v1')
    const content = JSON.stringify(isWhole ? wholeResponse : post(Number(target.split('/').at(-1))))
    const statement = await receipt(headers['trellis-nonce'])
    wire.respond({
      status: isWhole ? 207 : 200,
      headers: { ...json, 'Trellis-Statement': statement },
      content,
    })
  }

test.each(['item', 'whole'] as const)('items that write nothing drop nothing (split: %s)', async (split) => {
  await start(split)
  await fill()
  companion.respondToWrite = stating(nothing)
  expect(await sendBatch()).toEqual([200, 200])
  expect(await left()).toEqual(all)
  const asked = nonces()
  expect(asked).toHaveLength(split === 'item' ? 2 : 1)
  expect(new Set(asked).size).toBe(asked.length)
  expect(asked).not.toContain(undefined)
})

test.each(['item', 'whole'] as const)(
  'items whose rows are reported drop what these say (split: %s)',
  async (split) => {
    await start(split)
    await fill()
    companion.respondToWrite = stating(rowOf(1))
    await sendBatch()
    // The receipts of both name a change of the first post.
    expect(await left()).toEqual(['/wp-json/wp/v2/posts/2', '/graphql?query={a}'])
  },
)

test.each<['item' | 'whole', string, Receipt]>(
  (['item', 'whole'] as const).flatMap((split) => [
    [split, 'no receipt', () => ''],
    [split, 'a receipt for another request', () => companion.state('nothing', 'a'.repeat(32))],
    [
      split,
      'a row that the gateway has not got',
      (asked) => companion.state(`rows ${companion.incarnation}.900.aaaaaaaaaaaaaaaa`, asked),
    ],
  ]),
)('items with %s and %s drop everything', async (split, _, receipt) => {
  await start(split)
  await fill()
  companion.respondToWrite = stating(receipt)
  await sendBatch()
  expect(await left()).toEqual([])
})

test('one item without a receipt drops what the other leaves', async () => {
  await start('item')
  await fill()
  let count = 0
  companion.respondToWrite = stating((asked) => {
    count += 1
    return count === 2 ? '' : nothing(asked)
  })
  await sendBatch()
  // By its route it changed the other post.
  expect(await left()).toEqual(['/wp-json/wp/v2/posts/1'])
})

test('the receipt of a batch that is sent again says nothing of the first time', async () => {
  await start('whole')
  await fill()
  let count = 0
  companion.respondToWrite = (request, wire, at) => {
    count += 1
    if (count > 1) return stating(nothing)(request, wire, at)
    return wire.respond({ status: 429, headers: { ...json, 'Retry-After': '1' }, content: '{}' })
  }
  expect(await sendBatch()).toEqual([200, 200])
  expect(count).toBe(2)
  expect(await left()).toEqual([])
})

test('the receipts of items that are sent alone say nothing of the batch that was refused', async () => {
  await start('whole')
  await fill()
  companion.respondToWrite = (request, wire, at) =>
    request.target.endsWith('/batch/v1')
      ? wire.respond({
          status: 404,
          headers: json,
          content: JSON.stringify({ code: 'rest_no_route', message: 'none', data: { status: 404 } }),
        })
      : stating(nothing)(request, wire, at)
  expect(await sendBatch()).toEqual([200, 200])
  expect(nonces()).toHaveLength(3)
  expect(await left()).toEqual([])
})
