<?php
// Stands in for WP-CLI, in front of WordPress: it registers commands and runs them as WP-CLI does, and knows nothing else.
define( 'WP_CLI', true );

class WP_CLI {
	private static $commands = array();

	public static function add_command( $name, $object ) {
		self::$commands[ $name ] = $object;
	}

	/** `trellis status`: the public method `status` of the object that was registered as `trellis`. */
	public static function run( $command ) {
		list( $name, $method ) = explode( ' ', $command );
		call_user_func( array( self::$commands[ $name ], $method ), array(), array() );
	}

	public static function line( $text ) {
		echo $text, PHP_EOL;
	}

	public static function success( $text ) {
		echo "Success: $text", PHP_EOL;
	}

	public static function warning( $text ) {
		echo "Warning: $text", PHP_EOL;
	}

	public static function error( $text ) {
		echo "Error: $text", PHP_EOL;
		exit( 1 );
	}
}
