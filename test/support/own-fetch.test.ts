import { Agent, getGlobalDispatcher } from 'undici'
import { expect, test } from 'vitest'
import '../../src/upstream/targets/connector.ts'

// Which class it is differs between versions of Node.
test('the fetch of the tests does not use the undici of the gateway', () => {
  expect(getGlobalDispatcher()).toHaveProperty('dispatch')
  expect(getGlobalDispatcher()).not.toBeInstanceOf(Agent)
})
