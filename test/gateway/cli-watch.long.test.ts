import { appendFile, mkdir, mkdtemp, rename, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as realPause } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { watchFiles } from '../../src/cli/watch-files.ts'
import { pause } from '../support/origin.ts'

let folder: string
let stop: () => void
let reloads: number
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trellis-watch-'))
  reloads = 0
})
afterEach(async () => {
  vi.useRealTimers()
  stop()
})

const at = (name: string): string => join(folder, name)
const soon = 20
/** Long enough that only the system's own word can have come in a test. */
const never = 600_000

type Terms = {
  readonly settleMs?: number
  readonly pollMs?: number
  readonly readAfterMs?: number
  readonly missingMs?: number
  readonly reload?: () => Promise<void>
}

const watching = async (files: () => readonly string[], terms: Terms = {}): Promise<void> => {
  // A file of this millisecond is not newer.
  const { settleMs = soon, pollMs = never, readAfterMs = Date.now() + 1, missingMs = never, reload } = terms
  const watch = watchFiles({ files, settleMs, pollMs, readAfterMs, missingMs }, async () => {
    reloads += 1
    await reload?.()
  })
  stop = watch.stop
  await watch.ready
}
const once = (): Promise<void> => expect.poll(() => reloads).toBe(1)

describe('a reload follows', () => {
  test('a file that is overwritten', async () => {
    await writeFile(at('c.yaml'), 'a: 1')
    await watching(() => [at('c.yaml')])
    await writeFile(at('c.yaml'), 'a: 2')
    await once()
  })

  test('a file that changed between reading and watching it', async () => {
    const readAfterMs = Date.now() - 1_000
    await writeFile(at('c.yaml'), 'a: 2')
    await watching(() => [at('c.yaml')], { readAfterMs })
    await once()
  })

  test('a file that is replaced by renaming, as editors do, once for several steps', async () => {
    await writeFile(at('c.yaml'), 'a: 1')
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    const settleMs = 1000
    await watching(() => [at('c.yaml')], { settleMs })
    for (let i = 2; i < 6; i += 1) {
      await writeFile(at('new'), `a: ${i}`)
      await rename(at('new'), at('c.yaml'))
    }
    await expect.poll(() => vi.getTimerCount()).toBe(1)
    // A poll moves the clock by its interval before it looks.
    vi.advanceTimersByTime(settleMs / 2)
    await realPause(100)
    expect(reloads).toBe(0)
    const settle = (): number => {
      vi.advanceTimersByTime(settleMs)
      return reloads
    }
    await expect.poll(settle).toBe(1)
    await realPause(100)
    settle()
    await realPause(100)
    expect(reloads).toBe(1)
  })

  test('a symbolic link in the path with a new target, as a mounted ConfigMap is updated', async () => {
    for (const version of ['v1', 'v2']) {
      await mkdir(at(version))
      await writeFile(at(`${version}/c.yaml`), `a: ${version}`)
    }
    await symlink('v1', at('..data'))
    await symlink('..data/c.yaml', at('c.yaml'))
    await watching(() => [at('c.yaml')])
    await symlink('v2', at('..data_tmp'))
    await rename(at('..data_tmp'), at('..data'))
    await once()
  })

  test('a change without an event of the file system', async () => {
    await mkdir(at('elsewhere'))
    await mkdir(at('here'))
    await writeFile(at('elsewhere/c.yaml'), 'a: 1')
    await symlink(at('elsewhere/c.yaml'), at('here/c.yaml'))
    await watching(() => [at('here/c.yaml')], { pollMs: 50 })
    await writeFile(at('elsewhere/c.yaml'), 'a: 2')
    await once()
  })

  test('a change while another file of the folder is written all the time', async () => {
    await writeFile(at('c.yaml'), 'a: 1')
    // Writes come within less than the time after which a change counts as complete.
    await watching(() => [at('c.yaml')], { settleMs: 200 })
    const log = setInterval(() => void appendFile(at('access.log'), 'a line\n'), 20)
    try {
      await writeFile(at('c.yaml'), 'a: 2')
      await expect.poll(() => reloads).toBe(1)
    } finally {
      clearInterval(log)
      await pause(50)
    }
  })

  test('a file that stays removed, once, and again when it is back', async () => {
    await writeFile(at('c.yaml'), 'a: 1')
    await watching(() => [at('c.yaml')], { missingMs: 100 })
    await rename(at('c.yaml'), at('away'))
    await once()
    await pause(300)
    expect(reloads).toBe(1)
    await rename(at('away'), at('c.yaml'))
    await expect.poll(() => reloads).toBe(2)
  })

  test('a change during a reload', async () => {
    await writeFile(at('c.yaml'), 'a: 1')
    let end = (): void => {}
    const underWay = new Promise<void>((resolve) => {
      end = resolve
    })
    await watching(() => [at('c.yaml')], { reload: () => underWay })
    await writeFile(at('c.yaml'), 'a: 2')
    await once()
    await writeFile(at('c.yaml'), 'a: 3')
    await pause(100)
    end()
    await expect.poll(() => reloads).toBe(2)
  })

  test('a change of a file that the last reload added', async () => {
    await writeFile(at('c.yaml'), 'a: 1')
    await mkdir(at('secrets'))
    await writeFile(at('secrets/token'), 'one')
    const files = (): string[] => (reloads === 0 ? [at('c.yaml')] : [at('c.yaml'), at('secrets/token')])
    await watching(files)
    await writeFile(at('c.yaml'), 'a: 2')
    await expect.poll(() => reloads).toBeGreaterThanOrEqual(1)
    const before = reloads
    // Written until it is noticed: its folder is watched only some time after the reload that has named it.
    const written = async (): Promise<number> => {
      await writeFile(at('secrets/token'), `two, ${Date.now()}`)
      return reloads
    }
    await expect.poll(written, { interval: 100 }).toBeGreaterThan(before)
  })
})

describe('no reload follows', () => {
  test('a touched file, another file in the folder, or a file that is missing for a moment', async () => {
    await writeFile(at('c.yaml'), 'a: 1')
    await watching(() => [at('c.yaml')], { pollMs: 30 })
    await utimes(at('c.yaml'), new Date(), new Date())
    await writeFile(at('other.yaml'), 'a: 2')
    await rename(at('c.yaml'), at('away'))
    await pause(150)
    await rename(at('away'), at('c.yaml'))
    await pause(150)
    expect(reloads).toBe(0)
  })
})
