import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { fingerprintOfStack, seedSite, whileBuilding, withNewDatabase } from '../../../bench/batch-stack.ts'
import { buildOnce } from '../wordpress/build-site.ts'
import { archiveOfCore, archiveOfPlugin, type Core, type PluginName, plugins } from './archives.ts'

const run = promisify(execFile)
const here = dirname(fileURLToPath(import.meta.url))
const ownFiles = ['build-real-site.ts', 'activate.php', 'fill.php']

const unpack = (archive: string, into: string) => run('tar', ['-xJf', archive, '-C', into])

/** Builds a site of this WordPress with these plugins and their content, on MariaDB, once. Returns its folder. */
export const buildRealSite = async (core: Core, names: readonly PluginName[]): Promise<string> => {
  const hash = createHash('sha256').update(await fingerprintOfStack())
  for (const file of ownFiles) hash.update(await readFile(join(here, file)))
  const archives = [archiveOfCore(core), ...names.map(archiveOfPlugin)]
  // A path of a socket has 107 characters at most, and the folder is a part of it.
  const kind = `real-${core}-${[...names].sort().join('-') || 'none'}`.slice(0, 40)
  const made = hash.update(archives.join()).digest('hex').slice(0, 12)
  return buildOnce(kind, made, async (folder) => {
    const site = join(folder, 'site')
    await unpack(archiveOfCore(core), folder)
    await rename(join(folder, 'wordpress'), site)
    const contents = join(site, 'wp-content')
    await mkdir(join(contents, 'plugins'), { recursive: true })
    for (const name of names) await unpack(archiveOfPlugin(name), join(contents, 'plugins'))
    await withNewDatabase(folder, async () => {
      await seedSite(folder)
      await run('php', [join(here, 'activate.php'), site, ...names.map((name) => plugins[name][1])], {
        env: whileBuilding,
      })
      await run('php', [join(here, 'fill.php'), site], { env: whileBuilding })
    })
    await rm(join(contents, 'upgrade'), { recursive: true, force: true })
  })
}
