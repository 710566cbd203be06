import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

let origin: Origin
let gateway: TestGateway
const json = { 'Content-Type': 'application/json; charset=UTF-8' }
const forwarding = (): string => `${gateway.publicAddress}/index.php/site-json`
const stripping = (): string => `${gateway.publicAddress}/strip/site-json`

beforeAll(async () => {
  origin = await startOrigin()
  gateway = await startTestGateway({
    services: {
      site: siteService(origin.origin),
      strip: siteService(origin.origin, { mount: '/strip/site-json', parameters: { unknown: 'strip' } }),
    },
  })
})
closeAfterAll(() => [gateway, origin])
beforeEach(() => {
  origin.received.length = 0
  origin.script = (request, wire) =>
    wire.respond({ headers: json, content: JSON.stringify([{ id: 1, asked: request.target }]) })
})

const cacheOf = async (url: string, init: RequestInit = {}): Promise<string> => {
  const response = await fetch(url, init)
  await response.arrayBuffer()
  return response.headers.get('cache-status') ?? ''
}
const targets = (): readonly string[] =>
  origin.received.map(({ target }) => target.replace('/index.php/wp-json/wp/v2', ''))

describe('a parameter that no route declares', () => {
  test.each([
    ['values', 'posts?lang=de', 'posts?lang=fr'],
    ['absence', 'media?lang=de', 'media'],
    ['case', 'posts?theme=A', 'posts?theme=a'],
    ['spaces around a value', 'posts?tone=a', 'posts?tone=%20a'],
    ['a list and a text', 'posts?acf[]=1', 'posts?acf=1'],
    ['the order of a list', 'posts?acf[]=2&acf[]=3', 'posts?acf[]=3&acf[]=2'],
    ['the order of keys', 'posts?meta[a]=2&meta[b]=3', 'posts?meta[b]=3&meta[a]=2'],
    ['bytes that are no text', 'posts?tone=%FF', 'posts?tone=%FE'],
    ['an escape and its text', 'posts?tone=%2541', 'posts?tone=%41'],
  ])('keeps answers apart that differ in %s', async (_, one, other) => {
    expect(await cacheOf(`${forwarding()}/site/v2/${one}`)).toContain('stored')
    expect(await cacheOf(`${forwarding()}/site/v2/${other}`)).toContain('stored')
    expect(new Set(targets()).size).toBe(2)
    expect(await cacheOf(`${forwarding()}/site/v2/${one}`)).toContain('hit')
  })

  test.each([
    ['order among names', 'pages?zone=1&area=2', 'pages?area=2&zone=1', '/pages?area=2&zone=1'],
    ['the last of equal names', 'pages?area=1&area=3', 'pages?area=3', '/pages?area=3'],
    ['names that PHP folds', 'pages?my.area=4', 'pages?my_area=4', '/pages?my_area=4'],
    ['escapes of one byte', 'pages?area=%e9', 'pages?area=%E9', '/pages?area=%E9'],
    ['tracking parameters', 'pages?area=5&utm_source=x&gclid=1', 'pages?area=5', '/pages?area=5'],
  ])('shares one response where PHP sees no difference: %s', async (_, one, other, sent) => {
    await cacheOf(`${forwarding()}/site/v2/${one}`)
    expect(await cacheOf(`${forwarding()}/site/v2/${other}`)).toContain('hit')
    expect(targets()).toEqual([sent])
  })

  test('that is a password or a nonce is forwarded, and its response is not stored', async () => {
    for (const query of ['include=5&password=x', '_wpnonce=x&lang=de']) {
      expect(await cacheOf(`${forwarding()}/site/v2/posts?${query}`)).toContain('fwd=bypass')
    }
    expect(targets()).toEqual(['/posts?include=5&password=x', '/posts?_wpnonce=x&lang=de'])
  })

  test.each([
    ['a list', 'comments?lang=pl'],
    ['a complete list under a filter', 'posts?author=7&lang=pl'],
    ['one item', 'posts/9?lang=pl'],
  ])('lets no response outlive a write to anything: %s', async (_, read) => {
    origin.script = (request, wire) => {
      const headers = { ...json, 'X-WP-Total': '1', 'X-WP-TotalPages': '1' }
      const item = { id: 9, type: 'post', author: 7, status: 'publish' }
      const isList = !request.target.includes('/posts/9')
      wire.respond({ headers, content: JSON.stringify(isList ? [item] : item) })
    }
    const plain = read.replace(/[?&]lang=pl/, '')
    for (const path of [read, plain]) {
      await cacheOf(`${forwarding()}/site/v2/${path}`)
      expect(await cacheOf(`${forwarding()}/site/v2/${path}`)).toContain('hit')
    }
    const headers = { 'Content-Type': 'application/json' }
    const written = await fetch(`${forwarding()}/site/v2/menu-items/3`, {
      method: 'PUT',
      headers,
      body: '{"title":"x"}',
    })
    expect(written.status).toBe(200)
    expect(await cacheOf(`${forwarding()}/site/v2/${read}`)).not.toContain('hit')
  })

  test('is left out with `strip`, which the metrics tell without its name', async () => {
    const stripped = (): Promise<number> =>
      gateway.metric('trellis_undeclared_parameters_total', 'service="strip"', 'handling="stripped"')
    await cacheOf(`${stripping()}/site/v2/posts?planted=1&lang=de`)
    expect(await cacheOf(`${stripping()}/site/v2/posts?lang=fr`)).toContain('hit')
    expect(targets()).toEqual(['/posts'])
    expect(await stripped()).toBe(2)
    const sent = await gateway.metric(
      'trellis_undeclared_parameters_total',
      'service="site"',
      'handling="sent"',
    )
    expect(sent).toBeGreaterThan(0)
    expect(await (await fetch(`${gateway.adminAddress}/metrics`)).text()).not.toContain('planted')
  })
})
