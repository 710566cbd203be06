<?php
/**
 * Plugin Name: Companion rows
 *
 * `/rows/v1/NAME` runs the statements of that name on tables of plugins, and answers with what they find. `?ordered=query` and
 * `?ordered=found` change the order in which posts show their terms.
 */

// The tables are those of this version.
define( 'WPSEO_VERSION', '28.3' );

function companion_rows_statements() {
	$object = function ( $id ) {
		return "WHERE object_id = $id AND object_type = 'post'";
	};
	$table  = 'wp_yoast_indexable_hierarchy';
	$insert = "INSERT INTO $table (object_id, object_type, title) VALUES";
	return array(
		'object'        => array( "SELECT text FROM wp_acme WHERE object_id = 13 AND object_type = 'term'" ),
		'either'        => array( 'SELECT text FROM wp_acme WHERE object_id = 13' ),
		'owner'         => array( 'SELECT text FROM wp_acme WHERE owner_id = 3' ),
		'other-owner'   => array( 'SELECT text FROM wp_acme WHERE owner_id = 4' ),
		'late-owner'    => array( 'SELECT text FROM wp_acme WHERE owner_id = 7' ),
		'moved-owner'   => array( 'SELECT text FROM wp_acme WHERE owner_id = 8' ),
		'next'          => array( 'SELECT text FROM wp_acme WHERE id = 5' ),
		'latest'        => array( "SELECT MAX(object_last_modified) FROM wp_yoast_indexable WHERE object_type = 'home-page'" ),
		'none'          => array( "SELECT title FROM $table " . $object( 61 ) ),
		'counted'       => array( "SELECT COUNT(*) AS number FROM $table " . $object( 62 ) ),
		'one'           => array( "SELECT title FROM $table " . $object( 60 ) ),
		'joined'        => array( 'SELECT c.text FROM wp_acme h LEFT JOIN wp_cards c ON h.object_id = c.id WHERE h.id = 3' ),
		'beside'        => array( 'SELECT other.post_title FROM wp_posts INNER JOIN wp_posts AS other ON other.ID = wp_posts.ID + 1 WHERE wp_posts.ID = 30' ),
		'of-term'       => array( 'SELECT p.post_title FROM wp_terms AS t INNER JOIN wp_term_taxonomy AS tt ON t.term_id = tt.term_id INNER JOIN wp_term_relationships AS tr ON tr.term_taxonomy_id = tt.term_taxonomy_id INNER JOIN wp_posts AS p ON p.ID = tr.object_id WHERE t.term_id = 3' ),
		'memoize'       => array( "SELECT title FROM $table " . $object( 61 ), "$insert (61, 'post', 'made')" ),
		'memoize-other' => array( "SELECT title FROM $table " . $object( 62 ), "$insert (62, 'post', 'made')" ),
		'add'           => array( "$insert (60, 'post', 'added')" ),
		'add-third'     => array( "SELECT title FROM $table " . $object( 60 ) . ' LIMIT 1 OFFSET 2', "$insert (60, 'post', 'third')" ),
	);
}

add_action( 'rest_api_init', function () {
	register_rest_route( 'rows/v1', '/(?P<name>[a-z-]+)', array(
		'permission_callback' => '__return_true',
		'callback'            => function ( $request ) {
			$found = array();
			foreach ( companion_rows_statements()[ $request['name'] ] as $sql ) {
				$found[] = 0 === strpos( $sql, 'SELECT' ) ? $GLOBALS['wpdb']->get_results( $sql ) : $GLOBALS['wpdb']->query( $sql );
			}
			return $found;
		},
	) );
	$ordered = isset( $_GET['ordered'] ) ? $_GET['ordered'] : '';
	if ( 'query' === $ordered ) {
		add_filter( 'get_terms_orderby', function () {
			return 'tt.description';
		} );
	} elseif ( 'found' === $ordered ) {
		add_filter( 'wp_get_object_terms', function ( $terms ) {
			is_array( $terms ) && usort( $terms, function ( $one, $other ) {
				return strcmp( $one->description, $other->description );
			} );
			return $terms;
		} );
	}
} );
