import type { CompanionSite } from './site.ts'

/** A write of any kind, and the changes that must be reported for it: `kind:detail` of each. */
export type Write = readonly [
  title: string,
  reports: readonly string[],
  run: (site: CompanionSite) => Promise<unknown>,
]

export const php =
  (code: string) =>
  async (site: CompanionSite): Promise<void> => {
    const output = await site.request(code)
    if (/Fatal|Parse error/.test(output)) throw new Error(output)
  }

export const rest =
  (method: string, path: string, body?: unknown) =>
  async (site: CompanionSite): Promise<void> => {
    const response = await site.rest(method, path, body)
    const text = await response.text()
    if (!response.ok) throw new Error(`${response.status}: ${text.slice(0, 300)}`)
  }

const xml = (value: unknown): string => {
  if (typeof value === 'number') return `<int>${value}</int>`
  if (typeof value === 'string') return `<string>${value}</string>`
  if (Array.isArray(value))
    return `<array><data>${value.map((one) => `<value>${xml(one)}</value>`).join('')}</data></array>`
  const members = Object.entries(value as Record<string, unknown>).map(
    ([name, one]) => `<member><name>${name}</name><value>${xml(one)}</value></member>`,
  )
  return `<struct>${members.join('')}</struct>`
}

const xmlRpc =
  (method: string, ...parameters: readonly unknown[]) =>
  async (site: CompanionSite): Promise<void> => {
    const all = [1, 'admin', 'admin-password', ...parameters]
    const body = `<?xml version="1.0"?><methodCall><methodName>${method}</methodName><params>${all
      .map((one) => `<param><value>${xml(one)}</value></param>`)
      .join('')}</params></methodCall>`
    const response = await fetch(`${site.origin}/xmlrpc.php`, { method: 'POST', body })
    const text = await response.text()
    if (response.status !== 200 || text.includes('<fault>'))
      throw new Error(`${response.status}: ${text.slice(0, 400)}`)
  }

const form =
  (page: string, having: string, headers: Readonly<Record<string, string>>) =>
  async (site: CompanionSite): Promise<void> => {
    const response = await site.browser.submit(page, having, headers)
    const text = await response.text()
    if (response.status >= 400) throw new Error(`${response.status}: ${text.slice(0, 300)}`)
  }

const link =
  (page: string, ...having: readonly string[]) =>
  async (site: CompanionSite): Promise<void> => {
    await site.browser.follow(page, ...having)
  }

