import { expect, test } from 'vitest'
import type { ItemResponse } from '../../../src/batch/item.ts'
import { WriteFailed } from '../../../src/batch/item-errors.ts'
import { GatewayError } from '../../../src/errors.ts'
import { batchOf, runBatch, wholeResponse } from './batch-of.ts'

const good = (id: number) => ({ method: 'PUT', path: `/site/v2/posts/${id}`, body: { title: 'x' } })

const faulty = [
  ['an unparsable path', { path: 'http:///x' }, 400, 'parse_path_failed'],
  ['a path without a slash', { path: 'site/v2/posts' }, 404, 'rest_no_route'],
  ['a refused route', { path: '/site/v2/media/7' }, 400, 'rest_batch_not_allowed'],
  ['an item that throws', { path: '/site/v2/posts/666' }, 503, 'trellis_upstream_busy'],
] as const

const positions = faulty.flatMap(([what, entry, status, code]) =>
  [0, 1, 2, 3, 4].map((at) => [what, at, entry, status, code] as const),
)

test.each(positions)('%s at index %i shifts no other', async (_, at, entry, status, code) => {
  const requests: unknown[] = [1, 2, 3, 4].map(good)
  requests.splice(at, 0, entry)
  const batch = batchOf({
    admit: (item) =>
      item.path.startsWith('/site/v2/media')
        ? {
            kind: 'refused',
            status: 400,
            body: { code: 'rest_batch_not_allowed', message: '', data: { status: 400 } },
          }
        : {
            kind: 'runnable',
            conflict: {
              collection: 'posts',
              kind: 'item',
              itemId: item.path.slice(15),
              method: 'PUT',
              effect: 'write',
            },
          },
    handleItem: async (item): Promise<ItemResponse> => {
      if (item.path.endsWith('666')) throw new GatewayError('upstream_busy', { retryAfterSeconds: 1 })
      return { status: 200, headers: [], content: Buffer.from(JSON.stringify({ path: item.path })) }
    },
  })
  const { responses } = await runBatch(batch, requests)
  const expected: unknown[] = [1, 2, 3, 4].map((id) => ({
    body: { path: `/site/v2/posts/${id}` },
    status: 200,
  }))
  expected.splice(at, 0, { body: { code }, status })
  expect(responses).toMatchObject(expected)
})

test('no items, no responses', async () => {
  expect(await runBatch(batchOf({}), [])).toEqual({ responses: [] })
})

test.each([
  ['a 64-bit integer', '{"id":9223372036854775807}'],
  ['escapes and spaces', '{ "a" : "\\u00e4\\/" }'],
  ['repeated names', '{"a":1,"a":2}'],
  ['minus zero and exponents', '[-0,1E2]'],
])('copies %s byte for byte', async (_, json) => {
  const batch = batchOf({
    handleItem: async () => ({ status: 200, headers: [], content: Buffer.from(json) }),
  })
  const response = await wholeResponse(batch, { requests: [good(1)] }, new AbortController().signal)
  expect(response.content.toString()).toBe(`{"responses":[{"body":${json},"status":200,"headers":[]}]}`)
})

test.each([
  ['nothing', '', 200, 200, null],
  ['a byte order mark', '\ufeff{"a":1}', 200, 200, { a: 1 }],
  [
    'an HTML page as success',
    '<h1>Hi</h1>',
    200,
    502,
    { code: 'trellis_upstream_broken', data: { status: 502 } },
  ],
  [
    'an HTML page as failure',
    '<h1>Oh</h1>',
    500,
    500,
    { code: 'trellis_upstream_broken', data: { status: 500 } },
  ],
  ['two values', '{}{}', 200, 502, { code: 'trellis_upstream_broken' }],
])('keeps the envelope whole when an item answers %s', async (_, content, status, shown, body) => {
  const batch = batchOf({ handleItem: async () => ({ status, headers: [], content: Buffer.from(content) }) })
  const { responses } = await runBatch(batch, [good(1)])
  expect(responses).toHaveLength(1)
  expect(responses[0]?.status).toBe(shown)
  if (body === null) expect(responses[0]?.body).toBeNull()
  else expect(responses[0]?.body).toMatchObject(body)
})

test('a write whose connection broke says that its outcome is unknown, one that was not sent says so', async () => {
  const batch = batchOf({
    handleItem: async (item) => {
      throw item.path.endsWith('1')
        ? new WriteFailed(new GatewayError('upstream_broken'), 'unknown')
        : new WriteFailed(new GatewayError('upstream_unreachable'), 'not-sent')
    },
  })
  const { responses } = await runBatch(batch, [good(1), good(2)])
  expect(responses).toMatchObject([
    { status: 502, body: { code: 'trellis_upstream_broken', data: { status: 502, outcome: 'unknown' } } },
    {
      status: 502,
      body: { code: 'trellis_upstream_unreachable', data: { status: 502, outcome: 'not-sent' } },
    },
  ])
})
