import { readFile, rm } from 'node:fs/promises'
import { expect, test } from 'vitest'
import type { Summary } from '../../bench/report.ts'
import { builtGateway } from '../support/built-gateway.ts'
import { startProcess } from '../support/processes.ts'
import { describeWith } from '../support/requirements.ts'

// Figures of a machine that runs other tests meanwhile prove little: only that the harness runs, that each response came
// the way its scenario says, and that a hit costs nowhere near what it once did.
const short = {
  BENCH_PEERS: 'trellis,node-http',
  BENCH_SCENARIOS: 'hit',
  BENCH_ROUNDS: '1',
  BENCH_SECONDS: '1',
  BENCH_WARM_UP: '4000',
}

describeWith('wrk', 'npm run bench', () => {
  test('measures Trellis beside its peers', { timeout: 240_000 }, async () => {
    await builtGateway()
    const run = startProcess(process.execPath, ['--import', 'tsx', 'bench/run.ts'], { env: short })
    expect(await run.ended, run.output()).toBe(0)
    const file = run.output().trim().split('\n').at(-1) ?? ''
    const { summaries } = JSON.parse(await readFile(file, 'utf8')) as { summaries: Summary[] }
    await rm(file)
    const measured = summaries.map(({ scenario, peer }) => `${scenario} ${peer}`)
    expect(measured).toEqual(['hit trellis', 'hit node-http'])
    const hit = summaries.find(({ scenario, peer }) => scenario === 'hit' && peer === 'trellis')
    expect(hit?.ratio).toBeGreaterThan(0.4)
  })
})
