import { expect, test } from 'vitest'
import { mayServeOnError } from '../../../../src/cache/policy/reuse.ts'
import { storedAt } from '../stored-at.ts'

const minuteMs = 60_000

/** Fresh for a minute by itself, for an hour while its changes are heard of, and served for two minutes more when the upstream fails. */
const heardOf = (feedEndedMs: number) => ({
  ...storedAt({ target: 5, tags: [], order: 1 }),
  lifetimeMs: minuteMs,
  staleIfErrorMs: 2 * minuteMs,
  feedLifetime: {
    lifetimeMs: 60 * minuteMs,
    feed: { isCurrent: () => false, endedMs: () => feedEndedMs },
  },
})

test.each([
  ['within its own lifetime and the time after it', 2, 30, true],
  ['long after it, when its changes were heard of until a minute ago', 30, 1, true],
  ['when they were heard of until three minutes ago', 30, 3, false],
  ['when it is older than its lifetime with changes', 90, 1, false],
])('a stored response is served when the upstream fails: %s', (_, ageMinutes, endedMinutes, expected) => {
  const at = { now: ageMinutes * minuteMs, monotonic: ageMinutes * minuteMs }
  expect(mayServeOnError(heardOf(endedMinutes * minuteMs), 'server-error', 'safe', at)).toBe(expected)
})
