<?php
// after-php74.php < SOURCES   For each PHP source of a JSON list: the constructs in it that PHP 7.4 does not know, as a JSON list.
const FUNCTIONS = array( 'str_contains', 'str_starts_with', 'str_ends_with', 'get_debug_type', 'get_resource_id', 'fdiv', 'preg_last_error_msg', 'array_is_list', 'fsync', 'fdatasync', 'enum_exists', 'iterator_apply_all', 'ini_parse_quantity', 'memory_reset_peak_usage', 'curl_upkeep', 'json_validate', 'mb_str_pad', 'mb_trim', 'mb_ucfirst', 'mb_lcfirst', 'str_increment', 'str_decrement', 'array_find', 'array_find_key', 'array_any', 'array_all', 'array_first', 'array_last', 'mysqli_execute_query' );
const CLASSES   = array( 'Stringable', 'WeakMap', 'ValueError', 'UnhandledMatchError', 'Attribute', 'PhpToken', 'CurlHandle', 'Fiber', 'UnitEnum', 'Random\Randomizer' );

/** Tokens without white space and comments, as [id, text]; a single character is its own id. */
function tokens_of( $source ) {
	$tokens = array();
	foreach ( token_get_all( $source ) as $token ) {
		if ( ! is_array( $token ) ) {
			$tokens[] = array( $token, $token );
		} elseif ( ! in_array( $token[0], array( T_WHITESPACE, T_COMMENT, T_DOC_COMMENT ), true ) ) {
			$tokens[] = array( $token[0], $token[1] );
		}
	}
	return $tokens;
}

function constructs_of( $source ) {
	$all   = tokens_of( $source );
	$id    = function ( $at ) use ( $all ) { return isset( $all[ $at ] ) ? $all[ $at ][0] : null; };
	$text  = function ( $at ) use ( $all ) { return isset( $all[ $at ] ) ? $all[ $at ][1] : ''; };
	$found = array();
	$kinds = array( T_MATCH => 'match', T_NULLSAFE_OBJECT_OPERATOR => '?->', T_ENUM => 'enum', T_READONLY => 'readonly', T_ATTRIBUTE => 'attribute' );
	$names = array( T_STRING, T_NAME_FULLY_QUALIFIED, T_NAME_QUALIFIED, T_ARRAY, T_CALLABLE, T_STATIC );
	$close = function ( $at ) use ( $id ) {
		for ( $depth = 0; null !== $id( $at ); $at++ ) {
			$depth += '(' === $id( $at ) ? 1 : ( ')' === $id( $at ) ? -1 : 0 );
			if ( 0 === $depth ) {
				return $at;
			}
		}
		return $at;
	};
	foreach ( $all as $at => list( $kind, $word ) ) {
		if ( isset( $kinds[ $kind ] ) ) {
			$found[] = $kinds[ $kind ];
		}
		$is_type_end = T_VARIABLE === $id( $at + 2 ) || T_ELLIPSIS === $id( $at + 2 );
		if ( in_array( $kind, array( '|', T_AMPERSAND_NOT_FOLLOWED_BY_VAR_OR_VARARG ), true ) && in_array( $id( $at - 1 ), $names, true ) && in_array( $id( $at + 1 ), $names, true ) ) {
			// Back to what stands before the type: of a return type that is ") :".
			for ( $before = $at - 1; in_array( $id( $before ), array_merge( $names, array( '|', '?' ) ), true ); $before-- );
			$is_caught = '(' === $id( $before ) && T_CATCH === $id( $before - 1 );
			if ( $is_type_end && ! $is_caught || ':' === $id( $before ) && ')' === $id( $before - 1 ) ) {
				$found[] = '|' === $kind ? 'union type' : 'intersection type';
			}
		}
		$is_return = ':' === $id( $at - 1 ) && ')' === $id( $at - 2 ) || '?' === $id( $at - 1 ) && ':' === $id( $at - 2 ) && ')' === $id( $at - 3 );
		if ( T_STATIC === $kind && $is_return ) {
			$found[] = 'static return';
		}
		if ( T_STRING === $kind && in_array( strtolower( $word ), array( 'mixed', 'never' ), true ) && ( $is_return || T_VARIABLE === $id( $at + 1 ) ) ) {
			$found[] = strtolower( $word );
		}
		if ( in_array( $kind, array( T_STRING, T_ARRAY, T_CLASS, T_DEFAULT ), true ) && in_array( $id( $at - 1 ), array( '(', ',' ), true ) && ':' === $id( $at + 1 ) ) {
			$found[] = 'named argument';
		}
		if ( in_array( $kind, array( T_FUNCTION, T_FN, T_USE ), true ) ) {
			for ( $open = $at + 1; '(' !== $id( $open ) && $open < $at + 4; $open++ );
			if ( '(' === $id( $open ) ) {
				$end = $close( $open );
				if ( ',' === $id( $end - 1 ) ) {
					$found[] = 'trailing comma in parameters';
				}
				for ( $inner = $open; $inner < $end; $inner++ ) {
					if ( in_array( $id( $inner ), array( T_PUBLIC, T_PROTECTED, T_PRIVATE ), true ) ) {
						$found[] = 'promoted property';
					}
					if ( T_NEW === $id( $inner ) ) {
						$found[] = 'new in initializer';
					}
				}
			}
		}
		if ( T_THROW === $kind && ! in_array( $id( $at - 1 ), array( ';', '{', '}', ')', ':', T_OPEN_TAG, T_ELSE, T_DO ), true ) ) {
			$found[] = 'throw expression';
		}
		if ( T_CATCH === $kind && ! in_array( T_VARIABLE, array_map( $id, range( $at + 1, $close( $at + 1 ) ) ), true ) ) {
			$found[] = 'catch without variable';
		}
		if ( T_VARIABLE === $kind && T_DOUBLE_COLON === $id( $at + 1 ) && T_CLASS === $id( $at + 2 ) ) {
			$found[] = '$object::class';
		}
		if ( '(' === $kind && T_ELLIPSIS === $id( $at + 1 ) && ')' === $id( $at + 2 ) ) {
			$found[] = 'callable(...)';
		}
		if ( T_CONST === $kind && T_FINAL === $id( $at - 1 ) ) {
			$found[] = 'final constant';
		}
		if ( T_CONST === $kind && T_STRING === $id( $at + 1 ) && T_STRING === $id( $at + 2 ) ) {
			$found[] = 'typed constant';
		}
		if ( T_LNUMBER === $kind && 0 === stripos( $word, '0o' ) ) {
			$found[] = '0o';
		}
		$is_plain = ! in_array( $id( $at - 1 ), array( T_OBJECT_OPERATOR, T_DOUBLE_COLON, T_FUNCTION, T_NEW ), true );
		if ( in_array( $kind, array( T_STRING, T_NAME_FULLY_QUALIFIED ), true ) && '(' === $id( $at + 1 ) && $is_plain && in_array( strtolower( ltrim( $word, '\\' ) ), FUNCTIONS, true ) ) {
			$found[] = strtolower( ltrim( $word, '\\' ) );
		}
		if ( in_array( $kind, array( T_STRING, T_NAME_FULLY_QUALIFIED, T_NAME_QUALIFIED ), true ) && in_array( ltrim( $word, '\\' ), CLASSES, true ) ) {
			$found[] = ltrim( $word, '\\' );
		}
	}
	return array_values( array_unique( $found ) );
}

echo json_encode( array_map( 'constructs_of', json_decode( stream_get_contents( STDIN ) ) ) );
