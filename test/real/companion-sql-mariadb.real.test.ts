import { writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeWith } from '../support/requirements.ts'
import type { Change } from './companion/intake.ts'
import { reaches } from './companion/reach.ts'
import { type CompanionSite, startCompanionStack } from './companion/site.ts'

const tables = [
  'CREATE TABLE wp_sales (id bigint PRIMARY KEY, status varchar(20), amount int)',
  'CREATE TABLE wp_cards (id bigint PRIMARY KEY, owner_id bigint, word_id bigint, `limit` int)',
  'CREATE TABLE `order` (id bigint)',
  'CREATE TABLE `wp_my-cards` (id bigint)',
  'CREATE TABLE wp_my$cards (id bigint)',
  'CREATE TABLE cards (id bigint)',
  'CREATE TABLE wp_sums (id bigint, amount int)',
  'CREATE SEQUENCE wp_numbers',
  'CREATE TABLE wp_counted (id bigint PRIMARY KEY AUTO_INCREMENT, amount int)',
  'CREATE TABLE wp_results (id bigint, amount int)',
  'CREATE FUNCTION sold() RETURNS int READS SQL DATA RETURN (SELECT COUNT(*) FROM wp_sales)',
  'CREATE FUNCTION `count`() RETURNS int READS SQL DATA RETURN (SELECT COUNT(*) FROM wp_sales)',
  'CREATE FUNCTION sell() RETURNS int MODIFIES SQL DATA BEGIN UPDATE wp_sales SET amount = amount + 1; RETURN 1; END',
]

/** What reads more than it names, or finds another thing each time. */
const unreadable = {
  'a stored function': 'SELECT sold()',
  'a stored function beside a row': 'SELECT id, `sold` () FROM wp_cards WHERE owner_id = 5',
  'a stored function behind a comment': 'SELECT sold/* */()',
  'a stored function of a database': 'SELECT id FROM wp_cards WHERE id = site . sold()',
  'a stored function that is called as a known one':
    'SELECT id FROM wp_cards WHERE id = 5 AND `count` /* */ () = 1',
  'a table with a dash': 'SELECT id FROM `wp_my-cards`',
  'a table with a dollar': 'SELECT id FROM wp_my$cards',
  'a table that is called as a word is': 'SELECT id FROM `order`',
  'such a table behind a comma': 'SELECT p.ID FROM wp_posts p, `order` o WHERE p.ID = o.id',
  'double quotes around names': "SET SESSION sql_mode = 'ANSI_QUOTES'",
  'a backslash that is a character': 'SET @@sql_mode = "STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES"',
  'a mode by its number': 'SET SESSION wait_timeout = 60, sql_mode = 4',
  'a stored function in a variable': 'SET @sold = sold()',
  'a user variable': 'SELECT @sold',
  'a user variable beside a row': 'SELECT id FROM wp_cards WHERE id = 5 AND (@id := owner_id)',
  'the number of the last row': 'SELECT LAST_INSERT_ID()',
  'how many rows were written': 'SELECT ROW_COUNT()',
  'a lock': "SELECT GET_LOCK('cards', 0)",
  'rows that are written': 'INSERT INTO wp_sums (id, amount) SELECT 1, COUNT(*) FROM wp_sales',
  'a sum that is written': 'REPLACE INTO wp_sums SET id = 1, amount = (SELECT COUNT(*) FROM wp_sales)',
  'an update by another table':
    'UPDATE wp_sums n JOIN wp_sales s ON s.id = n.id SET n.amount = s.amount WHERE n.id = 5',
  'an update by a comma': 'UPDATE wp_sums n, wp_sales s SET n.amount = s.amount WHERE n.id = s.id',
  'a deletion by another table': 'DELETE n FROM wp_sums n JOIN wp_sales s ON s.id = n.id WHERE n.id = 5',
  'a new table': 'CREATE TEMPORARY TABLE some AS SELECT id FROM wp_sales',
  'what the database says of its tables':
    "SELECT table_rows FROM information_schema.tables WHERE table_name = 'wp_sales'",
  'the state of tables': "SHOW TABLE STATUS LIKE 'wp_sales'",
  'the next number of a sequence': 'SELECT NEXT VALUE FOR wp_numbers',
  'columns by a condition': 'SHOW COLUMNS FROM wp_sales WHERE sold() = 1',
  'the numbers of rows of an index': 'SHOW INDEX FROM wp_sales',
  'a definition with the next number': 'SHOW CREATE TABLE wp_counted',
  'all variables': 'SHOW VARIABLES',
  'a plan': 'EXPLAIN SELECT id FROM wp_sales',
} as const

