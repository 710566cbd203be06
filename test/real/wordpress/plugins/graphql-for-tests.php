<?php
// Mutations of the administrator need no cookie, and one list has all queries of a comparison.
add_filter( 'application_password_is_api_request', '__return_true' );
add_filter(
	'graphql_get_setting_section_field_value',
	function ( $value, $default, $name ) {
		return 'batch_limit' === $name ? 1000 : $value;
	},
	10,
	3
);
