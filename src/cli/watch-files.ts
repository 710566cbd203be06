import { createHash } from 'node:crypto'
import { type FSWatcher, watch } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

export type WatchOptions = {
  /** Called before each comparison: a reload may change the list. */
  readonly files: () => readonly string[]
  /** Changes within this time of each other count as one, but not for longer than five times this. */
  readonly settleMs: number
  /** A file that cannot be read for this long counts as changed; for less, it may be in the middle of a replacement. */
  readonly missingMs: number
  /** The present configuration was read after this time, in milliseconds since 1970; a file that changed later may differ from it. */
  readonly readAfterMs: number
  /** Interval of comparing the content, with or without an event of the file system. */
  readonly pollMs: number
}

const digest = (content: Buffer): string => createHash('sha256').update(content).digest('base64')

/** Digests of the files; undefined while one cannot be read, for instance in the middle of a replacement. */
const contentsOf = async (files: readonly string[]): Promise<string | undefined> => {
  try {
    const contents = await Promise.all(files.map((file) => readFile(file)))
    return files.map((file, index) => `${file}:${digest(contents[index] as Buffer)}`).join('\n')
  } catch {
    return undefined
  }
}

/** Compares times of content and of inode; an unreadable file counts as unchanged. */
const hasChangedSince = async (files: readonly string[], ms: number): Promise<boolean> => {
  const changes = await Promise.all(files.map((file) => stat(file).catch(() => undefined)))
  return changes.some((change) => change !== undefined && Math.max(change.mtimeMs, change.ctimeMs) > ms)
}

/** Events of the file system, where available: network file systems have none, and the number of watches is limited. */
const watchFolder = (folder: string, onChange: () => void): FSWatcher | undefined => {
  try {
    const watcher = watch(folder, { persistent: false }, onChange)
    watcher.on('error', () => watcher.close())
    return watcher
  } catch {
    return undefined
  }
}

/** Stands for the contents when a file stays unreadable. */
const unreadable = 'unreadable'

/** In units of `settleMs`: a file that is written all the time must not delay the reload of another one for ever. */
const maxSettling = 5

/**
 * Calls `reload`, which does not reject, when the content of a file has changed. It watches folders instead of files: editors and
 * orchestrators replace a file by renaming another one or a symbolic link in its path.
 */
export const watchFiles = (options: WatchOptions, reload: () => Promise<unknown>) => {
  const watchers = new Map<string, FSWatcher | undefined>()
  let stopped = false
  let settling: NodeJS.Timeout | undefined
  /** When the first of the changes came that are waited for; undefined while none is. */
  let unsettledSince: number | undefined
  let missingSince: number | undefined
  let contents: string | undefined
  let comparing = false
  /** An event arrived during a reload, which had already read the files. */
  let isCompareDue = false

  const watchFoldersOf = (files: readonly string[]): void => {
    if (stopped) return
    const folders = new Set(files.map((file) => dirname(file)))
    for (const [folder, watcher] of watchers) {
      if (folders.has(folder)) continue
      watcher?.close()
      watchers.delete(folder)
    }
    for (const folder of folders)
      if (!watchers.has(folder)) watchers.set(folder, watchFolder(folder, compareSoon))
  }
  const compare = async (): Promise<void> => {
    if (stopped) return
    if (comparing) {
      isCompareDue = true
      return
    }
    comparing = true
    const files = options.files()
    const now = orMissing(await contentsOf(files))
    if (now !== undefined && now !== contents) {
      contents = now
      await reload()
      const newFiles = options.files()
      // Other files than those just compared: the next comparison reloads.
      if (newFiles.join('\n') !== files.join('\n')) contents = undefined
      watchFoldersOf(newFiles)
    }
    comparing = false
    if (isCompareDue) {
      isCompareDue = false
      compareSoon()
    }
  }
  const compareIn = (ms: number): void => {
    if (stopped) return
    clearTimeout(settling)
    settling = setTimeout(() => {
      unsettledSince = undefined
      void compare()
    }, ms)
    settling.unref()
  }
  const compareSoon = (): void => {
    const now = performance.now()
    unsettledSince ??= now
    const latest = unsettledSince + maxSettling * options.settleMs
    compareIn(Math.max(0, Math.min(options.settleMs, latest - now)))
  }
  /** The contents, or `unreadable` when they have been missing for long; undefined while they may still come back. */
  const orMissing = (now: string | undefined): string | undefined => {
    if (now !== undefined) {
      missingSince = undefined
      return now
    }
    missingSince ??= performance.now()
    const leftMs = missingSince + options.missingMs - performance.now()
    if (leftMs <= 0) return unreadable
    compareIn(leftMs)
    return undefined
  }
  const begin = async (): Promise<void> => {
    const files = options.files()
    watchFoldersOf(files)
    const now = await contentsOf(files)
    // Changed during the start: which content was read is unknown, so it is read again.
    if (await hasChangedSince(files, options.readAfterMs)) compareSoon()
    else contents ??= now
  }
  const poll = setInterval(() => void compare(), options.pollMs)
  poll.unref()
  return {
    /** Resolves when the folders are watched. */
    ready: begin(),
    stop: (): void => {
      stopped = true
      clearTimeout(settling)
      clearInterval(poll)
      for (const watcher of watchers.values()) watcher?.close()
    },
  }
}
