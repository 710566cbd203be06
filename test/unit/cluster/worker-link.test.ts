import { expect, onTestFinished, test, vi } from 'vitest'
import { linkToParent, type ToParent, type ToWorker } from '../../../src/cluster/worker-link.ts'

test('a worker whose ledger is elsewhere tells its parent that it lives', async () => {
  vi.useFakeTimers()
  onTestFinished(() => {
    vi.useRealTimers()
  })
  const said: ToParent[] = []
  let tell: (message: ToWorker) => void = () => undefined
  const linked = linkToParent({
    send: (message) => said.push(message),
    listen: (take) => {
      tell = take
    },
  })
  tell({ kind: 'assigned', assignment: { member: 'one', settings: null } })
  await linked
  vi.advanceTimersByTime(1_000)
  expect(said.filter(({ kind }) => kind !== 'hello')).toContainEqual({ kind: 'alive' })
})
