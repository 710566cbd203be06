import { execFile } from 'node:child_process'
import { chmod, mkdtemp, readdir, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseDockerfile } from '../support/dockerfile.ts'
import { type BuiltImage, buildByHand } from '../support/dockerfile-by-hand.ts'
import { freePort } from '../support/ports.ts'
import { type RunningProcess, startProcess, untilReady } from '../support/processes.ts'

const run = promisify(execFile)
const context = fileURLToPath(new URL('../../', import.meta.url))
const isRoot = process.getuid?.() === 0

let folder: string
let image: BuiltImage
let program: RunningProcess
let ports: { public: number; admin: number }

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trellis-image-'))
  await chmod(folder, 0o755)
  const stages = parseDockerfile(await readFile(join(context, 'Dockerfile'), 'utf8'))
  image = await buildByHand(stages, context, folder)
  await run('chmod', ['-R', 'a-w,a+rX', image.root])
  ports = { public: await freePort(), admin: await freePort() }
  program = startInImage()
  await untilReady(program, async () => {
    const response = await fetch(`http://127.0.0.1:${ports.admin}/readyz`)
    if (!response.ok) throw new Error(`/readyz: ${response.status}`)
  })
}, 480_000)

afterAll(async () => {
  await program?.stop()
  await run('chmod', ['-R', 'u+w', folder])
})

test('the image holds the package, whose bundle contains what is used of other packages', async () => {
  expect((await readdir(join(image.root, image.workdir))).sort()).toEqual([
    'config',
    'dist',
    'package.json',
    'public',
  ])
})

test('it serves from a folder that nothing can be written to, as a user without rights', async () => {
  const response = await fetch(
    `http://127.0.0.1:${ports.public}/index.php/site-json/site/v2/posts?per_page=1`,
  )
  expect(response.status).toBe(200)
  expect(await response.json()).toHaveLength(1)
  if (isRoot) expect(await ownersOf(program.pid)).toContain('65534')
})

test('its health check succeeds while it runs', async () => {
  const [command = '', ...args] = image.healthCheck
  const env = { ...process.env, ...image.env, TRELLIS_ADMIN_PORT: String(ports.admin) }
  await run(command, args, { env })
  await expect(run(command, args, { env: { ...env, TRELLIS_ADMIN_PORT: '1' } })).rejects.toMatchObject({
    code: 1,
  })
})

test('SIGTERM ends it in order', async () => {
  expect(await program.stop(40_000)).toBe(0)
})

/** The image's own command in its own environment, with fewer rights and fewer writable folders. */
function startInImage(): RunningProcess {
  const asNobody = isRoot ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : []
  const environment = {
    ...image.env,
    PATH: process.env['PATH'] ?? '',
    TMPDIR: '/nonexistent',
    HOME: '/nonexistent',
    TRELLIS_PORT: String(ports.public),
    TRELLIS_ADMIN_PORT: String(ports.admin),
  }
  const assignments = Object.entries(environment).map(([name, value]) => `${name}=${value}`)
  const [command = '', ...args] = [...asNobody, 'env', '-i', ...assignments, ...image.command, '--demo']
  return startProcess(command, args, { cwd: join(image.root, image.workdir) })
}

/** User ids of the processes of the group. */
async function ownersOf(group: number): Promise<string[]> {
  const owners: string[] = []
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
    // proc(5): after the command in parentheses come state, parent and process group.
    if (stat.slice(stat.lastIndexOf(')') + 2).split(' ')[2] !== String(group)) continue
    const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
    owners.push(/^Uid:\s+(\d+)/m.exec(status)?.[1] ?? '')
  }
  return owners
}
