/** wp-config.php for a MariaDB behind a socket. */
export const wordPressSettings = (socket: string): string => `<?php
define( 'DB_NAME', 'site' );
define( 'DB_USER', 'root' );
define( 'DB_PASSWORD', '' );
define( 'DB_HOST', 'localhost:${socket}' );
define( 'DB_CHARSET', 'utf8mb4' );
define( 'DB_COLLATE', '' );
foreach ( array( 'AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE' ) as $use ) {
	define( "{$use}_KEY", md5( "$use key" ) );
	define( "{$use}_SALT", md5( "$use salt" ) );
}
$table_prefix = 'wp_';
define( 'WP_HOME', getenv( 'PUBLIC_URL' ) );
define( 'WP_SITEURL', getenv( 'PUBLIC_URL' ) );
// "local", unless the environment says otherwise, allows application passwords without TLS. Nothing runs by itself and nothing is fetched from outside.
define( 'WP_ENVIRONMENT_TYPE', getenv( 'WP_ENVIRONMENT_TYPE' ) ? getenv( 'WP_ENVIRONMENT_TYPE' ) : 'local' );
define( 'DISABLE_WP_CRON', true );
define( 'AUTOMATIC_UPDATER_DISABLED', true );
define( 'WP_HTTP_BLOCK_EXTERNAL', true );
if ( ! defined( 'ABSPATH' ) ) {
	define( 'ABSPATH', __DIR__ . '/' );
}
require_once ABSPATH . 'wp-settings.php';
`

/** Eight PHP workers that never end; opcache as Debian sets it up. */
export const fpmSettings = (
  folder: string,
  environment: Readonly<Record<string, string>>,
): string => `[global]
error_log = ${folder}/fpm.log
[site]
user = root
group = root
listen = ${folder}/fpm.sock
pm = static
pm.max_children = 8
${Object.entries(environment)
  // It refuses an empty value.
  .filter(([, value]) => value !== '')
  .map(([name, value]) => `env[${name}] = "${value}"`)
  .join('\n')}
php_admin_flag[display_errors] = off
; Warnings would go to nginx, before the headers, and into the buffer that these must fit into.
php_admin_value[error_log] = ${folder}/php.log
`

/** Files that end in .php are run, with the rest of the path behind them; requests without a file go to index.php. */
export const nginxSettings = (folder: string, site: string, port: number): string => `user root;
daemon off;
worker_processes 2;
pid ${folder}/nginx.pid;
events { worker_connections 512; }
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  client_max_body_size 64m;
  keepalive_requests 1000000;
  server {
    listen 127.0.0.1:${port};
    root ${site};
    location / { try_files $uri /index.php$is_args$args; }
    location ~ ^/[a-z/-]+\\.php(/|$) {
      fastcgi_split_path_info ^(/[a-z/-]+\\.php)(.*)$;
      include /etc/nginx/fastcgi_params;
      fastcgi_param SCRIPT_FILENAME ${site}$fastcgi_script_name;
      fastcgi_param PATH_INFO $fastcgi_path_info;
      fastcgi_param HTTP_AUTHORIZATION $http_authorization;
      fastcgi_pass unix:${folder}/fpm.sock;
      fastcgi_buffers 64 16k;
    }
  }
}
`
