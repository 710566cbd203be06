import { expect, onTestFinished, test } from 'vitest'
import { type Origin, pause, type Script, startOrigin } from '../support/origin.ts'
import { noChecks, request, upstreamOf } from '../unit/upstream/upstream-of.ts'

const originOf = async (script?: Script): Promise<Origin> => {
  const origin = await startOrigin(script)
  onTestFinished(() => origin.close())
  return origin
}

const post = (text: string) => request({ method: 'POST', content: Buffer.from(text) })

test('a GET whose connection broke is sent once more, and the caller sees one response', async () => {
  const origin = await originOf((_, wire, count) =>
    count === 1 ? wire.reset() : wire.respond({ content: 'ok' }),
  )
  const { upstream, events } = upstreamOf([origin.origin])
  expect((await upstream.request(request())).status).toBe(200)
  expect(origin.received).toHaveLength(2)
  expect(events.filter(({ kind }) => kind === 'retried')).toMatchObject([{ reason: 'connection-lost' }])
})

test('a POST whose connection broke is never sent twice', async () => {
  const origin = await originOf((_, wire) => wire.reset())
  const { upstream, events } = upstreamOf([origin.origin])
  await expect(upstream.request(post('x'))).rejects.toMatchObject({ code: 'upstream_broken' })
  expect(origin.received).toHaveLength(1)
  expect(events.filter(({ kind }) => kind === 'gave-up')).toMatchObject([{ reason: 'method' }])
})

test('a POST that could not be sent goes to the other target', async () => {
  const gone = await originOf()
  await gone.close()
  const alive = await originOf()
  const { upstream } = upstreamOf([gone.origin, alive.origin])
  for (let i = 0; i < 4; i += 1) expect((await upstream.request(post(`n${i}`))).status).toBe(200)
  expect(alive.received.map(({ content }) => content.toString())).toEqual(['n0', 'n1', 'n2', 'n3'])
})

test.each(['GET', 'POST'])(
  'without traffic before, one dead target of two costs no %s anything',
  async (method) => {
    const gone = await originOf()
    await gone.close()
    const alive = await originOf()
    // It is never left out, so every second request begins at the dead target.
    const eject = { after: 1_000, forMs: 100, maxShare: 0.5 }
    const { upstream } = upstreamOf([gone.origin, alive.origin], { eject })
    const content = method === 'POST' ? Buffer.from('x') : undefined
    for (let i = 0; i < 40; i += 1)
      expect((await upstream.request(request({ method, content }))).status).toBe(200)
    expect(alive.received).toHaveLength(40)
  },
)

test('a connection that died while idle costs a GET nothing', async () => {
  const origin = await originOf((_, wire, count) => {
    wire.respond({ content: String(count) })
    // Closes without having said so, as servers with a short idle time do.
    if (count === 1) setTimeout(() => wire.reset(), 5)
  })
  const { upstream } = upstreamOf([origin.origin])
  await upstream.request(request())
  await pause(30)
  expect((await upstream.request(request())).status).toBe(200)
})

// Only the first two are valid (RFC 9110 §10.2.3); the others must not be read as a date that has passed, which allows a retry at once.
test.each(['600', 'Fri, 01 Jan 2100 00:00:00 GMT', '-1', '1.5', 'a 1', 'Mon, 01 Jan 2001 00:00:00 +0100'])(
  'a 503 with Retry-After: %s is handed on, asked for once',
  async (value) => {
    const origin = await originOf((_, wire) =>
      wire.respond({ status: 503, headers: { 'Retry-After': value }, content: 'no' }),
    )
    const { upstream } = upstreamOf([origin.origin])
    const response = await upstream.request(request())
    expect([response.status, String(response.content)]).toEqual([503, 'no'])
    expect(origin.received).toHaveLength(1)
  },
)

test('a 503 of one target is answered by the other one', async () => {
  const busy = await originOf((_, wire) => wire.respond({ status: 503 }))
  const free = await originOf()
  const { upstream, events } = upstreamOf([busy.origin, free.origin])
  const statuses = []
  for (let i = 0; i < 2; i += 1) statuses.push((await upstream.request(request())).status)
  expect(statuses).toEqual([200, 200])
  expect(events).toContainEqual(expect.objectContaining({ kind: 'attempt-finished', outcome: 'discarded' }))
})

