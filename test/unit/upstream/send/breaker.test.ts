import { expect, test } from 'vitest'
import type { UpstreamEvent } from '../../../../src/upstream/events.ts'
import { type Breaker, createBreaker, type Ticket } from '../../../../src/upstream/send/breaker.ts'

const options = { service: 'test', failureRatio: 0.5, minRequests: 4, windowMs: 1_000, forMs: 500, probes: 2 }

const breakerOf = (changes: Partial<typeof options> = {}) => {
  const events: UpstreamEvent[] = []
  const breaker = createBreaker({ ...options, ...changes }, (event) => events.push(event))
  const states = () => events.flatMap((event) => (event.kind === 'breaker-changed' ? [event.to] : []))
  const refusals = () => events.filter(({ kind }) => kind === 'breaker-refused').length
  return { breaker, states, refusals }
}

const entered = (breaker: Breaker, nowMs: number): Ticket => {
  const entry = breaker.enter(nowMs)
  if (typeof entry === 'number') throw new Error(`refused for ${entry} ms`)
  return entry
}

const ask = (breaker: Breaker, results: string, nowMs: number): void => {
  for (const letter of results) {
    const result = letter === 'f' ? 'failed' : letter === 'a' ? 'answered' : 'withdrawn'
    breaker.settle(entered(breaker, nowMs), result, nowMs)
  }
}

test.each([
  ['too few requests say nothing', 'fff', 'closed'],
  ['at the ratio it opens', 'aaff', 'open'],
  ['below the ratio it stays', 'aaafaf', 'closed'],
  ['who went away says nothing either way', 'fuufuuf', 'closed'],
  ['only a failure opens it', 'ffaa', 'closed'],
])('%s: %s', (_, results, state) => {
  const { breaker } = breakerOf()
  ask(breaker, results, 100)
  expect(breaker.state).toBe(state)
})

test('a ratio of 0 never opens', () => {
  const { breaker } = breakerOf({ failureRatio: 0 })
  ask(breaker, 'f'.repeat(100), 100)
  expect(breaker.state).toBe('closed')
})

test('results older than the window do not count', () => {
  const { breaker } = breakerOf()
  ask(breaker, 'fff', 100)
  ask(breaker, 'f', 1_200)
  expect(breaker.state).toBe('closed')
})

test('open, it refuses for its time and tells how long', () => {
  const { breaker, refusals } = breakerOf()
  ask(breaker, 'ffff', 100)
  expect(breaker.enter(200)).toBe(400)
  expect(breaker.refusal(599)).toBe(1)
  expect(breaker.refusal(600)).toBeUndefined()
  expect(refusals()).toBe(2)
})

test('half-open, as many as allowed find out, and all must be answered', () => {
  const { breaker, states } = breakerOf()
  ask(breaker, 'ffff', 100)
  const probes = [entered(breaker, 600), entered(breaker, 600)]
  expect(breaker.enter(600)).toBe(1_000)
  breaker.settle(probes[0] as Ticket, 'answered', 610)
  expect(breaker.enter(610)).toBe(1_000)
  breaker.settle(probes[1] as Ticket, 'answered', 620)
  expect(states()).toEqual(['open', 'half-open', 'closed'])
  ask(breaker, 'fff', 630)
  expect(breaker.state).toBe('closed')
})

test('one failed probe opens it again; a probe whose client disconnected is replaced by another', () => {
  const { breaker, states } = breakerOf()
  ask(breaker, 'ffff', 100)
  ask(breaker, 'uuu', 600)
  ask(breaker, 'f', 600)
  expect(states()).toEqual(['open', 'half-open', 'open'])
  expect(breaker.enter(700)).toBe(400)
})

test('late results of requests admitted before a change do not count', () => {
  const { breaker } = breakerOf()
  const early = entered(breaker, 50)
  ask(breaker, 'ffff', 100)
  const probe = entered(breaker, 600)
  breaker.settle(early, 'failed', 610)
  expect(breaker.state).toBe('half-open')
  breaker.settle(early, 'answered', 610)
  breaker.settle(probe, 'answered', 620)
  expect(breaker.state).toBe('half-open')
})
