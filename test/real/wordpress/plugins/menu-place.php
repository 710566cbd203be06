<?php
/**
 * Plugin Name: Menu place
 *
 * A place for a menu: the theme of the tests has none.
 */

add_action( 'init', function () {
	register_nav_menu( 'fuzz', 'Fuzz' );
} );
