<?php
/**
 * Plugin Name: Due posts
 *
 * WordPress schedules a post for a minute from now at the earliest: this makes the time of one come at once.
 */

add_action( 'rest_api_init', function () {
	register_rest_route( 'due-posts/v1', '/posts/(?P<id>[\d]+)', array(
		'methods'             => 'POST',
		'permission_callback' => '__return_true',
		'callback'            => function ( $request ) {
			global $wpdb;
			$id   = (int) $request['id'];
			$date = gmdate( 'Y-m-d H:i:s', time() - 1 );
			$wpdb->update( $wpdb->posts, array( 'post_date' => $date, 'post_date_gmt' => $date ), array( 'ID' => $id ) );
			clean_post_cache( $id );
			wp_clear_scheduled_hook( 'publish_future_post', array( $id ) );
			wp_schedule_single_event( time() - 1, 'publish_future_post', array( $id ) );
			return array( 'id' => $id );
		},
	) );
} );
