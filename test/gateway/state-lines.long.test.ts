import { afterAll, beforeAll, expect, test } from 'vitest'
import { siteService } from '../support/gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '../support/gateway-process.ts'
import { logLinesOf } from '../support/log-lines-of.ts'
import { type Origin, type Script, startOrigin } from '../support/origin.ts'

let origin: Origin
let gateway: GatewayProcess

const response: Script = (_request, wire) =>
  wire.respond({ headers: { 'Content-Type': 'application/json' }, content: '[]' })

beforeAll(async () => {
  origin = await startOrigin(response)
  gateway = await startGatewayProcess({
    log: { level: 'info' },
    services: {
      site: siteService(origin.origin, {
        upstream: {
          targets: [origin.origin],
          basePath: '/index.php/wp-json',
          retry: { attempts: 1 },
          eject: { after: 2, for: '100ms', maxShare: 1 },
        },
        cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1s', staleIfError: '1h' }] },
      }),
    },
  })
})
afterAll(async () => {
  await gateway?.stop()
  await origin?.close()
})

const posts = async (): Promise<string> => {
  const response = await fetch(`${gateway.origin}/index.php/site-json/site/v2/posts`)
  await response.arrayBuffer()
  return `${response.status} ${response.headers.get('cache-status') ?? ''}`
}

test('a failing upstream is logged once when it begins to fail and once when it recovers, with the cause', async () => {
  expect(await posts()).toContain('200')
  origin.script = (_request, wire) => wire.reset()
  await expect.poll(posts).toContain('detail=error')
  await expect
    .poll(async () => {
      await posts()
      return logLinesOf(gateway.program, 'target-changed').length
    })
    .toBeGreaterThan(0)
  for (let count = 0; count < 20; count += 1) await posts()
  await expect
    .poll(() => logLinesOf(gateway.program, 'stale-answers-began'))
    .toMatchObject([{ level: 40, service: 'site', cause: 'unreachable' }])
  expect(logLinesOf(gateway.program, 'target-changed')[0]).toMatchObject({
    to: 'left-out',
    target: origin.origin,
    cause: expect.stringMatching(/\w/),
  })
  origin.script = response
  await expect
    .poll(async () => {
      await posts()
      return logLinesOf(gateway.program, 'target-changed').at(-1)?.['to']
    })
    .toBe('healthy')
  await expect.poll(() => logLinesOf(gateway.program, 'stale-answers-ended').length).toBe(1)
  expect(logLinesOf(gateway.program, 'stale-answers-ended')[0]).toMatchObject({
    level: 30,
    answers: expect.any(Number),
  })
})