/** Where a part of the condition is none by itself, and the tables that are named as a whole. */
const unbounded = {
  'a range that ends with a comparison': 'SELECT id FROM wp_cards WHERE word_id BETWEEN 0 AND owner_id = 5',
  'no range that ends with a comparison':
    'SELECT id FROM wp_cards WHERE word_id NOT BETWEEN 0 AND (owner_id) AND owner_id = 5 = 5',
  'rows but for others': 'SELECT id FROM wp_cards WHERE owner_id = 5 EXCEPT SELECT owner_id FROM wp_cards',
  'rows that others are, too':
    'SELECT id FROM wp_cards WHERE owner_id = 5 INTERSECT SELECT word_id FROM wp_cards',
  'a column that is called as a word is':
    'SELECT id FROM wp_cards WHERE owner_id = 5 AND `limit` > 0 OR word_id = 3',
  'what is added': 'SELECT id FROM wp_cards WHERE owner_id = 5 UNION ALL SELECT id FROM wp_cards',
} as const

const anyPosts = {
  'a range of posts that ends with a comparison':
    'SELECT post_title FROM wp_posts WHERE menu_order BETWEEN 0 AND ID = 5',
  'a range that ends with a type':
    "SELECT ID FROM wp_posts WHERE menu_order BETWEEN 0 AND post_type = 'page' AND post_status = 'publish'",
  'a condition that holds for no row in one of two cases':
    "SELECT post_title FROM wp_posts WHERE 1 XOR post_type = 'page' AND 0 = 1",
  'a range that ends with a condition for no row':
    'SELECT post_title FROM wp_posts WHERE menu_order BETWEEN 0 AND 0 = 1',
  'posts but for others': 'SELECT ID FROM wp_posts WHERE ID = 5 EXCEPT SELECT post_parent FROM wp_posts',
  'posts that others are, too':
    'SELECT ID FROM wp_posts WHERE ID = 5 INTERSECT SELECT post_parent FROM wp_posts',
} as const

/** What another statement of the same text does not find. */
const random = {
  'posts at random':
    "SELECT ID FROM wp_posts WHERE post_type = 'post' AND post_status = 'publish' ORDER BY RAND() LIMIT 1",
  'a row at random': 'SELECT id FROM wp_cards WHERE owner_id = 5 ORDER BY RAND () LIMIT 1',
  'a random text': 'SELECT UUID(), id FROM wp_cards WHERE owner_id = 5',
} as const

/** What needs no more than the rows that it names. */
const rows = {
  'a range': 'SELECT id FROM wp_cards WHERE word_id BETWEEN 0 AND 9 AND owner_id = 5',
  'a range of texts': "SELECT id FROM wp_cards WHERE owner_id = 5 AND (word_id NOT BETWEEN '1' AND '9')",
  functions:
    "SELECT GROUP_CONCAT(DISTINCT IFNULL(word_id, 0) SEPARATOR ' '), DATE_FORMAT(FROM_UNIXTIME(0), '%Y') FROM wp_cards WHERE owner_id = 5 GROUP BY owner_id HAVING COUNT(*) > 0 ORDER BY FIELD(id, 3, 2) LIMIT 1",
  'how many were found': 'SELECT SQL_CALC_FOUND_ROWS id FROM wp_cards WHERE owner_id = 5 LIMIT 1',
  'columns that are called as words are':
    'SELECT `limit`, owner_id AS `order`, word_id AS `key` FROM wp_cards WHERE `owner_id` = 5 AND `limit` > 0 ORDER BY `order`, `limit` LIMIT 1',
  'a text that is called as what the last statement has left':
    'SELECT id FROM wp_cards WHERE owner_id = 5 AND "ROW_COUNT()" > 0',
  'a text with all of it': "SELECT 'sold() @x BETWEEN' AS text FROM wp_cards WHERE owner_id = 5",
} as const

