import { writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeWith } from '../support/requirements.ts'
import type { Change } from './companion/intake.ts'
import { type CompanionSite, startCompanionStack } from './companion/site.ts'

const tables = [
  'CREATE TABLE wp_holds (order_id bigint, product_id bigint, amount int, expires datetime, PRIMARY KEY (order_id, product_id))',
  'CREATE TABLE wp_sales (id bigint PRIMARY KEY, status varchar(20), amount int)',
  'CREATE TABLE wp_cards (id bigint AUTO_INCREMENT PRIMARY KEY, owner_id bigint, word_id bigint, text varchar(60), UNIQUE KEY owner (owner_id))',
  'CREATE TABLE cards (id bigint)',
  'CREATE TABLE wp_kinds (post bigint, post_type varchar(20), post_status varchar(20), comment_id bigint, term_id bigint)',
  'CREATE TABLE wp_parts (id bigint AUTO_INCREMENT PRIMARY KEY, owner_id varchar(60), text varchar(60), UNIQUE KEY owner (owner_id(2)))',
  "INSERT INTO wp_sales VALUES (1, 'pending', 1), (2, 'paid', 1), (3, 'pending', 1)",
  'INSERT INTO wp_holds VALUES (1, 5, 1, NOW() + INTERVAL 1 HOUR), (2, 5, 1, NOW() - INTERVAL 300 SECOND), (3, 6, 1, NOW() - INTERVAL 300 SECOND)',
]

const held = 'SELECT SUM(h.amount) FROM wp_holds h LEFT JOIN wp_sales s ON h.order_id = s.id WHERE'

