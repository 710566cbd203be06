<?php
// run.php SITE CODE   Runs PHP inside a WordPress, as a script of an administrator would.
$host     = parse_url( getenv( 'PUBLIC_URL' ), PHP_URL_HOST );
$_SERVER += array( 'HTTP_HOST' => $host, 'SERVER_NAME' => $host, 'REQUEST_URI' => '/', 'REQUEST_METHOD' => 'POST', 'REMOTE_ADDR' => '127.0.0.1' );
require $argv[1] . '/wp-load.php';
require_once ABSPATH . 'wp-admin/includes/admin.php';
wp_set_current_user( 1 );
eval( $argv[2] );
