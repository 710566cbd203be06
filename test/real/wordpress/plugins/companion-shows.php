<?php
/**
 * Plugin Name: Companion shows
 *
 * Adds author, number of posts of the category and number of comments to what WordPress answers: by the shortcode [shown], a binding,
 * a directive or an embed in a content, or in another way that the parameter `shows` names. Each is something that the answer without it does not show.
 */

function companion_shown( $post = null ) {
	$post = get_post( $post );
	if ( ! $post ) {
		return '';
	}
	$author = get_userdata( $post->post_author );
	$terms  = get_the_terms( $post, 'category' );
	return ( $author ? $author->display_name : '' ) . ' ' . ( $terms && ! is_wp_error( $terms ) ? $terms[0]->count : '' ) . " $post->comment_count";
}

/** What a content may show that is no part of it. */
function companion_shown_besides() {
	$get = function ( $sql ) {
		return function () use ( $sql ) {
			return $GLOBALS['wpdb']->get_col( $sql );
		};
	};
	return array(
		'widgets'    => 'wp_get_sidebars_widgets',
		'home'       => function () {
			return array_column( ( new WP_Query( array( 'posts_per_page' => 2 ) ) )->posts, 'ID' );
		},
		'none'       => function () {
			$post = get_post( 4000 );
			return $post ? $post->post_title : '';
		},
		'or'         => $get( "SELECT COUNT(*) FROM wp_posts WHERE post_type = 'post' AND post_status = 'publish' AND (post_author = 1 OR menu_order = 0)" ),
		'any-status' => $get( "SELECT COUNT(*) FROM wp_posts WHERE post_type = 'post'" ),
		'any-type'   => $get( "SELECT COUNT(*) FROM wp_posts WHERE post_status = 'publish'" ),
		'password'   => $get( "SELECT ID FROM wp_posts WHERE post_type = 'post' AND post_status = 'publish' AND post_password = 'secret'" ),
		'union'      => $get( "SELECT post_title FROM wp_posts WHERE ID = 44 UNION SELECT post_title FROM wp_posts WHERE ID = 45" ),
		'never-or'   => $get( "SELECT COUNT(*) FROM wp_posts WHERE post_type = 'post' AND ( 0 = 1 OR post_status = 'publish' )" ),
		'roles'      => function () {
			return array_keys( wp_roles()->roles );
		},
		'language'   => function () {
			return get_option( 'WPLANG', 'none' );
		},
		'public'     => function () {
			return get_option( 'blog_public' );
		},
		'shelf'      => function () {
			return get_user_meta( 2, 'shelf' );
		},
		'user-meta'  => function () {
			return array_diff_key( get_user_meta( 2 ), array( 'session_tokens' => true ) );
		},
		'shelves'    => $get( "SELECT meta_value FROM wp_usermeta WHERE meta_key = 'shelf' ORDER BY umeta_id" ),
		'or-window'  => $get( "SELECT meta_value FROM wp_usermeta WHERE meta_key = 'none' OR user_id = 2 AND meta_value LIKE '%s' ORDER BY umeta_id" ),
		'nickname'   => $get( "SELECT meta_value FROM wp_usermeta WHERE user_id = 2 AND meta_key = 'nickname'" ),
		'column'     => $get( "SELECT ID FROM wp_posts WHERE post_type = 'post' AND post_status = 'publish' AND ping_status = 'closed'" ),
		'counted'    => function () {
			return wp_list_pluck( get_terms( array( 'taxonomy' => 'category', 'orderby' => 'count', 'order' => 'DESC', 'hide_empty' => false ) ), 'name' );
		},
	);
}

add_action( 'init', function () {
	add_shortcode( 'shown', function () {
		return companion_shown();
	} );
	// None of these three is a filter: a source of bindings, a state of directives, a handler of embeds.
	register_block_bindings_source( 'shows/bound', array( 'label' => 'Shown', 'get_value_callback' => function () {
		return companion_shown();
	} ) );
	register_block_type( 'shows/directed', array( 'supports' => array( 'interactivity' => true ) ) );
	wp_interactivity_state( 'shows', array( 'shown' => function () {
		return companion_shown();
	} ) );
	wp_embed_register_handler( 'shows', '#^https://shown\.example/#', function () {
		return companion_shown();
	} );
	$shows = isset( $_GET['shows'] ) ? $_GET['shows'] : '';
	if ( 'title' === $shows ) {
		add_filter( 'the_title', function ( $title, $id ) {
			return "$title " . companion_shown( $id );
		}, 10, 2 );
	} elseif ( 'prepare' === $shows ) {
		add_filter( 'rest_prepare_post', function ( $answer, $post ) {
			$answer->data['shown'] = companion_shown( $post );
			return $answer;
		}, 10, 2 );
	} elseif ( 'comments' === $shows ) {
		add_filter( 'rest_prepare_post', function ( $answer, $post ) {
			$answer->data['shown'] = $post->comment_count;
			return $answer;
		}, 10, 2 );
	} elseif ( 'whole' === $shows ) {
		add_filter( 'rest_prepare_post', function ( $answer, $post ) {
			$answer->data['shown'] = $post;
			return $answer;
		}, 10, 2 );
	} elseif ( 'called' === $shows ) {
		add_filter( 'rest_prepare_post', function ( $answer, $post ) {
			$answer->data['shown'] = companion_shown( $post->ID );
			return $answer;
		}, 10, 2 );
	} elseif ( 'numbers' === $shows ) {
		add_filter( 'get_usernumposts', function ( $count ) {
			return $count > 4 ? $count : 0;
		} );
	} elseif ( 'granted' === $shows ) {
		// Each visitor may do what the role of gardeners may do.
		add_filter( 'user_has_cap', function ( $caps ) {
			$role = get_role( 'gardener' );
			return $caps + ( $role ? $role->capabilities : array() );
		} );
	} elseif ( isset( companion_shown_besides()[ $shows ] ) ) {
		// What is read at the start of each request shows in its content only.
		$widgets = wp_get_sidebars_widgets();
		add_filter( 'the_content', function ( $content ) use ( $shows ) {
			return $content . json_encode( companion_shown_besides()[ $shows ]() );
		} );
	}
} );
add_action( 'rest_api_init', function () {
	if ( 'field' === ( isset( $_GET['shows'] ) ? $_GET['shows'] : '' ) ) {
		register_rest_field( 'post', 'shown', array( 'get_callback' => function ( $post ) {
			return companion_shown( $post['id'] );
		} ) );
	}
} );