/** Statements of two tables, by the name in `?joined=`. */
const statements = {
  orders: `${held} s.status = 'pending' AND h.expires > NOW() AND h.product_id = 5`,
  ended: `${held} s.status = 'pending' AND h.expires > NOW() AND h.product_id = 6`,
  none: `${held} h.expires > NOW() AND h.product_id = 7`,
  hour: `${held} HOUR(h.expires) > HOUR(NOW()) AND h.product_id = 6`,
  day: `${held} h.expires > CURRENT_DATE AND h.product_id = 6`,
  utc: `${held} h.expires > UTC_TIMESTAMP AND h.product_id = 6`,
  reversed:
    'SELECT h.amount FROM wp_sales AS s INNER JOIN wp_holds AS h ON s.id = h.order_id WHERE s.id IN (1, 3)',
  posts: 'SELECT h.amount FROM wp_holds h LEFT JOIN wp_posts p ON h.order_id = p.ID WHERE h.product_id = 5',
  either: `${held} s.status = 'pending' OR h.product_id = 5`,
  xor: `${held} h.product_id = 5 AND s.status = 'pending' XOR h.order_id = 3`,
  pipes: `${held} h.product_id = 5 AND s.status = 'pending' || h.order_id = 3`,
  case: `${held} CASE WHEN h.amount = 9 AND h.product_id = 5 AND s.amount = 9 THEN 0 ELSE 1 END`,
  amounts: 'SELECT h.amount FROM wp_holds h JOIN wp_sales s ON h.amount = s.amount WHERE h.product_id = 5',
  inner: `${held} h.product_id = 5 AND h.order_id IN (SELECT id FROM wp_sales)`,
  parents:
    "SELECT p.ID FROM wp_posts p INNER JOIN wp_posts AS parent ON p.post_parent = parent.ID WHERE p.post_type = 'attachment' AND p.post_status = 'inherit' AND parent.post_status = 'publish'",
  'parent-post':
    'SELECT parent.post_title FROM wp_posts INNER JOIN wp_posts AS parent ON wp_posts.post_parent = parent.ID WHERE wp_posts.ID = 5',
  'parent-comment':
    'SELECT parent.comment_content FROM wp_comments INNER JOIN wp_comments AS parent ON wp_comments.comment_parent = parent.comment_ID WHERE wp_comments.comment_ID = 2',
  'other-thread':
    'SELECT parent.comment_content FROM wp_comments INNER JOIN wp_comments AS parent ON wp_comments.comment_karma = parent.comment_ID WHERE wp_comments.comment_post_ID = 4',
  'parent-term':
    'SELECT p.name FROM wp_terms AS t INNER JOIN wp_terms AS p ON t.term_group = p.term_id WHERE t.term_id = 3',
  'parent-taxonomy':
    "SELECT p.description FROM wp_term_taxonomy AS tt INNER JOIN wp_term_taxonomy AS p ON tt.parent = p.term_id WHERE tt.taxonomy = 'category'",
  'other-meta':
    'SELECT o.meta_value FROM wp_postmeta INNER JOIN wp_postmeta AS o ON wp_postmeta.meta_value = o.post_id WHERE wp_postmeta.post_id = 5',
  'posts-of-term':
    'SELECT p.post_title FROM wp_terms AS t INNER JOIN wp_term_taxonomy AS tt ON t.term_id = tt.term_id INNER JOIN wp_term_relationships AS tr ON tr.term_taxonomy_id = tt.term_taxonomy_id INNER JOIN wp_posts AS p ON p.ID = tr.object_id WHERE t.term_id = 3',
  'relations-of-term':
    'SELECT tr.object_id FROM wp_term_taxonomy AS tt INNER JOIN wp_term_relationships AS tr ON tr.term_taxonomy_id = tt.term_taxonomy_id WHERE tt.term_id = 3',
  third: `${held} h.product_id = 5 UNION SELECT amount FROM wp_holds`,
  'comment-before': "/* from a replica */ -- it's read\n SELECT id FROM wp_sales WHERE id = 3",
  'comment-inside': "SELECT id FROM wp_sales # it's one of\nWHERE id = 3 -- AND id = 4",
  'comment-of-list': "SELECT ID FROM wp_posts WHERE post_type = 'page' -- AND post_status = 'publish'",
  expression: 'WITH some AS (SELECT id FROM wp_sales) SELECT COUNT(*) FROM some',
  values: 'VALUES ((SELECT COUNT(*) FROM wp_sales))',
  variable: 'SET @sold = (SELECT COUNT(*) FROM wp_sales)',
  conditional: 'SELECT order_id FROM wp_holds /*! , wp_sales */ WHERE product_id = 5',
  'meta-of-meta':
    'SELECT um.meta_value FROM wp_postmeta pm JOIN wp_usermeta um ON um.user_id = pm.meta_value WHERE pm.post_id = 5',
} as const

