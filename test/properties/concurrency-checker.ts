import { recordHistory } from '../histories/record-history.ts'
import { pause } from '../support/origin.ts'
import { createCheckedRequests, type Reply } from './checked-requests.ts'
import { totalMs } from './checked-service.ts'
import { createCheckedVersions, type Expected, shownIn } from './checked-versions.ts'
import { type Member, readAcrossStop } from './stopped-member.ts'
import {
  postIds,
  timeoutMs,
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
  /** A response that takes longer does not come: who should have given it was killed. */
  readonly lostAfterMs: number
  /** Share of writes whose response is as it should be. After one of unknown outcome nothing is stored for a while. */
  readonly respondedShare: number
  /** Share of readers who leave before they have their response. */
  readonly hangUpShare: number
  /** Until a reader reads again, at most. */
  readonly readerRestMs: number
  /** Share of purges that mark stale instead of dropping. */
  readonly softShare: number
  /** Told at once of each stale read, so that what led to it can be written down. */
  readonly onStale?: (read: string) => void
}

const anyOf = <T>(values: readonly T[]): T => values[Math.floor(Math.random() * values.length)] as T

/** A busy machine may need as much longer until all that disturbs a run has happened. */
const timeoutOfRunMs = 150_000

/** Most writes in flight have ended by then. */
const quietMs = 100

const paths = ['/posts', '/pages/9', '/posts/1', '/posts/2', '/posts/3'] as const

const nothingSeen = {
  reads: 0,
  hits: 0,
  confirmed: 0,
  hungUp: 0,
  lost: 0,
  failedReads: 0,
  writes: 0,
  respondedWrites: 0,
  failedWrites: 0,
  purges: 0,
  failedPurges: 0,
  /** Reads that were begun at a member that was stopped, and finished after a write was answered elsewhere. */
  acrossStops: 0,
  slowestWriteMs: 0,
}

type Known = { readonly tag: string; readonly text: string }

/** A read in flight. */
type Asked = {
  readonly place: string
  readonly caller: string
  readonly known: Known | undefined
  /** What it has to show at least. */
  readonly before: Expected
  readonly began: string
}

/** What a run saw. */
export type Seen = typeof nothingSeen

