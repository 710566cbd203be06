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
      site: {
        contract: 'site',
        mount: '/site-json',
        discovery: { source: 'static', identity: { name: 'x' } },
        upstream: { targets: [nobody] },
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
  // The line comes through a pipe of its own; a second one would come with it.
  await expect.poll(() => lines().length).toBeGreaterThan(0)
  await pause(50)
  expect(lines()).toHaveLength(1)
  expect(gateway.program.output()).not.toContain(planted)
})

test('an error is told with its cause behind one colon, and no full stop before it', async () => {
  const told = (): unknown => logLinesOf(gateway.program, 'index-failed')[0]?.['err']
  await expect.poll(told).toMatchObject({
    type: 'GatewayError',
    message: expect.stringMatching(
      /^The upstream could not be reached: connect ECONNREFUSED 127\.0\.0\.1:\d+$/,
    ),
  })
})
