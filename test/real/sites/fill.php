<?php
// fill.php SITE   Gives each active plugin the content that its sites have: fields, types, products, languages.
error_reporting( E_ERROR );
$_SERVER += array( 'HTTP_HOST' => 'localhost', 'SERVER_NAME' => 'localhost', 'REQUEST_METHOD' => 'GET', 'REMOTE_ADDR' => '127.0.0.1' );
$_SERVER['REQUEST_URI'] = '/';
list( , $site )         = $argv;
require "$site/wp-load.php";
require_once ABSPATH . 'wp-admin/includes/admin.php';
wp_set_current_user( 1 );

function must( $result ) {
	if ( is_wp_error( $result ) || ! $result ) {
		fwrite( STDERR, 'fill failed: ' . ( is_wp_error( $result ) ? $result->get_error_message() : 'empty result' ) . "\n" );
		exit( 1 );
	}
	return $result;
}
function ids_of( $type, $count ) {
	return get_posts( array( 'post_type' => $type, 'numberposts' => $count, 'fields' => 'ids', 'post_status' => 'any', 'orderby' => 'ID', 'order' => 'ASC', 'suppress_filters' => true ) );
}
function publish( $type, $title, $fields = array() ) {
	return must( wp_insert_post( $fields + array( 'post_type' => $type, 'post_title' => $title, 'post_content' => "$title: what it says.", 'post_status' => 'publish', 'post_author' => 1 ), true ) );
}
$posts  = ids_of( 'post', 100 );
$images = ids_of( 'attachment', 10 );

if ( taxonomy_exists( 'genre' ) ) {
	$genres = array();
	foreach ( array( 'Novel', 'Poem', 'Essay' ) as $name ) {
		$genres[] = must( wp_insert_term( $name, 'genre' ) )['term_id'];
	}
	foreach ( array( 'Photo', 'Drawing' ) as $name ) {
		$tag = must( wp_insert_term( $name, 'mediatag' ) )['term_id'];
		wp_set_object_terms( $images[0], array( $tag ), 'mediatag' );
	}
	foreach ( $posts as $at => $post ) {
		wp_set_object_terms( $post, array( $genres[ $at % 3 ] ), 'genre' );
	}
	for ( $n = 1; $n <= 6; $n++ ) {
		$book = publish( 'book', "Book $n" );
		wp_set_object_terms( $book, array( $genres[ $n % 3 ] ), 'genre' );
	}
	$first = publish( 'chapter', 'Chapter 1' );
	publish( 'chapter', 'Chapter 2', array( 'post_parent' => $first ) );
}

if ( function_exists( 'acf_import_field_group' ) ) {
	$where = function ( ...$pairs ) {
		$rules = array();
		foreach ( $pairs as list( $param, $value ) ) {
			$rules[] = array( array( 'param' => $param, 'operator' => '==', 'value' => $value ) );
		}
		return $rules;
	};
	$graphql = array( 'show_in_rest' => 1, 'show_in_graphql' => 1, 'graphql_field_name' => 'extra' );
	acf_import_field_group( $graphql + array(
		'key'      => 'group_item',
		'title'    => 'Fields of items',
		'location' => $where( array( 'post_type', 'post' ), array( 'post_type', 'page' ), array( 'post_type', 'book' ) ),
		'fields'   => array(
			array( 'key' => 'field_subtitle', 'name' => 'subtitle', 'label' => 'Subtitle', 'type' => 'text' ),
			array( 'key' => 'field_related', 'name' => 'related', 'label' => 'Related', 'type' => 'relationship', 'return_format' => 'object' ),
			array( 'key' => 'field_hero', 'name' => 'hero', 'label' => 'Hero', 'type' => 'image', 'return_format' => 'array' ),
			array( 'key' => 'field_reviewer', 'name' => 'reviewer', 'label' => 'Reviewer', 'type' => 'user', 'return_format' => 'array' ),
			array( 'key' => 'field_topic', 'name' => 'topic', 'label' => 'Topic', 'type' => 'taxonomy', 'taxonomy' => 'category', 'field_type' => 'multi_select', 'return_format' => 'object' ),
		),
	) );
	acf_import_field_group( array(
		'key'          => 'group_term',
		'title'        => 'Fields of terms',
		'show_in_rest' => 1,
		'location'     => $where( array( 'taxonomy', 'category' ), array( 'taxonomy', 'genre' ), array( 'user_form', 'all' ), array( 'attachment', 'all' ) ),
		'fields'       => array( array( 'key' => 'field_colour', 'name' => 'colour', 'label' => 'Colour', 'type' => 'text' ) ),
	) );
	foreach ( array_slice( $posts, -12 ) as $at => $post ) {
		update_field( 'field_subtitle', "Subtitle $at", $post );
		update_field( 'field_related', array( $posts[ $at ], $posts[ $at + 1 ] ), $post );
		update_field( 'field_hero', $images[ $at % count( $images ) ], $post );
		update_field( 'field_reviewer', 1 + $at % 3, $post );
	}
}

