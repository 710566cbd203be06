import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import type { StatusReport } from '../../src/admin/status-report.ts'
import { keyPair } from '../support/certificates.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '../support/gateway-process.ts'
import { logLinesOf } from '../support/log-lines-of.ts'
import { type Origin, type OriginOptions, pause, type Script, startOrigin } from '../support/origin.ts'
import { noChecks, upstreamOf } from '../unit/upstream/upstream-of.ts'

const originOf = async (script?: Script, options?: OriginOptions): Promise<Origin> => {
  const origin = await startOrigin(script, options)
  onTestFinished(() => origin.close())
  return origin
}

type Settings = Readonly<Record<string, unknown>>

const health = { path: '/up', interval: '100ms' }

const configOf = (targets: readonly Origin[], upstream: Settings = {}): Settings => ({
  services: {
    open: {
      contract: 'open',
      mount: '/a',
      upstream: {
        targets: targets.map(({ origin }) => origin),
        retry: { attempts: 1, budget: 0 },
        health,
        ...upstream,
      },
    },
  },
})

const gatewayOf = async (targets: readonly Origin[], upstream: Settings = {}): Promise<TestGateway> => {
  const gateway = await startTestGateway(configOf(targets, upstream))
  onTestFinished(() => gateway.close())
  return gateway
}

const up = (gateway: TestGateway, { origin }: Origin): Promise<number> =>
  gateway.metric('upstream_target_up', `"${origin}"`)
const checks = (gateway: TestGateway, result: string): Promise<number> =>
  gateway.metric('upstream_checks_total', `result="${result}"`)
const degraded = async ({ adminAddress }: Pick<TestGateway, 'adminAddress'>): Promise<unknown> => {
  const response = await fetch(`${adminAddress}/readyz`)
  return { code: response.status, ...((await response.json()) as object) }
}
const calm = { code: 200, status: 'ready', reasons: [], degraded: [], findings: [], unknown: [] }
const without = { ...calm, degraded: [{ reason: 'upstreams', service: 'open' }] }

test('the only target goes away: metrics, /readyz and the status page say so, requests are still tried, and it comes back', async () => {
  const origin = await originOf()
  const gateway = await gatewayOf([origin])
  await expect.poll(() => checks(gateway, 'good')).toBeGreaterThan(0)
  // A busy machine may miss a check now and then.
  await expect.poll(async () => [await up(gateway, origin), await degraded(gateway)]).toEqual([1, calm])
  await origin.close()
  await expect.poll(() => up(gateway, origin)).toBe(0)
  await expect.poll(() => checks(gateway, 'connect')).toBeGreaterThanOrEqual(2)
  expect(await degraded(gateway)).toEqual(without)
  const page = (await (await fetch(`${gateway.adminAddress}/status`)).json()) as object
  expect(page).toMatchObject({ upstreams: [{ targets: [{ up: false, leftOut: false }] }] })
  // The request was sent, not refused: the only target stays in use.
  expect(await (await fetch(`${gateway.publicAddress}/a/x`)).text()).toContain('upstream_unreachable')
  const back = await originOf(undefined, { port: origin.port })
  await expect.poll(async () => [await up(gateway, back), await degraded(gateway)]).toEqual([1, calm])
  expect((await fetch(`${gateway.publicAddress}/a/x`)).status).toBe(200)
})

test('a 404 fails the check, unless that status is expected', async () => {
  const script: Script = ({ target }, wire) => wire.respond({ status: target === '/up' ? 404 : 200 })
  const [strict, lenient] = [await originOf(script), await originOf(script)]
  const gateway = await gatewayOf([strict])
  const other = await gatewayOf([lenient], { health: { ...health, expect: '200-299,404' } })
  await expect.poll(() => up(gateway, strict)).toBe(0)
  await expect.poll(() => checks(gateway, 'status')).toBeGreaterThanOrEqual(2)
  await expect.poll(() => checks(other, 'good')).toBeGreaterThan(3)
  await expect.poll(() => up(other, lenient)).toBe(1)
  expect(await checks(other, 'status')).toBe(0)
})

