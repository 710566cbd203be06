import { expect, test } from 'vitest'
import type { ToParent, ToWorker } from '../../../src/workers/messages.ts'
import { linkToParent } from '../../../src/workers/worker-link.ts'
import { pause } from '../../support/origin.ts'

test('a worker whose ledger is elsewhere tells its parent that it lives', async () => {
  const said: ToParent[] = []
  let tell: (message: ToWorker) => void = () => undefined
  const linked = linkToParent({
    send: (message) => said.push(message),
    listen: (take) => {
      tell = take
    },
  })
  tell({ kind: 'assigned', assignment: { member: 'one', leaseMs: 1000, settings: null } })
  await linked
  await pause(2_500)
  expect(said.filter(({ kind }) => kind !== 'hello')).toContainEqual({ kind: 'alive' })
})
