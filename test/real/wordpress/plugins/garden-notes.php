<?php
/**
 * Plugin Name: Garden notes
 *
 * What plugins do that no table of the gateway can know: notes with routes of their own, which contents of others render by a
 * shortcode or a block, a menu in a content, and a parameter that no route declares.
 */

add_action( 'init', function () {
	register_post_type( 'garden_note', array( 'public' => false, 'show_in_rest' => false, 'supports' => array( 'title', 'editor' ) ) );
	register_block_type( 'garden/note', array(
		'attributes'      => array( 'id' => array( 'type' => 'integer' ) ),
		'render_callback' => function ( $attributes ) {
			return '<div class="wp-block-garden-note"><p>' . garden_note_text( $attributes ) . '</p></div>';
		},
	) );
	add_shortcode( 'garden-note', function ( $attributes ) {
		return '<div class="garden-note"><p>' . garden_note_text( $attributes ) . '</p></div>';
	} );
	// No class tells that it was rendered.
	add_shortcode( 'garden-plain', function ( $attributes ) {
		return '<p>' . garden_note_text( $attributes ) . '</p>';
	} );
	add_shortcode( 'garden-menu', function () {
		$menus = wp_get_nav_menus();
		return $menus ? wp_nav_menu( array( 'menu' => $menus[0]->term_id, 'echo' => false, 'fallback_cb' => '' ) ) : '';
	} );
} );

function garden_note( $id ) {
	$note = get_post( (int) $id );
	return $note && 'garden_note' === $note->post_type ? $note : null;
}

function garden_note_text( $attributes ) {
	$note = garden_note( isset( $attributes['id'] ) ? $attributes['id'] : 0 );
	return $note ? esc_html( $note->post_content ) : '';
}

function garden_note_answer( $note ) {
	return array( 'id' => $note->ID, 'title' => $note->post_title, 'text' => $note->post_content );
}

function garden_note_missing() {
	return new WP_Error( 'garden_notes_no_note', 'There is no such note.', array( 'status' => 404 ) );
}

function garden_note_save( $request, $note ) {
	$fields = array( 'post_type' => 'garden_note', 'post_status' => 'publish' );
	if ( $note ) {
		$fields['ID'] = $note->ID;
	}
	if ( null !== $request['title'] ) {
		$fields['post_title'] = wp_slash( $request['title'] );
	}
	if ( null !== $request['text'] ) {
		$fields['post_content'] = wp_slash( $request['text'] );
	}
	$id = $note ? wp_update_post( $fields, true ) : wp_insert_post( $fields, true );
	return is_wp_error( $id ) ? $id : garden_note( $id );
}

add_action( 'rest_api_init', function () {
	$fields = array( 'title' => array( 'type' => 'string' ), 'text' => array( 'type' => 'string' ) );
	$id     = array( 'id' => array( 'type' => 'integer', 'required' => true ) );
	$anyone = '__return_true';
	$editor = function () {
		return current_user_can( 'edit_posts' );
	};
	register_rest_route( 'garden-notes/v1', '/notes', array(
		array(
			'methods'             => 'GET',
			'permission_callback' => $anyone,
			'callback'            => function () {
				$notes = get_posts( array( 'post_type' => 'garden_note', 'numberposts' => 100, 'orderby' => 'ID', 'order' => 'ASC' ) );
				return array_map( 'garden_note_answer', $notes );
			},
		),
		array(
			'methods'             => 'POST',
			'permission_callback' => $editor,
			'args'                => $fields,
			'callback'            => function ( $request ) {
				$note = garden_note_save( $request, null );
				return is_wp_error( $note ) ? $note : new WP_REST_Response( garden_note_answer( $note ), 201 );
			},
		),
	) );
	register_rest_route( 'garden-notes/v1', '/notes/(?P<id>[\d]+)', array(
		array(
			'methods'             => 'GET',
			'permission_callback' => $anyone,
			'args'                => $id,
			'callback'            => function ( $request ) {
				$note = garden_note( $request['id'] );
				return $note ? garden_note_answer( $note ) : garden_note_missing();
			},
		),
		array(
			'methods'             => 'PUT, PATCH',
			'permission_callback' => $editor,
			'args'                => $id + $fields,
			'callback'            => function ( $request ) {
				$note  = garden_note( $request['id'] );
				$saved = $note ? garden_note_save( $request, $note ) : garden_note_missing();
				return is_wp_error( $saved ) ? $saved : garden_note_answer( $saved );
			},
		),
		array(
			'methods'             => 'DELETE',
			'permission_callback' => $editor,
			'args'                => $id,
			'callback'            => function ( $request ) {
				$note = garden_note( $request['id'] );
				if ( ! $note ) {
					return garden_note_missing();
				}
				wp_delete_post( $note->ID, true );
				return array( 'deleted' => true, 'previous' => garden_note_answer( $note ) );
			},
		),
	) );
} );

// `garden_case=upper`: a parameter that no route declares and that changes what core answers.
add_filter( 'rest_prepare_post', function ( $response, $post, $request ) {
	if ( 'upper' === $request->get_param( 'garden_case' ) && isset( $response->data['title']['rendered'] ) ) {
		$response->data['title']['rendered'] = strtoupper( $response->data['title']['rendered'] );
	}
	return $response;
}, 10, 3 );
