import { writeFile } from 'node:fs/promises'
import { basic } from '../site-under-test.ts'
import { faultsPage, isOpen, type Standing, standingsOf } from './fault-standing.ts'
import { createFaultyTables, siteContractOf } from './faulty-tables.ts'
import { type Hunt, huntOnSite } from './hunt-faults.ts'
import { seededIds } from './pools.ts'
import type { FuzzedSites } from './site-under-fuzz.ts'

type Options = {
  readonly writes: number
  readonly seed: number
  /** Only faults whose names begin so. */
  readonly only: string
  /** Where the page is written after each site. */
  readonly page: string | undefined
  tell(line: string): void
}

/**
 * Looks for all faults with the same random writes, which are chosen for those that have not been found. After each write the functions
 * of the gateway compute which stored responses each fault would keep. Where WordPress answers one of these otherwise, the fault is
 * planted, the write is repeated on the database of before, and the fault counts as found when the gateway gives the old response.
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
    mostWrites: options.writes,
    writes: 0,
    tell: options.tell,
  }
  for (let number = 0; hunt.writes < options.writes && standings.some(isOpen); number += 1) {
    await huntOnSite(hunt, options.seed + number)
    if (options.page !== undefined)
      await writeFile(options.page, faultsPage(standings, hunt.writes, options.seed))
    const found = standings.filter((one) => one.found !== undefined).length
    process.stderr.write(
      `${hunt.writes} writes, ${found} faults found, ${standings.filter(isOpen).length} not\n`,
    )
  }
  return standings
}
