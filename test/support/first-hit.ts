import { execFile } from 'node:child_process'
import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePort } from './ports.ts'
import { startProcess, untilReady } from './processes.ts'

/** Packs the package into a folder; returns the file. */
export const packInto = async (folder: string): Promise<string> => {
  const run = promisify(execFile)
  await run(process.execPath, ['build.mjs', '--if-outdated', '--package'])
  const { stdout } = await run('npm', [
    ...['pack', '--ignore-scripts', '--json', '--pack-destination', folder, './package'],
  ])
  const [tarball] = JSON.parse(stdout) as { filename: string }[]
  return join(folder, tarball?.filename ?? '')
}

/**
 * Plays a newcomer, who has an empty folder and the package: installs it, runs the commands (the last one starts the gateway), and
 * reads `path` twice. Returns the seconds until the second read was a hit.
 */
export const secondsToFirstHit = async (
  below: string,
  tarball: string,
  commands: readonly (readonly string[])[],
  path: string,
): Promise<number> => {
  const folder = await mkdtemp(join(below, 'newcomer-'))
  const port = String(await freePort())
  const { PATH = '', HOME = '' } = process.env
  const env = { PATH, HOME, TRELLIS_PORT: port, TRELLIS_ADMIN_PORT: String(await freePort()) }
  const begun = performance.now()
  await promisify(execFile)('npm', ['install', '--offline', '--no-audit', '--no-fund', tarball], {
    cwd: folder,
    env,
  })
  for (const command of commands.slice(0, -1))
    await promisify(execFile)('npx', ['trellis', ...command], { cwd: folder, env })
  const program = startProcess('npx', ['trellis', ...(commands.at(-1) ?? [])], { cwd: folder, env })
  try {
    await untilReady(program, async () => {
      const response = await fetch(`http://127.0.0.1:${port}${path}`)
      await response.arrayBuffer()
      const status = response.headers.get('cache-status') ?? 'none'
      if (!/^trellis; hit/.test(status)) throw new Error(`${response.status}, Cache-Status: ${status}`)
    })
    return (performance.now() - begun) / 1_000
  } finally {
    await program.stop(0)
  }
}
