import { execFileSync } from 'node:child_process'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ExchangeFinishedEvent } from '../../../src/exchange/events.ts'
import { observeValue } from '../../../src/observability/metrics/observe-events.ts'
import { createHistogramSeries, metricTable } from '../../../src/observability/metrics/registry.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { descriptionLabels } from '../../../src/wordpress/tags/description-labels.ts'
import { cost } from '../../support/cost.ts'
import { describeWith } from '../../support/requirements.ts'

const build = () => createMetrics({ descriptionLabels, version: '1', configHash: 'a', processMetrics: false })
const exchange: ExchangeFinishedEvent = {
  kind: 'exchange-finished',
  service: 'site',
  route: '/site/v2/posts',
  method: 'GET',
  status: 200,
  cache: 'hit',
  durationSeconds: 0.001,
  upstreamSeconds: 0,
  origin: 'client',
}

test('100,000 different methods and statuses add no more series than there are labels', async () => {
  const metrics = build()
  for (let index = 0; index < 100_000; index += 1) {
    metrics.observe.exchange({ ...exchange, method: `M${index}`, status: index })
  }
  const lines = (await metrics.scrape())
    .split('\n')
    .filter((line) => line.startsWith('trellis_requests_total{'))
  expect(lines).toHaveLength(6)
})

test('routes that should not be there end in one overflow series, and nothing is lost', async () => {
  const metrics = build()
  for (let index = 0; index < 10_000; index += 1)
    metrics.observe.exchange({ ...exchange, route: `/r${index}` })
  const text = await metrics.scrape()
  const lines = text.split('\n').filter((line) => line.startsWith('trellis_requests_total{'))
  expect(lines).toHaveLength(2_001)
  expect(lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)).toBe(10_000)
  expect(text).toContain(
    'route="_overflow",method="_overflow",status_class="_overflow",cache="_overflow"} 8000',
  )
  expect(text).toContain('trellis_metrics_overflow_total{metric="trellis_requests_total"} 8000')
})

test('label values that could break a line are escaped', async () => {
  const metrics = build()
  metrics.observe.exchange({ ...exchange, route: 'a"} 5\nforged{x="\\' })
  const lines = (await metrics.scrape()).split('\n').filter((line) => line.includes('forged'))
  for (const line of lines)
    expect(line).toMatch(/^trellis_[a-z_]+\{.*route="a\\"\} 5\\nforged\{x=\\"\\\\".*\} [\d.]+$/)
  expect(lines.length).toBeGreaterThan(0)
})

test('a histogram counts each value in the buckets it belongs to', () => {
  const bounds = [0.1, 1, 10]
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.constantFrom(0, 0.1, 1, 10), fc.double({ min: -1, max: 20, noNaN: true }))),
      (values) => {
        const series = createHistogramSeries(bounds)
        for (const value of values) observeValue(series, value)
        const upTo = (bound: number, index: number) => {
          const counted = series.counts.slice(0, index + 1).reduce((sum, count) => sum + count, 0)
          expect(counted).toBe(values.filter((value) => value <= bound).length)
        }
        bounds.forEach(upTo)
        expect(series.counts.reduce((sum, count) => sum + count, 0)).toBe(values.length)
      },
    ),
  )
})

test.each([Number.NaN, Number.POSITIVE_INFINITY])('%s does not spoil a sum', (value) => {
  const series = createHistogramSeries([1])
  observeValue(series, 0.5)
  observeValue(series, value)
  expect([...series.counts, series.sum]).toEqual([1, 0, 0.5])
})

test('names follow the conventions of Prometheus', () => {
  const rows = Object.values(metricTable)
  expect(new Set(rows.map(({ name }) => name)).size).toBe(rows.length)
  for (const { name, type, help } of rows) {
    expect(name).toMatch(/^trellis_[a-z_]+$/)
    expect(name.endsWith('_total'), name).toBe(type === 'counter')
    expect(name).not.toMatch(/_(ms|milliseconds|kb|kib|percent)(_|$)/)
    expect(help.endsWith('.'), name).toBe(true)
  }
})

test('an observation of a hit costs about as much as the additions', () => {
  const metrics = build()
  const rounds = 200_000
  const observe = (): void => {
    for (let index = 0; index < rounds; index += 1) metrics.observe.exchange(exchange)
  }
  observe()
  // Around 100 ns each, 20 ms in all; hashing labels each time would be ten times that.
  expect(cost(observe, 150)).toBeLessThan(150)
})

describeWith('promtool', 'a scrape', () => {
  test('passes promtool', async () => {
    const metrics = createMetrics({ descriptionLabels, version: '1', configHash: 'a', processMetrics: true })
    metrics.observe.exchange(exchange)
    metrics.readAtScrape({
      publicSide: () => ({ inFlight: 1, connections: 3, receivedBytes: 4, sentBytes: 5, draining: false }),
      bufferedBytes: () => 0,
      websockets: () => [],
      cache: () => ({ entries: 1, bytes: 1, maxBytes: 1 }),
      upstreams: () => [
        {
          service: 'site',
          inFlight: 1,
          queued: 1,
          waitingForClients: 0,
          breaker: 'closed',
          retriesLeft: 3,
          targets: [
            { origin: 'http://a', state: 'healthy', outstanding: 1, connections: 3, idleConnections: 1 },
          ],
        },
      ],
    })
    const input = await metrics.scrape()
    expect(
      execFileSync('promtool', ['check', 'metrics'], {
        input,
        encoding: 'utf8',
        stdio: ['pipe', 'pipe', 'pipe'],
      }),
    ).toBe('')
  })
})