const harmless = {
  'rows that were found': 'SELECT FOUND_ROWS()',
  columns: 'SHOW FULL COLUMNS FROM wp_posts',
  tables: "SHOW TABLES LIKE 'wp_cards'",
  'a row that is written': "INSERT INTO wp_sums (id, amount) VALUES (7, CAST('1' AS SIGNED))",
  'a row that is deleted': 'DELETE FROM wp_sums WHERE id = 70',
  'modes that leave quotes alone':
    "SET SESSION wait_timeout = 60, sql_mode = REPLACE(@@sql_mode, 'ONLY_FULL_GROUP_BY', '')",
} as const

const posts = 'SELECT post_title FROM wp_posts WHERE'
const terms = 'SELECT t.name FROM wp_terms t JOIN wp_term_taxonomy tt ON t.term_id = tt.term_id WHERE'

/** Conditions that find what others find, or more: `as` finds all of it. */
const collated = {
  'a slug': {
    sql: `${posts} post_name = 'PLANT-30 ' AND post_type = 'Post' AND post_status = 'PUBLISH'`,
    as: `${posts} post_name = 'plant-30' AND post_type = 'post' AND post_status = 'publish'`,
  },
  'a type that is a number': {
    sql: `${posts} post_type = 0 AND post_status = 'publish'`,
    as: `${posts} post_status = 'publish'`,
  },
  'a type with a letter that equals another one': {
    sql: `${posts} post_type = 'pöst' AND post_status = 'publish'`,
    as: `${posts} post_status = 'publish'`,
  },
  'a type with a character that equals none': {
    sql: `${posts} post_type = 'post\\b' AND post_status = 'publish'`,
    as: `${posts} post_status = 'publish'`,
  },
  'one of two statuses is a number': {
    sql: `${posts} post_type = 'post' AND post_status IN ('publish', 0)`,
    as: `${posts} post_type = 'post'`,
  },
  'a taxonomy': {
    sql: `${terms} tt.taxonomy IN ('Category', 'POST_TAG')`,
    as: `${terms} tt.taxonomy IN ('category', 'post_tag')`,
  },
  'a taxonomy that is a number': { sql: `${terms} tt.taxonomy = 0`, as: `${terms} tt.taxonomy > ''` },
} as const

/** What a server says of itself where its mode is another one. */
const quoted = {
  'a name in double quotes': { sql: 'SELECT id FROM "wp_cards" WHERE "id" = 2', mode: 'ANSI_QUOTES' },
  'a text that ends with a backslash': {
    sql: "SELECT id FROM wp_cards WHERE 'C:\\' = '' OR ', 1 ' = '' AND owner_id = 5",
    mode: 'NO_BACKSLASH_ESCAPES',
  },
} as const

/** What finds the option `shelf`, and what is as well written to it. */
const optionReads = {
  'the name in capital letters': { option: 'SHELF' },
  'a name with a letter that equals another one': { option: 'shëlf' },
  'a statement that names it': {
    sql: "SELECT option_value FROM wp_options WHERE option_name = 'shelf' LIMIT 1",
  },
  'a statement with several names': {
    sql: "SELECT option_name, option_value FROM wp_options WHERE option_name IN ('Shelf','blogname')",
  },
  'a statement with a pattern': { sql: "SELECT option_value FROM wp_options WHERE option_name LIKE 'shel_'" },
  'a statement for all options': { sql: 'SELECT option_name, option_value FROM wp_options' },
  'its number': {
    sql: 'SELECT option_value FROM wp_options WHERE option_id = (SELECT MAX(option_id) FROM wp_options)',
  },
} as const

const optionWrites = {
  'the name in capital letters': "UPDATE wp_options SET option_value = RAND() WHERE option_name = 'Shelf'",
  'a name with a letter that equals another one':
    "UPDATE wp_options SET option_value = RAND() WHERE option_name = 'shélf'",
  'a name with a space': "UPDATE wp_options SET option_value = RAND() WHERE option_name = 'shelf '",
  'a row that is there':
    "INSERT INTO wp_options (option_name, option_value) VALUES ('SHELF', 'b') ON DUPLICATE KEY UPDATE option_value = RAND()",
  'a row that is replaced': "REPLACE INTO wp_options (option_name, option_value) VALUES ('SHELF', RAND())",
  'its name': "UPDATE wp_options SET option_value = RAND() WHERE option_name = 'shelf'",
} as const

