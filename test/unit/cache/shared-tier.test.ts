import { expect, test } from 'vitest'
import type { FetchFunction, FetchRequest } from '../../../src/cache/fetch/collapse.ts'
import { createTierFetch, type LedgerPosition, type SharedTier } from '../../../src/cache/shared-tier.ts'
import type { StoredResponse } from '../../../src/cache/store/stored-response.ts'
import { systemClock } from '../../../src/clock.ts'

type FetchOutcome = Awaited<ReturnType<FetchFunction>>

const moment = { now: 0, monotonic: 0 }

/** As much of it as the tier looks at. */
const stored = {
  ...{ key: 'k', tags: [], varyNames: [], varyKey: '', lifetimeMs: 60_000, initialAgeMs: 0 },
  ...{ status: 200, headers: [], content: Buffer.from('{}'), received: moment, validateAlways: false },
} as unknown as StoredResponse

const request = {
  read: { method: 'GET', partition: 'public', key: 'k', contentId: '' },
  rangeHeaders: {},
  since: 3,
} as unknown as FetchRequest

const shareable: FetchOutcome = {
  ...{ kind: 'shareable', stored, upstreamStatus: 200, ownHeaders: [], notStored: undefined },
  validated: false,
}

const fetchThrough = (tier: Partial<SharedTier>, storage: object, upstream: () => Promise<FetchOutcome>) =>
  createTierFetch({
    tier: tier as SharedTier,
    fetch: upstream,
    storage: storage as never,
    hitForMiss: { has: () => false } as never,
    clock: systemClock,
    maxEntryBytes: 1_000,
  })(request)

test('an entry of the tier is as new as the moment at which it was requested', async () => {
  let position: LedgerPosition = { epoch: 'one', applied: 4 }
  const positions: LedgerPosition[] = []
  const tier = {
    load: async () => undefined,
    claim: async () => ({ kind: 'mine', release: () => undefined }) as const,
    store: (_: unknown, since: LedgerPosition) => positions.push(since),
    get position() {
      return position
    },
  }
  await fetchThrough(tier as unknown as SharedTier, {}, async () => {
    position = { epoch: 'one', applied: 5 }
    return shareable
  })
  expect(positions).toEqual([{ epoch: 'one', applied: 4 }])
})

test('an entry of the tier is stored only if nothing has invalidated it since the read began', async () => {
  const asked: unknown[] = []
  const storage = {
    storeIfCurrent: (_: unknown, entry: unknown, since: number) => {
      asked.push(entry, since)
      return undefined
    },
  }
  const upstream = async (): Promise<never> => {
    throw new Error('the tier has it')
  }
  const outcome = await fetchThrough({ load: async () => stored as never }, storage, upstream)
  expect(outcome).toMatchObject({ kind: 'shareable', fromTier: true })
  expect(asked).toEqual([stored, 3])
})
