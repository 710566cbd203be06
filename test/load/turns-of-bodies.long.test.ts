import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { isAll } from '../support/breadth.ts'
import { costlyBodies } from '../support/costly-bodies.ts'
import { costlyDocument, costlyForDocuments } from '../support/costly-documents.ts'
import { siteService } from '../support/gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '../support/gateway-process.ts'
import { longestTurn, maxTurnMs, reportsLongTurns } from '../support/long-turns.ts'
import { type Origin, pause, startOrigin } from '../support/origin.ts'

// One large content, however it is made up, holds the event loop for a short time: in processor time, with that of the collector.

const megabyte = 1 << 20
const posts = '/site/v2/posts'
/** What a site takes. */
const max = 8 * megabyte
/** A longer content takes longer turns where it is parsed, compared or copied as a whole. */
const enoughMs = (content: Buffer): number => maxTurnMs(content, content.length > megabyte ? 300 : 50)

let origin: Origin
let gateway: GatewayProcess
let folder: string

beforeAll(async () => {
  origin = await startOrigin((_, wire) =>
    wire.respond({ headers: { 'Content-Type': 'application/json' }, content: '{}' }),
  )
  folder = await mkdtemp(join(tmpdir(), 'trellis-turns-'))
  const document = join(folder, 'openapi.json')
  await writeFile(document, JSON.stringify(costlyDocument))
  gateway = await startGatewayProcess(
    {
      services: {
        site: siteService(origin.origin, { unlistedRoutes: 'pass' }),
        described: {
          contract: 'openapi',
          mount: '/described',
          document,
          upstream: { targets: [origin.origin] },
        },
      },
    },
    {},
    reportsLongTurns,
  )
})
afterAll(async () => {
  await gateway.stop()
  await rm(folder, { recursive: true, force: true })
  await origin.close()
})

/** Posts a content, at most six times; the longest turn of the best try, and the status. */
const posted = async (
  path: string,
  type: string,
  content: Buffer,
  enoughMs: number,
): Promise<readonly [turnMs: number, status: number]> => {
  let best = Number.POSITIVE_INFINITY
  let status = 0
  for (let tries = 0; tries < 6 && best >= enoughMs; tries += 1) {
    const turn = await longestTurn(gateway.program, async () => {
      const response = await fetch(`${gateway.origin}${path}`, {
        method: 'POST',
        headers: { 'Content-Type': type },
        body: new Uint8Array(content),
      })
      await response.arrayBuffer()
      status = response.status
      await pause(100)
    })
    best = Math.min(best, turn)
  }
  return [best, status]
}

test.each(
  costlyBodies.flatMap(([title, type, made, path = posts]) =>
    [megabyte, ...(isAll ? [max] : [])].map((bytes) => [bytes / megabyte, title, type, made, path] as const),
  ),
)('%i MiB of %s hold the event loop for a short time', async (mebibytes, _, type, made, path) => {
  const bytes = mebibytes * megabyte
  const content = made(bytes, gateway.origin)
  expect(content.length).toBeGreaterThan(0.9 * bytes)
  expect(content.length).toBeLessThanOrEqual(bytes)
  const enough = enoughMs(content)
  const [best, status] = await posted(`/index.php/site-json${path}`, type, content, enough)
  expect(best).toBeLessThan(enough)
  expect([200, 400, 413]).toContain(status)
})

test.each(costlyForDocuments)(
  'an operation of a document takes %s in short turns',
  async (_, type, made, path) => {
    const content = made(megabyte, gateway.origin)
    expect(content.length).toBeGreaterThan(0.9 * megabyte)
    expect(content.length).toBeLessThanOrEqual(megabyte)
    const enough = enoughMs(content)
    const [best, status] = await posted(`/described${path}`, type, content, enough)
    expect(best).toBeLessThan(enough)
    expect([200, 400]).toContain(status)
  },
)
