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

const configuration = blocksOf(section('2. Write the same for Trellis'), 'yaml')[0] ?? ''
const publicServer = blocksOf(section('4. Send readers through Trellis'), 'nginx')[0] ?? ''

const beside = shownCommands(section('3. Run Trellis beside it'))
const behind = shownCommands(section('4. Send readers through Trellis'))

let folder: string
let wordpress: WordPress
let nginx: { stop(): Promise<void> }
let trellis: RunningProcess
/** The port that is written in the document, and the one that stands for it here. */
const ports = new Map<string, number>()

/**
 * The WordPress of the tests has permalinks that go through index.php, and stands for the nginx on port 8000. The public server has no
 * certificate here.
 */
const here = (text: string): string =>
  text
    .replaceAll('/wp-json', '/index.php/wp-json')
    .replaceAll(/^ *(?:ssl_|server_name ).*\n/gm, '')
    .replace('listen 443 ssl', 'listen 127.0.0.1:443')
    .replaceAll('https://www.example.org', 'http://127.0.0.1:443')
    .replaceAll(/127\.0\.0\.1:(\d+)/g, (_, port: string) =>
      port === '8000' ? new URL(wordpress.origin).host : `127.0.0.1:${ports.get(port)}`,
    )

/** nginx as readers reach it, in front of the server at this port of the document. */
const startNginx = (port: string): Promise<{ stop(): Promise<void> }> =>
  runNginx(
    () => here(publicServer.replace('127.0.0.1:8080', `127.0.0.1:${port}`)),
    () => responded('443'),
  )

const responded = async (port: string): Promise<void> => {
  const response = await fetch(here(`http://127.0.0.1:${port}/wp-json/wp/v2/types`))
  await response.arrayBuffer()
  if (!response.ok) throw new Error(`status ${response.status}`)
}

const startTrellis = async (): Promise<RunningProcess> => {
  const file = join(folder, 'gateway.yaml')
  await writeFile(file, here(configuration))
  const env = { TRELLIS_PORT: String(ports.get('8080')), TRELLIS_ADMIN_PORT: String(ports.get('9090')) }
  const program = startProcess(process.execPath, [await builtGateway(), 'start', '-c', file], { env })
  await untilReady(program, () => responded('8080'))
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
      for (const port of ['443', '8080', '9090']) ports.set(port, await freePort())
      wordpress = await startWordPress({ publicUrl: `http://127.0.0.1:${ports.get('443')}` })
      nginx = await startNginx('8000')
      trellis = await startTrellis()
      // It may be the first to need the built program.
    }, 300_000)
    afterAll(() => Promise.all([nginx?.stop(), trellis?.stop(0), wordpress?.stop()]))

    test('it has commands for both', () => {
      expect([beside.length, behind.length]).toEqual([1, 4])
    })

    test.each(beside)('beside nginx: $command', async ({ command, output }) => {
      expect(comparable(await printed(command))).toBe(comparable(output))
    })

    test('nginx leads readers through Trellis', async () => {
      await nginx.stop()
      nginx = await startNginx('8080')
    })

    test.each(behind)('through Trellis: $command', async ({ command, output }) => {
      expect(comparable(await printed(command))).toBe(comparable(output))
    })
  })
})