test('a short Retry-After is waited for', async () => {
  const origin = await originOf((_, wire, count) =>
    count === 1 ? wire.respond({ status: 503, headers: { 'Retry-After': '1' } }) : wire.respond({}),
  )
  const { upstream } = upstreamOf([origin.origin])
  const started = performance.now()
  expect((await upstream.request(request())).status).toBe(200)
  expect(performance.now() - started).toBeGreaterThan(950)
})

test('when all requests fail, the target gets at most 1.2 times as many', async () => {
  const origin = await originOf((_, wire) => wire.reset())
  const { upstream } = upstreamOf([origin.origin], {
    retry: { attempts: 5, budget: 0.2 },
    maxConcurrent: 16,
    queue: { max: 64, timeoutMs: 0 },
  })
  const requests = Array.from({ length: 200 }, () => upstream.request(request()).catch(() => undefined))
  // More than the queue holds is refused, so they come in portions.
  const more = await Promise.all(requests)
  expect(more).toHaveLength(200)
  const asked = 16 + 64
  expect(origin.received.length).toBeLessThanOrEqual(Math.ceil(1.2 * 200))
  expect(origin.received.length).toBeGreaterThanOrEqual(asked)
})

test('a target that keeps failing is ejected and returns after one trial', async () => {
  let broken = true
  const sick = await originOf((_, wire) => (broken ? wire.reset() : wire.respond({})))
  const well = await originOf()
  const eject = { after: 3, forMs: 60_000, maxShare: 0.5 }
  const { upstream, events, skip } = upstreamOf([sick.origin, well.origin], {
    retry: { attempts: 2, budget: 1 },
    eject,
  })
  for (let i = 0; i < 12; i += 1) await upstream.request(request())
  expect(sick.received).toHaveLength(3)
  expect(upstream.snapshot().targets.map(({ state }) => state)).toEqual(['left-out', 'healthy'])
  skip(eject.forMs)
  await upstream.request(request())
  expect(sick.received).toHaveLength(4)
  expect(upstream.snapshot().targets[0]?.state).toBe('left-out')
  broken = false
  skip(eject.forMs)
  // A request that may not be repeated is no trial.
  await upstream.request(post('x'))
  expect(sick.received).toHaveLength(4)
  await upstream.request(request())
  expect(upstream.snapshot().targets[0]?.state).toBe('healthy')
  const changes = events.flatMap((event) => (event.kind === 'target-changed' ? [event.to] : []))
  // It has never answered before, and a trial that fails changes nothing.
  expect(changes).toEqual(['failing', 'left-out', 'healthy'])
})

test('a single target that fails stays in use', async () => {
  const origin = await originOf((_, wire) => wire.reset())
  const { upstream } = upstreamOf([origin.origin], { retry: { attempts: 1, budget: 0 } })
  for (let i = 0; i < 6; i += 1) await upstream.request(request()).catch(() => undefined)
  expect(origin.received).toHaveLength(6)
  expect(upstream.snapshot().targets[0]?.state).toBe('failing')
})

test('the target with the fewest requests in flight is chosen', async () => {
  const held: (() => void)[] = []
  const slow = await originOf((_, wire) => void held.push(() => wire.respond({})))
  const fast = await originOf()
  const { upstream } = upstreamOf([slow.origin, fast.origin])
  const first = [upstream.request(request()), upstream.request(request())]
  await slow.until(() => slow.received.length === 1 && fast.received.length === 1)
  for (let i = 0; i < 10; i += 1) await upstream.request(request())
  for (const respond of held) respond()
  await Promise.all(first)
  expect([slow.received.length, fast.received.length]).toEqual([1, 11])
})

test('an active check finds a target that is gone, and that it is back', async () => {
  let healthy = true
  const origin = await originOf((received, wire) =>
    wire.respond({ status: received.target === '/wp-json/health' && !healthy ? 500 : 200 }),
  )
  const other = await originOf()
  const health = { ...noChecks, path: '/health', intervalMs: 20 }
  const { upstream } = upstreamOf([origin.origin, other.origin], { health, basePath: '/wp-json' })
  const state = () => upstream.snapshot().targets[0]?.state
  healthy = false
  await origin.until(() => state() === 'left-out')
  const before = origin.received.filter(({ target }) => target === '/').length
  for (let i = 0; i < 4; i += 1) await upstream.request(request())
  expect(origin.received.filter(({ target }) => target === '/')).toHaveLength(before)
  healthy = true
  await origin.until(() => state() === 'healthy')
})
