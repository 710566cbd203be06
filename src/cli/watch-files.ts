import { createHash } from 'node:crypto'
import { type FSWatcher, watch } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

export type WatchOptions = {
  /** Read each time anew: what is put in force may name others. */
  readonly files: () => readonly string[]
  /** Changes that come within this time of each other are one. */
  readonly settleMs: number
  /** What is in force was read after this time, in milliseconds since 1970: a file that changed later may hold something else. */
  readonly readAfterMs: number
  /** The content is looked at so often, whether the system tells of a change or not. */
  readonly pollMs: number
}

const digest = (content: Buffer): string => createHash('sha256').update(content).digest('base64')

/** What the files hold; undefined while one of them cannot be read: between the two halves of a replacement, say. */
const contentsOf = async (files: readonly string[]): Promise<string | undefined> => {
  try {
    const contents = await Promise.all(files.map((file) => readFile(file)))
    return files.map((file, index) => `${file}:${digest(contents[index] as Buffer)}`).join('\n')
  } catch {
    return undefined
  }
}

/** By its content, its name or a link to it; a file that cannot be looked at is none that changed. */
const hasChangedSince = async (files: readonly string[], ms: number): Promise<boolean> => {
  const changes = await Promise.all(files.map((file) => stat(file).catch(() => undefined)))
  return changes.some((one) => one !== undefined && Math.max(one.mtimeMs, one.ctimeMs) > ms)
}

/** Told by the system where it can: network file systems say nothing, and there may be no watches left. */
const watchFolder = (folder: string, changed: () => void): FSWatcher | undefined => {
  try {
    const watcher = watch(folder, { persistent: false }, changed)
    watcher.on('error', () => watcher.close())
    return watcher
  } catch {
    return undefined
  }
}

export type FileWatch = {
  /** Fulfilled once the folders are watched. */
  readonly begun: Promise<void>
  readonly stop: () => void
}

/**
 * Calls `reload`, which does not reject, when the content of a file is another than before. The folders are watched and not the
 * files: editors and orchestrators replace a file by renaming another one, or the symbolic link on the way to it.
 */
export const watchFiles = (options: WatchOptions, reload: () => Promise<unknown>): FileWatch => {
  const watchers = new Map<string, FSWatcher | undefined>()
  let stopped = false
  let settle: NodeJS.Timeout | undefined
  let known: string | undefined
  let looking = false
  /** Asked to look while a reload was under way, which had read the files already. */
  let lookAgain = false

  const follow = (files: readonly string[]): void => {
    if (stopped) return
    const folders = new Set(files.map((file) => dirname(file)))
    for (const [folder, watcher] of watchers) {
      if (folders.has(folder)) continue
      watcher?.close()
      watchers.delete(folder)
    }
    for (const folder of folders) if (!watchers.has(folder)) watchers.set(folder, watchFolder(folder, soon))
  }
  const look = async (): Promise<void> => {
    if (stopped) return
    if (looking) {
      lookAgain = true
      return
    }
    looking = true
    const files = options.files()
    const now = await contentsOf(files)
    if (now !== undefined && now !== known) {
      known = now
      await reload()
      const named = options.files()
      // Other files than those just looked at: compared the next time with nothing, and so read once more.
      if (named.join('\n') !== files.join('\n')) known = undefined
      follow(named)
    }
    looking = false
    if (lookAgain) {
      lookAgain = false
      soon()
    }
  }
  const soon = (): void => {
    if (stopped) return
    clearTimeout(settle)
    settle = setTimeout(() => void look(), options.settleMs)
    settle.unref()
  }
  const begin = async (): Promise<void> => {
    const files = options.files()
    follow(files)
    const now = await contentsOf(files)
    // During the start: nothing tells which of both contents was read, so it is read once more.
    if (await hasChangedSince(files, options.readAfterMs)) soon()
    else known ??= now
  }
  const poll = setInterval(() => void look(), options.pollMs)
  poll.unref()
  return {
    begun: begin(),
    stop: () => {
      stopped = true
      clearTimeout(settle)
      clearInterval(poll)
      for (const watcher of watchers.values()) watcher?.close()
    },
  }
}
