import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type GatewayProcess, startGatewayProcess } from '../support/gateway-process.ts'
import { logLinesOf } from '../support/log-lines-of.ts'
import { pause } from '../support/origin.ts'
import { freePort } from '../support/ports.ts'

let gateway: GatewayProcess

beforeAll(async () => {
  const nobody = `http://127.0.0.1:${await freePort()}`
  gateway = await startGatewayProcess({
    log: { level: 'debug' },
    services: {
      plants: { contract: 'plants', mount: '/', upstream: { targets: [nobody] } },
      legacy: { contract: 'open', mount: '/legacy', upstream: { targets: [nobody] } },
      broken: {
        contract: 'open',
        mount: '/broken',
        upstream: { targets: [nobody], breaker: { minRequests: 1_000 } },
      },
      shut: {
        contract: 'open',
        mount: '/shut',
        upstream: { targets: [nobody], breaker: { minRequests: 1, for: '1h' } },
      },
      site: {
        contract: 'site',
        mount: '/site-json',
        discovery: { source: 'static', identity: { name: 'x' } },
        upstream: { targets: [nobody] },
        parameters: { unknown: 'strip' },
      },
      guarded: {
        contract: 'open',
        mount: '/guarded',
        upstream: { targets: [nobody] },
        access: { jwt: { jwks: `${nobody}/jwks.json`, issuer: 'i', audience: 'a' } },
      },
      unread: {
        contract: 'site',
        mount: '/unread',
        discovery: { source: 'upstream' },
        upstream: { targets: [nobody] },
      },
    },
  })
})
afterAll(() => gateway.stop())

const planted = 'planted-secret'

test.each<[string, string, RequestInit, string]>([
  ['a refusal', `/site-json/site/v2/posts?per_page=0&password=${planted}`, {}, 'rest_invalid_param'],
  ['an unknown route', `/${planted}`, {}, 'no_route'],
  [
    'a failed pass-through',
    `/legacy/${planted}?_wpnonce=${planted}`,
    { method: 'POST', body: planted },
    'upstream_unreachable',
  ],
  ['a refused token', `/guarded/${planted}?access_token=${planted}`, {}, 'credential_invalid'],
  ['a failed read', `/site-json/site/v2/posts/1?password=${planted}`, {}, 'upstream_unreachable'],
])('%s is logged once, with its code and without what the client sent', async (_, path, init, code) => {
  const before = gateway.program.output().length
  const headers = { Authorization: `Bearer ${planted}`, Cookie: `wordpress_logged_in=${planted}` }
  await fetch(`${gateway.origin}${path}`, { ...init, headers })
  const lines = (): string[] =>
    gateway.program
      .output()
      .slice(before)
      .split('\n')
      .filter((line) => line.includes(`"code":"${code}"`))
  // The line comes through its own pipe; a second one would come with it.
  await expect.poll(() => lines().length).toBeGreaterThan(0)
  await pause(50)
  expect(lines()).toHaveLength(1)
  expect(gateway.program.output()).not.toContain(planted)
})

test('refusals by access and failed fetches of keys are logged with their reasons', async () => {
  await fetch(`${gateway.origin}/guarded/`, { headers: { Authorization: 'Bearer e30.e30.e30' } })
  await expect
    .poll(() => logLinesOf(gateway.program, 'access-refused').map(({ reason }) => reason))
    .toEqual(expect.arrayContaining(['token-malformed', 'algorithm']))
  await expect
    .poll(() => logLinesOf(gateway.program, 'jwks-fetched'))
    .toMatchObject([{ service: 'guarded', result: 'unreachable' }])
})

test('an upstream that fails again and again fills no log: the first failure tells its cause and request', async () => {
  const responses: Response[] = []
  for (let i = 0; i < 60; i += 1) responses.push(await fetch(`${gateway.origin}/broken/`))
  expect(responses.map(({ status }) => status)).toEqual(Array(60).fill(502))
  const metrics = await (await fetch(`${gateway.adminOrigin}/metrics`)).text()
  expect(metrics).toMatch(/^trellis_refusals_total\{(?=.*"broken")(?=.*"upstream_unreachable").*\} 60$/m)
  const lines = () =>
    logLinesOf(gateway.program, 'request-failed').filter(({ service }) => service === 'broken')
  await expect.poll(() => lines().length).toBeGreaterThan(0)
  await pause(50)
  expect(lines()[0]).toMatchObject({
    held: 0,
    id: responses[0]?.headers.get('x-request-id'),
    code: 'upstream_unreachable',
    err: { message: expect.stringContaining('ECONNREFUSED') },
  })
  // A line for each ten seconds that this took.
  expect(lines().length).toBeLessThan(5)
})

