import type { Clock } from '../clock.ts'
import type { ExchangeEvent, ExchangeFinishedEvent, WriteKind } from '../exchange/events.ts'
import type { Redaction } from '../http/redaction.ts'
import type { UpstreamEvent } from '../upstream/events.ts'
import { printable } from './access-log.ts'
import type { ServiceTotals } from './metrics.ts'

const sampleMs = 10_000
/** An hour. */
const maxSamples = 360
const maxEvents = 100
/** Services with their own history; each costs at most 60 kB. */
const maxServices = 100
const maxReach = 12
/** Targets and breakers, those of earlier configurations included. */
const maxUpstreams = 1_000
const longestText = 160

/** A request that was answered with an error. */
type RecentError = {
  readonly at: string
  readonly id: string
  readonly service: string
  readonly route: string
  readonly status: number
  /** Of the gateway's own error; '' for one of the upstream. */
  readonly code: string
}

/** A write or a purge that invalidated stored responses. */
type RecentInvalidation = {
  readonly at: string
  readonly by: 'write' | 'purge'
  /** Of the write; '' for a purge. */
  readonly id: string
  readonly service: string
  /** Method and route of the write, or how the purge was done. */
  readonly cause: string
  /** The first tags, or what the purge named. */
  readonly reach: readonly string[]
  /** How many there are in all. */
  readonly tags: number
  /** Stored responses dropped in the process that did it. */
  readonly entries: number
  /** Some of their public URLs. */
  readonly urls: readonly string[]
}

/** A request that may write and removed nothing: what it did is reported, or it is known to have written nothing. */
type RecentKept = {
  readonly at: string
  readonly id: string
  readonly service: string
  readonly cause: string
  readonly taken: Exclude<WriteKind, 'unclassified'>
}

/** The last change of a target, or of the breaker of a service. */
type RecentUpstreamChange = {
  readonly at: string
  readonly service: string
  /** '' for the breaker. */
  readonly target: string
  readonly to: string
  /** In words, without texts of the upstream. */
  readonly cause: string
}

/** The last events of this process, newest first. */
export type RecentEvents = {
  /** The last one of each target and of each breaker. */
  readonly upstreams: readonly RecentUpstreamChange[]
  readonly errors: readonly RecentError[]
  readonly refusals: readonly RecentError[]
  readonly invalidations: readonly RecentInvalidation[]
  /** A list of its own: heartbeats would push out what removed something. */
  readonly kept: readonly RecentKept[]
}

/** What happened within ten seconds: requests, those answered from the cache, those answered 5xx, then the counts of the buckets. */
type HistoryRow = readonly [number: number, ...counts: readonly number[]]

/** The counts of one service, or of all together, in one process: plain data for other processes. */
export type HistoryPart = {
  readonly services: readonly string[]
  /** The ten seconds in which the process began. */
  readonly since: number
  /** Those of the last sample. */
  readonly until: number
  readonly rows: readonly HistoryRow[]
}

export type PurgeRecord = { readonly cause: string; readonly reach: string; readonly entries: number }

/** With the time in milliseconds: every write and every refusal is recorded, and only what is read is formatted. */
type Recorded<Event> = Omit<Event, 'at'> & { readonly at: number }

const createRecent = <Event>() => {
  const values: Recorded<Event>[] = []
  return {
    add: (value: Recorded<Event>): void => {
      values.push(value)
      if (values.length > maxEvents) values.shift()
    },
    some: (is: (value: Recorded<Event>) => boolean): boolean => values.some(is),
    newestFirst: (): readonly Recorded<Event>[] => values.toReversed(),
  }
}

/** The last change of each target, and of each breaker. */
class UpstreamChanges {
  readonly #changes = new Map<string, Recorded<RecentUpstreamChange>>()

