import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeWith } from '../support/requirements.ts'
import { type CompanionSite, startCompanionSite } from './companion/site.ts'

/** A table of a plugin; `?acme=1` makes a response of the rows of one owner. */
const plugin = `<?php define( 'WPSEO_VERSION', isset( $_GET['newer'] ) ? '28.4' : '28.3' ); add_action( 'init', function () {
	global $wpdb;
	$wpdb->query( 'CREATE TABLE IF NOT EXISTS wp_acme (id bigint(20) NOT NULL AUTO_INCREMENT, owner_id bigint(20) NOT NULL DEFAULT 3, name varchar(60), PRIMARY KEY (id))' );
	$wpdb->query( 'CREATE TABLE IF NOT EXISTS wp_yoast_indexable (id bigint(20) NOT NULL AUTO_INCREMENT, object_type varchar(60), title varchar(60), object_last_modified datetime, PRIMARY KEY (id))' );
	$wpdb->query( 'CREATE TABLE IF NOT EXISTS wp_notes (id bigint(20) NOT NULL AUTO_INCREMENT, object_id bigint(20), object_type varchar(60), text varchar(60), PRIMARY KEY (id))' );
	if ( isset( $_GET['notes'] ) ) {
		add_action( 'rest_api_init', function () {
			$GLOBALS['wpdb']->get_results( 'SELECT * FROM wp_notes WHERE ' . array( 'post' => "object_id IN (13, 14) AND object_type = 'post'", 'any' => 'object_id = 13', 'or' => "object_id = 13 AND (object_type = 'post' OR text = 'x')" )[ $_GET['notes'] ] );
		} );
	}
	$wpdb->query( 'CREATE TABLE IF NOT EXISTS wp_yoast_indexable_hierarchy (indexable_id bigint(20), ancestor_id bigint(20), object_id bigint(20), object_type varchar(60), title varchar(60))' );
	if ( isset( $_GET['memo'] ) ) {
		add_action( 'rest_api_init', function () {
			global $wpdb;
			list( $id, $steps ) = array( (int) $_GET['memo'], explode( ',', $_GET['steps'] ) );
			foreach ( $steps as $step ) {
				'find' === $step && $wpdb->get_results( "SELECT * FROM wp_yoast_indexable_hierarchy WHERE object_id = '$id' AND object_type = 'post' LIMIT 1" );
				'search' === $step && $wpdb->get_results( "SELECT * FROM wp_yoast_indexable_hierarchy WHERE object_id = $id AND object_type = 'post' AND title = 'other'" );
				'number' === $step && $wpdb->get_results( "SELECT COUNT(*) AS number FROM wp_yoast_indexable_hierarchy WHERE object_id = $id AND object_type = 'post'" );
				'second' === $step && $wpdb->get_results( "SELECT * FROM wp_yoast_indexable_hierarchy WHERE object_id = $id AND object_type = 'post' LIMIT 1 OFFSET 1" );
				'either' === $step && $wpdb->get_results( "SELECT * FROM wp_yoast_indexable_hierarchy WHERE object_id IN (41, $id) AND object_type = 'post' LIMIT 1" );
				'ancestors' === $step && $wpdb->get_results( "SELECT ancestor_id FROM wp_yoast_indexable_hierarchy WHERE indexable_id = $id" );
				'add' === $step && $wpdb->query( "INSERT INTO wp_yoast_indexable_hierarchy (object_id, object_type, title) VALUES ($id, 'post', 'x')" );
				'clear' === $step && $wpdb->query( "DELETE FROM wp_yoast_indexable_hierarchy WHERE indexable_id = $id" );
				'fill' === $step && $wpdb->query( "INSERT INTO wp_yoast_indexable_hierarchy (indexable_id, ancestor_id) VALUES ($id, 7)" );
				'update' === $step && $wpdb->query( "UPDATE wp_yoast_indexable_hierarchy SET title = 'y' WHERE object_id = $id" );
			}
		} );
	}
	if ( isset( $_GET['kinds'] ) ) {
		add_action( 'rest_api_init', function () {
			$GLOBALS['wpdb']->get_results( $_GET['kinds'] ? "SELECT * FROM wp_yoast_indexable WHERE object_type = 'home-page' LIMIT 1" : "SELECT MAX(object_last_modified) FROM wp_yoast_indexable WHERE object_type = 'home-page'" );
		} );
	}
	if ( isset( $_GET['ended'] ) ) {
		add_action( 'rest_api_init', function () {
			$GLOBALS['wpdb']->get_var( "SELECT MAX( post_modified_gmt ) FROM wp_posts WHERE post_type IN ( 'shelf', 'board' );" );
			$GLOBALS['wpdb']->get_var( "SELECT name FROM wp_acme WHERE owner_id = 3 ; \n" );
		} );
	}
	if ( isset( $_GET['upper'] ) ) {
		add_action( 'rest_api_init', function () {
			$GLOBALS['wpdb']->get_results( array( "SELECT NAME FROM Wp_Acme WHERE name = 'x'", 'SELECT * FROM WP_ACME WHERE owner_id = 5', "SELECT ID FROM WP_POSTS WHERE post_type = 'shelf'", 'SELECT name FROM Wp_Terms WHERE term_id = 97' )[ (int) $_GET['upper'] ] );
		} );
	}
	if ( isset( $_GET['acme'] ) ) {
		add_action( 'rest_api_init', function () {
			global $wpdb;
			$wpdb->get_results( $_GET['acme'] ? 'SELECT * FROM wp_acme WHERE owner_id IN (3, 4) AND name <> 5' : "SELECT * FROM wp_acme WHERE name = 'x' OR owner_id = 3" );
			header( 'X-Failed: ' . $wpdb->last_error );
		} );
	}
} );`

