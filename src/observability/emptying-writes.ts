import type { ExchangeEvent, PipelineEvent } from '../exchange/events.ts'
import type { Log } from './logger.ts'
import type { Metrics } from './metrics.ts'

const everyMs = 3_600_000
/** Fewer in an hour are what editors do. */
const fewestWrites = 12
const mostLines = 3
/** Routes are from closed lists; plugins may announce thousands. */
const mostRoutes = 200

type WriteCount = { readonly service: string; readonly route: string; writes: number; responses: number }

/** Did the write reach all responses of a service, because nothing is known of it? */
const emptied = ({ taken, invalidated }: ExchangeEvent): boolean =>
  taken === 'unknown' && invalidated !== undefined && invalidated.tags.some((tag) => tag.endsWith('/all'))

/** Once an hour, names the routes whose unknown writes removed the most. */
const createEmptyingLog = (log: Pick<Log, 'warn'>): ((event: ExchangeEvent) => void) => {
  const counts = new Map<string, WriteCount>()
  const write = (): void => {
    const most = [...counts.values()]
      .filter(({ writes, responses }) => writes >= fewestWrites && responses > 0)
      .sort((a, b) => b.responses - a.responses)
    for (const count of most.slice(0, mostLines))
      log.warn({ ...count, setting: 'cache.harmlessWrites, or changes' }, 'writes-emptied-cache')
    counts.clear()
  }
  setInterval(write, everyMs).unref()
  return (event) => {
    const { service, method, invalidated } = event
    if (!emptied(event) || invalidated === undefined) return
    const route = `${method} ${event.route}`
    const key = `${service} ${route}`
    const count = counts.get(key) ?? { service, route, writes: 0, responses: 0 }
    if (counts.size >= mostRoutes && !counts.has(key)) return
    counts.set(key, count)
    count.writes += 1
    count.responses += invalidated.entries
  }
}

/** Metrics that also log which writes empty the cache. */
export const withEmptyingLog = (metrics: Metrics, log: Pick<Log, 'warn'>): Metrics => {
  const observe = createEmptyingLog(log)
  return {
    ...metrics,
    observe: {
      ...metrics.observe,
      pipeline: (event: PipelineEvent) => {
        metrics.observe.pipeline(event)
        if (event.kind === 'exchange-finished') observe(event)
      },
    },
  }
}
