import { setTimeout as sleep } from 'node:timers/promises'
import { siteService, startTestGateway } from '../../support/gateway.ts'
import { startGatewayProcess } from '../../support/gateway-process.ts'
import { type HttpServer, startHttpServer } from '../../support/http-server.ts'
import { startOrigin } from '../../support/origin.ts'
import { oneOf, randomFrom } from '../../support/random.ts'
import { startVarnish } from '../../support/varnish.ts'
import { startRedisServer } from '../shared/redis-server.ts'

export type PromiseRun = {
  readonly seed: number
  readonly reads: number
  readonly writes: number
  /** Without it Varnish keeps everything for 10 s, and gets no purges. */
  readonly downstream?: { readonly onFailure: 'refuse' | 'wait' | 'lag'; readonly settle: string }
  /** Purges fail, hang and are slow in turn, and Varnish is restarted. */
  readonly faults: boolean
  /** On one Redis, if there are several: each request gets one of them. */
  readonly gateways?: number
  /** The gateways are processes of two workers each. In turn they are killed, in the middle of their writes, and started again. */
  readonly killed?: boolean
  /** Writes go on until this holds, for what comes with time or by chance. */
  readonly until?: (counts: Pick<PromiseResult, 'older' | 'refused' | 'kills'>) => boolean
}

type Running = { readonly origin: string; close(): Promise<unknown>; kill(): Promise<void> }

const startGateway = async (config: object, killed: boolean): Promise<Running> => {
  if (killed) {
    const { origin, stop, kill } = await startGatewayProcess({ ...config, workers: 2 })
    return { origin, close: stop, kill }
  }
  const gateway = await startTestGateway({ ...config })
  return { origin: gateway.publicAddress, close: () => gateway.close(), kill: () => gateway.close() }
}

export type PromiseResult = {
  /** Reads that were older than a write that had been acknowledged before they began. */
  readonly older: number
  /** Longest time from the acknowledgement of a write to the end of a read without it. */
  readonly longestOlderMs: number
  readonly reads: number
  readonly hits: number
  /** Reads that Varnish passed to Trellis, and those that Trellis passed to the upstream. */
  readonly passed: number
  readonly fetched: number
  readonly acknowledged: number
  readonly refused: number
  readonly kills: number
  readonly medianWriteMs: number
  readonly p99WriteMs: number
}

const items = 12
const readers = 16
/** Hits in Varnish between two writes: what each write has to make invisible. */
const hitsBetweenWrites = 4
const root = '/index.php/site-json/site/v2/posts'
/** The way from Trellis to Varnish takes up to so long. */
const longestWayMs = 80

/** Posts whose title is the number of writes to them; the list shows all. */
const startPosts = async (random: () => number, fetched: () => void) => {
  const versions = Array.from({ length: items }, () => 0)
  const post = (id: number) => ({ id, type: 'post', status: 'publish', title: String(versions[id]) })
  return startOrigin(async ({ method, target }, wire) => {
    const id = Number(/posts\/(\d+)/.exec(target)?.[1] ?? -1)
    await sleep(1 + random() * 4)
    if (method === 'POST') versions[id] = (versions[id] ?? 0) + 1
    else fetched()
    const content = JSON.stringify(id === -1 ? versions.map((_, at) => post(at)) : post(id))
    await sleep(random() * 10)
    wire.respond({ headers: { 'Content-Type': 'application/json' }, content })
  })
}

/** Passes requests on, and their responses after a while: those on their way when a purge overtakes them. */
const startSlowWay = (to: () => string, random: () => number, passed: () => void): Promise<HttpServer> =>
  startHttpServer(async (request, reply) => {
    passed()
    try {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      const headers = Object.entries(request.headers).flatMap(([name, value]) =>
        typeof value === 'string' && !['host', 'connection', 'content-length'].includes(name)
          ? [[name, value] as [string, string]]
          : [],
      )
      const body = chunks.length === 0 ? null : Buffer.concat(chunks)
      const response = await fetch(to() + request.url, { method: request.method ?? 'GET', headers, body })
      const content = Buffer.from(await response.arrayBuffer())
      await sleep(random() * longestWayMs)
      for (const [name, value] of response.headers)
        if (!['connection', 'content-encoding', 'transfer-encoding', 'keep-alive'].includes(name))
          reply.setHeader(name, value)
      reply.writeHead(response.status).end(content)
    } catch {
      reply.destroy()
    }
  })

type Trouble = 'none' | 'slow' | 'failing' | 'hanging' | 'broken'
const troubles: readonly Trouble[] = ['none', 'slow', 'none', 'failing', 'none', 'hanging', 'none', 'broken']

/** Between Trellis and the purges of Varnish. */
const startPurgeWay = async (to: () => string) => {
  let trouble: Trouble = 'none'
  const server = await startHttpServer(async (request, reply) => {
    if (trouble === 'broken') return void request.socket.destroy()
    if (trouble === 'hanging') return
    if (trouble === 'failing') return void reply.writeHead(503).end()
    if (trouble === 'slow') await sleep(150)
    try {
      const tags = String(request.headers['xkey-purge'])
      const response = await fetch(to(), { method: 'PURGE', headers: { 'xkey-purge': tags } })
      reply.writeHead(response.status).end()
    } catch {
      reply.destroy()
    }
  })
  return {
    ...server,
    meet: (next: Trouble) => {
      trouble = next
    },
  }
}

const quantile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0

