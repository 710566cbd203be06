import { beforeAll, describe, expect, test } from 'vitest'
import { closeAfterAll } from '../../support/close.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, startOrigin } from '../../support/origin.ts'
import { exchangeBytes } from '../../support/raw-client.ts'

// In the profile safe, two requests share a response only if nothing in them can make a difference to it.

let origin: Origin
let gateway: TestGateway

beforeAll(async () => {
  origin = await startOrigin(({ head }, wire) =>
    wire.respond({ headers: { 'Cache-Control': 'max-age=60' }, content: head }),
  )
  const service = (mount: string, cache: object) => ({
    contract: 'open',
    mount,
    upstream: { targets: [origin.origin] },
    cache,
  })
  const rules = [{ match: 'GET /**', ttl: '60s' }]
  gateway = await startTestGateway({
    services: {
      safe: service('/safe', { rules }),
      listed: service('/listed', { rules, harmlessFields: ['X-App-Version'] }),
      own: service('/own', { rules: [{ match: 'GET /**', ttl: '60s', scope: 'credential' }] }),
      rfc: service('/rfc', { profile: 'rfc-shared-cache' }),
    },
  })
})
closeAfterAll(() => [gateway, origin])

let count = 0
const nextPath = (mount: string): string => {
  count += 1
  return `/${mount}/${count}`
}

const ask = async (path: string, lines: readonly string[]) => {
  const head = lines.map((line) => `${line}\r\n`).join('')
  const connection = lines.some((line) => line.startsWith('Connection:')) ? '' : 'Connection: close\r\n'
  const response = await exchangeBytes(
    gateway.publicAddress,
    `GET ${path} HTTP/1.1\r\nHost: a\r\n${head}${connection}\r\n`,
  )
  return { text: response, isHit: /cache-status: trellis; hit/i.test(response) }
}

const identifying = [
  ...['x-app-key', 'x-application-key', 'x-client-key', 'x-license-key', 'x-private-key', 'x-consumer-key'],
  ...['x-consumer-id', 'x-key', 'key', 'x-bearer', 'bearer', 'signature', 'signature-input', 'x-signature'],
  ...['x-hmac', 'x-hub-signature', 'x-hub-signature-256', 'x-otp', 'otp', 'x-pin', 'pin', 'x-totp', 'x-2fa'],
  ...['x-mfa', 'x-pass', 'x-passcode', 'x-pwd', 'x-passphrase', 'x-sid', 'sid', 'x-uid', 'uid', 'x-login'],
  ...['login', 'x-identity', 'x-account', 'x-account-id', 'x-customer-id', 'x-member-id', 'x-tenant'],
  ...['x-tenant-id', 'x-org-id', 'x-client-id', 'x-client-dn', 'x-client-verify', 'x-cas-ticket'],
  ...['x-impersonate', 'x-act-as', 'x-on-behalf-of', 'x-sudo', 'x-role', 'x-roles', 'x-groups', 'x-scope'],
  ...['x-scopes', 'x-admin', 'x-msisdn', 'from', 'cookie2'],
  // In no list.
  ...[
    'x-kundennummer',
    'gold-member',
    'x-plan',
    'x-seat',
    'cf-access-client-id',
    'l5d-client-id',
    'hx-request',
  ],
]

test.each(identifying)('%s: the response to one client goes to no other', async (name) => {
  const path = nextPath('safe')
  await ask(path, [`${name}: alice`])
  expect((await ask(path, [])).text).not.toContain('alice')
  expect((await ask(path, [`${name}: bob`])).text).toContain(`${name}: bob`)
  expect((await ask(path, [`${name}: alice`])).text).toContain(`${name}: alice`)
  // Nor does the response to nobody go to someone.
  expect((await ask(path, [])).isHit).toBe(true)
})

const usual = [
  ['Accept: text/html', 'Accept: application/json', 'Accept-Language: de', 'User-Agent: Mozilla/5.0 (a)'],
  [
    'Sec-Fetch-Mode: cors',
    'Sec-Fetch-Site: same-origin',
    'Sec-CH-UA: "x"',
    'Sec-CH-UA-Platform: "y"',
    'DNT: 1',
  ],
  ['Sec-GPC: 1', 'Save-Data: on', 'Referer: https://a.example/b', 'Priority: u=1, i', 'Pragma: no-cache'],
  [
    'Upgrade-Insecure-Requests: 1',
    'X-Requested-With: XMLHttpRequest',
    'traceparent: 00-a-b-01',
    'tracestate: a=b',
  ],
  [
    'baggage: a=b',
    'B3: 1-2',
    'X-B3-TraceId: 1',
    'X-B3-SpanId: 1',
    'sentry-trace: 1',
    'X-Datadog-Trace-Id: 1',
  ],
  ['X-Correlation-Id: 1', 'X-Request-Start: t=1', 'X-Amzn-Trace-Id: Root=1', 'X-Cloud-Trace-Context: 1/2'],
  ['CF-Ray: 1', 'CF-IPCountry: DE', 'CF-Visitor: {}', 'CDN-Loop: a', 'X-Forwarded-For: 10.0.0.1'],
  ['CloudFront-Viewer-Country: DE', 'X-Envoy-Attempt-Count: 1', 'Content-Type: application/json'],
  ['Purpose: prefetch', 'Sec-Purpose: prefetch', 'If-None-Match: "x"', 'Cache-Control: no-cache', 'RTT: 50'],
].flat()

