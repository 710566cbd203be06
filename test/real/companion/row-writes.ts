import type { CompanionSite } from './site.ts'
import { php, rest, type Write } from './writes.ts'

const tables = [
  'CREATE TABLE wp_acme (id bigint(20) NOT NULL AUTO_INCREMENT, owner_id bigint(20) NOT NULL DEFAULT 3, object_id bigint(20), object_type varchar(60), text varchar(60), PRIMARY KEY (id))',
  'CREATE TABLE wp_yoast_indexable (id bigint(20) NOT NULL AUTO_INCREMENT, object_type varchar(60), object_last_modified datetime, PRIMARY KEY (id))',
  'CREATE TABLE wp_yoast_indexable_hierarchy (object_id bigint(20), object_type varchar(60), title varchar(60))',
  'CREATE TABLE wp_cards (id bigint(20) NOT NULL AUTO_INCREMENT, text varchar(60), PRIMARY KEY (id))',
  "INSERT INTO wp_cards (id, text) VALUES (13, 'one'), (14, 'other')",
  "INSERT INTO wp_acme (owner_id, object_id, object_type, text) VALUES (3, 13, 'post', 'a')",
  "INSERT INTO wp_acme (owner_id, object_id, object_type, text) VALUES (3, 13, 'term', 'b')",
  "INSERT INTO wp_acme (owner_id, object_id, object_type, text) VALUES (5, 14, 'post', 'c')",
  "INSERT INTO wp_acme (owner_id, text) VALUES (9, 'q')",
  "INSERT INTO wp_yoast_indexable (object_type, object_last_modified) VALUES ('home-page', '2026-01-01 00:00:00')",
  "INSERT INTO wp_yoast_indexable_hierarchy (object_id, object_type, title) VALUES (60, 'post', 'first')",
]

/** Makes the tables that plugins/companion-rows.php shows. */
export const makeTables = async (site: Pick<CompanionSite, 'request'>): Promise<void> => {
  const output = await site.request(
    "foreach ( json_decode( getenv( 'SQL' ) ) as $sql ) { $GLOBALS['wpdb']->query( $sql ); echo $GLOBALS['wpdb']->last_error; }",
    { SQL: JSON.stringify(tables) },
  )
  if (output !== '') throw new Error(output)
}

const direct = (sql: string) => php(`$GLOBALS['wpdb']->query( "${sql}" );`)

/** A statement, and what another request has done when the companion, or the request, sends one that begins so. */
const beside = (beginning: string, other: string, sql: string) =>
  php(
    `add_filter( 'query', function ( $query ) { static $done = false; if ( ! $done && 0 === strpos( $query, '${beginning}' ) ) { $done = true; ( new PDO( 'sqlite:' . DB_DIR . DB_FILE ) )->exec( "${other}" ); } return $query; }, PHP_INT_MAX ); $GLOBALS['wpdb']->query( "${sql}" );`,
  )

/** Writes to tables of plugins, and to terms, that one rule about rows and names decides about. */
export const rowWrites: readonly Write[] = [
  [
    'rows: a text of two objects',
    ['table:acme'],
    direct("UPDATE wp_acme SET text = 'd' WHERE object_id = 13"),
  ],
  ['rows: another owner', ['table:acme'], direct('UPDATE wp_acme SET owner_id = 4 WHERE id = 1')],
  ['rows: the next owner', ['table:acme'], direct('UPDATE wp_acme SET owner_id = owner_id + 1 WHERE id = 2')],
  [
    'rows: one that the database counts, with an owner by default',
    ['table:acme'],
    direct("INSERT INTO wp_acme (object_id, object_type, text) VALUES (15, 'post', 'e')"),
  ],
  [
    'rows: an owner in other digits',
    ['table:acme'],
    direct("INSERT INTO wp_acme (owner_id, text) VALUES ('03', 'f')"),
  ],
  [
    'rows: a time of the last change',
    ['table:yoast_indexable'],
    direct("UPDATE wp_yoast_indexable SET object_last_modified = '2027-01-01 00:00:00' WHERE id = 1"),
  ],
  ['rows: a read makes one', ['table:yoast_indexable_hierarchy'], rest('GET', '/rows/v1/memoize')],
  [
    'rows: a read makes one that others count',
    ['table:yoast_indexable_hierarchy'],
    rest('GET', '/rows/v1/memoize-other'),
  ],
  ['rows: a read adds one', ['table:yoast_indexable_hierarchy'], rest('GET', '/rows/v1/add')],
  ['rows: a read adds a third one', ['table:yoast_indexable_hierarchy'], rest('GET', '/rows/v1/add-third')],
  [
    'rows: another request adds one to those of a condition',
    ['table:acme'],
    beside(
      'UPDATE wp_acme',
      "INSERT INTO wp_acme (owner_id, text) VALUES (7, 'd')",
      "UPDATE wp_acme SET text = 'g' WHERE text = 'd'",
    ),
  ],
  [
    'rows: another request gives one of a condition another owner',
    ['table:acme'],
    beside(
      'INSERT INTO wp_trellis_changes',
      'UPDATE wp_acme SET owner_id = 8 WHERE owner_id = 9',
      "UPDATE wp_acme SET text = 'h' WHERE text = 'q'",
    ),
  ],
  [
    'rows: the one to which a join leads',
    ['table:cards'],
    direct("UPDATE wp_cards SET text = 'turned' WHERE id = 14"),
  ],
  [
    'rows: a join leads to another one',
    ['table:acme'],
    direct('UPDATE wp_acme SET object_id = 13 WHERE id = 3'),
  ],
  [
    'rows: an INSERT updates one',
    ['table:acme'],
    direct(
      "INSERT INTO wp_acme (id, owner_id, text) VALUES (2, 7, 'again') ON DUPLICATE KEY UPDATE text = VALUES(text)",
    ),
  ],
  ['rows: a post beside another one', ['post:post'], rest('PUT', '/wp/v2/posts/31', { title: 'Beside' })],
  ['rows: a post of a term', ['post:post'], rest('PUT', '/wp/v2/posts/75', { title: 'Of a term' })],
  [
    'names: one of two categories is described',
    ['term:category'],
    rest('PUT', '/wp/v2/categories/2', { description: 'zzz' }),
  ],
  [
    'names: the other one is described',
    ['term:category'],
    rest('PUT', '/wp/v2/categories/3', { description: 'zzzz' }),
  ],
  [
    'names: the first of two categories gets the last name',
    ['term:category'],
    rest('PUT', '/wp/v2/categories/3', { name: 'zzz' }),
  ],
]

/** What shows these rows, and the order of terms. */
export const rowReads: readonly string[] = [
  ...['object', 'either', 'owner', 'other-owner', 'late-owner', 'moved-owner', 'next', 'latest', 'none'],
  ...['counted', 'one', 'joined', 'beside', 'of-term'],
]
  .map((name) => `/rows/v1/${name}`)
  .concat(['query', 'found'].map((name) => `/wp/v2/posts/75?_fields=id,categories&ordered=${name}`))
  .concat(['/wp/v2/posts/75?_fields=id,categories', '/wp/v2/categories/3'])
