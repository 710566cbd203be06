import { Agent, type IncomingMessage, request } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { pause } from '../support/origin.ts'
import {
  patienceMs,
  postIds,
  startVersionedUpstream,
  type VersionedUpstream,
  type WriteFate,
  writeFates,
} from './versioned-upstream.ts'

/** A long run sets it to a million; it ends earlier when its time is over. */
const operations = Number(process.env['TRELLIS_OPERATIONS'] ?? 10_000)
const longestMs = Number(process.env['TRELLIS_SECONDS'] ?? 600) * 1000
const readers = 200
const writers = 8
/** No forward takes longer. A write whose answer was lost is carried out within it, or never. */
const totalMs = 2_000

let upstream: VersionedUpstream
let gateway: TestGateway
/**
 * An agent with a timeout obeys the one that the gateway announces too (`Keep-Alive`) and closes an idle connection first.
 * Without it a request can be on its way while the gateway closes (RFC 9112 §9.3.1), as happened minutes into a long run.
 */
const agent = new Agent({ keepAlive: true, maxSockets: readers + writers, timeout: 60_000 })

beforeAll(async () => {
  upstream = await startVersionedUpstream()
  const rules = [
    { match: 'GET /site/v2/pages/**', ttl: '20ms', staleWhileRevalidate: '1m', staleIfError: '1m' },
    { match: 'GET /site/v2/posts', ttl: '1m', scope: 'credential', staleWhileRevalidate: '1m' },
    { match: 'GET /site/v2/**', ttl: '1m' },
  ]
  const service = siteService(upstream.origin, {
    cache: { rules },
    upstream: {
      targets: [upstream.origin],
      basePath: '/index.php/wp-json',
      timeouts: { headers: `${patienceMs}ms`, total: `${totalMs}ms` },
      maxConcurrent: 256,
      queue: { max: 10_000 },
      // The one target breaks many answers on purpose.
      eject: { after: 1000 },
    },
  })
  gateway = await startTestGateway({ services: { site: service } })
})
afterAll(async () => {
  agent.destroy()
  await gateway.close()
  upstream.close()
})

type Reply = { readonly status: number; readonly fields: IncomingMessage['headers']; readonly text: string }

const send = (
  method: string,
  path: string,
  fields: Record<string, string>,
  extra: { readonly content?: string; readonly hangUpAfterMs?: number } = {},
): Promise<Reply> =>
  new Promise((resolve) => {
    const lost = (): void => resolve({ status: 0, fields: {}, text: '' })
    const url = `${gateway.publicAddress}/index.php/site-json/site/v2${path}`
    const sent = request(url, { method, agent, headers: fields }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', lost)
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        resolve({ status: response.statusCode ?? 0, fields: response.headers, text })
      })
    })
    sent.on('error', lost)
    sent.end(extra.content)
    if (extra.hangUpAfterMs !== undefined) setTimeout(() => sent.destroy(), extra.hangUpAfterMs)
  })

const anyOf = <T>(values: readonly T[]): T => values[Math.floor(Math.random() * values.length)] as T

type Shown = { readonly id: number; readonly version: number; readonly caller: string }

const shownIn = (text: string): readonly Shown[] => {
  const body = JSON.parse(text) as Shown | readonly Shown[] | { readonly all: readonly Shown[] }
  if ('all' in body) return body.all
  return 'id' in body ? [body] : body
}

/** Versions that no read may fall behind any more, raised when the gateway has answered what made them. */
const floors = new Map<number, number>(postIds.map((id) => [id, 0]))
const raise = (id: number, version: number): void => {
  floors.set(id, Math.max(floors.get(id) ?? 0, version))
}

const seen = {
  reads: 0,
  hits: 0,
  confirmed: 0,
  hungUp: 0,
  lost: 0,
  failedReads: 0,
  failedWrites: 0,
  purges: 0,
  stale: 0,
  crossed: 0,
}
const fates = new Map<WriteFate, number>()

const write = async (): Promise<void> => {
  const id = anyOf(postIds)
  // After a write of unknown outcome nothing of it is kept for a while: too many, and there would be no hits to look at.
  const fate = Math.random() < 0.85 ? 'answered' : anyOf(writeFates)
  const fields = { authorization: 'Bearer writer', 'content-type': 'application/json', 'x-fate': fate }
  const reply = await send('PUT', `/posts/${id}`, fields, { content: '{"title":"x"}' })
  fates.set(fate, (fates.get(fate) ?? 0) + 1)
  // On a busy machine a write may time out by itself: then nobody was told anything.
  if (fate === 'answered' && reply.status === 200) raise(id, shownIn(reply.text)[0]?.version ?? 0)
  else if (fate === 'answered') seen.failedWrites += 1
  // Carried out before its answer broke: whatever the client was told, it must be seen.
  if (fate === 'lost' || fate === 'failed') raise(id, upstream.versionOf(id))
}

