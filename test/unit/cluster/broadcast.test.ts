import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import type { Invalidation } from '../../../src/cache/invalidation.ts'
import { pause } from '../../support/origin.ts'
import { type TestMember, testLedger } from './members.ts'

// Whatever is due next is due at once: the bounds below are on what is waited for, not on the machine.
beforeEach(() => {
  vi.useFakeTimers()
  vi.setTimerTickMode('nextTimerAsync')
  onTestFinished(() => {
    vi.useRealTimers()
  })
})

const leaseMs = 200
const invalidation: Invalidation = { kind: 'tag', tag: 'site/item/posts/1', mode: 'hard' }

const two = async (): Promise<{ a: TestMember; b: TestMember; ledger: ReturnType<typeof testLedger> }> => {
  const ledger = testLedger(leaseMs)
  const a = await ledger.join('a')
  const b = await ledger.join('b', () => 3)
  onTestFinished(async () => {
    await a.coherence.close()
    await b.coherence.close()
  })
  return { a, b, ledger }
}

const timed = async (work: Promise<unknown>): Promise<number> => {
  const began = performance.now()
  await work
  return performance.now() - began
}

test('a change counts as spread when the others have applied it, and their removed responses are counted', async () => {
  const { a, b } = await two()
  b.line.delayMs = 20
  expect(await a.coherence.broadcast([invalidation])).toEqual({ entries: 3, unacknowledged: false })
  expect(b.applied).toEqual([invalidation])
  expect(a.events).toContainEqual(
    expect.objectContaining({ kind: 'write-broadcast', outcome: 'acknowledged' }),
  )
})

test('a member that closes acknowledges a change when the others have applied it, and not before', async () => {
  const { a, b } = await two()
  b.line.delayMs = 50
  const order: string[] = []
  const spread = a.coherence.broadcast([invalidation]).then(({ unacknowledged }) => {
    order.push(`acknowledged by ${b.applied.length}, unacknowledged: ${unacknowledged}`)
  })
  await pause(5)
  const closed = a.coherence.close().then(() => order.push('closed'))
  await Promise.all([spread, closed])
  expect(order).toEqual(['acknowledged by 1, unacknowledged: false', 'closed'])
})

test('a silent member delays one change by at most one lease, and later changes not at all', async () => {
  const { a, b } = await two()
  b.line.cut = true
  const first = await timed(a.coherence.broadcast([invalidation]))
  expect(first).toBeLessThanOrEqual(leaseMs)
  expect(b.coherence.noLease()).toBe('unreachable')
  expect(await timed(a.coherence.broadcast([invalidation]))).toBe(0)
  expect(a.events).toContainEqual(expect.objectContaining({ kind: 'write-broadcast', outcome: 'lapsed' }))
})

test('the number of an invalidation of another member is not taken for its own when it settles a write that changed nothing', async () => {
  const { a, b } = await two()
  // The message with the invalidation is lost, or late.
  b.line.cut = true
  const spread = a.coherence.broadcast([invalidation])
  await pause(1)
  b.line.cut = false
  await b.coherence.broadcast([], 'b#1')
  await spread
  expect(b.applied).toEqual([invalidation])
})

test('a member that was cut off gets all invalidations before it trusts its memory again', async () => {
  const { a, b } = await two()
  b.line.cut = true
  await a.coherence.broadcast([invalidation])
  b.line.cut = false
  expect(b.applied).toEqual([])
  while (b.coherence.noLease() !== undefined) await pause(5)
  expect(b.applied).toEqual([invalidation])
})

test('notes that the ledger no longer has count as everything', async () => {
  const { a, b } = await two()
  const before = b.dropped
  b.line.cut = true
  for (let tag = 0; tag < 101; tag += 1) {
    await a.coherence.broadcast([{ kind: 'tag', tag: `t${tag}`, mode: 'hard' }])
  }
  b.line.cut = false
  while (b.coherence.noLease() !== undefined) await pause(5)
  expect(b.dropped).toBe(before + 1)
  expect(b.events).toContainEqual({ kind: 'memory-dropped' })
})

test('a writer that is cut off waits three leases, then not at all, and announces its writes when it returns', async () => {
  const { a, b } = await two()
  a.line.cut = true
  const first = await timed(a.coherence.broadcast([invalidation]))
  expect(first).toBe(leaseMs * 3)
  expect(await timed(a.coherence.broadcast([{ ...invalidation, tag: 'two' }]))).toBe(0)
  expect(b.applied).toEqual([])
  a.line.cut = false
  while (b.applied.length < 2) await pause(5)
  expect(b.applied).toEqual([invalidation, { ...invalidation, tag: 'two' }])
})

