import { execFile } from 'node:child_process'
import { readdir, stat, utimes, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { withFileLock } from './file-lock.ts'

const root = join(dirname(fileURLToPath(import.meta.url)), '../..')

/**
 * Path of dist/main.js, built anew when a source file is younger than the last build: by a test, or by `npm ci` and
 * `npm run build`, which leave tsc's own note of what it has built. On a busy machine a build takes minutes.
 */
export async function builtGateway(): Promise<string> {
  const main = join(root, 'dist/main.js')
  await withFileLock(join(root, 'node_modules/.cache/trellis-build.lock'), async () => {
    const builds = await Promise.all(
      ['dist/.built', 'dist/.tsbuildinfo'].map((note) => modified(join(root, note))),
    )
    if ((await youngest(join(root, 'src'))) > Math.max(...builds)) await build()
  })
  return main
}

async function build(): Promise<void> {
  const startedAt = new Date()
  const run = promisify(execFile)
  try {
    await run(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'], {
      cwd: root,
    })
  } catch (error) {
    throw new Error(`the gateway does not build:\n${(error as { stdout?: string }).stdout ?? ''}`, {
      cause: error,
    })
  }
  await writeFile(join(root, 'dist/.built'), '')
  await utimes(join(root, 'dist/.built'), startedAt, startedAt)
}

/** Milliseconds; 0 when there is no such file. */
async function modified(path: string): Promise<number> {
  return (await stat(path).catch(() => undefined))?.mtimeMs ?? 0
}

async function youngest(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true })
  return Math.max(...(await Promise.all(entries.map((entry) => modified(join(folder, entry))))))
}
