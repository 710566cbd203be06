<?php
/**
 * Plugin Name: Promise fuzz
 *
 * For the test that compares answers after random writes: `POST /?read_many` with a JSON list of `{path, query, user}` is answered with
 * a list of `{status, total, pages, body}`, so that many answers of the REST interface cost one start of WordPress.
 */

add_action( 'wp_loaded', function () {
	if ( ! isset( $_GET['read_many'] ) ) {
		return;
	}
	$asked = json_decode( file_get_contents( 'php://input' ), true );
	define( 'REST_REQUEST', true );
	// The list itself must not be taken for the parameters of a read.
	$GLOBALS['HTTP_RAW_POST_DATA'] = '';
	$_SERVER['REQUEST_METHOD']     = 'GET';
	unset( $_SERVER['CONTENT_TYPE'], $_SERVER['HTTP_CONTENT_TYPE'] );
	$_POST   = array();
	$answers = array();
	foreach ( $asked as $one ) {
		header_remove();
		parse_str( $one['query'], $query );
		$_GET     = wp_slash( $query );
		$_REQUEST = $_GET;
		unset( $GLOBALS['post'] );
		wp_set_current_user( $one['user'] );
		ob_start();
		rest_get_server()->serve_request( $one['path'] );
		$answer = array( 'status' => http_response_code(), 'body' => ob_get_clean(), 'total' => null, 'pages' => null );
		foreach ( headers_list() as $line ) {
			if ( 0 === stripos( $line, 'x-wp-total:' ) ) {
				$answer['total'] = trim( substr( $line, 11 ) );
			}
			if ( 0 === stripos( $line, 'x-wp-totalpages:' ) ) {
				$answer['pages'] = trim( substr( $line, 16 ) );
			}
		}
		$answers[] = $answer;
	}
	header_remove();
	status_header( 200 );
	header( 'Content-Type: application/json' );
	echo json_encode( $answers );
	exit;
}, 999 );

// A scheduled post may be due in seconds: WordPress publishes at once what is less than a minute away.
add_filter( 'wp_insert_post_data', function ( $data, $given ) {
	if ( 'future' === $given['post_status'] && strtotime( $data['post_date_gmt'] . ' GMT' ) > time() ) {
		$data['post_status'] = 'future';
	}
	return $data;
}, 10, 2 );

// A read that renders a navigation block creates the first navigation of a site: a change that no write made, and that no gateway sees.
add_filter( 'wp_navigation_should_create_fallback', function ( $should ) {
	return $should && 'GET' !== $_SERVER['REQUEST_METHOD'];
} );

// The reads of the test name a post by an address that is the same on every run.
add_filter( 'oembed_request_post_id', function ( $id, $url ) {
	return 0 === strpos( $url, 'http://wordpress.test/?p=' ) ? (int) substr( $url, 25 ) : $id;
}, 10, 2 );
