import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { builtGateway } from '../support/built-gateway.ts'
import { runNginx } from '../support/nginx.ts'
import { freePort } from '../support/ports.ts'
import { type RunningProcess, startProcess, untilReady } from '../support/processes.ts'
import { describeWith } from '../support/requirements.ts'
import { blocksOf, comparable, printedBy, shownCommands } from '../support/shown-commands.ts'
import { startWordPress, type WordPress } from './wordpress/start-wordpress.ts'

const document = await readFile(new URL('../../docs/migration.md', import.meta.url), 'utf8')

const section = (title: string): string =>
  document.split(/^## /m).find((part) => part.startsWith(`${title}\n`)) ?? ''

const block = (language: string): string =>
  blocksOf(section('1. Write the same for Trellis'), language)[0] ?? ''

const beside = shownCommands(section('2. Run both side by side'))
const instead = shownCommands(section('3. Give Trellis the port of nginx'))

let folder: string
let wordpress: WordPress
let nginx: { stop(): Promise<void> }
let trellis: RunningProcess
/** The port that is written in the document, and the one that stands for it here. */
const ports = new Map<string, number>()

/** The WordPress of the tests has permalinks that go through index.php. */
const here = (text: string): string =>
  text
    .replaceAll('/wp-json', '/index.php/wp-json')
    .replaceAll(/127\.0\.0\.1:(\d+)/g, (_, port: string) =>
      port === '8000' ? new URL(wordpress.origin).host : `127.0.0.1:${ports.get(port)}`,
    )

const responded = async (port: string): Promise<void> => {
  const response = await fetch(here(`http://127.0.0.1:${port}/wp-json/wp/v2/types`))
  await response.arrayBuffer()
  if (!response.ok) throw new Error(`status ${response.status}`)
}

const startTrellis = async (port: string): Promise<RunningProcess> => {
  const file = join(folder, 'gateway.yaml')
  await writeFile(file, here(block('yaml')))
  const env = { TRELLIS_PORT: String(ports.get(port)), TRELLIS_ADMIN_PORT: String(ports.get('9090')) }
  const program = startProcess(process.execPath, [await builtGateway(), 'start', '-c', file], { env })
  await untilReady(program, () => responded(port))
  return program
}

const printed = (command: string): Promise<string> => {
  const { username, password } = wordpress.credentials.admin
  return printedBy(here(command), { env: { WP_USER: username, WP_PASSWORD: password } })
}

describeWith('nginx', 'docs/migration.md goes as it is written', () => {
  describeWith('php', 'with a real WordPress behind', () => {
    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'trellis-migration-'))
      for (const port of ['8080', '8081', '9090']) ports.set(port, await freePort())
      wordpress = await startWordPress({ publicUrl: `http://127.0.0.1:${ports.get('8080')}` })
      nginx = await runNginx(
        (cache) => here(block('nginx')).replace('/var/cache/nginx/wordpress', `${cache}/cache`),
        () => responded('8080'),
      )
      trellis = await startTrellis('8081')
      // It may be the first to need the built program.
    }, 300_000)
    afterAll(() => Promise.all([nginx?.stop(), trellis?.stop(0), wordpress?.stop()]))

    test('it has commands for both', () => {
      expect([beside.length, instead.length]).toEqual([4, 3])
    })

    test.each(beside)('beside nginx: $command', async ({ command, output }) => {
      expect(comparable(await printed(command))).toBe(comparable(output))
    })

    test('Trellis takes the place of nginx on its port', async () => {
      await Promise.all([nginx.stop(), trellis.stop(0)])
      trellis = await startTrellis('8080')
    })

    test.each(instead)('instead of nginx: $command', async ({ command, output }) => {
      expect(comparable(await printed(command))).toBe(comparable(output))
    })
  })
})
