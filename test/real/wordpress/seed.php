<?php
// seed.php SITE CREDENTIALS   Installs WordPress into SITE and fills it with content to test against; writes user names
// and application passwords as JSON into the file CREDENTIALS.
error_reporting( E_ALL & ~E_DEPRECATED & ~E_NOTICE & ~E_WARNING );
list( , $site, $credentials_file ) = $argv;
$_SERVER += array( 'HTTP_HOST' => 'localhost', 'SERVER_NAME' => 'localhost' );
$_SERVER['REQUEST_URI'] = '/';

if ( ! isset( $argv[3] ) ) {
	// The tables must be there before WordPress loads in full: install in a process of its own, then come back.
	define( 'WP_INSTALLING', true );
	require "$site/wp-load.php";
	require_once ABSPATH . 'wp-admin/includes/upgrade.php';
	add_filter( 'pre_wp_mail', '__return_true' );
	wp_install( 'Garden site', 'admin', 'admin@example.org', true, '', 'admin-password' );
	passthru( escapeshellarg( PHP_BINARY ) . ' ' . implode( ' ', array_map( 'escapeshellarg', array( __FILE__, $site, $credentials_file, 'content' ) ) ), $code );
	exit( $code );
}

require "$site/wp-load.php";
require_once ABSPATH . 'wp-admin/includes/admin.php';
wp_set_current_user( 1 );
$wp_rewrite->set_permalink_structure( '/index.php/%postname%/' );
$wp_rewrite->flush_rules();

function must( $result ) {
	if ( is_wp_error( $result ) || ! $result ) {
		fwrite( STDERR, 'seed failed: ' . ( is_wp_error( $result ) ? $result->get_error_message() : 'empty result' ) . "\n" );
		exit( 1 );
	}
	return $result;
}
function paragraph( $text ) {
	return "<!-- wp:paragraph -->\n<p>$text</p>\n<!-- /wp:paragraph -->";
}
function content( $type, $title, $fields = array() ) {
	return must( wp_insert_post( array( 'post_type' => $type, 'post_title' => $title ) + $fields + array( 'post_status' => 'publish', 'post_content' => paragraph( "$title: soil, light and water." ) ), true ) );
}
function day( $number ) {
	return gmdate( 'Y-m-d H:i:s', gmmktime( 8, 0, 0, 3, $number, 2025 ) );
}

$people = array( 'admin' => 1 );
foreach ( array( 'editor', 'author', 'subscriber' ) as $role ) {
	$people[ $role ] = must( wp_insert_user( array( 'user_login' => "$role-user", 'user_pass' => "$role-password", 'user_email' => "$role@example.org", 'role' => $role, 'display_name' => ucfirst( $role ) ) ) );
}
$writers = array( 1, $people['editor'], $people['author'] );

$categories = array();
foreach ( array( 'Trees', 'Shrubs', 'Herbs', 'Ferns' ) as $name ) {
	$categories[] = must( wp_insert_term( $name, 'category' ) )['term_id'];
}
$categories[] = must( wp_insert_term( 'Conifers', 'category', array( 'parent' => $categories[0] ) ) )['term_id'];
$tags = array();
for ( $n = 1; $n <= 8; $n++ ) {
	$tags[] = must( wp_insert_term( "Season $n", 'post_tag' ) )['term_id'];
}

$posts = array();
for ( $n = 1; $n <= 108; $n++ ) {
	$status  = array( 106 => 'draft', 107 => 'private', 108 => 'pending' );
	$posts[] = content( 'post', "Plant of the day $n", array(
		'post_content'  => paragraph( str_repeat( "Leaf, stem and root of plant $n. ", 12 ) ),
		'post_status'   => isset( $status[ $n ] ) ? $status[ $n ] : 'publish',
		'post_date'     => day( $n ),
		'post_date_gmt' => day( $n ),
		'post_author'   => $writers[ $n % 3 ],
		'post_category' => array( $categories[ $n % 5 ] ),
		'tags_input'    => array( "Season " . ( $n % 8 + 1 ) ),
		'post_password' => 105 === $n ? 'secret' : '',
	) );
}
stick_post( $posts[4] );

$pages = array();
for ( $n = 1; $n <= 9; $n++ ) {
	$pages[] = content( 'page', "Garden page $n", array( 'menu_order' => $n, 'post_parent' => $n > 6 ? $pages[0] : 0, 'post_date' => day( $n ), 'post_date_gmt' => day( $n ) ) );
}

for ( $n = 1; $n <= 4; $n++ ) {
	$image = imagecreatetruecolor( 320, 240 );
	imagefill( $image, 0, 0, imagecolorallocate( $image, 30, 50 * $n, 90 ) );
	ob_start();
	imagepng( $image );
	$file = wp_upload_bits( "leaf-$n.png", null, ob_get_clean() );
	$id   = must( wp_insert_attachment( array( 'post_title' => "Leaf $n", 'post_mime_type' => 'image/png', 'post_status' => 'inherit' ), $file['file'], 1 === $n ? $posts[0] : 0, true ) );
	wp_update_attachment_metadata( $id, wp_generate_attachment_metadata( $id, $file['file'] ) );
	if ( $n <= 2 ) {
		set_post_thumbnail( $posts[ $n - 1 ], $id );
	}
}

$menu = must( wp_create_nav_menu( 'Main menu' ) );
for ( $n = 1; $n <= 6; $n++ ) {
	must( wp_update_nav_menu_item( $menu, 0, array( 'menu-item-title' => "Link $n", 'menu-item-url' => "https://example.org/$n", 'menu-item-status' => 'publish', 'menu-item-position' => $n ) ) );
}
must( wp_update_nav_menu_item( $menu, 0, array( 'menu-item-type' => 'post_type', 'menu-item-object' => 'page', 'menu-item-object-id' => $pages[0], 'menu-item-status' => 'publish', 'menu-item-position' => 7 ) ) );
must( wp_update_nav_menu_item( $menu, 0, array( 'menu-item-type' => 'taxonomy', 'menu-item-object' => 'category', 'menu-item-object-id' => $categories[0], 'menu-item-status' => 'publish', 'menu-item-position' => 8 ) ) );

content( 'wp_navigation', 'Navigation', array( 'post_content' => '<!-- wp:page-list /-->' ) );
for ( $n = 1; $n <= 4; $n++ ) {
	content( 'wp_block', "Block $n" );
}
for ( $n = 1; $n <= 3; $n++ ) {
	must( wp_insert_comment( array( 'comment_post_ID' => $posts[0], 'comment_author' => "Reader $n", 'comment_author_email' => "reader$n@example.org", 'comment_content' => "Remark $n", 'comment_approved' => 1 ) ) );
}

$credentials = array();
foreach ( $people as $role => $id ) {
	$made                 = must( WP_Application_Passwords::create_new_application_password( $id, array( 'name' => 'tests' ) ) );
	$credentials[ $role ] = array( 'username' => get_userdata( $id )->user_login, 'password' => $made[0] );
}
file_put_contents( $credentials_file, json_encode( $credentials ) );
