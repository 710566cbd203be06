<?php
// Routes that say what has reached them, and keep it: one in the index, one that is hidden from it.

function request_echo( $request ) {
	$files = array();
	foreach ( $request->get_file_params() as $name => $file ) {
		$files[ $name ] = array( $file['name'], $file['size'] );
	}
	$seen = array(
		'sent'   => $_SERVER['REQUEST_METHOD'],
		'method' => $request->get_method(),
		'query'  => $request->get_query_params(),
		'body'   => $request->get_body_params(),
		'json'   => $request->get_json_params(),
		'files'  => $files,
		'post'   => $_POST,
	);
	update_option( 'request_echo', array_merge( get_option( 'request_echo', array() ), array( $seen ) ), false );
	return $seen;
}

add_action( 'rest_api_init', function () {
	foreach ( array( 'request-echo/v1' => true, 'request-echo-hidden/v1' => false ) as $namespace => $is_listed ) {
		register_rest_route( $namespace, '/things/(?P<id>[\d]+)', array(
			'methods'             => 'POST, PUT, PATCH, DELETE',
			'permission_callback' => '__return_true',
			'show_in_index'       => $is_listed,
			'callback'            => 'request_echo',
		) );
		register_rest_route( $namespace, '/seen', array(
			'methods'             => 'GET',
			'permission_callback' => '__return_true',
			'show_in_index'       => $is_listed,
			'callback'            => function () {
				return md5( wp_json_encode( get_option( 'request_echo', array() ) ) ) . ' ' . count( get_option( 'request_echo', array() ) );
			},
		) );
	}
} );