test('events that clients can cause at any rate are counted each time and logged at intervals', async () => {
  const statuses: number[] = []
  for (let i = 0; i < 12; i += 1) statuses.push((await fetch(`${gateway.origin}/shut/`)).status)
  expect(statuses).toEqual([502, ...Array(11).fill(503)])
  const metrics = await (await fetch(`${gateway.adminOrigin}/metrics`)).text()
  expect(metrics).toMatch(/^trellis_refusals_total\{(?=.*"shut")(?=.*"upstream_suspended").*\} 11$/m)
  const lines = (): unknown[] =>
    logLinesOf(gateway.program, 'request-failed').flatMap(({ service, code }) =>
      service === 'shut' ? [code] : [],
    )
  await expect.poll(() => lines().length).toBeGreaterThan(1)
  await pause(50)
  expect(lines()).toEqual(['upstream_unreachable', 'upstream_suspended'])
})

test('dropped undeclared parameters are logged at intervals, with their number and never their names', async () => {
  for (let i = 0; i < 3; i += 1)
    await fetch(`${gateway.origin}/site-json/site/v2/posts?${planted}=${i}&lang=de`)
  const lines = (): readonly unknown[] => logLinesOf(gateway.program, 'parameters-stripped')
  await expect.poll(() => lines().length).toBe(1)
  expect(lines()[0]).toMatchObject({ level: 30, service: 'site', count: 2, held: 0 })
  expect(gateway.program.output()).not.toContain(planted)
})

const refusals = async (code: string): Promise<number> => {
  const metrics = await (await fetch(`${gateway.adminOrigin}/metrics`)).text()
  const lines = metrics.split('\n').filter((line) => line.startsWith('trellis_refusals_total{'))
  return lines
    .filter((line) => line.includes(`code="${code}"`) && line.includes('service="site"'))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}
const refusalLines = (code: string): unknown[] =>
  logLinesOf(gateway.program, 'request-refused').filter(
    (line) => line['code'] === code && line['service'] === 'site',
  )

test('a client that is refused again and again fills no log, and each refusal is counted', async () => {
  const counted = await refusals('rest_invalid_param')
  for (let i = 0; i < 200; i += 1) await fetch(`${gateway.origin}/site-json/site/v2/posts?per_page=0`)
  expect(await refusals('rest_invalid_param')).toBe(counted + 200)
  // A line for each ten seconds that this took.
  expect(refusalLines('rest_invalid_param').length).toBeLessThan(20)
})

test('a client that goes away again and again fills no log, and each time is counted', async () => {
  const { hostname, port } = new URL(gateway.origin)
  for (let i = 0; i < 200; i += 1) {
    const socket = connect(Number(port), hostname)
    socket.on('error', () => {})
    await once(socket, 'connect')
    socket.write('POST /site-json/site/v2/posts HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n')
    socket.write('Content-Type: application/json\r\n\r\n{')
    await pause(2)
    socket.resetAndDestroy()
  }
  await expect.poll(() => refusals('client_gone')).toBeGreaterThan(100)
  expect(refusalLines('client_gone').length).toBeLessThan(20)
})

test('an unreachable upstream is logged without the stack of a library', async () => {
  const told = (): readonly unknown[] =>
    ['index-failed', 'request-failed'].map((line) => logLinesOf(gateway.program, line)[0]?.['err'])
  await expect.poll(told).toEqual(
    ['GatewayError', 'Error'].map((type) => ({
      type,
      code: expect.any(String),
      message: expect.stringContaining('ECONNREFUSED'),
    })),
  )
})

test('an error is logged with its cause behind one colon, and no full stop before it', async () => {
  const told = (): unknown => logLinesOf(gateway.program, 'index-failed')[0]?.['err']
  await expect.poll(told).toMatchObject({
    type: 'GatewayError',
    message: expect.stringMatching(
      /^The upstream could not be reached: connect ECONNREFUSED 127\.0\.0\.1:\d+$/,
    ),
  })
})

test('refusals of the admin side with one reason have one line in ten seconds', async () => {
  const ask = (): Promise<Response> =>
    fetch(`${gateway.adminOrigin}/reload`, { method: 'POST', headers: { origin: 'https://other.example' } })
  const responses = await Promise.all(Array.from({ length: 50 }, ask))
  expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([403]))
  await expect.poll(() => logLinesOf(gateway.program, 'admin-refused').length).toBeGreaterThan(0)
  await pause(200)
  expect(logLinesOf(gateway.program, 'admin-refused').length).toBeLessThanOrEqual(2)
})