/** What stands beside the objects of a condition; each reads something else than it bounds. */
const beside = {
  'own-alias':
    'SELECT p.post_title FROM wp_sales t INNER JOIN wp_posts p ON (p.ID = t.amount) WHERE t.id = 5',
  'own-post-alias':
    "SELECT o.post_title FROM wp_kinds p JOIN wp_posts o ON (o.ID = p.post) WHERE p.post_type = 'page' AND p.post_status = 'publish'",
  'own-comments':
    'SELECT c.comment_content FROM wp_kinds t JOIN wp_comments c ON c.comment_ID = t.post WHERE t.comment_id = 2',
  'own-terms':
    'SELECT n.name FROM wp_kinds t INNER JOIN wp_terms n ON n.term_id = t.post WHERE t.term_id = 3',
  'own-column': 'SELECT p.post_title FROM wp_posts p, wp_sales s WHERE p.ID = s.amount AND post_type = 5',
  'parent-of-term':
    'SELECT t.name FROM wp_terms t JOIN wp_term_taxonomy tt ON t.term_id = tt.parent WHERE tt.term_id = 3',
  'parent-by-comma':
    'SELECT t.name FROM wp_terms t, wp_term_taxonomy tt WHERE t.term_id = tt.parent AND tt.term_id = 3',
  'parent-in-brackets':
    'SELECT t.name FROM (wp_terms t JOIN wp_term_taxonomy tt ON (t.term_id = tt.parent)) WHERE tt.term_id = 3',
  'meta-of-parent':
    'SELECT tm.meta_value FROM wp_term_taxonomy tt JOIN wp_termmeta tm ON tm.term_id = tt.parent WHERE tt.term_id = 3',
  'either-column':
    'SELECT t.name FROM wp_terms t JOIN wp_term_taxonomy tt ON t.term_id = tt.term_id OR t.term_id = tt.parent WHERE tt.term_id = 3',
  'of-another-join':
    'SELECT t.name FROM wp_term_taxonomy tt JOIN wp_terms t LEFT JOIN wp_termmeta tm ON t.term_id = tt.term_id AND tm.term_id = t.term_id WHERE tt.term_id = 3',
  natural: 'SELECT t.name FROM wp_term_taxonomy tt NATURAL JOIN wp_terms t WHERE tt.term_id = 3',
  'no-condition': 'SELECT t.name FROM wp_term_taxonomy tt JOIN wp_terms t WHERE tt.term_id = 3',
  'names-of-terms':
    'SELECT t.name FROM wp_terms t JOIN wp_term_taxonomy tt ON t.term_id = tt.term_id JOIN wp_term_relationships tr ON tr.term_taxonomy_id = tt.term_taxonomy_id WHERE tr.object_id = 5',
  'comments-of-term':
    'SELECT comment_ID FROM wp_comments WHERE comment_post_ID = 4 AND comment_post_ID IN (SELECT object_id FROM wp_term_relationships WHERE term_taxonomy_id = 3)',
  'amounts-of-term':
    'SELECT SUM(amount) FROM wp_sales WHERE id IN (SELECT object_id FROM wp_term_relationships WHERE term_taxonomy_id = 3)',
  'children-of-term':
    "SELECT ID FROM wp_posts WHERE post_type = 'attachment' AND post_parent IN (SELECT object_id FROM wp_term_relationships WHERE term_taxonomy_id = 3)",
  'children-that-exist':
    "SELECT ID FROM wp_posts p WHERE post_type = 'attachment' AND EXISTS (SELECT 1 FROM wp_term_relationships tr WHERE tr.object_id = p.post_parent AND tr.term_taxonomy_id = 3)",
  'either-exists':
    "SELECT ID FROM wp_posts p WHERE post_type = 'attachment' AND EXISTS (SELECT 1 FROM wp_term_relationships tr WHERE tr.object_id = p.ID OR tr.term_taxonomy_id = 3)",
  'count-of-relations': 'SELECT (SELECT COUNT(*) FROM wp_term_relationships WHERE term_taxonomy_id = 3) AS n',
  'listed-relations':
    'SELECT x.object_id FROM (SELECT object_id FROM wp_term_relationships WHERE term_taxonomy_id = 3 LIMIT 5) x',
  'named-terms':
    "SELECT t.term_id FROM wp_terms t JOIN wp_term_taxonomy tt ON t.term_id = tt.term_id JOIN wp_term_relationships tr ON tr.term_taxonomy_id = tt.term_taxonomy_id WHERE tr.object_id = 5 AND t.name LIKE 'a%'",
} as const

/** Posts that are found by a type, and by what belongs to others than they. */
const ofOthers = {
  'posts-of-meta':
    "SELECT p.ID FROM wp_posts p JOIN wp_postmeta pm ON pm.meta_value = p.ID WHERE p.post_type = 'attachment' AND p.post_status = 'inherit'",
  'meta-of-parents':
    "SELECT pm.meta_value FROM wp_posts p JOIN wp_postmeta pm ON pm.post_id = p.post_parent WHERE p.post_type = 'page' AND p.post_status = 'publish'",
  'relations-of-parents':
    "SELECT a.ID FROM wp_posts AS a JOIN wp_term_relationships AS tr ON tr.object_id = a.post_parent WHERE tr.term_taxonomy_id = 3 AND a.post_type = 'attachment'",
} as const

