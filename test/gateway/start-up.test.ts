import { expect, test } from 'vitest'
import { processorSeconds } from '../../bench/processor-time.ts'
import { startGatewayProcess } from '../support/gateway-process.ts'

test('a gateway is ready after at most 1.5 s of processor time', async () => {
  const gateway = await startGatewayProcess({})
  const seconds = processorSeconds(gateway.program.pid)
  await gateway.stop()
  // 0.4 to 0.6 s on a machine with nothing else to do (npm run bench:startup).
  expect(seconds).toBeLessThan(1.5)
}, 180_000)
