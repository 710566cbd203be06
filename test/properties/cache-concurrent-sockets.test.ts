import { once } from 'node:events'
import {
  Agent,
  createServer,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { pause } from '../support/origin.ts'

/** A long run sets it to a million. */
const operations = Number(process.env['TRELLIS_OPERATIONS'] ?? 10_000)
const readers = 100
const writers = 5
const posts = [1, 2, 3, 4, 5]

const versions = new Map(posts.map((id) => [id, 0]))
const versionOf = (id: number): number => versions.get(id) ?? 0

/** Most turns take no time, some take a while, so that everything overtakes everything. */
const sometime = (): Promise<void> => (Math.random() < 0.3 ? Promise.resolve() : pause(Math.random() * 4))

const itemOf = (id: number, caller: string) => ({
  id,
  type: 'post',
  author: 1,
  categories: [1],
  tags: [],
  version: versionOf(id),
  caller,
})

/** What the upstream would answer now: an item, the list of all, or a page that renders the list. */
const stateOf = (path: string, caller: string): unknown => {
  const id = /\/posts\/(\d+)$/.exec(path)?.[1]
  if (id !== undefined) return itemOf(Number(id), caller)
  const all = posts.map((one) => itemOf(one, caller))
  if (path.endsWith('/posts')) return all
  return { id: 9, type: 'page', content: { rendered: '<ul class="wp-block-latest-posts">' }, all, caller }
}

const answerUpstream = async (received: IncomingMessage, response: ServerResponse): Promise<void> => {
  const path = (received.url ?? '').split('?', 1)[0] ?? ''
  received.resume()
  await sometime()
  const id = Number(/\/posts\/(\d+)$/.exec(path)?.[1])
  if (received.method === 'PUT') versions.set(id, versionOf(id) + 1)
  const content = JSON.stringify(stateOf(path, received.headers.authorization ?? 'nobody'))
  await sometime()
  response.writeHead(200, { 'Content-Type': 'application/json', 'X-WP-Total': '5', 'X-WP-TotalPages': '1' })
  response.end(content)
}

let upstream: Server
let gateway: TestGateway
const agent = new Agent({ keepAlive: true, maxSockets: readers + writers })

beforeAll(async () => {
  upstream = createServer((received, response) => void answerUpstream(received, response)).listen(
    0,
    '127.0.0.1',
  )
  await once(upstream, 'listening')
  const origin = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`
  const rules = [
    { match: 'GET /site/v2/pages/**', ttl: '20ms', staleWhileRevalidate: '1m', staleIfError: '1m' },
    { match: 'GET /site/v2/posts', ttl: '1m', scope: 'credential' },
    { match: 'GET /site/v2/**', ttl: '1m' },
  ]
  gateway = await startTestGateway({ services: { site: siteService(origin, { cache: { rules } }) } })
})
afterAll(async () => {
  agent.destroy()
  await gateway.close()
  upstream.closeAllConnections()
  upstream.close()
})

type Reply = { readonly status: number; readonly cacheStatus: string; readonly text: string }

const send = (
  method: string,
  path: string,
  fields: Record<string, string>,
  content?: string,
): Promise<Reply> =>
  new Promise((resolve, reject) => {
    const url = `${gateway.publicAddress}/index.php/site-json/site/v2${path}`
    const sent = request(url, { method, agent, headers: fields }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        resolve({
          status: response.statusCode ?? 0,
          cacheStatus: String(response.headers['cache-status']),
          text: Buffer.concat(chunks).toString(),
        })
      })
    })
    sent.on('error', reject)
    sent.end(content)
  })

const anyOf = <T>(values: readonly [T, ...T[]]): T =>
  values[Math.floor(Math.random() * values.length)] ?? values[0]

type Shown = { readonly id: number; readonly version: number; readonly caller: string }

const shownIn = (text: string): readonly Shown[] => {
  const body = JSON.parse(text) as Shown | readonly Shown[] | { readonly all: readonly Shown[] }
  if ('all' in body) return body.all
  return 'id' in body ? [body] : body
}

test('many readers and writers at once: no stale read after an answered write, no answer for another caller', async () => {
  /** Versions whose writes were answered. */
  const floors = new Map(posts.map((id) => [id, 0]))
  const seen = { hit: 0, stale: 0, crossed: 0, reads: 0, writes: 0 }
  let left = operations

  const write = async (): Promise<void> => {
    const id = anyOf([1, 2, 3, 4, 5])
    const fields = { authorization: 'Bearer writer', 'content-type': 'application/json' }
    const reply = await send('PUT', `/posts/${id}`, fields, '{"title":"x"}')
    expect(reply.status).toBe(200)
    const [written] = shownIn(reply.text)
    floors.set(id, Math.max(floors.get(id) ?? 0, written?.version ?? 0))
    seen.writes += 1
  }
  const read = async (): Promise<void> => {
    const path = anyOf(['/posts', '/pages/9', '/posts/1', '/posts/2', '/posts/3'])
    const caller = anyOf(['nobody', 'nobody', 'nobody', 'nobody', 'Bearer a', 'Bearer b'])
    const before = new Map(floors)
    const reply = await send('GET', path, caller === 'nobody' ? {} : { authorization: caller })
    expect(reply.status).toBe(200)
    for (const shown of shownIn(reply.text)) {
      if (shown.version < (before.get(shown.id) ?? 0)) seen.stale += 1
      if (shown.caller !== caller) seen.crossed += 1
    }
    seen.reads += 1
    if (reply.cacheStatus.includes('hit')) seen.hit += 1
  }
  const work = async (step: () => Promise<void>, restMs: number): Promise<void> => {
    while (left > 0) {
      left -= 1
      await step()
      await pause(Math.random() * restMs)
    }
  }
  await Promise.all([
    ...Array.from({ length: readers }, () => work(read, 8)),
    ...Array.from({ length: writers }, () => work(write, 400)),
  ])
  expect(seen).toMatchObject({ stale: 0, crossed: 0 })
  // Else it would have proved nothing.
  expect(seen.hit).toBeGreaterThan(operations / 10)
  expect(seen.writes).toBeGreaterThan(operations / 500)
}, 600_000)
