import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, startOrigin } from '../../support/origin.ts'

// One program behind two services, described by one document: the paths below /admin need an API key, the others do not.

const document = `openapi: 3.1.0
info: { title: All, version: "1" }
paths:
  /{section}/users: { get: {}, post: {} }
  /admin/users: { get: {}, post: {} }
  /open/{id}: { get: {} }
`
const nested = `openapi: 3.1.0
info: { title: Nested, version: "1" }
paths:
  /{id}: { get: {} }
  /twice/{id}: { get: {} }
`

let folder: string
let origin: Origin
let gateway: TestGateway

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nested-batches-'))
  await writeFile(join(folder, 'all.yaml'), document)
  await writeFile(join(folder, 'nested.yaml'), nested)
  await writeFile(join(folder, 'keys'), `demo:${'0'.repeat(64)}\n`)
  origin = await startOrigin(({ target }, wire) =>
    wire.respond({ headers: { 'Content-Type': 'application/json' }, content: JSON.stringify({ target }) }),
  )
  const targets = [origin.origin]
  const api = { contract: 'openapi', document: join(folder, 'all.yaml'), upstream: { targets }, batch: {} }
  const admin = {
    contract: 'open',
    mount: '/admin',
    upstream: { targets, basePath: '/admin' },
    access: { apiKeys: { file: join(folder, 'keys'), required: 'all' } },
  }
  gateway = await startTestGateway({
    services: {
      all: { ...api, mount: '/' },
      admin,
      shop: { ...api, mount: '/', hosts: ['shop.test', '*.shop.test'] },
      'shop-admin': { ...admin, hosts: ['shop.test', '*.shop.test'] },
      twice: {
        ...api,
        document: join(folder, 'nested.yaml'),
        mount: '/twice',
        cache: { rules: [{ match: 'GET /**', ttl: '1h' }] },
      },
    },
  })
})
afterAll(async () => {
  await gateway?.close()
  await origin?.close()
  await rm(folder, { recursive: true, force: true })
})
beforeEach(() => {
  origin.received.length = 0
})

const batch = async (path: string, requests: readonly object[]): Promise<readonly [number, string][]> => {
  const response = await fetch(`${gateway.publicAddress}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ requests }),
  })
  expect(response.status).toBe(207)
  const { responses } = (await response.json()) as { responses: { status: number; body: object }[] }
  return responses.map(({ status, body }) => [status, JSON.stringify(body)])
}

describe('a batch item for a path of a service that is mounted below', () => {
  test.each(['GET', 'POST'])('%s is refused, as that service needs a key', async (method) => {
    expect((await fetch(`${gateway.publicAddress}/admin/users`, { method })).status).toBe(401)
    const responses = await batch('/batch', [{ method, path: '/admin/users' }])
    expect(responses.map(([status]) => status)).toEqual([404])
    expect(origin.received).toEqual([])
  })

  test.each(['/%61dmin/users', '/admin%2Fusers', '/admin;x/users'])(
    '%s is refused, as the upstream may read it as such a path',
    async (path) => {
      const [[status] = [0]] = await batch('/batch', [{ method: 'GET', path }])
      expect([400, 404]).toContain(status)
      expect(origin.received).toEqual([])
    },
  )
})

test('an item never decides which resource a request with the same path below the mount gets', async () => {
  const responses = await batch('/twice/batch', [{ method: 'GET', path: '/twice/5' }])
  expect(responses).toEqual([[200, '{"target":"/twice/5"}']])
  expect(await (await fetch(`${gateway.publicAddress}/twice/5`)).json()).toEqual({ target: '/5' })
  expect(await batch('/twice/batch', [{ method: 'GET', path: '/twice/5' }])).toEqual(responses)
})
