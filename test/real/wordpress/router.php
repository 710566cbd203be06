<?php
// For `php -S`, which knows no PATH_INFO behind a script name that holds a dot later in the path: static files as they
// are, /some.php/rest to that script, everything else to index.php (permalinks).
// As docs/wordpress.md puts it into wp-config.php: behind a gateway with TLS.
if ( 'https' === ( $_SERVER['HTTP_X_FORWARDED_PROTO'] ?? '' ) ) {
	$_SERVER['HTTPS'] = 'on';
}
$root   = $_SERVER['DOCUMENT_ROOT'];
$path   = (string) parse_url( $_SERVER['REQUEST_URI'], PHP_URL_PATH );
$script = '/index.php';
$rest   = '';
if ( preg_match( '#^(/[^.]+\.php)(/.*)?$#D', $path, $found ) && is_file( $root . $found[1] ) ) {
	$script = $found[1];
	$rest   = isset( $found[2] ) ? $found[2] : '';
} elseif ( is_file( $root . $path ) ) {
	return false;
}
$_SERVER['SCRIPT_NAME']     = $script;
$_SERVER['SCRIPT_FILENAME'] = $root . $script;
$_SERVER['PHP_SELF']        = $script . $rest;
$_SERVER['PATH_INFO']       = $rest;
chdir( dirname( $root . $script ) );
require $root . $script;
