import { php, rest, type Write } from './writes.ts'

const direct = (...sql: readonly string[]) =>
  php(sql.map((one) => `$GLOBALS['wpdb']->query( "${one}" );`).join(' '))

/**
 * In the middle of a request, statements of another one that writes at the same time: `beside` runs them on a separate connection,
 * after an open row of the log that is closed at the end: as one that has written a comment, which says nothing of posts and options.
 */
const meanwhile = (code: string) =>
  php(
    `$pdo = new PDO( 'sqlite:' . DB_DIR . DB_FILE ); $pdo->setAttribute( PDO::ATTR_ERRMODE, PDO::ERRMODE_EXCEPTION ); $pdo->exec( "INSERT INTO wp_trellis_changes (state, since, horizon, site, note, changes) VALUES (0, " . time() . ", 0, 1, 'p 1 1 cli nowhere', '')" ); $beside = function ( $sql ) use ( $pdo ) { $pdo->exec( $sql ); wp_cache_flush(); }; ${code} $pdo->exec( "UPDATE wp_trellis_changes SET state = 1, changes = '[{\\"kind\\":\\"comment\\",\\"id\\":4711,\\"post\\":4711}]', horizon = (SELECT MAX(sequence) FROM wp_trellis_changes) WHERE note = 'p 1 1 cli nowhere'" );`,
  )

