import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { closeAfterAll } from '../../support/close.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, startOrigin } from '../../support/origin.ts'
import { exchangeBytes } from '../../support/raw-client.ts'

// What forbids storing counts, however badly the upstream writes it.

let origin: Origin
let gateway: TestGateway
/** The lines of the response beside its length, and its status. */
let lines: readonly string[] = []
let status = 200

const service = (mount: string, cache: object) => ({
  contract: 'open',
  mount,
  upstream: { targets: [origin.origin] },
  cache,
})

beforeAll(async () => {
  origin = await startOrigin((_, wire, number) =>
    wire.write(
      `HTTP/1.1 ${status} Scripted\r\n${lines.map((line) => `${line}\r\n`).join('')}Content-Length: ${String(number).length}\r\n\r\n${number}`,
    ),
  )
  const rule = { match: 'GET /**', ttl: '60s', negativeTtl: '60s' }
  gateway = await startTestGateway({
    services: {
      safe: service('/safe', { rules: [rule] }),
      rfc: service('/rfc', { profile: 'rfc-shared-cache', rules: [rule] }),
      override: service('/override', { rules: [{ ...rule, override: true }] }),
      own: service('/own', { rules: [{ ...rule, scope: 'credential' }] }),
      harmless: service('/harmless', { rules: [rule], harmlessFields: ['X-Session-Info'] }),
    },
  })
})
closeAfterAll(() => [gateway, origin])
beforeEach(() => {
  status = 200
})

let count = 0

const ask = (path: string, headers = ''): Promise<string> =>
  exchangeBytes(
    gateway.publicAddress,
    `GET ${path} HTTP/1.1\r\nHost: a\r\n${headers}Connection: close\r\n\r\n`,
  )

/** Cache-Status of two equal requests, one after the other. */
const askTwice = async (mount: string, headers = ''): Promise<readonly [first: string, second: string]> => {
  count += 1
  const path = `/${mount}/${count}`
  const statusOf = (response: string) => /^cache-status: trellis; (.*)\r$/im.exec(response)?.[1] ?? 'none'
  const first = statusOf(await ask(path, headers))
  return [first, statusOf(await ask(path, headers))]
}

const isStored = async (mount: string): Promise<boolean> => (await askTwice(mount))[1].startsWith('hit')

describe('a Cache-Control that cannot be read counts as no-store', () => {
  test.each([
    ['a semicolon', ['private; max-age=60']],
    ['a semicolon behind no-store', ['no-store; x']],
    ['a semicolon at the end', ['max-age=60;']],
    ['no separator', ['private max-age=60']],
    ['no separator behind no-store', ['no-store max-age=60']],
    ['a semicolon between words', ['public;private']],
    ['a semicolon before no-store', ['immutable;no-store']],
    ['a directive in quotes', ['"private"']],
    ['a directive in quotes behind another', ['max-age=60, "no-store"']],
    ['a quote that is not opened', ['max-age=60, no-store"']],
    ['a quote that is not closed', ['max-age=60, private="x']],
    ['a backslash', ['private\\, x']],
    ['single quotes around a list', ["max-age=60, 'a, b=c d'"]],
    ['a colon', ['max-age=60, private: x']],
    ['octets beyond ASCII', ['max-age=60, n\xf3-store']],
    ['octets beyond ASCII around a word', ['max-age=60,\xa0no-store']],
    ['two equal signs', ['max-age==60']],
    ['text behind quotes', ['max-age="60"x']],
    ['an argument without a name', ['max-age=60, =private']],
    ['an empty argument', ['max-age=60, private=']],
    ['brackets', ['max-age=60, (private)']],
    ['quotes over two lines', ['max-age=60, ext="a', 'no-store', 'b"']],
    ['one of several lines', ['max-age=60', 'no-store; x']],
    ['a slash', ['max-age=60, private/x']],
    ['JSON', ['{"private": true}']],
  ])('%s', async (_, values) => {
    lines = values.map((value) => `Cache-Control: ${value}`)
    for (const mount of ['safe', 'rfc']) {
      const [first, second] = await askTwice(mount)
      expect([mount, second]).toEqual([mount, first])
      expect(first).toMatch(/detail=(?:no-store|private)/)
    }
  })

  test.each([
    ['empty members', ['max-age=60, , ,']],
    ['quoted seconds', ['max-age="60"']],
    ['no spaces', ['public,max-age=60,immutable']],
    ['tabs', ['public\t,\tmax-age=60']],
    ['unknown directives', ['max-age=60, ext=a!b, other="no-store"']],
    ['several lines', ['public', 'max-age=60']],
    ['an empty line', ['', 'max-age=60']],
    ['capitals', ['Public, Max-Age=60']],
  ])('%s can be read', async (_, values) => {
    lines = values.map((value) => `Cache-Control: ${value}`)
    for (const mount of ['safe', 'rfc']) expect([mount, await isStored(mount)]).toEqual([mount, true])
  })

  test.each([
    ['private=true', 'a word in place of names'],
    ['private="a b"', 'no names'],
    ['private="x", private', 'the whole beside names'],
    ['private="\\"', 'an escaped end'],
    ['no-cache="a", no-store', 'no-store beside names'],
  ])('%s (%s) is not shared', async (value) => {
    lines = [`Cache-Control: max-age=60, ${value}`]
    for (const mount of ['safe', 'rfc']) expect([mount, await isStored(mount)]).toEqual([mount, false])
  })

  test('headers that are named are kept from others, and the rest is shared where the RFC allows it', async () => {
    lines = ['Cache-Control: max-age=60, private="x-own"', 'X-Own: 1']
    count += 1
    expect(await ask(`/rfc/${count}`)).toMatch(/^x-own: 1/im)
    const second = await ask(`/rfc/${count}`)
    expect(second).toMatch(/trellis; hit/)
    expect(second).not.toMatch(/^x-own/im)
  })

  test.each([
    ['CDN-Cache-Control', 'private; max-age=60'],
    ['CDN-Cache-Control', 'max-age=60, No-Store'],
    ['CDN-Cache-Control', 'max-age="60"'],
    ['CDN-Cache-Control', 'no-store=yes'],
    ['Trellis-Cache-Control', 'max-age=60, "private"'],
    ['Trellis-Cache-Control', 'max-age=60,'],
    ['Surrogate-Control', 'no-store'],
    ['Surrogate-Control', 'max-age=60; private'],
    ['Surrogate-Control', 'content="ESI/1.0", no-store-remote'],
  ])('%s: %s', async (name, value) => {
    lines = [`${name}: ${value}`, 'Cache-Control: max-age=60']
    for (const mount of ['safe', 'rfc']) expect([mount, await isStored(mount)]).toEqual([mount, false])
  })

  test('Pragma: no-cache without Cache-Control forbids storing by a rule', async () => {
    lines = ['Pragma: no-cache']
    expect(await askTwice('safe')).toEqual(Array(2).fill('fwd=uri-miss; fwd-status=200; detail=no-store'))
    lines = ['Pragma: no-cache', 'Cache-Control: max-age=60']
    expect(await isStored('safe')).toBe(true)
  })

  test('a rule with override stores what cannot be read, unless the word private is in it', async () => {
    lines = ['Cache-Control: max-age=60; no-cache']
    expect(await isStored('override')).toBe(true)
    lines = ['Cache-Control: max-age=60; Private']
    expect(await isStored('override')).toBe(false)
    lines = ['CDN-Cache-Control: max-age=60; Private']
    expect(await isStored('override')).toBe(false)
  })

  test('a request whose Cache-Control cannot be read bypasses the cache, as with no-store', async () => {
    lines = ['Cache-Control: max-age=60']
    for (const mount of ['safe', 'rfc']) {
      const statuses = await askTwice(mount, 'Cache-Control: no-store; max-age=0\r\n')
      expect(statuses).toEqual(Array(2).fill('fwd=bypass; detail=request-no-store'))
    }
  })
})

