<?php
/**
 * Plugin Name: Widened
 *
 * What headless sites, order plugins and plugins with an interface of their own do: core arguments with other defaults, bounds and
 * values, and routes whose own callbacks check and clean arguments, so that the schema in the index says less, or something else.
 */

add_action( 'init', function () {
	register_post_status( 'archived', array( 'public' => true, 'label' => 'Archived' ) );
	$first = get_option( 'widened_filled' ) ? array() : get_posts( array( 'numberposts' => 6, 'order' => 'ASC' ) );
	update_option( 'widened_filled', 1 );
	foreach ( $first as $post ) {
		wp_update_post( array( 'ID' => $post->ID, 'post_status' => 'archived' ) );
	}
} );

// The same for the lists and the writes of posts.
add_filter( 'rest_post_collection_params', function ( $arguments ) {
	$arguments['per_page']['default']         = 20;
	$arguments['per_page']['maximum']         = 500;
	$arguments['orderby']['enum'][]           = 'menu_order';
	$arguments['orderby']['default']          = 'title';
	$arguments['order']['default']            = 'asc';
	$arguments['status']['items']['enum'][]   = 'archived';
	// Slugs beside numbers: another type of the items, which a callback turns into numbers.
	$arguments['exclude']['items']            = array( 'type' => array( 'integer', 'string' ) );
	$arguments['exclude']['sanitize_callback'] = function ( $value ) {
		return array_map( function ( $one ) {
			$post = is_numeric( $one ) ? null : get_page_by_path( (string) $one, OBJECT, 'post' );
			return is_numeric( $one ) ? (int) $one : ( $post ? $post->ID : 0 );
		}, wp_parse_list( $value ) );
	};
	$arguments['region'] = array( 'type' => 'string', 'enum' => array( 'north', 'south' ), 'sanitize_callback' => 'sanitize_key' );
	return $arguments;
} );
add_filter( 'rest_post_query', function ( $query, $request ) {
	if ( 'south' === $request['region'] ) {
		$query['author'] = 1;
	}
	return $query;
}, 10, 2 );
add_filter( 'rest_page_collection_params', function ( $arguments ) {
	$arguments['per_page']['minimum']   = -1;
	$arguments['per_page']['default']   = 4;
	$arguments['menu_order']['default'] = null;
	unset( $arguments['slug'] );
	return $arguments;
} );
add_filter( 'rest_page_query', function ( $query ) {
	// The first page of a list without an end.
	if ( $query['posts_per_page'] < 0 ) {
		$query['posts_per_page'] = 100;
	}
	return $query;
} );
add_filter( 'rest_category_collection_params', function ( $arguments ) {
	$arguments['hide_empty']['default'] = true;
	$arguments['orderby']['default']    = 'count';
	$arguments['order']['default']      = 'desc';
	return $arguments;
} );
add_filter( 'rest_comment_collection_params', function ( $arguments ) {
	$arguments['order']['default']    = 'asc';
	$arguments['per_page']['default'] = 2;
	return $arguments;
} );

// Writes: a status more, an enum where there was none, and an argument that nobody requires any more.
add_filter( 'rest_endpoints', function ( $endpoints ) {
	foreach ( $endpoints as $route => $handlers ) {
		if ( ! preg_match( '#^/wp/v2/(posts|comments|users)($|/\(\?P<id>\[\\\\d\]\+\)$)#', $route ) ) {
			continue;
		}
		foreach ( $handlers as $key => $handler ) {
			if ( is_int( $key ) && isset( $handler['args']['status']['enum'] ) ) {
				$endpoints[ $route ][ $key ]['args']['status']['enum'][] = 'archived';
			}
			if ( is_int( $key ) && isset( $handler['args']['comment_status']['enum'] ) ) {
				$endpoints[ $route ][ $key ]['args']['comment_status']['enum'][]            = 'members';
				$endpoints[ $route ][ $key ]['args']['comment_status']['validate_callback'] = function () {
					return true;
				};
				$endpoints[ $route ][ $key ]['args']['comment_status']['sanitize_callback'] = function ( $value ) {
					return 'members' === $value ? 'open' : ( 'open' === $value ? 'open' : 'closed' );
				};
			}
		}
	}
	return $endpoints;
} );

