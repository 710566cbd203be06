<?php
// fill.php SITE   Gives each active plugin the content that its sites have: fields, types, products, languages.
error_reporting( E_ERROR );
$_SERVER += array( 'HTTP_HOST' => 'localhost', 'SERVER_NAME' => 'localhost', 'REQUEST_METHOD' => 'GET', 'REMOTE_ADDR' => '127.0.0.1' );
$_SERVER['REQUEST_URI'] = '/';
// Before it has a language, Polylang loads for its administrator only.
define( 'PLL_ADMIN', true );
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
/** A time of its own for each: of two items with the same one the database chooses which comes first, and chooses anew without a write. */
function next_date() {
	static $count = 0;
	++$count;
	return gmdate( 'Y-m-d H:i:s', gmmktime( 8, $count, 0, 1, 1, 2025 ) );
}
function publish( $type, $title, $fields = array() ) {
	return must( wp_insert_post( $fields + array( 'post_type' => $type, 'post_title' => $title, 'post_content' => "$title: what it says.", 'post_status' => 'publish', 'post_author' => 1, 'post_date' => next_date() ), true ) );
}
function redate( $id ) {
	$date = next_date();
	must( wp_update_post( array( 'ID' => $id, 'post_date' => $date, 'post_date_gmt' => $date, 'edit_date' => true ), true ) );
}
$posts  = ids_of( 'post', 100 );
$images = ids_of( 'attachment', 10 );
array_map( 'redate', $images );

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
	array_map( 'redate', array_filter( array_map( 'wc_get_page_id', array( 'shop', 'cart', 'checkout', 'myaccount' ) ), function ( $id ) {
		return $id > 0;
	} ) );
	$shelves = array();
	foreach ( array( 'Seeds', 'Pots', 'Tools' ) as $name ) {
		$shelves[] = must( wp_insert_term( $name, 'product_cat' ) )['term_id'];
	}
	for ( $n = 1; $n <= 12; $n++ ) {
		$product = new WC_Product_Simple();
		$product->set_name( "Product $n" );
		$product->set_regular_price( (string) ( 10 + $n ) );
		$product->set_manage_stock( true );
		$product->set_date_created( next_date() );
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

if ( defined( 'POLYLANG_VERSION' ) ) {
	$languages = PLL()->model->languages;
	foreach ( array( array( 'English', 'en', 'en_US', 'us' ), array( 'Deutsch', 'de', 'de_DE', 'de' ) ) as list( $name, $slug, $locale, $flag ) ) {
		must( $languages->add( array( 'name' => $name, 'slug' => $slug, 'locale' => $locale, 'rtl' => 0, 'term_group' => 0, 'flag' => $flag ) ) );
	}
	PLL()->model->set_language_in_mass();
	// Polylang names it as the English one.
	wp_update_term( pll_get_term( (int) get_option( 'default_category' ), 'de' ), 'category', array( 'name' => 'Allgemein' ) );
	$translate = function ( $taxonomy ) {
		$translated = array();
		foreach ( get_terms( array( 'taxonomy' => $taxonomy, 'hide_empty' => false, 'orderby' => 'term_id', 'lang' => 'en', 'exclude' => array( (int) get_option( 'default_category' ) ), 'number' => 4 ) ) as $term ) {
			$german = must( wp_insert_term( "$term->name (Deutsch)", $taxonomy ) )['term_id'];
			pll_set_term_language( $german, 'de' );
			pll_save_term_translations( array( 'en' => $term->term_id, 'de' => $german ) );
			$translated[] = $german;
		}
		return $translated;
	};
	list( $categories, $tags ) = array( $translate( 'category' ), $translate( 'post_tag' ) );
	foreach ( array_slice( $posts, 0, 10 ) as $at => $post ) {
		pll_set_post_language( $post, 'de' );
		wp_set_post_terms( $post, array( $categories[ $at % 4 ] ), 'category' );
		wp_set_post_terms( $post, array( $tags[ $at % 4 ] ), 'post_tag' );
		pll_save_post_translations( array( 'en' => $posts[ 20 + $at ], 'de' => $post ) );
	}
	foreach ( array_slice( ids_of( 'page', 10 ), 0, 4 ) as $page ) {
		$german = publish( 'page', get_the_title( $page ) . ' (Deutsch)' );
		pll_set_post_language( $german, 'de' );
		pll_save_post_translations( array( 'en' => $page, 'de' => $german ) );
	}
	$menus = array( 'en' => wp_get_nav_menus()[0]->term_id, 'de' => must( wp_create_nav_menu( 'Menü' ) ) );
	foreach ( array_slice( $posts, 0, 4 ) as $post ) {
		must( wp_update_nav_menu_item( $menus['de'], 0, array( 'menu-item-type' => 'post_type', 'menu-item-object' => 'post', 'menu-item-object-id' => $post, 'menu-item-status' => 'publish' ) ) );
	}
	PLL()->options->set( 'nav_menus', array( get_stylesheet() => array( 'primary' => $menus ) ) );
	PLL()->options->save_all();
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
// Made again by the first visitor, with the address of the site.
delete_transient( 'pll_languages_list' );

$alike = array_merge(
	$wpdb->get_col( "SELECT CONCAT( taxonomy, ' ', name ) AS kind FROM $wpdb->terms JOIN $wpdb->term_taxonomy USING ( term_id ) WHERE taxonomy NOT LIKE '%translations' AND taxonomy <> 'term_language' GROUP BY kind HAVING COUNT(*) > 1" ),
	$wpdb->get_col( "SELECT CONCAT( post_type, ' ', post_date ) AS kind FROM $wpdb->posts WHERE post_status IN ( 'publish', 'inherit' ) AND post_type IN ( 'post', 'page', 'attachment', 'book', 'chapter', 'film', 'product' ) GROUP BY kind HAVING COUNT(*) > 1" )
);
must( array() === $alike || ! fwrite( STDERR, 'lists have no order of their own: ' . implode( ', ', $alike ) . "\n" ) );
