import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { runPublicSuite, startSuiteOrigin } from './public-suite.ts'
import { skips } from './public-suite-skips.ts'

let suite: Awaited<ReturnType<typeof startSuiteOrigin>>
let gateway: TestGateway

beforeAll(async () => {
  suite = await startSuiteOrigin()
  gateway = await startTestGateway({
    services: {
      open: {
        contract: 'open',
        mount: '/',
        upstream: { targets: [suite.origin] },
        cache: { profile: 'rfc-shared-cache' },
      },
    },
  })
})
afterAll(async () => {
  await gateway.close()
  await suite.program.stop()
})

test('the public suite for caches passes, except the tests that are skipped with a reason', async () => {
  const results = await runPublicSuite(gateway.publicAddress, new Set(Object.keys(skips)))
  const failing = [...results].filter(([id, result]) => result !== true && skips[id] === undefined)
  const passing = Object.keys(skips).filter((id) => results.get(id) === true)
  const unknown = Object.keys(skips).filter((id) => !results.has(id))
  expect({ failing, passing, unknown }).toEqual({ failing: [], passing: [], unknown: [] })
  expect(results.size).toBeGreaterThan(300)
}, 300_000)
