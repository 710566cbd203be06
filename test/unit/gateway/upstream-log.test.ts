import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createStateLog } from '../../../src/observability/event-lines.ts'
import { createMetrics, observedBy } from '../../../src/observability/metrics.ts'
import type { UpstreamEvent } from '../../../src/upstream/events.ts'
import { descriptionLabels } from '../../../src/wordpress/tags/description-labels.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

type Line = readonly [level: string, facts: Record<string, unknown>, message: string]

const logged = () => {
  const lines: Line[] = []
  const { observe } = observedBy(
    createMetrics({ descriptionLabels, version: '1', configHash: 'a', processMetrics: false }),
    createStateLog({
      info: (facts, message) => void lines.push(['info', { ...facts }, message]),
      warn: (facts, message) => void lines.push(['warn', { ...facts }, message]),
    }),
  )
  return { lines, report: observe.upstream, observe }
}

const changeOf = (to: 'healthy' | 'failing', target = 'http://a'): UpstreamEvent => ({
  kind: 'target-changed',
  service: 'site',
  target,
  from: to === 'healthy' ? 'failing' : 'healthy',
  to,
  cause: 'because',
})

test('each change has one line with its facts, other events have none', () => {
  const { lines, report } = logged()
  report(changeOf('failing'))
  report({ kind: 'breaker-changed', service: 'site', from: 'open', to: 'half-open', cause: 'because' })
  report({ kind: 'check-finished', service: 'site', target: 'http://a', result: 'timeout' })
  report({ kind: 'breaker-refused', service: 'site' })
  expect(lines).toEqual([
    [
      'warn',
      { service: 'site', target: 'http://a', from: 'healthy', to: 'failing', cause: 'because' },
      'target-changed',
    ],
    ['info', { service: 'site', from: 'open', to: 'half-open', cause: 'because' }, 'breaker-changed'],
  ])
})

test('constant changes get ten lines a minute, and the last one has the current state', () => {
  const { lines, report } = logged()
  for (let i = 0; i < 1_001; i += 1) report(changeOf(i % 2 === 0 ? 'failing' : 'healthy'))
  expect(lines).toHaveLength(10)
  report(changeOf('failing', 'http://b'))
  expect(lines).toHaveLength(11)
  vi.advanceTimersByTime(60_000)
  expect(lines).toHaveLength(12)
  expect(lines.at(-1)).toMatchObject([
    'warn',
    { target: 'http://a', to: 'failing', held: 990 },
    'target-changed',
  ])
  vi.advanceTimersByTime(600_000)
  expect([lines.length, vi.getTimerCount()]).toEqual([12, 0])
  report(changeOf('healthy'))
  expect(lines).toHaveLength(13)
})

test('stale responses because of upstream errors have one line when they begin and one when they end', () => {
  const { lines, observe } = logged()
  const stale = { kind: 'served-stale', service: 'site', reason: 'error', failure: 'unreachable' } as const
  for (let i = 0; i < 500; i += 1) {
    observe.cache(stale)
    vi.advanceTimersByTime(9_000)
  }
  observe.cache({ kind: 'served-stale', service: 'site', reason: 'revalidating' })
  observe.cache({ ...stale, service: 'other', failure: 'server-error' })
  expect(lines).toEqual([
    ['warn', { service: 'site', cause: 'unreachable' }, 'stale-answers-began'],
    ['warn', { service: 'other', cause: 'server-error' }, 'stale-answers-began'],
  ])
  vi.advanceTimersByTime(1_000)
  expect(lines.at(-1)).toEqual(['info', { service: 'site', answers: 500 }, 'stale-answers-ended'])
  observe.cache(stale)
  expect(lines).toHaveLength(4)
})
