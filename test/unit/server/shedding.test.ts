import { describe, expect, test } from 'vitest'
import {
  createLastingDelay,
  createOverload,
  decidePressure,
  decideShedding,
  noPressure,
  type OverloadEvent,
  type PressureReadings,
  type PressureThresholds,
  type WorkClass,
} from '../../../src/server/overload.ts'

const idle: PressureReadings = { eventLoopDelayMs: 0, eventLoopUtilization: 0, heapBytes: 0, rssBytes: 0 }
const unlimited: PressureThresholds = { ...idle, inFlight: 0 }

describe('how much is given up', () => {
  test.each([
    ['nothing while nothing is looked at', { eventLoopDelayMs: 9e9 }, {}, noPressure],
    ['nothing below the threshold', { eventLoopDelayMs: 999 }, { eventLoopDelayMs: 1000 }, noPressure],
    [
      'the dearest at the threshold',
      { eventLoopDelayMs: 1000 },
      { eventLoopDelayMs: 1000 },
      [1, 'event-loop-delay'],
    ],
    [
      'more at twice the delay',
      { eventLoopDelayMs: 2000 },
      { eventLoopDelayMs: 1000 },
      [2, 'event-loop-delay'],
    ],
    [
      'everything at four times',
      { eventLoopDelayMs: 4000 },
      { eventLoopDelayMs: 1000 },
      [3, 'event-loop-delay'],
    ],
    [
      'the dearest alone for a loop that is busy all the time',
      { eventLoopUtilization: 1 },
      { eventLoopUtilization: 0.5 },
      [1, 'event-loop-utilization'],
    ],
    ['more from a tenth above in memory', { heapBytes: 110 }, { heapBytes: 100 }, [2, 'heap']],
    ['everything from a fifth above', { rssBytes: 120 }, { rssBytes: 100 }, [3, 'rss']],
    [
      'as the signal says that shows most',
      { rssBytes: 100, heapBytes: 110 },
      { rssBytes: 100, heapBytes: 100 },
      [2, 'heap'],
    ],
  ] as const)('%s', (_, readings, thresholds, expected) => {
    const pressure = decidePressure({ ...idle, ...readings }, { ...unlimited, ...thresholds })
    const [level, signal] = Array.isArray(expected) ? expected : [0, undefined]
    expect(pressure).toEqual({ level, signal })
  })
})

describe('refused requests', () => {
  const works: readonly WorkClass[] = ['batch', 'miss', 'pass', 'hit']
  test.each([
    [0, []],
    [1, ['batch', 'miss']],
    [2, ['batch', 'miss', 'pass']],
    [3, ['batch', 'miss', 'pass', 'hit']],
  ] as const)('at level %d: %j', (level, given) => {
    const pressure = level === 0 ? noPressure : ({ level, signal: 'rss' } as const)
    const shed = works.filter((work) => decideShedding(work, pressure, 1, unlimited) !== undefined)
    expect(shed).toEqual(given)
  })

  test.each([
    [7, []],
    [8, ['batch', 'miss']],
    [9, ['batch', 'miss']],
    [10, ['batch', 'miss', 'pass']],
  ] as const)('with %d of 10 places taken: %j', (inFlight, given) => {
    const shed = works.filter(
      (work) => decideShedding(work, noPressure, inFlight, { ...unlimited, inFlight: 10 }) === 'in-flight',
    )
    expect(shed).toEqual(given)
  })
})

test('each piece of work is reported, and each change of the level once', () => {
  const events: OverloadEvent[] = []
  const thresholds: PressureThresholds = { ...unlimited, rssBytes: 100 }
  const overload = createOverload({
    thresholds,
    inFlight: { count: 0 },
    report: (event) => events.push(event),
  })
  expect(overload.accepts('batch')).toBe(true)
  expect(overload.measured({ ...idle, rssBytes: 105 })).toBe(1)
  expect(overload.measured({ ...idle, rssBytes: 106 })).toBe(1)
  expect([overload.accepts('miss'), overload.accepts('pass')]).toEqual([false, true])
  overload.use({ ...thresholds, rssBytes: 200 })
  expect(overload.measured({ ...idle, rssBytes: 106 })).toBe(0)
  expect(overload.accepts('miss')).toBe(true)
  expect(events).toEqual([
    { kind: 'pressure-changed', level: 1, signal: 'rss' },
    { kind: 'shed', class: 'miss', signal: 'rss' },
    { kind: 'pressure-changed', level: 0, signal: undefined },
  ])
})

describe('the delay of the event loop', () => {
  const none = { count: 0, mean: Number.NaN }
  const samples = (...delaysMs: readonly number[]) => ({
    count: delaysMs.length,
    mean: (delaysMs.reduce((sum, delay) => sum + delay + 10, 0) / delaysMs.length) * 1e6,
  })

  test.each<[string, readonly [ReturnType<typeof samples>, number][], number]>([
    [
      'lasts as long as two intervals without a sample',
      [
        [none, 130],
        [none, 150],
      ],
      120,
    ],
    [
      'lasts for seconds where the loop is blocked for seconds',
      [
        [none, 5_010],
        [none, 6_010],
      ],
      5_000,
    ],
    [
      'is over after one interval without a sample',
      [
        [none, 5_010],
        [samples(0, 2), 100],
      ],
      1,
    ],
    [
      'is the mean of the samples',
      [
        [samples(30, 10), 100],
        [samples(40, 60), 100],
      ],
      20,
    ],
    [
      'is never negative',
      [
        [none, 5],
        [none, 5],
      ],
      0,
    ],
  ])('%s', (_, readings, expected) => {
    const lasting = createLastingDelay()
    expect(readings.map(([sampled, elapsedMs]) => lasting(sampled, elapsedMs)).at(-1)).toBe(expected)
  })

  test('of 100 ms in each of two short intervals sheds nothing at a threshold of a second', () => {
    const lasting = createLastingDelay()
    const [, eventLoopDelayMs = 0] = [lasting(none, 110), lasting(none, 110)]
    expect(decidePressure({ ...idle, eventLoopDelayMs }, { ...unlimited, eventLoopDelayMs: 1_000 })).toBe(
      noPressure,
    )
  })
})
