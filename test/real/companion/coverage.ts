import { execFile } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { withOnly } from '../wordpress/php-extensions.ts'
import type { Change } from './intake.ts'

type Row = Readonly<Record<string, string | number | null>>
/** Every row of the database, by table and key. */
export type Dump = Readonly<Record<string, Readonly<Record<string, Row>>>>

const run = promisify(execFile)
const script = join(dirname(fileURLToPath(import.meta.url)), 'dump.php')

/** Reads the database beside WordPress. */
export async function dumpDatabase(dsn: string): Promise<Dump> {
  const { stdout } = await run(
    'php',
    [...withOnly('pdo', 'pdo_sqlite', 'mysqlnd', 'pdo_mysql'), script, dsn],
    { maxBuffer: 256 * 1024 * 1024 },
  )
  return JSON.parse(stdout) as Dump
}

/** Whose row it is, by table: the kind of a change and the column that has the id or name. */
const owners: Readonly<Record<string, readonly [kind: string, column: string]>> = {
  posts: ['post', 'ID'],
  postmeta: ['post', 'post_id'],
  term_relationships: ['post', 'object_id'],
  terms: ['term', 'term_id'],
  term_taxonomy: ['term', 'term_id'],
  termmeta: ['term', 'term_id'],
  comments: ['comment', 'comment_ID'],
  commentmeta: ['comment', 'comment_id'],
  users: ['user', 'ID'],
  usermeta: ['user', 'user_id'],
  options: ['option', 'option_name'],
}

/** Names that no response shows. */
const quiet =
  /^(?:cron|_transient_.*|_site_transient_.*|_edit_lock|_edit_last|_pingme|_encloseme|_wp_old_slug|_wp_old_date|session_tokens|wp_(?:\d+_)?user-settings(?:-time)?|wp_dashboard_quick_press_last_post_id|community-events-location)$/

/** The object of a row of a table: `kind id`, `option name` or `table name`; undefined when no response shows it. */
function objectOf(table: string, row: Row): string | undefined {
  if (quiet.test(String(row['option_name'] ?? row['meta_key']))) return undefined
  const [kind, column] = owners[table] ?? ['table', '']
  return column === '' ? `table ${table}` : `${kind} ${row[column]}`
}

/** The objects whose rows differ. */
export function changedObjects(before: Dump, after: Dump): string[] {
  const found = new Set<string>()
  for (const table of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const short = table.replace(/^wp_(?:\d+_)?/, '')
    const earlier = before[table] ?? {}
    const later = after[table] ?? {}
    const differing = [...new Set([...Object.keys(earlier), ...Object.keys(later)])].filter(
      (key) => JSON.stringify(earlier[key]) !== JSON.stringify(later[key]),
    )
    const rows = differing.flatMap((key) => [earlier[key], later[key]].filter((row) => row !== undefined))
    for (const row of rows) found.add(objectOf(short, row) ?? '')
  }
  found.delete('')
  return [...found].sort()
}

const tablesOf: Readonly<Record<string, readonly string[]>> = {
  post: ['posts', 'postmeta', 'term_relationships'],
  term: ['terms', 'term_taxonomy', 'termmeta'],
  comment: ['comments', 'commentmeta'],
  user: ['users', 'usermeta'],
  option: ['options'],
}

/** The option in which WordPress memoizes the parents of a taxonomy's terms follows from the terms, which are reported. */
const memoizedParents = ({ kind, taxonomy }: Change): readonly string[] =>
  kind === 'term' ? [`option ${taxonomy}_children`] : []

/** Of the objects that changed, those that the reported changes do not cover. */
export function uncovered(objects: readonly string[], changes: readonly Change[]): string[] {
  if (changes.some(({ kind }) => kind === 'all')) return []
  // An empty language is that of a site without the option: only what reads the option directly can show it.
  const reported = new Set([
    ...changes.map(({ kind, id, name }) => `${kind} ${id ?? (name === 'WPLANG:direct' ? 'WPLANG' : name)}`),
    ...changes.flatMap(memoizedParents),
  ])
  return objects.filter((object) => {
    const tables = tablesOf[object.slice(0, object.indexOf(' '))] ?? []
    return !reported.has(object) && !tables.some((table) => reported.has(`table ${table}`))
  })
}
