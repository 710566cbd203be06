import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { times } from '../support/breadth.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'
import { exchangeBytes } from '../support/raw-client.ts'

// A stored response serves only requests for which the gateway would have sent the upstream the same fields, in all that Vary names; in
// the profile safe also in those that are neither named nor harmless.

type HeaderValues = Readonly<Record<string, string>>

const names = [
  ...[
    'Accept-Language',
    'ACCEPT-LANGUAGE',
    'Accept_Language',
    'Accept.Language',
    'X-Own',
    'X_Own',
    'User-Agent',
  ],
  ...[
    'User_Agent',
    'Referer',
    'Origin',
    'Content-Type',
    'Content_Type',
    'Cookie',
    'Authorization',
    'X-Api-Key',
  ],
  ...[
    'X_Api_Key',
    'X-Forwarded-For',
    'X_Forwarded_For',
    'X-Forwarded-Proto',
    'X-Forwarded-Host',
    'Forwarded',
  ],
  ...[
    'Via',
    'X-Real-IP',
    'X-Request-Id',
    'traceparent',
    'Accept-Encoding',
    'TE',
    'Accept',
    'If-None-Match',
    'Range',
  ],
  ...['X-Request-Deadline-Ms', 'X-User-Class', 'Cache-Control', 'X-Tenant', 'From'],
] as const

const neverHarmless = ['X-Own', 'X-Api-Key', 'X-User-Class', 'X-Tenant', 'From', 'Authorization'] as const

const values = [
  ...[
    '',
    'de',
    'DE',
    'en, de',
    'de,en',
    'de , en',
    '203.0.113.1',
    '203.0.113.2, 127.0.0.1',
    'http',
    'https',
    'a;b',
  ],
  ...['_ga=1', 'for=203.0.113.1', 'for=203.0.113.2;proto=https', '"x"', 'bytes=0-1', '1.1 before'],
] as const

const connections = [
  'close',
  'close, Accept-Language',
  'CLOSE,x-own , X-Forwarded-For',
  'close, Via, Cookie',
  'close, user-agent, x-real-ip, forwarded',
] as const

const request = fc.record({
  lines: fc.array(fc.tuple(fc.constantFrom(...names), fc.constantFrom(...values)), { maxLength: 4 }),
  connection: fc.constantFrom(...connections),
})
type Request = (typeof request)['generate'] extends (...args: never) => { value: infer Value } ? Value : never

/** Named by an upstream, in any case; `Host` and `Connection` are named too. */
const vary = fc.array(fc.constantFrom(...names, 'Host', 'Connection', 'constructor'), {
  minLength: 1,
  maxLength: 3,
})

const proxies = [[], ['127.0.0.1'], ['127.0.0.0/8', '203.0.113.2/32']] as const

let origin: Origin
const gateways: TestGateway[] = []
/** What the origin got, by the number that its response carries. */
const got = new Map<number, HeaderValues>()
let varyBy = ''

beforeAll(async () => {
  origin = await startOrigin((received, wire, number) => {
    got.set(number, received.headers)
    wire.respond({
      headers: {
        'Content-Type': 'application/json',
        'Cache-Control': received.target.includes('per_page=1') ? 'no-store' : 'max-age=60',
        ...(varyBy === '' ? {} : { Vary: varyBy }),
      },
      content: `{"number":${number}}`,
    })
  })
  for (const trustedProxies of proxies) {
    const service = { contract: 'open', upstream: { targets: [origin.origin] } }
    gateways.push(
      await startTestGateway({
        trustedProxies: [...trustedProxies],
        services: {
          site: siteService(origin.origin, {
            cache: { rules: [{ match: 'GET /site/v2/**', ttl: '60s', scope: 'credential' }] },
          }),
          shared: { ...service, mount: '/shared', cache: { profile: 'rfc-shared-cache' } },
          safe: { ...service, mount: '/safe', cache: { rules: [{ match: 'GET /**', ttl: '60s' }] } },
        },
      }),
    )
  }
})
afterAll(async () => {
  for (const gateway of gateways) await gateway.close()
  await origin.close()
})

/** The number of the origin's response that the request gets. */
const ask = async (gateway: TestGateway, target: string, { lines, connection }: Request): Promise<number> => {
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  const response = await exchangeBytes(
    gateway.publicAddress,
    `GET ${target} HTTP/1.1\r\nHost: a\r\n${head}Connection: ${connection}\r\n\r\n`,
  )
  return Number(/"number":(\d+)/.exec(response)?.[1] ?? Number.NaN)
}

/** A field as CGI reads it: every sign that is no letter or digit is `_`. */
const asCgi = (headers: HeaderValues, name: string): readonly string[] => {
  const plain = (text: string): string => text.toLowerCase().replaceAll(/[^a-z\d]/g, '_')
  return Object.entries(headers).flatMap(([one, value]) => (plain(one) === plain(name) ? [value] : []))
}

let count = 0

test('a stored response serves only requests that would have sent the same', async () => {
  const mounts = ['/index.php/site-json/site/v2/posts', '/shared/x', '/safe/x'] as const
  let hits = 0
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(0, 1, 2),
      fc.constantFrom(...mounts),
      vary,
      fc.array(request, { minLength: 2, maxLength: 3 }),
      async (which, mount, names, pool) => {
        const gateway = gateways[which] as TestGateway
        count += 1
        varyBy = names.join(', ')
        for (const one of [...pool, ...pool]) {
          const before = origin.received.length
          const number = await ask(gateway, `${mount}?page=${count}`, one)
          if (Number.isNaN(number) || origin.received.length > before) continue
          hits += 1
          // The same request, for a target of which nothing is stored.
          const twin = await ask(gateway, `${mount}?page=${count}&per_page=1`, one)
          const [stored, own] = [got.get(number) ?? {}, got.get(twin) ?? {}]
          const compared = mount === '/shared/x' ? names : [...names, ...neverHarmless]
          for (const name of compared) expect([name, asCgi(own, name)]).toEqual([name, asCgi(stored, name)])
        }
      },
    ),
    { numRuns: times(60, 150) },
  )
  expect(hits).toBeGreaterThan(times(40, 100))
})
