<?php
/**
 * Plugin Name: Large: index
 *
 * As plugins for search engines do: one wide table with a row for each post, term and user, each written when its object is saved; a
 * property in posts, terms, users and types that shows this row, the title of the site and the number of comments.
 */

final class Large_Index {
	public static function table() {
		return $GLOBALS['wpdb']->prefix . 'large_index';
	}

	public static function install() {
		if ( get_option( 'large_index_version' ) ) {
			return;
		}
		global $wpdb;
		$wide = '';
		foreach ( range( 1, 30 ) as $number ) {
			$wide .= "value_$number varchar(60) NULL, ";
		}
		$wpdb->query( 'CREATE TABLE IF NOT EXISTS ' . self::table() . " ( id bigint(20) NOT NULL AUTO_INCREMENT, object_id bigint(20) NOT NULL, object_type varchar(32) NOT NULL, title text NULL, description text NULL, comments bigint(20) NOT NULL DEFAULT 0, $wide PRIMARY KEY  (id), KEY object (object_type, object_id) )" );
		update_option( 'large_index_version', 1 );
	}

	/** The row of an object; made when it is missing, as by the first visitor of a page. */
	public static function row( $type, $id ) {
		global $wpdb;
		$sql = $wpdb->prepare( 'SELECT * FROM ' . self::table() . ' WHERE object_id = %d AND object_type = %s LIMIT 1', $id, $type );
		$row = $wpdb->get_row( $sql );
		return $row ? $row : self::build( $type, $id );
	}

	public static function build( $type, $id ) {
		global $wpdb;
		list( $title, $text, $comments ) = self::values( $type, $id );
		$values = array( 'object_id' => $id, 'object_type' => $type, 'title' => $title, 'description' => $text, 'comments' => $comments );
		$known  = $wpdb->get_var( $wpdb->prepare( 'SELECT id FROM ' . self::table() . ' WHERE object_id = %d AND object_type = %s', $id, $type ) );
		if ( $known ) {
			$wpdb->update( self::table(), $values, array( 'id' => (int) $known ) );
		} else {
			$wpdb->insert( self::table(), $values );
		}
		return (object) $values;
	}

	private static function values( $type, $id ) {
		if ( 'post' === $type ) {
			$post = get_post( $id );
			return $post ? array( $post->post_title, wp_trim_words( $post->post_content, 8 ), (int) $post->comment_count ) : array( '', '', 0 );
		}
		if ( 'term' === $type ) {
			$term = get_term( $id );
			return $term instanceof WP_Term ? array( $term->name, $term->description, 0 ) : array( '', '', 0 );
		}
		$user = get_userdata( $id );
		return $user ? array( $user->display_name, $user->description, 0 ) : array( '', '', 0 );
	}

	public static function forget( $type, $id ) {
		$GLOBALS['wpdb']->delete( self::table(), array( 'object_id' => $id, 'object_type' => $type ) );
	}

	public static function show( $row ) {
		return array( 'title' => $row->title . ' - ' . get_bloginfo( 'name' ), 'description' => $row->description, 'site' => get_bloginfo( 'description' ), 'commentCount' => (int) $row->comments );
	}
}

add_action( 'muplugins_loaded', function () {
	foreach ( range( 1, 15 ) as $number ) {
		get_option( "large_index_setting_$number" );
	}
} );
add_action( 'init', array( 'Large_Index', 'install' ), 1 );

foreach ( array( 'save_post' => 'post', 'edit_attachment' => 'post', 'add_attachment' => 'post', 'created_term' => 'term', 'edited_term' => 'term', 'user_register' => 'user', 'profile_update' => 'user', 'wp_update_comment_count' => 'post' ) as $event => $type ) {
	add_action( $event, function ( $id ) use ( $type ) {
		if ( 'post' !== $type || ! wp_is_post_revision( $id ) ) {
			Large_Index::build( $type, $id );
		}
	}, 100 );
}
foreach ( array( 'deleted_post' => 'post', 'delete_term' => 'term', 'deleted_user' => 'user' ) as $event => $type ) {
	add_action( $event, function ( $id ) use ( $type ) {
		Large_Index::forget( $type, $id );
	} );
}

add_action( 'rest_api_init', function () {
	foreach ( array( 'post' => array( 'post', 'page', 'attachment' ), 'term' => array( 'category', 'post_tag' ), 'user' => array( 'user' ) ) as $kind => $types ) {
		register_rest_field( $types, 'large_head', array(
			'get_callback' => function ( $item ) use ( $kind ) {
				return Large_Index::show( Large_Index::row( $kind, (int) $item['id'] ) );
			},
		) );
	}
	// The page of posts names its list.
	register_rest_field( 'type', 'large_head', array(
		'get_callback' => function ( $item ) {
			$page = (int) get_option( 'page_for_posts' );
			$name = 'post' === $item['slug'] && $page > 0 ? get_the_title( $page ) : $item['name'];
			return array( 'title' => $name . ' - ' . get_bloginfo( 'name' ) );
		},
	) );
} );
