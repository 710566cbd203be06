import { execFileSync } from 'node:child_process'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { processorSeconds } from '../../bench/processor-time.ts'
import { builtGateway } from '../support/built-gateway.ts'
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

test('compiled code is kept beside the bundle, by a Node that can', async () => {
  await builtGateway()
  // Node 20 cannot: its function is added before the program runs.
  const recorder = `import module from 'node:module'; module.enableCompileCache = (folder) => console.log(folder)`
  const printed = execFileSync(
    process.execPath,
    ['--import', `data:text/javascript,${recorder}`, 'dist/main.js', '--version'],
    { encoding: 'utf8' },
  )
  expect(printed.split('\n')[0]).toBe(resolve('dist/compile-cache'))
})
