export type HiddenRead = readonly [title: string, shortcode: string, change: string]

/** What a plugin may make a response of, where no id tells it, and the change that must reach it. */
export const hiddenReads: readonly HiddenRead[] = [
  ['an option that is read before the companion is loaded', 'early', `update_option( 'early', 'b' );`],
  ['all options at once', 'all-options', `update_option( 'blogdescription', 'b' );`],
  ['a temporary value', 'temporary', `set_transient( 'made', 'b', 600 );`],
  [
    'a join of posts and their meta',
    'join',
    `update_post_meta( 41, 'colour', 'green' ); update_post_meta( 42, 'colour', 'green' );`,
  ],
  ['meta of all posts', 'meta', `update_post_meta( 43, 'colour', 'red' );`],
  ['terms by a statement', 'terms', `wp_insert_term( 'Hidden', 'category' );`],
  ['relations by a statement', 'relations', `wp_set_object_terms( 44, array( 2 ), 'category' );`],
  ['users by a statement', 'users', `update_user_meta( 2, 'colour', 'red' );`],
  ['two statements in one', 'union', `wp_update_post( array( 'ID' => 45, 'post_title' => 'b' ) );`],
  [
    'a post that is not there',
    'missing',
    `wp_insert_post( array( 'import_id' => 4711, 'post_title' => 'b' ) );`,
  ],
  ['a term that is not there', 'no-term', `wp_insert_term( 'Not there', 'category' );`],
  ['a statement that is not plain', 'nested', `wp_trash_post( 46 );`],
  ['the number of posts of a term', 'number', `wp_set_object_terms( 47, array( 2 ), 'category' );`],
]

/** What a persistent object cache gives without a statement once an earlier request has read it. */
export const cachedReads: readonly HiddenRead[] = [
  ['a post', 'cached-post', `wp_update_post( array( 'ID' => 48, 'post_title' => 'b' ) );`],
  ['meta of a post', 'cached-meta', `update_post_meta( 49, 'colour', 'blue' );`],
  ['terms of a post', 'cached-terms', `wp_set_object_terms( 50, array( 3 ), 'category' );`],
  [
    'a comment',
    'cached-comment',
    `wp_update_comment( array( 'comment_ID' => 2, 'comment_content' => 'b' ) );`,
  ],
  ['a user', 'cached-user', `wp_update_user( array( 'ID' => 2, 'display_name' => 'b' ) );`],
  ['a user by name', 'cached-login', `wp_update_user( array( 'ID' => 1, 'display_name' => 'b' ) );`],
  [
    'ids of posts',
    'cached-ids',
    `wp_insert_post( array( 'post_title' => 'b', 'post_status' => 'publish' ) );`,
  ],
  [
    'ids of pages and their parents',
    'cached-parents',
    `wp_update_post( array( 'ID' => 114, 'post_parent' => 113 ) );`,
  ],
  [
    'a page by its path',
    'cached-path',
    `wp_update_post( array( 'ID' => 113, 'post_name' => 'not-there' ) );`,
  ],
  ['the number of posts', 'cached-count', `wp_trash_post( 51 );`],
  [
    'the latest comments',
    'cached-comments',
    `wp_insert_comment( array( 'comment_post_ID' => 52, 'comment_content' => 'b', 'comment_approved' => 1 ) );`,
  ],
  [
    'comments of a post',
    'cached-of-post',
    `wp_insert_comment( array( 'comment_post_ID' => 53, 'comment_content' => 'b', 'comment_approved' => 1 ) );`,
  ],
  [
    'users that have published a page',
    'cached-authors',
    `wp_insert_post( array( 'post_title' => 'b', 'post_type' => 'page', 'post_status' => 'publish', 'post_author' => 3 ) );`,
  ],
  [
    'the number of replies to a comment',
    'cached-replies',
    `wp_insert_comment( array( 'comment_post_ID' => 4, 'comment_parent' => 2, 'comment_content' => 'b', 'comment_approved' => 1 ) );`,
  ],
  ['posts of a term', 'cached-objects', `wp_set_object_terms( 54, array( 4 ), 'category' );`],
  ['names of terms', 'cached-names', `wp_insert_term( 'Cached', 'post_tag' );`],
  [
    'an archive by months',
    'cached-archive',
    `wp_insert_post( array( 'post_title' => 'b', 'post_status' => 'publish', 'post_date' => '2019-01-01 00:00:00' ) );`,
  ],
  [
    'a value that the plugin keeps in the object cache',
    'cached-own',
    `wp_update_post( array( 'ID' => 55, 'post_title' => 'b' ) ); wp_cache_delete( 'title', 'plugin' );`,
  ],
  [
    'a number that is counted in the object cache',
    'cached-number',
    `wp_set_object_terms( 56, array( 2 ), 'category' );`,
  ],
]

