<?php
/**
 * Plugin Name: Large: shop
 *
 * As shops do: 300 routes that are registered before those of WordPress, 190 options that each request reads at its start, tables for
 * orders, sessions and a queue, carts by cookie or by a token in a response field, orders whose addresses announce members as required
 * and do not require them, tokens for a login. The option `large_shop_routes` is the number of routes; `large_shop_cookie` makes it
 * set a cookie in every response, and `large_shop_hooks` makes it write at each heartbeat and login.
 */

final class Large_Shop {
	const OPTIONS = 190;

	/** The key of the session of this request. */
	public static $session = '';

	public static function table( $name ) {
		return $GLOBALS['wpdb']->prefix . $name;
	}

	public static function install() {
		if ( get_option( 'large_shop_version' ) ) {
			return;
		}
		global $wpdb;
		foreach ( array(
			'large_items'             => 'id bigint(20) NOT NULL AUTO_INCREMENT, kind varchar(60) NOT NULL, name text NOT NULL, PRIMARY KEY  (id), KEY kind (kind)',
			'large_orders'            => 'id bigint(20) NOT NULL AUTO_INCREMENT, customer varchar(64) NOT NULL, status varchar(20) NOT NULL, total bigint(20) NOT NULL, address text NOT NULL, PRIMARY KEY  (id)',
			'large_order_items'       => 'id bigint(20) NOT NULL AUTO_INCREMENT, order_id bigint(20) NOT NULL, product bigint(20) NOT NULL, quantity bigint(20) NOT NULL, PRIMARY KEY  (id)',
			'woocommerce_sessions'    => 'session_id bigint(20) NOT NULL AUTO_INCREMENT, session_key varchar(64) NOT NULL, session_value text NOT NULL, session_expiry bigint(20) NOT NULL, PRIMARY KEY  (session_id), UNIQUE KEY session_key (session_key)',
			'actionscheduler_actions' => 'action_id bigint(20) NOT NULL AUTO_INCREMENT, hook varchar(191) NOT NULL, status varchar(20) NOT NULL, PRIMARY KEY  (action_id)',
		) as $name => $columns ) {
			$wpdb->query( 'CREATE TABLE IF NOT EXISTS ' . self::table( $name ) . " ( $columns )" );
		}
		foreach ( range( 1, self::OPTIONS ) as $number ) {
			add_option( "large_shop_setting_$number", "value $number" );
		}
		foreach ( range( 1, 10 ) as $number ) {
			$id = wp_insert_post( array( 'post_type' => 'large_product', 'post_status' => 'publish', 'post_title' => "Product $number" ) );
			update_post_meta( $id, '_price', 10 * $number );
		}
		update_option( 'large_shop_page', wp_insert_post( array( 'post_type' => 'page', 'post_status' => 'publish', 'post_title' => 'Checkout' ) ) );
		update_option( 'large_shop_version', 1 );
	}

	/** Each request reads its settings and a page, and asks the queue. */
	public static function begin() {
		foreach ( range( 1, self::OPTIONS ) as $number ) {
			get_option( "large_shop_setting_$number" );
		}
	}

	public static function ask_queue() {
		global $wpdb;
		get_post( (int) get_option( 'large_shop_page' ) );
		if ( ! $wpdb->get_var( 'SELECT action_id FROM ' . self::table( 'actionscheduler_actions' ) . " WHERE hook = 'large_shop_tidy' AND status = 'pending' LIMIT 1" ) ) {
			$wpdb->insert( self::table( 'actionscheduler_actions' ), array( 'hook' => 'large_shop_tidy', 'status' => 'pending' ) );
		}
	}

	/** @return array{items: array<int, int>} */
	public static function cart() {
		global $wpdb;
		$value = '' === self::$session ? null : $wpdb->get_var( $wpdb->prepare( 'SELECT session_value FROM ' . self::table( 'woocommerce_sessions' ) . ' WHERE session_key = %s', self::$session ) );
		return $value ? json_decode( $value, true ) : array( 'items' => array() );
	}

	public static function keep( $cart ) {
		global $wpdb;
		$wpdb->query( $wpdb->prepare( 'REPLACE INTO ' . self::table( 'woocommerce_sessions' ) . ' (session_key, session_value, session_expiry) VALUES (%s, %s, %d)', self::$session, wp_json_encode( $cart ), time() + 172800 ) );
	}

	/** The session that a request names by a token or a cookie; a new one where it may write. */
	public static function open( $token, $may_begin ) {
		$known = (string) $token;
		if ( '' === $known && isset( $_COOKIE['large_shop_session'] ) ) {
			$known = (string) $_COOKIE['large_shop_session'];
		}
		self::$session = preg_match( '/^[0-9a-f]{32}$/D', $known ) ? $known : '';
		if ( '' === self::$session && $may_begin ) {
			self::$session = bin2hex( random_bytes( 16 ) );
			if ( ! headers_sent() ) {
				setcookie( 'large_shop_session', self::$session, 0, '/' );
			}
		}
	}

