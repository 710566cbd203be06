import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { closeAfterAll } from '../../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, startOrigin } from '../../support/origin.ts'

// The address that the upstream gets, and the host that the gateway connects to.

const loopback = ['127.0.0.0/8']
const trustedLists = [[], loopback, [...loopback, '10.0.0.0/8']] as const
type TrustedList = (typeof trustedLists)[number]
const [nobody, peer, peerAndHops] = trustedLists

let origin: Origin
const gateways = new Map<TrustedList, TestGateway>()
beforeAll(async () => {
  origin = await startOrigin()
  const services = { open: { contract: 'open', mount: '/open', upstream: { targets: [origin.origin] } } }
  for (const trustedProxies of trustedLists)
    gateways.set(trustedProxies, await startTestGateway({ trustedProxies, services }))
})
closeAfterAll(() => [...gateways.values(), origin])

const through = async (trusted: TrustedList, headers: Record<string, string>) => {
  const url = `${gateways.get(trusted)?.publicAddress}/open/x`
  expect((await fetch(url, { headers })).status).toBe(200)
  const { headers: headerLines = {} } = origin.received.at(-1) ?? {}
  return {
    for: headerLines['x-forwarded-for'],
    proto: headerLines['x-forwarded-proto'],
    forwarded: headerLines['forwarded'],
  }
}

test.each<[string, TrustedList, string, string]>([
  ['nobody is trusted', nobody, '6.6.6.6', '127.0.0.1'],
  ['the peer is trusted', peer, '6.6.6.6', '6.6.6.6'],
  ['what stands left of a stranger may be invented', peer, '1.1.1.1, 6.6.6.6', '6.6.6.6'],
  ['a trusted hop is passed over', peerAndHops, '6.6.6.6, 10.1.2.3', '6.6.6.6'],
  ['a chain of trusted hops alone', peerAndHops, '10.1.2.3', '10.1.2.3'],
  ['a hop that is no address', peer, '6.6.6.6, evil', '127.0.0.1'],
  ['a hop with a port', peer, '6.6.6.6:80', '6.6.6.6'],
  ['an IPv6 hop with a port', peer, '[2001:db8::7]:80', '2001:db8::7'],
  ['a hop with an impossible port', peer, '6.6.6.6:x', '127.0.0.1'],
  ['an empty hop', peer, '6.6.6.6,', '127.0.0.1'],
  ['a mapped address', peer, '::ffff:6.6.6.6', '6.6.6.6'],
  ['words that look like a field', peer, '6.6.6.6;host=evil', '127.0.0.1'],
])('%s', async (_, trusted, value, expected) => {
  const seen = await through(trusted, { 'X-Forwarded-For': value, 'X-Forwarded-Proto': 'https' })
  expect(seen.for).toBe(expected)
  expect(seen.proto).toBe(trusted === nobody ? 'http' : 'https')
  expect(seen.forwarded).not.toMatch(/evil/)
})

