import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { basic } from '../site-under-test.ts'
import { faultsPage, isOpen, type Standing, standingsOf } from './fault-standing.ts'
import { createFaultyTables, siteContractOf } from './faulty-tables.ts'
import { type Hunt, huntByAim, huntOnSite } from './hunt-faults.ts'
import { seededIds } from './pools.ts'
import type { FuzzedSites } from './site-under-fuzz.ts'

type Options = {
  readonly writes: number
  readonly seed: number
  /** Only faults whose names begin so. */
  readonly only: string
  /** Only aimed writes whose text contains this, and no random ones. */
  readonly aimed: string | undefined
  /** Where the page is written after each site. */
  readonly page: string | undefined
  tell(line: string): void
}

type Saved = {
  readonly sites: number
  readonly writes: number
  readonly standings: Readonly<
    Record<string, Pick<Standing, 'found' | 'concerned' | 'alone' | 'needless' | 'unseen'>>
  >
}

const stateFile = (page: string): string => `${page}.json`

/** So that a run of hours can be ended at any time and go on later. */
const save = async (page: string, { writes, standings }: Hunt, sites: number): Promise<void> => {
  const states = standings.map(
    ({ plant, found, concerned, alone, needless, unseen }) =>
      [plant.name, { found, concerned, alone, needless, unseen }] as const,
  )
  const saved: Saved = { sites, writes, standings: Object.fromEntries(states) }
  await writeFile(stateFile(page), JSON.stringify(saved, undefined, 1))
}

/** Takes over what an earlier run has saved; the number of sites that it has ended. */
const resume = async (page: string, hunt: Hunt): Promise<number> => {
  if (!existsSync(stateFile(page))) return 0
  const { sites, writes, standings } = JSON.parse(await readFile(stateFile(page), 'utf8')) as Saved
  for (const standing of hunt.standings) Object.assign(standing, standings[standing.plant.name] ?? {})
  hunt.writes = writes
  return sites
}

/**
 * Looks for all faults with the same writes: those that aim at the rows, then random ones that are chosen for the faults that have not
 * been found. After each write the functions
 * of the gateway compute which stored responses each fault would keep. Where WordPress answers one of these otherwise, the fault is
 * planted, the write is repeated on a copy of the earlier database, and the fault counts as found when the gateway gives the old response.
 */
export const plantAll = async (sites: FuzzedSites, options: Options): Promise<readonly Standing[]> => {
  const { wordpress } = sites
  const standings = standingsOf(options.only)
  const seeded = await seededIds(wordpress, basic(wordpress.credentials.admin))
  const site = await sites.withSetting({ names: 'same', pages: false })
  const observable = standings.filter(({ unobservable }) => unobservable === undefined)
  const tables = createFaultyTables(
    await siteContractOf(wordpress, site.setting),
    observable.map(({ plant }) => plant),
  )
  const hunt: Hunt = {
    sites,
    site,
    seeded,
    tables,
    standings,
    maxWrites: options.writes,
    writes: 0,
    compared: 0,
    stale: 0,
    tell: options.tell,
  }
  let number = options.page === undefined ? 0 : await resume(options.page, hunt)
  if (options.aimed !== undefined) {
    await huntByAim(hunt, options.aimed)
    for (const { plant, concerned, alone, needless, unseen } of standings.filter(isOpen))
      if (concerned > 0)
        options.tell(
          `${plant.name.padEnd(44)} not found: ${concerned} writes, ${alone} responses alone, ${needless} needless, ${unseen} not confirmed`,
        )
    return standings
  }
  for (; hunt.writes < options.writes && standings.some(isOpen); number += 1) {
    await (number === 0 ? huntByAim(hunt) : huntOnSite(hunt, options.seed + number))
    if (options.page !== undefined) {
      await writeFile(options.page, faultsPage(standings, hunt.writes, options.seed))
      await save(options.page, hunt, number + 1)
    }
    if (number === 0)
      options.tell(
        `aimed writes: ${hunt.compared} responses compared, ${hunt.stale} outdated without a fault`,
      )
    const found = standings.filter((one) => one.found !== undefined).length
    process.stderr.write(
      `${hunt.writes} writes, ${found} faults found, ${standings.filter(isOpen).length} not\n`,
    )
  }
  return standings
}