/** What a network shows beside its blogs. */
export const networkReads: readonly HiddenRead[] = [
  ['an option of the network', 'net-option', `update_site_option( 'colour', wp_rand() );`],
  [
    'the number of users',
    'net-users',
    `wp_create_user( 'counted', 'long-password', 'c@example.org' ); wp_update_network_user_counts();`,
  ],
  ['names of blogs', 'net-blogs', `update_blog_option( 2, 'blogname', 'b' );`],
  [
    'a post of another blog',
    'net-post',
    `switch_to_blog( 2 ); wp_update_post( array( 'ID' => 1, 'post_title' => 'b' ) );`,
  ],
  [
    'a post of another blog by a statement',
    'net-sql',
    `switch_to_blog( 2 ); wp_update_post( array( 'ID' => 1, 'post_title' => 'c' ) );`,
  ],
  [
    'posts of another blog',
    'net-posts',
    `switch_to_blog( 2 ); wp_insert_post( array( 'post_title' => 'b', 'post_status' => 'publish' ) );`,
  ],
  [
    'an option of another blog',
    'net-blog-option',
    `switch_to_blog( 2 ); update_option( 'blogdescription', 'b' );`,
  ],
  [
    'when a blog was last updated',
    'net-updated',
    `switch_to_blog( 2 ); $GLOBALS['wpdb']->update( 'wp_blogs', array( 'last_updated' => '2030-01-01 00:00:00' ), array( 'blog_id' => 2 ) ); clean_blog_cache( 2 );`,
  ],
  [
    'a temporary value of the network',
    'net-temporary',
    `wp_update_post( array( 'ID' => 57, 'post_title' => 'b' ) );`,
  ],
]