/** A word in a column with the kind of a row, as the companion names it. */
const kind = (word: string): string => createHash('md5').update(word).digest('hex').slice(0, 10)

describeWith('php', 'rows of tables of plugins', () => {
  let site: CompanionSite

  beforeAll(async () => {
    site = await startCompanionSite()
    await writeFile(`${site.site}/wp-content/mu-plugins/acme.php`, plugin)
    await (await fetch(`${site.origin}/index.php/wp-json/wp/v2/posts/10`)).text()
  })
  afterAll(() => site?.stop())

  test.each([
    ['by an id', '1', 'r=acme:owner_id:3.4'],
    ['by something else as well', '0', /;x=(?:[^;]*,)?acme(?:[,;]|$)/],
  ])('a response names those that SQL asks for %s', async (_how, acme, named) => {
    const response = await fetch(`${site.origin}/index.php/wp-json/wp/v2/posts/10?acme=${acme}`)
    expect(response.headers.get('x-failed')).toBe('')
    const tags = response.headers.get('trellis-tags') ?? ''
    expect(tags).toContain(';complete;')
    expect(tags).toMatch(named)
    expect(tags.includes('r=')).toBe(acme === '1')
  })

  test('a statement that ends in a semicolon names the rows and lists that it names without one', async () => {
    const response = await fetch(`${site.origin}/index.php/wp-json/wp/v2/posts/10?ended=1`)
    const tags = response.headers.get('trellis-tags') ?? ''
    expect(tags).toContain('r=acme:owner_id:3')
    expect(tags).toContain('su:shelf:any,su:board:any')
    expect(tags).not.toContain(':any:any')
  })

  test.each([
    ['WP_ACME', '1', 'r=acme:owner_id:5'],
    ['Wp_Acme', '0', /;x=(?:[^;]*,)?acme(?:[,;]|$)/],
    ['WP_POSTS', '2', ':shelf:any'],
    ['Wp_Terms', '3', '97'],
  ])('a response names the table that SQL calls %s as any other', async (_name, upper, named) => {
    const response = await fetch(`${site.origin}/index.php/wp-json/wp/v2/posts/10?upper=${upper}`)
    expect(response.headers.get('trellis-tags')).toMatch(named)
  })

  test('a response names rows by their kind, unless it shows a column that no other response shows', async () => {
    const tagsOf = async (kinds: string): Promise<string> => {
      const response = await fetch(`${site.origin}/index.php/wp-json/wp/v2/posts/10?kinds=${kinds}`)
      return response.headers.get('trellis-tags') ?? ''
    }
    expect(await tagsOf('1')).toContain(`r=yoast_indexable:object_type:${kind('home-page')}`)
    expect(await tagsOf('0')).toMatch(/[=,]yoast_indexable(?:[,;]|$)/)
    // A version that was not tested may show it anywhere: its rows are those of any table.
    expect(await tagsOf('0&newer=1')).toContain(`r=yoast_indexable:object_type:${kind('home-page')}`)
  })

  test.each<[string, readonly string[]]>([
    ["INSERT INTO wp_yoast_indexable (object_type, title) VALUES ('Home-page ', 'a')", [kind('home-page')]],
    ["UPDATE wp_yoast_indexable SET title = 'a', object_type = 'Home-page ' WHERE id = 1", []],
    [
      "UPDATE wp_yoast_indexable SET title = 'a', object_last_modified = '2026-01-01 00:00:00' WHERE id = 1",
      [],
    ],
    ["UPDATE wp_yoast_indexable SET title = 'b' WHERE id = 1", [kind('home-page')]],
    ["UPDATE wp_yoast_indexable SET object_type = 'term' WHERE id = 1", [kind('home-page'), kind('term')]],
    ["UPDATE wp_yoast_indexable SET title = CONCAT('c', title) WHERE id = 1", [kind('term')]],
    ["DELETE FROM wp_yoast_indexable WHERE title = 'nothing'", []],
  ])('%s is a change of the rows of a kind', async (sql, kinds) => {
    site.intake.pushes.length = 0
    await site.request("$GLOBALS['wpdb']->query( getenv( 'SQL' ) );", { SQL: sql })
    const rows = kinds.length === 0 ? [] : ['id:1', ...kinds.map((one) => `object_type:${one}`)]
    const changes = site.intake.pushes.flatMap((push) => push.changes)
    const named = changes.flatMap((change) =>
      'rows' in change ? (change.rows as readonly string[]) : [change.kind],
    )
    expect(named.toSorted()).toEqual(rows.toSorted())
  })

  test('a column that no response shows is a change for those of the whole table alone', async () => {
    site.intake.pushes.length = 0
    await site.request(
      `$GLOBALS['wpdb']->query( "INSERT INTO wp_yoast_indexable (id, object_type) VALUES (90, 'post')" );`,
    )
    site.intake.pushes.length = 0
    for (const date of ['2027-01-01 00:00:00', '2027-01-01 00:00:00'])
      await site.request(
        `$GLOBALS['wpdb']->query( "UPDATE wp_yoast_indexable SET object_last_modified = '${date}' WHERE id = 90" );`,
      )
    expect(site.intake.pushes.flatMap((push) => push.changes)).toEqual([
      { kind: 'table', name: 'yoast_indexable', rows: [] },
    ])
  })

  test.each([
    ['object_id IN (13, 14) AND object_type', 'post', `object_id-${kind('post')}:13.14`],
    ['object_id', 'any', 'object_id:13'],
    ['object_id AND something else', 'or', 'object_id:13'],
  ])('rows by %s are named by the id, and by the kind beside it', async (_by, notes, rows) => {
    const response = await fetch(`${site.origin}/index.php/wp-json/wp/v2/posts/10?notes=${notes}`)
    expect(response.headers.get('trellis-tags')).toMatch(new RegExp(`r=notes:${rows}$`))
  })

  test.each<[string, readonly string[], number]>([
    ["INSERT INTO wp_notes (object_id, object_type) VALUES (13, 'term')", ['term'], 13],
    ["UPDATE wp_notes SET text = 'a' WHERE object_id = 13", ['term'], 13],
    ["UPDATE wp_notes SET object_type = 'post' WHERE id = 1", ['term', 'post'], 13],
    ["DELETE FROM wp_notes WHERE object_id = 13 AND object_type = 'post'", ['post'], 13],
  ])('%s is a change of the object with this id and kind', async (sql, kinds, id) => {
    site.intake.pushes.length = 0
    await site.request("$GLOBALS['wpdb']->query( getenv( 'SQL' ) );", { SQL: sql })
    const ofKinds = kinds.flatMap((one) => [`object_id-${kind(one)}:${id}`, `object_type:${kind(one)}`])
    expect(site.intake.pushes.flatMap((push) => push.changes)).toEqual([
      {
        kind: 'table',
        name: 'notes',
        rows: expect.toSatisfy(
          (rows: readonly string[]) =>
            rows.toSorted().join() === ['id:1', `object_id:${id}`, ...ofKinds].toSorted().join(),
        ),
      },
    ])
  })

  const object = (id: number): string => `object_id-${kind('post')}:${id}`

  test.each<[string, number, string, readonly string[], string]>([
    ['a row that it looked for in vain', 41, 'find,add', [object(41)], ''],
    ['a row that it found afterwards', 42, 'find,add,find', [object(42)], ''],
    ['no row that it did not look for', 43, 'add', [], ''],
    ['no row when it looked for some of them only', 44, 'search,add', [], ''],
    ['no row of two', 45, 'find,add,add', [], ''],
    ['no row that it changed again', 46, 'find,add,update', [], ''],
    ['a row in the place of those of its object', 47, 'clear,fill', ['indexable_id:47'], ''],
    ['no row of several in the place of those of its object', 48, 'clear,fill,fill', [], ''],
    ['none, and has looked for one', 49, 'find', [], `a=yoast_indexable_hierarchy:${object(49)}`],
    ['none, and has found one', 41, 'find', [], ''],
    ['none, and has found no ancestors', 50, 'ancestors', [], 'a=yoast_indexable_hierarchy:indexable_id:50'],
    ['none, and has found an ancestor', 47, 'ancestors', [], ''],
    ['none, and has counted none', 51, 'number', [], `a=yoast_indexable_hierarchy:${object(51)}`],
    ['no row when it has counted them', 52, 'number,add', [], ''],
    ['no row when it has looked for a second one', 53, 'second,add', [], ''],
    [
      'no row when it has looked for one of two',
      54,
      'either,add',
      [],
      `a=yoast_indexable_hierarchy:${object(41)}`,
    ],
  ])('a read has memoized %s', async (_what, id, steps, memoized, absent) => {
    site.intake.pushes.length = 0
    const response = await fetch(`${site.origin}/index.php/wp-json/wp/v2/posts/10?memo=${id}&steps=${steps}`)
    const tags = response.headers.get('trellis-tags') ?? ''
    expect(tags).toContain(';complete;')
    expect(/;(a=[^;]*)/.exec(tags)?.[1] ?? '').toBe(absent)
    const changes = site.intake.pushes.flatMap((push) => push.changes)
    expect(changes.flatMap((change) => ('memoized' in change ? change.memoized : []))).toEqual(memoized)
  })

  test('a row that gets another name while another request writes is a change of the whole table', async () => {
    site.intake.pushes.length = 0
    const insert =
      "INSERT INTO wp_trellis_changes (state, since, horizon, site, note, changes) VALUES (0, 0, 0, 1, 'x', '')"
    await site.request(
      `foreach ( explode( ';', getenv( 'SQL' ) ) as $sql ) { $GLOBALS['wpdb']->query( $sql ); }`,
      {
        SQL: [
          ...[insert, "INSERT INTO wp_notes (object_id, object_type) VALUES (15, 'term')"],
          ...["UPDATE wp_notes SET object_type = 'post' WHERE object_id = 15"],
        ].join(';'),
      },
    )
    await site.request(`$GLOBALS['wpdb']->query( "DELETE FROM wp_trellis_changes WHERE note = 'x'" );`)
    expect(site.intake.pushes.flatMap((push) => push.changes)).toEqual([{ kind: 'table', name: 'notes' }])
  })

  test('a kind in letters of another alphabet is a change of the whole table', async () => {
    site.intake.pushes.length = 0
    await site.request(
      `$GLOBALS['wpdb']->query( "INSERT INTO wp_yoast_indexable (object_type) VALUES ('hömepage')" );`,
    )
    expect(site.intake.pushes.flatMap((push) => push.changes)).toEqual([
      { kind: 'table', name: 'yoast_indexable' },
    ])
  })

  const whole = undefined
  test.each([
    ["INSERT INTO wp_acme (name) VALUES ('x')", ['owner_id:3', 'id:1']],
    ["INSERT INTO wp_acme (ID, Owner_id, name) VALUES (7, 4, 'x')", ['id:7', 'owner_id:4']],
    ["UPDATE wp_acme SET name = 'y' WHERE id = 7", ['id:7', 'owner_id:4']],
    ['UPDATE wp_acme SET owner_id = 5 WHERE id = 7', ['id:7', 'owner_id:4', 'owner_id:5']],
    ['UPDATE wp_acme SET owner_id = owner_id + 1 WHERE id = 7', whole],
    ["DELETE FROM wp_acme WHERE name = 'x'", ['id:1', 'owner_id:3']],
    ["REPLACE INTO wp_acme (id, name) VALUES (7, 'z')", whole],
    ["UPDATE wp_acme SET name = 'a' WHERE owner_id = 3 LIMIT 1", whole],
    ["INSERT INTO wp_acme (name) VALUES ('x'), ('y')", whole],
    ['DELETE FROM wp_acme', whole],
  ])('%s is reported', async (sql, rows) => {
    site.intake.pushes.length = 0
    const output = await site.request("$GLOBALS['wpdb']->query( getenv( 'SQL' ) );", { SQL: sql })
    expect(output).toBe('')
    const changes = site.intake.pushes.flatMap((push) => push.changes)
    expect(changes).toEqual([{ kind: 'table', name: 'acme', ...(rows === undefined ? {} : { rows }) }])
  })

  // SQLite, and MySQL with lower_case_table_names, take each of them for the same table.
  test.each([
    ["UPDATE WP_POSTS SET post_title = 'a' WHERE ID = 10", 'post'],
    ["UPDATE `Wp_Posts` SET post_title = 'b' WHERE ID = 10", 'post'],
    ["INSERT INTO WP_TERMS (name, slug) VALUES ('c', 'c')", 'table terms'],
    ["DELETE FROM WP_OPTIONS WHERE option_name = 'blogdescription'", 'option'],
    ["UPDATE WP_USERS SET display_name = 'd' WHERE ID = 1", 'user'],
    ["UPDATE WP_ACME SET name = 'e' WHERE owner_id = 3", 'table acme'],
    ["UPDATE wp_acme SET name = 'f' WHERE id IN (SELECT ID FROM WP_POSTS)", 'table acme'],
    ["REPLACE INTO WP_ACME SELECT 9, 9, 'g'", 'table acme'],
    ["UPDATE WP_ACME AS a SET name = 'h'", 'table acme'],
  ])('%s is a change of a %s', async (sql, kind) => {
    await site.request('$GLOBALS[\'wpdb\']->query( "INSERT INTO wp_acme (owner_id) VALUES (3)" );', {})
    site.intake.pushes.length = 0
    await site.request("$GLOBALS['wpdb']->query( getenv( 'SQL' ) );", { SQL: sql })
    const kinds = site.intake.pushes
      .flatMap((push) => push.changes)
      .map((change) => ('name' in change && change.kind === 'table' ? `table ${change.name}` : change.kind))
    expect(kinds).toEqual([kind])
  })
})
