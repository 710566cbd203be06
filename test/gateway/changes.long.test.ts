import { afterEach, expect, test } from 'vitest'
import { type Companion, postChange, startCompanion } from '../support/companion.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'

const opened: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close()
})

type Tree = { readonly [key: string]: unknown }

const rules = [{ match: 'GET /site/v2/**', ttl: '1s', staleIfError: '1h' }]

const start = async (
  changes: Tree = {},
  more: Tree = {},
): Promise<{ companion: Companion; gateway: TestGateway }> => {
  const companion = await startCompanion()
  opened.push(companion)
  const service = siteService(companion.origin.origin, {
    cache: { rules },
    // A feed is heard for two intervals after a poll, longer than a busy machine stands still.
    changes: { token: companion.token, poll: '5s', ...changes },
    ...more,
  })
  const gateway = await startTestGateway({ services: { blog: service } })
  opened.push(gateway)
  return { companion, gateway }
}

const site = '/index.php/site-json/site/v2'

const read = async ({ publicAddress }: TestGateway, path = '/posts/1') => {
  const response = await fetch(`${publicAddress}${site}${path}`)
  const body = (await response.json()) as { title: { rendered: string } }
  return { response, title: body.title?.rendered, status: response.headers.get('cache-status') ?? '' }
}

const state = async (gateway: TestGateway): Promise<string> => {
  for (const one of ['cold', 'heard', 'behind', 'silent'])
    if ((await gateway.metric('trellis_changes_state', `state="${one}"`)) === 1) return one
  return 'none'
}

const heard = (gateway: TestGateway) => expect.poll(() => state(gateway)).toBe('heard')
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

test('after the acknowledged push of a change no read returns older data', async () => {
  const { companion, gateway } = await start()
  await heard(gateway)
  await read(gateway)
  expect((await read(gateway)).status).toContain('hit')
  const response = await companion.push(gateway.adminAddress, companion.write(1))
  expect([response.status, await response.json()]).toEqual([200, { sequence: 1, dropped: 1 }])
  expect((await read(gateway)).title).toBe('v2')
})

const name = '0123456789abcdef'

test.each([
  ['what it wrote and shows is stored', name, name, 0, 'hit'],
  ['what it wrote is not stored without its name', undefined, name, 0, 'fwd'],
  ['what another request wrote is not stored', 'fedcba9876543210', name, 0, 'fwd'],
  ['what another request wrote beside it is not stored', name, name, 1, 'fwd'],
])(
  'a response to a read that reports a change before it ends: %s',
  async (_, reported, named, others, status) => {
    const { companion, gateway } = await start()
    await heard(gateway)
    companion.headers['Trellis-Request'] = named
    companion.beforeResponse = async () => {
      companion.beforeResponse = undefined
      for (let other = 0; other < others; other += 1)
        await companion.push(gateway.adminAddress, companion.write(1))
      const more = reported === undefined ? {} : { request: reported }
      const response = await companion.push(gateway.adminAddress, companion.write(1), more)
      expect(response.status).toBe(200)
    }
    expect((await read(gateway)).response.headers.has('trellis-request')).toBe(false)
    expect((await read(gateway)).status).toContain(status)
  },
)

test('a change that is only in the log is seen within the poll interval', async () => {
  const { companion, gateway } = await start({ poll: '200ms' })
  await heard(gateway)
  await read(gateway)
  companion.write(1)
  await expect.poll(async () => (await read(gateway)).title).toBe('v2')
})

test('while polls succeed a response is used for longer than the ttl of its rule', async () => {
  const { gateway } = await start({ poll: '1s' })
  await heard(gateway)
  await read(gateway)
  await pause(1_300)
  const later = await read(gateway)
  expect(later.status).toMatch(/hit; ttl=60\d{4}/)
})

test('what is stored for a credential keeps the ttl of its rule', async () => {
  const { gateway } = await start(
    {},
    { cache: { rules: [{ ...rules[0], scope: 'credential', override: true }] } },
  )
  await heard(gateway)
  const ttl = async (headers: Record<string, string>): Promise<number> => {
    const response = await fetch(`${gateway.publicAddress}${site}/posts/1`, { headers: headers })
    await response.arrayBuffer()
    return Number(/ttl=(-?\d+)/.exec(response.headers.get('cache-status') ?? '')?.[1])
  }
  expect(await ttl({})).toBeGreaterThan(100_000)
  expect(await ttl({ Authorization: 'Basic eA==' })).toBeLessThanOrEqual(1)
})

test('while polls fail the ttl of the rule holds', async () => {
  const { companion, gateway } = await start({ poll: '200ms' })
  await heard(gateway)
  await read(gateway)
  await pause(1_300)
  companion.respondToPoll = (_, wire) => wire.respond({ status: 500 })
  await expect.poll(() => state(gateway)).toBe('silent')
  companion.change(1)
  expect((await read(gateway)).title).toBe('v2')
})

