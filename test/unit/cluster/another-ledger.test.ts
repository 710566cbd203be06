import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Invalidation } from '../../../src/cache/invalidation.ts'
import { createCoherence } from '../../../src/cluster/coherence.ts'
import type { Appended, LedgerPush, Synced } from '../../../src/cluster/ledger.ts'

// Steps that the simulation does not show, since others guard the same (docs/evidence/planted-protocol-faults.md).

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const leaseMs = 10_000
const dropped: Invalidation = { kind: 'tag', tag: 'site/item/posts/7', mode: 'hard' }

/** A member of a ledger that answers as it is told. */
const member = (ledger: {
  sync(): Promise<Partial<Synced>>
  append?(invalidations: readonly string[]): Promise<Appended>
}) => {
  const applied: Invalidation[] = []
  const asked = { syncs: 0 }
  let push: (push: LedgerPush) => void = () => undefined
  const coherence = createCoherence({
    member: 'a',
    ledger: {
      sync: async () => {
        asked.syncs += 1
        const empty = { epoch: 'one', seq: 0, floor: 0, invalidations: [], members: [] }
        return { ...empty, lease: 'granted', ...(await ledger.sync()) }
      },
      begin: async () => undefined,
      append: ledger.append ?? (async () => ({ epoch: 'one', seq: 1, members: [] })),
      acknowledge: () => undefined,
      forget: async () => undefined,
      listen: (take) => {
        push = take
      },
      leave: async () => undefined,
    },
    canBeCutOff: true,
    refusesUnacknowledged: false,
    leaseMs,
    joinMs: 10 * leaseMs,
    clock: { now: () => Date.now(), monotonic: () => performance.now() },
    apply: (invalidations) => {
      applied.push(...invalidations.map(({ invalidation }) => invalidation))
      return 0
    },
    dropAll: () => undefined,
    report: () => undefined,
  })
  return { coherence, applied, asked, push: (message: LedgerPush) => push(message) }
}

const turns = (): Promise<unknown> => vi.advanceTimersByTimeAsync(1)

test('a lease ends with the ledger that granted it', async () => {
  const replies: Partial<Synced>[] = [{}, { epoch: 'two', lease: 'young-ledger' }]
  const { coherence, asked, push } = member({ sync: async () => replies.shift() ?? {} })
  await coherence.start()
  expect(coherence.noLease()).toBeUndefined()
  push({ kind: 'hint', epoch: 'two', seq: 1, writer: 'b' })
  await turns()
  expect(asked.syncs).toBe(2)
  expect(coherence.noLease()).toBe('young-ledger')
})

test('what another ledger pushes is not applied, and does not count as read', async () => {
  const { coherence, applied, asked, push } = member({ sync: async () => ({}) })
  await coherence.start()
  push({ kind: 'noted', epoch: 'two', seq: 1, writer: 'b', invalidations: ['a:'] })
  await turns()
  expect(asked.syncs).toBe(2)
  expect(applied).toEqual([])
  expect(coherence.position).toEqual({ epoch: 'one', applied: 0 })
})

test('a process that has been no member yet waits for the leases of the ledger before', async () => {
  const { coherence } = member({
    sync: async () => {
      throw new Error('unreachable')
    },
    append: async () => ({ epoch: 'two', seq: 1, members: [] }),
  })
  void coherence.start()
  await turns()
  const began = performance.now()
  const waited = coherence.broadcast([dropped]).then(() => performance.now() - began)
  await vi.advanceTimersByTimeAsync(2 * leaseMs)
  expect(await waited).toBeGreaterThanOrEqual(leaseMs)
})

test('a member asks for no lease while what it has changed cannot be delivered', async () => {
  let appends = 0
  const { coherence, asked } = member({
    sync: async () => ({}),
    append: async () => {
      appends += 1
      throw new Error('unreachable')
    },
  })
  await coherence.start()
  void coherence.broadcast([dropped])
  await vi.advanceTimersByTimeAsync(leaseMs)
  expect(appends).toBeGreaterThan(2)
  expect(asked.syncs).toBe(1)
})

test('a new ledger gets the writes that may still be carried out', async () => {
  const replies: Partial<Synced>[] = [{}, { epoch: 'two', lease: 'young-ledger' }]
  const appended: (readonly string[])[] = []
  const { coherence, push } = member({
    sync: async () => replies.shift() ?? { epoch: 'two' },
    append: async (invalidations) => {
      appended.push(invalidations)
      return { epoch: appended.length === 1 ? 'one' : 'two', seq: 1, members: [] }
    },
  })
  await coherence.start()
  await coherence.broadcast([{ kind: 'quarantine', tag: 'site/item/posts/7', forMs: 4 * leaseMs }])
  push({ kind: 'hint', epoch: 'two', seq: 1, writer: 'b' })
  await vi.advanceTimersByTimeAsync(leaseMs)
  expect(appended).toHaveLength(2)
  expect(appended[1]).toEqual(appended[0])
})