describe('a header with a token of its reader keeps the response from all others', () => {
  const names = [
    ...['Cart-Token', 'Nonce', 'X-WP-Nonce', 'X-CSRF-Token', 'X-XSRF-TOKEN', 'X-Auth-Token', 'Authorization'],
    ...['Authentication-Info', 'X-Session-Id', 'X-WC-Store-API-Nonce', 'Woocommerce-Session', 'X-Api-Key'],
    // In no list.
    ...[
      'X-Acme-Access-Token',
      'Set-Session',
      'X-User-Id',
      'CoCart-API-Cart-Key-Token',
      'X-JWT',
      'X-Secret-Of',
    ],
  ]
  test.each(names)('%s', async (name) => {
    lines = [`${name}: t1`, 'Cache-Control: public, max-age=60']
    for (const mount of ['safe', 'rfc', 'override']) {
      expect(await askTwice(mount)).toEqual(Array(2).fill('fwd=uri-miss; fwd-status=200; detail=token'))
    }
    const own = await askTwice('own', 'Authorization: Basic eA==\r\n')
    expect(own).toEqual(Array(2).fill('fwd=uri-miss; fwd-status=200; detail=token'))
  })

  test('those who wait for the same response get one of their own', async () => {
    lines = ['Cart-Token: t1']
    count += 1
    const before = origin.received.length
    const responses = await Promise.all([1, 2, 3].map(() => ask(`/safe/${count}`)))
    expect(origin.received.length - before).toBe(3)
    expect(new Set(responses.map((response) => response.split('\r\n\r\n')[1])).size).toBe(3)
  })

  test.each([
    ['Access-Control-Allow-Credentials: true'],
    ['X-Author: Ann'],
    ['Surrogate-Key: a'],
    ['X-Cache-Key: a'],
    ['X-RateLimit-Remaining-Tokens: 7'],
    ['WWW-Authenticate: Basic'],
    ['Signature-Input: sig=()'],
  ])('%s is no token', async (line) => {
    lines = [line, 'Cache-Control: max-age=60']
    for (const mount of ['safe', 'rfc']) expect([mount, await isStored(mount)]).toEqual([mount, true])
  })

  test('harmlessFields names exceptions, and no-cache with its name keeps the header alone from others', async () => {
    lines = ['X-Session-Info: 1']
    expect([await isStored('safe'), await isStored('harmless')]).toEqual([false, true])
    lines = ['Cart-Token: t1', 'Cache-Control: max-age=60, no-cache="cart-token"']
    count += 1
    expect(await ask(`/safe/${count}`)).toMatch(/^cart-token: t1/im)
    const second = await ask(`/safe/${count}`)
    expect(second).toMatch(/trellis; hit/)
    expect(second).not.toMatch(/^cart-token/im)
  })
})

test.each([428, 429, 431, 511])('%i is never stored (RFC 6585)', async (code) => {
  status = code
  lines = ['Cache-Control: public, max-age=60']
  for (const mount of ['safe', 'rfc', 'override']) {
    expect(await askTwice(mount)).toEqual(Array(2).fill(`fwd=uri-miss; fwd-status=${code}; detail=status`))
  }
})
