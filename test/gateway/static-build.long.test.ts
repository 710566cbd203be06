import { beforeAll, expect, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

const mount = '/index.php/site-json/site/v2'
const pages = 500
const [authors, categories] = [6, 5]

let origin: Origin
let gateway: TestGateway

beforeAll(async () => {
  origin = await startOrigin(({ target }, wire) => {
    const id = Number(/\/(\d+)$/.exec(target)?.[1])
    const content = Number.isNaN(id) ? '[]' : JSON.stringify({ id })
    wire.respond({ headers: { 'Content-Type': 'application/json' }, content })
  })
  gateway = await startTestGateway({
    services: {
      site: siteService(origin.origin, {
        upstream: { targets: [origin.origin], basePath: '/index.php/wp-json' },
        cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1h' }] },
      }),
    },
  })
})
closeAfterAll(() => [gateway, origin])

/** What a generator of static pages asks for: the lists, then for each page its post, author, category and the footer. */
const build = async (): Promise<number> => {
  const lists = Array.from({ length: pages / 100 }, (_, at) => `/posts?per_page=100&page=${at + 1}`)
  const ofPages = Array.from({ length: pages }, (_, at) => [
    `/posts/${at + 1}`,
    `/users/${(at % authors) + 1}`,
    `/categories/${(at % categories) + 1}`,
    '/pages/2',
  ])
  const asked = [...lists, ...ofPages.flat()]
  const ask = async (path: string): Promise<void> => {
    const response = await fetch(`${gateway.publicAddress}${mount}${path}`)
    expect(response.status).toBe(200)
    await response.arrayBuffer()
  }
  for (let at = 0; at < asked.length; at += 8) await Promise.all(asked.slice(at, at + 8).map(ask))
  return asked.length
}

test('a build of 500 pages asks 2,005 times, and WordPress gets 517 requests; the next build asks it nothing', async () => {
  expect(await build()).toBe(2_005)
  expect(origin.received).toHaveLength(517)
  await build()
  expect(origin.received).toHaveLength(517)
})