	public static function add( $product, $quantity ) {
		$post = get_post( (int) $product );
		if ( ! $post || 'large_product' !== $post->post_type ) {
			return new WP_Error( 'large_shop_no_product', 'There is no such product.', array( 'status' => 400 ) );
		}
		$cart = self::cart();
		$cart['items'][ $post->ID ] = max( 1, (int) $quantity ) + ( isset( $cart['items'][ $post->ID ] ) ? $cart['items'][ $post->ID ] : 0 );
		self::keep( $cart );
		return $cart;
	}

	public static function order( $cart, $address ) {
		global $wpdb;
		$total = 0;
		foreach ( $cart['items'] as $product => $quantity ) {
			$total += $quantity * (int) get_post_meta( $product, '_price', true );
		}
		$wpdb->insert( self::table( 'large_orders' ), array( 'customer' => self::$session, 'status' => 'pending', 'total' => $total, 'address' => (string) wp_json_encode( $address ) ) );
		$id = (int) $wpdb->insert_id;
		foreach ( $cart['items'] as $product => $quantity ) {
			$wpdb->insert( self::table( 'large_order_items' ), array( 'order_id' => $id, 'product' => $product, 'quantity' => $quantity ) );
			update_post_meta( $product, '_sold', $quantity + (int) get_post_meta( $product, '_sold', true ) );
		}
		$wpdb->insert( self::table( 'actionscheduler_actions' ), array( 'hook' => 'large_shop_mail', 'status' => 'pending' ) );
		self::keep( array( 'items' => array() ) );
		return array( 'order_id' => $id, 'status' => 'pending', 'total' => $total );
	}

	/** A response with the token of its session. */
	public static function answer( $data ) {
		$response = rest_ensure_response( $data );
		if ( ! is_wp_error( $response ) ) {
			$response->header( 'Cart-Token', self::$session );
			$response->header( 'Nonce', wp_create_nonce( 'large_store' ) );
			$response->header( 'Cache-Control', 'no-store' );
		}
		return $response;
	}

	/** A route for what is in a cart; `$act` gets the request. */
	public static function store_route( $path, $method, $arguments, $act ) {
		register_rest_route( 'large-store/v1', $path, array(
			'methods'             => $method,
			'permission_callback' => '__return_true',
			'args'                => $arguments,
			'callback'            => function ( $request ) use ( $method, $act ) {
				Large_Shop::open( $request->get_header( 'Cart-Token' ), 'GET' !== $method );
				return Large_Shop::answer( $act( $request ) );
			},
		) );
	}
}

/** Tokens for a login, as JSON Web Tokens (RFC 7519). */
final class Large_Tokens {
	private static function part( $value ) {
		return rtrim( strtr( base64_encode( wp_json_encode( $value ) ), '+/', '-_' ), '=' );
	}

	private static function sign( $text ) {
		return rtrim( strtr( base64_encode( hash_hmac( 'sha256', $text, AUTH_KEY, true ) ), '+/', '-_' ), '=' );
	}

	public static function make( $user, $seconds ) {
		$text = self::part( array( 'alg' => 'HS256', 'typ' => 'JWT' ) ) . '.' . self::part( array( 'sub' => $user, 'exp' => time() + $seconds ) );
		return "$text." . self::sign( $text );
	}

	/** The user of the Bearer token of this request, an error where it is not valid, null without one. */
	public static function user() {
		$field = isset( $_SERVER['HTTP_AUTHORIZATION'] ) ? (string) $_SERVER['HTTP_AUTHORIZATION'] : '';
		if ( ! preg_match( '/^Bearer ([\w-]+)\.([\w-]+)\.([\w-]+)$/D', $field, $part ) ) {
			return null;
		}
		$claims = json_decode( (string) base64_decode( strtr( $part[2], '-_', '+/' ) ), true );
		$is_own = hash_equals( self::sign( "$part[1].$part[2]" ), $part[3] ) && is_array( $claims );
		if ( ! $is_own || $claims['exp'] <= time() ) {
			return new WP_Error( 'large_tokens_invalid', $is_own ? 'Expired token' : 'Wrong signature', array( 'status' => 403 ) );
		}
		return (int) $claims['sub'];
	}
}

add_action( 'muplugins_loaded', array( 'Large_Shop', 'begin' ) );

add_action( 'init', function () {
	register_post_type( 'large_product', array( 'public' => true, 'show_in_rest' => true, 'rest_base' => 'large-products', 'supports' => array( 'title', 'editor', 'custom-fields' ) ) );
	Large_Shop::install();
	Large_Shop::ask_queue();
	if ( get_option( 'large_shop_cookie' ) && ! headers_sent() ) {
		setcookie( 'large_shop_guest', bin2hex( random_bytes( 8 ) ), 0, '/' );
	}
} );

