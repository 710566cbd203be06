import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { processorSeconds } from '../../bench/processor-time.ts'
import { startGatewayProcess } from '../support/gateway-process.ts'

/** Processor time of a Node that runs nothing: the least of three. */
const bareSeconds = (): number => {
  const printed = 'const { user, system } = process.cpuUsage(); console.log((user + system) / 1e6)'
  const starts = [1, 2, 3].map(() =>
    Number(execFileSync(process.execPath, ['-e', printed], { encoding: 'utf8' })),
  )
  return Math.min(...starts)
}

test('a gateway is ready after at most thirty times the processor time of Node itself', async () => {
  const gateway = await startGatewayProcess({})
  const seconds = processorSeconds(gateway.program.pid)
  await gateway.stop()
  // Ten to fifteen times on a machine with nothing else to do (npm run bench:startup).
  expect(seconds / bareSeconds()).toBeLessThan(30)
}, 180_000)
