import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createRetryBudget } from '../../../../src/upstream/send/retry-budget.ts'

test('under total failure a fifth of the requests is retried, not more', () => {
  const budget = createRetryBudget(0.2)
  let retries = 0
  for (let i = 0; i < 1_000; i += 1) {
    budget.requested(i)
    if (budget.take(i)) retries += 1
  }
  expect(retries).toBe(200)
})

test('with little traffic a few retries are allowed, and again after the window', () => {
  const budget = createRetryBudget(0.2)
  budget.requested(0)
  expect([0, 0, 0, 0].map((ms) => budget.take(ms))).toEqual([true, true, true, false])
  expect(budget.take(9_999)).toBe(false)
  expect(budget.take(10_000)).toBe(true)
})

test('`left` is the number of retries that `take` would grant', () => {
  const budget = createRetryBudget(0.2)
  for (let i = 0; i < 100; i += 1) budget.requested(0)
  expect(budget.left(0)).toBe(20)
  budget.take(0)
  expect(budget.left(9_999)).toBe(19)
  expect(budget.left(10_000)).toBe(3)
})

test('a budget of nothing allows nothing', () => {
  const budget = createRetryBudget(0)
  budget.requested(0)
  expect(budget.take(0)).toBe(false)
})

test('in no ten seconds are there more retries than the share of the requests, or three', () => {
  const steps = fc.array(fc.tuple(fc.integer({ min: 0, max: 4_000 }), fc.boolean()), { maxLength: 200 })
  fc.assert(
    fc.property(steps, (calls) => {
      const budget = createRetryBudget(0.2)
      let now = 0
      const requests: number[] = []
      const retries: number[] = []
      for (const [elapsed, isRetry] of calls) {
        now += elapsed
        if (!isRetry) {
          budget.requested(now)
          requests.push(now)
        } else if (budget.take(now)) {
          retries.push(now)
          const since = (at: number) => Math.floor(at / 1000) > Math.floor(now / 1000) - 10
          expect(retries.filter(since).length).toBeLessThanOrEqual(
            Math.max(3, 0.2 * requests.filter(since).length),
          )
        }
      }
    }),
  )
})