add_filter( 'determine_current_user', function ( $user ) {
	$own = Large_Tokens::user();
	return is_int( $own ) ? $own : $user;
}, 20 );
add_filter( 'rest_authentication_errors', function ( $error ) {
	$own = Large_Tokens::user();
	return is_wp_error( $own ) ? $own : $error;
} );

// Each request of the administration and each login is noted.
add_filter( 'heartbeat_received', function ( $answer ) {
	if ( get_option( 'large_shop_hooks' ) ) {
		update_user_meta( get_current_user_id(), 'large_shop_last_active', microtime( true ) );
	}
	return $answer;
} );
add_action( 'wp_login', function ( $name, $user ) {
	if ( get_option( 'large_shop_hooks' ) ) {
		update_user_meta( $user->ID, 'large_shop_last_login', microtime( true ) );
	}
}, 10, 2 );
add_action( 'wp_login_failed', function ( $name ) {
	if ( get_option( 'large_shop_hooks' ) ) {
		update_option( 'large_shop_failed_logins', 1 + (int) get_option( 'large_shop_failed_logins' ) );
	}
} );

// `POST /?large-ajax=add_to_cart`, and what every page of the shop asks for.
add_action( 'template_redirect', function () {
	$act = isset( $_GET['large-ajax'] ) ? (string) $_GET['large-ajax'] : '';
	if ( '' === $act ) {
		return;
	}
	Large_Shop::open( '', true );
	$cart = 'add_to_cart' === $act ? Large_Shop::add( isset( $_POST['product'] ) ? $_POST['product'] : 0, 1 ) : Large_Shop::cart();
	wp_send_json( is_wp_error( $cart ) ? array( 'error' => true ) : $cart );
} );

// With the priority of plugins: WordPress registers its own routes with 99.
add_action( 'rest_api_init', function () {
	$text    = array( 'type' => 'string', 'required' => true );
	$address = array(
		'type'              => 'object',
		'properties'        => array( 'first_name' => $text, 'company' => $text, 'city' => $text, 'country' => array( 'type' => 'string', 'enum' => array( 'DE', 'FR' ), 'required' => true ) ),
		'validate_callback' => '__return_true',
		'sanitize_callback' => function ( $value ) {
			return (array) $value;
		},
	);
	Large_Shop::store_route( '/cart', 'GET', array(), function () {
		return Large_Shop::cart();
	} );
	Large_Shop::store_route( '/cart/add-item', 'POST', array( 'id' => array( 'type' => 'integer' ), 'quantity' => array( 'type' => 'integer', 'sanitize_callback' => 'absint' ) ), function ( $request ) {
		return Large_Shop::add( $request['id'], $request['quantity'] );
	} );
	Large_Shop::store_route( '/cart/update-customer', 'POST', array( 'billing_address' => $address ), function ( $request ) {
		$cart            = Large_Shop::cart();
		$cart['address'] = $request['billing_address'];
		Large_Shop::keep( $cart );
		return $cart;
	} );
	Large_Shop::store_route( '/checkout', 'POST', array( 'billing_address' => array( 'required' => true ) + $address, 'payment_method' => array( 'type' => 'string', 'enum' => array( 'card' ), 'validate_callback' => '__return_true', 'sanitize_callback' => null ) ), function ( $request ) {
		$cart = Large_Shop::cart();
		return $cart['items'] ? Large_Shop::order( $cart, $request['billing_address'] ) : new WP_Error( 'large_shop_empty', 'The cart is empty.', array( 'status' => 400 ) );
	} );
	register_rest_route( 'large-auth/v1', '/token', array(
		'methods'             => 'POST',
		'permission_callback' => '__return_true',
		'callback'            => function ( $request ) {
			$user = wp_authenticate( (string) $request['username'], (string) $request['password'] );
			return is_wp_error( $user ) ? new WP_Error( 'large_tokens_refused', 'Unknown user or password.', array( 'status' => 403 ) ) : array( 'token' => Large_Tokens::make( $user->ID, (int) ( $request['seconds'] ? $request['seconds'] : 3600 ) ) );
		},
	) );
	$manager = function () {
		return current_user_can( 'manage_options' );
	};
	register_rest_route( 'large-shop/v3', '/orders', array(
		'methods'             => 'GET',
		'permission_callback' => $manager,
		// Its own function reads it: any value is taken.
		'args'                => array( 'include' => array( 'type' => 'array', 'items' => array( 'type' => 'integer' ), 'sanitize_callback' => 'wp_parse_id_list' ), 'status' => array( 'type' => 'string', 'enum' => array( 'any', 'pending', 'done' ), 'sanitize_callback' => 'sanitize_key' ) ),
		'callback'            => function () {
			return $GLOBALS['wpdb']->get_results( 'SELECT id, customer, status, total FROM ' . Large_Shop::table( 'large_orders' ) . ' ORDER BY id DESC LIMIT 20' );
		},
	) );
	register_rest_route( 'large-shop/v3', '/orders/(?P<id>[\d]+)', array(
		array(
			'methods'             => 'GET',
			'permission_callback' => $manager,
			'callback'            => function ( $request ) {
				$row = $GLOBALS['wpdb']->get_row( $GLOBALS['wpdb']->prepare( 'SELECT id, customer, status, total FROM ' . Large_Shop::table( 'large_orders' ) . ' WHERE id = %d', $request['id'] ) );
				return $row ? $row : new WP_Error( 'large_shop_no_order', 'There is no such order.', array( 'status' => 404 ) );
			},
		),
		array(
			'methods'             => 'PUT',
			'permission_callback' => $manager,
			'args'                => array( 'status' => array( 'type' => 'string' ) ),
			'callback'            => function ( $request ) {
				$GLOBALS['wpdb']->update( Large_Shop::table( 'large_orders' ), array( 'status' => (string) $request['status'] ), array( 'id' => (int) $request['id'] ) );
				return array( 'id' => (int) $request['id'], 'status' => (string) $request['status'] );
			},
		),
	) );
	// Two routes for each kind of item.
	foreach ( range( 1, (int) get_option( 'large_shop_routes', 300 ) / 2 ) as $number ) {
		large_shop_items( "items-$number" );
	}
} );

