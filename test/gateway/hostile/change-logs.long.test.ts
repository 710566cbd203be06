import { gzipSync } from 'node:zlib'
import { afterEach, expect, test, vi } from 'vitest'
import { type Companion, nonceOf, startCompanion } from '../../support/companion.ts'
import { siteService, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, startOrigin } from '../../support/origin.ts'

const site = '/index.php/site-json/site/v2'

const opened: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close()
})

type Reply = NonNullable<Companion['respondToPoll']>

const start = async (response?: Reply, upstream: object = {}) => {
  const companion = await startCompanion()
  opened.push(companion)
  companion.respondToPoll = response
  const service = siteService(companion.origin.origin, {
    cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1h' }] },
    changes: { token: companion.token, poll: '200ms' },
  })
  const merged = { ...(service['upstream'] as object), ...upstream }
  const gateway = await startTestGateway({ services: { blog: { ...service, upstream: merged } } })
  opened.push(gateway)
  return { companion, gateway }
}

const isIn = (gateway: TestGateway, state: string): Promise<number> =>
  gateway.metric('trellis_changes_state', `state="${state}"`)
const failures = (gateway: TestGateway, reason: string): Promise<number> =>
  gateway.metric('trellis_changes_poll_failures_total', reason)
const read = async (gateway: TestGateway, id = 1): Promise<[number, string]> => {
  const response = await fetch(`${gateway.publicAddress}${site}/posts/${id}`)
  await response.text()
  return [response.status, response.headers.get('cache-status') ?? '']
}
const degraded = async (gateway: TestGateway): Promise<unknown> => {
  const response = await fetch(`${gateway.adminAddress}/readyz`)
  return ((await response.json()) as { degraded: unknown }).degraded
}

const log = (companion: Companion, target: string, more: object = {}): string => {
  const nonce = nonceOf(target)
  const { incarnation, fingerprint } = companion
  return JSON.stringify({
    incarnation,
    first: 1,
    last: 0,
    fingerprint,
    rows: [],
    more: false,
    nonce,
    ...more,
  })
}
const json = { 'Content-Type': 'application/json' }
const head = (lines: readonly string[]): string => ['HTTP/1.1 200 OK', ...lines, '', ''].join('\r\n')

const bomb = gzipSync(Buffer.alloc(50 * 1024 * 1024, 0x20))

