import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pause } from '../../support/origin.ts'
import { type Fault, planted } from '../../support/planted.ts'
import { forAll } from '../for-all.ts'
import { companionFile } from '../wordpress/copy-companion.ts'
import { copyDatabase } from '../wordpress/copy-database.ts'
import { type Change, poll } from './intake.ts'
import { droppedTags, reaches, storedTags } from './reach.ts'
import { showingContents } from './reads.ts'
import { makeTables } from './row-writes.ts'
import { type CompanionSite, startCompanionSite } from './site.ts'
import type { Write } from './writes.ts'

/** The write after which, with the fault, a gateway would keep a response that WordPress gives otherwise, and the path of that. */
export type Issue = { readonly fault: string; readonly write: string; readonly read: string }

type Found = {
  readonly findings: readonly Issue[]
  /** Responses that the companion without a fault leaves stale. */
  readonly stale: readonly string[]
}

type Options = {
  readonly faults: readonly Fault[]
  readonly writes: readonly Write[]
  /** What is read before and after each write. Without it only what `known` names. */
  readonly paths?: readonly string[]
  /** Faults that are looked for only as they were found before; others after each write and in every response. */
  readonly known: readonly Issue[]
  tell(line: string): void
}

type Versions = {
  /** For the requests that follow; without a fault the companion as it is. */
  select(fault?: Fault): Promise<void>
  /** Is it in what the companion says of responses? Others are in what it reports of writes alone. */
  isOfTags(fault: Fault): boolean
}

/** Waits until the faulty versions answer: PHP uses the earlier file for up to two seconds (opcache.revalidate_freq). */
const untilInstalled = async (site: CompanionSite): Promise<void> => {
  for (let asked = 1; ; asked += 1) {
    const response = await fetch(`${site.origin}/index.php/wp-json/`)
    await response.arrayBuffer()
    if (response.headers.get('companion-version') === 'right') return
    if (asked === 100) throw new Error('PHP does not use the changed file')
    await pause(100)
  }
}

/** Installs the companion and each of its faulty versions. */
const installVersions = async (site: CompanionSite, faults: readonly Fault[]): Promise<Versions> => {
  const contents = join(site.site, 'wp-content')
  const folder = join(contents, 'companions')
  const text = await readFile(companionFile, 'utf8')
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'right.php'), text)
  for (const [at, fault] of faults.entries()) await writeFile(join(folder, `${at}.php`), planted(text, fault))
  const select: Versions['select'] = (fault) =>
    writeFile(join(folder, 'selected'), fault === undefined ? 'right' : String(faults.indexOf(fault)))
  await select()
  const load = `<?php $name = file_get_contents( WP_CONTENT_DIR . '/companions/selected' ); header( "Companion-Version: $name" ); require WP_CONTENT_DIR . "/companions/$name.php";`
  await writeFile(join(contents, 'mu-plugins/trellis.php'), load)
  await untilInstalled(site)
  return {
    select,
    isOfTags: (fault) => text.indexOf(fault.right) > text.indexOf('class Trellis_Tags'),
  }
}

type Shown = { readonly text: string; readonly tags: string | undefined }
type AllShown = ReadonlyMap<string, Shown>

const read = async (site: CompanionSite, path: string): Promise<Shown> => {
  const response = await fetch(`${site.origin}/index.php/wp-json${path}`)
  const counts = ['x-wp-total', 'x-wp-totalpages'].map((name) => response.headers.get(name))
  const text = JSON.stringify([response.status, counts, await response.text()])
  return { text, tags: response.headers.get('trellis-tags') ?? undefined }
}

const readAll = async (site: CompanionSite, paths: readonly string[]): Promise<AllShown> => {
  const shown = await forAll(paths, async (path) => [path, await read(site, path)] as const)
  return new Map(shown)
}

/** The log behind a row, once no request of WordPress is open: a scheduled task may run beside a write. */
const settledLog = async (site: CompanionSite, after: number): ReturnType<typeof poll> => {
  for (let polls = 1; ; polls += 1) {
    const log = await poll(site.origin, after)
    if (polls === 50 || log.rows.every(({ state }) => state !== 'open')) return log
    await pause(100)
  }
}

/** Sends a write; gives what the log of the site has of it. */
const send = async (site: CompanionSite, [, , run]: Write): Promise<readonly Change[]> => {
  const { last } = await settledLog(site, 1_000_000_000)
  await run(site)
  const { rows } = await settledLog(site, last)
  return rows.flatMap(({ state, changes = [] }): readonly Change[] =>
    state === 'closed' ? changes : [{ kind: 'all', reason: state }],
  )
}

/** Would a gateway keep a response with these tags? One that is not described completely is left to its table. */
const keeps = (changes: readonly Change[], shown: Shown | undefined): boolean =>
  shown?.tags?.includes(';complete;') === true && !reaches(changes, shown.tags)

/** Why a response is not kept: what `SHOW_KEPT` prints. */
const reasonFor = (changes: readonly Change[], shown: Shown | undefined): string => {
  const dropped = new Set(droppedTags(changes))
  const stored = [...storedTags(shown?.tags ?? '')].filter((tag) => dropped.has(tag))
  return shown?.tags?.includes(';complete;') === true ? stored.join(' ') : 'incomplete'
}

