import { mkdtemp, readFile, rename, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { builtGateway } from '../support/built-gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'
import { freePort } from '../support/ports.ts'
import { programPid, type RunningProcess, startProcess, untilReady } from '../support/processes.ts'

let folder: string
let file: string
let origin: Origin
let program: RunningProcess
let places: { readonly port: number; readonly admin: number }

const write = async (mount: string, more: object = {}): Promise<void> => {
  const config = {
    listen: { port: places.port },
    admin: { port: places.admin },
    drain: { delay: '0s', timeout: '2s' },
    reload: { poll: '10m' },
    // A machine that is busy with other tests is no overload of the gateway under test.
    overload: { eventLoopDelay: '0s' },
    services: { open: { contract: 'open', mount, upstream: { targets: [origin.origin] } } },
    ...more,
  }
  await writeFile(`${file}.new`, JSON.stringify(config))
  await rename(`${file}.new`, file)
}
const status = async (path: string): Promise<number> =>
  (await fetch(`http://127.0.0.1:${places.port}${path}`)).status
const reloads = async (outcome: string): Promise<number> => {
  const text = await (await fetch(`http://127.0.0.1:${places.admin}/metrics`)).text()
  return Number(new RegExp(`config_reloads_total\\{outcome="${outcome}"\\} (\\d+)`).exec(text)?.[1] ?? 0)
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trellis-reload-'))
  file = join(folder, 'gateway.yaml')
  origin = await startOrigin((_, wire) => wire.respond({ content: 'here' }))
  places = { port: await freePort(), admin: await freePort() }
  await write('/one')
  program = startProcess(process.execPath, [await builtGateway(), 'start', '-c', file])
  await untilReady(program, async () => {
    if ((await status('/one/x')) !== 200) throw new Error('not there yet')
  })
})
afterAll(async () => {
  await program.stop(10_000)
  await origin.close()
})

test('a replaced file and SIGHUP reload the configuration; a faulty file leaves it unchanged', async () => {
  await write('/two')
  await expect.poll(() => status('/two/x')).toBe(200)
  expect(await status('/one/x')).toBe(404)
  const applied = await reloads('applied')
  await write('two')
  await expect.poll(() => reloads('invalid')).toBe(1)
  expect(await status('/two/x')).toBe(200)
  process.kill(await programPid(program), 'SIGHUP')
  await expect.poll(() => reloads('invalid')).toBe(2)
  await write('/three', { log: { level: 'debug' } })
  await expect.poll(() => reloads('restart-needed')).toBe(1)
  expect(await status('/two/x')).toBe(200)
  expect(await reloads('applied')).toBe(applied)
  expect(await readFile(file, 'utf8')).toContain('/three')
})
