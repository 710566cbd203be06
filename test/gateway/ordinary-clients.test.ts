import { beforeAll, expect, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'
import { exchangeBytes } from '../support/raw-client.ts'

// What ordinary clients send beside the target keeps none of them from a stored response.

let origin: Origin
let gateway: TestGateway
beforeAll(async () => {
  origin = await startOrigin()
  gateway = await startTestGateway({
    services: {
      site: siteService(origin.origin, {
        cache: {
          rules: [{ match: 'GET /site/v2/**', ttl: '60s' }],
          harmlessFields: ['X-User-Agent-Class'],
          harmlessCookies: ['PHPSESSID'],
        },
      }),
    },
  })
})
closeAfterAll(() => [gateway, origin])

const chrome = [
  'sec-ch-ua: "Chromium";v="142", "Google Chrome";v="142", "Not_A Brand";v="99"',
  'sec-ch-ua-mobile: ?0',
  'sec-ch-ua-platform: "Linux"',
  'sec-ch-ua-full-version-list: "Chromium";v="142.0.7444.59"',
  'Upgrade-Insecure-Requests: 1',
  'User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36',
  'Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8',
  'Sec-Fetch-Site: none',
  'Sec-Fetch-Mode: navigate',
  'Sec-Fetch-User: ?1',
  'Sec-Fetch-Dest: document',
  'Sec-Fetch-Storage-Access: active',
  'Sec-Purpose: prefetch',
  'Accept-Encoding: gzip, deflate, br, zstd',
  'Accept-Language: en-US,en;q=0.9',
]

test.each<[string, readonly string[]]>([
  ['Chrome', chrome],
  [
    'Firefox',
    [
      'User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0',
      'Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
      'Accept-Language: en-US,en;q=0.5',
      'Accept-Encoding: gzip, deflate, br, zstd',
      'DNT: 1',
      'Sec-GPC: 1',
      'Upgrade-Insecure-Requests: 1',
      'Sec-Fetch-Dest: document',
      'Sec-Fetch-Mode: navigate',
      'Sec-Fetch-Site: cross-site',
      'Sec-Fetch-User: ?1',
      'Priority: u=0, i',
      'Pragma: no-cache',
      'Cache-Control: no-cache',
      'TE: trailers',
    ],
  ],
  [
    'Safari',
    [
      'Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
      'Sec-Fetch-Site: same-origin',
      'Sec-Fetch-Mode: cors',
      'Sec-Fetch-Dest: empty',
      'Accept-Language: de-DE,de;q=0.9',
      'Priority: u=3, i',
      'Accept-Encoding: gzip, deflate, br',
      'User-Agent: Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.1 Safari/605.1.15',
      'Referer: https://shop.example/',
    ],
  ],
  ['curl', ['User-Agent: curl/8.14.1', 'Accept: */*']],
  ['curl with what a browser shows', ['Authority: shop.example', 'User-Agent: Mozilla/5.0', 'Accept: */*']],
  [
    'wpapi',
    ['User-Agent: node-superagent/4.1.0', 'Accept: application/json', 'Accept-Encoding: gzip, deflate'],
  ],
  [
    'fetch of Node',
    [
      'Accept: */*',
      'Accept-Language: *',
      'Sec-Fetch-Mode: cors',
      'User-Agent: node',
      'Accept-Encoding: gzip, deflate',
    ],
  ],
  [
    'Next.js in a browser',
    [
      'RSC: 1',
      'Next-Router-State-Tree: %5B%22%22%2C%7B%7D%5D',
      'Next-Router-Prefetch: 1',
      'Next-Router-Segment-Prefetch: /_tree',
      'Next-Url: /en',
      'X-Nextjs-Data: 1',
      'X-Middleware-Prefetch: 1',
      'Purpose: prefetch',
      ...chrome,
    ],
  ],
  [
    'Googlebot',
    [
      'User-Agent: Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)',
      'From: googlebot(at)googlebot.com',
      'Accept: text/html,application/xhtml+xml,application/signed-exchange;v=b3,application/xml;q=0.9,*/*;q=0.8',
      'Accept-Encoding: gzip, deflate, br',
      'AMP-Cache-Transform: google;v="1..8"',
    ],
  ],
  [
    'a script of jQuery',
    [
      'X-Requested-With: XMLHttpRequest',
      'Accept: application/json, text/javascript, */*; q=0.01',
      'Origin: null',
    ],
  ],
  [
    'a content network and a mesh in front',
    [
      'CF-Ray: 8f1',
      'CF-IPCountry: DE',
      'CF-Visitor: {"scheme":"https"}',
      'CDN-Loop: cloudflare; loops=1',
      'X-Amzn-Trace-Id: Root=1-67',
      'X-Amz-Cf-Id: abc',
      'X-Cloud-Trace-Context: 105445aa7843bc8bf206b120001000/1;o=1',
      'X-B3-TraceId: 80f198ee56343ba864fe8b2a57d3eff7',
      'X-Forwarded-Client-Cert: Hash=468ed33be74eee6556d90c0149c1309e9ba61d6425303443c0748a02dd8de688',
      'Sentry-Trace: 771a43a4192642f0b136d5159a501700-7d9b9a0a9d5c4c1a-1',
      'Baggage: sentry-environment=production',
    ],
  ],
  ['one that the configuration calls harmless', ['x-user-agent-class: phone']],
])('a request of %s is answered from the cache', async (_, lines) => {
  const ask = (): Promise<string> =>
    exchangeBytes(
      gateway.publicAddress,
      `GET /index.php/site-json/site/v2/posts HTTP/1.1\r\nHost: a\r\n${lines.map((line) => `${line}\r\n`).join('')}Connection: close\r\n\r\n`,
    )
  await ask()
  expect(/cache-status: (.*)\r\n/i.exec(await ask())?.[1]).toContain('trellis; hit')
})

test('a request with a header that looks like a credential is not', async () => {
  const response = await fetch(`${gateway.publicAddress}/index.php/site-json/site/v2/posts`, {
    headers: { 'X-User-Class': 'a' },
  })
  expect(response.headers.get('cache-status')).toBe('trellis; fwd=bypass; detail=authorization')
})

test('explain names the headers for which a request bypasses the cache', async () => {
  const explained = async (...headers: readonly string[]): Promise<unknown> => {
    const url = new URL(`${gateway.adminAddress}/explain`)
    url.searchParams.set('url', '/index.php/site-json/site/v2/posts')
    for (const header of headers) url.searchParams.append('header', header)
    const { cache, fieldsThatCountAsCredentials: names } = (await (await fetch(url)).json()) as Record<
      string,
      unknown
    >
    return { cache, names }
  }
  expect(await explained('X-User-Class: a', 'X-Token: b', 'X-User-Agent-Class: c')).toEqual({
    cache: 'bypass: authorization',
    names: ['x-token', 'x-user-class'],
  })
  expect(await explained('X-User-Agent-Class: c')).toEqual({ cache: 'read, public', names: undefined })
})

test('cookies that make no difference do not reach the upstream; those that may are named to the operator', async () => {
  const url = `${gateway.publicAddress}/index.php/site-json/site/v2/pages`
  const seen: (string | undefined)[] = []
  origin.script = ({ headers }, wire) => {
    seen.push(headers['cookie'])
    wire.respond({ headers: { 'Content-Type': 'application/json' }, content: '[]' })
  }
  const status = async (cookie: string): Promise<string> => {
    const response = await fetch(url, { headers: { cookie } })
    await response.arrayBuffer()
    return response.headers.get('cache-status') ?? ''
  }
  expect(await status('PHPSESSID=a; woocommerce_cart_hash=b; _ga=c')).toContain('stored')
  expect(await status('PHPSESSID=other; cmplz_marketing=allow')).toContain('trellis; hit')
  expect(await status('PHPSESSID=a; wordpress_logged_in_x=secret')).toContain('detail=cookie')
  expect(seen).toEqual([undefined, 'PHPSESSID=a; wordpress_logged_in_x=secret'])
  const asked = new URL(`${gateway.adminAddress}/explain`)
  asked.searchParams.set('url', new URL(url).pathname)
  asked.searchParams.set('header', 'Cookie: PHPSESSID=a; wordpress_logged_in_x=secret; theme=dark')
  const explanation = await (await fetch(asked)).text()
  expect(JSON.parse(explanation)['cookiesThatMayChangeTheAnswer']).toEqual([
    'wordpress_logged_in_x (login)',
    'theme (unknown)',
  ])
  expect(explanation).not.toContain('secret')
})
