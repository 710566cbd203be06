import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { siteService } from '../../support/gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts'
import { longestTurn, reportsLongTurns } from '../../support/long-turns.ts'
import { type Origin, startOrigin } from '../../support/origin.ts'
import { programPid } from '../../support/processes.ts'

// What plugins announce in the index of a site, and what a document describes, is read in turns of the event loop: in processor time.

const maxTurnMs = 50
const json = { 'Content-Type': 'application/json' }

type Routes = Readonly<Record<string, object>>

const endpoint = (type: string) => ({
  methods: ['GET'],
  args: { page: { type, default: 1 }, context: { type: 'string', enum: ['view', 'edit'], default: 'view' } },
})
const routesOf = (count: number, pattern: (at: number) => string, type = 'integer'): Routes =>
  Object.fromEntries(
    Array.from({ length: count }, (_, at) => [
      pattern(at),
      { namespace: 'plug/v1', methods: ['GET'], endpoints: [endpoint(type)] },
    ]),
  )

let routes: Routes = {}
let refreshes = 0
let origin: Origin
let gateway: GatewayProcess
let folder: string

const documentOf = (count: number, title: string): string =>
  JSON.stringify({
    openapi: '3.1.0',
    info: { title, version: '1' },
    components: {
      schemas: Object.fromEntries(
        Array.from({ length: 300 }, (_, at) => [
          `Thing${at}`,
          {
            type: 'object',
            required: ['id'],
            properties: { id: { type: 'integer' }, name: { type: 'string' } },
          },
        ]),
      ),
    },
    paths: Object.fromEntries(
      Array.from({ length: count }, (_, at) => {
        const content = { 'application/json': { schema: { $ref: `#/components/schemas/Thing${at % 300}` } } }
        const id = { name: 'id', in: 'path', required: true, schema: { type: 'integer' } }
        return [
          `/things${at}/{id}`,
          {
            get: { parameters: [id], responses: { 200: { description: title, content } } },
            put: { parameters: [id], requestBody: { content }, responses: { 204: { description: title } } },
          },
        ]
      }),
    ),
  })

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trellis-turns-'))
  await writeFile(join(folder, 'openapi.json'), documentOf(10, 'first'))
  origin = await startOrigin(({ target }, wire) => {
    if (!target.includes('wp-json')) {
      wire.respond({ headers: json, content: '{}' })
      return
    }
    refreshes += 1
    const self = [{ href: `${origin.origin}/wp-json/` }]
    const index = { name: 'Site', namespaces: ['plug/v1'], routes: { '/': { _links: { self } }, ...routes } }
    wire.respond({ headers: json, content: JSON.stringify(index) })
  })
  gateway = await startGatewayProcess(
    {
      services: {
        site: siteService(origin.origin, {
          unlistedRoutes: 'learn',
          discovery: { refresh: '100ms' },
        }),
        described: {
          contract: 'openapi',
          mount: '/described',
          document: join(folder, 'openapi.json'),
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
  await origin.close()
  await rm(folder, { recursive: true, force: true })
})

const site = (path: string): string => `${gateway.origin}/index.php/site-json${path}`

/** Announces these routes, and waits until the gateway shows them in its index. */
const announce = async (next: Routes): Promise<void> => {
  routes = next
  const before = refreshes
  // The first request after that may be answered by the index that was being read before.
  await expect.poll(() => refreshes, { timeout: 30_000 }).toBeGreaterThan(before + 2)
}

const grouped = (at: number): string => `/plug/v1/things${at}/(?P<id>[\\d]+)/parts/(?P<part>[\\w-]+)`

const types = ['integer', 'string', 'number']

test.each([
  ['ten thousand routes of two parameters', (type: string) => routesOf(10_000, grouped, type)],
  [
    'one route more',
    (type: string) => ({ ...routesOf(10_000, grouped), ...routesOf(1, () => `/plug/v1/${type}`) }),
  ],
  [
    'five thousand routes of nested repetitions',
    (type: string) => routesOf(5_000, (at) => `/plug/v1/t${at}/(?P<id>(a{1,100}){1,10})`, type),
  ],
  [
    'a thousand routes of long alternatives',
    (type: string) => routesOf(1_000, (at) => `/plug/v1/a${at}/(?P<id>${'(b|c)'.repeat(60)})`, type),
  ],
])(
  'an index of %s is read in short turns',
  async (_, made) => {
    let best = Number.POSITIVE_INFINITY
    // Each time the arguments of all routes are others.
    for (const type of types) {
      if (best >= maxTurnMs) best = await longestTurn(gateway.program, () => announce(made(type)))
    }
    expect(best).toBeLessThan(maxTurnMs)
    const index = (await (await fetch(site('/'))).json()) as { readonly routes: object }
    expect(Object.keys(index.routes).length).toBeGreaterThanOrEqual(Object.keys(routes).length)
  },
  120_000,
)

/** Most of it is the collector's work: what was read replaces megabytes. In one turn it takes three times as long. */
const maxReloadMs = 200

test('a document of three thousand paths is reloaded in turns', async () => {
  let best = Number.POSITIVE_INFINITY
  for (const count of [3_000, 3_001, 3_002]) {
    if (best < maxReloadMs) break
    best = await longestTurn(gateway.program, async () => {
      await writeFile(join(folder, 'openapi.json'), documentOf(count, `of ${count}`))
      process.kill(await programPid(gateway.program), 'SIGHUP')
      const last = `${gateway.origin}/described/things${count - 1}/5`
      await expect.poll(async () => (await fetch(last)).status, { timeout: 30_000 }).toBe(200)
    })
  }
  expect(best).toBeLessThan(maxReloadMs)
}, 120_000)
