import { performance } from 'node:perf_hooks'
import { Agent, request } from 'undici'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Nginx, startNginx } from '../support/nginx.ts'
import { describeWith } from '../support/requirements.ts'
import { type SiteBehindGateway, startSiteBehindGateway } from './companion/gateway.ts'
import { Browser } from './companion/site.ts'
import { sendByForm } from './hit-ratio/by-form.ts'
import { type Mix, type MixedWrite, mixOn } from './hit-ratio/mix.ts'
import { type Noise, noiseThrough } from './hit-ratio/noise.ts'

/**
 * READS=20000 for a long look, which must reach the goals; SEED=n to see the same again; NOISE=off without the requests that write
 * nothing; COMPANION=off without the companion: then all writes go through the gateway.
 */
const isLong = process.env['READS'] !== undefined
const hasNoise = process.env['NOISE'] !== 'off'
const hasCompanion = process.env['COMPANION'] !== 'off'
const minHits = 0.94
const minTimes = 15
const reads = Number(process.env['READS'] ?? 5000)
const seed = Number(process.env['SEED'] ?? 2)
const readsOfWrite = 100
const atOnce = 4

const connections = new Agent({ connections: atOnce, pipelining: 1 })

type Reply = { readonly target: string; readonly status: string; readonly shown: string; readonly ms: number }

