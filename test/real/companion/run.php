<?php
// run.php SITE CODE   Runs PHP inside a WordPress, as a script of an administrator would.
$_SERVER += array( 'HTTP_HOST' => 'localhost', 'SERVER_NAME' => 'localhost', 'REQUEST_URI' => '/', 'REQUEST_METHOD' => 'POST', 'REMOTE_ADDR' => '127.0.0.1' );
require $argv[1] . '/wp-load.php';
require_once ABSPATH . 'wp-admin/includes/admin.php';
wp_set_current_user( 1 );
eval( $argv[2] );
