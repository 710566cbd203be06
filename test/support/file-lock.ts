import { existsSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Runs `work` while no other test process holds the lock: test files run side by side and may want the same thing built.
 * A lock whose owner is gone is broken.
 */
export async function withFileLock<Result>(path: string, work: () => Promise<Result>): Promise<Result> {
  await mkdir(dirname(path), { recursive: true })
  for (;;) {
    try {
      await writeFile(path, String(process.pid), { flag: 'wx' })
      break
    } catch {
      const owner = Number(await readFile(path, 'utf8').catch(() => ''))
      if (owner > 0 && !existsSync(`/proc/${owner}`)) await rm(path, { force: true })
      await sleep(100)
    }
  }
  try {
    return await work()
  } finally {
    await rm(path, { force: true })
  }
}
