import { expect, test } from 'vitest'
import {
  afterAbandonedTrial,
  afterCheck,
  afterFailure,
  afterSuccess,
  isDown,
  mayEject,
  stateOf,
  statusOf,
  type TargetHealth,
  uncheckedState,
  untriedHealth,
} from '../../../src/upstream/targets/target-health.ts'

const options = { after: 3, forMs: 1_000, maxShare: 0.5 }

const failTimes = (times: number, mayLeave: boolean): TargetHealth => {
  let health: TargetHealth = untriedHealth
  for (let i = 0; i < times; i += 1) health = afterFailure(health, 0, options, mayLeave)
  return health
}

const unchecked = { checks: uncheckedState, leftOut: false, hasResponded: true }

test('is ejected after three consecutive failures, and returns after a successful trial', () => {
  expect(failTimes(2, true)).toEqual({ state: 'healthy', failures: 2 })
  const health = failTimes(3, true)
  expect(statusOf(health, 999)).toBe('out')
  expect(statusOf(health, 1_000)).toBe('trial-due')
  expect(statusOf({ state: 'trial' }, 5_000)).toBe('out')
  expect(afterSuccess({ state: 'trial' }, true)).toEqual(untriedHealth)
})

test('a success in between starts the count anew', () => {
  expect(afterSuccess(failTimes(2, true), false)).toEqual(untriedHealth)
})

test('a failed trial sends it away again', () => {
  expect(afterFailure({ state: 'trial' }, 500, options, false)).toEqual({
    state: 'ejected',
    untilMs: 1_500,
  })
})

test('a target that fails while too many others are out stays in use and counts as failing', () => {
  const health = failTimes(5, false)
  expect(statusOf(health, 0)).toBe('usable')
  expect(stateOf({ ...unchecked, health }, 3)).toBe('failing')
  expect(stateOf({ ...unchecked, health: failTimes(2, false) }, 3)).toBe('healthy')
  expect(stateOf({ ...unchecked, health: { state: 'trial' } }, 3)).toBe('left-out')
})

test('checks change what is thought of a target after failAfter or recoverAfter of them in a row', () => {
  const bounds = { failAfter: 2, recoverAfter: 3 }
  const afterChecks = (results: string): boolean =>
    [...results].reduce((state, result) => afterCheck(state, result === '+', bounds), uncheckedState).failing
  expect(['-', '-+-', '--', '--+', '--++-++', '--+++', '--+++-'].map(afterChecks)).toEqual([
    false,
    false,
    true,
    true,
    true,
    false,
    false,
  ])
  const failing = { failing: true, against: 0 }
  expect(stateOf({ health: untriedHealth, checks: failing, leftOut: false, hasResponded: true }, 3)).toBe(
    'failing',
  )
  expect(stateOf({ health: untriedHealth, checks: failing, leftOut: true, hasResponded: true }, 3)).toBe(
    'left-out',
  )
})

test('a late response to a request from before does not end an ejection', () => {
  const ejected: TargetHealth = { state: 'ejected', untilMs: 1_000 }
  expect(afterSuccess(ejected, false)).toEqual(ejected)
})

test('an aborted trial is due again', () => {
  expect(statusOf(afterAbandonedTrial({ state: 'trial' }, 70), 70)).toBe('trial-due')
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

test('a target that has never answered is unknown until its first failure', () => {
  const untried = { ...unchecked, health: untriedHealth, hasResponded: false }
  expect(stateOf(untried, 3)).toBe('unknown')
  expect(stateOf({ ...untried, health: failTimes(1, false) }, 3)).toBe('failing')
  expect(stateOf({ ...untried, checks: { failing: false, against: 1 } }, 3)).toBe('failing')
  expect(stateOf({ ...untried, hasResponded: true, checks: { failing: false, against: 1 } }, 3)).toBe(
    'healthy',
  )
})

const [healthy, failing, leftOut, unknown] = [
  { state: 'healthy' },
  { state: 'failing' },
  { state: 'left-out' },
  { state: 'unknown' },
] as const

test.each([
  ['one target is healthy', 'closed', [leftOut, healthy], false],
  ['the only one fails and stays in use', 'closed', [failing], true],
  ['each of them fails', 'closed', [leftOut, failing], true],
  ['nothing is known', 'closed', [unknown], false],
  ['one fails, and of the other nothing is known', 'closed', [failing, unknown], false],
  ['the breaker is open', 'open', [healthy], true],
  ['the breaker is half-open', 'half-open', [healthy], true],
] as const)('an upstream is down or not: %s', (_, breaker, targets, expected) => {
  expect(isDown(breaker, targets)).toBe(expected)
})
