import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { closeAfterEach } from '../support/close.ts'
import { postBatch, siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

const post = '/site/v2/posts/1'

let origin: Origin
let gateway: TestGateway

closeAfterEach(() => [gateway, origin])

test.each([
  [3, 3, 207],
  [3, 4, 400],
  [40, 40, 207],
  [40, 41, 400],
])('with batch.maxItems %i a batch of %i answers %i', async (maxItems, items, status) => {
  origin = await startOrigin()
  const batch = { maxItems, split: 'item' }
  gateway = await startTestGateway({ services: { site: siteService(origin.origin, { batch }) } })
  const requests = Array.from({ length: items }, (_, i) => ({ path: `/site/v2/posts/${i + 1}`, body: {} }))
  const response = await postBatch(gateway, { requests })
  expect(response.status).toBe(status)
  if (status === 400) {
    const { data } = (await response.json()) as { data: { params: Record<string, string> } }
    expect(data.params['requests']).toBe(`requests must contain at most ${maxItems} items.`)
  }
})

test('a batch of 26 gets the error that was recorded from WordPress', async () => {
  origin = await startOrigin()
  gateway = await startTestGateway({ services: { site: siteService(origin.origin, {}) } })
  const requests = Array.from({ length: 26 }, () => ({ path: '/site/v2/posts' }))
  const response = await postBatch(gateway, { requests })
  const recorded = readFileSync(new URL('../unit/batch/fixtures/batch-26.http', import.meta.url), 'utf8')
  expect(response.status).toBe(400)
  expect(await response.json()).toEqual(JSON.parse(recorded.trimEnd().split('\n').at(-1) ?? ''))
})

test('a batch without a list of items is refused as a whole, and no item is sent', async () => {
  origin = await startOrigin()
  gateway = await startTestGateway({ services: { site: siteService(origin.origin, {}) } })
  const item = { path: post, body: { title: 'x' } }
  for (const body of [
    null,
    'x',
    7,
    [],
    {},
    { requests: 'x' },
    { requests: [item, null] },
    { requests: [{}] },
  ]) {
    const response = await fetch(`${gateway.publicAddress}/index.php/site-json/batch/v1`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    })
    expect([body, response.status]).toEqual([body, 400])
    expect(await response.json()).toMatchObject({ data: { status: 400 } })
  }
  expect(origin.received).toHaveLength(0)
})

const members = (name: string, count: number): Readonly<Record<string, string>> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`${name}${i}`, 'v']))

describe('limits of one item', () => {
  test.each<[description: string, item: Readonly<Record<string, unknown>>, told: string | undefined]>([
    ['a hundred headers', { path: post, headers: members('x-', 100) }, undefined],
    [
      'one more',
      { path: post, headers: members('x-', 101) },
      'requests[1][headers] must contain at most 100 properties.',
    ],
    [
      'sixteen thousand headers without effect',
      { path: post, headers: members('if-', 16_000) },
      'requests[1][headers] must contain at most 100 properties.',
    ],
    [
      'sixteen thousand members that have no effect',
      { path: post, ...members('k', 16_000) },
      'requests[1] must contain at most 100 properties.',
    ],
    ['a target as long as one may be', { path: `${post}?x=${'a'.repeat(500 - post.length - 3)}` }, undefined],
    [
      'a longer one',
      { path: `${post}?${'a&'.repeat(250)}` },
      'requests[1][path] must be at most 500 characters long.',
    ],
  ])('%s', async (_, item, told) => {
    origin = await startOrigin()
    gateway = await startTestGateway({
      limits: { urlBytes: '500B', bodyBytes: '4MiB' },
      services: { site: siteService(origin.origin, { batch: { split: 'item' } }) },
    })
    const response = await fetch(`${gateway.publicAddress}/index.php/site-json/batch/v1`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ requests: [{ path: '/site/v2/posts/2', body: { slug: 'a' } }, item] }),
    })
    const reply = (await response.json()) as { data?: { params: Record<string, string> } }
    expect(reply.data?.params['requests']).toBe(told)
    expect(response.status).toBe(told === undefined ? 207 : 400)
    expect(origin.received).toHaveLength(told === undefined ? 2 : 0)
    const ended = `status_class="${told === undefined ? 2 : 4}xx"`
    expect(await gateway.metric('trellis_requests_total', 'route="/batch/v1"', ended)).toBe(1)
  })
})