if ( class_exists( 'WooCommerce' ) ) {
	update_option( 'woocommerce_coming_soon', 'no' );
	update_option( 'woocommerce_onboarding_profile', array( 'completed' => true, 'skipped' => true ) );
	update_option( 'woocommerce_task_list_hidden', 'yes' );
	update_option( 'woocommerce_cod_settings', array( 'enabled' => 'yes', 'title' => 'Cash' ) );
	WC_Install::create_pages();
	$shelves = array();
	foreach ( array( 'Seeds', 'Pots', 'Tools' ) as $name ) {
		$shelves[] = must( wp_insert_term( $name, 'product_cat' ) )['term_id'];
	}
	for ( $n = 1; $n <= 12; $n++ ) {
		$product = new WC_Product_Simple();
		$product->set_name( "Product $n" );
		$product->set_regular_price( (string) ( 10 + $n ) );
		$product->set_manage_stock( true );
		$product->set_stock_quantity( 1000 );
		$product->set_category_ids( array( $shelves[ $n % 3 ] ) );
		$product->set_image_id( $images[ $n % count( $images ) ] );
		must( $product->save() );
	}
	$coupon = new WC_Coupon();
	$coupon->set_code( 'ten' );
	$coupon->set_amount( 10 );
	$coupon->set_discount_type( 'percent' );
	must( $coupon->save() );
	$zone = new WC_Shipping_Zone();
	$zone->set_zone_name( 'Everywhere' );
	$zone->save();
	$zone->add_shipping_method( 'free_shipping' );
}

if ( function_exists( 'PLL' ) ) {
	$languages = PLL()->model->languages;
	foreach ( array( array( 'English', 'en', 'en_US', 'us' ), array( 'Deutsch', 'de', 'de_DE', 'de' ) ) as list( $name, $slug, $locale, $flag ) ) {
		must( $languages->add( array( 'name' => $name, 'slug' => $slug, 'locale' => $locale, 'rtl' => 0, 'term_group' => 0, 'flag' => $flag ) ) );
	}
	PLL()->model->set_language_in_mass();
	foreach ( array_slice( $posts, 0, 10 ) as $post ) {
		pll_set_post_language( $post, 'de' );
	}
	pll_save_post_translations( array( 'en' => $posts[20], 'de' => $posts[0] ) );
}

if ( function_exists( 'pods_api' ) ) {
	$film = must( pods_api()->save_pod( array( 'name' => 'film', 'label' => 'Films', 'label_singular' => 'Film', 'type' => 'post_type', 'storage' => 'meta', 'public' => 1, 'rest_enable' => 1, 'rest_base' => 'films', 'read_all' => 1, 'write_all' => 1, 'supports_title' => 1, 'supports_editor' => 1, 'supports_author' => 1, 'supports_custom_fields' => 1, 'built_in_taxonomies_category' => 1 ) ) );
	pods_api()->save_field( array( 'pod_id' => $film, 'pod' => 'film', 'name' => 'year', 'label' => 'Year', 'type' => 'number', 'rest_read' => 1, 'rest_write' => 1 ) );
	pods_api()->save_field( array( 'pod_id' => $film, 'pod' => 'film', 'name' => 'sequel', 'label' => 'Sequel', 'type' => 'pick', 'pick_object' => 'post_type', 'pick_val' => 'post', 'rest_read' => 1, 'rest_write' => 1, 'rest_pick_response' => 'array' ) );
	register_post_type( 'film', array( 'public' => true ) );
	for ( $n = 1; $n <= 4; $n++ ) {
		$id = publish( 'film', "Film $n" );
		update_post_meta( $id, 'year', 1990 + $n );
		update_post_meta( $id, 'sequel', $posts[ $n ] );
	}
}
flush_rewrite_rules();
