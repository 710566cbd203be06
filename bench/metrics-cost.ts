import { createMetrics } from '../src/observability/metrics.ts'
import type { ExchangeEvent } from '../src/pipeline/events.ts'
import { median } from './statistics.ts'

/**
 * What the metrics of a hit cost: making its event and observing it, beside making it and dropping it. Rounds are
 * interleaved. Beside the processor time of a whole hit (`npm run bench`) that is the share of the metrics.
 */
const hits = 1_000_000
const rounds = 9

const metrics = createMetrics({ version: 'bench', configHash: 'bench', processMetrics: false })
let dropped = 0

const observers = {
  observed: (event: ExchangeEvent): void => metrics.observe.pipeline(event),
  dropped: (event: ExchangeEvent): void => {
    dropped += event.status
  },
}

const nanosecondsPerHit = (observe: (event: ExchangeEvent) => void): number => {
  const began = performance.now()
  for (let hit = 0; hit < hits; hit += 1) {
    observe({
      kind: 'exchange-finished',
      service: 'site',
      route: '/site/v2/posts',
      method: 'GET',
      status: 200,
      cache: 'hit',
      durationSeconds: 0.000_01 + (hit % 100) / 1e7,
      upstreamSeconds: 0,
      ageSeconds: hit % 60,
      origin: 'client',
    })
  }
  return ((performance.now() - began) * 1e6) / hits
}

const times = { observed: [] as number[], dropped: [] as number[] }
for (let round = 0; round < rounds; round += 1) {
  times.dropped.push(nanosecondsPerHit(observers.dropped))
  times.observed.push(nanosecondsPerHit(observers.observed))
}
const cost = median(times.observed) - median(times.dropped)
console.log(`metrics: ${cost.toFixed(0)} ns a hit (${rounds} rounds of ${hits.toLocaleString('en')} hits)`)
console.log(`that is ${(cost / 200).toFixed(1)} % of a hit that takes 20 µs of processor time`)
if (dropped === 0) throw new Error('nothing was measured')