const repeated = (wire: Parameters<Reply>[1], everyMs: number, bytes: string | Buffer): void => {
  const timer = setInterval(() => {
    if (wire.socket.destroyed) clearInterval(timer)
    else wire.write(bytes)
  }, everyMs)
}
const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`

test.each<[string, string, (companion: () => Companion) => Reply]>([
  [
    'has no end',
    'no-companion',
    () => (_, wire) => {
      wire.write(head(['Content-Type: application/json', 'Transfer-Encoding: chunked']))
      repeated(wire, 1, chunk(' '.repeat(65_536)))
    },
  ],
  [
    'comes a byte at a time',
    'unreachable',
    (companion) =>
      ({ target }, wire) => {
        wire.write(head(['Content-Type: application/json', 'Transfer-Encoding: chunked']))
        const text = log(companion(), target)
        let at = 0
        const timer = setInterval(() => {
          if (wire.socket.destroyed) clearInterval(timer)
          else wire.write(chunk(text[at++ % text.length] ?? ' '))
        }, 100)
      },
  ],
  [
    'has a head that comes a byte at a time',
    'unreachable',
    () => (_, wire) => {
      wire.write('HTTP/1.1 200 OK\r\nX: ')
      repeated(wire, 100, 'x')
    },
  ],
  [
    'has 1.1 MiB',
    'no-companion',
    (companion) =>
      ({ target }, wire) =>
        wire.respond({ headers: json, content: log(companion(), target, { table: 'x'.repeat(1_100_000) }) }),
  ],
  [
    'is that of a site in maintenance',
    'no-companion',
    () => (_, wire) =>
      wire.respond({
        status: 503,
        headers: { 'Content-Type': 'text/html', 'Retry-After': '600' },
        content: '<h1>Briefly unavailable for scheduled maintenance. Check back in a minute.</h1>',
      }),
  ],
  [
    'is that of a site in maintenance, with status 200',
    'no-companion',
    () => (_, wire) =>
      wire.respond({ headers: { 'Content-Type': 'text/html' }, content: '<h1>Maintenance</h1>' }),
  ],
  [
    'has a notice of PHP in front',
    'no-companion',
    (companion) =>
      ({ target }, wire) =>
        wire.respond({
          headers: json,
          content: `<br />\n<b>Notice</b>: Undefined index\n${log(companion(), target)}`,
        }),
  ],
  [
    'has a notice of PHP behind it',
    'no-companion',
    (companion) =>
      ({ target }, wire) =>
        wire.respond({
          headers: json,
          content: `${log(companion(), target)}<br />\n<b>Warning</b>: Unknown`,
        }),
  ],
  [
    'is compressed, though that was not asked for',
    'no-companion',
    (companion) =>
      ({ target }, wire) =>
        wire.respond({
          headers: { ...json, 'Content-Encoding': 'gzip' },
          content: gzipSync(log(companion(), target)),
        }),
  ],
  [
    'is a bomb of gzip',
    'no-companion',
    () => (_, wire) => wire.respond({ headers: { ...json, 'Content-Encoding': 'gzip' }, content: bomb }),
  ],
  [
    'is cut short',
    'unreachable',
    (companion) =>
      ({ target }, wire) => {
        wire.write(
          head(['Content-Type: application/json', 'Content-Length: 5000']) + log(companion(), target),
        )
        wire.end()
      },
  ],
  [
    'is nested deeply',
    'no-companion',
    () => (_, wire) => wire.respond({ headers: json, content: '['.repeat(500_000) }),
  ],
  [
    'has a negative position',
    'no-companion',
    (companion) =>
      ({ target }, wire) =>
        wire.respond({ headers: json, content: log(companion(), target, { last: -1 }) }),
  ],
  [
    'has a position beyond 2^53',
    'no-companion',
    (companion) =>
      ({ target }, wire) =>
        wire.respond({
          headers: json,
          content: log(companion(), target).replace('"last":0', '"last":9007199254740993'),
        }),
  ],
])(
  'a poll whose response %s is a failure (%s), and the site goes on',
  async (_, reason, response) => {
    let known: Companion | undefined
    const { companion, gateway } = await start((...args) => response(() => known as Companion)(...args))
    known = companion
    await expect.poll(() => failures(gateway, reason)).toBeGreaterThan(2)
    expect(await isIn(gateway, 'heard')).toBe(0)
    expect(await degraded(gateway)).toMatchObject([{ reason: 'changes', service: 'blog' }])
    // A log that cannot be read stops no requests: the breaker stays closed.
    for (let id = 1; id < 4; id += 1) expect((await read(gateway, id))[0]).toBe(200)
    companion.respondToPoll = undefined
    await expect.poll(() => isIn(gateway, 'heard')).toBe(1)
  },
  40_000,
)

test('a poll follows no redirect, to the same host or another', async () => {
  const elsewhere: Origin = await startOrigin((_, wire) => wire.respond({ content: '{}' }))
  opened.push(elsewhere)
  const { companion, gateway } = await start((request, wire) =>
    wire.respond({ status: 307, headers: { Location: elsewhere.origin + request.target } }),
  )
  await expect.poll(() => failures(gateway, 'no-companion')).toBeGreaterThan(2)
  expect(elsewhere.received).toEqual([])
  expect(companion.origin.received.every(({ target }) => target.includes('trellis-changes'))).toBe(true)
})

test('a response that always says that more follows is read for a bounded number of pages', async () => {
  let last = 0
  let ours: Companion | undefined
  const times: number[] = []
  const { companion, gateway } = await start(({ target }, wire) => {
    last += 1
    times.push(performance.now())
    const rows = [{ sequence: last, state: 'closed', changes: [] }]
    wire.respond({
      headers: json,
      content: log(ours as Companion, target, { last: last + 1, rows, more: true }),
    })
  })
  ours = companion
  const maxPages = 40
  await companion.origin.until(() => times.length > 3 * maxPages)
  // Between two polls passes an interval, so that one more than a poll may read takes as long.
  const spans = times.slice(maxPages).map((at, nth) => at - (times[nth] ?? at))
  expect(Math.min(...spans)).toBeGreaterThan(150)
  expect(await isIn(gateway, 'heard')).toBe(0)
  expect((await read(gateway))[0]).toBe(200)
})

test.each<[string, Reply]>([
  ['are reset', (_, wire) => wire.reset()],
  ['are answered with 500', (_, wire) => wire.respond({ status: 500 })],
  ['are answered with 503', (_, wire) => wire.respond({ status: 503, headers: { 'Retry-After': '600' } })],
  ['are answered with nonsense', (_, wire) => wire.write('nonsense\r\n\r\n')],
])(
  'polls that %s open no breaker for requests',
  async (_, response) => {
    const { companion, gateway } = await start(response, {
      eject: { after: 3, for: '10m' },
      breaker: { failureRatio: 0.5, minRequests: 5, window: '1m', for: '10m' },
    })
    await expect.poll(() => companion.polls.length).toBeGreaterThan(12)
    for (let id = 1; id < 4; id += 1) expect((await read(gateway, id))[0]).toBe(200)
    companion.respondToPoll = undefined
    await expect.poll(() => isIn(gateway, 'heard')).toBe(1)
  },
  40_000,
)

test('a poll that is answered from a cache on the way is no response', async () => {
  const { companion, gateway } = await start()
  await expect.poll(() => isIn(gateway, 'heard')).toBe(1)
  const copies = new Map<string, string>()
  // It stores in spite of no-store, and its key has one of the parameters.
  companion.cacheOnTheWay = copies
  await expect.poll(() => copies.size).toBeGreaterThan(0)
  await read(gateway)
  companion.write(1)
  await expect.poll(() => isIn(gateway, 'heard')).toBe(0)
  expect(await failures(gateway, 'no-companion')).toBeGreaterThan(0)
  companion.cacheOnTheWay = undefined
  await expect.poll(() => isIn(gateway, 'heard')).toBe(1)
  const response = await fetch(`${gateway.publicAddress}${site}/posts/1`)
  expect(await response.json()).toMatchObject({ title: { rendered: 'v2' } })
})

test.each([-3_600_000, 3_600_000])(
  'a clock of the gateway that jumps by %i ms delays no change beyond the next polls',
  async (jumpMs) => {
    const { companion, gateway } = await start()
    await expect.poll(() => isIn(gateway, 'heard')).toBe(1)
    const title = async (): Promise<unknown> => {
      const response = await fetch(`${gateway.publicAddress}${site}/posts/1`)
      return ((await response.json()) as { title: { rendered: string } }).title.rendered
    }
    expect(await title()).toBe('v1')
    const realNow = Date.now
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => realNow() + jumpMs)
    try {
      companion.write(1)
      await expect.poll(title, { interval: 20 }).toBe('v2')
      // A lost feed is noticed as soon as before.
      companion.respondToPoll = (_, wire) => wire.reset()
      await expect.poll(() => isIn(gateway, 'silent')).toBe(1)
    } finally {
      clock.mockRestore()
    }
    companion.respondToPoll = undefined
    companion.write(1)
    await expect.poll(title, { interval: 20 }).toBe('v3')
  },
)

test('two logs that answer in turns, as two databases behind one address do, drop everything at each change', async () => {
  const other = await startCompanion()
  opened.push(other)
  const { companion, gateway } = await start()
  await expect.poll(() => isIn(gateway, 'heard')).toBe(1)
  companion.write(1)
  const { incarnation } = companion
  for (let turn = 0; turn < 6; turn += 1) {
    const before = await gateway.metric('trellis_changes_service_drops_total', 'new-log')
    companion.incarnation = turn % 2 === 0 ? other.incarnation : incarnation
    const drops = () => gateway.metric('trellis_changes_service_drops_total', 'new-log')
    await expect.poll(drops, { interval: 10 }).toBe(before + 1)
  }
})
