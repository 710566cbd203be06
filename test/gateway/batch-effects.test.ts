import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { createLatch, type Latch } from '../support/latch.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

/** A GET that counts, and one that the upstream does not answer. */
const document = `openapi: 3.1.0
info: { title: Counters, version: "1" }
paths:
  /count: { get: { x-trellis-writes: true } }
  /broken: { get: { x-trellis-writes: true } }
  /shown: { get: {} }
`

let folder: string
let origin: Origin
let gateway: TestGateway
let count = 0
let goOn: Latch
const begun: string[] = []

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'batch-effects-'))
  await writeFile(join(folder, 'counters.yaml'), document)
  origin = await startOrigin(async ({ target }, wire) => {
    begun.push(target)
    if (target === '/broken') return wire.reset()
    if (target === '/count') {
      await goOn.opened
      count += 1
    }
    wire.respond({ headers: { 'Content-Type': 'application/json' }, content: String(count) })
  })
  const service = {
    contract: 'openapi',
    mount: '/api',
    document: join(folder, 'counters.yaml'),
    upstream: { targets: [origin.origin] },
    batch: {},
    cache: { rules: [{ match: 'GET /**', ttl: '1h' }] },
  }
  gateway = await startTestGateway({ services: { api: service } })
})
afterAll(async () => {
  await gateway.close()
  await origin.close()
  await rm(folder, { recursive: true })
})
beforeEach(() => {
  goOn = createLatch()
  begun.length = 0
})

const batch = (paths: readonly string[], signal?: AbortSignal): Promise<Response> =>
  fetch(`${gateway.publicAddress}/api/batch`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ requests: paths.map((path) => ({ method: 'GET', path })) }),
    ...(signal === undefined ? {} : { signal }),
  })

const shown = async (): Promise<string> => (await fetch(`${gateway.publicAddress}/api/shown`)).text()

test('a GET that writes goes on when the client of its batch leaves, and removes what it changed', async () => {
  const client = new AbortController()
  const before = await shown()
  const left = batch(['/count'], client.signal).catch(() => 'left')
  await expect.poll(() => begun).toContain('/count')
  client.abort()
  expect(await left).toBe('left')
  goOn.open()
  await expect.poll(() => count).toBe(Number(before) + 1)
  await expect.poll(shown).toBe(String(count))
})

test('a read behind a GET that writes waits for it, and two of these are sent twice', async () => {
  goOn.open()
  const start = count
  const { responses } = (await (await batch(['/count', '/count', '/shown'])).json()) as {
    readonly responses: readonly { readonly body: number }[]
  }
  expect(responses.map(({ body }) => body)).toEqual([start + 1, start + 2, start + 2])
})

test('a GET that writes and gets no response says that its outcome is unknown', async () => {
  const response = JSON.stringify(await (await batch(['/broken'])).json())
  expect(response).toContain('"outcome":"unknown"')
  expect(begun).toEqual(['/broken'])
})