/** What has been acknowledged, and when. */
const createLedger = () => {
  const times = Array.from({ length: items }, () => [0])
  return {
    floor: (): readonly number[] => times.map((known) => known.length - 1),
    acknowledged: (id: number, version: number): void => {
      const known = times[id] as number[]
      while (known.length <= version) known.push(performance.now())
    },
    since: (id: number, version: number): number => performance.now() - (times[id]?.[version + 1] ?? 0),
  }
}

type Shown = { readonly id: number; readonly title: string }

/** Readers read through Varnish while a writer writes through Trellis: each write follows hits of what it changes. */
export const runPromise = async (run: PromiseRun): Promise<PromiseResult> => {
  const random = randomFrom(run.seed)
  const traffic = { passed: 0, fetched: 0 }
  const origin = await startPosts(random, () => {
    traffic.fetched += 1
  })
  let front = ''
  const gateways: Running[] = []
  const anyGateway = (): string => oneOf(random, gateways).origin
  const way = await startSlowWay(anyGateway, random, () => {
    traffic.passed += 1
  })
  const purges = await startPurgeWay(() => front)
  const varnish = await startVarnish(
    Number(new URL(way.origin).port),
    run.downstream === undefined ? '10s' : undefined,
  )
  front = varnish.address
  const { onFailure = 'refuse', settle = '0ms' } = run.downstream ?? {}
  const receivers = [{ type: 'varnish', url: purges.origin, timeout: '400ms', onFailure }]
  const redis = (run.gateways ?? 1) > 1 ? await startRedisServer() : undefined
  const config = {
    ...(redis === undefined ? {} : { cache: { shared: { url: `redis://127.0.0.1:${redis.port}` } } }),
    services: {
      blog: siteService(origin.origin, {
        cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1m' }] },
        ...(run.downstream === undefined ? {} : { downstream: { tags: 'xkey', settle, receivers } }),
      }),
    },
  }
  for (let at = 0; at < (run.gateways ?? 1); at += 1)
    gateways.push(await startGateway(config, run.killed === true))
  const ledger = createLedger()
  const writeMs: number[] = []
  const counts = { reads: 0, hits: 0, older: 0, longestOlderMs: 0, acknowledged: 0, refused: 0, kills: 0 }
  let writing = true

  const check = (shown: readonly Shown[], floor: readonly number[]): void => {
    for (const { id, title } of shown) {
      if (Number(title) >= (floor[id] ?? 0)) continue
      counts.older += 1
      counts.longestOlderMs = Math.max(counts.longestOlderMs, ledger.since(id, Number(title)))
      return
    }
  }
  const read = async (): Promise<void> => {
    const id = Math.floor(random() * (items + 2))
    const floor = ledger.floor()
    try {
      const response = await fetch(`${front}${root}${id < items ? `/${id}` : ''}`)
      const value = (await response.json()) as Shown | readonly Shown[]
      if (response.status !== 200) return
      counts.reads += 1
      if (response.headers.get('x-varnish')?.includes(' ') === true) counts.hits += 1
      check([value].flat() as Shown[], floor)
    } catch {
      // Varnish is being restarted.
      await sleep(20)
    }
  }
  const reading = async (): Promise<void> => {
    while (writing || counts.reads < run.reads) await read()
  }
  const write = async (id: number): Promise<void> => {
    const began = performance.now()
    const [status, text] = await fetch(`${anyGateway()}${root}/${id}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: 'Basic YTpi' },
      body: '{"title":"next"}',
    })
      .then(async (response) => [response.status, await response.text()] as const)
      // The gateway was killed.
      .catch(() => [0, ''] as const)
    if (status !== 200) {
      counts.refused += 1
      await sleep(20)
      return
    }
    writeMs.push(performance.now() - began)
    counts.acknowledged += 1
    ledger.acknowledged(id, Number((JSON.parse(text) as Shown).title))
  }
  const troubling = async (): Promise<void> => {
    for (let at = 0; run.faults && writing; at += 1) {
      const trouble = troubles[at % troubles.length] ?? 'none'
      purges.meet(trouble)
      await sleep(trouble === 'none' ? 1_200 : 300)
      if (at % 10 === 9) await varnish.restart()
    }
    purges.meet('none')
  }
  const killing = async (): Promise<void> => {
    while (run.killed === true && writing) {
      // A gateway on Redis answers from its memory some seconds after its start: every other one lives to do so.
      await sleep(counts.kills % 2 === 0 ? 1_500 : 9_000)
      const killed = gateways.shift()
      await killed?.kill()
      counts.kills += 1
      gateways.push(await startGateway(config, true))
    }
  }
  try {
    const all = [troubling(), killing(), ...Array.from({ length: readers }, reading)]
    const isDone = run.until ?? (() => true)
    while (counts.acknowledged < run.writes || !isDone(counts)) {
      const before = counts.hits
      while (counts.hits < before + hitsBetweenWrites) await sleep(5)
      await write(Math.floor(random() * items))
    }
    writing = false
    await Promise.all(all)
  } finally {
    writing = false
    await varnish.close()
    await Promise.all(gateways.map((gateway) => gateway.close()))
    await redis?.stop()
    await Promise.all([way.close(), purges.close(), origin.close()])
  }
  const sorted = writeMs.sort((a, b) => a - b)
  return { ...counts, ...traffic, medianWriteMs: quantile(sorted, 0.5), p99WriteMs: quantile(sorted, 0.99) }
}
