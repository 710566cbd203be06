import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { createAcknowledgements } from '../../../src/cluster/protocol/acknowledgements.ts'

// The clock stands still, so a wait only ends with an acknowledgement.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => {
    vi.useRealTimers()
  })
})

const leaseMs = 5_000
const appended = { epoch: 'e', seq: 7, members: [{ member: 'b', applied: 6, beat: 1 }] }

/** Undefined while it waits. */
const soon = <Value>(promise: Promise<Value>): Promise<Value | undefined> =>
  Promise.race([promise, new Promise<undefined>((resolve) => setImmediate(() => resolve(undefined)))])

test('a member that acknowledges before the reply to the append is not waited for, and its count is kept', async () => {
  const acknowledgements = createAcknowledgements(leaseMs)
  acknowledgements.acknowledged('e', 'b', 7, 2)
  expect(await soon(acknowledgements.wait(appended, 0))).toEqual({ all: true, entries: 2 })
})

test.each([
  ['an answer to an earlier change', 'e', 'b', 6],
  ['an answer to a change of another ledger', 'former', 'b', 7],
  ['an answer of somebody else', 'e', 'c', 7],
])('%s does not end the wait', async (_, epoch, member, applied) => {
  const acknowledgements = createAcknowledgements(leaseMs)
  acknowledgements.acknowledged(epoch, member, applied, 2)
  const waiting = acknowledgements.wait(appended, 0)
  expect(await soon(waiting)).toBeUndefined()
  vi.advanceTimersByTime(leaseMs)
  expect(await waiting).toEqual({ all: false, entries: 0 })
})

test('members of a previous ledger are waited for until three leases after its last reply', async () => {
  const acknowledgements = createAcknowledgements(leaseMs)
  acknowledgements.readStatuses({ epoch: 'former', members: [] }, 0)
  const first = { epoch: 'e', seq: 1, members: [] }
  const waiting = acknowledgements.wait(first, 3 * leaseMs - 1)
  expect(await soon(waiting)).toBeUndefined()
  expect(await soon(acknowledgements.wait(first, 3 * leaseMs))).toEqual({ all: true, entries: 0 })
})
