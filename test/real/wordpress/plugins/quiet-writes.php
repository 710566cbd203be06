<?php
/**
 * Plugin Name: Quiet writes
 *
 * Writes in requests that usually write nothing: a heartbeat, a login, `wc-ajax`, a GraphQL mutation. Each request names the post whose
 * title it changes; `acme-always` stands for a plugin that writes whatever the request says.
 */

function quiet_write( $id ) {
	wp_update_post( array( 'ID' => (int) $id, 'post_title' => 'Quiet ' . wp_rand() ) );
}

function quiet_always( $text ) {
	if ( preg_match( '/^acme-always-(\d+)$/', $text, $found ) ) {
		quiet_write( $found[1] );
	}
}

add_filter( 'heartbeat_received', function ( $response, $data, $screen ) {
	if ( isset( $data['acme'] ) ) {
		quiet_write( $data['acme'] );
	}
	quiet_always( $screen );
	return $response;
}, 10, 3 );

add_action( 'wp_login_failed', function () {
	if ( isset( $_POST['authcode'] ) ) {
		quiet_write( $_POST['authcode'] );
	}
	quiet_always( isset( $_POST['redirect_to'] ) ? $_POST['redirect_to'] : '' );
} );

add_action( 'wp_login', function ( $name, $user ) {
	update_user_meta( $user->ID, 'description', 'Last seen ' . wp_rand() );
}, 10, 2 );

// The operation of a document that runs: 'query', 'mutation' or 'subscription'.
function quiet_operation( $document, $name ) {
	$plain = preg_replace( '/"""(?:\\\\"""|.)*?"""|"(?:\\\\.|[^"\\\\\n])*"|#[^\n\r]*/s', ' ', $document );
	$depth = 0;
	$found = array();
	preg_match_all( '/[{}]|\w+/', $plain, $tokens );
	$kind = 'query';
	$own  = '';
	foreach ( $tokens[0] as $token ) {
		if ( '{' === $token ) {
			if ( 0 === $depth ) {
				$found[] = array( $kind, $own );
			}
			++$depth;
		} elseif ( '}' === $token ) {
			--$depth;
			$kind = 'query';
			$own  = '';
		} elseif ( 0 === $depth && in_array( $token, array( 'query', 'mutation', 'subscription', 'fragment' ), true ) ) {
			$kind = $token;
			$own  = null;
		} elseif ( 0 === $depth && null === $own ) {
			$own = $token;
		}
	}
	foreach ( $found as list( $kind, $own ) ) {
		if ( 'fragment' !== $kind && ( '' === $name || $own === $name ) ) {
			return $kind;
		}
	}
	return '';
}

function quiet_run( $request ) {
	$id       = isset( $request['variables']['id'] ) ? $request['variables']['id'] : 0;
	$document = isset( $request['query'] ) && is_string( $request['query'] ) ? $request['query'] : '';
	if ( isset( $request['queryId'] ) || isset( $request['extensions']['persistedQuery'] ) ) {
		$document = 'mutation { stored }';
	}
	if ( 'mutation' === quiet_operation( $document, isset( $request['operationName'] ) ? $request['operationName'] : '' ) ) {
		quiet_write( $id );
	}
}

add_action( 'wp_loaded', function () {
	if ( isset( $_GET['wc-ajax'] ) ) {
		if ( 'checkout' === $_REQUEST['wc-ajax'] ) {
			quiet_write( isset( $_REQUEST['id'] ) ? $_REQUEST['id'] : 0 );
		}
		wp_send_json_success();
	}
	if ( '/graphql' !== strtok( $_SERVER['REQUEST_URI'], '?' ) || 'POST' !== $_SERVER['REQUEST_METHOD'] ) {
		return;
	}
	$type = isset( $_SERVER['CONTENT_TYPE'] ) ? strtok( $_SERVER['CONTENT_TYPE'], ';' ) : '';
	$body = file_get_contents( 'php://input' );
	if ( 'application/json' === $type ) {
		$sent = json_decode( $body, true );
	} elseif ( 'application/graphql' === $type ) {
		$sent = array( 'query' => $body, 'variables' => wp_unslash( $_GET ) );
	} else {
		$form = wp_unslash( $_POST );
		$sent = isset( $form['operations'] ) ? json_decode( $form['operations'], true ) : $form;
		if ( isset( $sent['variables'] ) && is_string( $sent['variables'] ) ) {
			$sent['variables'] = json_decode( $sent['variables'], true );
		}
	}
	foreach ( isset( $sent[0] ) ? $sent : array( array_merge( (array) $sent, isset( $_GET['queryId'] ) ? $_GET : array() ) ) as $one ) {
		quiet_run( $one );
	}
	wp_send_json( array( 'data' => array() ) );
}, 999 );
