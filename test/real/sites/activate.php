<?php
// activate.php SITE PLUGIN…   Activates plugins one after the other, as the page of plugins does, and gives CPT UI its types.
error_reporting( E_ERROR );
define( 'WP_ADMIN', true );
$_SERVER += array( 'HTTP_HOST' => 'localhost', 'SERVER_NAME' => 'localhost', 'REQUEST_METHOD' => 'GET', 'REMOTE_ADDR' => '127.0.0.1' );
$_SERVER['REQUEST_URI'] = '/wp-admin/plugins.php';
list( , $site ) = $argv;
$plugins        = array_slice( $argv, 2 );

require "$site/wp-load.php";
require_once ABSPATH . 'wp-admin/includes/admin.php';
wp_set_current_user( 1 );
switch_theme( 'twentytwentyfour' );

if ( in_array( 'custom-post-type-ui/custom-post-type-ui.php', $plugins, true ) ) {
	$public = array( 'public' => 'true', 'show_ui' => 'true', 'show_in_menu' => 'true', 'show_in_rest' => 'true', 'query_var' => 'true', 'rewrite' => 'true', 'description' => '', 'labels' => array() );
	$type   = $public + array( 'publicly_queryable' => 'true', 'capability_type' => 'post', 'map_meta_cap' => 'true' );
	update_option( 'cptui_post_types', array(
		'book'    => $type + array( 'name' => 'book', 'label' => 'Books', 'singular_label' => 'Book', 'rest_base' => 'books', 'has_archive' => 'true', 'hierarchical' => 'false', 'supports' => array( 'title', 'editor', 'thumbnail', 'excerpt', 'author', 'comments', 'revisions' ), 'taxonomies' => array( 'category', 'genre' ) ),
		'chapter' => $type + array( 'name' => 'chapter', 'label' => 'Chapters', 'singular_label' => 'Chapter', 'rest_base' => '', 'rest_namespace' => 'library/v1', 'hierarchical' => 'true', 'supports' => array( 'title', 'editor', 'author', 'page-attributes' ), 'taxonomies' => array() ),
	) );
	update_option( 'cptui_taxonomies', array(
		'genre'    => $public + array( 'name' => 'genre', 'label' => 'Genres', 'singular_label' => 'Genre', 'rest_base' => 'genres', 'hierarchical' => 'true', 'object_types' => array( 'book', 'post', 'page' ) ),
		'mediatag' => $public + array( 'name' => 'mediatag', 'label' => 'Media tags', 'singular_label' => 'Media tag', 'rest_base' => '', 'hierarchical' => 'false', 'object_types' => array( 'attachment' ) ),
	) );
}
foreach ( $plugins as $plugin ) {
	$failed = activate_plugin( $plugin );
	if ( is_wp_error( $failed ) ) {
		fwrite( STDERR, "$plugin: " . $failed->get_error_message() . "\n" );
		exit( 1 );
	}
}