/** The plugin with these shortcodes. */
export const hiddenReadsPlugin = `<?php
  $GLOBALS['early'] = get_option( 'early' );
  add_action( 'init', function () {
    global $wpdb;
    $get = function ( $sql ) use ( $wpdb ) { return json_encode( $wpdb->get_results( $sql ) ); };
    $texts = array(
      'early' => function () { return $GLOBALS['early']; },
      'all-options' => function () { return wp_load_alloptions()['blogdescription']; },
      'temporary' => function () { if ( ! get_transient( 'made' ) ) { set_transient( 'made', get_the_title( 40 ), 600 ); } return get_transient( 'made' ); },
      'join' => function () use ( $get ) { return $get( "SELECT p.post_title FROM wp_posts p INNER JOIN wp_postmeta m ON m.post_id = p.ID WHERE m.meta_key = 'colour' AND p.post_status = 'publish'" ); },
      'meta' => function () use ( $get ) { return $get( "SELECT meta_value FROM wp_postmeta WHERE meta_key = 'colour'" ); },
      'terms' => function () use ( $get ) { return $get( 'SELECT name FROM wp_terms ORDER BY term_id' ); },
      'relations' => function () use ( $get ) { return $get( 'SELECT COUNT(*) AS n FROM wp_term_relationships WHERE term_taxonomy_id = 2' ); },
      'users' => function () use ( $get ) { return $get( "SELECT user_id FROM wp_usermeta WHERE meta_key = 'colour'" ); },
      'union' => function () use ( $get ) { return $get( "SELECT post_title FROM wp_posts WHERE ID = 44 UNION SELECT post_title FROM wp_posts WHERE ID = 45" ); },
      'missing' => function () { $post = get_post( 4711 ); return $post ? $post->post_title : 'none'; },
      'no-term' => function () { $term = get_term_by( 'name', 'Not there', 'category' ); return $term ? 'there' : 'none'; },
      'nested' => function () use ( $get ) { return $get( "SELECT COUNT(*) AS n FROM ( SELECT ID FROM wp_posts WHERE post_status = 'publish' AND ( post_title LIKE '%)%' OR post_parent IN ( SELECT ID FROM wp_posts ) OR ID > 0 ) ) AS x" ); },
      'number' => function () { return get_term( 2 )->count; },
        'cached-post' => function () { return get_post( 48 )->post_title; },
        'cached-meta' => function () { return get_post_meta( 49, 'colour', true ); },
        'cached-terms' => function () { return implode( ' ', wp_list_pluck( get_the_terms( 50, 'category' ), 'name' ) ); },
        'cached-comment' => function () { return get_comment( 2 )->comment_content; },
        'cached-user' => function () { return get_userdata( 2 )->display_name; },
        'cached-login' => function () { return get_user_by( 'login', 'admin' )->display_name; },
        'cached-ids' => function () { return implode( ' ', get_posts( array( 'fields' => 'ids', 'numberposts' => 3 ) ) ); },
        'cached-parents' => function () { return json_encode( ( new WP_Query() )->query( array( 'post_type' => 'page', 'fields' => 'id=>parent', 'posts_per_page' => 20 ) ) ); },
        'cached-path' => function () { $page = get_page_by_path( 'not-there' ); return $page ? $page->post_title : 'none'; },
        'cached-count' => function () { return wp_count_posts()->publish; },
        'cached-comments' => function () { return implode( ' ', get_comments( array( 'fields' => 'ids', 'number' => 3, 'post_status' => 'publish' ) ) ); },
        'cached-of-post' => function () { return implode( ' ', get_comments( array( 'fields' => 'ids', 'post_id' => 53 ) ) ); },
        'cached-replies' => function () { return get_comments( array( 'parent' => 2, 'count' => true ) ); },
        'cached-authors' => function () { return implode( ' ', get_users( array( 'fields' => 'ID', 'has_published_posts' => array( 'page' ) ) ) ); },
        'cached-objects' => function () { return count( get_objects_in_term( 4, 'category' ) ); },
        'cached-names' => function () { return implode( ' ', get_terms( array( 'taxonomy' => 'post_tag', 'fields' => 'names', 'hide_empty' => false ) ) ); },
        'cached-archive' => function () { return wp_get_archives( array( 'echo' => 0 ) ); },
        'cached-own' => function () { $title = wp_cache_get( 'title', 'plugin' ); if ( ! $title ) { $title = get_the_title( 55 ); wp_cache_set( 'title', $title, 'plugin' ); } return $title; },
        'cached-number' => function () { return get_term( 2 )->count; },
        'net-option' => function () { return get_site_option( 'colour' ); },
        'net-users' => function () { return get_user_count(); },
        'net-blogs' => function () { return implode( ' ', wp_list_pluck( get_sites(), 'blogname' ) ); },
        'net-post' => function () { switch_to_blog( 2 ); $title = get_the_title( 1 ); restore_current_blog(); return $title; },
        'net-sql' => function () use ( $get ) { return $get( 'SELECT post_title FROM wp_2_posts WHERE ID = 1' ); },
        'net-posts' => function () { switch_to_blog( 2 ); $ids = get_posts( array( 'fields' => 'ids' ) ); restore_current_blog(); return count( $ids ); },
        'net-blog-option' => function () { return get_blog_option( 2, 'blogdescription' ); },
        'net-updated' => function () { return get_site( 2 )->last_updated; },
        'net-temporary' => function () { if ( ! get_site_transient( 'made' ) ) { set_site_transient( 'made', get_the_title( 57 ), 600 ); } return get_site_transient( 'made' ); },
    );
    foreach ( $texts as $name => $text ) { add_shortcode( $name, $text ); }
  } );`
