<?php
// Callbacks of plugins: whether the companion takes each for one that adds nothing to a response but what it is given.
function plain_title( $title, $id ) {
	return trim( $title ) . '!';
}

final class Plain_Memory {
	public $kept = array();

	public function forget( $response ) {
		$this->kept = null;
		return $response;
	}

	public function recall( $response ) {
		$response->data['x'] = $this->kept;
		return $response;
	}

	public function add( $response ) {
		$this->kept['x'] = $response;
		return $response;
	}
}

$memory     = new Plain_Memory();
$of_their_own = require __DIR__ . '/callbacks-of-their-own.php';

return array(
	'plain'    => array(
		'a property that it sets'    => Closure::fromCallable( array( $memory, 'forget' ) ),
		'no function at all'         => $of_their_own['none'],
		'a text'                     => function ( $text ) {
			return '<b>' . strtoupper( $text ) . '</b>';
		},
		'a parameter of the request' => function ( $response, $post, $request ) {
			if ( 'yes' === $request->get_param( 'loud' ) && isset( $response->data['title'] ) ) {
				$response->data['title']['rendered'] = strtoupper( $response->data['title']['rendered'] );
			}
			return $response;
		},
		'texts of the post'          => function ( $response, $post ) {
			$response->data['short'] = substr( $post->post_content, 0, 20 ) . $post->ID;
			return $response;
		},
		'a function with a name'     => 'plain_title',
	),
	'not plain' => array(
		'a property that it shows' => Closure::fromCallable( array( $memory, 'recall' ) ),
		'a member of a property'   => Closure::fromCallable( array( $memory, 'add' ) ),
		'a function of another trim' => $of_their_own['trim'],
		'the number of comments'   => function ( $response, $post ) {
			$response->data['comments'] = $post->comment_count;
			return $response;
		},
		'the whole post'           => function ( $response, $post ) {
			$response->data['post'] = $post;
			return $response;
		},
		'another name of the post' => function ( $response, $post ) {
			$other = $post;
			$response->data['comments'] = $other->ID;
			return $response;
		},
		'each member of the post'  => function ( $response, $post ) {
			foreach ( $post as $name => $value ) {
				$response->data[ $name ] = $value;
			}
			return $response;
		},
		'a member by a variable'   => function ( $response, $post, $request ) {
			$response->data['x'] = $post->{ $request->get_param( 'name' ) };
			return $response;
		},
		'a function by a variable' => function ( $response, $post, $request ) {
			$name = $request->get_param( 'name' );
			$response->data['x'] = $name( 3 );
			return $response;
		},
		'a function by its name'   => function ( $response ) {
			$response->data['x'] = 'get_term'( 3 );
			return $response;
		},
		'a function of WordPress'  => function ( $response, $post ) {
			$response->data['x'] = get_comments_number( $post->ID );
			return $response;
		},
		'a global variable'        => function ( $response ) {
			global $wp_registered_widgets;
			$response->data['x'] = $wp_registered_widgets;
			return $response;
		},
		'$GLOBALS'                 => function ( $response ) {
			$response->data['x'] = $GLOBALS['wp_registered_widgets'];
			return $response;
		},
		'a cookie'                 => function ( $response ) {
			$response->data['x'] = $_COOKIE['x'];
			return $response;
		},
		'a captured variable'      => ( function () {
			$terms = get_terms();
			return function ( $response ) use ( $terms ) {
				$response->data['x'] = $terms;
				return $response;
			};
		} )(),
		'a value that it keeps'    => function ( $response ) {
			static $kept = array();
			$response->data['x'] = $kept;
			return $response;
		},
		'a function inside'        => function ( $response ) {
			$response->data['x'] = ( function () {
				return 1;
			} )();
			return $response;
		},
		'another on the same line' => array( function ( $text ) { return $text; }, function ( $text ) { return $text . get_option( 'x' ); } )[1],
		'an arrow function'        => fn( $text ) => $text . get_option( 'x' ),
		'a constant'               => function ( $text ) {
			return $text . trim;
		},
		'a static method'          => function ( $text ) {
			return $text . WP_Term::get_instance( 3 )->count;
		},
		'a new object'             => function ( $response ) {
			$response->data['x'] = new WP_Query();
			return $response;
		},
		'a text with a variable'   => function ( $response, $post ) {
			return "$response {$post->comment_count}";
		},
		'a default value'          => function ( $text, $more = PHP_OS ) {
			return $text . $more;
		},
		'data of another object'   => function ( $response, $user ) {
			$response->data['x'] = $user->data;
			return $response;
		},
		'a method'                 => array( new WP_Query(), 'get_posts' ),
	),
);
