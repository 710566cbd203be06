<?php
// batch-german.php SITE FORM   Sets a site with de_DE.mo in its languages folder to German. FORM `php` also writes what WordPress
// reads instead since 6.5, and what comes with the language packs of today.
error_reporting( E_ALL & ~E_DEPRECATED & ~E_NOTICE & ~E_WARNING );
list( , $site, $form ) = $argv;
$_SERVER += array( 'HTTP_HOST' => 'localhost', 'SERVER_NAME' => 'localhost' );
require "$site/wp-load.php";
update_option( 'WPLANG', 'de_DE' );
if ( 'php' === $form ) {
	$made = WP_Translation_File::transform( WP_LANG_DIR . '/de_DE.mo', 'php' );
	if ( ! $made || ! file_put_contents( WP_LANG_DIR . '/de_DE.l10n.php', $made ) ) {
		exit( 1 );
	}
}
