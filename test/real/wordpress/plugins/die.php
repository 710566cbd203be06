<?php
/**
 * Plugin Name: Die
 *
 * Ends the process in front of its Nth statement that is no SELECT, in one of the ways in which PHP requests die: DIE_AT=N, DIE_HOW=kill …
 */

if ( getenv( 'DIE_AT' ) ) {
	add_filter( 'query', function ( $query ) {
		static $count = 0, $statements = array();
		// Before anything else looks at the statement, and for those of other plugins as well.
		if ( 0 !== stripos( ltrim( $query ), 'SELECT' ) ) {
			++$count;
			file_put_contents( getenv( 'DIE_LIST' ), $count . ' ' . substr( $query, 0, 200 ) . "\n", FILE_APPEND );
			if ( (int) getenv( 'DIE_AT' ) === $count ) {
				switch ( getenv( 'DIE_HOW' ) ) {
					case 'kill':
						posix_kill( getmypid(), SIGKILL );
						break;
					case 'exit':
						exit;
					case 'fatal':
						trellis_test_function_that_is_not_there();
						break;
					case 'exception':
						throw new RuntimeException( 'not caught' );
					case 'memory':
						$list = array();
						while ( true ) {
							$list[] = str_repeat( 'x', 100000 );
						}
						break;
					case 'time':
						set_time_limit( 1 );
						while ( true ) {
							sqrt( 2 );
						}
						break;
				}
			}
		}
		return $query;
	}, PHP_INT_MIN );
}
