import type { Invalidation } from '../../../src/cache/invalidation.ts'
import type { Clock } from '../../../src/clock.ts'
import { type Coherence, createCoherence } from '../../../src/cluster/coherence.ts'
import type { CoherenceEvent } from '../../../src/cluster/events.ts'
import type { Ledger, LedgerPush } from '../../../src/cluster/ledger.ts'
import { createMemoryLedger, type MemoryLedger } from '../../../src/cluster/workers/memory-ledger.ts'
import { pause } from '../../support/origin.ts'

/** A line to the ledger that can be cut, and that takes its time. */
export type TestLine = { cut: boolean; delayMs: number }

/** One member with a memory of tags, each holding a number of entries. */
export type TestMember = {
  readonly coherence: Coherence
  readonly line: TestLine
  readonly events: CoherenceEvent[]
  readonly applied: Invalidation[]
  dropped: number
}

/** Of the globals, which fake timers replace. */
const clockOfTest: Clock = { now: () => Date.now(), monotonic: () => performance.now() }

/** A ledger in memory with members in this process. */
export const testLedger = (leaseMs: number, clock: Clock = clockOfTest, refusesUnacknowledged = false) => {
  const takers = new Map<string, (push: LedgerPush) => void>()
  const lines = new Map<string, TestLine>()
  const ledger: MemoryLedger = createMemoryLedger({
    epoch: 'one',
    maxLedgerEntries: 100,
    clock,
    push: (member, push) => {
      const line = lines.get(member)
      if (line?.cut === true) return
      setTimeout(() => takers.get(member)?.(push), line?.delayMs)
    },
  })
  const join = async (
    name: string,
    entriesOf: (invalidation: Invalidation) => number = () => 0,
  ): Promise<TestMember> => {
    const line: TestLine = { cut: false, delayMs: 0 }
    lines.set(name, line)
    const through = async <Value>(call: () => Value): Promise<Value> => {
      await pause(line.delayMs)
      if (line.cut) throw new Error('cut')
      const value = call()
      await pause(line.delayMs)
      return value
    }
    const own: Ledger = {
      sync: (position) => through(() => ledger.sync(name, position)),
      begin: (write, invalidations) => through(() => ledger.begin(name, write, invalidations)),
      append: (invalidations, settled) => through(() => ledger.append(name, invalidations, settled)),
      acknowledge: (applied, entries, writer) => {
        through(() => ledger.acknowledge(name, applied, entries, writer)).catch(() => undefined)
      },
      forget: async (member) => {
        ledger.forget(member)
      },
      listen: (take) => {
        takers.set(name, take)
      },
      leave: async (cleanly) => {
        if (cleanly) ledger.forget(name)
      },
    }
    const events: CoherenceEvent[] = []
    const applied: Invalidation[] = []
    const member: TestMember = {
      line,
      events,
      applied,
      dropped: 0,
      coherence: createCoherence({
        member: name,
        ledger: own,
        canBeCutOff: true,
        refusesUnacknowledged,
        leaseMs,
        joinMs: 10 * leaseMs,
        clock,
        apply: (invalidations) => {
          applied.push(...invalidations.map(({ invalidation }) => invalidation))
          return invalidations.reduce((sum, { invalidation }) => sum + entriesOf(invalidation), 0)
        },
        dropAll: () => {
          member.dropped += 1
        },
        report: (event) => events.push(event),
      }),
    }
    await member.coherence.start()
    return member
  }
  return { ledger, join }
}
