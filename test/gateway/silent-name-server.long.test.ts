import dns from 'node:dns'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

/** A lookup of a name in it never ends, as when its servers say nothing: it holds one of the two threads for lookups. */
const zone = '.silent.test'

const { lookup } = dns
let origin: Origin
let gateway: TestGateway
let lookups: number
beforeEach(async () => {
  lookups = 0
  Object.assign(dns, {
    lookup: (name: string, ...rest: [never, never]) => {
      if (name.endsWith(zone)) lookups += 1
      else lookup(name, ...rest)
    },
  })
  origin = await startOrigin()
})
afterEach(async () => {
  await gateway.close()
  await origin.close()
  Object.assign(dns, { lookup })
})

const open = (more: Record<string, unknown> = {}) => ({
  contract: 'open',
  mount: '/',
  upstream: { targets: [origin.origin] },
  ...more,
})
const cache = { rules: [{ match: 'GET /**', ttl: '1h' }] }
const jwt = { jwks: `http://issuer${zone}/jwks.json`, issuer: 'https://id.example', audience: 'a' }
const receiver = { type: 'webhook', url: `http://receiver${zone}/`, secret: 'x'.repeat(32), timeout: '100ms' }
const token = `Bearer ${[
  { alg: 'RS256', kid: 'a' },
  { iss: jwt.issuer, aud: jwt.audience, exp: 9_999_999_999 },
]
  .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
  .join('.')}.${'A'.repeat(342)}`

test.each([
  ['Redis', { cache: { shared: { url: `redis://redis${zone}` } } }, {}, 'trellis_shared_troubles_total'],
  [
    'an issuer of tokens',
    {},
    { access: { jwt: { ...jwt, algorithms: ['RS256'], required: 'all' } } },
    'trellis_jwks_fetches_total',
  ],
  [
    'a receiver of purges',
    {},
    { cache, downstream: { tags: 'Cache-Tag', receivers: [receiver] } },
    'trellis_downstream_purges_total',
  ],
])(
  '%s is looked up once at a time, however often a connection is tried',
  async (_, settings, service, failures) => {
    gateway = await startTestGateway({ services: { pages: open(service) }, ...settings })
    const ask = async (): Promise<number> => {
      await fetch(`${gateway.publicAddress}/`, { method: 'POST', headers: { authorization: token } })
      return gateway.metric(failures)
    }
    await expect.poll(ask, { interval: 500, timeout: 40_000 }).toBeGreaterThanOrEqual(2)
    expect(lookups).toBe(1)
  },
)
