import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { isAll } from '../support/breadth.ts'
import { describeWith } from '../support/requirements.ts'
import { changedObjects, type Dump, dumpDatabase, uncovered } from './companion/coverage.ts'
import { poll } from './companion/intake.ts'
import { type CompanionSite, startCompanionSite } from './companion/site.ts'

/** Writes to posts, meta, terms, comments and options: some thirty statements. */
const work = (name: string): string => `
	$id = wp_insert_post( array( 'post_title' => '${name}', 'post_status' => 'publish', 'tags_input' => array( '${name}' ) ) );
	wp_update_post( array( 'ID' => 10, 'post_title' => '${name}' ) );
	wp_set_post_terms( 10, array( 2, 5 ), 'category' );
	wp_insert_comment( array( 'comment_post_ID' => 10, 'comment_content' => '${name}', 'comment_approved' => 1 ) );
	update_option( 'blogdescription', '${name}' );
	wp_delete_post( $id, true );`

describeWith('php', 'a PHP request that dies between two statements', () => {
  let site: CompanionSite
  let folder: string
  let statements: readonly string[]
  /** After the work before. */
  let dump: Dump

  beforeAll(async () => {
    site = await startCompanionSite({}, ['die'])
    folder = await mkdtemp(join(tmpdir(), 'trellis-deaths-'))
    await poll(site.origin, 0)
    dump = await dumpDatabase(site.dsn)
    statements = (await die('count', 1_000_000, 'no')).statements
  })
  afterAll(() => site?.stop())

  /** Runs the work once, dying at a statement, and returns what is not covered by what the companion reported. */
  const die = async (how: string, at: number, name: string, extra = '') => {
    const list = join(folder, `${how}-${at}`)
    await writeFile(list, '')
    const { last } = await poll(site.origin, 0)
    const pushes = site.intake.pushes.length
    const settings = { DIE_AT: String(at), DIE_HOW: how, DIE_LIST: list }
    const { code } = await site.php(extra + work(name), settings)
    const before = dump
    dump = await dumpDatabase(site.dsn)
    const objects = changedObjects(before, dump)
    const { rows } = await poll(site.origin, last)
    const dead = rows.some(({ state }) => state === 'dead')
    const pushed = site.intake.pushes.slice(pushes).flatMap(({ changes }) => changes)
    const logged = rows.flatMap(({ changes = [] }) => changes)
    return {
      code,
      objects,
      dead,
      open: rows.filter(({ state }) => state === 'open').length,
      notPolled: dead ? [] : uncovered(objects, logged),
      notPushed: uncovered(objects, pushed),
      statements: (await readFile(list, 'utf8')).trim().split('\n'),
    }
  }

  test('the work has enough statements to die between', () => {
    expect(statements.length).toBeGreaterThan(20)
  })

  const longest = 300_000

  test('SIGKILL before any statement: the poll reports a superset', { timeout: longest }, async () => {
    let withDead = 0
    let tried = 0
    for (let at = 1; ; at += isAll ? 1 : 12) {
      const { code, objects, notPolled, open, dead } = await die('kill', at, `k${at}`)
      // The work has ended before that statement.
      if (code === 0) break
      expect(code).toBe('SIGKILL')
      tried += 1
      expect({ at, notPolled, open }, `changed: ${objects.join(', ')}`).toEqual({
        at,
        notPolled: [],
        open: 0,
      })
      if (dead) withDead += 1
    }
    // All but those before the mark and after it closed.
    expect(withDead).toBeGreaterThan(tried / 2)
  })

  test.each([
    ['exit', 'exit()', ''],
    ['fatal', 'a fatal error', ''],
    ['exception', 'an exception that is not caught', ''],
    ['memory', 'the memory limit', `ini_set( 'memory_limit', '80M' );`],
    ['time', 'the time limit', ''],
  ])('%s: the changes before it are pushed at once', { timeout: longest }, async (how, title, extra) => {
    const step = isAll ? 1 : 18
    for (let at = 3; at < statements.length - 3; at += step) {
      const { objects, notPolled, notPushed, dead, open } = await die(how, at, `${how}${at}`, extra)
      const seen = { at, notPolled, notPushed, dead, open }
      expect(seen, `${title}; changed: ${objects.join(', ')}`).toEqual({
        at,
        notPolled: [],
        notPushed: [],
        dead: false,
        open: 0,
      })
    }
  })
})
