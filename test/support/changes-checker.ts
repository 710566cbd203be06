import type { Companion } from './companion.ts'
import { pause } from './origin.ts'

type Gateway = { readonly origin: string; readonly adminOrigin: string }

export type ChangesRun = {
  readonly reads: number
  readonly hits: number
  readonly pushed: number
  readonly onlyLogged: number
  /** Reads that returned older data than they may, each with what it should have shown. */
  readonly stale: readonly string[]
}

type Options = {
  readonly companion: Companion
  readonly gateways: readonly Gateway[]
  readonly pollMs: number
  readonly forMs: number
}

export const checkedPath = '/index.php/site-json/site/v2'
const posts = [1, 2, 3]
/** Readers without a rest take the processors of the gateways that they read. */
const readerRestMs = 20
/** As long as a test may take at most: nothing is proved by fewer. */
const maxExtraMs = 150_000
const min = { hits: 21, pushed: 4, onlyLogged: 4 }

/** `ttl` is so short that a gateway that does not know the changes serves nothing older than the bound. */
export const checkedRules = (pollMs: number) => [{ match: 'GET /site/v2/**', ttl: `${pollMs}ms` }]

/**
 * Changes posts at random, reports half of the changes with a push and leaves the others to the log, and reads all the time. A read
 * that begins after the acknowledgement of a change, or two poll intervals after a change that was not reported, must not show older
 * data.
 */
export const checkChanges = async ({ companion, gateways, pollMs, forMs }: Options): Promise<ChangesRun> => {
  const counts = { reads: 0, hits: 0, pushed: 0, onlyLogged: 0 }
  const stale: string[] = []
  const acknowledged = new Map<number, number>()
  const logged: { id: number; version: number; at: number }[] = []
  const until = performance.now() + forMs
  const isEnough = (): boolean =>
    counts.hits >= min.hits && counts.pushed >= min.pushed && counts.onlyLogged >= min.onlyLogged
  // A busy machine hears of changes late and stores little: it goes on until it has compared hits.
  const isOver = (): boolean =>
    performance.now() >= until && (isEnough() || performance.now() >= until + maxExtraMs)
  const boundMs = 2 * pollMs

  const expected = (id: number): number => {
    const now = performance.now()
    const due = logged.filter((one) => one.id === id && now - one.at > boundMs)
    return Math.max(acknowledged.get(id) ?? 1, ...due.map(({ version }) => version))
  }

  const write = async (turn: number): Promise<void> => {
    const id = posts[Math.floor(Math.random() * posts.length)] ?? 1
    const row = companion.write(id)
    const version = companion.version(id)
    logged.push({ id, version, at: performance.now() })
    const gateway = gateways[turn % gateways.length]
    if (gateway === undefined || Math.random() < 0.5) {
      counts.onlyLogged += 1
      return
    }
    const response = await companion.push(gateway.adminOrigin, row)
    await response.text()
    if (response.status !== 200) return
    counts.pushed += 1
    acknowledged.set(id, Math.max(version, acknowledged.get(id) ?? 0))
  }

  const writer = async (): Promise<void> => {
    for (let turn = 0; !isOver(); turn += 1) {
      await write(turn)
      await pause(Math.random() * pollMs * 0.4)
    }
  }

  const shown = (body: string): readonly { id: number; version: number }[] => {
    const value = JSON.parse(body) as { id: number; title: { rendered: string } } | []
    return [value].flat().map(({ id, title }) => ({ id, version: Number(title.rendered.slice(1)) }))
  }

  const readOnce = async (gateway: Gateway): Promise<void> => {
    const path = Math.random() < 0.3 ? '/posts' : `/posts/${posts[Math.floor(Math.random() * 3)]}`
    const floor = new Map(posts.map((id) => [id, expected(id)]))
    const response = await fetch(`${gateway.origin}${checkedPath}${path}`)
    const body = await response.text()
    counts.reads += 1
    if (response.headers.get('cache-status')?.includes('hit') === true) counts.hits += 1
    for (const { id, version } of shown(body)) {
      const min = floor.get(id) ?? 1
      if (version < min) stale.push(`${path}: post ${id} in version ${version} instead of ${min}`)
    }
  }

  const reader = async (gateway: Gateway): Promise<void> => {
    while (!isOver()) {
      await readOnce(gateway)
      await pause(readerRestMs)
    }
  }

  /** Polls fail or hang in turns, for longer than the gateway trusts its memory. */
  const disturb = async (): Promise<void> => {
    for (let turn = 0; !isOver(); turn += 1) {
      await pause(3 * pollMs)
      const hangs = turn % 2 === 0
      companion.respondToPoll = (_, wire) => (hangs ? undefined : wire.respond({ status: 500 }))
      await pause(4 * pollMs)
      companion.respondToPoll = undefined
    }
  }

  await Promise.all([writer(), writer(), disturb(), ...gateways.flatMap((one) => [reader(one), reader(one)])])
  companion.respondToPoll = undefined
  if (!isEnough()) throw new Error(`too little was seen: ${JSON.stringify(counts)}`)
  return { ...counts, stale }
}