function large_shop_items( $kind ) {
	global $wpdb;
	$table  = Large_Shop::table( 'large_items' );
	$lists  = array( 'page' => array( 'type' => 'integer', 'default' => 1, 'minimum' => 1 ), 'per_page' => array( 'type' => 'integer', 'default' => 10, 'minimum' => 1, 'maximum' => 100 ), 'search' => array( 'type' => 'string' ), 'order' => array( 'type' => 'string', 'enum' => array( 'asc', 'desc' ), 'default' => 'desc' ) );
	$fields = array( 'name' => array( 'type' => 'string' ), 'meta' => array( 'type' => 'object', 'properties' => array( 'key' => array( 'type' => 'string', 'required' => true ) ), 'validate_callback' => '__return_true' ) );
	$editor = function () {
		return current_user_can( 'edit_posts' );
	};
	register_rest_route( 'large-shop/v3', "/$kind", array(
		array(
			'methods'             => 'GET',
			'permission_callback' => '__return_true',
			'args'                => $lists,
			'callback'            => function ( $request ) use ( $wpdb, $table, $kind ) {
				$order = 'asc' === $request['order'] ? 'ASC' : 'DESC';
				return $wpdb->get_results( $wpdb->prepare( "SELECT id, name FROM $table WHERE kind = %s ORDER BY id $order LIMIT %d, %d", $kind, ( $request['page'] - 1 ) * $request['per_page'], $request['per_page'] ) );
			},
		),
		array(
			'methods'             => 'POST',
			'permission_callback' => $editor,
			'args'                => $fields,
			'callback'            => function ( $request ) use ( $wpdb, $table, $kind ) {
				$wpdb->insert( $table, array( 'kind' => $kind, 'name' => (string) $request['name'] ) );
				return new WP_REST_Response( array( 'id' => (int) $wpdb->insert_id, 'name' => (string) $request['name'] ), 201 );
			},
		),
	) );
	register_rest_route( 'large-shop/v3', "/$kind/(?P<id>[\\d]+)", array(
		array(
			'methods'             => 'GET',
			'permission_callback' => '__return_true',
			'callback'            => function ( $request ) use ( $wpdb, $table, $kind ) {
				$row = $wpdb->get_row( $wpdb->prepare( "SELECT id, name FROM $table WHERE id = %d AND kind = %s", $request['id'], $kind ) );
				return $row ? $row : new WP_Error( 'large_shop_no_item', 'There is no such item.', array( 'status' => 404 ) );
			},
		),
		array(
			'methods'             => 'PUT',
			'permission_callback' => $editor,
			'args'                => $fields,
			'callback'            => function ( $request ) use ( $wpdb, $table ) {
				$wpdb->update( $table, array( 'name' => (string) $request['name'] ), array( 'id' => (int) $request['id'] ) );
				return array( 'id' => (int) $request['id'], 'name' => (string) $request['name'] );
			},
		),
		array(
			'methods'             => 'DELETE',
			'permission_callback' => $editor,
			'callback'            => function ( $request ) use ( $wpdb, $table ) {
				$wpdb->delete( $table, array( 'id' => (int) $request['id'] ) );
				return array( 'deleted' => true );
			},
		),
	) );
}