test('a check that gets no response ends by its own timeout, and checks of one target never overlap', async () => {
  let asking = 0
  let max = 0
  const origin = await originOf(async (_, wire) => {
    asking += 1
    max = Math.max(max, asking)
    await once(wire.socket, 'close')
    asking -= 1
  })
  const gateway = await gatewayOf([origin], { health: { ...health, timeout: '50ms' } })
  await expect.poll(() => up(gateway, origin)).toBe(0)
  await expect.poll(() => checks(gateway, 'timeout')).toBeGreaterThanOrEqual(2)
  expect(max).toBe(1)
})

test('a response that is never complete fails the check; one that is too long is cut and passes', async () => {
  const half = await originOf((_, wire) => wire.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf'))
  const long = await originOf((_, wire) =>
    wire.write(`HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n${'x'.repeat(100_000)}`),
  )
  const gateway = await gatewayOf([half, long], { health: { ...health, timeout: '90ms' } })
  await expect.poll(() => up(gateway, half)).toBe(0)
  // Not cut, it would time out each time.
  await expect
    .poll(() => gateway.metric('upstream_checks_total', `"${long.origin}"`, 'result="good"'))
    .toBeGreaterThan(0)
  await expect.poll(() => up(gateway, long)).toBe(1)
})

test('a target that passes every other check comes back after recoverAfter passed checks in a row and not before', async () => {
  let steady = false
  let asked = 0
  const origin = await originOf((_, wire) => {
    asked += 1
    wire.respond({ status: steady || asked % 2 === 0 ? 200 : 503 })
  })
  const gateway = await gatewayOf([origin], { health: { ...health, failAfter: 1, recoverAfter: 3 } })
  await expect.poll(() => up(gateway, origin)).toBe(0)
  const from = asked
  await origin.until(() => asked > from + 8)
  expect(await up(gateway, origin)).toBe(0)
  expect(await gateway.metric('upstream_target_changes_total')).toBe(1)
  steady = true
  await expect.poll(() => up(gateway, origin)).toBe(1)
  expect(await gateway.metric('upstream_target_changes_total', 'to="healthy"')).toBe(1)
})

test('of two targets that fail their checks one is left out and one stays in use; both come back', async () => {
  let failing = false
  const script: Script = ({ target }, wire) =>
    wire.respond({ status: failing && target === '/up' ? 500 : 200 })
  const origins = [await originOf(script), await originOf(script)] as const
  const gateway = await gatewayOf(origins)
  const states = () => Promise.all(origins.map((origin) => up(gateway, origin)))
  const leftOut = async () =>
    Promise.all(origins.map(({ origin }) => gateway.metric('upstream_target_left_out', `"${origin}"`)))
  const requests = () =>
    origins.map(({ received }) => received.filter(({ target }) => target !== '/up').length)
  await expect.poll(() => checks(gateway, 'good')).toBeGreaterThan(0)
  failing = true
  await expect.poll(states).toEqual([0, 0])
  expect(await degraded(gateway)).toEqual(without)
  const out = await leftOut()
  expect(out.toSorted()).toEqual([0, 1])
  for (let i = 0; i < 6; i += 1) expect((await fetch(`${gateway.publicAddress}/a/${i}`)).status).toBe(200)
  expect(requests()).toEqual(out.map((isOut) => (isOut === 1 ? 0 : 6)))
  failing = false
  await expect.poll(states).toEqual([1, 1])
  await expect.poll(async () => [await leftOut(), await degraded(gateway)]).toEqual([[0, 0], calm])
})

test('when the target in use recovers, the one that was kept only for lack of another is left out', async () => {
  const failing = [true, true]
  const scriptOf =
    (index: number): Script =>
    ({ target }, wire) =>
      wire.respond({ status: failing[index] === true && target === '/up' ? 500 : 200 })
  const origins = [await originOf(scriptOf(0)), await originOf(scriptOf(1))] as const
  const gateway = await gatewayOf(origins)
  const leftOut = async () =>
    Promise.all(origins.map(({ origin }) => gateway.metric('upstream_target_left_out', `"${origin}"`)))
  await expect.poll(async () => (await leftOut()).toSorted()).toEqual([0, 1])
  await expect.poll(() => Promise.all(origins.map((origin) => up(gateway, origin)))).toEqual([0, 0])
  const out = await leftOut()
  failing[out.indexOf(1)] = false
  await expect.poll(leftOut).toEqual(out.map((isOut) => 1 - isOut))
})

test('a reload puts other thresholds in force', async () => {
  const origin = await originOf((_, wire) => wire.respond({ status: 404 }))
  const gateway = await gatewayOf([origin])
  await expect.poll(() => up(gateway, origin)).toBe(0)
  const outcome = await gateway.put(configOf([origin], { health: { ...health, expect: '404' } }))
  expect(outcome.kind).toBe('applied')
  const good = await checks(gateway, 'good')
  await expect.poll(() => checks(gateway, 'good')).toBeGreaterThan(good + 2)
  await expect.poll(() => up(gateway, origin)).toBe(1)
  const asked = origin.received.length
  await gateway.put(configOf([origin], { health: { path: '' } }))
  await pause(50)
  const last = origin.received.length
  await pause(400)
  expect(origin.received).toHaveLength(last)
  expect(last).toBeGreaterThanOrEqual(asked)
})

test('a reload stops the checks of the configuration before, also while its requests are in flight', async () => {
  const origin = await originOf(({ target }, wire) => void (target === '/hang' || wire.respond({})))
  const gateway = await gatewayOf([origin])
  const hanging = fetch(`${gateway.publicAddress}/a/hang`).catch(() => undefined)
  await origin.until(() => origin.received.some(({ target }) => target === '/hang'))
  await origin.until(() => origin.received.some(({ target }) => target === '/up'))
  await gateway.put(configOf([origin], { health: { path: '' } }))
  // A check in flight may still arrive.
  await pause(50)
  const asked = origin.received.length
  await pause(400)
  expect(origin.received).toHaveLength(asked)
  await origin.close()
  await hanging
})

test('a target that closes kept connections at any moment passes its checks', async () => {
  const origin = await originOf((_, wire) => {
    wire.respond({})
    setTimeout(() => wire.socket.destroy(), 10)
  })
  const { events } = upstreamOf([origin.origin], {
    health: { ...noChecks, path: '/up', intervalMs: 11, timeoutMs: 3_000 },
  })
  await origin.until(() => origin.received.length > 100)
  const results = events.flatMap((event) => (event.kind === 'check-finished' ? [event.result] : []))
  expect(new Set(results)).toEqual(new Set(['good']))
})

test('a response that breaks off fails the check', async () => {
  const origin = await originOf((_, wire) => {
    wire.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf')
    wire.end()
  })
  const gateway = await gatewayOf([origin])
  await expect.poll(() => up(gateway, origin)).toBe(0)
  await expect.poll(() => checks(gateway, 'broken')).toBeGreaterThanOrEqual(2)
})

test('a target whose TLS handshake never ends costs one connection at a time', async () => {
  const silent = await originOf(() => {})
  const { upstream, events } = upstreamOf([silent.origin.replace('http:', 'https:')], {
    timeouts: { connectMs: 20_000, headersMs: 20_000, idleMs: 20_000, totalMs: 60_000 },
    health: { ...noChecks, path: '/up', intervalMs: 60, timeoutMs: 50 },
  })
  await silent.until(() => events.filter(({ kind }) => kind === 'check-finished').length > 5)
  expect(silent.open).toBeLessThanOrEqual(2)
  expect(new Set(events.flatMap((event) => (event.kind === 'check-finished' ? [event.result] : [])))).toEqual(
    new Set(['timeout']),
  )
  await upstream.close()
  await silent.until(() => silent.open === 0)
})

test('a check uses basePath and the Host of requests, and follows no redirect', async () => {
  const origin = await originOf((_, wire) =>
    wire.respond({ status: 302, headers: { Location: 'http://127.0.0.1:9/elsewhere' } }),
  )
  const gateway = await startTestGateway({
    publicUrl: 'http://shop.example',
    ...configOf([origin], { basePath: '/app', host: 'preserve', health: { ...health, path: '/up?deep=1' } }),
  })
  onTestFinished(() => gateway.close())
  await expect.poll(() => checks(gateway, 'good')).toBeGreaterThan(1)
  const asked = new Set(
    origin.received.map(({ method, target, headers }) => `${method} ${target} ${headers['host']}`),
  )
  expect([...asked]).toEqual(['GET /app/up?deep=1 shop.example'])
})

test('a certificate that is not trusted fails the check as a fault of TLS', async () => {
  const origin = await originOf(undefined, {
    tls: keyPair('good'),
  })
  const gateway = await gatewayOf([origin])
  await expect.poll(() => up(gateway, origin)).toBe(0)
  await expect.poll(() => checks(gateway, 'tls')).toBeGreaterThanOrEqual(2)
})

const stateOnPage = async ({ adminAddress }: TestGateway): Promise<unknown> => {
  const report = (await (await fetch(`${adminAddress}/status`)).json()) as StatusReport
  return report.upstreams.flatMap(({ targets }) =>
    targets.map(({ isKnown, up: isUp }) => (isKnown ? isUp : 'unknown')),
  )
}

test('a target is unknown before the first contact, down after the first one if that fails, and up when it answers', async () => {
  let broken = true
  const origin = await originOf((_, wire) => (broken ? wire.reset() : wire.respond({})))
  const gateway = await gatewayOf([origin], { health: { path: '' }, breaker: { failureRatio: 0 } })
  const get = async () => (await fetch(`${gateway.publicAddress}/a/x`)).arrayBuffer()
  const metric = async () =>
    /upstream_target_up\{.*/.exec(await (await fetch(`${gateway.adminAddress}/metrics`)).text())
  expect([await degraded(gateway), await stateOnPage(gateway), await metric()]).toEqual([
    { ...calm, unknown: ['open'] },
    ['unknown'],
    null,
  ])
  await get()
  expect([await degraded(gateway), await stateOnPage(gateway)]).toEqual([without, [false]])
  expect(await gateway.metric('target_changes_total', 'to="failing"')).toBe(1)
  broken = false
  await get()
  expect([await degraded(gateway), await stateOnPage(gateway)]).toEqual([calm, [true]])
  broken = true
  await get()
  expect(await stateOnPage(gateway)).toEqual([true])
})

test('the first check that fails makes a target down, too', async () => {
  const origin = await originOf((_, wire) => wire.reset())
  const gateway = await gatewayOf([origin], { health: { path: '/up', interval: '100ms', failAfter: 1000 } })
  await expect.poll(() => degraded(gateway)).toEqual(without)
  expect(await stateOnPage(gateway)).toEqual([false])
})

test('without active checks the outcomes of requests say whether the only target is up', async () => {
  let broken = false
  const origin = await originOf((_, wire) => (broken ? wire.reset() : wire.respond({})))
  const gateway = await gatewayOf([origin], { health: { path: '' }, breaker: { failureRatio: 0 } })
  const get = async () => (await fetch(`${gateway.publicAddress}/a/x`)).arrayBuffer()
  await get()
  broken = true
  for (let i = 0; i < 4; i += 1) await get()
  expect(await up(gateway, origin)).toBe(1)
  await get()
  expect([await up(gateway, origin), await degraded(gateway)]).toEqual([0, without])
  broken = false
  await get()
  expect([await up(gateway, origin), await degraded(gateway)]).toEqual([1, calm])
})

test('a target counts as failing with the failAfter-th failed check in a row, and a close ends a running check', async () => {
  let count = 0
  const origin = await originOf((_, wire) => {
    count += 1
    if (count < 6) wire.respond({ status: count === 2 ? 200 : 500 })
  })
  const { upstream, events } = upstreamOf([origin.origin], {
    health: { ...noChecks, path: '/up', intervalMs: 40, timeoutMs: 30_000, failAfter: 3 },
  })
  await origin.until(() => count === 6)
  expect(
    events.map((event) => (event.kind === 'check-finished' ? event.result : 'to' in event ? event.to : '')),
  ).toEqual(['status', 'failing', 'good', 'healthy', 'status', 'status', 'status', 'failing'])
  await upstream.close()
  await origin.until(() => origin.open === 0)
  expect([events.length, count]).toEqual([8, 6])
})

const processOf = async (settings: Settings): Promise<GatewayProcess> => {
  const gateway = await startGatewayProcess({ log: { level: 'info' }, ...settings })
  onTestFinished(async () => void (await gateway.stop()))
  return gateway
}

const linesOf = ({ program }: GatewayProcess, message: string): unknown[] =>
  logLinesOf(program, message).map(({ level, time, msg, service, target, ...rest }) => rest)

test('each change of a target by its checks is one log line with its cause, however many checks fail', async () => {
  let status = 200
  const origin = await originOf((_, wire) => wire.respond({ status }))
  // A busy machine may take longer for a check than the usual timeout.
  const gateway = await processOf(
    configOf([origin], { health: { ...health, interval: '1s', timeout: '1s' } }),
  )
  const asked = () => origin.received.length
  await origin.until(() => asked() > 2)
  status = 404
  const from = asked()
  await origin.until(() => asked() > from + 4)
  const failed = {
    from: 'healthy',
    to: 'failing',
    cause: 'the check got status 404, expected 200-399; 2 checks failed consecutively',
  }
  await expect.poll(() => linesOf(gateway, 'target-changed')).toEqual([failed])
  expect(logLinesOf(gateway.program, 'target-changed')[0]).toMatchObject({
    level: 40,
    service: 'open',
    target: origin.origin,
  })
  status = 200
  await expect.poll(() => linesOf(gateway, 'target-changed').length).toBe(2)
  const recovered = { from: 'failing', to: 'healthy', cause: '1 check passed consecutively' }
  expect(linesOf(gateway, 'target-changed')).toEqual([failed, recovered])
})

test('ejection and return of a target, and each state of the breaker, are one log line each', async () => {
  let broken = false
  const [origin, other] = [
    await originOf((_, wire) => (broken ? wire.reset() : wire.respond({}))),
    await originOf(),
  ]
  const gateway = await processOf({
    services: {
      two: {
        contract: 'open',
        mount: '/two',
        upstream: { targets: [origin.origin, other.origin], eject: { after: 2, for: '300ms' } },
      },
      one: {
        contract: 'open',
        mount: '/one',
        upstream: {
          targets: [origin.origin],
          retry: { attempts: 1, budget: 0 },
          eject: { after: 1000 },
          breaker: { minRequests: 4, failureRatio: 0.5, window: '60s', for: '300ms', probes: 1 },
        },
      },
    },
  })
  const get = async (mount: string) => (await fetch(`${gateway.origin}/${mount}/x`)).arrayBuffer()
  for (const mount of ['two', 'two', 'one']) await get(mount)
  broken = true
  for (let i = 0; i < 10; i += 1) await get('two')
  // Its trials fail: it stays left out, which is no news.
  await pause(400)
  await get('two')
  for (let i = 0; i < 6; i += 1) await get('one')
  broken = false
  await expect
    .poll(async () => {
      await Promise.all([get('one'), get('two')])
      return [linesOf(gateway, 'target-changed').length, linesOf(gateway, 'breaker-changed').length]
    })
    .toEqual([2, 3])
  expect(linesOf(gateway, 'target-changed')).toEqual([
    {
      from: 'healthy',
      to: 'left-out',
      cause: '2 requests failed consecutively, the last one: the connection broke',
    },
    { from: 'left-out', to: 'healthy', cause: 'a trial request succeeded' },
  ])
  expect(linesOf(gateway, 'breaker-changed')).toEqual([
    { from: 'closed', to: 'open', cause: '3 of 4 requests in the last 60000 ms failed' },
    { from: 'open', to: 'half-open', cause: 'the breaker was open for 300 ms' },
    { from: 'half-open', to: 'closed', cause: 'all trial requests succeeded: 1' },
  ])
})
