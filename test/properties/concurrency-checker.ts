import { Agent, type IncomingMessage, request } from 'node:http'
import { pause } from '../support/origin.ts'
import {
  patienceMs,
  postIds,
  startVersionedUpstream,
  type VersionedUpstream,
  type WriteFate,
  writeFates,
} from './versioned-upstream.ts'

/** Where readers, writers and operators of a run go: any of these, at random. */
export type CheckedGateway = { readonly publicAddress: string; readonly adminAddress: string }

export type CheckerOptions = {
  readonly upstream: VersionedUpstream
  /** Read anew for each request: processes come and go during a run. */
  readonly gateways: () => readonly CheckedGateway[]
  readonly operations: number
  readonly longestMs: number
  readonly readers: number
  readonly writers: number
}

/** Longer than any forward, stop and lease of a run together. */
const lostAfterMs = 8_000

/** No forward takes longer. A write whose answer was lost is carried out within it, or never. */
const totalMs = 2_000

/** The service that the checker reads and writes. */
export const checkedService = (upstream: VersionedUpstream): Record<string, unknown> => ({
  contract: 'site',
  mount: '/index.php/site-json',
  discovery: { source: 'static', identity: { name: 'Test site' } },
  cache: {
    rules: [
      { match: 'GET /site/v2/pages/**', ttl: '20ms', staleWhileRevalidate: '1m', staleIfError: '1m' },
      { match: 'GET /site/v2/posts', ttl: '1m', scope: 'credential', staleWhileRevalidate: '1m' },
      { match: 'GET /site/v2/**', ttl: '1m' },
    ],
  },
  upstream: {
    targets: [upstream.origin],
    basePath: '/index.php/wp-json',
    timeouts: { headers: `${patienceMs}ms`, total: `${totalMs}ms` },
    maxConcurrent: 256,
    queue: { max: 10_000 },
    // The one target breaks many answers on purpose.
    eject: { after: 1000 },
    breaker: { failureRatio: 0 },
  },
})

export { startVersionedUpstream }

type Reply = {
  readonly status: number
  readonly fields: IncomingMessage['headers']
  readonly text: string
  readonly by: string
}

type Shown = { readonly id: number; readonly version: number; readonly caller: string }

const shownIn = (text: string): readonly Shown[] => {
  const body = JSON.parse(text) as Shown | readonly Shown[] | { readonly all: readonly Shown[] }
  if ('all' in body) return body.all
  return 'id' in body ? [body] : body
}

const anyOf = <T>(values: readonly T[]): T => values[Math.floor(Math.random() * values.length)] as T

const paths = ['/posts', '/pages/9', '/posts/1', '/posts/2', '/posts/3'] as const

/** What a run saw; `stale` and `crossed` must be 0. */
export type Seen = {
  reads: number
  hits: number
  confirmed: number
  lost: number
  failedReads: number
  writes: number
  answeredWrites: number
  purges: number
  failedPurges: number
  stale: number
  crossed: number
  slowestWriteMs: number
}