/** Posts that terms leave out, as WordPress asks for them. */
const withoutTerms = {
  'two-terms':
    "SELECT wp_posts.ID FROM wp_posts WHERE 1=1 AND ( wp_posts.ID NOT IN ( SELECT object_id FROM wp_term_relationships WHERE term_taxonomy_id IN (3) ) AND wp_posts.ID NOT IN ( SELECT object_id FROM wp_term_relationships WHERE term_taxonomy_id IN (4) ) ) AND wp_posts.post_type = 'post' AND wp_posts.post_status = 'publish'",
  alias:
    "SELECT p.ID FROM wp_posts AS p WHERE p.ID NOT IN ( SELECT object_id FROM wp_term_relationships WHERE term_taxonomy_id IN (3) ) AND p.post_type = 'post' AND p.post_status = 'publish'",
} as const

/** Statements that the clock of the database decides about. */
const timed = {
  'one-table': 'SELECT id FROM wp_cards WHERE id = 5 AND word_id > UNIX_TIMESTAMP()',
  list: "SELECT ID FROM wp_posts WHERE post_type = 'post' AND post_date > NOW() - INTERVAL 1 DAY",
  shown:
    'SELECT h.amount, CURDATE() FROM wp_holds h LEFT JOIN wp_sales s ON h.order_id = s.id WHERE h.product_id = 7',
  later: `${held} h.product_id = 5 AND h.expires > NOW() + INTERVAL 1 MINUTE`,
} as const

/** Statements of a second table without the prefix. */
const listed = {
  comma: 'SELECT h.amount FROM wp_holds h, cards c WHERE h.product_id = 5',
  straight: 'SELECT h.amount FROM wp_holds h STRAIGHT_JOIN cards c ON h.amount = c.id WHERE h.product_id = 5',
} as const

/** As WordPress and plugins join what belongs to one object. */
const ofOne = {
  'terms-of-taxonomy':
    'SELECT t.name FROM wp_terms AS t, wp_term_taxonomy AS tt WHERE t.term_id = tt.term_id AND tt.term_id = 3',
  'terms-by-using':
    'SELECT t.name FROM wp_terms AS t JOIN wp_term_taxonomy AS tt USING (term_id) WHERE tt.term_id = 3',
  'terms-in-brackets':
    'SELECT n.name FROM wp_terms AS n INNER JOIN wp_term_taxonomy x ON ((x.term_id) = n.term_id AND n.term_id = x.term_id) WHERE x.term_id = 3',
} as const

const plugin = `<?php if ( isset( $_GET['joined'] ) ) { add_action( 'rest_api_init', function () {
	$GLOBALS['wpdb']->query( json_decode( ${JSON.stringify(JSON.stringify({ ...statements, ...beside, ...ofOthers, ...ofOne, ...withoutTerms, ...timed, ...listed }))}, true )[ $_GET['joined'] ] );
	header( 'X-Failed: ' . $GLOBALS['wpdb']->last_error );
} ); }`

