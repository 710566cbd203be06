import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeWith } from '../support/requirements.ts'
import type { Change } from './companion/intake.ts'
import { type CompanionSite, startCompanionStack } from './companion/site.ts'

const tables = [
  "CREATE TABLE wp_words (id bigint AUTO_INCREMENT PRIMARY KEY, object_id bigint, object_type ENUM('post','term'), text varchar(60))",
  "CREATE TABLE wp_flags (id bigint AUTO_INCREMENT PRIMARY KEY, object_type SET('post','term'), text varchar(60))",
  "CREATE TABLE wp_made (id bigint AUTO_INCREMENT PRIMARY KEY, object_id bigint DEFAULT 7, owner_id varchar(60) DEFAULT (CONCAT('a', 'b')), text varchar(60))",
  'CREATE TABLE wp_next (id bigint AUTO_INCREMENT PRIMARY KEY, object_id bigint, next_id bigint AS (object_id + 1) STORED, text varchar(60))',
  "CREATE TABLE wp_lines (id bigint AUTO_INCREMENT PRIMARY KEY, owner_id bigint, text varchar(60) DEFAULT '')",
]

/** Runs SQL of another connection when the companion, or the request, sends a statement that begins so. */
const meanwhile = (beginning: string, sql: string): string =>
  `add_filter( 'query', function ( $query ) { static $done = false; if ( ! $done && 0 === strpos( $query, ${JSON.stringify(beginning)} ) ) { $done = true; list( $host, $socket ) = explode( ':', DB_HOST ); $other = new mysqli( $host, DB_USER, DB_PASSWORD, DB_NAME, 0, $socket ); $other->query( ${JSON.stringify(sql)} ); echo $other->error; } return $query; }, PHP_INT_MAX );`

describeWith('mariadb', 'rows of tables of plugins on MariaDB', () => {
  let site: CompanionSite

  beforeAll(async () => {
    site = await startCompanionStack()
    const output = await site.request(
      `foreach ( json_decode( getenv( 'SQL' ) ) as $sql ) { $GLOBALS['wpdb']->query( $sql ) || print $GLOBALS['wpdb']->last_error; }`,
      { SQL: JSON.stringify(tables) },
    )
    expect(output).toBe('')
  })
  afterAll(() => site?.stop())

  const changesOf = async (sql: string, code = ''): Promise<readonly Change[]> => {
    site.intake.pushes.length = 0
    const output = await site.request(`${code} $GLOBALS['wpdb']->query( getenv( 'SQL' ) );`, { SQL: sql })
    expect(output).toBe('')
    return site.intake.pushes.flatMap(({ changes }) => changes)
  }

  test.each([
    ['words', 'INSERT INTO wp_words (object_id, object_type) VALUES (13, 2)'],
    ['words', "INSERT INTO wp_words (object_id, object_type) VALUES (13, 'term')"],
    ['words', 'UPDATE wp_words SET object_type = 1 WHERE object_id = 13'],
    ['flags', 'INSERT INTO wp_flags (object_type) VALUES (3)'],
    ['made', "INSERT INTO wp_made (text) VALUES ('x')"],
    ['next', 'INSERT INTO wp_next (object_id) VALUES (13)'],
    ['next', 'UPDATE wp_next SET object_id = 15 WHERE object_id = 13'],
  ])(
    'a kind by its index, and what the database computes, is a change of all of %s: %s',
    async (name, sql) => {
      expect(await changesOf(sql)).toEqual([{ kind: 'table', name }])
    },
  )

  const rowsOf = (changes: readonly Change[]): readonly string[] =>
    changes.flatMap((change) => ('rows' in change ? (change.rows as readonly string[]) : ['whole']))

  test.each([
    ['that this one changes as well', "INSERT INTO wp_lines (owner_id, text) VALUES (3, 'late')", 2],
    ['by another name', 'UPDATE wp_lines SET owner_id = 4 WHERE owner_id = 3', 1],
  ])(
    'what another request has, before this one says that it writes, a row %s, is reported',
    async (_how, sql, count) => {
      await changesOf('DELETE FROM wp_lines')
      await changesOf("INSERT INTO wp_lines (owner_id, text) VALUES (3, 'first')")
      const changes = await changesOf(
        "UPDATE wp_lines SET text = 'new' WHERE text <> 'new'",
        meanwhile('INSERT INTO wp_trellis_changes', sql),
      )
      const rows = rowsOf(changes)
      expect(rows.filter((row) => row.startsWith('id:'))).toHaveLength(count)
      expect(rows).toContain(count === 2 ? 'owner_id:3' : 'owner_id:4')
    },
  )

  test.each([
    ["UPDATE wp_lines SET text = 'new' WHERE owner_id = 3", 1],
    ["UPDATE wp_lines SET text = 'new' WHERE owner_id = 3", 0],
    ['DELETE FROM wp_lines WHERE owner_id = 3', 1],
    ['DELETE FROM wp_lines WHERE owner_id = 3', 0],
  ])(
    '%s reaches a row that another request has inserted beside %i: a change of the whole table',
    async (sql, beside) => {
      await changesOf('DELETE FROM wp_lines')
      for (let n = 0; n < beside; n += 1)
        await changesOf("INSERT INTO wp_lines (owner_id, text) VALUES (3, 'first')")
      const insert = "INSERT INTO wp_lines (owner_id, text) VALUES (3, 'late')"
      expect(rowsOf(await changesOf(sql, meanwhile(sql.slice(0, 16), insert)))).toEqual(['whole'])
    },
  )

  test('the same for a table of WordPress', async () => {
    const sql = "UPDATE wp_postmeta SET meta_value = 'new' WHERE meta_key = 'colour' AND meta_value <> 'new'"
    const insert = "INSERT INTO wp_postmeta (post_id, meta_key, meta_value) VALUES (10, 'colour', 'late')"
    expect(await changesOf(sql, meanwhile('UPDATE wp_postmeta', insert))).toEqual([
      { kind: 'table', name: 'postmeta' },
    ])
  })

  test('rows that nothing is inserted beside are named', async () => {
    await changesOf('DELETE FROM wp_lines')
    await changesOf("INSERT INTO wp_lines (owner_id, text) VALUES (3, 'first')")
    expect(rowsOf(await changesOf("UPDATE wp_lines SET text = 'new' WHERE owner_id = 3"))).toContain(
      'owner_id:3',
    )
  })
})
