import type { CacheEvent } from '../cache/events.ts'
import { systemClock } from '../clock.ts'
import { type ExchangeFinishedEvent, hasEmptiedCache } from '../exchange/events.ts'
import type { JwksResult } from '../server/events.ts'
import type { DiscoveryEvent } from '../service/connection.ts'
import type { UpstreamEvent } from '../upstream/events.ts'
import { createSampled, type Log } from './logger.ts'
import type { Observers } from './metrics.ts'
import type { PushEvent } from './push-metrics.ts'

type UpstreamLog = Pick<Log, 'info' | 'warn'>

const writeDrift = (log: UpstreamLog, event: DiscoveryEvent): void => {
  switch (event.kind) {
    case 'index-refreshed':
      return
    case 'index-failed': {
      const { kind, service, reason, keptLast, cause } = event
      log.warn({ service, reason, keptLast, err: cause }, kind)
      return
    }
    case 'routes-refused':
      log.warn({ service: event.service, refused: event.refused }, event.kind)
      return
    case 'drift-compared': {
      const { kind, service, differences } = event
      if (Object.keys(differences).length === 0) log.info({ service }, 'no-drift')
      else log.warn({ service, differences }, kind)
    }
  }
}

type StateChange = Extract<UpstreamEvent, { kind: 'target-changed' | 'breaker-changed' }>

/** Bound of log lines about one target or breaker; faster changes are summed up at the end of the period. */
const maxLines = 10
const everyMs = 60_000

const write = (log: UpstreamLog, { kind, ...facts }: StateChange, held: number): void => {
  const members = held === 0 ? facts : { ...facts, held }
  if (facts.to === 'closed' || facts.to === 'healthy' || facts.to === 'half-open') log.info(members, kind)
  else log.warn(members, kind)
}

type ConnectionFault = Extract<UpstreamEvent, { kind: 'connection-fault' }>

/** One line a minute for each target, with the number of lines left out. */
const createFaultLog = (log: UpstreamLog): ((fault: ConnectionFault) => void) => {
  const sampled = createSampled(everyMs, systemClock.monotonic)
  return ({ kind, service, target, cause }) => {
    const held = sampled.pass(`${service} ${target}`)
    if (held !== undefined) log.warn({ service, target, held, err: cause }, kind)
  }
}

type Window = { written: number; held: number; last: StateChange | undefined }

/**
 * Logs each change of state once. A flapping state gets ten lines a minute, and after the minute one line for the last change held
 * back: the last line always shows the current state.
 */
const createChangeLog = (log: UpstreamLog): ((change: StateChange) => void) => {
  const windows = new Map<string, Window>()
  const endLater = (key: string, window: Window): void => {
    setTimeout(() => {
      const { last, held } = window
      if (last === undefined) {
        windows.delete(key)
        return
      }
      write(log, last, held - 1)
      Object.assign(window, { written: 1, held: 0, last: undefined })
      endLater(key, window)
    }, everyMs).unref()
  }
  return (change) => {
    const key = change.kind === 'target-changed' ? `${change.service} ${change.target}` : change.service
    let window = windows.get(key)
    if (window === undefined) {
      window = { written: 0, held: 0, last: undefined }
      windows.set(key, window)
      endLater(key, window)
    }
    if (window.written < maxLines) {
      window.written += 1
      write(log, change, 0)
      return
    }
    window.held += 1
    window.last = change
  }
}

/** Stale responses end when none was sent for this time. */
const quietMs = 10_000

type StaleServed = Extract<CacheEvent, { kind: 'served-stale'; reason: 'error' }>

/**
 * Logs one line when a service begins to answer with stale responses because its upstream fails, and one when it no longer does, with
 * their number. Both have at least the quiet time between them, however many clients ask.
 */
const createStaleLog = (log: UpstreamLog): ((event: StaleServed) => void) => {
  const counts = new Map<string, { answers: number; timer: NodeJS.Timeout }>()
  const end = (service: string): void => {
    const responses = counts.get(service)?.answers
    counts.delete(service)
    log.info({ service, answers: responses }, 'stale-answers-ended')
  }
  return ({ service, failure }) => {
    const running = counts.get(service)
    if (running !== undefined) {
      running.answers += 1
      running.timer.refresh()
      return
    }
    counts.set(service, { answers: 1, timer: setTimeout(end, quietMs, service).unref() })
    log.warn({ service, cause: failure }, 'stale-answers-began')
  }
}

/** Logs changes of state: of targets, breakers, stale responses, the keys of issuers, indexes and drift. */
export const createStateLog = (log: UpstreamLog): Observers => {
  const changed = createChangeLog(log)
  const servedStale = createStaleLog(log)
  const faulted = createFaultLog(log)
  /** The last result of each service: one line for each change. */
  const jwksResults = new Map<string, JwksResult>()
  let lastPush: PushEvent['outcome'] = 'exported'
  return {
    discovery: (event) => writeDrift(log, event),
    upstream: (event) => {
      if (event.kind === 'target-changed' || event.kind === 'breaker-changed') changed(event)
      if (event.kind === 'connection-fault') faulted(event)
    },
    cache: (event) => {
      if (event.kind === 'served-stale' && event.reason === 'error') servedStale(event)
    },
    access: (event) => {
      if (event.kind !== 'jwks-fetched') return
      const { kind, service, result } = event
      if (jwksResults.get(service) === result) return
      jwksResults.set(service, result)
      if (result === 'ok') log.info({ service, result }, kind)
      else log.warn({ service, result }, kind)
    },
    push: (event) => {
      const { kind, outcome } = event
      if (lastPush === outcome) return
      lastPush = outcome
      if (outcome === 'exported') log.info({ outcome }, kind)
      else log.warn({ outcome, setting: 'metrics.otlpUrl' }, kind)
    },
  }
}

const hourMs = 3_600_000
/** Fewer in an hour are what editors do. */
const fewestWrites = 12
const maxEmptyingLines = 3
/** Routes are from closed lists; plugins may announce thousands. */
const maxRoutes = 200

type WriteCount = { readonly service: string; readonly route: string; writes: number; responses: number }

/** Once an hour, names the routes whose unknown writes removed the most. */
export const createEmptyingLog = (log: Pick<Log, 'warn'>): Observers => {
  const counts = new Map<string, WriteCount>()
  const write = (): void => {
    const max = [...counts.values()]
      .filter(({ writes, responses }) => writes >= fewestWrites && responses > 0)
      .sort((a, b) => b.responses - a.responses)
    for (const count of max.slice(0, maxEmptyingLines))
      log.warn({ ...count, setting: 'cache.harmlessWrites, or changes' }, 'writes-emptied-cache')
    counts.clear()
  }
  setInterval(write, hourMs).unref()
  const count = (event: ExchangeFinishedEvent): void => {
    const { service, method, invalidated } = event
    if (!hasEmptiedCache(event) || invalidated === undefined) return
    const route = `${method} ${event.route}`
    const key = `${service} ${route}`
    const ofRoute = counts.get(key) ?? { service, route, writes: 0, responses: 0 }
    if (counts.size >= maxRoutes && !counts.has(key)) return
    counts.set(key, ofRoute)
    ofRoute.writes += 1
    ofRoute.responses += invalidated.entries
  }
  return {
    exchange: (event) => {
      if (event.kind === 'exchange-finished') count(event)
    },
  }
}
