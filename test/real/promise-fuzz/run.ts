import { copyFile, rm } from 'node:fs/promises'
import { basic } from '../site-under-test.ts'
import { fuzzSite, nothingSeen, type Seen } from './fuzz-site.ts'
import { seededIds } from './pools.ts'
import { difference, shrunkText } from './report.ts'
import { shrink } from './shrink.ts'
import type { FuzzedSites, Setting } from './site-under-fuzz.ts'

export type RunOptions = {
  readonly writes: number
  readonly seed: number
  readonly answersPerWrite: number
  /** Kinds of writes that are to be sent more often, by how their names begin. */
  readonly focus?: string
  /** Reads that are to be repeated more often. */
  readonly readFocus?: RegExp
  /** Ends with the first stale answer, and says nothing of others. */
  readonly firstOnly?: boolean
  readonly shrinks?: boolean
  tell(line: string): void
}

/** Each site gets so many writes, then another begins with a seed of its own. */
const writesPerSite = 100

const settingOf = (seed: number): Setting => ({
  names: seed % 2 === 0 ? 'same' : 'wordpress',
  pages: seed % 4 < 2,
})

export type RunResult = {
  readonly seen: Seen
  readonly stale: readonly string[]
  readonly foundAfter?: number
}

/** Under which a stale answer is told of once; a scheduled post that nobody saw coming is in too many answers to tell of each. */
const sameCase = (kind: string, route: string): string => (kind === 'cron' ? kind : `${kind} ${shape(route)}`)

const shape = (route: string): string =>
  route.replaceAll(/\{w\d+\}|\d+/g, 'N').replaceAll(/search=\w+/g, 'search=x')

/** Random sites, one after the other, until so many writes were sent; tells of each stale answer once for its kind. */
export const runFuzz = async (sites: FuzzedSites, options: RunOptions): Promise<RunResult> => {
  const { wordpress } = sites
  const seeded = await seededIds(wordpress, basic(wordpress.credentials.admin))
  const seen = nothingSeen()
  const stale: string[] = []
  const told = new Set<string>()
  let foundAfter: number | undefined
  for (let number = 0; seen.writes < options.writes; number += 1) {
    const seed = options.seed + number
    const site = await sites.withSetting(settingOf(seed))
    const before = seen.writes
    await fuzzSite({
      site,
      seeded,
      seed,
      writes: Math.min(writesPerSite, options.writes - seen.writes),
      answersPerWrite: options.answersPerWrite,
      ...(options.focus === undefined ? {} : { focus: options.focus }),
      ...(options.readFocus === undefined ? {} : { readFocus: options.readFocus }),
      seen,
      stale: async (answer) => {
        foundAfter ??= seen.writes
        const suspects = answer.writes.slice(answer.rightAfter).map(({ kind }) => kind)
        const isTold = suspects.some((kind) => told.has(sameCase(kind, answer.read.route)))
        if (isTold) {
          stale.push(`again: ${suspects.join(', ')}: ${answer.read.route}`)
          return options.firstOnly !== true
        }
        const paused = `${wordpress.database}.paused`
        await copyFile(wordpress.database, paused)
        const shrunk = options.shrinks === false ? undefined : await shrink(site, answer)
        for (const end of ['-wal', '-shm']) await rm(wordpress.database + end, { force: true })
        await copyFile(paused, wordpress.database)
        await site.purge()
        const guilty = shrunk?.writes.at(-1)?.kind
        for (const kind of guilty === undefined ? suspects : [guilty]) {
          told.add(sameCase(kind, answer.read.route))
        }
        const steps =
          shrunk === undefined
            ? `  not seen again on a fresh copy; one of ${suspects.join(', ')}\n  stale: GET ${answer.read.route} (${answer.read.caller}): ${difference(answer.shown, answer.direct)}`
            : shrunkText(shrunk)
        const text = `stale answer, seed ${seed}, names ${site.setting.names}, after ${seen.writes - before} writes\n${steps}`
        stale.push(text)
        options.tell(text)
        return options.firstOnly !== true
      },
    })
    if (stale.length > 0 && options.firstOnly === true) break
  }
  return { seen, stale, ...(foundAfter === undefined ? {} : { foundAfter }) }
}