/** Readers, writers whose responses break, and purges, against whatever processes there are; keeps count of what must not be seen any more. */
export const createChecker = (options: CheckerOptions) => {
  const { upstream, gateways } = options
  const { send, close } = createCheckedRequests(options.readers + options.writers, options.lostAfterMs)
  const versions = createCheckedVersions({
    onStale: options.onStale,
    history: recordHistory(process.env['HISTORY']),
  })
  const seen: Seen = { ...nothingSeen }
  const fates = new Map<WriteFate, number>()
  /** What was said instead of a response, and how often. */
  const refusals = new Map<string, number>()
  let writes = 0
  /** No other write runs while a member is stopped midway: the member would receive it first and check its lease. */
  let isQuiet = false

  const invalidationRefusal = (method: string, { status, text }: Reply): void => {
    const code = /"code":"([a-z_]{1,60})"/.exec(text)?.[1] ?? ''
    const name = `${method} ${status} ${code}`
    refusals.set(name, (refusals.get(name) ?? 0) + 1)
  }

  /** Disturbed writes are spread evenly and take all fates in turn, so that a short run meets each of them. */
  const nextFate = (): WriteFate => {
    const disturbed = (count: number): number => Math.ceil(count * (1 - options.respondedShare))
    const before = disturbed(writes)
    return disturbed(writes + 1) === before
      ? 'answered'
      : (writeFates[(before + 1) % writeFates.length] ?? 'answered')
  }

  const write = async (): Promise<void> => {
    const id = anyOf(postIds)
    const fate = nextFate()
    writes += 1
    const name = `write-${writes}`
    const headers = {
      authorization: 'Bearer writer',
      'content-type': 'application/json',
      'x-fate': fate,
      'x-write': name,
    }
    const began = performance.now()
    const to = anyOf(gateways()).publicAddress
    const reply = await send({ method: 'PUT', to, path: `/posts/${id}`, headers, content: '{"title":"x"}' })
    seen.writes += 1
    fates.set(fate, (fates.get(fate) ?? 0) + 1)
    if (fate === 'answered' && reply.status !== 200) {
      seen.failedWrites += 1
      invalidationRefusal('PUT', reply)
    }
    if (reply.status === 0) return
    seen.respondedWrites += 1
    seen.slowestWriteMs = Math.max(seen.slowestWriteMs, Math.round(performance.now() - began))
    // Carried out by now, whatever response the client got: reads must show it.
    versions.raise(id, upstream.madeBy(name) ?? 0, `${fate} ${reply.status} by ${reply.by}`)
  }

  /** Someone changes a post behind the gateways' backs, and then says so to one of them. */
  const purge = async (): Promise<void> => {
    const id = anyOf(postIds)
    const version = upstream.change(id)
    const mode = Math.random() < options.softShare ? 'soft' : 'hard'
    const selector = anyOf([{ all: true }, { prefix: '/index.php/site-json/site/v2' }])
    const to = anyOf(gateways())
    try {
      const response = await fetch(`${to.adminAddress}/cache/purge`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ ...selector, mode }),
      })
      await response.arrayBuffer()
      if (!response.ok) throw new Error(`${response.status}`)
      seen.purges += 1
      // After a soft one what is stale may be served a little longer.
      if (mode === 'hard') versions.raise(id, version, `purged by ${to.publicAddress}`)
    } catch {
      seen.failedPurges += 1
    }
  }

  /** What readers kept of earlier answers, by path and caller. */
  const kept = new Map<string, Known>()

  const judge = (reply: Reply, { place, caller, known, before, began }: Asked): void => {
    const status = `${reply.headers['cache-status']} asked at ${began}`
    if (reply.status === 200) {
      if (status.includes('hit')) seen.hits += 1
      versions.check({ ...reply, status }, caller, before)
      const tag = reply.headers.etag
      if (tag !== undefined) kept.set(place, { tag, text: reply.text })
    } else if (reply.status === 304 && known !== undefined) {
      seen.confirmed += 1
      versions.check({ ...reply, status, text: known.text }, caller, before)
    } else if (reply.status === 0) seen.lost += 1
    else {
      seen.failedReads += 1
      invalidationRefusal('GET', reply)
    }
  }

  const read = async (): Promise<void> => {
    const path = anyOf(paths)
    const caller = anyOf(['nobody', 'nobody', 'nobody', 'nobody', 'Bearer a', 'Bearer b'])
    const known = Math.random() < 0.3 ? kept.get(path + caller) : undefined
    const headers = {
      ...(caller === 'nobody' ? {} : { authorization: caller }),
      ...(known === undefined ? {} : { 'if-none-match': known.tag }),
    }
    const before = versions.asOfNow()
    const to = anyOf(gateways()).publicAddress
    seen.reads += 1
    const began = new Date().toISOString()
    if (Math.random() < options.hangUpShare) {
      seen.hungUp += 1
      await send({ method: 'GET', to, path, headers, hangUpAfterMs: Math.random() * 4 })
      return
    }
    judge(await send({ method: 'GET', to, path, headers }), {
      place: path + caller,
      caller,
      known,
      before,
      began,
    })
  }

  /** Stops one member in the middle of a read that ends after a write was answered by another one. */
  const stopMidway = async (stopped: Member, other: Member, longerMs: number): Promise<void> => {
    isQuiet = true
    await pause(quietMs)
    try {
      if (await readAcrossStop(stopped, other, longerMs, versions)) seen.acrossStops += 1
    } finally {
      isQuiet = false
    }
  }

  /** Once more where a process that was killed last held the connection. */
  const readAgain = async (to: string, path: string): Promise<Reply> => {
    const asked = { method: 'GET', to, path, headers: {} }
    const first = await send(asked)
    return first.status === 200 ? first : send(asked)
  }

  const wrongIn = (path: string, text: string): readonly string[] =>
    shownIn(text)
      .filter(({ id, version }) => version !== upstream.versionOf(id))
      .map(({ id, version }) => `${path} ${id}: ${version}`)

  /** Each address reads everything: the last written value stays. */
  const readLast = async (): Promise<readonly string[]> => {
    const wrong: string[] = []
    for (const { publicAddress } of gateways()) {
      for (const path of [...paths, ...paths]) {
        wrong.push(...wrongIn(path, (await readAgain(publicAddress, path)).text))
      }
    }
    return wrong
  }

  /**
   * Runs until its operations are done or its time limit has passed, with `meanwhile` beside it; then checks once more. On a slow
   * machine it continues until it has seen enough for a verdict.
   */
  const run = async (
    meanwhile: (goesOn: () => boolean) => Promise<void>,
    isEnough: (seen: Seen) => boolean = () => true,
  ) => {
    // The write was not acknowledged: it is enough that no older value stays once every upstream request of that time has
    // ended.
    upstream.onChange = versions.made
    upstream.onLate = (id, version) => setTimeout(() => versions.raise(id, version, 'late'), totalMs)
    let left = options.operations
    const began = Date.now()
    const goesOn = (): boolean => {
      const tookMs = Date.now() - began
      if (tookMs >= options.longestMs + timeoutOfRunMs) return false
      return (left > 0 && tookMs < options.longestMs) || !isEnough(seen)
    }
    const work = async (step: () => Promise<void>, restMs: number): Promise<void> => {
      while (goesOn()) {
        while (isQuiet && step !== read) await pause(10)
        left -= 1
        await step()
        await pause(Math.random() * restMs)
      }
    }
    await Promise.all([
      ...Array.from({ length: options.readers }, () => work(read, options.readerRestMs)),
      ...Array.from({ length: options.writers }, () => work(write, 300)),
      work(purge, 500),
      meanwhile(goesOn),
    ])
    await pause(totalMs + timeoutMs * 2)
    const wrong = await readLast()
    close()
    const { staleReads, crossed } = versions
    return { seen, fates, refusals, staleReads, crossed, wrong }
  }
  return { run, stopMidway }
}
