<?php
// A persistent object cache for the tests: WordPress's own class, with every value in Redis as well.
$port = (int) file_get_contents( WP_CONTENT_DIR . '/redis-port' );
$core = file_get_contents( ABSPATH . WPINC . '/class-wp-object-cache.php' );
eval( '?>' . preg_replace( '/class WP_Object_Cache\b/', 'class Core_Object_Cache', $core, 1 ) );

#[AllowDynamicProperties]
class WP_Object_Cache extends Core_Object_Cache {
	private $redis;

	public function __construct() {
		parent::__construct();
		$this->redis = new Redis();
		$this->redis->connect( '127.0.0.1', $GLOBALS['port'] );
	}

	private function name( $key, $group ) {
		return in_array( $group, array( 'theme_json', 'themes', 'plugins', 'counts' ), true ) ? null : ( isset( $this->global_groups[ $group ] ) ? 0 : get_current_blog_id() ) . ":$group:$key";
	}

	public function get( $key, $group = 'default', $force = false, &$found = null ) {
		$value = parent::get( $key, $group, $force, $found );
		$name  = $this->name( $key, $group );
		if ( $found || null === $name ) {
			return $value;
		}
		$text = $this->redis->get( $name );
		if ( false === $text ) {
			return false;
		}
		$found = true;
		parent::set( $key, unserialize( $text ), $group );
		return parent::get( $key, $group );
	}

	public function set( $key, $data, $group = 'default', $expire = 0 ) {
		$name = $this->name( $key, $group );
		if ( null !== $name ) {
			$this->redis->set( $name, serialize( $data ) );
		}
		return parent::set( $key, $data, $group, $expire );
	}

	public function add( $key, $data, $group = 'default', $expire = 0 ) {
		$this->get( $key, $group, false, $found );
		return $found ? false : $this->set( $key, $data, $group, $expire );
	}

	public function delete( $key, $group = 'default', $deprecated = false ) {
		$name = $this->name( $key, $group );
		if ( null !== $name ) {
			$this->redis->del( $name );
		}
		parent::delete( $key, $group );
		return true;
	}

	public function flush() {
		$this->redis->flushAll();
		return parent::flush();
	}
}
eval( '?>' . preg_replace( '/require_once[^;]*class-wp-object-cache\.php[^;]*;/', '', file_get_contents( ABSPATH . WPINC . '/cache.php' ) ) );
$GLOBALS['port'] = $port;
