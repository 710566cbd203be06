import { cp, mkdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../support/ports.ts'
import { startProcess, untilReady } from '../../support/processes.ts'
import { buildSite } from './build-site.ts'
import { copyCompanion, patientPushes } from './copy-companion.ts'
import { copySite } from './copy-site.ts'
import { compiledKept, takeSitePlace } from './site-places.ts'

export type Credential = { readonly username: string; readonly password: string }
export type Role = 'admin' | 'editor' | 'author' | 'subscriber'

/** A running WordPress with its own content, which no other test changes. */
export type WordPress = {
  /** Where it listens. */
  readonly origin: string
  /** REST root by its own address. */
  readonly restRoot: string
  readonly credentials: Readonly<Record<Role, Credential>>
  readonly pid: number
  /** Its database, one file: a copy of it is a copy of the site but for uploaded files. */
  readonly database: string
  /** Its document root. */
  readonly site: string
  /** What PHP has logged. */
  log(): string
  stop(): Promise<void>
}

const here = dirname(fileURLToPath(import.meta.url))
const router = join(here, 'router.php')

/** Plugins of the tests, in the folder `plugins`. */
export type TestPlugin =
  | 'companion-rows'
  | 'companion-shows'
  | 'die'
  | 'due-posts'
  | 'garden-notes'
  | 'graphql-for-tests'
  | 'large-shop'
  | 'menu-place'
  | 'noise'
  | 'plain-http-passwords'
  | 'promise-fuzz'
  | 'quiet-writes'
  | 'request-echo'
  | 'widened'

type WordPressOptions = {
  readonly publicUrl?: string
  readonly opcache?: boolean
  /** Active from the start and for ever: must-use plugins. */
  readonly plugins?: readonly TestPlugin[]
  /** Installed and inactive, so that a test can activate them. */
  readonly inactivePlugins?: readonly TestPlugin[]
  /** The companion of deploy/wordpress is installed, with these settings in the environment. */
  readonly companion?: CompanionSettings
}

/** Environment variables that configure the companion, e.g. TRELLIS_TOKEN. */
export type CompanionSettings = Readonly<Record<`TRELLIS_${string}`, string>>

export async function copyPlugins(names: readonly TestPlugin[], into: string): Promise<void> {
  await mkdir(into, { recursive: true })
  for (const name of names) await cp(join(here, 'plugins', `${name}.php`), join(into, `${name}.php`))
}

/**
 * Starts a fresh copy of the seeded site on a free port.
 * Each caller gets its own: a write that does not pass the gateway under test would rightly look like a stale read.
 */
export async function startWordPress(options: WordPressOptions = {}): Promise<WordPress> {
  const built = await buildSite()
  const { folder, leave } = await takeSitePlace(built)
  await copySite(built, folder)
  const site = join(folder, 'site')
  const contents = join(site, 'wp-content')
  await copyPlugins(options.plugins ?? [], join(contents, 'mu-plugins'))
  await copyPlugins(options.inactivePlugins ?? [], join(contents, 'plugins'))
  if (options.companion !== undefined) await copyCompanion(site)
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const php = startProcess(
    'php',
    [
      // php -S counts as a server: opcache.enable_cli does not switch it off.
      ...['-d', 'opcache.enable_cli=1', '-d', `opcache.enable=${options.opcache === false ? 0 : 1}`],
      ...(options.opcache === false ? [] : compiledKept(site, 'server')),
      ...['-d', 'display_errors=0', '-d', 'log_errors=1'],
      ...['-S', `127.0.0.1:${port}`, '-t', site, router],
    ],
    {
      env: {
        PUBLIC_URL: options.publicUrl ?? origin,
        PHP_CLI_SERVER_WORKERS: '4',
        ...patientPushes,
        ...options.companion,
      },
    },
  )
  const stop = async (): Promise<void> => {
    // Nothing is kept: no need for a graceful end, which takes php -S a second.
    await php.stop(0)
    await leave()
  }
  const restRoot = `${origin}/index.php/wp-json`
  try {
    await untilReady(php, async () => {
      const response = await fetch(`${restRoot}/`)
      if (response.status !== 200) throw new Error(`status ${response.status}`)
      await response.arrayBuffer()
    })
  } catch (error) {
    await stop()
    throw error
  }
  const credentials: WordPress['credentials'] = JSON.parse(
    await readFile(join(folder, 'credentials.json'), 'utf8'),
  )
  const database = join(folder, 'database/site.sqlite')
  return { origin, restRoot, credentials, pid: php.pid, database, site, log: php.output, stop }
}