describeWith('mariadb', 'statements of several tables of plugins on MariaDB', () => {
  let site: CompanionSite

  const run = async (sql: readonly string[], code = ''): Promise<void> => {
    const output = await site.request(
      `${code} foreach ( json_decode( getenv( 'SQL' ) ) as $sql ) { $GLOBALS['wpdb']->query( $sql ); echo $GLOBALS['wpdb']->last_error; }`,
      { SQL: JSON.stringify(sql) },
    )
    expect(output).toBe('')
  }

  beforeAll(async () => {
    site = await startCompanionStack()
    await run(tables)
    await writeFile(`${site.site}/wp-content/mu-plugins/zz-joined.php`, plugin)
    // The first change after another plugin was added is one of everything.
    await run(["UPDATE wp_sales SET amount = 2 WHERE status = 'paid'"])
  })
  afterAll(() => site?.stop())

  type Joined =
    | keyof typeof statements
    | keyof typeof beside
    | keyof typeof ofOthers
    | keyof typeof ofOne
    | keyof typeof withoutTerms
    | keyof typeof timed
    | keyof typeof listed
  const respond = async (joined: Joined): Promise<Response> => {
    const response = await fetch(`${site.origin}/index.php/wp-json/wp/v2/posts/10?joined=${joined}`)
    await response.arrayBuffer()
    expect(response.headers.get('x-failed')).toBe('')
    return response
  }

  const read = async (joined: Joined) => {
    const response = await respond(joined)
    const tags = response.headers.get('trellis-tags') ?? ''
    expect(tags).toContain(';complete;')
    const named = (kind: string): string => new RegExp(`;${kind}=([^;]*)`).exec(tags)?.[1] ?? ''
    const collections = named('list')
      .split(',')
      .filter((list) => list !== '')
    const whole = ['holds', 'sales', 'cards'].filter((table) => named('x').split(',').includes(table))
    const rows = named('r').split(',').toSorted()
    return {
      rows,
      posts: named('p'),
      terms: named('t').split(','),
      lists: named('q').split(','),
      whole,
      collections,
      maxAge: response.headers.get('trellis-max-age'),
    }
  }

  test.each<[keyof typeof statements, readonly string[]]>([
    ['orders', ['holds:product_id:5', 'sales:id:1.2']],
    ['ended', ['holds:product_id:6', 'sales:id:3']],
    ['none', ['holds:product_id:7']],
    ['reversed', ['holds:order_id:1.3', 'sales:id:1.3']],
  ])('a join (%s) names the rows of either table, by the id that bounds one of them', async (name, rows) => {
    expect(await read(name)).toMatchObject({ rows, whole: [] })
  })

  test('a join with posts names these by their ids', async () => {
    const { rows, posts } = await read('posts')
    expect(rows).toEqual(['holds:product_id:5'])
    expect(posts.split(',')).toEqual(expect.arrayContaining(['1', '2', '10']))
  })

  test.each<[keyof typeof statements, readonly string[]]>([
    ['either', ['holds', 'sales']],
    ['amounts', ['holds', 'sales']],
    ['xor', ['holds', 'sales']],
    ['pipes', ['holds', 'sales']],
    ['case', ['holds', 'sales']],
    ['inner', ['holds', 'sales']],
    ['third', ['holds', 'sales']],
  ])('any other statement of two tables (%s) names both as a whole', async (name, whole) => {
    expect(await read(name)).toMatchObject({ rows: [''], whole })
  })

  test('comments before a statement and in it are none of its parts', async () => {
    for (const name of ['comment-before', 'comment-inside'] as const)
      expect(await read(name)).toMatchObject({ rows: ['sales:id:3'], whole: [] })
    expect((await read('comment-of-list')).lists).toContain('s:page:any')
  })

  test.each<keyof typeof statements>(['expression', 'values', 'variable', 'conditional'])(
    'a response for which a statement was run that cannot be read (%s) is incomplete',
    async (name) => {
      const response = await respond(name)
      expect(response.headers.get('trellis-incomplete')).toContain('a statement that cannot be read')
      expect(response.headers.get('trellis-tags')).not.toContain(';complete;')
    },
  )

  test('a SELECT with common table expressions is no write', async () => {
    expect(await changesOf(statements.expression)).toEqual([])
    expect(await rowsOf('/*M! DELETE FROM wp_sales WHERE id = 40 */')).toEqual(['whole'])
  })

  test('a list of posts beside their parents depends on posts of any type and status', async () => {
    const { lists } = await read('parents')
    expect(lists.filter((list) => list.startsWith('s') && list.endsWith(':any:any'))).toHaveLength(1)
    expect(lists.filter((list) => list.includes(':attachment:'))).toEqual([])
  })

  test.each(Object.keys(withoutTerms) as (keyof typeof withoutTerms)[])(
    'posts that terms leave out (%s) are a list of posts by their terms',
    async (name) => {
      const { lists, collections } = await read(name)
      expect(lists).toContain('sr:post:publish')
      expect(collections).toEqual([])
    },
  )

  test.each(Object.keys(listed) as (keyof typeof listed)[])(
    'a second table without the prefix (%s) is named beside the first one',
    async (name) => {
      expect(await read(name)).toMatchObject({ rows: [''], whole: ['holds', 'cards'] })
    },
  )

  test.each(Object.keys(ofOthers) as (keyof typeof ofOthers)[])(
    'posts that another post decides about (%s) are a list of any of them',
    async (name) => {
      const { lists } = await read(name)
      expect(lists.filter((list) => list.endsWith(':any:any'))).toHaveLength(1)
      expect(lists.filter((list) => /:(?:attachment|page):/.test(list))).toEqual([])
    },
  )

  test.each(Object.keys(ofOne) as (keyof typeof ofOne)[])(
    'rows that belong to one object (%s) are known by its id',
    async (name) => {
      const { terms, collections } = await read(name)
      expect(terms).toContain('3')
      expect(collections).toEqual([])
    },
  )

  test.each<Joined>([
    ...(Object.keys(beside) as (keyof typeof beside)[]),
    ...(['parent-post', 'parent-comment', 'other-thread', 'parent-term', 'parent-taxonomy'] as const),
    ...(['other-meta', 'meta-of-meta', 'posts-of-term', 'relations-of-term'] as const),
  ])(
    'what a condition finds beside the objects that it names (%s) is a list of any of them',
    async (name) => {
      const { lists, collections } = await read(name)
      expect([...collections, ...lists.filter((list) => /^[a-z]+:any:any$/.test(list))]).not.toEqual([])
    },
  )

  test('what is compared with the clock bounds a response until the first of these rows is over', async () => {
    const maxAge = Number((await read('orders')).maxAge)
    expect(maxAge).toBeGreaterThan(60)
    expect(maxAge).toBeLessThanOrEqual(3600)
    expect((await read('ended')).maxAge).toBeNull()
    expect((await read('none')).maxAge).toBeNull()
    for (const name of ['hour', 'day', 'utc', ...(Object.keys(timed) as (keyof typeof timed)[])] as const)
      expect((await read(name)).maxAge).toBe('60')
  })

  const changesOf = async (sql: string, code = ''): Promise<readonly Change[]> => {
    site.intake.pushes.length = 0
    await run([sql], code)
    return site.intake.pushes.flatMap(({ changes }) => changes)
  }
  const rowsOf = async (sql: string, code?: string): Promise<readonly string[]> =>
    (await changesOf(sql, code)).flatMap((change) =>
      'rows' in change ? (change.rows as readonly string[]).toSorted() : ['whole'],
    )

  const hold = 'INSERT INTO wp_holds (order_id, product_id, amount, expires)'
  const update = 'ON DUPLICATE KEY UPDATE amount = VALUES(amount), expires = VALUES(expires)'

  test.each<[string, readonly string[]]>([
    [`${hold} VALUES (8, 5, 1, NOW()) ${update}`, ['order_id:8', 'product_id:5']],
    [`${hold} VALUES (8, 5, 2, NOW()) ${update}`, ['order_id:8', 'product_id:5']],
    [
      `${hold} SELECT 9, 5, 1, ( NOW() + INTERVAL 10 MINUTE ) FROM DUAL WHERE ( SELECT COUNT(*) FROM wp_sales ) > 1 ${update}`,
      ['order_id:9', 'product_id:5'],
    ],
    [`${hold} SELECT 9, 5, 1, NOW() FROM DUAL UNION SELECT 9, 6, 1, NOW() ${update}`, ['whole']],
    [`${hold} SELECT 9, product_id, 1, NOW() FROM wp_holds WHERE order_id = 8 ${update}`, ['whole']],
    [`${hold} SELECT 9, ( SELECT MAX(id) FROM wp_sales ), 1, NOW() FROM DUAL`, ['whole']],
    [`${hold} VALUES (8, 5, 3, NOW()), (8, 6, 3, NOW()) ${update}`, ['whole']],
    [`${hold} VALUES (8, 5, 3, NOW()) ON DUPLICATE KEY UPDATE product_id = product_id + 20`, ['whole']],
    [`${hold} VALUES (8, 5, 4, NOW()) ON /* as ever */ DUPLICATE KEY UPDATE product_id = 40`, ['whole']],
  ])('%s is a change of its row', async (sql, rows) => {
    expect(await rowsOf(sql)).toEqual(rows)
  })

  test('a row that is updated in the place of an INSERT is named as it was, and as it is', async () => {
    const insert = "INSERT INTO wp_cards (owner_id, word_id, text) VALUES (3, 7, 'a')"
    expect(await rowsOf(insert)).toEqual(['id:1', 'owner_id:3', 'word_id:7'])
    const again = "INSERT INTO wp_cards (owner_id, word_id, text) VALUES (3, 8, 'b') ON DUPLICATE KEY UPDATE"
    const both = ['id:1', 'owner_id:3', 'word_id:7', 'word_id:8']
    expect(await rowsOf(`${again} text = VALUES(text)`)).toEqual(both)
    expect(await rowsOf(`${again} word_id = VALUES(word_id)`)).toEqual(both)
    expect(await rowsOf(`${again} word_id = 9`)).toEqual(['whole'])
    expect(await rowsOf(`${again} \`wp_cards\`.\`word_id\` = 10`)).toEqual(['whole'])
    const moved = 'UPDATE wp_cards SET `wp_cards`.`word_id` = 11 WHERE owner_id = 3'
    expect(await rowsOf(moved)).toEqual(expect.arrayContaining(['word_id:10', 'word_id:11']))
    const text = "INSERT INTO wp_cards (owner_id, text) VALUES (4, 'ON DUPLICATE KEY UPDATE word_id = 1')"
    expect(await rowsOf(text)).toContain('owner_id:4')
  })

  test('where a key has a part of a column, an INSERT that may update a row is a change of the whole table', async () => {
    const sql = "INSERT INTO wp_parts (owner_id, text) VALUES ('oak', 'a') ON DUPLICATE KEY UPDATE text = 'b'"
    expect(await rowsOf(sql)).toEqual(['whole'])
  })

  test('an INSERT that may update a row of WordPress is a change of the whole table, however it is written', async () => {
    const sql =
      "INSERT INTO wp_postmeta (meta_id, post_id, meta_key, meta_value) VALUES (1, 10, 'a', 'b') ON DUPLICATE\n KEY UPDATE meta_value = 'c'"
    expect(await changesOf(sql)).toContainEqual(expect.objectContaining({ kind: 'table', name: 'postmeta' }))
  })

  test('a row that another request inserts right before, and this one updates, is a change of the whole table', async () => {
    const other = "INSERT INTO wp_cards (owner_id, word_id, text) VALUES (6, 70, 'late')"
    const beside = `add_filter( 'query', function ( $query ) { static $done = false; if ( ! $done && 0 === strpos( $query, 'INSERT INTO wp_cards' ) ) { $done = true; list( $host, $socket ) = explode( ':', DB_HOST ); $one = new mysqli( $host, DB_USER, DB_PASSWORD, DB_NAME, 0, $socket ); $one->query( ${JSON.stringify(other)} ); echo $one->error; } return $query; }, PHP_INT_MAX );`
    const sql =
      "INSERT INTO wp_cards (owner_id, word_id, text) VALUES (6, 8, 'b') ON DUPLICATE KEY UPDATE text = 'b'"
    expect(await rowsOf(sql, beside)).toEqual(['whole'])
  })
})
