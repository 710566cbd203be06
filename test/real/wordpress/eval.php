<?php
// In the document root: runs the PHP of a request in WordPress, as a script of an administrator would.
list( $code, $settings ) = json_decode( file_get_contents( 'php://input' ), true );
foreach ( $settings as $name => $value ) {
	putenv( "$name=$value" );
}
ini_set( 'display_errors', '1' );
ini_set( 'html_errors', '0' );
$_SERVER['REQUEST_URI'] = '/';
require __DIR__ . '/wp-load.php';
require_once ABSPATH . 'wp-admin/includes/admin.php';
wp_set_current_user( 1 );
eval( $code );