const all = { ...unreadable, ...unbounded, ...anyPosts, ...random, ...rows, ...harmless }

const plugin = `<?php if ( isset( $_GET['statement'] ) ) { add_action( 'rest_api_init', function () {
	if ( isset( $_GET['mode'] ) ) {
		mysqli_query( $GLOBALS['wpdb']->dbh, "SET SESSION sql_mode = '" . $_GET['mode'] . "'" );
	}
	isset( $_GET['option'] ) && get_option( $_GET['option'] );
	$GLOBALS['wpdb']->query( json_decode( base64_decode( '${Buffer.from(JSON.stringify(all)).toString('base64')}' ), true )[ $_GET['statement'] ] ?? base64_decode( $_GET['statement'] ) );
	header( 'X-Failed: ' . $GLOBALS['wpdb']->last_error );
} ); }`

const keysOf = <Table extends object>(table: Table): (keyof Table)[] => Object.keys(table) as (keyof Table)[]

describeWith('mariadb', 'statements that name less than they read or write', () => {
  let site: CompanionSite

  const run = async (sql: readonly string[]): Promise<void> => {
    const output = await site.request(
      `foreach ( json_decode( getenv( 'SQL' ) ) as $sql ) { $GLOBALS['wpdb']->query( $sql ); echo $GLOBALS['wpdb']->last_error; }`,
      { SQL: JSON.stringify(sql) },
    )
    expect(output).toBe('')
  }

  beforeAll(async () => {
    site = await startCompanionStack()
    await run(tables)
    await writeFile(`${site.site}/wp-content/mu-plugins/zz-statements.php`, plugin)
    // The first change after another plugin was added is one of everything.
    await run(["INSERT INTO wp_sales VALUES (3, 'pending', 1)"])
  })
  afterAll(() => site?.stop())

  const describe = async (fields: Readonly<Record<string, string>>) => {
    const query = new URLSearchParams(fields)
    const response = await fetch(`${site.origin}/index.php/wp-json/wp/v2/posts/10?${query}`)
    await response.arrayBuffer()
    expect(response.headers.get('x-failed')).toBe('')
    const tags = response.headers.get('trellis-tags') ?? ''
    const named = (kind: string): readonly string[] =>
      new RegExp(`;${kind}=([^;]*)`).exec(tags)?.[1]?.split(',') ?? []
    return {
      queries: named('q'),
      lists: named('list'),
      isComplete: tags.includes(';complete;'),
      cause: response.headers.get('trellis-incomplete'),
      maxAge: response.headers.get('trellis-max-age'),
      rows: named('r'),
      tables: named('x'),
      any: [...named('list'), ...named('q').filter((list) => /^[a-z]+:any:any$/.test(list))],
    }
  }

  const read = (statement: keyof typeof all) => describe({ statement })
  const readText = (sql: string, more: Readonly<Record<string, string>> = {}) =>
    describe({ statement: Buffer.from(sql).toString('base64'), ...more })

  test.each(keysOf(collated))('%s is compared as the database compares it', async (name) => {
    const { sql, as } = collated[name]
    const [it, other] = [await readText(sql), await readText(as)]
    expect([it.queries, it.lists]).toEqual([other.queries, other.lists])
    expect([...it.queries, ...it.lists]).not.toEqual([])
  })

  test.each(keysOf(quoted))('%s: complete in the usual mode alone', async (name) => {
    const { sql, mode } = quoted[name]
    expect(await readText(sql, { mode })).toMatchObject({ isComplete: false })
    expect(await readText('SELECT "a\\\\b" AS text')).toMatchObject({ isComplete: true })
  })

  test.each(keysOf(unreadable))('%s keeps a response from being described completely', async (name) => {
    expect(await read(name)).toMatchObject({ isComplete: false, cause: 'a statement that cannot be read' })
  })

  test.each(keysOf(unbounded))('%s: the table is named as a whole', async (name) => {
    expect(await read(name)).toMatchObject({ isComplete: true, rows: [] })
    expect((await read(name)).tables).toContain('cards')
  })

  test.each(keysOf(anyPosts))('%s: a list of any posts', async (name) => {
    expect((await read(name)).any).not.toEqual([])
  })

  test.each(keysOf(random))('%s: as old as a minute', async (name) => {
    expect(await read(name)).toMatchObject({ isComplete: true, maxAge: '60' })
  })

  test.each(keysOf(rows))('%s: rows of one owner', async (name) => {
    expect(await read(name)).toMatchObject({ isComplete: true, rows: ['cards:owner_id:5'], maxAge: null })
  })

  test.each(keysOf(harmless))('%s: nothing that a response shows', async (name) => {
    expect(await read(name)).toMatchObject({ isComplete: true, rows: [], any: [] })
  })

  test('what WordPress asks most is read with one look, to what the whole reading finds in it', async () => {
    const asked = [
      "SELECT option_value FROM wp_options WHERE option_name = 'WPLANG' LIMIT 1",
      "SELECT option_name, option_value FROM wp_options WHERE option_name IN ('a','b')",
      'SELECT * FROM wp_posts WHERE ID = 10 LIMIT 1',
      'SELECT wp_posts.* FROM wp_posts WHERE ID IN (1,108,107)',
      "SELECT * FROM wp_users WHERE ID = '2' LIMIT 1",
      'SELECT * FROM wp_users WHERE ID IN (1,3,2)',
      'SELECT post_id, meta_key, meta_value FROM wp_postmeta WHERE post_id IN (10,11) ORDER BY meta_id ASC',
      'SELECT user_id, meta_key, meta_value FROM wp_usermeta WHERE user_id IN (2) ORDER BY umeta_id ASC',
      'SELECT term_id, meta_key, meta_value FROM wp_termmeta WHERE term_id IN (4,5) ORDER BY meta_id ASC',
      'SELECT t.*, tt.* FROM wp_terms AS t INNER JOIN wp_term_taxonomy AS tt ON t.term_id = tt.term_id WHERE t.term_id IN (6,5)',
      "SELECT DISTINCT t.term_id, tr.object_id\n\t FROM wp_terms AS t  INNER JOIN wp_term_taxonomy AS tt ON t.term_id = tt.term_id INNER JOIN wp_term_relationships AS tr ON tr.term_taxonomy_id = tt.term_taxonomy_id\n\t WHERE tt.taxonomy IN ('category', 'post_tag') AND tr.object_id IN (1, 108)\n\t ORDER BY t.name ASC\n\t ",
      "SELECT SQL_CALC_FOUND_ROWS  wp_posts.ID\n\t FROM wp_posts \n\t WHERE 1=1  AND wp_posts.post_parent = 101  AND wp_posts.post_type = 'revision' AND ((wp_posts.post_status = 'inherit'))\n\t \n\t ORDER BY wp_posts.post_date DESC, wp_posts.ID DESC\n\t LIMIT 0, 1",
    ]
    const others = [
      'SELECT * FROM wp_usermeta WHERE user_id IN (2) ORDER BY umeta_id ASC',
      'SELECT * FROM wp_posts WHERE ID = 10 OR 1 = 1',
      "SELECT option_value FROM wp_options WHERE option_name = 'a' OR option_name LIKE '%'",
    ]
    const output = await site.request(
      `$results = array();
      foreach ( json_decode( getenv( 'ASKED' ) ) as $sql ) {
        $found = array();
        foreach ( array( 'read_plainly', 'read' ) as $way ) {
          $tags = new Trellis_Tags( new Trellis_Log() );
          $is_read = Closure::bind( function () use ( $way, $sql ) { return $this->$way( $sql ); }, $tags, 'Trellis_Tags' )();
          $found[] = Closure::bind( function () { return array( $this->options, $this->ids, $this->queries, $this->lists, $this->tables, $this->rows, $this->is_complete, $this->max_age, $this->is_reordered ); }, $tags, 'Trellis_Tags' )();
          if ( 'read_plainly' === $way ) { $is_plain = $is_read; }
        }
        $results[] = $is_plain ? ( $found[0] == $found[1] ? 'same' : json_encode( $found ) ) : 'not plain';
      }
      echo json_encode( $results );`,
      { ASKED: JSON.stringify([...asked, ...others]) },
    )
    expect(JSON.parse(output)).toEqual([...asked.map(() => 'same'), ...others.map(() => 'not plain')])
  })

  const changesOf = async (sql: string): Promise<readonly Change[]> => {
    site.intake.pushes.length = 0
    await run([sql])
    return site.intake.pushes.flatMap(({ changes }) => changes)
  }

  test.each([
    ['SELECT sell()', []],
    ['SET @sold = sell()', []],
    ["SET SESSION sql_mode = 'ANSI_QUOTES'", []],
    ['INSERT INTO wp_sums (id, amount) VALUES (8, sell())', []],
    ['UPDATE wp_sums SET amount = sell() WHERE id = 8', []],
    ['SELECT ROW_COUNT(), sell()', []],
    ['SELECT site.sell(), ROW_COUNT()', []],
    ['INSERT INTO wp_sums (id, amount) VALUES (9, ROW_COUNT())', []],
    ['BEGIN NOT ATOMIC UPDATE wp_sales SET amount = 4 WHERE id = 3; END', []],
    ['ANALYZE UPDATE wp_sales SET amount = 5 WHERE id = 3', []],
    ['ANALYZE FORMAT=JSON UPDATE wp_sales SET amount = 6 WHERE id = 3', []],
    ['CREATE TEMPORARY TABLE zz AS SELECT sell()', []],
    ['SHOW COLUMNS FROM wp_sales WHERE sell() = 1', []],
    ['DESC SELECT * FROM (SELECT sell()) AS sales', []],
    ['SELECT /*!40001 SQL_NO_CACHE sell(), */ id FROM wp_cards', []],
    ['SELECT NEXT VALUE FOR wp_numbers', []],
    ['SELECT NEXTVAL(wp_numbers)', []],
    ['CREATE TABLE wp_fresh (id int)', []],
    ['CREATE TABLE IF NOT EXISTS wp_fresher (id int)', []],
    ['ALTER TABLE wp_fresh ADD COLUMN extra int', []],
    ['RENAME TABLE wp_fresh TO wp_older', []],
    ['DROP TABLE IF EXISTS wp_older', []],
    ['UPDATE wp_sales s, cards c SET c.id = 3 WHERE s.id = 3', ['sales', 'cards']],
    ['UPDATE wp_sales s JOIN cards c ON c.id = s.id SET c.id = 3', ['sales', 'cards']],
    ['DELETE cards FROM cards JOIN wp_sales ON cards.id = wp_sales.id', ['sales', 'cards']],
    ['DELETE FROM cards USING cards, wp_sales WHERE cards.id = wp_sales.id', ['sales', 'cards']],
    ['INSERT INTO cards (id) (SELECT id FROM wp_sales)', ['sales', 'cards']],
    ['INSERT INTO cards SET id = (SELECT MAX(id) FROM wp_sales)', ['sales', 'cards']],
    ['REPLACE cards VALUES ((SELECT MAX(id) FROM wp_sales))', ['sales', 'cards']],
    ['RENAME TABLE wp_sums TO old_sums, cards TO wp_sums, old_sums TO cards', ['sums', 'cards']],
  ])('%s is a change of all that it may write', async (sql, names) => {
    const changes = await changesOf(sql)
    const named = changes.flatMap((change) => ('name' in change ? [change.name] : []))
    if (names.length === 0 || changes.some(({ kind }) => kind === 'all')) {
      expect(changes).toEqual([expect.objectContaining({ kind: 'all' })])
    } else {
      expect(named).toEqual(expect.arrayContaining(names))
    }
  })

  const stored = async (column: string, text: string): Promise<Change | undefined> => {
    await run([`UPDATE wp_posts SET post_name = 'plant-30', post_type = 'post' WHERE ID = 30`])
    const changes = await changesOf(`UPDATE wp_posts SET ${column} = '${text}' WHERE ID = 30`)
    return changes[0]
  }

  /** A request of the site, read twice: the first may store names that it has read at its start. */
  const tagsOf = async (query: Readonly<Record<string, string>>): Promise<string> => {
    const read = () =>
      fetch(
        `${site.origin}/index.php/wp-json/wp/v2/posts/10?${new URLSearchParams({ statement: '', ...query })}`,
      )
    await (await read()).arrayBuffer()
    const response = await read()
    await response.arrayBuffer()
    return response.headers.get('trellis-tags') ?? ''
  }

  test.each(keysOf(optionReads))('whoever writes an option reaches what reads it by %s', async (name) => {
    await run(["INSERT IGNORE INTO wp_options (option_name, option_value) VALUES ('shelf', 'a')"])
    const { option = '', sql = '' }: { option?: string; sql?: string } = optionReads[name]
    const tags = await tagsOf({ option, statement: Buffer.from(sql).toString('base64') })
    const unreached: string[] = []
    for (const [way, write] of Object.entries(optionWrites)) {
      const changes = await changesOf(write)
      expect(changes, way).not.toEqual([])
      if (tags.includes(';complete;') && !reaches(changes, tags)) unreached.push(way)
    }
    expect(unreached, tags).toEqual([])
  })

  test('what is stored in capital letters is reported as lists name it, and a text that may equal others as none', async () => {
    expect(await stored('post_name', 'PLANT-40')).toMatchObject({ kind: 'post', after: { slug: 'plant-40' } })
    expect(await stored('post_name', 'plänt-30')).toMatchObject({ kind: 'post', after: { slug: null } })
    expect(await stored('post_type', 'pöst')).toMatchObject({ kind: 'all' })
  })

  test.each(keysOf(quoted))('a write in another mode is a change of everything: %s', async (name) => {
    const { mode } = quoted[name]
    const sql =
      mode === 'ANSI_QUOTES'
        ? 'UPDATE "wp_sales" SET amount = 3 WHERE id = 3'
        : "UPDATE wp_sales SET status = 'C:\\' WHERE id = 3 OR 'a' = ' AND id = 4'"
    site.intake.pushes.length = 0
    const output = await site.request(
      `global $wpdb; mysqli_query( $wpdb->dbh, "SET SESSION sql_mode = '" . getenv( 'MODE' ) . "'" ); $wpdb->query( getenv( 'SQL' ) ); echo $wpdb->last_error;`,
      { MODE: mode, SQL: sql },
    )
    expect(output).toBe('')
    expect(site.intake.pushes.flatMap(({ changes }) => changes)).toEqual([
      expect.objectContaining({ kind: 'all' }),
    ])
  })

  test.each([
    'SELECT sold()',
    "SELECT 'sell()' AS text",
    'SELECT LAST_INSERT_ID(), CONNECTION_ID()',
    'SELECT /*!40001 SQL_NO_CACHE */ COUNT(*) FROM wp_cards',
    "SELECT 'a value for money, nextval(wp_numbers)' AS text",
    'CREATE TEMPORARY TABLE zz (id int)',
    'CREATE TABLE IF NOT EXISTS wp_sales (id int)',
    'ANALYZE TABLE wp_sales',
    'BEGIN',
  ])('%s is no change', async (sql) => {
    expect(await changesOf(sql)).toEqual([])
  })

  test('a long text is no list of functions', async () => {
    const output = await site.request(`$value = str_repeat( 'aa(', 1400000 );
      $before = memory_get_peak_usage();
      $calls = Trellis_Known_Sql::stored_calls( "INSERT INTO wp_sums (text) VALUES ('$value')" );
      echo json_encode( array( $calls, memory_get_peak_usage() - $before < 20 << 20 ) );`)
    expect(JSON.parse(output)).toEqual([[], true])
  })

  test('what is plain at a glance calls nothing, leaves nothing and asks for nothing of the connection', async () => {
    const parts =
      String.raw`SELECT |select\t| | |\n|.|. |,|;|x|VALUE FOR s| value |IN (|in(|AND (|x.IN (|x. IN (|ON (|( (|((|COUNT(|x.COUNT(|COUNT (|count |sell(|FOUND_ROWS(|LAST_INSERT_ID(|(|)|'|"|\|` +
      '`f`(|`|/*|/*!|*/|--|-|#|@|@@warning_count|1|INSERT INTO '
    const { output } = await site.php(`mt_srand( 7 );
      $parts = explode( '|', base64_decode( '${Buffer.from(parts).toString('base64')}' ) );
      $plain = 0;
      $wrong = array();
      for ( $n = 0; $n < 60000; $n++ ) {
        $sql = $n % 8 ? 'SELECT x' : '';
        for ( $left = mt_rand( 1, 9 ); $left > 0; $left-- ) { $sql .= $parts[ mt_rand( 0, count( $parts ) - 1 ) ]; }
        if ( Trellis_Known_Sql::is_plain( $sql ) ) {
          ++$plain;
          list( $verb, $rest ) = Trellis_Changes::split_verb( $sql );
          if ( 'SELECT' !== $verb || Trellis_Known_Sql::stored_calls( $rest ) || Trellis_Known_Sql::writes_unnamed( $verb, $rest ) || Trellis_Known_Sql::asks_last_statement( $sql ) || false !== stripos( $sql, 'LAST_INSERT_ID' ) ) { $wrong[] = $sql; }
        }
      }
      echo json_encode( array( $plain > 5000, array_slice( $wrong, 0, 20 ) ) );`)
    expect(JSON.parse(output)).toEqual([true, []])
  })

  /** Between two of these stands one of the questions. */
  const statements = [
    'UPDATE wp_sales SET amount = amount + 1 WHERE id = 3',
    'INSERT INTO wp_counted (amount) VALUES (1), (2)',
    'UPDATE wp_counted SET amount = 7',
    'SELECT SQL_CALC_FOUND_ROWS id FROM wp_counted LIMIT 1',
    'UPDATE wp_counted SET amount = LAST_INSERT_ID(amount + 9) WHERE id = 0',
    'SELECT id, sold() FROM wp_counted',
    'INSERT INTO wp_results (id, amount) VALUES (20, 1)',
    "INSERT IGNORE INTO wp_counted (id, amount) VALUES (1, 'many')",
    'DELETE FROM wp_counted WHERE id = 1',
    "UPDATE wp_options SET option_value = 'a name' WHERE option_name = 'blogdescription'",
    'CREATE TEMPORARY TABLE zz AS SELECT id FROM wp_counted',
    'DELETE FROM wp_results WHERE id = 20',
    'SELECT sell()',
    'UPDATE wp_counted SET amount = 8',
  ]

  test.each([
    'SELECT ROW_COUNT()',
    'SELECT ROW_COUNT(), sold()',
    'SELECT LAST_INSERT_ID()',
    'SELECT FOUND_ROWS()',
    'SELECT FOUND_ROWS(), ROW_COUNT(), LAST_INSERT_ID() > 1000, IS_FREE_LOCK("cards")',
    "SELECT GET_LOCK('cards', 0), ROW_COUNT()",
    'SHOW WARNINGS',
    'SELECT @@warning_count, @@error_count',
    'SELECT @@identity',
    'INSERT INTO wp_results (id, amount) VALUES (21, ROW_COUNT())',
    'SELECT amount FROM wp_results WHERE id = 21 AND ROW_COUNT() < 100',
  ])('after each statement, %s finds what it finds without the companion', async (question) => {
    // What a write leaves of FOUND_ROWS() is lost where the companion looks for the rows that it changes.
    const asked = (statement: string): readonly string[] =>
      question.includes('FOUND_ROWS') && !statement.startsWith('SELECT') ? [statement] : [statement, question]
    const find = async (prepare: string): Promise<unknown> => {
      await run([
        ...['TRUNCATE wp_counted', 'TRUNCATE wp_results', 'UPDATE wp_sales SET amount = 1'],
        "UPDATE wp_options SET option_value = '' WHERE option_name = 'blogdescription'",
      ])
      const output = await site.request(
        `global $wpdb; ${prepare}
        foreach ( json_decode( getenv( 'SQL' ) ) as $sql ) {
          $rows = $wpdb->get_results( $sql, ARRAY_N );
          $found[] = array( $sql, $rows, $wpdb->insert_id, $wpdb->rows_affected, $wpdb->num_rows, $wpdb->last_error );
        }
        echo json_encode( array( $found, $wpdb->get_results( 'SELECT * FROM wp_results', ARRAY_N ) ) );`,
        { SQL: JSON.stringify(statements.flatMap(asked)) },
      )
      return JSON.parse(output)
    }
    const withCompanion = await find('')
    expect(withCompanion).toEqual(await find("remove_all_filters( 'query' );"))
  })
})
