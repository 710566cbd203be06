import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { closeAfterAll } from '../../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, startOrigin } from '../../support/origin.ts'
import { exchangeBytes } from '../../support/raw-client.ts'

// An upstream that varies by a header: a caller gets only what was made for the headers that the gateway sends for it.

let origin: Origin
let gateway: TestGateway
let varyBy = ''

beforeAll(async () => {
  origin = await startOrigin()
  gateway = await startTestGateway({
    trustedProxies: ['127.0.0.1'],
    services: {
      site: siteService(origin.origin, { cache: { rules: [{ match: 'GET /site/v2/**', ttl: '60s' }] } }),
      shared: {
        contract: 'open',
        mount: '/shared',
        upstream: { targets: [origin.origin] },
        cache: { profile: 'rfc-shared-cache' },
      },
    },
  })
})
closeAfterAll(() => [gateway, origin])
beforeEach(() => {
  origin.received.length = 0
  // Reads headers as CGI does: in capitals, and whatever is no letter or digit as `_`.
  origin.script = ({ headers }, wire) => {
    const wanted = varyBy.toUpperCase().replaceAll('-', '_')
    const read = Object.entries(headers).filter(
      ([name]) => name.toUpperCase().replaceAll(/[^A-Z\d]/g, '_') === wanted,
    )
    wire.respond({
      headers: { 'Content-Type': 'application/json', 'Cache-Control': 'max-age=60', Vary: varyBy },
      content: JSON.stringify({ made: read.map(([, value]) => value) }),
    })
  }
})

const ask = async (target: string, lines: readonly string[]): Promise<unknown> => {
  const head = ['Host: a', ...lines].map((line) => `${line}\r\n`).join('')
  const response = await exchangeBytes(
    gateway.publicAddress,
    `GET ${target} HTTP/1.1\r\n${head}${head.includes('Connection') ? '' : 'Connection: close\r\n'}\r\n`,
  )
  return (
    JSON.parse(response.slice(response.indexOf('{'), response.lastIndexOf('}') + 1)) as { made: unknown }
  ).made
}

let count = 0
const targets = (): readonly string[] => {
  count += 1
  return [`/index.php/site-json/site/v2/posts?page=${count}`, `/shared/x?n=${count}`]
}

describe('a caller cannot store a response as the variant of another one', () => {
  test.each([
    [
      'by naming the field in Connection',
      'Accept-Language',
      ['Connection: close, Accept-Language', 'Accept-Language: de'],
    ],
    ['by an underscore in the name', 'Accept-Language', ['Accept_Language: xx']],
    ['by a dot in the name', 'Accept-Language', ['Accept.Language: xx']],
    ['by another sign in the name', 'Accept-Language', ['Accept~Language: xx']],
    ['by an underscore in the name of its program', 'User-Agent', ['User_Agent: xx']],
    ['by an underscore in the name of a media type', 'Content-Type', ['Content_Type: xx']],
  ])('%s', async (_, name, lines) => {
    varyBy = name
    for (const target of targets()) {
      expect(await ask(target, lines)).toEqual([])
      expect(await ask(target, [`${name}: de`])).toEqual(['de'])
      expect(await ask(target, [])).toEqual([])
    }
  })
})

describe('a header that the gateway writes itself selects by what it writes', () => {
  const first = ['X-Forwarded-For: 203.0.113.1', 'X-Forwarded-Proto: https', 'Via: 1.1 first']
  const second = ['X-Forwarded-For: 203.0.113.2', 'X-Forwarded-Proto: http', 'Via: 1.1 second']

  test.each(['X-Forwarded-For', 'Forwarded', 'X-Forwarded-Proto', 'Via'])('%s', async (name) => {
    varyBy = name
    for (const target of targets()) {
      const made = await ask(target, first)
      expect(made).toHaveLength(1)
      expect(await ask(target, second)).not.toEqual(made)
      expect(await ask(target, first)).toEqual(made)
      expect(origin.received.length).toBe(2)
      origin.received.length = 0
    }
  })

  test.each(['X-Forwarded-Host', 'Accept-Encoding', 'Host', 'Connection', 'TE'])(
    '%s, which is the same for all, selects nothing',
    async (name) => {
      varyBy = name
      for (const target of targets()) {
        const made = await ask(target, first)
        const other = second.map((line) => line.replace(/http$/, 'https'))
        expect(await ask(target, [...other, 'X-Forwarded-Host: x.example', 'TE: trailers'])).toEqual(made)
        expect(origin.received.length).toBe(1)
        origin.received.length = 0
      }
    },
  )

  test.each(['X-Request-Id', 'traceparent', 'tracestate', 'X-Request-Deadline-Ms', 'If-None-Match'])(
    '%s, which differs in each request: nothing is stored',
    async (name) => {
      varyBy = name
      for (const target of targets()) {
        await ask(target, [])
        await ask(target, [])
        expect(origin.received.length).toBe(2)
        origin.received.length = 0
      }
    },
  )
})

test('two spellings of a value are two variants, since upstreams read order, case and spaces', async () => {
  varyBy = 'Accept-Language'
  for (const target of targets()) {
    for (const value of ['de, en', 'en, de', 'en,de', 'EN,de']) {
      expect(await ask(target, [`Accept-Language: ${value}`])).toEqual([value])
    }
  }
})