/** php-fpm responds before the events run: they have ended when their changes are reported. */
const runCron = async (site: CompanionSite): Promise<void> => {
  const { pushes } = site.intake
  const earlier = pushes.length
  await (await fetch(`${site.origin}/wp-cron.php`)).text()
  for (let tries = 0; tries < 200 && pushes.length === earlier; tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** SQL of a plugin that clears the object cache, as it should: WordPress itself shows the old values as long as the cache has them. */
const sql = (code: string) => php(`${code} wp_cache_flush();`)

/** WordPress's importer clears the object cache at its end. */
const importing = (code: string) => php(`wp_suspend_cache_invalidation( true ); ${code} wp_cache_flush();`)
const firstOf = (type: string): string =>
  `get_posts( array( 'post_type' => '${type}', 'numberposts' => 1, 'post_status' => 'any' ) )[0]->ID`

const throughRest: readonly Write[] = [
  [
    'REST: a post is created',
    ['post:post', 'term:category'],
    rest('POST', '/wp/v2/posts', { title: 'new', status: 'publish' }),
  ],
  [
    'REST: a draft is created',
    ['post:post'],
    rest('POST', '/wp/v2/posts', { title: 'draft', status: 'draft' }),
  ],
  [
    'REST: a title is changed',
    ['post:post', 'post:revision'],
    rest('PUT', '/wp/v2/posts/10', { title: 'other' }),
  ],
  ['REST: nothing is changed', ['post:post'], rest('PUT', '/wp/v2/posts/10', {})],
  [
    'REST: categories are changed',
    ['post:post', 'term:category'],
    rest('PUT', '/wp/v2/posts/10', { categories: [2] }),
  ],
  [
    'REST: a post is made sticky',
    ['post:post', 'option:sticky_posts'],
    rest('PUT', '/wp/v2/posts/10', { sticky: true }),
  ],
  ['REST: a featured image is set', ['post:post'], rest('PUT', '/wp/v2/posts/11', { featured_media: 121 })],
  ['REST: a format is set', ['post:post'], rest('PUT', '/wp/v2/posts/11', { format: 'aside' })],
  [
    'REST: a post is made a draft',
    ['post:post', 'term:category'],
    rest('PUT', '/wp/v2/posts/12', { status: 'draft' }),
  ],
  [
    'REST: a draft is published',
    ['post:post', 'term:category'],
    rest('PUT', '/wp/v2/posts/12', { status: 'publish' }),
  ],
  ['REST: a post goes to the trash', ['post:post'], rest('DELETE', '/wp/v2/posts/13')],
  ['REST: a post is deleted', ['post:post', 'term:post_tag'], rest('DELETE', '/wp/v2/posts/14?force=true')],
  ['REST: a page is renamed', ['post:page'], rest('PUT', '/wp/v2/pages/112', { title: 'page' })],
  [
    'REST: a page with children is deleted',
    ['post:page', 'post:nav_menu_item'],
    rest('DELETE', '/wp/v2/pages/112?force=true'),
  ],
  ['REST: an autosave', ['post:revision'], rest('POST', '/wp/v2/posts/15/autosaves', { title: 'auto' })],
  ['REST: a category is created', ['term:category'], rest('POST', '/wp/v2/categories', { name: 'Moss' })],
  [
    'REST: a category is renamed',
    ['term:category'],
    rest('PUT', '/wp/v2/categories/3', { name: 'Bushes', slug: 'bushes' }),
  ],
  [
    'REST: a category is deleted',
    ['term:category', 'post:post'],
    rest('DELETE', '/wp/v2/categories/4?force=true'),
  ],
  ['REST: a tag is created', ['term:post_tag'], rest('POST', '/wp/v2/tags', { name: 'Winter' })],
  [
    'REST: a comment is added',
    ['comment:16', 'post:post'],
    rest('POST', '/wp/v2/comments', { post: 16, content: 'well said' }),
  ],
  [
    'REST: a comment is held',
    ['comment:4', 'post:post'],
    rest('PUT', '/wp/v2/comments/2', { status: 'hold' }),
  ],
  ['REST: a comment is deleted', ['comment:4'], rest('DELETE', '/wp/v2/comments/3?force=true')],
  [
    'REST: a user is created',
    ['user'],
    rest('POST', '/wp/v2/users', { username: 'newby', email: 'n@example.org', password: 'secret-secret' }),
  ],
  ['REST: a user gets a description', ['user'], rest('PUT', '/wp/v2/users/2', { description: 'writes' })],
  ['REST: a user is deleted', ['user', 'post:post'], rest('DELETE', '/wp/v2/users/3?force=true&reassign=1')],
  [
    'REST: settings are changed',
    ['option:blogname', 'option:posts_per_page'],
    rest('POST', '/wp/v2/settings', { title: 'Park', posts_per_page: 9 }),
  ],
  [
    'REST: a block is changed',
    ['post:wp_block'],
    rest('POST', '/wp/v2/blocks', { title: 'b', content: 'c', status: 'publish' }),
  ],
  [
    'REST: a navigation is created',
    ['post:wp_navigation'],
    rest('POST', '/wp/v2/navigation', { title: 'n', content: '', status: 'publish' }),
  ],
  [
    'REST: a menu item is created',
    ['post:nav_menu_item'],
    rest('POST', '/wp/v2/menu-items', {
      title: 'i',
      url: 'https://example.org/i',
      status: 'publish',
      menus: 15,
    }),
  ],
  [
    'REST: a template is changed',
    ['post:wp_template'],
    rest('POST', '/wp/v2/templates/twentytwentyfour//index', { content: 'x' }),
  ],
  [
    'REST: image details are changed',
    ['post:attachment'],
    rest('POST', '/wp/v2/media/121', { alt_text: 'leaf', caption: 'c' }),
  ],
  ['REST: an image is deleted', ['post:attachment'], rest('DELETE', '/wp/v2/media/122?force=true')],
  [
    'REST: a batch',
    ['post:post', 'term:post_tag'],
    rest('POST', '/batch/v1', {
      requests: [
        { path: '/wp/v2/posts', body: { title: 'b', status: 'publish' } },
        { path: '/wp/v2/tags', body: { name: 'batch' } },
      ],
    }),
  ],
  [
    'REST: a widget area is changed',
    ['option:sidebars_widgets'],
    rest('POST', '/wp/v2/widgets', {
      id_base: 'text',
      sidebar: 'wp_inactive_widgets',
      instance: { raw: { text: 'x' } },
    }),
  ],
]

const throughForms: readonly Write[] = [
  [
    'wp-admin: a post is saved',
    ['post:post'],
    form('/wp-admin/post.php?post=20&action=edit', 'action', {
      post_title: 'by form',
      action: 'editpost',
      post_ID: '20',
    }),
  ],
  [
    'wp-admin: general settings',
    ['option:blogdescription'],
    form('/wp-admin/options-general.php', 'option_page', {
      blogdescription: 'green',
      timezone_string: 'UTC+0',
    }),
  ],
  [
    'wp-admin: reading settings',
    ['option:posts_per_rss'],
    form('/wp-admin/options-reading.php', 'option_page', { posts_per_rss: '7' }),
  ],
  [
    'wp-admin: permalinks',
    ['option:permalink_structure'],
    form('/wp-admin/options-permalink.php', 'permalink_structure', {
      selection: 'custom',
      permalink_structure: '/index.php/%year%/%postname%/',
    }),
  ],
  [
    'wp-admin: permalinks back',
    ['option:permalink_structure'],
    form('/wp-admin/options-permalink.php', 'permalink_structure', {
      selection: 'custom',
      permalink_structure: '/index.php/%postname%/',
    }),
  ],
  [
    'wp-admin: a category is added',
    ['term:category'],
    form('/wp-admin/edit-tags.php?taxonomy=category', 'add-tag', {
      'tag-name': 'Reeds',
      action: 'add-tag',
      parent: '-1',
    }),
  ],
  [
    'wp-admin: a profile is saved',
    ['user'],
    form('/wp-admin/profile.php', 'checkuser_id', { nickname: 'chief', email: 'admin@example.org' }),
  ],
  [
    'wp-admin: a user is added',
    ['user'],
    form('/wp-admin/user-new.php', 'createuser', {
      user_login: 'formuser',
      email: 'f@example.org',
      pass1: 'long-password-9',
      pass2: 'long-password-9',
      role: 'author',
      action: 'createuser',
    }),
  ],
  [
    'wp-admin: a comment is approved',
    ['comment:4', 'post:post'],
    link('/wp-admin/edit-comments.php', 'action=approvecomment', 'c=2'),
  ],
  [
    'wp-admin: a comment is trashed',
    ['comment:4'],
    link('/wp-admin/edit-comments.php', 'action=trashcomment', 'c=2'),
  ],
  ['wp-admin: a post is trashed', ['post:post'], link('/wp-admin/edit.php', 'post.php', 'action=trash')],
  [
    'wp-admin: a post is restored',
    ['post:post'],
    link('/wp-admin/edit.php?post_status=trash&post_type=post', 'action=untrash'),
  ],
  [
    'wp-admin: a plugin is activated',
    ['option:active_plugins'],
    link('/wp-admin/plugins.php', 'action=activate', 'hello'),
  ],
  [
    'wp-admin: a plugin is deactivated',
    ['option:active_plugins'],
    link('/wp-admin/plugins.php', 'action=deactivate', 'hello'),
  ],
  [
    'wp-admin: a new post is begun',
    ['post:post'],
    async (site) => site.browser.get('/wp-admin/post-new.php'),
  ],
  [
    'a reader comments on a page',
    ['comment:21'],
    async (site) => site.browser.post('/wp-comments-post.php', { comment: 'by form', comment_post_ID: '21' }),
  ],
]

const throughXmlRpc: readonly Write[] = [
  [
    'XML-RPC: a post is created',
    ['post:post'],
    xmlRpc('wp.newPost', { post_title: 'rpc', post_status: 'publish', post_type: 'post' }),
  ],
  ['XML-RPC: a post is changed', ['post:post'], xmlRpc('wp.editPost', 22, { post_title: 'rpc 2' })],
  ['XML-RPC: a post is deleted', ['post:post'], xmlRpc('wp.deletePost', 23)],
  [
    'XML-RPC: a term is created',
    ['term:category'],
    xmlRpc('wp.newTerm', { name: 'RPC', taxonomy: 'category' }),
  ],
  ['XML-RPC: an option is set', ['option:blogname'], xmlRpc('wp.setOptions', { blog_title: 'By RPC' })],
  ['XML-RPC: a comment is added', ['comment:24'], xmlRpc('wp.newComment', 24, { content: 'rpc' })],
  [
    'XML-RPC: a page is created',
    ['post:page'],
    xmlRpc('wp.newPage', { title: 'rpc page', page_status: 'publish' }),
  ],
]

const throughCron: readonly Write[] = [
  [
    'cron: a scheduled post is published',
    ['post:post', 'term:category'],
    async (site) => {
      await php(
        `$id = wp_insert_post( array( 'post_title' => 'due', 'post_status' => 'future', 'post_date' => gmdate( 'Y-m-d H:i:s', time() + 3600 ) ) ); $past = gmdate( 'Y-m-d H:i:s', time() - 2 ); $wpdb = $GLOBALS['wpdb']; $wpdb->update( $wpdb->posts, array( 'post_date' => $past, 'post_date_gmt' => $past ), array( 'ID' => $id ) ); clean_post_cache( $id ); wp_clear_scheduled_hook( 'publish_future_post', array( $id ) ); wp_schedule_single_event( time() - 1, 'publish_future_post', array( $id ) );`,
      )(site)
      const pushed = site.intake.pushes.length
      await runCron(site)
      const later = site.intake.pushes.slice(pushed).flatMap(({ changes }) => changes)
      if (!later.some(({ after }) => after?.['status'] === 'publish'))
        throw new Error('cron reported no publication')
    },
  ],
  [
    'cron: the trash is emptied',
    ['post:post'],
    async (site) => {
      await php(
        `wp_trash_post( 25 ); update_post_meta( 25, '_wp_trash_meta_time', 1 ); wp_schedule_single_event( time() - 1, 'wp_scheduled_delete' );`,
      )(site)
      await runCron(site)
    },
  ],
  [
    'cron: old autosaves are deleted',
    ['post:post'],
    async (site) => {
      await php(
        `$id = wp_insert_post( array( 'post_title' => 'auto', 'post_status' => 'auto-draft' ) ); $GLOBALS['wpdb']->update( $GLOBALS['wpdb']->posts, array( 'post_date' => '2020-01-01 00:00:00' ), array( 'ID' => $id ) ); clean_post_cache( $id ); wp_schedule_single_event( time() - 1, 'wp_scheduled_auto_draft_delete' );`,
      )(site)
      await runCron(site)
    },
  ],
]

const throughPhp: readonly Write[] = [
  [
    'PHP: a post is inserted with a given id',
    ['post:post'],
    php(
      `wp_insert_post( array( 'import_id' => 4000, 'post_title' => 'given', 'post_status' => 'publish' ) );`,
    ),
  ],
  ['PHP: post meta alone', ['post:post'], php(`update_post_meta( 30, 'colour', 'green' );`)],
  [
    'PHP: post meta is deleted everywhere',
    ['post:post'],
    php(
      `add_post_meta( 31, 'gone', '1' ); add_post_meta( 32, 'gone', '1' ); delete_post_meta_by_key( 'gone' );`,
    ),
  ],
  [
    'PHP: terms alone',
    ['post:post', 'term:post_tag'],
    php(`wp_set_object_terms( 33, array( 'Season 1', 'fresh' ), 'post_tag' );`),
  ],
  [
    'PHP: a term is removed from a post',
    ['post:post'],
    php(`wp_remove_object_terms( 34, array( 6, 7, 8, 9, 10, 11, 12, 13, 14 ), 'post_tag' );`),
  ],
  ['PHP: term meta', ['term:category'], php(`update_term_meta( 5, 'icon', 'fern' );`)],
  ['PHP: comment meta', ['comment:4'], php(`update_comment_meta( 4, 'stars', '5' );`)],
  ['PHP: user meta', ['user'], php(`update_user_meta( 2, 'twitter', '@x' );`)],
  [
    'PHP: a role is added',
    ['option:wp_user_roles'],
    php(`add_role( 'gardener', 'Gardener', array( 'read' => true ) );`),
  ],
  [
    'PHP: an application password',
    ['user'],
    php(`WP_Application_Passwords::create_new_application_password( 2, array( 'name' => 'more' ) );`),
  ],
  ['PHP: a post is made sticky', ['option:sticky_posts'], php(`stick_post( 35 );`)],
  [
    'PHP: a theme modification',
    ['option:theme_mods_twentytwentyfour'],
    php(`set_theme_mod( 'colour', 'blue' );`),
  ],
  [
    'PHP: an option is added and deleted',
    ['option:pot'],
    php(`add_option( 'pot', 'clay' ); delete_option( 'pot' );`),
  ],
  [
    'PHP: an option is changed, and changed back',
    ['option:blogdescription'],
    php(
      `$old = get_option( 'blogdescription' ); update_option( 'blogdescription', 'meanwhile' ); update_option( 'blogdescription', $old );`,
    ),
  ],
  [
    'PHP: a name with quotes and no ASCII',
    ["option:d'or é"],
    php(`update_option( "d'or é", "it's \\\\ \\"x\\"" );`),
  ],
  [
    'PHP: a comment status is flipped twice',
    ['comment:4'],
    php(`wp_set_comment_status( 4, 'hold' ); wp_set_comment_status( 4, 'approve' );`),
  ],
  [
    'PHP: a term changes its parent',
    ['term:category'],
    php(`wp_update_term( 5, 'category', array( 'parent' => 2 ) );`),
  ],
  [
    'PHP: two terms become one',
    ['term:category', 'post:post'],
    php(`wp_delete_term( 3, 'category', array( 'default' => 5 ) );`),
  ],
  [
    'PHP: a menu is deleted',
    ['term:nav_menu', 'post:nav_menu_item'],
    php(
      `$m = wp_create_nav_menu( 'other' ); wp_update_nav_menu_item( $m, 0, array( 'menu-item-title' => 'i', 'menu-item-url' => '/', 'menu-item-status' => 'publish' ) ); wp_delete_nav_menu( $m );`,
    ),
  ],
  [
    'PHP: an image is attached to another post',
    ['post:attachment'],
    php(`wp_update_post( array( 'ID' => ${firstOf('attachment')}, 'post_parent' => 36 ) );`),
  ],
  [
    'PHP: wp_publish_post',
    ['post:post'],
    php(
      `$id = wp_insert_post( array( 'post_title' => 'later', 'post_status' => 'draft' ) ); wp_publish_post( $id );`,
    ),
  ],
  [
    'PHP: counts of terms are deferred',
    ['term:category'],
    php(
      `wp_defer_term_counting( true ); wp_insert_post( array( 'post_title' => 'd', 'post_status' => 'publish' ) ); wp_defer_term_counting( false );`,
    ),
  ],
  [
    'PHP: many posts at once',
    ['all:overflow'],
    php(
      `foreach ( array_chunk( range( 5000, 5519 ), 130 ) as $ids ) { $GLOBALS['wpdb']->query( "INSERT INTO wp_postmeta (post_id, meta_key, meta_value) VALUES (" . implode( ", 'x', 'y'), (", $ids ) . ", 'x', 'y')" ); }`,
    ),
  ],
  [
    'PHP: another process wrote at the same time',
    ['post:post'],
    php(
      `$GLOBALS['wpdb']->query( "INSERT INTO wp_trellis_changes (state, since, horizon, site, note, changes) VALUES (0, " . time() . ", 0, 1, 'p 1 1 cli nowhere', '')" ); wp_update_post( array( 'ID' => 37, 'post_title' => 'beside' ) ); $GLOBALS['wpdb']->query( "DELETE FROM wp_trellis_changes WHERE note = 'p 1 1 cli nowhere'" );`,
    ),
  ],
]

const direct: readonly Write[] = [
  [
    '$wpdb: rows are inserted without any hook',
    // SQLite forgets the ids of the first rows: their tables are reported.
    ['table:terms', 'user'],
    sql(
      `$w = $GLOBALS['wpdb']; $w->insert( 'wp_posts', array( 'post_title' => 'bare', 'post_content' => '', 'post_excerpt' => '', 'to_ping' => '', 'pinged' => '', 'post_content_filtered' => '' ) ); $w->insert( 'wp_comments', array( 'comment_post_ID' => 53, 'comment_author' => 'b', 'comment_author_email' => 'b@example.org', 'comment_content' => 'bare' ) ); $w->insert( 'wp_terms', array( 'name' => 'bare', 'slug' => 'bare' ) ); $w->insert( 'wp_users', array( 'user_login' => 'bare', 'user_registered' => '2026-01-01 00:00:00' ) );`,
    ),
  ],
  [
    '$wpdb: update of a post',
    ['post:post'],
    sql(
      `$GLOBALS['wpdb']->update( 'wp_posts', array( 'post_title' => "WHERE \`ID\` = 5 it's" ), array( 'ID' => 40 ) );`,
    ),
  ],
  [
    '$wpdb: a slug by hand',
    ['post:post'],
    sql(`$GLOBALS['wpdb']->query( "update wp_posts set post_name='hand' where ID=41 limit 1" );`),
  ],
  [
    '$wpdb: a search and replace',
    ['post:post'],
    sql(
      `$GLOBALS['wpdb']->query( "UPDATE wp_posts SET post_content = REPLACE(post_content, 'plant 4', 'herb 4') WHERE post_content LIKE '%plant 4%' AND post_type = 'post'" );`,
    ),
  ],
  [
    '$wpdb: every post',
    ['table:posts'],
    sql(`$GLOBALS['wpdb']->query( 'UPDATE wp_posts SET comment_count = comment_count + 1' );`),
  ],
  [
    '$wpdb: a comment in front of the statement',
    ['post:post'],
    sql(`$GLOBALS['wpdb']->query( "/* plugin x */ UPDATE wp_posts SET menu_order = 3 WHERE (ID = 42)" );`),
  ],
  [
    '$wpdb: a join',
    ['table:posts', 'table:postmeta'],
    sql(
      `$GLOBALS['wpdb']->suppress_errors(); $GLOBALS['wpdb']->query( "UPDATE wp_posts p JOIN wp_postmeta m ON m.post_id = p.ID SET p.menu_order = 1 WHERE m.meta_key = 'colour'" );`,
    ),
  ],
  [
    '$wpdb: INSERT … SELECT',
    ['table:postmeta'],
    sql(
      `$GLOBALS['wpdb']->query( "INSERT INTO wp_postmeta (post_id, meta_key, meta_value) SELECT ID, 'seen', '1' FROM wp_posts WHERE ID < 20" );`,
    ),
  ],
  [
    '$wpdb: several rows',
    ['post:post'],
    sql(
      `$GLOBALS['wpdb']->query( "INSERT INTO wp_postmeta (post_id, meta_key, meta_value) VALUES (43,'a','1, (2)'), (44, 'b', 'it''s \\\\'x\\\\' )')" );`,
    ),
  ],
  [
    '$wpdb: meta by its own id',
    ['post:post'],
    sql(
      `$id = add_post_meta( 45, 'k', 'v' ); $GLOBALS['wpdb']->query( "DELETE FROM wp_postmeta WHERE meta_id = $id" );`,
    ),
  ],
  [
    '$wpdb: meta moves to another post',
    ['post:post'],
    sql(
      `add_post_meta( 46, 'k', 'v' ); $GLOBALS['wpdb']->query( "UPDATE wp_postmeta SET post_id = 47 WHERE post_id = 46" );`,
    ),
  ],
  [
    '$wpdb: a type is changed',
    ['post:post', 'post:page'],
    sql(`$GLOBALS['wpdb']->update( 'wp_posts', array( 'post_type' => 'page' ), array( 'ID' => 48 ) );`),
  ],
  [
    '$wpdb: REPLACE',
    ['option:blogname'],
    sql(
      `$GLOBALS['wpdb']->replace( 'wp_options', array( 'option_name' => 'blogname', 'option_value' => 'r', 'autoload' => 'yes' ) );`,
    ),
  ],
  [
    '$wpdb: options by pattern',
    ['option:pat_1', 'option:pat_2'],
    sql(
      `add_option( 'pat_1', 1 ); add_option( 'pat_2', 2 ); $GLOBALS['wpdb']->query( "DELETE FROM wp_options WHERE option_name LIKE 'pat\\\\_%'" );`,
    ),
  ],
  [
    '$wpdb: two conditions joined by OR',
    ['post:post'],
    sql(
      `$GLOBALS['wpdb']->query( "UPDATE wp_postmeta SET meta_value = 'z' WHERE meta_key = '_edit_lock' OR post_id = 4" );`,
    ),
  ],
  [
    '$wpdb: a comment by hand',
    ['comment:4'],
    sql(
      `$GLOBALS['wpdb']->query( "UPDATE wp_comments SET comment_approved = '0' WHERE comment_author = 'Reader 3'" );`,
    ),
  ],
  [
    '$wpdb: a relation by hand',
    ['post:post'],
    sql(
      `$GLOBALS['wpdb']->query( 'INSERT INTO wp_term_relationships (object_id, term_taxonomy_id) VALUES (50, 2)' ); $GLOBALS['wpdb']->query( 'DELETE FROM wp_term_relationships WHERE term_taxonomy_id = 2' );`,
    ),
  ],
  [
    '$wpdb: a term by hand',
    ['term:category'],
    sql(`$GLOBALS['wpdb']->query( "UPDATE wp_terms SET name = 'hand' WHERE slug = 'ferns'" );`),
  ],
  [
    '$wpdb: a user by hand',
    ['user'],
    sql(
      `$GLOBALS['wpdb']->query( "UPDATE wp_users SET display_name = 'hand' WHERE user_login = 'editor-user'" );`,
    ),
  ],
  [
    '$wpdb: a table of a plugin',
    ['table:garden'],
    sql(
      `$GLOBALS['wpdb']->query( 'CREATE TABLE wp_garden (id bigint(20) NOT NULL, PRIMARY KEY (id))' ); $GLOBALS['wpdb']->insert( 'wp_garden', array( 'id' => 1 ) ); $GLOBALS['wpdb']->query( 'TRUNCATE TABLE wp_garden' );`,
    ),
  ],
  [
    '$wpdb: a transaction that is undone, and a write after it',
    ['post:post'],
    sql(
      `$w = $GLOBALS['wpdb']; $w->query( 'START TRANSACTION' ); $w->update( 'wp_posts', array( 'post_title' => 'undone' ), array( 'ID' => 51 ) ); $w->query( 'ROLLBACK' ); $w->update( 'wp_posts', array( 'post_title' => 'done' ), array( 'ID' => 52 ) );`,
    ),
  ],
  [
    '$wpdb: links',
    ['table:links'],
    sql(`wp_insert_link( array( 'link_name' => 'l', 'link_url' => 'https://example.org/' ) );`),
  ],
]

const importer: readonly Write[] = [
  [
    'importer: a post is created',
    ['post:post'],
    importing(
      `wp_insert_post( array( 'post_title' => 'i', 'post_status' => 'publish', 'tags_input' => array( 'imported' ) ) );`,
    ),
  ],
  [
    'importer: a post is changed',
    ['post:post'],
    importing(`wp_update_post( array( 'ID' => 55, 'post_title' => 'i' ) );`),
  ],
  ['importer: a post is deleted', ['post:post'], importing(`wp_delete_post( 56, true );`)],
  [
    'importer: a term is created and changed',
    ['term:category'],
    importing(
      `$t = wp_insert_term( 'Imp', 'category' ); wp_update_term( $t['term_id'], 'category', array( 'name' => 'Imported' ) );`,
    ),
  ],
  [
    'importer: a comment is added',
    ['comment:57', 'post:post'],
    importing(
      `wp_insert_comment( array( 'comment_post_ID' => 57, 'comment_author_email' => 'i@example.org', 'comment_content' => 'i', 'comment_approved' => 1 ) );`,
    ),
  ],
  [
    'importer: meta and terms',
    ['post:post', 'term:category'],
    importing(`add_post_meta( 58, 'imported', 1 ); wp_set_post_terms( 58, array( 5 ), 'category' );`),
  ],
]

const inSecondBlog = (code: string) => php(`switch_to_blog( 2 ); ${code} restore_current_blog();`)

/** Only in a network of two blogs. */
export const throughNetwork: readonly Write[] = [
  [
    'network: a post of another blog is published',
    ['post:post'],
    inSecondBlog(
      `wp_insert_post( array( 'import_id' => 10, 'post_title' => 'in two', 'post_status' => 'publish' ) );`,
    ),
  ],
  [
    'network: a post of another blog is changed',
    ['post:post'],
    inSecondBlog(`wp_update_post( array( 'ID' => 10, 'post_title' => 'herb' ) );`),
  ],
  [
    'network: SQL changes a post of another blog',
    ['post:post'],
    inSecondBlog(
      `$GLOBALS['wpdb']->update( $GLOBALS['wpdb']->posts, array( 'post_name' => 'two' ), array( 'ID' => 10 ) );`,
    ),
  ],
  [
    'network: a category of another blog is renamed',
    ['term:category'],
    inSecondBlog(`wp_update_term( 1, 'category', array( 'name' => 'In two' ) );`),
  ],
  [
    'network: a comment in another blog is added',
    ['comment:10'],
    inSecondBlog(`wp_insert_comment( array( 'comment_post_ID' => 10, 'comment_content' => 'two' ) );`),
  ],
  [
    'network: settings of another blog are changed',
    ['option:blogname'],
    inSecondBlog(
      `update_option( 'blogname', 'Two' ); update_option( 'posts_per_page', 3 ); stick_post( 10 );`,
    ),
  ],
  [
    'network: posts of two blogs are changed',
    ['post:post'],
    php(
      `wp_update_post( array( 'ID' => 10, 'post_title' => 'one' ) ); switch_to_blog( 2 ); wp_update_post( array( 'ID' => 10, 'post_title' => 'two' ) ); restore_current_blog();`,
    ),
  ],
  ['network: an option is set', ['table:sitemeta'], php(`update_site_option( 'colour', 'green' );`)],
  [
    'network: a user leaves another blog',
    ['user'],
    php(`add_user_to_blog( 2, 2, 'editor' ); remove_user_from_blog( 2, 2 );`),
  ],
  [
    'network: a user is deleted',
    ['user'],
    php(
      `require_once ABSPATH . 'wp-admin/includes/ms.php'; remove_user_from_blog( 3, 1, 1 ); wpmu_delete_user( 3 );`,
    ),
  ],
  [
    'network: a blog is added and deleted',
    ['table:posts'],
    php(
      `$id = wp_insert_site( array( 'domain' => '127.0.0.1', 'path' => '/three/', 'network_id' => 1, 'user_id' => 1 ) ); wp_delete_site( $id );`,
    ),
  ],
]

/** What needs no other file of WordPress than its index.php. */
export const writesByIndex: readonly Write[] = [...throughRest, ...throughPhp, ...direct, ...importer]

/** Every way in which content changes. The order matters: later writes meet the content of earlier ones. */
export const writes: readonly Write[] = [...throughForms, ...throughXmlRpc, ...throughCron, ...writesByIndex]

/** Writes that no response shows: nothing is reported for them. */
export const quietWrites: readonly Write[] = [
  [
    'a temporary value that is made by a reader',
    [],
    php(`$_SERVER['REQUEST_METHOD'] = 'GET'; set_transient( 'a', 1, 60 ); set_transient( 'a', 1, 600 );`),
  ],
  ['expired temporary values', [], php(`delete_expired_transients( true );`)],
  [
    'settings that are saved again as they were, as the forms of wp-admin do',
    [],
    php(
      `foreach ( array( 'posts_per_page', 'start_of_week', 'users_can_register' ) as $name ) { update_option( $name, (int) get_option( $name ) ); }`,
    ),
  ],
  [
    'an option that gets its own value',
    [],
    php(
      `$GLOBALS['wpdb']->update( 'wp_options', array( 'option_value' => get_option( 'blogname' ) ), array( 'option_name' => 'blogname' ) );`,
    ),
  ],
  ['the schedule', [], php(`wp_schedule_single_event( time() + 3600, 'nothing' );`)],
  ['the lock of an editor', [], php(`wp_set_post_lock( 60 );`)],
  ['a login', [], async (site) => site.browser.login()],
  ['reads', [], php(`get_posts( array( 'numberposts' => 5 ) ); get_option( 'none' );`)],
  [
    'a post that is only looked at',
    [],
    async (site) => (await fetch(`${site.origin}/index.php/wp-json/wp/v2/posts`)).text(),
  ],
]
