import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { companionFile } from '../wordpress/start-wordpress.ts'
import { type Change, poll } from './intake.ts'
import { forAll } from './keep.ts'
import { droppedTags, reaches, storedTags } from './reach.ts'
import { type CompanionSite, startCompanionSite } from './site.ts'
import type { Write } from './writes.ts'

/** A rule of the companion that is removed or weakened: a part of its text, and what stands there instead. */
export type Fault = { readonly name: string; readonly right: string; readonly wrong: string }

/** The write after which, with the fault, a gateway would keep a response that WordPress gives otherwise, and the path of that. */
export type Finding = { readonly fault: string; readonly write: string; readonly read: string }

type Found = {
  readonly findings: readonly Finding[]
  /** Responses that the companion without a fault leaves outdated. */
  readonly stale: readonly string[]
}

type Options = {
  readonly faults: readonly Fault[]
  readonly writes: readonly Write[]
  /** What is read before and after each write. Without it only what `known` names. */
  readonly paths?: readonly string[]
  /** Faults that are looked for only as they were found before; others after each write and in every response. */
  readonly known: readonly Finding[]
  tell(line: string): void
}

const right = 'right'

/** The text of the companion with a fault. */
export const planted = (text: string, { name, right, wrong }: Fault): string => {
  const parts = text.split(right)
  if (parts.length !== 2) throw new Error(`${name}: its text is ${parts.length - 1} times in the companion`)
  return parts.join(wrong)
}

/** Installs the companion and each of its faulty versions; gives a function that selects one for the requests that follow. */
const installVersions = async (site: CompanionSite, faults: readonly Fault[]) => {
  const contents = join(site.site, 'wp-content')
  const folder = join(contents, 'companions')
  const text = await readFile(companionFile, 'utf8')
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, `${right}.php`), text)
  for (const [at, fault] of faults.entries()) await writeFile(join(folder, `${at}.php`), planted(text, fault))
  const select = (fault?: Fault): Promise<void> =>
    writeFile(join(folder, 'selected'), fault === undefined ? right : String(faults.indexOf(fault)))
  await select()
  const load = `<?php require WP_CONTENT_DIR . '/companions/' . file_get_contents( WP_CONTENT_DIR . '/companions/selected' ) . '.php';`
  await writeFile(join(contents, 'mu-plugins/trellis.php'), load)
  return {
    select,
    isOfTags: (fault: Fault) => text.indexOf(fault.right) > text.indexOf('class Trellis_Tags'),
  }
}

type Response = { readonly shown: string; readonly tags: string | undefined }

const isComplete = (tags: string | undefined): tags is string => tags?.includes(';complete;') === true

/**
 * Sends each write once, and once more with each fault of what the companion reports; reads what changed once more with each fault of
 * what it says about responses, both on copies of the database. The functions of the gateway compute what it would keep.
 */
