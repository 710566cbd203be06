import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { builtGateway } from '../support/built-gateway.ts'
import { freePort } from '../support/ports.ts'
import { type RunningProcess, startProcess, untilReady } from '../support/processes.ts'
import { blocksOf, comparable, printedBy, shownCommands } from '../support/shown-commands.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const page = await readFile(new URL('../../docs/openapi.md', import.meta.url), 'utf8')
const shown = shownCommands(page)

let program: RunningProcess
let here: (text: string) => string

beforeAll(async () => {
  const trellis = `${process.execPath} ${await builtGateway()}`
  const [port, admin] = [await freePort(), await freePort()]
  here = (text) => text.replaceAll('npx trellis', trellis).replaceAll(':8080', `:${port}`)
  const [start = ''] = blocksOf(page, 'sh')
  program = startProcess('bash', ['-c', `cd ${root} && exec ${here(start.trim())}`], {
    env: { TRELLIS_PORT: String(port), TRELLIS_ADMIN_PORT: String(admin) },
  })
  await untilReady(program, async () => {
    const response = await fetch(`http://127.0.0.1:${admin}/readyz`)
    if (!response.ok) throw new Error(String(response.status))
  })
})
afterAll(() => program.stop(0))

test('the page shows eight commands', () => {
  expect(shown).toHaveLength(8)
})

test.each(shown)('docs/openapi.md shows what is printed: $command', async ({ command, output }) => {
  expect(comparable(await printedBy(here(command), { cwd: root }))).toBe(comparable(output))
})