add_action( 'rest_api_init', function () {
	$any       = '__return_true';
	$arguments = array(
		// A callback that cleans, and none that checks: the type and the range are not enforced.
		'count'  => array( 'type' => 'integer', 'minimum' => 1, 'maximum' => 100, 'default' => 10, 'sanitize_callback' => function ( $value ) {
			return min( 100, max( 1, (int) $value ) );
		} ),
		'flag'   => array( 'type' => 'boolean', 'default' => false, 'sanitize_callback' => function ( $value ) {
			return in_array( $value, array( true, 1, '1', 'on', 'yes', 'true' ), true );
		} ),
		'order'  => array( 'type' => 'string', 'enum' => array( 'asc', 'desc' ), 'default' => 'asc', 'sanitize_callback' => function ( $value ) {
			return strtolower( (string) $value );
		} ),
		// A text in place of a list is an error of PHP here.
		'names'  => array( 'type' => 'array', 'items' => array( 'type' => 'string' ), 'sanitize_callback' => function ( $value ) {
			return array_map( 'sanitize_key', $value );
		} ),
		'day'    => array( 'type' => 'string', 'format' => 'date-time', 'sanitize_callback' => 'sanitize_text_field' ),
		// Another default for each user.
		'user'   => array( 'type' => 'integer', 'default' => get_current_user_id(), 'sanitize_callback' => 'absint' ),
		// A callback that checks by itself.
		'place'  => array( 'type' => 'string', 'maxLength' => 4, 'validate_callback' => function ( $value ) {
			return is_string( $value ) && '' !== $value && 'nowhere' !== $value;
		} ),
		'size'   => array( 'type' => 'object', 'required' => false, 'properties' => array( 'width' => array( 'type' => 'integer', 'required' => true ), 'unit' => array( 'type' => 'string', 'enum' => array( 'mm', 'cm' ) ) ), 'validate_callback' => $any, 'sanitize_callback' => function ( $value ) {
			return is_array( $value ) ? array_map( 'strval', array_filter( $value, 'is_scalar' ) ) : array( 'text' => (string) $value );
		} ),
		// Left to the schema.
		'plain'  => array( 'type' => 'integer', 'minimum' => 1, 'maximum' => 5, 'default' => 2 ),
		'ids'    => array( 'type' => 'array', 'items' => array( 'type' => 'integer' ), 'default' => array() ),
		'phrase' => array( 'default' => 'none' ),
	);
	$show = function ( $request ) use ( $arguments ) {
		$shown = array( 'method' => $request->get_method(), 'key' => $request['key'] );
		foreach ( array_keys( $arguments ) as $name ) {
			$shown[ $name ] = $request[ $name ];
		}
		return $shown;
	};
	$route = array( 'callback' => $show, 'permission_callback' => $any );
	register_rest_route( 'widened/v1', '/shown', array(
		$route + array( 'methods' => 'GET', 'args' => $arguments ),
		$route + array( 'methods' => 'POST', 'args' => array_merge( $arguments, array( 'place' => array( 'required' => true ) + $arguments['place'] ) ) ),
	) );
	register_rest_route( 'widened/v1', '/shown/(?P<key>[a-z]+)', array( $route + array( 'methods' => 'GET, PUT', 'args' => $arguments ) ) );
	// None of its arguments is announced.
	register_rest_route( 'widened/v1', '/unannounced', array( 'methods' => 'GET, POST', 'permission_callback' => $any, 'callback' => function ( $request ) {
		return array( 'x' => $request['x'], 'y' => $request['y'], 'page' => $request['page'] );
	} ) );
} );