/** Writes that only one rule of the companion decides about. */
export const narrowWrites: readonly Write[] = [
  ['REST: an author is renamed', ['user'], rest('PUT', '/wp/v2/users/2', { name: 'Chief', slug: 'chief' })],
  ['REST: an author changes', ['post:post'], rest('PUT', '/wp/v2/posts/4', { author: 3 })],
  [
    'REST: a title becomes one that is searched for',
    ['post:post'],
    rest('PUT', '/wp/v2/posts/42', { title: 'A shade' }),
  ],
  [
    'REST: a content becomes one that is searched for',
    ['post:post'],
    rest('PUT', '/wp/v2/posts/43', { content: 'In the shade' }),
  ],
  [
    'REST: an excerpt becomes one that is searched for',
    ['post:post'],
    rest('PUT', '/wp/v2/posts/44', { excerpt: 'Of shade' }),
  ],
  [
    'REST: a date is changed',
    ['post:post'],
    rest('PUT', '/wp/v2/posts/45', { title: 'Late', date: '2025-12-01T08:00:00' }),
  ],
  ['REST: a slug becomes the first', ['post:post'], rest('PUT', '/wp/v2/posts/46', { slug: 'aaa' })],
  [
    'REST: a slug becomes one that is looked for',
    ['post:post'],
    rest('PUT', '/wp/v2/posts/47', { slug: 'light' }),
  ],
  ['REST: a page changes its order', ['post:page'], rest('PUT', '/wp/v2/pages/114', { menu_order: 30 })],
  ['REST: a page changes its parent', ['post:page'], rest('PUT', '/wp/v2/pages/115', { parent: 113 })],
  ['REST: a page changes its parent again', ['post:page'], rest('PUT', '/wp/v2/pages/115', { parent: 112 })],
  ['REST: a password is changed', ['post:post'], rest('PUT', '/wp/v2/posts/108', { password: 'other' })],
  ['REST: a password is removed', ['post:post'], rest('PUT', '/wp/v2/posts/108', { password: '' })],
  ['REST: a post gets another category', ['post:post'], rest('PUT', '/wp/v2/posts/80', { categories: [2] })],
  [
    'REST: a comment is answered',
    ['comment:4', 'post:post'],
    rest('POST', '/wp/v2/comments', { post: 4, parent: 2, content: 'so it is' }),
  ],
  [
    'PHP: a tag becomes the one of most posts',
    ['post:post'],
    php(
      `foreach ( range( 26, 30 ) as $id ) { wp_set_object_terms( $id, array( 'Season 7' ), 'post_tag', true ); }`,
    ),
  ],
  [
    'PHP: one post becomes sticky, and one no longer is',
    ['option:sticky_posts'],
    php('stick_post( 60 ); unstick_post( 8 );'),
  ],
  [
    'REST: a post is no longer sticky',
    ['option:sticky_posts'],
    rest('PUT', '/wp/v2/posts/60', { sticky: false }),
  ],
  ['PHP: a featured image alone', ['post:post'], php('set_post_thumbnail( 10, 123 );')],
  [
    '$wpdb: a count with a parent',
    ['term:category'],
    direct('UPDATE wp_term_taxonomy SET count = 4, parent = 2 WHERE term_taxonomy_id = 5'),
  ],
  [
    'PHP: a term is renamed and counted',
    ['term:category'],
    php(
      `wp_update_term( 5, 'category', array( 'name' => 'Shade' ) ); wp_update_term_count_now( array( 5 ), 'category' );`,
    ),
  ],
  [
    'PHP: a term is counted and renamed',
    ['term:category'],
    php(
      `$GLOBALS['wpdb']->update( 'wp_term_taxonomy', array( 'count' => 90 ), array( 'term_taxonomy_id' => 5 ) ); $GLOBALS['wpdb']->update( 'wp_terms', array( 'slug' => 'dark' ), array( 'term_id' => 5 ) );`,
    ),
  ],
  [
    '$wpdb: a featured image moves to another post',
    ['post:post'],
    direct(`UPDATE wp_postmeta SET post_id = 42 WHERE post_id = 4 AND meta_key = '_thumbnail_id'`),
  ],
  [
    '$wpdb: INSERT … SELECT of featured images',
    ['table:postmeta'],
    direct(
      `INSERT INTO wp_postmeta (post_id, meta_key, meta_value) SELECT ID, '_thumbnail_id', '121' FROM wp_posts WHERE ID = 41`,
    ),
  ],
  [
    '$wpdb: a statement with assignments',
    ['table:postmeta'],
    direct(`INSERT INTO wp_postmeta SET post_id = 22, meta_key = '_thumbnail_id', meta_value = '121'`),
  ],
  [
    '$wpdb: one post and another',
    ['post:post'],
    direct(`UPDATE wp_posts SET comment_status = 'closed' WHERE ID = 90 AND post_type = 'post' OR ID = 5`),
  ],
  [
    '$wpdb: a column that lists do not know',
    ['post:post'],
    direct(`UPDATE wp_posts SET ping_status = 'closed' WHERE ID = 99`),
  ],
  [
    'PHP: two steps of one post',
    ['post:post'],
    php(
      `wp_update_post( array( 'ID' => 50, 'post_status' => 'draft' ) ); wp_update_post( array( 'ID' => 50, 'post_content' => 'later' ) );`,
    ),
  ],
  [
    'PHP: another connection publishes a draft, and says so',
    ['post:post'],
    php(
      `( new PDO( 'sqlite:' . DB_DIR . DB_FILE ) )->exec( "UPDATE wp_posts SET post_status = 'publish' WHERE ID = 50" ); clean_post_cache( 50 );`,
    ),
  ],
  [
    'PHP: another connection renames a post whose comments are counted then',
    ['post:post'],
    php(
      `( new PDO( 'sqlite:' . DB_DIR . DB_FILE ) )->exec( "UPDATE wp_posts SET post_title = 'By another' WHERE ID = 10" ); $GLOBALS['wpdb']->update( 'wp_posts', array( 'comment_count' => 7 ), array( 'ID' => 10 ) ); clean_post_cache( 10 ); clean_post_cache( 10 );`,
    ),
  ],
  [
    'PHP: another request makes another post sticky',
    ['option:sticky_posts'],
    meanwhile(
      `$beside( "UPDATE wp_options SET option_value = 'a:1:{i:0;i:22;}' WHERE option_name = 'sticky_posts'" ); stick_post( 61 );`,
    ),
  ],
  [
    'PHP: another request makes a draft of the same post',
    ['post:post'],
    meanwhile(
      `$beside( "UPDATE wp_posts SET post_status = 'draft' WHERE ID = 62" ); $GLOBALS['wpdb']->update( 'wp_posts', array( 'post_title' => 'beside' ), array( 'ID' => 62 ) );`,
    ),
  ],
  [
    'PHP: another request exchanges the only row of a condition',
    ['table:posts'],
    meanwhile(
      `$beside( "UPDATE wp_posts SET post_author = 3 WHERE ID = 60" ); add_filter( 'query', function ( $sql ) use ( $beside ) { if ( 0 === strpos( $sql, 'UPDATE wp_posts SET comment_status' ) ) { $beside( "UPDATE wp_posts SET post_author = CASE ID WHEN 22 THEN 3 ELSE 1 END WHERE ID IN (22, 60)" ); } return $sql; }, PHP_INT_MAX ); $GLOBALS['wpdb']->query( "UPDATE wp_posts SET comment_status = 'closed' WHERE post_author = 3 AND ID IN (22, 60)" );`,
    ),
  ],
  [
    'PHP: what a plugin keeps beside a user',
    ['user'],
    php(`add_user_meta( 2, 'shelf', 'ferns' ); add_user_meta( 2, 'window', 'herbs' );`),
  ],
  [
    '$wpdb: what a plugin keeps beside a user, in other letters',
    ['user'],
    direct(`INSERT INTO wp_usermeta (user_id, meta_key, meta_value) VALUES (2, 'SHELF', 'mosses')`),
  ],
  [
    '$wpdb: rows of a user get another key',
    ['user'],
    direct(`UPDATE wp_usermeta SET meta_key = 'shelf' WHERE user_id = 2 AND meta_key = 'window'`),
  ],
  [
    'PHP: another connection writes what a plugin keeps beside a user, and says so',
    ['user'],
    php(
      `update_user_meta( 2, 'window', 'sage' ); ( new PDO( 'sqlite:' . DB_DIR . DB_FILE ) )->exec( "UPDATE wp_usermeta SET meta_value = 'by another' WHERE user_id = 2" ); clean_user_cache( 2 );`,
    ),
  ],
  ['PHP: a user gets another nickname alone', ['user'], php(`update_user_meta( 2, 'nickname', 'Flora' );`)],
  [
    'PHP: a role may list users',
    ['option:wp_user_roles'],
    php(
      `add_role( 'gardener', 'Gardener', array( 'read' => true, 'list_users' => true, 'read_private_posts' => true ) );`,
    ),
  ],
  [
    'REST: a user is created whom visitors may list',
    ['user'],
    rest('POST', '/wp/v2/users', { username: 'listed', email: 'l@example.org', password: 'secret-secret' }),
  ],
  ['PHP: an empty language is added', ['option:WPLANG:direct'], php(`add_option( 'WPLANG', '' );`)],
  [
    'PHP: the language is another',
    ['option:WPLANG'],
    direct(`UPDATE wp_options SET option_value = 'de_DE' WHERE option_name = 'WPLANG'`),
  ],
  ['PHP: no language is left', ['option:WPLANG'], php(`delete_option( 'WPLANG' );`)],
  ['PHP: the site is not public', ['option:blog_public'], php(`update_option( 'blog_public', '0' );`)],
  [
    'PHP: addresses name the author',
    ['option:permalink_structure'],
    php(`update_option( 'permalink_structure', '/index.php/%author%/%postname%/' );`),
  ],
  [
    'REST: an author whom addresses name is renamed',
    ['user'],
    rest('PUT', '/wp/v2/users/2', { slug: 'head' }),
  ],
  [
    'PHP: addresses do not name the author',
    ['option:permalink_structure'],
    php(`update_option( 'permalink_structure', '/index.php/%postname%/' );`),
  ],
  [
    'REST: a user comments on the post of another',
    ['comment:10'],
    php(
      `wp_insert_comment( array( 'comment_post_ID' => 10, 'user_id' => 3, 'comment_author_email' => 'author@example.org', 'comment_content' => 'mine', 'comment_approved' => 1 ) );`,
    ),
  ],
  [
    '$wpdb: the posts of an author but a few are drafts',
    ['post:post'],
    direct(
      `UPDATE wp_posts SET post_status = 'draft' WHERE post_author = 3 AND post_status = 'publish' AND ID NOT IN (5, 8, 11)`,
    ),
  ],
  [
    '$wpdb: the posts of an author are drafts',
    ['post:post'],
    direct(`UPDATE wp_posts SET post_status = 'draft' WHERE post_author = 3 AND post_status = 'publish'`),
  ],
  [
    '$wpdb: the contents of an author are drafts',
    ['post:post'],
    direct(`UPDATE wp_posts SET post_status = 'draft' WHERE post_author = 1 AND post_status = 'publish'`),
  ],
]
