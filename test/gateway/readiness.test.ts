import { expect, test } from 'vitest'
import type { UpstreamIssue } from '../../src/gateway/upstream-issues.ts'
import { closeAfterEach } from '../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

let origin: Origin
let gateway: TestGateway
closeAfterEach(() => [gateway, origin])

const readyz = async (): Promise<unknown> => {
  const response = await fetch(`${gateway.adminAddress}/readyz`)
  return { code: response.status, ...((await response.json()) as object) }
}
const get = (path: string): Promise<Response> => fetch(gateway.publicAddress + path)

test('with every target dead hits continue, the instance stays ready, and lists what is degraded until it recovers', async () => {
  let dead = false
  origin = await startOrigin((_, wire) => (dead ? wire.reset() : wire.respond({ content: 'here' })))
  gateway = await startTestGateway({
    services: {
      open: {
        contract: 'open',
        mount: '/a',
        upstream: {
          targets: [origin.origin],
          retry: { attempts: 1, budget: 0 },
          breaker: { failureRatio: 0.5, minRequests: 5, window: '10s', for: '300ms' },
        },
        cache: { rules: [{ match: 'GET /hit', ttl: '60s' }] },
      },
    },
  })
  const calm = { code: 200, status: 'ready', reasons: [], degraded: [], findings: [], unknown: [] }
  await get('/a/hit')
  expect(await readyz()).toEqual(calm)
  dead = true
  for (let i = 0; i < 12; i += 1) await (await get(`/a/miss/${i}`)).arrayBuffer()
  expect(await readyz()).toEqual({ ...calm, degraded: [{ reason: 'upstreams', service: 'open' }] })
  expect((await get('/a/hit')).headers.get('cache-status')).toContain('hit')
  dead = false
  await expect
    .poll(async () => {
      await (await get('/a/miss')).arrayBuffer()
      return readyz()
    })
    .toEqual(calm)
})

test('/readyz lists what the check at the start has found, by kind and service, until another configuration is applied', async () => {
  origin = await startOrigin((_, wire) => wire.respond({ content: 'here' }))
  const site = siteService(origin.origin)
  const open = (tls: object) => ({
    contract: 'open',
    mount: '/a',
    upstream: { targets: [origin.origin], tls },
  })
  gateway = await startTestGateway({ services: { site, open: open({ acceptAnyCertificate: true }) } })
  const warning = { finding: 'config', setting: 'services.open.upstream.tls.acceptAnyCertificate' }
  const found: UpstreamIssue = { service: 'site', kind: 'no-wordpress', text: 'where and why' }
  const issues = async (): Promise<unknown> => ((await readyz()) as { findings: unknown }).findings

  expect(await issues()).toEqual([warning])
  gateway.warn(found)
  gateway.warn(found)
  expect(await readyz()).toEqual({
    code: 200,
    status: 'ready',
    reasons: [],
    degraded: [],
    findings: [warning, { finding: 'no-wordpress', service: 'site' }],
    unknown: ['site', 'open'],
  })
  await gateway.put({ services: { site, open: open({}) } })
  expect(await issues()).toEqual([])
})
