import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { allWorkers, livingWorkers } from '../properties/living-workers.ts'
import { builtGateway } from '../support/built-gateway.ts'
import { openLine } from '../support/held-line.ts'
import { type Origin, pause, startOrigin } from '../support/origin.ts'
import { freePort } from '../support/ports.ts'
import { type RunningProcess, startProcess, untilReady } from '../support/processes.ts'

let folder: string
let file: string
let origin: Origin
let program: RunningProcess
let places: { readonly port: number; readonly admin: number }

const configured = (mount: string, workers = 2): string =>
  JSON.stringify({
    workers,
    listen: { port: places.port },
    admin: { port: places.admin },
    log: { level: 'info' },
    drain: { delay: '0s', timeout: '2s' },
    reload: { watch: false },
    // A machine that is busy with other tests is no overload of the gateway under test.
    overload: { eventLoopDelay: '0s' },
    services: { open: { contract: 'open', mount, upstream: { targets: [origin.origin] } } },
  })

/** Of eight connections, which go to the workers in turn. */
const statuses = async (path: string): Promise<ReadonlySet<number>> => {
  const seen = new Set<number>()
  for (let turn = 0; turn < 8; turn += 1) {
    const line = await openLine(`http://127.0.0.1:${places.port}`)
    seen.add((await line.ask(`GET ${path} HTTP/1.1\r\nHost: gateway\r\n\r\n`)).status)
    line.close()
  }
  return seen
}
const reload = async (): Promise<unknown> =>
  (
    await fetch(`http://127.0.0.1:${places.admin}/reload`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    })
  ).json()
const replaced = async (turn: 0 | 1): Promise<void> => {
  const pid = (await allWorkers({ program }, 2))[turn]
  if (pid !== undefined) process.kill(pid, 'SIGKILL')
  await expect.poll(() => livingWorkers({ program })).not.toContain(pid)
  await allWorkers({ program }, 2)
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trellis-workers-'))
  file = join(folder, 'gateway.yaml')
  origin = await startOrigin((_, wire) => wire.respond({ content: 'here' }))
  places = { port: await freePort(), admin: await freePort() }
  await writeFile(file, configured('/one'))
  program = startProcess(process.execPath, [await builtGateway(), 'start', '-c', file])
  await untilReady(program, async () => {
    if ((await fetch(`http://127.0.0.1:${places.admin}/readyz`)).status !== 200) throw new Error('not yet')
  })
})
afterAll(async () => {
  await program.stop(10_000)
  await origin.close()
})

test('a replacement worker gets the configuration of the other workers, not that of the file', async () => {
  await writeFile(file, configured('/two'))
  await replaced(0)
  expect(await statuses('/one/x')).toEqual(new Set([200]))
  expect(await statuses('/two/x')).toEqual(new Set([404]))
  await writeFile(file, '{ not: yaml')
  await replaced(1)
  expect(await statuses('/one/x')).toEqual(new Set([200]))
  expect(await reload()).toMatchObject({ code: 'invalid' })
  await writeFile(file, configured('/three'))
  expect(await reload()).toMatchObject({ outcome: 'applied' })
  expect(await statuses('/three/x')).toEqual(new Set([200]))
  await writeFile(file, configured('/four', 3))
  expect(await reload()).toMatchObject({ code: 'restart-needed' })
  await rm(file)
  await replaced(0)
  expect(await statuses('/three/x')).toEqual(new Set([200]))
}, 180_000)

test('a worker that is starting during a reload gets the new configuration', async () => {
  await writeFile(file, configured('/five'))
  const [first] = await allWorkers({ program }, 2)
  if (first !== undefined) process.kill(first, 'SIGKILL')
  // Told its configuration by now, or about to be.
  await pause(250)
  expect(await reload()).toMatchObject({ outcome: 'applied' })
  await pause(100)
  await allWorkers({ program }, 2)
  await expect.poll(() => statuses('/five/x')).toEqual(new Set([200]))
})