/** Readers, writers whose answers break, and purges, against whatever processes there are; keeps count of what must not be seen any more. */
export const createChecker = (options: CheckerOptions) => {
  const { upstream, gateways } = options
  const agent = new Agent({ keepAlive: true, maxSockets: options.readers + options.writers })
  /** Versions that no read may fall behind any more, raised when a gateway has answered what made them. */
  const floors = new Map<number, number>(postIds.map((id) => [id, 0]))
  /** How a floor came about, to be told with a read that falls behind it. */
  const reasons = new Map<number, string>()
  const raise = (id: number, version: number, why: string): void => {
    if (version <= (floors.get(id) ?? 0)) return
    floors.set(id, version)
    reasons.set(id, `${why} at ${new Date().toISOString()}`)
  }
  const seen: Seen = {
    reads: 0,
    hits: 0,
    confirmed: 0,
    lost: 0,
    failedReads: 0,
    writes: 0,
    answeredWrites: 0,
    purges: 0,
    failedPurges: 0,
    stale: 0,
    crossed: 0,
    slowestWriteMs: 0,
  }
  const staleReads: string[] = []

  const send = (
    method: string,
    path: string,
    fields: Record<string, string>,
    content?: string,
    to: CheckedGateway = anyOf(gateways()),
  ): Promise<Reply> =>
    new Promise((resolve) => {
      // A process that was killed answers nothing: no claim.
      const lost = (): void => resolve({ status: 0, fields: {}, text: '', by: to.publicAddress })
      const url = `${to.publicAddress}/index.php/site-json/site/v2${path}`
      const sent = request(url, { method, agent, headers: fields }, (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', lost)
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString()
          resolve({ status: response.statusCode ?? 0, fields: response.headers, text, by: to.publicAddress })
        })
      })
      sent.on('error', lost)
      // A connection that was being handed to a process when that was killed: nobody answers on it any more.
      sent.setTimeout(lostAfterMs, () => sent.destroy())
      sent.end(content)
    })

  const write = async (): Promise<void> => {
    const id = anyOf(postIds)
    // After one of unknown outcome nothing of it is kept for a while: too many, and there would be no hits to look at.
    const fate: WriteFate = Math.random() < 0.99 ? 'answered' : anyOf(writeFates)
    const fields = { authorization: 'Bearer writer', 'content-type': 'application/json', 'x-fate': fate }
    const began = performance.now()
    const reply = await send('PUT', `/posts/${id}`, fields, '{"title":"x"}')
    seen.writes += 1
    if (reply.status === 0) return
    seen.answeredWrites += 1
    seen.slowestWriteMs = Math.max(seen.slowestWriteMs, Math.round(performance.now() - began))
    if (fate === 'answered' && reply.status === 200)
      raise(id, shownIn(reply.text)[0]?.version ?? 0, 'answered')
    // Carried out before its answer broke: whatever the client was told, it must be seen.
    if (fate === 'failed' && reply.status === 500)
      raise(id, Number(JSON.parse(reply.text).version ?? 0), 'failed')
  }

  /** Someone changes a post behind the gateways' backs, and then says so to one of them. */
  const purge = async (): Promise<void> => {
    const id = anyOf(postIds)
    const version = upstream.change(id)
    const selector = anyOf([{ all: true }, { prefix: '/index.php/site-json/site/v2' }])
    try {
      const response = await fetch(`${anyOf(gateways()).adminAddress}/cache/purge`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ ...selector, mode: 'hard' }),
      })
      await response.arrayBuffer()
      if (!response.ok) throw new Error(`${response.status}`)
      seen.purges += 1
      raise(id, version, 'purged')
    } catch {
      seen.failedPurges += 1
    }
  }

  const kept = new Map<string, { readonly tag: string; readonly text: string }>()

  const check = (reply: Reply, text: string, caller: string, before: ReadonlyMap<number, number>): void => {
    for (const shown of shownIn(text)) {
      const floor = before.get(shown.id) ?? 0
      if (shown.version < floor) {
        seen.stale += 1
        const now = new Date().toISOString()
        staleReads.push(
          `post ${shown.id}: ${shown.version} < ${floor} (${reasons.get(shown.id)}), ${reply.fields['cache-status']} by ${reply.by} at ${now}`,
        )
      }
      if (shown.caller !== caller) seen.crossed += 1
    }
  }

  const took = (reply: Reply, place: string, caller: string, before: ReadonlyMap<number, number>): void => {
    if (String(reply.fields['cache-status']).includes('hit')) seen.hits += 1
    check(reply, reply.text, caller, before)
    const tag = reply.fields.etag
    if (tag !== undefined) kept.set(place, { tag, text: reply.text })
  }

  const read = async (): Promise<void> => {
    const path = anyOf(paths)
    const caller = anyOf(['nobody', 'nobody', 'nobody', 'nobody', 'Bearer a', 'Bearer b'])
    const known = Math.random() < 0.3 ? kept.get(path + caller) : undefined
    const fields = {
      ...(caller === 'nobody' ? {} : { authorization: caller }),
      ...(known === undefined ? {} : { 'if-none-match': known.tag }),
    }
    const before = new Map(floors)
    const reply = await send('GET', path, fields)
    seen.reads += 1
    if (reply.status === 200) {
      took(reply, path + caller, caller, before)
    } else if (reply.status === 304 && known !== undefined) {
      seen.confirmed += 1
      check(reply, known.text, caller, before)
    } else if (reply.status === 0) seen.lost += 1
    else seen.failedReads += 1
  }

  /** Each address is asked for all that is read: what was written last stays. */
  const readLast = async (): Promise<readonly string[]> => {
    const wrong: string[] = []
    for (const { publicAddress } of gateways()) {
      for (const path of [...paths, ...paths]) {
        const response = await fetch(`${publicAddress}/index.php/site-json/site/v2${path}`)
        for (const { id, version } of shownIn(await response.text())) {
          if (version !== upstream.versionOf(id)) wrong.push(`${path} ${id}: ${version}`)
        }
      }
    }
    return wrong
  }

  /** Runs until its operations are done or its time is over, with `meanwhile` beside it; then looks once more. */
  const run = async (meanwhile: (goesOn: () => boolean) => Promise<void>) => {
    // Nobody was told: it is enough that nothing from before stays once every forward that ran by then has ended.
    upstream.onLate = (id, version) => setTimeout(() => raise(id, version, 'late'), totalMs)
    let left = options.operations
    const end = Date.now() + options.longestMs
    const goesOn = (): boolean => left > 0 && Date.now() < end
    const work = async (step: () => Promise<void>, restMs: number): Promise<void> => {
      while (goesOn()) {
        left -= 1
        await step()
        await pause(Math.random() * restMs)
      }
    }
    await Promise.all([
      ...Array.from({ length: options.readers }, () => work(read, 16)),
      ...Array.from({ length: options.writers }, () => work(write, 300)),
      work(purge, 500),
      meanwhile(goesOn),
    ])
    await pause(totalMs + patienceMs * 2)
    const wrong = await readLast()
    agent.destroy()
    return { seen, staleReads, wrong }
  }
  return { run, seen }
}
