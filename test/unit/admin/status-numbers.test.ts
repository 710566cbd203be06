import { expect, test } from 'vitest'
import {
  counted,
  duration,
  durationFrom,
  lately,
  percent,
  quantile,
  quantileText,
  rate,
  rateText,
  size,
  withinText,
} from '../../../public/status/numbers.js'

const buckets = (...counts: readonly number[]) =>
  counts.map((count, at) => ({ le: [0.01, 0.1, 1, null][at] ?? null, count }))

test.each([
  { what: 'steps over time', now: 30, before: 10, seconds: 10, expected: 2 },
  { what: 'a counter that began anew', now: 5, before: 1000, seconds: 10, expected: 0.5 },
  { what: 'no time between two reports', now: 5, before: 1, seconds: 0, expected: 0 },
])('rate: $what', ({ now, before, seconds, expected }) => expect(rate(now, before, seconds)).toBe(expected))

test.each([
  {
    what: 'in the middle of a bucket',
    now: buckets(0, 10, 10, 10),
    before: buckets(0, 0, 0, 0),
    share: 0.5,
    expected: 0.055,
  },
  {
    what: 'of what came since only',
    now: buckets(90, 90, 100, 100),
    before: buckets(90, 90, 90, 90),
    share: 0.5,
    expected: 0.55,
  },
  {
    what: 'above the last bound',
    now: buckets(0, 0, 0, 4),
    before: buckets(0, 0, 0, 0),
    share: 0.99,
    expected: 1,
  },
  {
    what: 'without observations',
    now: buckets(3, 3, 3, 3),
    before: buckets(3, 3, 3, 3),
    share: 0.5,
    expected: undefined,
  },
  {
    what: 'after a restart',
    now: buckets(2, 2, 2, 2),
    before: buckets(9, 9, 9, 9),
    share: 0.5,
    expected: 0.005,
  },
])('quantile: $what', ({ now, before, share, expected }) => {
  const found = quantile(now, before, share)
  if (expected === undefined) expect(found).toBeUndefined()
  else expect(found).toBeCloseTo(expected, 9)
})

const none = buckets(0, 0, 0, 0)

test.each([
  { what: 'between two bounds', now: buckets(0, 10, 10, 10), before: none, expected: '55 ms' },
  { what: 'below the first bound', now: buckets(9, 9, 9, 9), before: none, expected: '< 10 ms' },
  {
    what: 'above the last bound',
    now: none.with(3, { le: null, count: 4 }),
    before: none,
    expected: '> 1 s',
  },
  { what: 'without observations', now: none, before: none, expected: '–' },
])('quantileText $what says no more than is known', ({ now, before, expected }) =>
  expect(quantileText(now, before, 0.5)).toBe(expected),
)

test.each([
  { what: 'a bound', now: buckets(0, 99, 100, 100), before: none, expected: '100 ms' },
  {
    what: 'what came since',
    now: buckets(90, 90, 100, 100),
    before: buckets(90, 90, 90, 90),
    expected: '1 s',
  },
  {
    what: 'all, when nothing came since',
    now: buckets(9, 9, 9, 9),
    before: buckets(9, 9, 9, 9),
    expected: '10 ms',
  },
  { what: 'that it is above the last one', now: buckets(0, 0, 0, 4), before: none, expected: '> 1 s' },
  { what: 'nothing', now: none, before: none, expected: '–' },
])('withinText: $what', ({ now, before, expected }) => expect(withinText(now, before, 0.99)).toBe(expected))

test('lately adds up the last columns of the history, and takes the times of the slower requests in them', () => {
  const history = {
    seconds: 10,
    requests: [null, 100, 30, 10],
    errors: [null, 5, 1, 0],
    hitRatio: [null, 0, 0.5, 1],
    p50: [null, 0.2, 0.1, null],
    p99: [null, 2, 1, null],
  }
  expect(lately(history, 2)).toEqual({ asked: 40, hits: 25, failed: 1, seconds: 20, p50: 0.1, p99: 1 })
  expect(lately(history, 4)).toMatchObject({ asked: 140, seconds: 30, p50: 0.2, p99: 2 })
})

test.each([
  [rateText(0), '0 /s'],
  [rateText(0.02), '1.2 /min'],
  [rateText(40), '40 /s'],
  [durationFrom(0.0005, 0.0002), '< 500 µs'],
  [durationFrom(0.0005, 0.002), '2 ms'],
  [durationFrom(0.0005, undefined), '–'],
  [counted(1, 'reader'), '1 reader'],
  [counted(0, 'reader'), '0 readers'],
  [counted(1200, 'reader'), '1,200 readers'],
  [duration(undefined), '–'],
  [duration(0.00025), '250 µs'],
  [duration(0.0123), '12 ms'],
  [duration(2.5), '2.5 s'],
  [size(0), '0 B'],
  [size(1536), '1.5 KiB'],
  [size(256 * 1024 * 1024), '256 MiB'],
  [percent(1, 3), '33.3 %'],
  [percent(0, 0), '–'],
])('%s', (shown, expected) => expect(shown).toBe(expected))
