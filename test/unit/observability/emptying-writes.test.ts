import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { ExchangeFinishedEvent } from '../../../src/exchange/events.ts'
import { createEmptyingLog } from '../../../src/observability/event-lines.ts'
import { type Metrics, observedBy } from '../../../src/observability/metrics.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const hour = 3_600_000

const write = (route: string, more: Partial<ExchangeFinishedEvent> = {}): ExchangeFinishedEvent => ({
  kind: 'exchange-finished',
  writeKind: 'unclassified',
  invalidated: { tags: ['blog/all'], entries: 2, urls: [], reachesEverything: true },
  service: 'pages',
  route,
  method: 'POST',
  status: 200,
  cache: 'bypass',
  durationSeconds: 0,
  upstreamSeconds: 0,
  origin: 'client',
  ...more,
})

const linesOf = (events: readonly ExchangeFinishedEvent[]): readonly (readonly [object, string])[] => {
  const lines: (readonly [object, string])[] = []
  const counted: unknown[] = []
  const metrics = { observe: { exchange: (event: unknown) => counted.push(event) } } as unknown as Metrics
  const { observe } = observedBy(
    metrics,
    createEmptyingLog({ warn: (facts, message) => lines.push([facts, message]) }),
  )
  for (const event of events) observe.exchange(event)
  expect(counted).toEqual(events)
  expect(lines).toEqual([])
  vi.advanceTimersByTime(hour)
  const first = [...lines]
  vi.advanceTimersByTime(hour)
  expect(lines).toEqual(first)
  return first
}

const often = (event: ExchangeFinishedEvent, times = 12): readonly ExchangeFinishedEvent[] =>
  Array.from({ length: times }, () => event)

test('once an hour a warning names the routes whose unknown writes removed the most, and the setting', () => {
  const lines = linesOf([
    ...often(write('/a')),
    ...often(write('/b'), 20),
    ...often(
      write('/c', { invalidated: { tags: ['blog/all'], entries: 9, urls: [], reachesEverything: true } }),
    ),
    ...often(write('/d'), 13),
  ])
  const setting = 'cache.harmlessWrites, or changes'
  expect(lines).toEqual(
    [
      { service: 'pages', route: 'POST /c', writes: 12, responses: 108, setting },
      { service: 'pages', route: 'POST /b', writes: 20, responses: 40, setting },
      { service: 'pages', route: 'POST /d', writes: 13, responses: 26, setting },
    ].map((facts) => [facts, 'writes-emptied-cache']),
  )
})

test.each([
  ['few', often(write('/a'), 11)],
  ['reported', often(write('/a', { writeKind: 'reported' }))],
  [
    'that remove nothing',
    often(
      write('/a', { invalidated: { tags: ['blog/all'], entries: 0, urls: [], reachesEverything: true } }),
    ),
  ],
  [
    'that reach what they name',
    often(
      write('/a', {
        invalidated: { tags: ['blog/posts/5'], entries: 3, urls: [], reachesEverything: false },
      }),
    ),
  ],
])('writes %s are not named', (_, events) => {
  expect(linesOf(events)).toEqual([])
})

test('thousands of routes cost no more than 200', () => {
  const routes = Array.from({ length: 5_000 }, (_, at) => write(`/${at}`))
  expect(linesOf([...routes, ...often(write('/4999')), ...often(write('/0'))])).toMatchObject([
    [{ route: 'POST /0' }, 'writes-emptied-cache'],
  ])
})
