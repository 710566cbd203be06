<?php
/**
 * Plugin Name: Plain HTTP passwords
 *
 * Allows application passwords without TLS on a site in production, where plugins do what they do for real visitors.
 */

add_filter( 'wp_is_application_passwords_available', '__return_true' );