/** A write that was sent, and responses that it has changed. */
type Sent = {
  readonly write: Write
  readonly changes: readonly Change[]
  readonly before: AllShown
  readonly changed: readonly string[]
}

class FaultSearch {
  readonly #site: CompanionSite
  readonly #versions: Versions
  readonly #options: Options
  readonly #known: ReadonlyMap<string, Issue>
  #open: readonly Fault[]
  readonly #findings: Issue[] = []
  readonly #stale: string[] = []

  constructor(site: CompanionSite, versions: Versions, options: Options) {
    this.#site = site
    this.#versions = versions
    this.#options = options
    this.#known = new Map(options.known.map((one) => [one.fault, one]))
    this.#open = options.faults
  }

  async run(): Promise<Found> {
    const { writes, paths, tell } = this.#options
    let before = await readAll(this.#site, paths ?? [])
    for (const write of writes) {
      if (paths === undefined && this.#open.length === 0) break
      const asked = paths ?? this.#pathsOf(write)
      // A later write may change what it makes.
      if (asked.length === 0) {
        await write[2](this.#site)
        continue
      }
      await this.#save('before')
      if (paths === undefined) before = await readAll(this.#site, asked)
      const changes = await send(this.#site, write)
      await this.#save('after')
      const after = await readAll(this.#site, asked)
      const changed = asked.filter((path) => before.get(path)?.text !== after.get(path)?.text)
      await this.#judge({ write, changes, before, changed })
      await this.#restore('after')
      before = after
    }
    for (const { name } of this.#open) tell(`${name}: not found`)
    return { findings: this.#findings, stale: this.#stale }
  }

  /** What was read when faults were found with this write. */
  #pathsOf([title]: Write): readonly string[] {
    const own = this.#options.known.filter(({ write }) => write === title)
    return [...new Set(own.map((issue) => issue.read))]
  }

  async #judge({ write, changes, before, changed }: Sent): Promise<void> {
    const { tell } = this.#options
    const [title] = write
    const stale = changed.filter((path) => keeps(changes, before.get(path)))
    const same = [...before.keys()].filter((path) => !changed.includes(path))
    const needless = same.filter((path) => !keeps(changes, before.get(path)))
    tell(`${title}: ${changed.length} changed, ${same.length - needless.length} of ${same.length} kept`)
    if (process.env['SHOW_KEPT'] !== undefined) {
      for (const path of needless) tell(`  ${path}: ${reasonFor(changes, before.get(path))}`)
    }
    this.#stale.push(...stale.map((path) => `${title}: ${path}`))
    const right = changed.filter((path) => !stale.includes(path))
    for (const fault of this.#open) await this.#plant(fault, { write, changes, before, changed: right })
    await this.#versions.select()
  }

  /** Repeats the write with a fault, and the reads before it where the fault is in what the companion says of them. */
  async #plant(fault: Fault, sent: Sent): Promise<void> {
    const { tell } = this.#options
    const [title] = sent.write
    const known = this.#known.get(fault.name)
    const looked = sent.changed.filter(
      (path) => known === undefined || (known.write === title && known.read === path),
    )
    if (looked.length === 0) return
    await this.#restore('before')
    await this.#versions.select(fault)
    const before = this.#versions.isOfTags(fault) ? await readAll(this.#site, looked) : sent.before
    // A fault may make the write fail.
    const changes = await send(this.#site, sent.write).catch((): undefined => undefined)
    const path = changes && looked.find((one) => keeps(changes, before.get(one)))
    if (path === undefined) return
    this.#open = this.#open.filter((one) => one !== fault)
    this.#findings.push({ fault: fault.name, write: title, read: path })
    tell(`${fault.name}: found, ${title}; GET ${path}`)
  }

  get #database(): string {
    return this.#site.dsn.replace('sqlite:', '')
  }

  #save(name: string): Promise<void> {
    return copyDatabase(this.#database, `${this.#database}.${name}`)
  }

  #restore(name: string): Promise<void> {
    return copyDatabase(`${this.#database}.${name}`, this.#database)
  }
}

/**
 * Sends each write once, and once more with each fault of what the companion reports; reads what changed once more with each fault of
 * what it says about responses, both on copies of the database. The functions of the gateway compute what it would keep.
 */
export const findFaults = async (site: CompanionSite, options: Options): Promise<Found> =>
  new FaultSearch(site, await installVersions(site, options.faults), options).run()

/** The site of the tests with posts that show more than themselves. */
export const startFaultySite = async (): Promise<CompanionSite> => {
  const site = await startCompanionSite({}, ['companion-rows', 'companion-shows', 'promise-fuzz'])
  await makeTables(site)
  await site.browser.login()
  for (const [id, content] of Object.entries(showingContents)) {
    await (await site.rest('PUT', `/wp/v2/posts/${id}`, { content })).text()
  }
  await (await site.rest('PUT', '/wp/v2/posts/75', { categories: [2, 3] })).text()
  // The first reads of a site make temporary values.
  for (const path of ['/wp/v2/posts/10', '/wp/v2/posts/92', '/wp/v2/posts/93']) {
    await (await site.rest('GET', path)).text()
  }
  return site
}
