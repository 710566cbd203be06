import { expect, test } from 'vitest'
import type { Ask } from '../../../src/cluster/supervisor.ts'
import { createWorkersConfig } from '../../../src/gateway/workers.ts'

const reload = { topic: 'reload', content: null }

test('a reload waits for all workers, also for slow ones', async () => {
  const patiences: unknown[] = []
  const ask: Ask = async (_, timeout) => {
    patiences.push(timeout)
    return [{ kind: 'failed' }]
  }
  const config = createWorkersConfig({}, async () => ({ kind: 'faults', faults: [] }))
  await config.through(reload, ask)
  await config.through({ topic: 'metrics', content: null }, ask)
  expect(patiences).toEqual(['until-all', 'brief'])
})

test('a configuration whose reading fails unforeseen is a reload that failed, and the next one is tried', async () => {
  const cause = new TypeError('planted')
  let reads = 0
  const config = createWorkersConfig({}, async () => {
    reads += 1
    throw cause
  })
  const ask: Ask = async () => ['never asked']
  expect(await config.through(reload, ask)).toEqual([{ kind: 'failed', cause }])
  expect(await config.through(reload, ask)).toEqual([{ kind: 'failed', cause }])
  expect(reads).toBe(2)
})
