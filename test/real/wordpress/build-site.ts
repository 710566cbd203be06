import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { withFileLock } from '../../support/file-lock.ts'

const run = promisify(execFile)
const here = dirname(fileURLToPath(import.meta.url))

/** Where built sites and the copies of single runs live; git-ignored. */
export const sitesFolder = join(here, '../../../.test-sites')

/** WordPress 6.7 (its last nightly before beta) and the plugin that lets it run on SQLite, with their checksums. */
const packages = {
  wordpress: {
    name: '@wp-playground/wordpress-builds@0.9.19',
    integrity:
      'sha512-dlqvh/MJDpE5W68vgPPKUjpip6zMuBh59L3D18ZX+pdwurC4q4ydrTww/3sTMV69BBcoH6kF93YtAtujNC5Mpw==',
    member: 'package/src/wordpress/wp-nightly.zip',
  },
  sqlite: {
    name: '@wp-playground/cli@3.1.56',
    integrity:
      'sha512-JTxl6djPEM2YRYz/w+BUoyoCvhSGHIjqMi4fMV1b8o1UPNvZatLaS7opo57UsrVElXrfdZwvi6IuyS4LswUx9Q==',
    member: 'package/sqlite-database-integration.zip',
  },
}

/** Of the tests, in the document root. */
const ownFiles = ['wp-config.php', 'eval.php'] as const

/** Builds the seeded site once for this version of packages and seed; later calls only find it. Returns its folder. */
export async function buildSite(): Promise<string> {
  return buildOnce('wordpress', await fingerprint(), assemble)
}

/** Builds a folder once for this fingerprint of all that it is made of, and removes earlier ones of its kind. */
export async function buildOnce(
  kind: string,
  made: string,
  build: (folder: string) => Promise<void>,
): Promise<string> {
  const folder = join(sitesFolder, `${kind}-${made}`)
  if (existsSync(folder)) return folder
  await withFileLock(`${folder}.lock`, async () => {
    if (existsSync(folder)) return
    const unfinished = `${folder}.unfinished`
    await rm(unfinished, { recursive: true, force: true })
    await mkdir(unfinished, { recursive: true })
    await build(unfinished)
    await rename(unfinished, folder)
    await removeOthers(kind, folder)
  })
  return folder
}

/** Copies what is in a folder. `cp` of node:fs takes five times the processor time for the files of a WordPress. */
export async function copyFolder(from: string, into: string): Promise<void> {
  await mkdir(into, { recursive: true })
  await run('cp', ['-r', '--sparse=always', `${from}/.`, into])
}

async function assemble(folder: string): Promise<void> {
  const site = join(folder, 'site')
  const plugins = join(site, 'wp-content/plugins')
  await mkdir(join(folder, 'database'), { recursive: true })
  await unpack(packages.wordpress, folder, site)
  await unpack(packages.sqlite, folder, plugins)
  const plugin = join(plugins, 'sqlite-database-integration')
  await rename(join(plugins, 'plugin-sqlite-database-integration'), plugin)
  await copyFile(join(plugin, 'db.copy'), join(site, 'wp-content/db.php'))
  for (const name of ownFiles) await copyFile(join(here, name), join(site, name))
  // The address is written into nothing but `guid`: each run gives its own.
  const env = { ...process.env, PUBLIC_URL: 'http://wordpress.test' }
  await run('php', [join(here, 'seed.php'), site, join(folder, 'credentials.json')], { env })
}

async function unpack(source: (typeof packages)[keyof typeof packages], folder: string, into: string) {
  const archive = join(folder, 'package.tgz')
  const { stdout } = await run('npm', ['pack', '--silent', '--pack-destination', folder, source.name], {
    cwd: folder,
  })
  await rename(join(folder, stdout.trim().split('\n').at(-1) ?? ''), archive)
  const sum = `sha512-${createHash('sha512')
    .update(await readFile(archive))
    .digest('base64')}`
  if (sum !== source.integrity) throw new Error(`${source.name} is not what it was: ${sum}`)
  await run('tar', ['-xzf', archive, '-C', folder, source.member])
  await run('unzip', ['-q', '-o', join(folder, source.member), '-d', into])
  await rm(archive)
  await rm(join(folder, 'package'), { recursive: true })
}

async function fingerprint(): Promise<string> {
  const hash = createHash('sha256').update(JSON.stringify(packages))
  for (const name of [...ownFiles, 'seed.php', 'build-site.ts']) hash.update(await readFile(join(here, name)))
  return hash.digest('hex').slice(0, 12)
}

async function removeOthers(kind: string, current: string): Promise<void> {
  const others = (await readdir(sitesFolder)).filter((name) => new RegExp(`^${kind}-[0-9a-f]+$`).test(name))
  for (const name of others.filter((one) => join(sitesFolder, one) !== current)) {
    await rm(join(sitesFolder, name), { recursive: true, force: true })
  }
}
