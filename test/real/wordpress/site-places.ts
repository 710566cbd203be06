import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { withFileLock } from '../../support/file-lock.ts'
import { sitesFolder } from './build-site.ts'

/** Where the copy of a built site stands while a test runs it. */
type SitePlace = {
  /** Empty when it is taken. */
  readonly folder: string
  /** Removes the copy and leaves the place to the next one. */
  leave(): Promise<void>
}

const places = join(sitesFolder, 'places')

/**
 * Takes the first place for copies of this site that no test of this machine is using. PHP knows compiled files by their path
 * and age, and the code of a copy is as old as its original: what one copy had compiled, the next one in its place finds.
 */
export const takeSitePlace = (built: string): Promise<SitePlace> =>
  withFileLock(join(sitesFolder, 'places.lock'), async () => {
    await removeOutdated()
    for (let number = 1; ; number += 1) {
      const place = join(places, `${basename(built)}-${number}`)
      const ownerFile = join(place, 'owner')
      if (await isTaken(ownerFile)) continue
      const folder = join(place, 'copy')
      await rm(folder, { recursive: true, force: true, maxRetries: 3 })
      await mkdir(folder, { recursive: true })
      await mkdir(join(place, 'compiled/server'), { recursive: true })
      await mkdir(join(place, 'compiled/script'), { recursive: true })
      await writeFile(ownerFile, String(process.pid))
      const leave = async (): Promise<void> => {
        await rm(folder, { recursive: true, force: true })
        await rm(ownerFile, { force: true })
      }
      return { folder, leave }
    }
  })

/** Settings of PHP that keep what it compiles of the site in such a place; servers and scripts do not compile alike. */
export const compiledKept = (site: string, kind: 'server' | 'script'): readonly string[] => [
  ...['-d', `opcache.file_cache=${join(site, '../../compiled', kind)}`],
  ...['-d', 'opcache.file_cache_consistency_checks=0'],
]

/** The place of a process that is gone is free. */
const isTaken = async (ownerFile: string): Promise<boolean> => {
  const owner = await readFile(ownerFile, 'utf8').catch(() => '')
  return owner !== '' && existsSync(`/proc/${owner}`)
}

/** Places of sites that have been built anew. */
const removeOutdated = async (): Promise<void> => {
  for (const name of await readdir(places).catch(() => []))
    if (!existsSync(join(sitesFolder, name.replace(/-\d+$/, ''))))
      await rm(join(places, name), { recursive: true, force: true })
}
