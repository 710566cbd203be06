<?php
// Callbacks in a namespace, where a function may be another than that of PHP with its name.
namespace Garden;

return array(
	'none' => function ( $response ) {
		return $response;
	},
	'trim' => function ( $text ) {
		return trim( $text );
	},
);