const readAll = async (root: string, targets: readonly string[]): Promise<readonly Reply[]> => {
  const queue = [...targets]
  const replies: Reply[] = []
  const work = async (): Promise<void> => {
    for (let target = queue.shift(); target !== undefined; target = queue.shift()) {
      const began = performance.now()
      const { headers, body, statusCode } = await request(`${root}/wp/v2/${target}`, {
        dispatcher: connections,
      })
      const shown = await body.text()
      if (statusCode !== 200) throw new Error(`${target}: ${statusCode} ${shown.slice(0, 200)}`)
      const status = String(headers['cache-status'] ?? headers['x-cache'] ?? '')
      replies.push({ target, status, shown, ms: performance.now() - began })
    }
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  return replies
}

/** As docs/metrics.md counts hits: also a read that waited for the upstream request of another one, and sent none. */
const isHit = ({ status }: Reply): boolean => /^HIT$|^trellis; ?(?:hit|.*; ?collapsed)/.test(status)
const isCollapsed = ({ status }: Reply): boolean => /; ?collapsed/.test(status)

/** What the reads through one cache came to. */
type Outcome = {
  hits: number
  collapsed: number
  stale: number
  misses: number
  inVain: number
  ms: number
}
const nothingSeen = (): Outcome => ({ hits: 0, collapsed: 0, stale: 0, misses: 0, inVain: 0, ms: 0 })

/** A write, and the targets of the reads until the next one. */
type Round = { readonly write: MixedWrite; readonly targets: readonly string[] }

/** Stored responses after and before the writes of a kind. */
type Kept = { writes: number; before: number; after: number }

const share = (part: number, whole: number): string => (part / whole).toFixed(3)

describeWith('mariadb', 'reads under Zipf’s law, with writes of which half bypass the gateway', () => {
  let started: SiteBehindGateway
  let nginx: Nginx
  let mix: Mix
  let noise: Noise
  let formsOf: Browser
  let roots: { readonly gateway: string; readonly nginx: string; readonly own: string }
  const seen = { gateway: nothingSeen(), nginx: nothingSeen() }
  const kept = new Map<string, Kept>()
  /** Of WordPress itself, by target. */
  const own = new Map<string, string>()
  let ownMs = 0

  beforeAll(async () => {
    started = await startSiteBehindGateway({ withCompanion: hasCompanion, plugins: ['noise'] })
    const { site, gateway, restPath } = started
    nginx = await startNginx(site.origin, { keptFor: '60s' })
    roots = {
      gateway: gateway.origin + restPath,
      nginx: nginx.address + restPath,
      own: site.origin + restPath,
    }
    formsOf = hasCompanion ? site.browser : new Browser(gateway.origin)
    await formsOf.login()
    noise = await noiseThrough(site, gateway.origin, 10)
    mix = await mixOn({ restRoot: roots.own }, seed)
  }, 300_000)
  afterAll(async () => {
    await nginx?.stop()
    await started?.stop()
    await connections.close()
  })

  const storedResponses = async (): Promise<number> => {
    const text = await (await fetch(`${started.gateway.adminOrigin}/metrics`)).text()
    return Number(/^trellis_cache_entries(?:\{[^}]*\})? (\d+)/m.exec(text)?.[1])
  }
  const sendByRest = async ({ method, path, body }: MixedWrite): Promise<void> => {
    const { origin } = started.gateway
    const response = await started.site.rest(method, `/wp/v2/${path}`, body, origin)
    const text = await response.text()
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text.slice(0, 300)}`)
  }
  const write = async (next: MixedWrite, isByForm: boolean): Promise<void> => {
    const kind = `${next.kind}, ${isByForm ? 'wp-admin' : 'through the gateway'}`
    const before = await storedResponses()
    await (isByForm ? sendByForm(formsOf, next) : sendByRest(next))
    const after = await storedResponses()
    const count = kept.get(kind) ?? { writes: 0, before: 0, after: 0 }
    kept.set(kind, { writes: count.writes + 1, before: count.before + before, after: count.after + after })
  }

  const invalidation = (
    outcome: Outcome,
    replies: readonly Reply[],
    earlier: ReadonlyMap<string, string>,
  ): void => {
    for (const reply of replies) {
      const { target, shown } = reply
      if (isHit(reply)) {
        outcome.hits += 1
        outcome.collapsed += Number(isCollapsed(reply))
        outcome.stale += Number(shown !== own.get(target))
      } else {
        outcome.misses += 1
        outcome.inVain += Number(earlier.get(target) === shown)
      }
    }
  }

  const timed = async (outcome: Outcome, root: string, targets: readonly string[]) => {
    const began = performance.now()
    const replies = await readAll(root, targets)
    outcome.ms += performance.now() - began
    return replies
  }

  /** A write, and the reads until the next one. */
  const playRound = async ({ write: next, targets }: Round, isByForm: boolean): Promise<void> => {
    await write(next, isByForm)
    const earlier = new Map(own)
    const fromGateway: Reply[] = []
    const sendings = hasNoise ? noise.round() : []
    const length = Math.ceil(targets.length / (sendings.length + 1))
    for (let at = 0; at * length < targets.length; at += 1) {
      await sendings[at - 1]?.()
      fromGateway.push(
        ...(await timed(seen.gateway, roots.gateway, targets.slice(at * length, (at + 1) * length))),
      )
    }
    const fromNginx = await timed(seen.nginx, roots.nginx, targets)
    // How long WordPress takes for each, as often as it was read.
    const ownReplies = new Map(
      (await readAll(roots.own, [...new Set(targets)])).map((reply) => [reply.target, reply]),
    )
    for (const { target, shown } of ownReplies.values()) own.set(target, shown)
    for (const target of targets) ownMs += (ownReplies.get(target)?.ms ?? 0) / atOnce
    invalidation(seen.gateway, fromGateway, earlier)
    invalidation(seen.nginx, fromNginx, earlier)
  }

  const report = async (): Promise<void> => {
    for (const [name, { hits, collapsed, stale, misses, inVain, ms }] of Object.entries(seen)) {
      process.stdout.write(
        `${name}: hit ratio ${share(hits, reads)} of ${reads} reads (${collapsed} of the hits waited for the request of another read), ${stale} stale; ${inVain} of ${misses} misses for an unchanged response; ${((1000 * reads) / ms).toFixed(0)} responses/s, ${(ownMs / ms).toFixed(1)} times WordPress's own ${((1000 * reads) / ownMs).toFixed(0)}\n`,
      )
    }
    const metrics = await (await fetch(`${started.gateway.adminOrigin}/metrics`)).text()
    for (const [line] of metrics.matchAll(
      /^trellis_(?:changes|cache_invalidated|cache_writes)_.* [1-9].*$/gm,
    ))
      process.stdout.write(`${line}\n`)
    for (const [kind, { writes, before, after }] of [...kept].sort())
      process.stdout.write(
        `${kind}: ${writes} writes, ${share(after, before)} of the stored responses stay\n`,
      )
  }

  test(`${reads} reads of 200 URLs, a write after each ${readsOfWrite}: no response is stale (SEED=${seed})`, async () => {
    // The first use of an application password and of the editor is noted in the database, which drops more than later ones.
    for (const isByForm of [true, false]) await write(mix.nextWrite(), isByForm)
    kept.clear()
    const rounds = Array.from({ length: Math.ceil(reads / readsOfWrite) }, () => ({
      write: mix.nextWrite(),
      targets: Array.from({ length: readsOfWrite }, () => mix.nextTarget()),
    }))
    const targets = [...new Set(rounds.flatMap((round) => round.targets))]
    for (const root of [roots.nginx, roots.gateway])
      for (const { target, shown } of await readAll(root, targets)) own.set(target, shown)
    for (const [at, round] of rounds.entries()) await playRound(round, at % 2 === 0)
    await report()
    expect(seen.gateway.stale).toBe(0)
    expect(seen.nginx.stale).toBeGreaterThan(0)
    expect(seen.gateway.hits).toBeGreaterThan(0)
    if (isLong && hasCompanion) {
      expect(seen.gateway.hits / reads).toBeGreaterThanOrEqual(minHits)
      expect(ownMs / seen.gateway.ms).toBeGreaterThan(minTimes)
    }
  }, 3_600_000)
})
