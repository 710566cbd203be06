<?php
// A throw-away site: SQLite beside the document root, secrets that protect nothing, its own address from the environment.
define( 'DB_NAME', 'site' );
define( 'DB_USER', '' );
define( 'DB_PASSWORD', '' );
define( 'DB_HOST', '' );
define( 'DB_CHARSET', 'utf8mb4' );
define( 'DB_COLLATE', '' );
define( 'DB_ENGINE', 'sqlite' );
define( 'DB_DIR', dirname( __DIR__ ) . '/database/' );
define( 'DB_FILE', 'site.sqlite' );
foreach ( array( 'AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE' ) as $use ) {
	define( "{$use}_KEY", md5( "$use key" ) );
	define( "{$use}_SALT", md5( "$use salt" ) );
}
$table_prefix = 'wp_';
define( 'WP_HOME', getenv( 'PUBLIC_URL' ) );
define( 'WP_SITEURL', getenv( 'PUBLIC_URL' ) );
// "local" allows application passwords without TLS. Nothing runs by itself and nothing is fetched from outside.
define( 'WP_ENVIRONMENT_TYPE', 'local' );
define( 'DISABLE_WP_CRON', true );
define( 'AUTOMATIC_UPDATER_DISABLED', true );
define( 'WP_HTTP_BLOCK_EXTERNAL', true );
if ( ! defined( 'ABSPATH' ) ) {
	define( 'ABSPATH', __DIR__ . '/' );
}
require_once ABSPATH . 'wp-settings.php';
