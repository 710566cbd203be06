import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'

const prefix = 'trellis-tests-'
const dayMs = 86_400_000

/** A run that ends with SIGKILL cannot remove its folder: a later run does. */
const removeForgotten = (folder: string): void => {
  for (const name of readdirSync(folder)) {
    if (!name.startsWith(prefix)) continue
    const path = join(folder, name)
    const at = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY
    if (Date.now() - at > dayMs) rmSync(path, { recursive: true, force: true })
  }
}

/**
 * Gives this run of the tests its own folder for temporary files, and removes it when the run ends, by a signal too. Whatever
 * a test, a program that it starts or Vitest itself leaves there goes with it.
 */
export const useRunFolder = (): void => {
  // Vitest loads its configuration again when it changes.
  if (basename(tmpdir()).startsWith(prefix)) return
  removeForgotten(tmpdir())
  const folder = mkdtempSync(join(tmpdir(), prefix))
  process.env['TMPDIR'] = folder
  process.once('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }))
  // Without a listener these end the process without `exit`.
  process.once('SIGTERM', () => process.exit(128 + 15))
  process.once('SIGHUP', () => process.exit(128 + 1))
}
