<?php
// dump.php DSN   Prints every row of every table but the companion's own, by table and key, without WordPress.
$pdo    = new PDO( $argv[1], 'root', '', array( PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION, PDO::ATTR_TIMEOUT => 10 ) );
$sqlite = 0 === strpos( $argv[1], 'sqlite' );
$tables = $pdo->query( $sqlite ? "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'wp\\_%' ESCAPE '\\'" : "SHOW TABLES LIKE 'wp\\_%'" )->fetchAll( PDO::FETCH_COLUMN );
$keys   = array( 'umeta_id', 'meta_id', 'term_taxonomy_id', 'option_id', 'comment_ID', 'ID', 'link_id', 'term_id', 'blog_id', 'id' );
$dump   = array();
foreach ( $tables as $table ) {
	if ( 'wp_trellis_changes' === $table ) {
		continue;
	}
	$dump[ $table ] = array();
	foreach ( $pdo->query( "SELECT * FROM $table" )->fetchAll( PDO::FETCH_ASSOC ) as $row ) {
		$key = json_encode( $row, JSON_PARTIAL_OUTPUT_ON_ERROR );
		foreach ( isset( $row['object_id'] ) ? array() : $keys as $name ) {
			if ( isset( $row[ $name ] ) ) {
				$key = $row[ $name ];
				break;
			}
		}
		$dump[ $table ][ $key ] = $row;
	}
}
echo json_encode( $dump, JSON_PARTIAL_OUTPUT_ON_ERROR | JSON_FORCE_OBJECT );