test.each(usual)('%s makes no difference, as with browsers and ordinary clients', async (line) => {
  const path = nextPath('safe')
  await ask(path, [])
  const second = await ask(path, [line])
  expect([
    second.isHit,
    origin.received.filter(({ target }) => target === path.replace('/safe', '')).length,
  ]).toEqual([true, 1])
})

test('requests with the same values share a response', async () => {
  const path = nextPath('safe')
  await ask(path, ['X-App-Version: 1', 'X-Theme: dark'])
  expect((await ask(path, ['X-Theme: dark', 'X-App-Version: 1'])).isHit).toBe(true)
  expect((await ask(path, ['X-Theme: dark'])).isHit).toBe(false)
})

test('harmlessFields lists more headers that make no difference', async () => {
  const path = nextPath('listed')
  await ask(path, ['X-App-Version: 1'])
  expect((await ask(path, ['X-App-Version: 2'])).isHit).toBe(true)
  expect((await ask(path, ['X-Theme: dark'])).isHit).toBe(false)
})

test('a header that Connection names away is not sent, and not in the key', async () => {
  const path = nextPath('safe')
  await ask(path, ['X-Theme: dark', 'Connection: close, X-Theme'])
  expect((await ask(path, [])).isHit).toBe(true)
  expect((await ask(path, ['X-Theme: dark'])).text).toMatch(/x-theme: dark/i)
})

test('the same credential with other values gets another response', async () => {
  const path = nextPath('own')
  const own = 'Authorization: Basic eA=='
  await ask(path, [own, 'X-Role: admin'])
  expect((await ask(path, [own])).text).not.toContain('admin')
  expect((await ask(path, [own, 'X-Role: admin'])).isHit).toBe(true)
})

describe('headers in place of the address, host, target or method of a request', () => {
  test.each([
    ...[
      'Akamai-Client-IP',
      'X-Envoy-Original-Host',
      'X-Rewrite-Path',
      'X-HTTP-Path-Override',
      'X-Tunnel-Method',
    ],
    ...['Next-Resume', 'Disguised-Host', 'Fly-Forwarded-Proto', 'X-Vercel-Proxied-For'],
    // In no list.
    ...['Acme-Client-IP', 'X-Acme-Real-Ip', 'X-Source-Addr', 'X-Acme-Original-Host', 'X-Url-Override'],
    ...['X-Acme-Method-Override', 'X-Original-Query', 'X-Visitor-Ip', 'X-Peer-Address', 'X-Scheme-Override'],
  ])('%s reaches no upstream', async (name) => {
    for (const mount of ['safe', 'rfc']) {
      const path = nextPath(mount)
      expect((await ask(path, [`${name}: planted.test`])).text).not.toContain('planted.test')
      expect((await ask(path, [])).isHit).toBe(true)
    }
  })
})

describe('traces', () => {
  const any = [
    'baggage',
    'uberctx-user',
    'x-datadog-tags',
    'x-instana-t',
    'ot-baggage-user',
    'sentry-trace',
    'newrelic',
  ]
  test.each([...any, 'correlation-context', 'x-amzn-trace-id', 'x-correlation-id', 'jaeger-baggage'])(
    '%s is stripped from a read that may be stored, and sent with a write',
    async (name) => {
      for (const mount of ['safe', 'own', 'rfc']) {
        const path = nextPath(mount)
        const lines = mount === 'own' ? ['Authorization: a'] : []
        expect((await ask(path, [`${name}: planted.test`, ...lines])).text).not.toContain('planted.test')
      }
      const written = await fetch(`${gateway.publicAddress}/safe/x`, {
        method: 'POST',
        headers: { [name]: 'planted.test' },
      })
      expect(await written.text()).toContain('planted.test')
    },
  )

  test('two requests of different traces share a response', async () => {
    const path = nextPath('safe')
    await ask(path, ['baggage: a=1', 'ot-baggage-user: a'])
    expect((await ask(path, ['baggage: a=2', 'ot-baggage-user: b'])).isHit).toBe(true)
  })
})
