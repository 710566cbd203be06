import { execFile, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { access, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { buildOnce, buildSite, copyFolder } from '../test/real/wordpress/build-site.ts'
import { copyCompanion } from '../test/real/wordpress/copy-companion.ts'
import { copySite } from '../test/real/wordpress/copy-site.ts'
import { compiledKept, takeSitePlace } from '../test/real/wordpress/site-places.ts'
import type { Credential, Role } from '../test/real/wordpress/start-wordpress.ts'
import { freePort } from '../test/support/ports.ts'
import { type RunningProcess, startProcess, untilReady } from '../test/support/processes.ts'
import { fpmSettings, nginxSettings, wordPressSettings } from './batch-stack-settings.ts'

/** The usual way to run WordPress, on this machine only: nginx, php-fpm, MariaDB. */
export type Stack = {
  readonly origin: string
  /** Of its programs; their children are not among them. */
  readonly pids: readonly number[]
  readonly admin: Credential
  readonly credentials: Readonly<Record<Role, Credential>>
  /** The document root of WordPress. */
  readonly site: string
  /** Of the database. */
  readonly socket: string
  /** Deletes them behind WordPress's back. */
  forgetRevisions(): Promise<void>
  stop(): Promise<void>
}

/** How MariaDB keeps a commit: 1 = on disk before it is answered (its default), 2 = on disk within a second. */
type Flush = 1 | 2

/** What deployments differ in that matters to a batch. */
export type StackSettings = {
  readonly flush: Flush
  /** Is compiled PHP kept? Without it each request compiles WordPress again. */
  readonly opcache: boolean
  /** The companion of deploy/wordpress is installed, with these variables in the environment of PHP. */
  readonly companion?: Readonly<Record<string, string>>
  /** Its address in links, when a gateway stands in front of it; its own if there is none. */
  readonly publicUrl?: string
  /** A folder with a built site, as `buildStack` makes them; the seeded site of the tests if there is none. */
  readonly built?: string
  /** Variables in the environment of PHP. */
  readonly environment?: Readonly<Record<string, string>>
}

const run = promisify(execFile)
const seed = join(dirname(fileURLToPath(import.meta.url)), '../test/real/wordpress/seed.php')
const packages = ['nginx-light', 'php8.2-fpm', 'php8.2-mysql', 'mariadb-server']

/** What is missing to start it, as a command; undefined when nothing is. */
export function missingForStack(): string | undefined {
  const probe =
    'command -v nginx && command -v php-fpm8.2 && command -v mariadbd && php -m | grep -qix mysqli'
  if (spawnSync('sh', ['-c', probe]).status === 0) return undefined
  return `apt-get install -y --no-install-recommends ${packages.join(' ')}`
}

const dataIn = (folder: string): string => join(folder, 'data')
const socketIn = (folder: string): string => join(folder, 'db.sock')

const statement = (folder: string, sql: string): string[] => [
  ...['--no-defaults', `--socket=${socketIn(folder)}`],
  ...['--user=root', '--execute', sql],
]

async function startDatabase(folder: string, data: string, flush: Flush): Promise<RunningProcess> {
  const database = startProcess('mariadbd', [
    '--no-defaults',
    `--datadir=${data}`,
    `--socket=${socketIn(folder)}`,
    `--pid-file=${join(folder, 'db.pid')}`,
    `--innodb-flush-log-at-trx-commit=${flush}`,
    // Each site is a copy: 96 MiB by default.
    '--innodb-log-file-size=8M',
    '--skip-networking',
    '--user=root',
  ])
  const create = 'CREATE DATABASE IF NOT EXISTS site CHARACTER SET utf8mb4'
  await untilReady(database, () => run('mariadb', statement(folder, create)))
  return database
}

const prepareFiles = (folder: string, site: string): Promise<void> =>
  writeFile(join(site, 'wp-config.php'), wordPressSettings(socketIn(folder)))

/** Fills a new database for the site of this folder: `fill` may run PHP in it. */
export async function withNewDatabase(folder: string, fill: () => Promise<void>): Promise<void> {
  await run('mariadb-install-db', [
    ...['--no-defaults', `--datadir=${dataIn(folder)}`, '--auth-root-authentication-method=normal'],
    ...['--skip-test-db', '--user=root'],
  ])
  await prepareFiles(folder, join(folder, 'site'))
  const database = await startDatabase(folder, dataIn(folder), 2)
  try {
    await fill()
  } finally {
    // Ends in order: the files are copied.
    await database.stop(60_000)
  }
}

/** The address is written into nothing but `guid`: each run gives its own. */
export const whileBuilding = { ...process.env, PUBLIC_URL: 'http://wordpress.test' }

/** Installs WordPress and its content. */
export const seedSite = async (folder: string): Promise<void> => {
  await run('php', [seed, join(folder, 'site'), join(folder, 'credentials.json')], { env: whileBuilding })
}

/** What any built stack is made of beside its files: the version of the database, and this file. */
export const fingerprintOfStack = async (): Promise<string> => {
  const { stdout: version } = await run('mariadbd', ['--version'])
  return createHash('sha256')
    .update(version)
    .update(await readFile(fileURLToPath(import.meta.url)))
    .update(await readFile(seed))
    .digest('hex')
}

/** Files and database of a seeded site, built once: a copy takes a tenth of the time. */
export async function buildStack(): Promise<string> {
  const source = await buildSite()
  const made = createHash('sha256')
    .update(source)
    .update(await fingerprintOfStack())
    .digest('hex')
    .slice(0, 12)
  return buildOnce('stack', made, async (folder) => {
    const site = join(folder, 'site')
    await copyFolder(join(source, 'site'), site)
    // What makes the built one use SQLite.
    await rm(join(site, 'wp-content/db.php'))
    await rm(join(site, 'wp-content/plugins/sqlite-database-integration'), { recursive: true })
    await rm(join(site, 'wp-content/uploads'), { recursive: true, force: true })
    await withNewDatabase(folder, () => seedSite(folder))
  })
}

/** Starts all of it with a copy of a built site; `stop` ends it by its process ids and removes the copy. */
export async function startStack(settings: StackSettings): Promise<Stack> {
  const { flush, opcache, companion = {} } = settings
  const built = settings.built ?? (await buildStack())
  // The path of a socket has to be short.
  const folder = await mkdtemp(join(tmpdir(), 'trellis-stack-'))
  const place = await takeSitePlace(built)
  const started: RunningProcess[] = []
  const stop = async (): Promise<void> => {
    // The files are removed at the end.
    for (const program of [...started].reverse()) await program.stop(0)
    await rm(folder, { recursive: true, force: true })
    await place.leave()
  }
  try {
    const site = join(place.folder, 'site')
    await copySite(built, place.folder)
    await prepareFiles(folder, site)
    started.push(await startDatabase(folder, dataIn(place.folder), flush))
    const port = await freePort()
    const origin = `http://127.0.0.1:${port}`
    const publicUrl = settings.publicUrl ?? origin
    const credentials = join(place.folder, 'credentials.json')
    if (settings.companion !== undefined) await copyCompanion(site)
    await writeFile(
      join(folder, 'fpm.conf'),
      fpmSettings(folder, { PUBLIC_URL: publicUrl, ...settings.environment, ...companion }),
    )
    await writeFile(join(folder, 'nginx.conf'), nginxSettings(folder, site, port))
    // It leaves the process group it was started in, and would outlive it.
    const fpm = startProcess('setpriv', [
      ...['--pdeathsig', 'TERM', 'php-fpm8.2'],
      ...['--nodaemonize', '--allow-to-run-as-root'],
      ...['-y', join(folder, 'fpm.conf'), '-d', `opcache.enable=${opcache ? 1 : 0}`],
      // With the classes of large plugins PHP 8.2 dies of what it kept itself.
      ...(opcache && settings.built === undefined ? compiledKept(site, 'server') : []),
    ])
    started.push(fpm)
    await untilReady(fpm, () => access(join(folder, 'fpm.sock')))
    const nginx = startProcess('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf'), '-e', 'stderr'])
    started.push(nginx)
    await untilReady(nginx, async () => {
      const response = await fetch(`${origin}/index.php/wp-json/`)
      if (response.status !== 200) throw new Error(`status ${response.status}`)
      await response.arrayBuffer()
    })
    const known = JSON.parse(await readFile(credentials, 'utf8')) as Stack['credentials']
    const forgetRevisions = async (): Promise<void> => {
      await run('mariadb', statement(folder, "DELETE FROM site.wp_posts WHERE post_type = 'revision'"))
    }
    const pids = started.map(({ pid }) => pid)
    return {
      origin,
      pids,
      admin: known.admin,
      credentials: known,
      site,
      socket: socketIn(folder),
      forgetRevisions,
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}
