import { expect, test } from 'vitest'
import { decideRetry, type RetryFacts } from '../../../../src/upstream/send/decide-retry.ts'

const facts = (changes: Partial<RetryFacts>): RetryFacts => ({
  failure: { kind: 'broken' },
  repeatable: true,
  sent: true,
  replayable: true,
  attemptsMade: 1,
  attemptsAllowed: 2,
  otherTarget: false,
  remainingMs: 10_000,
  random: 0,
  ...changes,
})

const status = (retryAfterMs?: number) => ({ kind: 'status', retryAfterMs }) as const

test.each<[string, Partial<RetryFacts>, object]>([
  ['a GET whose connection broke', {}, { kind: 'retry', reason: 'connection-lost' }],
  ['a PUT whose connection broke', { repeatable: true }, { kind: 'retry' }],
  ['a POST whose connection broke', { repeatable: false }, { kind: 'give-up', reason: 'method' }],
  ['a PATCH whose connection broke', { repeatable: false }, { kind: 'give-up', reason: 'method' }],
  [
    'a POST that was never sent',
    { repeatable: false, sent: false, failure: { kind: 'unreachable' } },
    { kind: 'retry', reason: 'connect-failed' },
  ],
  ['a PUT whose stream was read', { replayable: false }, { kind: 'give-up', reason: 'content-consumed' }],
  ['the last attempt', { attemptsMade: 2 }, { kind: 'give-up', reason: 'attempts-used' }],
  [
    'a slow target without another',
    { failure: { kind: 'timeout' } },
    { kind: 'give-up', reason: 'no-other-target' },
  ],
  [
    'a slow target with another',
    { failure: { kind: 'timeout' }, otherTarget: true },
    { kind: 'retry', reason: 'timed-out' },
  ],
  ['a 503 without another target', { failure: status() }, { kind: 'give-up', reason: 'no-other-target' }],
  [
    'a 503 with another target',
    { failure: status(), otherTarget: true },
    { kind: 'retry', reason: 'status' },
  ],
  [
    'a 503 that names one second',
    { failure: status(1_000) },
    { kind: 'retry', reason: 'status-retry-after', waitMs: 1_000 },
  ],
  [
    'a 503 that names ten minutes',
    { failure: status(600_000) },
    { kind: 'give-up', reason: 'retry-after-too-long' },
  ],
  [
    'a wait beyond the deadline',
    { failure: status(1_000), remainingMs: 900 },
    { kind: 'give-up', reason: 'deadline' },
  ],
  [
    'the second of three attempts: the jitter doubles',
    { attemptsMade: 2, attemptsAllowed: 3, random: 0.5 },
    { kind: 'retry', waitMs: 25 },
  ],
])('%s', (_, changes, decision) => {
  expect(decideRetry(facts(changes))).toMatchObject(decision)
})
