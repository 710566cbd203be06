import { beforeAll, expect, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

const mebibyte = 1024 * 1024
const json = { 'Content-Type': 'application/json' }
let origin: Origin
let stock: TestGateway
let set: TestGateway

beforeAll(async () => {
  origin = await startOrigin((request, wire) => {
    const isPost = request.method === 'POST'
    wire.respond({ status: isPost ? 201 : 200, headers: json, content: '{"id":9,"type":"post"}' })
  })
  stock = await startTestGateway({
    services: { site: siteService(origin.origin, { batch: { split: 'item' } }) },
  })
  set = await startTestGateway({
    limits: { bodyBytes: '64KiB', jsonDepth: 100 },
    services: {
      site: siteService(origin.origin, { batch: { split: 'item' } }),
      wide: siteService(origin.origin, {
        mount: '/wide/site-json',
        limits: { bodyBytes: '128KiB', jsonDepth: 200 },
      }),
    },
  })
})
closeAfterAll(() => [stock, set, origin])

const post = async (gateway: TestGateway, mount: string, content: string): Promise<[number, unknown]> => {
  const url = `${gateway.publicAddress}${mount}/site/v2/posts`
  const response = await fetch(url, { method: 'POST', headers: json, body: content })
  const { code } = (await response.json()) as { code?: string }
  return [response.status, code]
}
const text = (bytes: number): string => JSON.stringify({ title: 'x'.repeat(bytes - 12) })
/** `levels` with the object around. */
const nested = (levels: number): string => `{"x":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`

const usual = '/index.php/site-json'

test.each([
  ['8 MiB', text(8 * mebibyte), 201, undefined],
  ['more than 8 MiB', text(8 * mebibyte + 1), 413, 'trellis_content_too_large'],
  ['512 levels', nested(512), 201, undefined],
  ['513 levels', nested(513), 400, 'rest_invalid_json'],
  [
    '512 levels under a name that is exchanged',
    nested(512).replace('"x"', '"site_pattern_sync_status"'),
    201,
    undefined,
  ],
])('a site takes what PHP takes unless it is told otherwise: %s', async (_, content, status, code) => {
  expect(await post(stock, usual, content)).toEqual([status, code])
})

test.each([
  ['limits of all services', usual, 64, 100],
  ['its own limits', '/wide/site-json', 128, 200],
])('a site keeps the %s', async (_, mount, kibibytes, levels) => {
  expect(await post(set, mount, text(kibibytes * 1024))).toEqual([201, undefined])
  expect(await post(set, mount, text(kibibytes * 1024 + 1))).toEqual([413, 'trellis_content_too_large'])
  expect(await post(set, mount, nested(levels))).toEqual([201, undefined])
  expect(await post(set, mount, nested(levels + 1))).toEqual([400, 'rest_invalid_json'])
})

test('an item of a batch may be as large and as deep', async () => {
  const content = (levels: number): string =>
    `{"requests":[{"path":"/site/v2/posts","body":${nested(levels)}},{"path":"/site/v2/posts","body":${text(7 * mebibyte)}}]}`
  const batch = async (levels: number): Promise<unknown> => {
    const url = `${stock.publicAddress}${usual}/batch/v1`
    const response = await fetch(url, { method: 'POST', headers: json, body: content(levels) })
    const { responses, code } = (await response.json()) as { responses?: { status: number }[]; code?: string }
    return responses?.map(({ status }) => status) ?? code
  }
  // The envelope itself has three levels.
  expect(await batch(509)).toEqual([201, 201])
  expect(await batch(510)).toBe('rest_invalid_json')
})