/** Someone changes a post behind the gateway's back, and then says so. */
const purge = async (): Promise<void> => {
  const id = anyOf(postIds)
  const version = upstream.change(id)
  const mode = Math.random() < 0.7 ? 'hard' : 'soft'
  const selector = anyOf([{ all: true }, { prefix: '/index.php/site-json/site/v2' }])
  const response = await fetch(`${gateway.adminAddress}/cache/purge`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...selector, mode }),
  })
  expect(response.status).toBe(200)
  await response.arrayBuffer()
  seen.purges += 1
  // After a soft one what is stale may be served a little longer.
  if (mode === 'hard') raise(id, version)
}

/** What a reader kept of earlier answers, by path and caller. */
const kept = new Map<string, { readonly tag: string; readonly text: string }>()

const check = (text: string, caller: string, before: ReadonlyMap<number, number>): void => {
  for (const shown of shownIn(text)) {
    if (shown.version < (before.get(shown.id) ?? 0)) seen.stale += 1
    if (shown.caller !== caller) seen.crossed += 1
  }
}

const read = async (): Promise<void> => {
  const path = anyOf(['/posts', '/pages/9', '/posts/1', '/posts/2', '/posts/3'])
  const caller = anyOf(['nobody', 'nobody', 'nobody', 'nobody', 'Bearer a', 'Bearer b'])
  const known = Math.random() < 0.3 ? kept.get(path + caller) : undefined
  const fields = {
    ...(caller === 'nobody' ? {} : { authorization: caller }),
    ...(known === undefined ? {} : { 'if-none-match': known.tag }),
  }
  const before = new Map(floors)
  seen.reads += 1
  if (Math.random() < 0.05) {
    seen.hungUp += 1
    await send('GET', path, fields, { hangUpAfterMs: Math.random() * 4 })
    return
  }
  const reply = await send('GET', path, fields)
  if (reply.status === 304 && known !== undefined) {
    seen.confirmed += 1
    check(known.text, caller, before)
    return
  }
  if (reply.status === 0) seen.lost += 1
  if (reply.status !== 200) {
    seen.failedReads += 1
    return
  }
  if (String(reply.fields['cache-status']).includes('hit')) seen.hits += 1
  check(reply.text, caller, before)
  const tag = reply.fields.etag
  if (tag !== undefined) kept.set(path + caller, { tag, text: reply.text })
}

test(
  'readers who leave, writers whose answers break and purges: no stale read, no answer for another caller',
  async () => {
    // Nobody was told: it is enough that nothing from before stays once every forward that ran by then has ended.
    upstream.onLate = (id, version) => setTimeout(() => raise(id, version), totalMs)
    let left = operations
    const end = Date.now() + longestMs
    const work = async (step: () => Promise<void>, restMs: number): Promise<void> => {
      while (left > 0 && Date.now() < end) {
        left -= 1
        await step()
        await pause(Math.random() * restMs)
      }
    }
    await Promise.all([
      ...Array.from({ length: readers }, () => work(read, 16)),
      ...Array.from({ length: writers }, () => work(write, 300)),
      work(purge, 500),
    ])
    // What was written last stays: nothing older waits in the cache to be shown.
    await pause(totalMs + patienceMs * 2)
    for (const path of ['/posts', '/pages/9', '/posts/1', '/posts/2', '/posts/3']) {
      const reply = await send('GET', path, {})
      for (const { id, version } of shownIn(reply.text)) expect(version).toBe(upstream.versionOf(id))
    }
    process.stdout.write(`${JSON.stringify({ ...seen, fates: Object.fromEntries(fates) })}\n`)
    expect(seen).toMatchObject({ stale: 0, crossed: 0 })
    // Else it would have proved nothing.
    expect(seen.hits).toBeGreaterThan(200)
    expect(seen.confirmed).toBeGreaterThan(seen.reads / 100)
    // Whoever stayed was answered, whatever the upstream did.
    expect(seen.lost).toBe(0)
    expect(seen.failedReads).toBeLessThan(seen.reads / 50)
    expect(seen.failedWrites).toBeLessThan((fates.get('answered') ?? 0) / 5)
    expect(fates.size).toBeGreaterThan(2)
  },
  longestMs + 120_000,
)