test('while a PHP request has been writing for more than two polls, the ttl of the rule holds', async () => {
  const { companion, gateway } = await start({ poll: '600ms' })
  await heard(gateway)
  await read(gateway)
  await pause(1_300)
  expect((await read(gateway)).status).toContain('hit')
  companion.last += 1
  companion.rows.set(companion.last, { sequence: companion.last, state: 'open' })
  companion.change(1)
  await expect.poll(() => state(gateway)).toBe('behind')
  expect((await read(gateway)).title).toBe('v2')
  companion.rows.set(companion.last, { sequence: companion.last, state: 'closed', changes: [] })
  await heard(gateway)
})

test('when the upstream fails, staleIfError counts from the last successful poll', async () => {
  const cache = { rules: [{ match: 'GET /site/v2/**', ttl: '100ms', staleIfError: '20s' }] }
  const { companion, gateway } = await start({ poll: '200ms' }, { cache })
  await heard(gateway)
  await read(gateway)
  const clock = await gateway.metric('trellis_changes_lag_seconds')
  expect(clock).toBeGreaterThanOrEqual(0)
  companion.down = true
  await expect.poll(() => state(gateway)).toBe('silent')
  const stale = await read(gateway)
  expect([stale.title, stale.status]).toEqual(['v1', expect.stringContaining('detail=error')])
})

test('a response whose lifetime the upstream states is not used for longer', async () => {
  const { companion, gateway } = await start()
  companion.headers = { 'Cache-Control': 'max-age=5' }
  await heard(gateway)
  await read(gateway)
  expect((await read(gateway)).status).toMatch(/hit; ttl=[345]$/)
})

test('a change in another blog of a network drops only responses that show this blog', async () => {
  const { companion, gateway } = await start({ poll: '500ms' })
  companion.headers = { 'Trellis-Tags': 'v1;n=1;complete;blogs=2;p=1' }
  await heard(gateway)
  await read(gateway)
  const row = (site: number) => {
    companion.last += 1
    const { last: sequence } = companion
    companion.rows.set(sequence, { sequence, state: 'closed', site, changes: [postChange(1)] })
    return { sequence, state: 'closed', site, changes: [postChange(1)] } as const
  }
  const pushed = await companion.push(gateway.adminAddress, row(1))
  expect(await pushed.json()).toEqual({ sequence: 1, dropped: 0 })
  row(3)
  const count = companion.polls.length
  await expect.poll(() => companion.polls.length).toBeGreaterThan(count + 2)
  expect((await read(gateway)).status).toContain('hit')
  row(2)
  await expect.poll(async () => (await read(gateway)).status).not.toContain('hit')
})

test('a response that changes by the clock is used for as long as Trellis-Max-Age says', async () => {
  const { companion, gateway } = await start()
  companion.headers = { 'Trellis-Max-Age': '30' }
  await heard(gateway)
  await read(gateway)
  expect((await read(gateway)).status).toMatch(/hit; ttl=(?:29|30)$/)
})

test('a soft purge makes a response stale also while the feed is heard', async () => {
  const { companion, gateway } = await start()
  await heard(gateway)
  await read(gateway)
  companion.change(1)
  const purge = await fetch(`${gateway.adminAddress}/cache/purge`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ prefix: site, mode: 'soft' }),
  })
  expect(await purge.json()).toMatchObject({ entries: 1 })
  expect((await read(gateway)).title).toBe('v2')
})

test('/status and /explain show the state of the feed', async () => {
  const { gateway } = await start()
  await heard(gateway)
  const status = (await (await fetch(`${gateway.adminAddress}/status`)).json()) as { changes: unknown }
  expect(status.changes).toMatchObject([{ service: 'blog', state: 'heard', lagSeconds: expect.any(Number) }])
  const url = encodeURIComponent(`${site}/posts/1`)
  const explained = await (await fetch(`${gateway.adminAddress}/explain?url=${url}`)).text()
  expect(explained).toContain('"whileChangesAreHeard":"ttl 7d: it is being read"')
})

test('a reload with another token begins the feed anew, and one without changes ends it', async () => {
  const { companion, gateway } = await start()
  await heard(gateway)
  const service = (changes: object) => siteService(companion.origin.origin, { cache: { rules }, ...changes })
  await gateway.put({
    services: { blog: service({ changes: { token: 'another-token-of-it', poll: '5s' } }) },
  })
  expect(await state(gateway)).toBe('cold')
  await gateway.put({ services: { blog: service({}) } })
  expect(await state(gateway)).toBe('none')
})
