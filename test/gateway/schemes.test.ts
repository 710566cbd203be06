import { beforeEach, expect, test } from 'vitest'
import { closeAfterEach } from '../support/close.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

/** Redirects http to https, as many programs do behind a proxy that ends TLS. */
let origin: Origin
let gateway: TestGateway

beforeEach(async () => {
  origin = await startOrigin(({ headers, target }, wire) => {
    const lasting = { 'Cache-Control': 'max-age=60' }
    if (headers['x-forwarded-proto'] === 'https') wire.respond({ headers: lasting, content: 'page' })
    else wire.respond({ status: 301, headers: { ...lasting, Location: `https://example.org${target}` } })
  })
  gateway = await startTestGateway({
    publicUrl: 'https://example.org',
    trustedProxies: ['127.0.0.1'],
    services: {
      pages: {
        contract: 'open',
        mount: '/',
        upstream: { targets: [origin.origin] },
        cache: { profile: 'rfc-shared-cache' },
      },
    },
  })
})
closeAfterEach(() => [gateway, origin])

const ask = async (scheme: string, init: RequestInit = {}) => {
  const headers = { 'X-Forwarded-Proto': scheme, 'X-Forwarded-For': '192.0.2.1' }
  const response = await fetch(`${gateway.publicAddress}/x`, { ...init, headers, redirect: 'manual' })
  await response.arrayBuffer()
  return [response.status, response.headers.get('cache-status')?.includes('; hit')]
}

test('http and https have their own stored responses, so that no redirect from one to the other leads to itself', async () => {
  expect(await ask('http')).toEqual([301, false])
  expect(await ask('https')).toEqual([200, false])
  expect(await ask('http')).toEqual([301, true])
  expect(await ask('https')).toEqual([200, true])
})

test('a write with one scheme invalidates the responses of both', async () => {
  await ask('http')
  await ask('https')
  await ask('https', { method: 'PUT', body: 'x' })
  expect(await ask('http')).toEqual([301, false])
  expect(await ask('https')).toEqual([200, false])
})

test('after a purge each response is fetched again with its scheme', async () => {
  await ask('http')
  await ask('https')
  await fetch(`${gateway.adminAddress}/cache/purge`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ urls: ['https://example.org/x'], warm: true }),
  })
  await expect.poll(() => gateway.metric('trellis_cache_warmed_total', 'outcome="fetched"')).toBe(2)
  expect(await ask('http')).toEqual([301, true])
  expect(await ask('https')).toEqual([200, true])
})
