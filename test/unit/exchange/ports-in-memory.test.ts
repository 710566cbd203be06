import { beforeEach, describe } from 'vitest'
import { createKeysInMemory } from '../../../src/batch/idempotency.ts'
import { systemClock } from '../../../src/clock.ts'
import type { LedgerPush } from '../../../src/cluster/ledger.ts'
import { createMemoryLedger, type MemoryLedger } from '../../../src/cluster/workers/memory-ledger.ts'
import { testIdempotencyStore } from '../../support/port-suites/idempotency-store.ts'
import { testLedger } from '../../support/port-suites/ledger.ts'
import { testRateLimiter } from '../../support/port-suites/rate-limiter.ts'

describe('idempotency keys in memory', () => {
  const clock = { now: () => 0, monotonic: () => 0 }
  // A response may take an eighth of the memory.
  testIdempotencyStore((bytes) => createKeysInMemory(clock).under({ maxBytes: bytes * 8, ttlMs: 60_000 }))
})

describe('rate limits counted in memory', () => testRateLimiter(() => undefined))

describe('the ledger that a parent process holds for its workers', () => {
  const listeners = new Map<string, (push: LedgerPush) => void>()
  let ledger: MemoryLedger
  beforeEach(() => {
    ledger = createMemoryLedger({
      epoch: 'one',
      maxLedgerEntries: 100,
      clock: systemClock,
      push: (member, push) => listeners.get(member)?.(push),
    })
  })
  testLedger((member) => ({
    sync: async (position) => ledger.sync(member, position),
    begin: async (write, invalidations) => ledger.begin(member, write, invalidations),
    append: async (invalidations, settled) => ledger.append(member, invalidations, settled),
    acknowledge: (applied, entries, writer) => ledger.acknowledge(member, applied, entries, writer),
    forget: async (other) => {
      ledger.forget(other)
    },
    listen: (take) => {
      listeners.set(member, take)
    },
    leave: async () => {
      ledger.forget(member)
    },
  }))
})