test('a process that was suspended while it searched for the ledger searches again before it acknowledges a write', async () => {
  let stopped = 0
  const clock = { now: () => Date.now() + stopped, monotonic: () => performance.now() + stopped }
  const ledger = testLedger(leaseMs, clock)
  const a = await ledger.join('a')
  const b = await ledger.join('b')
  onTestFinished(async () => {
    await a.coherence.close()
    await b.coherence.close()
  })
  a.line.cut = true
  while (!a.events.some(({ kind }) => kind === 'ledger-failed')) await pause(5)
  // Gone for long enough to be forgotten; a write's response is what it sees first when it goes on.
  stopped = 10_000
  const spread = a.coherence.broadcast([invalidation])
  a.line.cut = false
  await spread
  expect(b.applied).toEqual([invalidation])
  expect(a.events).not.toContainEqual(expect.objectContaining({ outcome: 'isolated' }))
})

test('a write of a member that ended before it was settled counts as carried out', async () => {
  const { a, b, ledger } = await two()
  const held: Invalidation = { kind: 'quarantine', tag: 'x', forMs: 1000 }
  await b.coherence.begin([held], true)
  const begun = await b.coherence.begin([{ kind: 'quarantine', tag: 'y', forMs: 1000 }], true)
  await b.coherence.broadcast([], begun.kind === 'begun' ? begun.write : undefined)
  await pause(20)
  ledger.ledger.forget('b')
  while (a.applied.length === 0) await pause(5)
  expect(a.applied).toEqual([held])
})

test('a suspended process finds its lease expired, by either clock', async () => {
  let wall = 0
  let monotonic = 0
  const clock = { now: () => Date.now() + wall, monotonic: () => performance.now() + monotonic }
  const ledger = testLedger(leaseMs, clock)
  const a = await ledger.join('a')
  onTestFinished(() => a.coherence.close())
  const trusts = (): boolean => a.coherence.mayTrust({ now: clock.now(), monotonic: clock.monotonic() })
  expect(trusts()).toBe(true)
  wall = 1000
  expect(trusts()).toBe(false)
  wall = 0
  expect(trusts()).toBe(true)
  monotonic = 1000
  expect(trusts()).toBe(false)
})

test('concurrent changes go in one message', async () => {
  const { a, b } = await two()
  b.line.delayMs = 5
  const invalidations = Array.from(
    { length: 50 },
    (_, tag): Invalidation => ({ kind: 'tag', tag: `t${tag}`, mode: 'hard' }),
  )
  await Promise.all(invalidations.map((one) => a.coherence.broadcast([one])))
  expect(b.applied).toHaveLength(50)
  expect(a.coherence.position.applied).toBeLessThan(5)
})

test('a write that cannot be announced is refused where configured, and this is reported once', async () => {
  const ledger = testLedger(leaseMs, undefined, true)
  const a = await ledger.join('a')
  const b = await ledger.join('b')
  onTestFinished(async () => {
    await a.coherence.close()
    await b.coherence.close()
  })
  expect(await a.coherence.begin([invalidation], true)).toMatchObject({ kind: 'begun' })
  a.line.cut = true
  expect(await a.coherence.begin([invalidation], true)).toEqual({ kind: 'refused' })
  expect(await timed(a.coherence.begin([invalidation], true))).toBe(0)
  // No other member needs an invalidation about responses that no member stores.
  expect(await a.coherence.begin([invalidation], false)).toMatchObject({ kind: 'begun' })
  expect(await a.coherence.broadcast([invalidation])).toEqual({ entries: 0, unacknowledged: true })
  const told = a.events.filter(({ kind }) => kind === 'cut-off' || kind === 'write-refused')
  expect(told).toEqual([
    { kind: 'write-refused' },
    { kind: 'cut-off', writes: 'refused' },
    { kind: 'write-refused' },
  ])
  a.line.cut = false
  while (a.coherence.noLease() !== undefined) await pause(5)
  expect(await a.coherence.begin([invalidation], true)).toMatchObject({ kind: 'begun' })
  // What was refused is not pending: only what was begun counts as carried out, perhaps.
  expect(ledger.ledger.forget('a')).toBe(2)
})

test('a member that joins after the last append alone has more invalidations than the ledger keeps is quarantined as a whole', async () => {
  const ledger = testLedger(leaseMs)
  const many = Array.from({ length: 150 }, (_, at) => `t:${at}`)
  ledger.ledger.append('a', ['h60000:late', ...many], [])
  const b = await ledger.join('b')
  onTestFinished(() => b.coherence.close())
  expect(b.applied).toContainEqual({ kind: 'quarantine', tag: '', forMs: expect.any(Number) })
})
