import { basic } from '../test/real/site-under-test.ts'
import { startWordPress } from '../test/real/wordpress/start-wordpress.ts'
import { missingForStack, type StackSettings, startStack } from './batch-stack.ts'

/** A WordPress to send batches to. */
export type Site = {
  readonly name: string
  readonly origin: string
  readonly authorization: string
  /** Process ids of its programs; empty where another program started them. */
  readonly pids: readonly number[]
  /** Of all posts, so that saving a title costs in the last round what it cost in the first. */
  forgetRevisions(): Promise<void>
  stop(): Promise<void>
}

/** For a site whose revisions are not accessible. */
export const keepsRevisions = async (): Promise<void> => {}

async function stackSite(name: string, settings: StackSettings): Promise<Site> {
  const stack = await startStack(settings)
  return { ...stack, name, authorization: basic(stack.admin) }
}

async function sqliteSite(name: string, opcache: boolean): Promise<Site> {
  const started = await startWordPress({ opcache })
  return {
    ...started,
    name,
    pids: [started.pid],
    authorization: basic(started.credentials.admin),
    forgetRevisions: keepsRevisions,
  }
}

const fpm = 'nginx, php-fpm, MariaDB'

/** Ways to run the same WordPress. */
export const siteStarts: Readonly<Record<string, () => Promise<Site>>> = {
  // As Debian's packages come: a commit is on disk before it is answered.
  stack: () => stackSite(`${fpm}, each commit synced`, { flush: 1, opcache: true }),
  // What a disk that is slow to sync hides.
  'stack-lazy': () => stackSite(`${fpm}, synced once a second`, { flush: 2, opcache: true }),
  // PHP without its opcache package, or with an opcache too small for the plugins.
  'stack-uncached': () => stackSite(`${fpm}, synced once a second, no opcache`, { flush: 2, opcache: false }),
  // One writer at a time.
  sqlite: () => sqliteSite('php -S and SQLite', true),
  'sqlite-uncached': () => sqliteSite('php -S and SQLite, no opcache', false),
}

/** How the site of that name is started. */
export function startOf(name: string): () => Promise<Site> {
  const start = siteStarts[name]
  if (start === undefined)
    throw new RangeError(`no such site: ${name}; there are ${Object.keys(siteStarts).join(', ')}`)
  return start
}

/** Those that are asked for, or the usual ones. */
export function chosenSites(choice: string | undefined): readonly (() => Promise<Site>)[] {
  if (choice === 'slow') return []
  if (choice !== undefined) return choice.split(',').map(startOf)
  const missing = missingForStack()
  if (missing === undefined) return ['stack', 'stack-lazy'].map(startOf)
  console.log(`only SQLite; the usual stack needs: ${missing}`)
  return [startOf('sqlite')]
}