test.each<[string, TrustedList, string, string, 'http' | 'https']>([
  ['nobody is trusted', nobody, 'for=6.6.6.6;proto=https', '127.0.0.1', 'http'],
  ['the peer is trusted', peer, 'for=6.6.6.6;proto=https', '6.6.6.6', 'https'],
  ['names and protocol in capitals', peer, 'FOR=6.6.6.6;Proto=HTTPS', '6.6.6.6', 'https'],
  ['a port', peer, 'for="6.6.6.6:4711"', '6.6.6.6', 'http'],
  ['a hidden port', peer, 'for="6.6.6.6:_port"', '6.6.6.6', 'http'],
  ['an IPv6 address', peer, 'for="[2001:db8::7]"', '2001:db8::7', 'http'],
  [
    'an IPv6 address with a port',
    peer,
    'For="[2001:db8:cafe::17]:4711";proto=https',
    '2001:db8:cafe::17',
    'https',
  ],
  ['a mapped address', peer, 'for="[::ffff:6.6.6.6]"', '6.6.6.6', 'http'],
  ['escapes in a quoted string', peer, String.raw`for="6.6.\6.6";proto="htt\ps"`, '6.6.6.6', 'https'],
  [
    'a comma and a semicolon in a quoted string',
    peer,
    'for=6.6.6.6;ext="a,b;for=1.1.1.1"',
    '6.6.6.6',
    'http',
  ],
  ['space around its signs', peer, ' for=1.1.1.1 , for=6.6.6.6 ; proto=https ', '6.6.6.6', 'https'],
  ['what stands left of a stranger', peer, 'for=1.1.1.1;proto=https, for=6.6.6.6', '6.6.6.6', 'http'],
  ['a trusted hop', peerAndHops, 'for=6.6.6.6;proto=https, for=10.1.2.3;proto=http', '6.6.6.6', 'https'],
  ['trusted hops alone', peerAndHops, 'for=10.9.9.9;proto=https,for=10.1.2.3', '10.9.9.9', 'https'],
  ['an unknown client', peer, 'for=unknown;proto=https', '127.0.0.1', 'https'],
  ['a hidden client', peer, 'for=_hidden, for=_SEVKISEK', '127.0.0.1', 'http'],
  ['no client', peer, 'proto=https', '127.0.0.1', 'https'],
  ['a quoted string left open by a stranger', peer, 'for="evil, for=6.6.6.6', '6.6.6.6', 'http'],
  [
    'a quoted string left open before a trusted hop',
    peer,
    'for=";proto=https, for=6.6.6.6, for=127.0.0.9',
    '6.6.6.6',
    'http',
  ],
  ['a parameter twice', peer, 'for=6.6.6.6;for=1.1.1.1', '127.0.0.1', 'http'],
  ['what is no parameter', peer, 'for=6.6.6.6;evil', '127.0.0.1', 'http'],
  ['an address that is none', peer, 'for=evil', '127.0.0.1', 'http'],
  ['an IPv6 address without brackets', peer, 'for="2001:db8::7"', '127.0.0.1', 'http'],
  ['another protocol', peer, 'for=6.6.6.6;proto=evil', '6.6.6.6', 'http'],
  ['an empty element', peer, 'for=6.6.6.6,', '127.0.0.1', 'http'],
])('Forwarded: %s', async (_, trusted, value, address, proto) => {
  const seen = await through(trusted, { Forwarded: value })
  expect({ for: seen.for, proto: seen.proto }).toEqual({ for: address, proto })
  expect(seen.forwarded).not.toMatch(/evil|hidden/i)
})

test.each<[string, Record<string, string>, string, 'http' | 'https']>([
  ['an address', { 'X-Forwarded-For': '6.6.6.6' }, '6.6.6.6', 'http'],
  ['an address that cannot be read', { 'X-Forwarded-For': 'x' }, '127.0.0.1', 'http'],
  ['an empty address', { 'X-Forwarded-For': '' }, '127.0.0.1', 'http'],
  ['a protocol', { 'X-Forwarded-Proto': 'http' }, '127.0.0.1', 'http'],
])(
  'Forwarded is not read beside X-Forwarded-* with %s: such a proxy may pass on its client’s',
  async (_, headers, address, proto) => {
    const seen = await through(peer, { ...headers, Forwarded: 'for=1.1.1.1;proto=https' })
    expect({ for: seen.for, proto: seen.proto }).toEqual({ for: address, proto })
  },
)

test('a long Forwarded is read in linear time', async () => {
  for (const value of [
    'for=6.6.6.6,'.repeat(1000),
    'for="'.repeat(2000),
    ','.repeat(14_000),
    `for="${'\\'.repeat(6000)}`,
  ]) {
    expect((await through(peer, { Forwarded: value })).for).toBe('127.0.0.1')
  }
})

test('a URL in a parameter is text for the upstream: it is not fetched', async () => {
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
    wire.respond({ status: 302, headers: { Location: `${victim.origin}/secret` } }),
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
