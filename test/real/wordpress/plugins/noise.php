<?php
/**
 * Plugin Name: Noise
 *
 * What an editor with collaboration and a shop send all day: `POST /wp-sync/v1/updates` stores in the meta of a post that nobody sees,
 * `POST /?wc-ajax=get_refreshed_fragments` and `POST /wc/store/v1/cart/add-item` store in the session of a shopper.
 */

function noise_keep_session() {
	global $wpdb;
	$table = $wpdb->prefix . 'woocommerce_sessions';
	$wpdb->query( "CREATE TABLE IF NOT EXISTS $table ( session_id bigint(20) NOT NULL AUTO_INCREMENT, session_key varchar(64) NOT NULL, session_value text NOT NULL, PRIMARY KEY (session_id), UNIQUE KEY session_key (session_key) )" );
	$wpdb->query( $wpdb->prepare( "REPLACE INTO $table (session_key, session_value) VALUES (%s, %s)", 'a', wp_rand() ) );
}

add_action( 'init', function () {
	register_post_type( 'wp_sync_storage', array( 'public' => false, 'show_in_rest' => false ) );
} );

add_action( 'wp_loaded', function () {
	if ( isset( $_GET['wc-ajax'] ) && 'get_refreshed_fragments' === $_GET['wc-ajax'] ) {
		noise_keep_session();
		wp_send_json_success();
	}
} );

add_action( 'rest_api_init', function () {
	register_rest_route( 'wc/store/v1', '/cart/add-item', array(
		'methods'             => 'POST',
		'permission_callback' => '__return_true',
		'callback'            => function () {
			noise_keep_session();
			return array( 'items' => array() );
		},
	) );
	register_rest_route( 'wp-sync/v1', '/updates', array(
		'methods'             => 'POST',
		'permission_callback' => function () {
			return current_user_can( 'edit_posts' );
		},
		'callback'            => function () {
			$found = get_posts( array( 'post_type' => 'wp_sync_storage', 'post_status' => 'publish', 'fields' => 'ids' ) );
			$post  = $found ? $found[0] : wp_insert_post( array( 'post_type' => 'wp_sync_storage', 'post_status' => 'publish', 'post_title' => 'Sync Storage', 'post_name' => md5( 'a' ) ) );
			add_post_meta( $post, 'wp_sync_update', wp_rand() );
			update_post_meta( $post, 'wp_sync_awareness', wp_rand() );
			return array( 'rooms' => array() );
		},
	) );
} );
