import { createHash } from 'node:crypto'
import { request } from 'node:http'
import { describe, expect, onTestFinished, test } from 'vitest'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, pause, type Script, startOrigin } from '../support/origin.ts'
import { type PacedReader, startReader } from '../support/paced-reader.ts'

// A response that its target cannot give is that of one request: others, who would be sent another one, do not get it.

const json = { 'Content-Type': 'application/json' }
const readers = 5

/** The first request is responded to when all others wait for it. */
const start = async (
  service: (origin: Origin) => object,
  respond: Script,
): Promise<{ readonly origin: Origin; readonly gateway: TestGateway }> => {
  const origin = await startOrigin(async (received, wire, count) => {
    for (let turn = 0; count === 1 && turn < 500; turn += 1) {
      if ((await gateway.metric('trellis_in_flight_requests')) > readers) break
      await pause(20)
    }
    await respond(received, wire, count)
  })
  onTestFinished(() => origin.close())
  const gateway: TestGateway = await startTestGateway({ services: { service: service(origin) } })
  onTestFinished(() => gateway.close())
  return { origin, gateway }
}

const send = (url: string, headers: Readonly<Record<string, string>>, body?: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const method = body === undefined ? 'GET' : 'POST'
    request(url, { method, headers, agent: false }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      response.on('end', () => resolve(text))
    })
      .on('error', reject)
      .end(body)
  })

test('readers who joined a request that a firewall answers with a page get the response', async () => {
  const { origin, gateway } = await start(
    ({ origin: target }) =>
      siteService(target, { cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1h' }] } }),
    ({ headers }, wire) =>
      headers['user-agent'] === 'bot'
        ? wire.respond({ headers: { 'Content-Type': 'text/html' }, content: '<p>Are you human?' })
        : wire.respond({ headers: json, content: '[{"id":7}]' }),
  )
  const url = `${gateway.publicAddress}/index.php/site-json/site/v2/posts`
  const leader = send(url, { 'User-Agent': 'bot' })
  await origin.until(() => origin.received.length === 1)
  const others = Array.from({ length: readers }, (_, at) => send(url, { 'User-Agent': `browser ${at}` }))
  expect(await Promise.all(others)).toEqual(Array(readers).fill('[{"id":7}]'))
  expect(await leader).toContain('human')
  expect(origin.received).toHaveLength(2)
})

test('who sends a persisted document does not get the refusal of its hash alone', async () => {
  const document = '{ posts { id } }'
  const sha256Hash = createHash('sha256').update(document).digest('hex')
  const extensions = { persistedQuery: { version: 1, sha256Hash } }
  const known = { data: { posts: [] } }
  const unknown = { errors: [{ message: 'PersistedQueryNotFound' }] }
  const { origin, gateway } = await start(
    ({ origin: target }) => ({
      contract: 'graphql',
      upstream: { targets: [target] },
      cache: { rules: [{ match: 'query *', ttl: '1h' }] },
    }),
    ({ content }, wire) =>
      wire.respond({ headers: json, content: JSON.stringify(content.includes('posts') ? known : unknown) }),
  )
  const post = async (body: object): Promise<unknown> =>
    JSON.parse(await send(`${gateway.publicAddress}/graphql`, json, JSON.stringify(body)))
  const { script } = origin
  origin.script = (_, wire) => wire.respond({ headers: json, content: JSON.stringify(known) })
  await post({ query: document, extensions })
  expect(await post({ extensions })).toEqual(known)
  // The gateway knows the hash from here on, and the upstream has forgotten it.
  await fetch(`${gateway.adminAddress}/cache/purge`, {
    method: 'POST',
    headers: json,
    body: JSON.stringify({ all: true }),
  })
  origin.received.length = 0
  origin.script = (received, wire) => script(received, wire, origin.received.length)
  const leader = post({ extensions })
  await origin.until(() => origin.received.length === 1)
  const others = Array.from({ length: readers }, () => post({ query: document, extensions }))
  expect(await leader).toEqual(unknown)
  expect(await Promise.all(others)).toEqual(Array(readers).fill(known))
  expect(origin.received).toHaveLength(2)
})

describe('of a response that streams', () => {
  const half = 'x'.repeat(80_000)
  const posts = '[{"id":7}]'
  const rules = { rules: [{ match: 'GET /site/v2/**', ttl: '1h' }] }

  /** A bot gets the first half of its response at `begin`, and the rest at `finish`; all others get posts at once. */
  const startHalfway = async (type: string, [first, rest]: readonly [string, string]) => {
    const head = `Content-Type: ${type}\r\nContent-Length: ${first.length + rest.length}`
    let write: (text: string) => void = () => undefined
    const origin = await startOrigin(({ headers }, wire) => {
      if (headers['user-agent'] === 'bot') write = wire.write
      else wire.respond({ headers: json, content: posts })
    })
    onTestFinished(() => origin.close())
    const gateway = await startTestGateway({
      services: { service: siteService(origin.origin, { cache: rules }) },
    })
    onTestFinished(() => gateway.close())
    const url = `${gateway.publicAddress}/index.php/site-json/site/v2/posts`
    const read = (agent: string) => startReader(url, { 'User-Agent': agent })
    const leader = read('bot')
    await origin.until(() => origin.received.length === 1)
    return {
      origin,
      leader,
      read,
      /** Requests that only wait for the leader's: they have joined it. */
      waiting: async (count: number) => {
        const inFlight = () => gateway.metric('trellis_in_flight_requests')
        await expect.poll(inFlight, { timeout: 20_000 }).toBe(count + 1)
      },
      begin: async () => {
        write(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n${first}`)
        await leader.until(first.length)
      },
      finish: () => write(rest),
    }
  }

  const readAll = (read: (agent: string) => PacedReader): readonly PacedReader[] =>
    Array.from({ length: readers }, (_, at) => read(`browser ${at}`))

  test('and whose head shows that the target cannot give it, readers who wait fetch again, once', async () => {
    const { origin, leader, read, waiting, begin, finish } = await startHalfway('text/html', [half, half])
    const others = readAll(read)
    await waiting(readers)
    await begin()
    for (const { end } of others) expect(String(await end)).toBe(posts)
    expect(origin.received).toHaveLength(2)
    finish()
    expect(String(await leader.end)).toBe(half + half)
  })

  test('and whose head has shown it, later readers fetch without a wait', async () => {
    const { leader, read, begin, finish } = await startHalfway('text/html', [half, half])
    await begin()
    for (const { end } of readAll(read)) expect(String(await end)).toBe(posts)
    finish()
    expect(String(await leader.end)).toBe(half + half)
  })

  test.each([
    ['is JSON to its end', '"}]', 1],
    ['breaks off', '', 2],
    ['ends with a warning', '"}]<b>Warning</b>', 2],
  ])(
    'and of which only the content shows it, readers of other requests wait: one that %s',
    async (_, rest, requests) => {
      const first = `[{"text":"${half}`
      const whole = `${first}${rest} `
      const { origin, leader, read, waiting, begin, finish } = await startHalfway('application/json', [
        first,
        `${rest} `,
      ])
      await begin()
      const same = read('bot')
      await same.until(first.length)
      const others = readAll(read)
      await waiting(readers + 1)
      expect(others.map((reader) => reader.bytes())).toEqual(Array(readers).fill(0))
      finish()
      for (const { end } of others) expect(String(await end)).toBe(requests === 1 ? whole : posts)
      for (const { end } of [leader, same]) expect(String(await end)).toBe(whole)
      expect(origin.received).toHaveLength(requests)
    },
  )
})
