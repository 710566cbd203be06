import { expect, test } from 'vitest'
import { createCoherence } from '../../../src/cluster/coherence.ts'
import type { Synced } from '../../../src/cluster/ledger.ts'

/** A member of a ledger that answers with the next of these leases, and then with the last one. */
const member = (leases: readonly (Synced['lease'] | 'unreachable')[], joinMs = 10_000) => {
  const left = [...leases]
  const drops: string[] = []
  const asked: Synced['lease'][] = []
  const coherence = createCoherence({
    member: 'a',
    ledger: {
      sync: async () => {
        const lease = left.length > 1 ? (left.shift() ?? 'granted') : (left[0] ?? 'granted')
        if (lease === 'unreachable') throw new Error('no answer')
        asked.push(lease)
        return { epoch: 'two', seq: 0, floor: 0, invalidations: [], members: [], lease }
      },
      begin: async () => undefined,
      append: async () => ({ epoch: 'two', seq: 1, members: [] }),
      acknowledge: () => undefined,
      forget: async () => undefined,
      listen: () => undefined,
      leave: async () => undefined,
    },
    canBeCutOff: true,
    refusesUnacknowledged: false,
    leaseMs: 40,
    joinMs,
    clock: { now: () => Date.now(), monotonic: () => performance.now() },
    apply: () => 0,
    dropAll: ({ epoch }) => {
      drops.push(`${epoch} ${asked.at(-1)}`)
    },
    report: () => undefined,
  })
  return { coherence, drops }
}

const joining = async (...leases: readonly Synced['lease'][]) => {
  const { coherence, drops } = member(leases)
  await coherence.start()
  await expect.poll(() => coherence.noLease()).toBeUndefined()
  await coherence.close()
  return drops
}

// Members of the former ledger go on acknowledging writes in it until they find the new one.
test('what was stored while the ledger was young is dropped before it is served', async () => {
  expect(await joining('young-ledger', 'young-ledger', 'granted')).toEqual([
    'two young-ledger',
    'two granted',
  ])
})

test('nothing is dropped twice where the ledger is not young', async () => {
  expect(await joining('granted')).toEqual(['two granted'])
  expect(await joining('unproven', 'granted')).toEqual(['two unproven'])
})

test.each(['young-ledger', 'member-silent', 'unproven'] as const)(
  'a member is joining until its first lease, and not when a later one is refused: %s',
  async (reason) => {
    const { coherence } = member([reason, reason, reason, 'granted', reason])
    await coherence.start()
    expect(coherence.isJoining()).toBe(true)
    await expect.poll(() => coherence.isJoining()).toBe(false)
    await expect.poll(() => coherence.noLease()).toBe(reason)
    expect(coherence.isJoining()).toBe(false)
    await coherence.close()
  },
)

test('a member is not joining where the ledger does not answer, or grants nothing for too long', async () => {
  const alone = member(['unreachable'])
  await alone.coherence.start()
  expect([alone.coherence.noLease(), alone.coherence.isJoining()]).toEqual(['unreachable', false])
  const refused = member(['unproven'], 200)
  await refused.coherence.start()
  expect(refused.coherence.isJoining()).toBe(true)
  await expect.poll(() => refused.coherence.isJoining()).toBe(false)
  expect(refused.coherence.noLease()).toBe('unproven')
  await Promise.all([alone.coherence.close(), refused.coherence.close()])
})
