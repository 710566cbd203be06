import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { withFileLock } from './file-lock.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

let built: Promise<string> | undefined

/** Path of dist/main.js, built anew when a source file is younger than it; a process of tests looks once. */
export function builtGateway(): Promise<string> {
  built ??= build()
  return built
}

async function build(): Promise<string> {
  await withFileLock(`${root}node_modules/.cache/trellis-build.lock`, async () => {
    await promisify(execFile)(process.execPath, ['build.mjs', '--if-outdated'], { cwd: root })
  })
  return `${root}dist/main.js`
}