  add(event: Extract<UpstreamEvent, { kind: 'target-changed' | 'breaker-changed' }>, at: number): void {
    const { service, to, cause } = event
    const target = event.kind === 'target-changed' ? event.target : ''
    const key = `${service} ${target}`
    // Added again at the end: the oldest gives way to a new target.
    this.#changes.delete(key)
    this.#changes.set(key, { at, service, target, to, cause })
    const [oldest] = this.#changes.keys()
    if (this.#changes.size > maxUpstreams && oldest !== undefined) this.#changes.delete(oldest)
  }

  newestFirst(): readonly RecentUpstreamChange[] {
    return [...this.#changes.values()].toReversed().map(withDate)
  }
}

const withDate = <Event extends { readonly at: number }>(event: Event) => ({
  ...event,
  at: new Date(event.at).toISOString(),
})

const causeOf = ({ method, route, writeKind = 'unclassified' }: ExchangeFinishedEvent): string =>
  `${method} ${route}${writeKind === 'unclassified' ? '' : ` (${writeKind})`}`

const difference = (now: readonly number[], before: readonly number[] | undefined): readonly number[] =>
  now.map((value, at) => value - (before?.[at] ?? 0))

const sum = (rows: readonly (readonly number[])[]): readonly number[] => {
  const [first = [], ...others] = rows
  return first.map((value, at) => others.reduce((total, row) => total + (row[at] ?? 0), value))
}

/** Makes texts for people: printable, short, without secrets. */
const createShown = (redaction: Redaction) => {
  const short = (text: string): string => printable(redaction.beginning(text, longestText), longestText)
  /** The first texts, and long ones cut, so that a hundred events hold little memory. */
  const bounded = (texts: readonly string[]): readonly string[] =>
    texts.slice(0, maxReach).map((text) => (text.length > longestText ? short(text) : text))
  const shownInvalidation = (event: Recorded<RecentInvalidation>): RecentInvalidation =>
    withDate({
      ...event,
      cause: short(event.cause),
      reach: event.reach.map(short),
      urls: event.urls.map(short),
    })
  return { short, bounded, shownInvalidation }
}

/**
 * Keeps an hour of numbers in steps of ten seconds, read from the metrics by a timer, and the last errors and invalidations. Requests
 * that are answered well cost nothing here.
 */
export const createHistory = (totals: () => ServiceTotals, clock: Clock, redaction: Redaction) => {
  const { short, bounded, shownInvalidation } = createShown(redaction)
  const samples = new Map<number, ReadonlyMap<string, readonly number[]>>()
  const errors = createRecent<RecentError>()
  const refusals = createRecent<RecentError>()
  const invalidations = createRecent<RecentInvalidation>()
  const kept = createRecent<RecentKept>()
  const upstreams = new UpstreamChanges()
  let last = totals()
  const since = Math.floor(clock.now() / sampleMs)
  let until = since
  const take = (): void => {
    const now = totals()
    const at = Math.floor(clock.now() / sampleMs)
    const changed = new Map(samples.get(at))
    for (const [service, row] of [...now].slice(0, maxServices)) {
      const steps = difference(row, last.get(service))
      const previous = changed.get(service)
      if (steps.some((step) => step !== 0))
        changed.set(service, previous === undefined ? steps : sum([previous, steps]))
    }
    last = now
    until = at
    samples.set(at, changed)
    for (const time of samples.keys()) if (time <= at - maxSamples || time > at) samples.delete(time)
  }
  const timer = setInterval(take, sampleMs).unref()
  const written = (event: ExchangeFinishedEvent): void => {
    const { id = '', service, method, route, invalidated, writeKind = 'unclassified' } = event
    const { tags, entries, urls } = invalidated ?? { tags: [], entries: 0, urls: [] }
    const at = clock.now()
    if (tags.length > 0)
      invalidations.add({
        at,
        by: 'write',
        id,
        service,
        cause: causeOf(event),
        reach: bounded(tags),
        tags: tags.length,
        entries,
        urls: bounded(urls),
      })
    else if (writeKind !== 'unclassified')
      kept.add({ at, id, service, cause: `${method} ${route}`, taken: writeKind })
  }
  return {
    /** Of one service; '' for all together. */
    read: (service: string): HistoryPart => ({
      services: [...last.keys()].slice(0, maxServices),
      since,
      until,
      rows: [...samples].flatMap(([at, services]): HistoryRow[] => {
        const row = service === '' ? sum([...services.values()]) : services.get(service)
        return row === undefined || row.length === 0 ? [] : [[at, ...row]]
      }),
    }),
    recent: (): RecentEvents => ({
      upstreams: upstreams.newestFirst(),
      errors: errors.newestFirst().map(withDate),
      refusals: refusals.newestFirst().map(withDate),
      invalidations: invalidations.newestFirst().map(shownInvalidation),
      kept: kept.newestFirst().map((event) => withDate({ ...event, cause: short(event.cause) })),
    }),
    purged: ({ cause, reach, entries }: PurgeRecord): void =>
      invalidations.add({
        at: clock.now(),
        by: 'purge',
        id: '',
        service: '',
        cause: short(cause),
        reach: bounded([reach]),
        tags: 1,
        entries,
        urls: [],
      }),
    observeUpstream: (event: UpstreamEvent): void => {
      if (event.kind === 'target-changed' || event.kind === 'breaker-changed')
        upstreams.add(event, clock.now())
    },
    observe: (event: ExchangeEvent): void => {
      if (event.kind === 'request-refused') {
        const { id, service, route, status, code } = event
        const recent = status >= 500 ? errors : refusals
        recent.add({ at: clock.now(), id, service, route, status, code })
        return
      }
      if (event.kind !== 'exchange-finished') return
      const { id = '', service, route, status } = event
      if (status >= 500 && !errors.some((recentError) => recentError.id === id))
        errors.add({ at: clock.now(), id, service, route, status, code: '' })
      written(event)
    },
    close: (): void => clearInterval(timer),
  }
}

export type History = ReturnType<typeof createHistory>

/** Where `share` of the observations lie below, by linear interpolation within a bucket, as Prometheus does it. */
const quantile = (counts: readonly number[], bounds: readonly number[], share: number): number | null => {
  const rank = share * counts.reduce((total, count) => total + count, 0)
  if (rank === 0) return null
  let below = 0
  for (const [at, count] of counts.entries()) {
    const bound = bounds[at]
    // Above the last bound nothing is known but the bound.
    if (bound === undefined) return bounds.at(-1) ?? null
    const from = bounds[at - 1] ?? 0
    if (below + count >= rank) return from + ((bound - from) * (rank - below)) / count
    below += count
  }
  return null
}

/** The history of several processes as columns of a chart, oldest first. `null`: nothing to measure in these ten seconds, or not running yet. */
export const historyView = (parts: readonly HistoryPart[], bounds: readonly number[]) => {
  const byTime = new Map<number, readonly number[]>()
  for (const [at, ...row] of parts.flatMap(({ rows }) => rows)) {
    const previous = byTime.get(at)
    byTime.set(at, previous === undefined ? row : sum([previous, row]))
  }
  // Times without a sample would look like a fall to 0.
  const end = Math.max(...parts.map(({ until }) => until))
  const columns = Array.from(
    { length: maxSamples },
    (_, index) => byTime.get(end - maxSamples + 1 + index) ?? [],
  )
  const since = Math.min(...parts.map((part) => part.since)) - (end - maxSamples + 1)
  const ran = (count: number, index: number): number | null => (index >= since ? count : null)
  const [first] = parts
  return {
    services: first?.services ?? [],
    seconds: sampleMs / 1000,
    /** Seconds since 1970 of the end of the last column. */
    end: ((end + 1) * sampleMs) / 1000,
    /** Seconds. Shorter times are counted together. */
    finest: bounds[0] ?? 0,
    requests: columns.map(([requests = 0], index) => ran(requests, index)),
    errors: columns.map(([, , failed = 0], index) => ran(failed, index)),
    hitRatio: columns.map(([requests = 0, hits = 0]) => (requests > 0 ? hits / requests : null)),
    p50: columns.map(([, , , ...counts]) => quantile(counts, bounds, 0.5)),
    p99: columns.map(([, , , ...counts]) => quantile(counts, bounds, 0.99)),
  }
}

const newest = <Value extends { readonly at: string }>(
  lists: readonly (readonly Value[])[],
  max = maxEvents,
): readonly Value[] =>
  lists
    .flat()
    .sort((first, second) => (first.at < second.at ? 1 : -1))
    .slice(0, max)

export const recentOfAll = (parts: readonly RecentEvents[]): RecentEvents => ({
  upstreams: newest(
    parts.map(({ upstreams }) => upstreams),
    maxUpstreams,
  ),
  errors: newest(parts.map(({ errors }) => errors)),
  refusals: newest(parts.map(({ refusals }) => refusals)),
  invalidations: newest(parts.map(({ invalidations }) => invalidations)),
  kept: newest(parts.map(({ kept }) => kept)),
})
