import { expect, onTestFinished, test } from 'vitest'
import { siteService, startTestGateway } from '../../support/gateway.ts'
import { startOrigin } from '../../support/origin.ts'

// Whom the upstream is told about, and whom the gateway talks to.

const through = async (trustedProxies: readonly string[], headers: Record<string, string>) => {
  const origin = await startOrigin()
  const gateway = await startTestGateway({
    trustedProxies,
    services: { open: { contract: 'open', mount: '/open', upstream: { targets: [origin.origin] } } },
  })
  onTestFinished(async () => {
    await gateway.close()
    await origin.close()
  })
  expect((await fetch(`${gateway.publicAddress}/open/x`, { headers })).status).toBe(200)
  const { fields = {} } = origin.received[0] ?? {}
  return {
    for: fields['x-forwarded-for'],
    proto: fields['x-forwarded-proto'],
    forwarded: fields['forwarded'],
  }
}

const loopback = ['127.0.0.0/8']

test.each([
  ['nobody is trusted', [], '6.6.6.6', '127.0.0.1'],
  ['the peer is trusted', loopback, '6.6.6.6', '6.6.6.6'],
  ['what stands left of a stranger may be invented', loopback, '1.1.1.1, 6.6.6.6', '6.6.6.6'],
  ['a trusted hop is passed over', [...loopback, '10.0.0.0/8'], '6.6.6.6, 10.1.2.3', '6.6.6.6'],
  ['a chain of trusted hops alone', [...loopback, '10.0.0.0/8'], '10.1.2.3', '10.1.2.3'],
  ['a hop that is no address', loopback, '6.6.6.6, evil', '127.0.0.1'],
  ['a hop with a port', loopback, '6.6.6.6:80', '127.0.0.1'],
  ['an empty hop', loopback, '6.6.6.6,', '127.0.0.1'],
  ['a mapped address', loopback, '::ffff:6.6.6.6', '6.6.6.6'],
  ['words that look like a field', loopback, '6.6.6.6;host=evil', '127.0.0.1'],
])('%s', async (_, trusted, value, expected) => {
  const seen = await through(trusted, { 'X-Forwarded-For': value, 'X-Forwarded-Proto': 'https' })
  expect(seen.for).toBe(expected)
  expect(seen.proto).toBe(trusted.length === 0 ? 'http' : 'https')
  expect(seen.forwarded).not.toMatch(/evil/)
})

test('a URL in a parameter is text for the upstream: nobody fetches it', async () => {
  const victim = await startOrigin()
  const origin = await startOrigin()
  const gateway = await startTestGateway({ services: { site: siteService(origin.origin) } })
  onTestFinished(async () => {
    await gateway.close()
    await origin.close()
    await victim.close()
  })
  const target = encodeURIComponent(`${victim.origin}/secret`)
  const root = `${gateway.publicAddress}/index.php/site-json`
  expect((await fetch(`${root}/oembed/1.0/embed?url=${target}`)).status).toBe(200)
  expect(origin.received.map((request) => decodeURIComponent(request.target))).toEqual([
    `/index.php/wp-json/oembed/1.0/embed?url=${victim.origin}/secret`,
  ])
  expect(victim.accepted).toBe(0)
})

test('where an upstream redirects to, the gateway does not go', async () => {
  const victim = await startOrigin()
  const origin = await startOrigin((_, wire) =>
    wire.respond({ status: 302, fields: { Location: `${victim.origin}/secret` } }),
  )
  const gateway = await startTestGateway({
    services: { open: { contract: 'open', mount: '/open', upstream: { targets: [origin.origin] } } },
  })
  onTestFinished(async () => {
    await gateway.close()
    await origin.close()
    await victim.close()
  })
  for (const method of ['GET', 'POST']) {
    const response = await fetch(`${gateway.publicAddress}/open/x`, { method, redirect: 'manual' })
    expect(response.status).toBe(302)
  }
  expect(victim.accepted).toBe(0)
})
