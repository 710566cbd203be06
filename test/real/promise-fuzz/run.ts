import { basic } from '../site-under-test.ts'
import { fuzzSite, nothingSeen, type Seen, type StaleResponse } from './fuzz-site.ts'
import { seededIds } from './pools.ts'
import { difference, shrunkText } from './report.ts'
import { type Shrunk, shrink } from './shrink.ts'
import type { FuzzedSite, FuzzedSites, Setting } from './site-under-fuzz.ts'

export type RunOptions = {
  readonly writes: number
  readonly seed: number
  /** Of `performance.now()`: no write is sent after it. */
  readonly until?: number
  readonly responsesPerWrite: number
  /** Kinds of writes that are to be sent more often, by how their names begin. */
  readonly focus?: string
  /** Reads that are to be repeated more often. */
  readonly readFocus?: RegExp
  /** Ends with the first stale response, and says nothing of others. */
  readonly firstOnly?: boolean
  readonly shrinks?: boolean
  tell(line: string): void
  /** After each site. */
  progress?(seen: Seen): void
}

/** After this number of writes another site begins with its own seed. */
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

/** The kind under which a stale response is reported once; an unexpected scheduled post is in too many responses to report each. */
const sameCase = (kind: string, route: string): string => (kind === 'cron' ? kind : `${kind} ${shape(route)}`)

const shape = (route: string): string =>
  route.replaceAll(/\{w\d+\}|\d+/g, 'N').replaceAll(/search=\w+/g, 'search=x')

/** Shrinks on copies of the database, and puts back the one of before. */
const shrunkAside = async (site: FuzzedSite, response: StaleResponse): Promise<Shrunk | undefined> => {
  await site.save('paused')
  const shrunk = await shrink(site, response)
  await site.restore('paused')
  return shrunk
}

/** Reports each case once, with its steps. */
const createTeller = (options: RunOptions) => {
  const told = new Set<string>()
  return async (site: FuzzedSite, seed: number, response: StaleResponse): Promise<string> => {
    const { read, writes, rightAfter } = response
    const suspects = writes.slice(rightAfter).map(({ kind }) => kind)
    if (suspects.some((kind) => told.has(sameCase(kind, read.route)))) {
      await site.purge()
      return `again: ${suspects.join(', ')}: ${read.route}`
    }
    const shrunk = options.shrinks === false ? undefined : await shrunkAside(site, response)
    const guilty = shrunk?.writes.at(-1)?.kind
    for (const kind of guilty === undefined ? suspects : [guilty]) told.add(sameCase(kind, read.route))
    const unshrunk = `  one of ${suspects.join(', ')}\n  stale: GET ${read.route} (${read.caller}): ${difference(response.shown, response.direct)}`
    const text = `stale answer, seed ${seed}, names ${site.setting.names}, after ${writes.length} writes\n${shrunk === undefined ? unshrunk : shrunkText(shrunk)}`
    options.tell(text)
    return text
  }
}

/** Runs random sites until the number of writes is reached; reports one stale response per kind. */
export const runFuzz = async (sites: FuzzedSites, options: RunOptions): Promise<RunResult> => {
  const { wordpress } = sites
  const seeded = await seededIds(wordpress, basic(wordpress.credentials.admin))
  const seen = nothingSeen()
  const stale: string[] = []
  const tellOf = createTeller(options)
  let foundAfter: number | undefined
  const { until = Number.POSITIVE_INFINITY } = options
  for (let number = 0; seen.writes < options.writes && performance.now() < until; number += 1) {
    const seed = options.seed + number
    const site = await sites.withSetting(settingOf(seed))
    await fuzzSite({
      ...options,
      site,
      seeded,
      seed,
      writes: Math.min(writesPerSite, options.writes - seen.writes),
      seen,
      stale: async (response) => {
        foundAfter ??= seen.writes
        stale.push(await tellOf(site, seed, response))
        return options.firstOnly !== true
      },
    })
    options.progress?.(seen)
    if (stale.length > 0 && options.firstOnly === true) break
  }
  return { seen, stale, ...(foundAfter === undefined ? {} : { foundAfter }) }
}