export const findFaults = async (site: CompanionSite, options: Options): Promise<Found> => {
  const { writes, known, tell } = options
  const hints = new Map(known.map((one) => [one.fault, one]))
  const { select, isOfTags } = await installVersions(site, options.faults)
  const database = site.dsn.replace('sqlite:', '')
  const save = (name: string): Promise<void> => copyFile(database, `${database}.${name}`)
  const restore = async (name: string): Promise<void> => {
    for (const end of ['-wal', '-shm', '-journal']) await rm(database + end, { force: true })
    await copyFile(`${database}.${name}`, database)
  }
  const read = async (path: string): Promise<Response> => {
    const response = await fetch(`${site.origin}/index.php/wp-json${path}`)
    const counts = ['x-wp-total', 'x-wp-totalpages'].map((name) => response.headers.get(name))
    const shown = JSON.stringify([response.status, counts, await response.text()])
    return { shown, tags: response.headers.get('trellis-tags') ?? undefined }
  }
  const readAll = async (some: readonly string[]): Promise<ReadonlyMap<string, Response>> => {
    const responses = await forAll(some, read)
    return new Map(some.map((path, at) => [path, responses[at] ?? { shown: '', tags: undefined }]))
  }
  const send = async (write: Write): Promise<readonly Change[]> => {
    const { last } = await poll(site.origin, 1_000_000_000)
    await write[2](site)
    const { rows } = await poll(site.origin, last)
    return rows.flatMap(({ state, changes = [] }): readonly Change[] =>
      state === 'closed' ? changes : [{ kind: 'all', reason: state }],
    )
  }

  let open = options.faults
  const findings: Finding[] = []
  const stale: string[] = []
  await save('before')
  let before = await readAll(options.paths ?? [])
  for (const write of writes) {
    const [title] = write
    const paths = options.paths ?? [
      ...new Set(known.filter((one) => one.write === title).map(({ read }) => read)),
    ]
    if (options.paths === undefined) before = await readAll(paths)
    const found = (fault: Fault, path: string): void => {
      open = open.filter((one) => one !== fault)
      findings.push({ fault: fault.name, write: title, read: path })
      tell(`${fault.name}: found, ${title}; GET ${path}`)
    }
    const changes = await send(write)
    await save('after')
    const after = await readAll(paths)
    const changed = paths.filter((path) => before.get(path)?.shown !== after.get(path)?.shown)
    const keptOf = (tags: string | undefined): boolean => isComplete(tags) && !reaches(changes, tags)
    const outdated = changed.filter((path) => keptOf(before.get(path)?.tags))
    for (const path of outdated) stale.push(`${title}: ${path}`)
    const dropped = new Set(droppedTags(changes))
    const same = paths.filter((path) => !changed.includes(path))
    const needless = same.filter((path) => !keptOf(before.get(path)?.tags))
    const why = (path: string): string => {
      const tags = before.get(path)?.tags
      if (!isComplete(tags)) return `${path} (incomplete)`
      return `${path} (${[...storedTags(tags)].filter((tag) => dropped.has(tag)).join(' ')})`
    }
    tell(
      `${title}: ${changed.length} changed${outdated.map((path) => ` STALE ${path}`).join('')}, ${same.length - needless.length} of ${same.length} kept`,
    )
    if (process.env['SHOW_KEPT'] !== undefined && needless.length > 0)
      tell(`  ${needless.map(why).join('\n  ')}`)
    const judged = changed.filter((path) => !outdated.includes(path))
    for (const fault of open) {
      const hint = hints.get(fault.name)
      const looked = judged.filter(
        (path) => hint === undefined || (hint.write === title && hint.read === path),
      )
      if (looked.length === 0) continue
      await restore('before')
      await select(fault)
      if (isOfTags(fault)) {
        const [path] = [...(await readAll(looked))].find(([, { tags }]) => keptOf(tags)) ?? []
        if (path !== undefined) found(fault, path)
      } else {
        // A fault may make it fail.
        const reported = await send(write).catch((): undefined => undefined)
        const path = looked.find((one) => {
          const tags = before.get(one)?.tags
          return reported !== undefined && isComplete(tags) && !reaches(reported, tags)
        })
        if (path !== undefined) found(fault, path)
      }
    }
    await select()
    await restore('after')
    await save('before')
    before = after
  }
  for (const { name } of open) tell(`${name}: not found`)
  return { findings, stale }
}

/** The site of the tests with posts that show more than themselves. */
export const startFaultySite = async (): Promise<CompanionSite> => {
  const site = await startCompanionSite({}, ['companion-shows', 'promise-fuzz'])
  await site.browser.login()
  const contents: Readonly<Record<number, string>> = {
    91: '[shown]',
    92: '<!-- wp:categories {"showPostCounts":true} /-->',
    93: '<!-- wp:latest-posts {"postsToShow":3} /-->',
    94: '<!-- wp:post-author-name /-->',
  }
  for (const [id, content] of Object.entries(contents)) {
    await (await site.rest('PUT', `/wp/v2/posts/${id}`, { content })).text()
  }
  return site
}
