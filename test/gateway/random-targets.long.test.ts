import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { beforeAll, expect, test } from 'vitest'
import { times } from '../support/breadth.ts'
import { closeAfterAll } from '../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'
import { exchangeBytes } from '../support/raw-client.ts'

let origin: Origin
let gateway: TestGateway
const list = JSON.stringify([{ id: 1, title: 'x'.repeat(8_000) }])
/** Less than the responses to the undeclared parameters need. */
const maxStored = 4 * 1024 * 1024

beforeAll(async () => {
  origin = await startOrigin((request, wire) => {
    if (!request.target.includes('?random')) return wire.respond({ status: 404, content: '{}' })
    wire.respond({ headers: { 'Content-Type': 'application/json' }, content: list })
  })
  gateway = await startTestGateway({
    cache: { maxBytes: maxStored },
    services: {
      plants: { contract: 'plants', mount: '/', upstream: { targets: [origin.origin] } },
      site: siteService(origin.origin, { unlistedRoutes: 'refuse' }),
    },
  })
})
closeAfterAll(() => [gateway, origin])

/** Bytes in use, garbage apart. */
const heapInUse = (): number => {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  return process.memoryUsage().heapUsed
}

/** Names and labels of everything that is counted. */
const series = async (): Promise<string[]> => {
  const text = await (await fetch(`${gateway.adminAddress}/metrics`)).text()
  const lines = text.split('\n').filter((line) => line.startsWith('trellis_'))
  return lines.map((line) => line.slice(0, line.lastIndexOf(' ')))
}

/** TARGETS=100000 for a long look. */
const count = Number(process.env['TARGETS'] ?? times(3_600, 5_000))

const targetOf = (i: number): string => {
  // Hexadecimal: letters of chance may spell the name of a credential.
  const random = Math.random().toString(16).slice(2)
  switch (i % 6) {
    case 0:
      return `/${random}/${i}`
    case 1:
      return `/index.php/site-json/site/v2/${random}`
    case 2:
      return `/index.php/site-json/site/v2/posts?per_page=${random}`
    case 3:
      return `/index.php/site-json/site/v2/posts/${i}`
    case 4:
      return `/index.php/site-json/site/v2/posts?random${random}=${i}`
    default:
      return `/index.php/site-json/site/v2/posts?search=${random}`
  }
}

const flood = async (from: number, to: number): Promise<void> => {
  for (let i = from; i < to; i += 100) {
    const requests = Array.from(
      { length: 100 },
      (_, k) =>
        `GET ${targetOf(i + k)} HTTP/1.1\r\nHost: a\r\n${k === 99 ? 'Connection: close\r\n' : ''}\r\n`,
    )
    await exchangeBytes(gateway.publicAddress, requests.join(''))
    // The origin's own record of what came is not what is weighed.
    origin.received.length = 0
  }
}

test(`${count} random targets add no metric series and no unbounded memory`, async () => {
  // One of each kind, and the pages of memory that any load touches first.
  await flood(0, 600)
  const seriesBefore = await series()
  const heapBefore = heapInUse()
  await flood(600, 600 + count)
  const seriesAfter = await series()
  // Only the second part fills the memory: routes and reasons are few.
  const isKnown = (one: string): boolean => seriesBefore.includes(one) || one.includes('reason="evicted"')
  expect(seriesAfter.filter((one) => !isKnown(one))).toEqual([])
  const grown = heapInUse() - heapBefore
  process.stdout.write(`${count} random targets: the heap has grown by ${Math.round(grown / 1024)} KiB\n`)
  // The memo and the cache are bounded: 8,192 targets and 4 MiB; 404 is not kept.
  expect(grown).toBeLessThan(64 * 1024 * 1024)
  expect(await gateway.metric('trellis_undeclared_parameters_total', 'handling="sent"')).toBeGreaterThan(
    count / 6,
  )
  expect(await gateway.metric('trellis_cache_evicted_bytes_total')).toBeGreaterThan(0)
  expect(await gateway.metric('trellis_cache_bytes ')).toBeLessThanOrEqual(maxStored)
}, 600_000)
