import { expect, test } from 'vitest'
import { closeAfterEach } from '../support/close.ts'
import { postBatch, siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { createLatch } from '../support/latch.ts'
import { type Origin, pause, type Script, startOrigin } from '../support/origin.ts'

const root = '/index.php/site-json'
const json = { 'Content-Type': 'application/json; charset=UTF-8' }
const batchTarget = '/index.php/wp-json/batch/v1'

let origin: Origin
let gateway: TestGateway
closeAfterEach(() => [gateway, origin])

type Sent = { method: string; path: string; body?: unknown; headers?: unknown }

/** What the upstream's batch was asked. */
const sentIn = (content: Buffer): Sent[] => JSON.parse(content.toString()).requests

/** An item's response, as WordPress puts it into a batch. */
const itemResponse = ({ path }: Sent): string =>
  `{"body":{"path":${JSON.stringify(path)},"big":9007199254740993},"status":200,"headers":{"Allow":"GET, POST"}}`

const respondsToBatches = (request: Parameters<Script>[0], wire: Parameters<Script>[1]): void => {
  if (request.target !== batchTarget) {
    wire.respond({ headers: json, content: `{"alone":${JSON.stringify(request.target)}}` })
    return
  }
  const responses = sentIn(request.content).map(itemResponse)
  wire.respond({ status: 207, headers: json, content: `{"responses":[${responses.join(',')}]}` })
}

const start = async (script: Script, batch: Record<string, unknown>, more: Record<string, unknown> = {}) => {
  origin = await startOrigin(script)
  const upstream = { targets: [origin.origin], basePath: '/index.php/wp-json', ...more }
  gateway = await startTestGateway({ services: { site: siteService(origin.origin, { batch, upstream }) } })
}

const update = (id: number, more: Record<string, unknown> = {}) => ({
  method: 'PUT',
  path: `/site/v2/posts/${id}?_fields=id`,
  body: { title: `t${id}` },
  ...more,
})

const send = async (requests: readonly unknown[], headers: Record<string, string> = {}) => {
  const response = await postBatch(gateway, { requests }, headers)
  const text = await response.text()
  return { status: response.status, text, responses: JSON.parse(text).responses }
}

const updates = (count: number) => Array.from({ length: count }, (_, at) => update(at + 1))
const targets = (): string[] => origin.received.map(({ target }) => target)
const wholeBatches = () => origin.received.filter(({ target }) => target === batchTarget)

test('25 updates become two upstream batches, and every response is at the index of its request', async () => {
  await start(respondsToBatches, { split: 'chunk' })
  const { status, text, responses } = await send(updates(25))
  expect(status).toBe(207)
  expect(targets()).toEqual([batchTarget, batchTarget])
  expect(responses.map(({ body }: { body: { path: string } }) => body.path)).toEqual(
    updates(25).map(({ path }) => path.replace('/site/v2', '/wp/v2')),
  )
  // Copied, not parsed: 2^53 + 1.
  expect(text.match(/9007199254740993/g)).toHaveLength(25)
  expect(responses[0].headers).toEqual({ Allow: 'GET, POST' })
})

test('an item is sent in the names of the upstream, with its own headers; the chunk with the credentials of the batch', async () => {
  await start(respondsToBatches, { split: 'chunk' })
  const first = update(1, {
    headers: { 'X-Foo': ['a', 'b'], Authorization: 'Basic bad', 'Content-Type': 'text/plain' },
    body: { site_id: 12345678901234567890n.toString(), meta: { a: [] } },
  })
  await send([first, update(2), update(3)], { Authorization: 'Basic good', 'X-Forwarded-For': '6.6.6.6' })
  const [chunk] = wholeBatches().filter(({ content }) => content.includes('/posts/1?'))
  expect(chunk?.headers).toMatchObject({
    authorization: 'Basic good',
    'content-type': 'application/json',
    'x-forwarded-for': '127.0.0.1',
  })
  expect(chunk?.headers['x-foo']).toBeUndefined()
  expect(sentIn(chunk?.content ?? Buffer.alloc(0))[0]).toEqual({
    method: 'PUT',
    path: '/wp/v2/posts/1?_fields=id',
    headers: { 'x-foo': 'a, b' },
    body: { wp_id: '12345678901234567890', meta: { a: [] } },
  })
})

test('an item that the gateway refuses is not sent and does not shift other items', async () => {
  await start(respondsToBatches, { split: 'chunk' })
  const bad = [{ path: '/site/v2/media' }, { path: '/nowhere' }, update(7, { body: { status: 'bogus' } })]
  const four = updates(4)
  const { responses } = await send([bad[0], four[0], bad[1], four[1], four[2], bad[2], four[3]])
  expect(responses.map(({ status }: { status: number }) => status)).toEqual([
    400, 200, 404, 200, 200, 400, 200,
  ])
  expect(wholeBatches().flatMap(({ content }) => sentIn(content))).toHaveLength(4)
})

test('items that wait for each other share a chunk, in their order', async () => {
  await start(respondsToBatches, { split: 'chunk' })
  const create = (slug: string) => ({ path: '/site/v2/posts', body: { title: slug, slug } })
  await send([create('a'), create('b'), update(1), create('c')])
  expect(wholeBatches()).toHaveLength(1)
  const bodies = sentIn(wholeBatches()[0]?.content ?? Buffer.alloc(0)).map(({ body }) => body)
  expect(bodies).toMatchObject([{ slug: 'a' }, { slug: 'b' }, { title: 't1' }, { slug: 'c' }])
})

test('an upstream without a batch route gets the items one by one, and is remembered', async () => {
  const noRoute = '{"code":"rest_no_route","message":"No route.","data":{"status":404}}'
  await start(
    (request, wire) =>
      request.target === batchTarget
        ? wire.respond({ status: 404, headers: json, content: noRoute })
        : respondsToBatches(request, wire),
    { split: 'chunk' },
  )
  const { responses } = await send(updates(5))
  expect(responses.map(({ body }: { body: { alone: string } }) => body.alone)).toEqual(
    [1, 2, 3, 4, 5].map((id) => `/index.php/wp-json/wp/v2/posts/${id}?_fields=id`),
  )
  const asked = wholeBatches().length
  expect((await send(updates(5))).responses).toHaveLength(5)
  expect(wholeBatches()).toHaveLength(asked)
  expect(await gateway.metric('trellis_batch_splits_total', 'no-batch-route')).toBe(1)
})

const refusals: [what: string, status: number, content: string][] = [
  ['401', 401, '{"code":"rest_forbidden","message":"No.","data":{"status":401}}'],
  [
    'fewer items than 25',
    400,
    '{"code":"rest_invalid_param","message":"x","data":{"status":400,"params":{"requests":"too many"}}}',
  ],
  ['413 of a server in front', 413, '<h1>413</h1>'],
]
const refusedSplits = refusals.flatMap((refusal) =>
  (['chunk', 'whole'] as const).map((split) => [split, ...refusal] as const),
)
test.each(refusedSplits)(
  'an upstream batch that is refused runs as items (%s): %s',
  async (split, _, status, content) => {
    await start(
      (request, wire) =>
        request.target === batchTarget
          ? wire.respond({ status, headers: json, content })
          : respondsToBatches(request, wire),
      { split },
    )
    const { responses } = await send(updates(4))
    expect(responses.map((one: { status: number }) => one.status)).toEqual([200, 200, 200, 200])
  },
)

const unreadable: [what: string, status: number, content: string][] = [
  ['a fatal error', 500, '<p>There has been a critical error on this website.</p>'],
  ['a page in place of JSON', 207, '<h1>Hi</h1>'],
  ['JSON of another shape', 207, '{"responses":{}}'],
  ['one response too few', 207, '{"responses":[{"body":1,"status":200,"headers":[]}]}'],
  ['a response without status', 207, '{"responses":[{"body":1},{"body":1}]}'],
  ['a 404 of somebody else', 404, '{"error":"not found"}'],
  ['200', 200, '{"responses":[{"body":1,"status":200},{"body":1,"status":200}]}'],
  ['a refusal without the shape of one', 403, 'blocked'],
]
test.each(unreadable)(
  'nothing is sent twice after %s: the outcome is unknown',
  async (_, status, content) => {
    await start((_request, wire) => wire.respond({ status, headers: json, content }), { split: 'chunk' })
    const { responses } = await send(updates(4))
    expect(responses).toHaveLength(4)
    for (const response of responses) {
      expect(response).toMatchObject({
        status: 502,
        body: { code: 'trellis_upstream_broken', data: { status: 502, outcome: 'unknown' } },
        headers: [],
      })
    }
    expect(targets()).toEqual([batchTarget, batchTarget])
  },
)

test('a chunk whose connection breaks leaves the outcome unknown, the other one has its responses', async () => {
  await start(
    (request, wire) =>
      request.content.includes('/posts/1?') ? wire.reset() : respondsToBatches(request, wire),
    { split: 'chunk' },
  )
  const { responses } = await send(updates(6))
  expect(responses.map(({ status }: { status: number }) => status)).toEqual([502, 200, 502, 200, 502, 200])
  expect(responses[0].body.data).toEqual({ status: 502, outcome: 'unknown' })
})

test('if the upstream cannot be reached, the items say that they were not sent', async () => {
  await start(respondsToBatches, { split: 'chunk' })
  await origin.close()
  const { responses } = await send(updates(4))
  for (const { body } of responses) {
    expect(body).toMatchObject({
      code: 'trellis_upstream_unreachable',
      data: { status: 502, outcome: 'not-sent' },
    })
  }
})

const slowDown = '{"code":"slow_down","message":"","data":{"status":429}}'

test('every item gets "too many requests" when the time to wait is too long', async () => {
  await start(
    (_, wire) =>
      wire.respond({
        status: 429,
        headers: { ...json, 'Retry-After': '17' },
        content: slowDown,
      }),
    { split: 'chunk' },
  )
  const { responses } = await send(updates(4))
  for (const response of responses) {
    expect(response).toMatchObject({
      status: 429,
      body: { code: 'slow_down' },
      headers: { 'Retry-After': '17' },
    })
  }
  expect(origin.received).toHaveLength(2)
})

test('every item gets the content of a "too many requests" that streams', async () => {
  await start(
    (_, wire) => {
      const length = Buffer.byteLength(slowDown)
      wire.write(
        `HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`,
      )
      void pause(50).then(() => wire.write(slowDown))
    },
    { split: 'chunk' },
  )
  const { responses } = await send(updates(4))
  expect(responses.map(({ body }: { body: unknown }) => body)).toEqual(
    Array.from({ length: 4 }, () => JSON.parse(slowDown)),
  )
})

/** The first one gets this Retry-After, in seconds. */
const limitsTheFirst =
  (seconds: number): Script =>
  (request, wire) => {
    if (origin.received.length > 1) return respondsToBatches(request, wire)
    wire.respond({ status: 429, headers: { ...json, 'Retry-After': String(seconds) }, content: slowDown })
  }

test('a chunk with a short Retry-After is sent again, and other chunks are not', async () => {
  await start(limitsTheFirst(1), { split: 'chunk' })
  const { responses } = await send(updates(4))
  expect(responses.map(({ status }: { status: number }) => status)).toEqual([200, 200, 200, 200])
  const asked = wholeBatches().map(({ content }) => sentIn(content).map(({ path }) => path))
  expect(asked).toHaveLength(3)
  expect(asked[2]).toEqual(asked[0])
  expect(await gateway.metric('trellis_batch_chunks_total', 'limited')).toBe(1)
})

test('a chunk with a Retry-After beyond the deadline keeps its response', async () => {
  await start(limitsTheFirst(10), { split: 'chunk', deadline: '9s' })
  const { responses } = await send(updates(4))
  expect(responses.map(({ status }: { status: number }) => status)).toEqual([429, 200, 429, 200])
  expect(origin.received).toHaveLength(2)
})

test('503 with Retry-After is not retried, because a part of the chunk may have been carried out', async () => {
  await start(
    (_, wire) =>
      wire.respond({ status: 503, headers: { ...json, 'Retry-After': '1' }, content: '{"code":"busy"}' }),
    { split: 'chunk' },
  )
  const { responses } = await send(updates(4))
  expect(responses[0].body).toMatchObject({
    code: 'trellis_upstream_broken',
    data: { outcome: 'unknown' },
  })
  expect(origin.received).toHaveLength(2)
})

const cached = { rules: [{ match: 'GET /site/v2/**', ttl: '1h' }] }

/** Each time it is asked, a post says how often it has been read. */
const countsReads = (broken: boolean): Script => {
  let reads = 0
  return (request, wire) => {
    if (request.method === 'GET') wire.respond({ headers: json, content: `{"id":1,"reads":${++reads}}` })
    else if (broken) wire.reset()
    else respondsToBatches(request, wire)
  }
}

test.each([
  ['answered', false],
  ['broken', true],
])('a read after a chunk that was %s does not come from the cache', async (_, broken) => {
  origin = await startOrigin(countsReads(broken))
  gateway = await startTestGateway({
    services: { site: siteService(origin.origin, { batch: { split: 'chunk' }, cache: cached }) },
  })
  const read = async () => (await fetch(`${gateway.publicAddress}${root}/site/v2/posts/1`)).json()
  expect([await read(), await read()]).toEqual([
    { id: 1, reads: 1 },
    { id: 1, reads: 1 },
  ])
  await send(updates(4))
  expect(await read()).toEqual({ id: 1, reads: 2 })
})

test('after the deadline a chunk in flight has an unknown outcome and the others were not sent', async () => {
  const late = createLatch()
  await start(
    async (request, wire) => {
      await late.opened
      respondsToBatches(request, wire)
    },
    { split: 'chunk', deadline: '1s' },
    { maxConcurrent: 1 },
  )
  const { responses } = await send(updates(6))
  const codes = responses.map(({ body }: { body: { code: string } }) => body.code)
  const [unknown, notSent] = ['trellis_outcome_unknown', 'trellis_not_sent']
  expect(codes).toEqual([unknown, notSent, unknown, notSent, unknown, notSent])
  late.open()
  await pause(300)
  expect(origin.received).toHaveLength(1)
})

test.each(['auto', 'whole'])('%s sends one item by itself', async (split) => {
  await start(respondsToBatches, { split })
  await send(updates(1))
  expect(targets()).toEqual(['/index.php/wp-json/wp/v2/posts/1?_fields=id'])
})

test('split: whole sends all items in one upstream batch, in their order, without the items that the gateway refuses', async () => {
  await start(respondsToBatches, { split: 'whole' })
  const refused = { path: '/nowhere' }
  const create = { path: '/site/v2/posts', body: { title: 'a', slug: 'a' } }
  const requests = [...updates(9), refused, create, ...updates(14)]
  const { responses } = await send(requests)
  expect(targets()).toEqual([batchTarget])
  const kept = requests.filter((one) => one !== refused).map(({ path }) => path.replace('/site/v2', '/wp/v2'))
  expect(sentIn(wholeBatches()[0]?.content ?? Buffer.alloc(0)).map(({ path }) => path)).toEqual(kept)
  expect(
    responses.map(({ body, status }: { body: { path: string }; status: number }) => body.path ?? status),
  ).toEqual(requests.map((one) => (one === refused ? 404 : one.path.replace('/site/v2', '/wp/v2'))))
  expect(await gateway.metric('trellis_batch_splits_total', 'split="whole",reason="configured"')).toBe(1)
})

test('split: whole sends reads beside the upstream batch', async () => {
  await start(respondsToBatches, { split: 'whole' })
  const read = { method: 'GET', path: '/site/v2/posts/7' }
  const { responses } = await send([update(1), read, update(2), update(4)])
  expect(responses.map(({ status }: { status: number }) => status)).toEqual([200, 200, 200, 200])
  expect(wholeBatches().map(({ content }) => sentIn(content).length)).toEqual([3])
  expect(targets()).toHaveLength(2)
})

test('with split: whole a broken upstream batch leaves all outcomes unknown, and the next batch is sent whole again', async () => {
  await start(
    (request, wire) => {
      if (origin.received.length > 1) respondsToBatches(request, wire)
      else wire.reset()
    },
    { split: 'whole' },
  )
  const broken = await send(updates(6))
  expect(broken.responses.map(({ status }: { status: number }) => status)).toEqual(Array(6).fill(502))
  const next = await send(updates(6))
  expect(next.responses.map(({ status }: { status: number }) => status)).toEqual(Array(6).fill(200))
  expect(targets()).toEqual([batchTarget, batchTarget])
})
