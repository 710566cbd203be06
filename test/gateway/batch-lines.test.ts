import { afterEach, expect, test } from 'vitest'
import { postBatch, siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, pause, type Script, startOrigin } from '../support/origin.ts'

const json = { 'Content-Type': 'application/json; charset=UTF-8' }

let origin: Origin
let gateway: TestGateway
afterEach(async () => {
  await gateway?.close()
  await origin?.close()
})

const start = async (script: Script, batch: object = {}): Promise<void> => {
  origin = await startOrigin(script)
  gateway = await startTestGateway({
    services: { site: siteService(origin.origin, { batch: { split: 'item', ...batch } }) },
  })
}

const update = (id: number) => ({ method: 'PUT', path: `/site/v2/posts/${id}`, body: { title: 'x' } })

const send = (requests: readonly unknown[], headers: Record<string, string> = {}, signal?: AbortSignal) =>
  postBatch(gateway, { requests }, { Accept: 'application/x-ndjson', ...headers }, signal)

test('lines come as items are answered, each on one line, and the last one says so', async () => {
  let release = (): void => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  await start(async ({ target }, wire) => {
    if (target.endsWith('/1')) await held
    wire.respond({ fields: json, content: `{\n  "target": ${JSON.stringify(target)}\r\n}` })
  })
  const answer = await send([update(1), update(2), { path: '/nowhere' }])
  expect([answer.status, answer.headers.get('content-type')]).toEqual([207, 'application/x-ndjson'])
  const reader = (answer.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  while (text.split('\n').length < 3) text += (await reader.read()).value
  // The first item has not been answered yet.
  expect(
    text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).index),
  ).toEqual([2, 1])
  release()
  for (let step = await reader.read(); !step.done; step = await reader.read()) text += step.value
  const lines = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(lines).toMatchObject([
    { index: 2, response: { status: 404 } },
    {
      index: 1,
      response: { status: 200, body: { target: '/index.php/wp-json/wp/v2/posts/2' }, headers: [] },
    },
    { index: 0, response: { status: 200 } },
    { end: { result: 'ran', items: 3 } },
  ])
})

test('an item that got no answer in time has its line, and the end says why', async () => {
  await start(() => new Promise(() => {}), { deadline: '1s' })
  const lines = (await (await send([update(1)])).text())
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(lines).toMatchObject([
    { index: 0, response: { status: 504, body: { code: 'trellis_outcome_unknown' } } },
    { end: { result: 'deadline', items: 1 } },
  ])
})

test('a fault of the whole batch gets the same response as without lines', async () => {
  await start(() => {})
  const answer = await send(Array.from({ length: 26 }, (_, at) => update(at)))
  expect([answer.status, answer.headers.get('content-type')]).toEqual([
    400,
    'application/json; charset=UTF-8',
  ])
})

test('a client that disconnects amid its lines cancels items that have not begun, and affects no others', async () => {
  const held: (() => void)[] = []
  await start(
    async (_, wire) => {
      await new Promise<void>((resolve) => held.push(resolve))
      wire.respond({ fields: json, content: '{}' })
    },
    { concurrency: 1 },
  )
  const client = new AbortController()
  const answer = await send([{ path: '/nowhere' }, update(1), update(2)], {}, client.signal)
  await origin.until(() => held.length === 1)
  client.abort()
  await expect(answer.text()).rejects.toThrow()
  // The gateway receives the end a moment later.
  await expect.poll(() => gateway.metric('trellis_in_flight_requests')).toBe(0)
  held[0]?.()
  const next = send([update(3)])
  await origin.until(() => held.length === 2)
  held[1]?.()
  expect((await next).status).toBe(207)
  expect(origin.received.map(({ target }) => target.at(-1))).toEqual(['1', '3'])
})

test('no item starts while the client does not read, and items continue when it does', async () => {
  const large = JSON.stringify('x'.repeat(2 * 1024 * 1024))
  await start((_, wire) => wire.respond({ fields: json, content: large }), {
    concurrency: 1,
    answerBytes: '128MiB',
  })
  const answer = await send(Array.from({ length: 25 }, (_, at) => update(at + 1)))
  // What fits into the buffers on the way does not depend on the reader.
  let before = 0
  while (origin.received.length > before) {
    before = origin.received.length
    await pause(500)
  }
  expect(before).toBeGreaterThan(0)
  expect(before).toBeLessThan(20)
  const lines = (await answer.text()).trimEnd().split('\n')
  expect(lines).toHaveLength(26)
  expect(origin.received).toHaveLength(25)
})

test('a client that reads nothing until the deadline gets what had begun, and the rest as not sent', async () => {
  const large = JSON.stringify('x'.repeat(2 * 1024 * 1024))
  await start((_, wire) => wire.respond({ fields: json, content: large }), {
    concurrency: 1,
    answerBytes: '128MiB',
    deadline: '2s',
  })
  const answer = await send(Array.from({ length: 25 }, (_, at) => update(at + 1)))
  await pause(2_500)
  const lines = (await answer.text()).trimEnd().split('\n')
  expect(origin.received.length).toBeLessThan(25)
  expect(JSON.parse(lines.at(-2) ?? '')).toMatchObject({ response: { body: { code: 'trellis_not_sent' } } })
  expect(JSON.parse(lines.at(-1) ?? '')).toEqual({ end: { result: 'deadline', items: 25 } })
})

test('extensions: off disables lines', async () => {
  await start((_, wire) => wire.respond({ fields: json, content: '{}' }), { extensions: 'off' })
  expect(Object.keys((await (await send([update(1)])).json()) as object)).toEqual(['responses'])
})

test('answers that are too large together are not held: the item says that it was carried out', async () => {
  await start((_, wire) => wire.respond({ fields: json, content: JSON.stringify('x'.repeat(40_000)) }), {
    answerBytes: '100KiB',
    concurrency: 1,
  })
  const answer = await send([update(1), update(2), update(3)], { Accept: 'application/json' })
  const { responses } = (await answer.json()) as { responses: { status: number; body: { code?: string } }[] }
  expect(responses.map(({ status, body }) => body.code ?? status)).toEqual([
    200,
    200,
    'trellis_answer_too_large',
  ])
  expect(origin.received).toHaveLength(3)
})
