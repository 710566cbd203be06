<?php
/**
 * Plugin Name: Large: fields
 *
 * As plugins for custom fields do: values from `postmeta`, `termmeta` and `usermeta` in every item of the interface, options of its own
 * that each request reads, and an argument that no core route has.
 */

// After all must-use plugins, as a plugin in `plugins` is loaded.
add_action( 'muplugins_loaded', function () {
	foreach ( range( 1, 20 ) as $number ) {
		get_option( "large_fields_setting_$number", array( 'group' => $number ) );
	}
} );

add_action( 'init', function () {
	if ( ! get_option( 'large_fields_filled' ) ) {
		update_option( 'large_fields_filled', 1 );
		foreach ( get_posts( array( 'numberposts' => 30, 'post_type' => array( 'post', 'page' ) ) ) as $post ) {
			add_post_meta( $post->ID, 'large_subtitle', "About $post->post_title", true );
		}
	}
} );

add_action( 'rest_api_init', function () {
	$schema = array( 'type' => 'object', 'properties' => array( 'subtitle' => array( 'type' => 'string' ) ) );
	foreach ( array( 'post' => array( 'post', 'page', 'attachment' ), 'term' => array( 'category', 'post_tag' ), 'user' => array( 'user' ) ) as $kind => $types ) {
		register_rest_field( $types, 'large_fields', array(
			'get_callback'    => function ( $item ) use ( $kind ) {
				return array( 'subtitle' => (string) get_metadata( $kind, $item['id'], 'large_subtitle', true ) );
			},
			'update_callback' => function ( $value, $object ) use ( $kind ) {
				$id = 'term' === $kind ? $object->term_id : $object->ID;
				update_metadata( $kind, $id, 'large_subtitle', sanitize_text_field( isset( $value['subtitle'] ) ? $value['subtitle'] : '' ) );
			},
			'schema'          => $schema,
		) );
	}
} );

// `orderby=large_subtitle`: a value more for an argument of a core route.
add_filter( 'rest_post_collection_params', function ( $arguments ) {
	$arguments['orderby']['enum'][] = 'large_subtitle';
	return $arguments;
} );
add_filter( 'rest_post_query', function ( $query, $request ) {
	if ( 'large_subtitle' === $request['orderby'] ) {
		$query['meta_key'] = 'large_subtitle';
		$query['orderby']  = 'meta_value';
	}
	return $query;
}, 10, 2 );
