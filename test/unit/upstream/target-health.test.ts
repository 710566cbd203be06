import { expect, test } from 'vitest'
import {
  afterAbandonedTrial,
  afterFailure,
  afterSuccess,
  isDown,
  mayEject,
  standingOf,
  type TargetHealth,
  untriedHealth,
} from '../../../src/upstream/target-health.ts'

const options = { after: 3, forMs: 1_000, maxShare: 0.5 }

const failTimes = (times: number, mayLeave: boolean): { health: TargetHealth; changes: string[] } => {
  let health: TargetHealth = untriedHealth
  const changes: string[] = []
  for (let i = 0; i < times; i += 1) {
    const next = afterFailure(health, 0, options, mayLeave)
    health = next.health
    changes.push(next.change)
  }
  return { health, changes }
}

test('leaves after three failures in a row, comes due, and a good trial brings it back', () => {
  const { health, changes } = failTimes(3, true)
  expect(changes).toEqual(['none', 'none', 'ejected'])
  expect(standingOf(health, 999)).toBe('out')
  expect(standingOf(health, 1_000)).toBe('trial-due')
  expect(standingOf({ state: 'trial' }, 5_000)).toBe('out')
  expect(afterSuccess({ state: 'trial' }, true)).toEqual({ health: untriedHealth, change: 'returned' })
})

test('a success in between starts the count anew', () => {
  const { health } = failTimes(2, true)
  expect(afterSuccess(health, false).health).toEqual(untriedHealth)
})

test('a failed trial sends it away again', () => {
  expect(afterFailure({ state: 'trial' }, 500, options, false)).toEqual({
    health: { state: 'ejected', untilMs: 1_500 },
    change: 'ejected',
  })
})

test('stays when too many are out, and says so once', () => {
  expect(failTimes(5, false).changes).toEqual(['none', 'none', 'ejection-withheld', 'none', 'none'])
})

test('a late answer to a request from before does not end an ejection', () => {
  const ejected: TargetHealth = { state: 'ejected', untilMs: 1_000 }
  expect(afterSuccess(ejected, false)).toEqual({ health: ejected, change: 'none' })
})

test('a trial nobody waited for is due again', () => {
  expect(standingOf(afterAbandonedTrial({ state: 'trial' }, 70), 70)).toBe('trial-due')
})

test.each([
  [0, 1, 0.5, false],
  [0, 2, 0.5, true],
  [1, 2, 0.5, false],
  [0, 3, 0.5, true],
  [1, 4, 0.5, true],
  [2, 4, 0.5, false],
  [0, 1, 1, true],
])('with %i of %i out and a share of %d one more may leave: %s', (out, total, share, may) => {
  expect(mayEject(out, total, share)).toBe(may)
})

const failing = (failures: number) => ({
  health: { state: 'healthy', failures } as TargetHealth,
  probeFailed: false,
})
const probedAway = { ...failing(0), probeFailed: true }
const ejected = { health: { state: 'ejected', untilMs: 1 } as TargetHealth, probeFailed: false }

test.each([
  ['one target is well', 'closed', [ejected, failing(2)], false],
  ['the only one fails and must stay', 'closed', [failing(3)], true],
  ['each is out for a reason of its own', 'closed', [ejected, probedAway, failing(9)], true],
  ['the breaker is open', 'open', [failing(0)], true],
  ['the breaker is finding out', 'half-open', [failing(0)], true],
] as const)('nothing is to be expected: %s', (_, breaker, targets, expected) => {
  expect(isDown(breaker, targets, 3)).toBe(expected)
})
