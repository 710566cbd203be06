<?php
/**
 * Plugin Name: Trellis companion
 * Description: Reports every change of content to Trellis gateways, so that what they cache is never older than the site.
 * Version: 1.0.0
 * Requires PHP: 7.4
 * License: MIT
 *
 * Installed by copying this file into wp-content/mu-plugins/ and setting TRELLIS_TOKEN (and TRELLIS_GATEWAYS) in
 * wp-config.php or in the environment. README.md beside the original says what it does and what it costs.
 */

if ( ! defined( 'ABSPATH' ) ) {
	exit;
}

/** A constant of wp-config.php, else a variable of the environment, else ''. */
function trellis_setting( $name ) {
	$value = defined( $name ) ? constant( $name ) : getenv( $name );
	return is_string( $value ) ? trim( $value ) : '';
}

/** The signature of a push and of a poll: both sides prove that they know the token without sending it. */
final class Trellis_Signature {
	const TOLERANCE = 300;

	public static function header( $token, $method, $target, $body ) {
		$time = time();
		return 'key=' . self::key( $token ) . ", time=$time, hmac=" . self::hmac( $token, $method, $target, $time, $body );
	}

	public static function is_valid( $token, $header, $method, $target ) {
		if ( ! preg_match( '/^key=([0-9a-f]{16}), time=(\d{1,11}), hmac=([0-9a-f]{64})$/D', $header, $part ) ) {
			return false;
		}
		$right = self::hmac( $token, $method, $target, $part[2], '' );
		return hash_equals( self::key( $token ), $part[1] ) && hash_equals( $right, $part[3] ) && abs( time() - (int) $part[2] ) <= self::TOLERANCE;
	}

	private static function key( $token ) {
		return substr( hash( 'sha256', $token ), 0, 16 );
	}

	private static function hmac( $token, $method, $target, $time, $body ) {
		return hash_hmac( 'sha256', "$method\n$target\n$time\n$body", $token );
	}
}

/**
 * The table of changes, one row for each PHP request that writes. The row is inserted before the first write (an open mark) and
 * gets the changes at the end of the request: a process that dies in between leaves an open mark behind.
 */
final class Trellis_Log {
	const OPEN    = 0;
	const CLOSED  = 1;
	const DEAD    = 2;
	const CREATED = 9;

	/** What holds no text in double quotes. */
	const UNQUOTED = "~'(?:[^'\\\\]++|\\\\.|'')*+'|/\\*.*?\\*/|(?:--(?=\\s|$)|\\#)[^\\n]*+~s";

	/** In the place of the changes of an open mark: the request answers a read; it has written no post, term or comment yet. */
	const READ  = 'read';
	const ASIDE = ' aside';

	const KEPT_ROWS    = 10000;
	const KEPT_SECONDS = 604800;

	/** Requests that ended while another one wrote, whose changes that one looks through. */
	const MAX_MEANWHILE = 50;

	/** An open mark of an idle connection, or of a process that cannot be looked at, is given up after this many seconds. */
	const IDLE_SECONDS = 3600;

	/** Above 0 while statements of this class run: they are not content. */
	private $depth = 0;
	private $birth = null;
	/** By sequence: the check values of rows that this request has inserted. */
	private $checks = array();
	/** What the last statement has read beside its rows, see `surroundings`. */
	private $around = null;
	/** The mode of the connection, once a statement has double quotes. */
	private $mode   = null;

	/** A fatal error in a statement of this class leaves it busy: at the end of the request it is not. */
	public function reset() {
		$this->depth = 0;
	}

	public function is_busy() {
		return $this->depth > 0;
	}

	/**
	 * Whether the mode of the server makes texts or names of what is none in this file: names of double quotes, and characters of
	 * backslashes, which the client escapes as the server has told it.
	 */
	public function quotes_otherwise( $query ) {
		$connection = $GLOBALS['wpdb']->dbh;
		if ( ! $connection instanceof mysqli ) {
			return false;
		}
		if ( false !== strpos( $query, '\\' ) && '\\' === mysqli_real_escape_string( $connection, '\\' ) ) {
			return true;
		}
		if ( false === strpos( $query, '"' ) || false === strpos( (string) preg_replace( self::UNQUOTED, '', $query ), '"' ) ) {
			return false;
		}
		if ( null === $this->mode ) {
			if ( Trellis_Known_Sql::asks_last_statement( $query ) ) {
				return true;
			}
			$rows       = $this->query( 'SELECT @@SESSION.sql_mode AS mode' );
			$this->mode = $rows ? (string) $rows[0]->mode : 'ANSI_QUOTES';
		}
		return false !== strpos( $this->mode, 'ANSI_QUOTES' );
	}

	public function table() {
		return $GLOBALS['wpdb']->base_prefix . 'trellis_changes';
	}

	/**
	 * Runs one statement and returns its rows, or false when it failed. It is called in the middle of other queries, from the
	 * filter `query`: every field in which wpdb keeps the outcome of a query is put back afterwards.
	 */
	public function query( $sql, &$insert_id = 0, &$affected = 0 ) {
		global $wpdb;
		$fields = array( 'result', 'last_result', 'col_info', 'num_rows', 'rows_affected', 'insert_id', 'last_query', 'last_error', 'check_current_query', 'func_call' );
		$keep   = function ( $fields ) {
			$kept = array();
			foreach ( $fields as $field ) {
				if ( property_exists( $this, $field ) ) {
					$kept[ $field ] = $this->$field;
				}
			}
			// A query of the companion does not free the outer result, and its texts need no check of their character set.
			$this->result              = null;
			$this->check_current_query = false;
			return $kept;
		};
		$restore = function ( $kept ) {
			foreach ( $kept as $field => $value ) {
				$this->$field = $value;
			}
		};
		$kept       = Closure::bind( $keep, $wpdb, 'wpdb' )( $fields );
		$suppressed = $wpdb->suppress_errors( true );
		$this->around = null;
		++$this->depth;
		try {
			$done      = $wpdb->query( $sql );
			$rows      = false === $done || '' !== $wpdb->last_error ? false : (array) $wpdb->last_result;
			$insert_id = (int) $wpdb->insert_id;
			$affected  = (int) $wpdb->rows_affected;
			$wpdb->flush();
		} finally {
			--$this->depth;
			$wpdb->suppress_errors( $suppressed );
			Closure::bind( $restore, $wpdb, 'wpdb' )( $kept );
		}
		return $rows;
	}

	/**
	 * Inserts a row, and makes the table when there is none. Returns its sequence, or 0 when the log cannot be written. The last word of
	 * its note is a random check value: a log that is restored from a copy and written again has other rows under the same sequences.
	 */
	private function insert( $state, $site, $changes ) {
		$table = $this->table();
		$check = bin2hex( random_bytes( 8 ) );
		$note  = self::OPEN === $state ? $this->owner( $check ) : "'$check'";
		if ( self::CREATED === $state ) {
			$note = "'" . bin2hex( random_bytes( 16 ) ) . " '";
		}
		$sql   = "INSERT INTO $table (state, since, horizon, site, note, changes) VALUES ($state, " . time() . ", 0, $site, $note, '" . esc_sql( $changes ) . "')";
		if ( false === $this->query( $sql, $sequence ) ) {
			$this->create();
			// The row of the creation comes before all others.
			if ( self::CREATED !== $state ) {
				$this->birth();
			}
			if ( false === $this->query( $sql, $sequence ) ) {
				return 0;
			}
		}
		$this->checks[ $sequence ] = $check;
		return $sequence;
	}

	/** The check value of a row that this request has inserted; '' for others. */
	public function check( $sequence ) {
		return isset( $this->checks[ $sequence ] ) ? $this->checks[ $sequence ] : '';
	}

	/** The check value in a note; '' when it has none. */
	private static function check_in( $note ) {
		return preg_match( '/(?:^| )([0-9a-f]{16})$/D', (string) $note, $part ) ? $part[1] : '';
	}


	private function create() {
		global $wpdb;
		$table = $this->table();
		$this->query(
			"CREATE TABLE IF NOT EXISTS $table (
				sequence bigint(20) unsigned NOT NULL AUTO_INCREMENT,
				state tinyint(3) NOT NULL,
				since bigint(20) NOT NULL,
				horizon bigint(20) unsigned NOT NULL,
				site bigint(20) NOT NULL,
				note varchar(190) NOT NULL,
				changes mediumtext NOT NULL,
				PRIMARY KEY  (sequence),
				KEY state (state, sequence),
				KEY horizon (horizon)
			) " . $wpdb->get_charset_collate()
		);
	}

	/** The incarnation of the log and the last fingerprint that was seen, from the row that was written when the table was made. */
	public function birth() {
		if ( null !== $this->birth ) {
			return $this->birth;
		}
		$sql  = 'SELECT sequence, note FROM ' . $this->table() . ' WHERE state = ' . self::CREATED . ' ORDER BY sequence LIMIT 1';
		$rows = $this->query( $sql );
		if ( ! $rows ) {
			// Two processes may both insert one: the first counts, for both.
			$this->insert( self::CREATED, 0, '[{"kind":"all","reason":"created"}]' );
			$rows = $this->query( $sql );
			if ( ! $rows ) {
				return null;
			}
		}
		return $this->know( $rows[0]->sequence, $rows[0]->note );
	}

	/** Columns by which another statement reads the row of the creation as well, which `birth` need not do then; '' when it is known. */
	public function creation_unless_known() {
		return null === $this->birth ? ', ' . $this->creation() : '';
	}

	/** Columns by which another statement reads the surroundings of a mark as well. */
	public function around( $mark ) {
		$table = $this->table();
		return ", (SELECT MAX(sequence) FROM $table) AS newest,
				(SELECT MAX(sequence) FROM $table WHERE state = " . self::CLOSED . ") AS previous,
				(SELECT COUNT(*) FROM $table WHERE sequence > $mark) AS later,
				(SELECT COUNT(*) FROM $table WHERE state = " . self::OPEN . " AND sequence <> $mark) AS still_open,
				(SELECT COUNT(*) FROM $table WHERE horizon >= $mark) AS ended,
				" . $this->creation();
	}

	/** Keeps what another statement has read by these columns. */
	public function take( $row ) {
		$this->know( $row->created, $row->note );
		$this->around = isset( $row->newest ) ? $row : null;
	}

	/** Columns of a statement that reads more than the row of the creation. */
	private function creation() {
		$from = 'FROM ' . $this->table() . ' WHERE state = ' . self::CREATED;
		return "(SELECT MIN(sequence) $from) AS created, (SELECT note $from ORDER BY sequence LIMIT 1) AS note";
	}

	/** Keeps what the row of the creation says, for the rest of the request. */
	public function know( $sequence, $note ) {
		if ( null === $sequence || null === $note ) {
			return null;
		}
		list( $incarnation, $fingerprint ) = explode( ' ', $note . ' ' );
		$this->birth = array( 'sequence' => (int) $sequence, 'incarnation' => $incarnation, 'fingerprint' => $fingerprint );
		return $this->birth;
	}

	/** Runs a SELECT so that a proxy in front of replicas, which lag behind, asks the primary. */
	public function query_primary( $sql ) {
		return $this->query( $sql . ( $this->is_mysql() ? ' FOR UPDATE' : '' ) );
	}

	/** Whether a row is there with this check value. */
	public function has( $sequence, $check ) {
		$rows = $this->query_primary( 'SELECT note FROM ' . $this->table() . " WHERE sequence = $sequence" );
		return $rows && self::check_in( $rows[0]->note ) === $check;
	}

	/** The log was restored from a copy: the sequence numbers that gateways hold are no longer valid. Of two polls that see it, one counts. */
	public function renew() {
		$old = $this->birth();
		$new = array( 'incarnation' => bin2hex( random_bytes( 16 ) ) ) + $old;
		$this->query( 'UPDATE ' . $this->table() . " SET note = '{$new['incarnation']} {$old['fingerprint']}' WHERE sequence = {$old['sequence']} AND note LIKE '{$old['incarnation']} %'", $id, $affected );
		$this->birth = null;
		$read        = $affected > 0 ? null : $this->birth();
		// Where the row cannot be written, each poll gets another incarnation, and no gateway trusts the log.
		return $read && $read['incarnation'] !== $old['incarnation'] ? $read : $new;
	}

	/** Whether this fingerprint is another than the last: deployed code writes nothing, and may change every answer. */
	public function is_new( $fingerprint ) {
		$birth = $this->birth();
		if ( ! $birth || $birth['fingerprint'] === $fingerprint ) {
			return false;
		}
		$this->birth['fingerprint'] = $fingerprint;
		$note = $birth['incarnation'] . ' ';
		$this->query( 'UPDATE ' . $this->table() . " SET note = '$note$fingerprint' WHERE sequence = {$birth['sequence']} AND note = '$note{$birth['fingerprint']}'", $id, $affected );
		return $affected > 0 && '' !== $birth['fingerprint'];
	}

	/** Inserts an open mark. Its note is what shows later whether the process still lives; its changes, what its request does. */
	public function open( $site, $is_read, $is_aside ) {
		return $this->insert( self::OPEN, $site, ( $is_read ? self::READ : '' ) . ( $is_aside ? self::ASIDE : '' ) );
	}

	/** From now on the request of an open mark may write posts, terms or comments. */
	public function leave_aside( $mark, $is_read ) {
		$this->query( 'UPDATE ' . $this->table() . " SET changes = '" . ( $is_read ? self::READ : '' ) . "' WHERE sequence = $mark AND state = " . self::OPEN );
	}

	/** Whether all other requests that wrote while this mark was open have written nothing but what has no states, up to now. */
	public function is_alone_with_objects( $mark ) {
		$rows = $mark > 0 ? $this->query( 'SELECT state, changes FROM ' . $this->table() . " WHERE (sequence > $mark OR horizon >= $mark OR state = " . self::OPEN . ") AND sequence <> $mark LIMIT " . ( self::MAX_MEANWHILE + 1 ) ) : false;
		if ( ! is_array( $rows ) || count( $rows ) > self::MAX_MEANWHILE ) {
			return false;
		}
		foreach ( $rows as $row ) {
			$is_aside = self::OPEN === (int) $row->state ? self::ASIDE === substr( $row->changes, -strlen( self::ASIDE ) ) : self::CLOSED === (int) $row->state && Trellis_Changes::are_aside( json_decode( $row->changes ) );
			if ( ! $is_aside ) {
				return false;
			}
		}
		return true;
	}

	public function append( $site, $changes ) {
		return $this->insert( self::CLOSED, $site, $changes );
	}

	/** Closes a mark with its changes; when the mark is lost (rolled back, or given up as dead) a new row takes them. */
	public function close( $mark, $site, $changes, $newest ) {
		if ( $mark > 0 ) {
			$sql = 'UPDATE ' . $this->table() . ' SET state = ' . self::CLOSED . ", horizon = $newest, site = $site, changes = '" . esc_sql( $changes ) . "' WHERE sequence = $mark AND state = " . self::OPEN;
			if ( false !== $this->query( $sql, $id, $affected ) && $affected > 0 ) {
				return $mark;
			}
		}
		$sequence = '[]' === $changes ? 0 : $this->append( $site, $changes );
		return $sequence > 0 ? $sequence : $mark;
	}

	/**
	 * The newest sequence, the newest closed one, and whether any other request wrote while this mark was open. A row that closed
	 * has in `horizon` the newest sequence of that time: when it is not below this mark, both were open at once. The last statement
	 * may have read it, together with the last state of what has changed: a statement sees all tables as of one moment.
	 */
	public function surroundings( $mark ) {
		if ( null === $this->around ) {
			$rows = $this->query( 'SELECT 1' . $this->around( $mark ) );
			if ( ! $rows ) {
				return array( 'newest' => 0, 'previous' => 0, 'alone' => false );
			}
			$this->take( $rows[0] );
		}
		$row = $this->around;
		// A request without a mark cannot decide this.
		$alone = $mark > 0 && 0 === $row->later + $row->still_open + $row->ended;
		return array( 'newest' => (int) $row->newest, 'previous' => (int) $row->previous, 'alone' => $alone );
	}

	/** The changes of requests that ended while this mark was open, as JSON; null when they are too many, or cannot be read. */
	public function meanwhile( $mark ) {
		$rows = $this->query( 'SELECT changes FROM ' . $this->table() . ' WHERE state = ' . self::CLOSED . " AND horizon >= $mark AND sequence <> $mark LIMIT " . ( self::MAX_MEANWHILE + 1 ) );
		return is_array( $rows ) && count( $rows ) <= self::MAX_MEANWHILE ? array_column( $rows, 'changes' ) : null;
	}

	public function prune( $newest ) {
		$old = time() - self::KEPT_SECONDS;
		$this->query( 'DELETE FROM ' . $this->table() . ' WHERE state IN (' . self::CLOSED . ', ' . self::DEAD . ") AND sequence < $newest AND (sequence < " . ( $newest - self::KEPT_ROWS ) . " OR since < $old)" );
	}

	/**
	 * Rows after a sequence, and all open ones; of those the dead are marked first. Null when the log cannot be read, or has no row of its
	 * creation. `known` is the check value of the row with that sequence.
	 */
	public function rows_after( $sequence, $max_rows, $max_bytes, $known = 0 ) {
		$table = $this->table();
		$ends  = $this->query( "SELECT (SELECT MAX(sequence) FROM $table) AS newest, (SELECT MIN(sequence) FROM $table) AS lowest, (SELECT sequence FROM $table ORDER BY sequence LIMIT 1 OFFSET 1) AS second, (SELECT note FROM $table WHERE sequence = $known) AS known, " . $this->creation() );
		$heads = $this->query( "SELECT sequence, state, since, site, note, LENGTH(changes) AS size FROM $table WHERE sequence > $sequence OR state = " . self::OPEN . ' ORDER BY sequence LIMIT ' . ( $max_rows + 1 ) );
		if ( false === $heads || ! $ends || ! $this->know( $ends[0]->created, $ends[0]->note ) ) {
			return null;
		}
		$more  = count( $heads ) > $max_rows;
		$heads = array_slice( $heads, 0, $max_rows );
		$bytes = 0;
		$taken = array();
		foreach ( $heads as $head ) {
			$bytes += 100 + $head->size;
			if ( $bytes > $max_bytes && $taken ) {
				$more = true;
				break;
			}
			$taken[ (int) $head->sequence ] = $head;
		}
		$this->bury( $taken );
		$texts = array();
		if ( $taken ) {
			foreach ( (array) $this->query( "SELECT sequence, changes FROM $table WHERE sequence IN (" . implode( ',', array_keys( $taken ) ) . ')' ) as $row ) {
				$texts[ (int) $row->sequence ] = $row->changes;
			}
		}
		$rows = array();
		foreach ( $taken as $number => $head ) {
			$row = array( 'sequence' => $number, 'check' => self::check_in( $head->note ), 'site' => (int) $head->site );
			if ( self::OPEN === (int) $head->state ) {
				$row += array( 'state' => 'open', 'since' => (int) $head->since );
				$row += isset( $texts[ $number ] ) && 0 === strpos( $texts[ $number ], self::READ ) ? array( 'reads' => true ) : array();
			} elseif ( self::DEAD === (int) $head->state ) {
				$row += array( 'state' => 'dead' );
			} else {
				$changes = json_decode( isset( $texts[ $number ] ) ? $texts[ $number ] : '' );
				// A row that cannot be read says that anything may have changed.
				$row += is_array( $changes ) ? array( 'state' => 'closed', 'changes' => $changes ) : array( 'state' => 'dead' );
			}
			$rows[] = $row;
		}
		$lowest = (int) $ends[0]->lowest;
		$second = (int) $ends[0]->second;
		// The row of the creation stays when those behind it are deleted.
		$first = $second > $lowest + 1 && (int) $ends[0]->created === $lowest ? $second : $lowest;
		return array( 'first' => max( 1, $first ), 'last' => (int) $ends[0]->newest, 'rows' => $rows, 'more' => $more, 'known' => self::check_in( $ends[0]->known ) );
	}

	/** Marks the open rows whose process is gone as dead. */
	private function bury( $heads ) {
		$open = array_filter(
			$heads,
			function ( $head ) {
				return self::OPEN === (int) $head->state;
			}
		);
		foreach ( $open && $this->is_mysql() ? $this->without_connection( $open ) : array_filter( $open, array( $this, 'is_process_gone' ) ) as $head ) {
			$this->query( 'UPDATE ' . $this->table() . ' SET state = ' . self::DEAD . " WHERE sequence = {$head->sequence} AND state = " . self::OPEN, $id, $affected );
			// Otherwise it closed a moment ago: the next poll has its changes.
			$head->state = $affected > 0 ? self::DEAD : self::OPEN;
		}
	}

	/** Of the last INSERT on this connection, also when wpdb has forgotten it; 0 when unknown. */
	public function last_insert_id( $may_ask = true ) {
		global $wpdb;
		if ( ! $this->is_mysql() ) {
			return 0;
		}
		// The client library knows it until the next statement.
		$id   = $wpdb->dbh instanceof mysqli ? (int) mysqli_insert_id( $wpdb->dbh ) : 0;
		$rows = 0 === $id && $may_ask ? $this->query( 'SELECT LAST_INSERT_ID() AS id' ) : array();
		return $rows ? (int) $rows[0]->id : $id;
	}

	public function restore_insert_id( $id ) {
		if ( null !== $id && $this->is_mysql() ) {
			$this->query( "SELECT LAST_INSERT_ID($id)" );
		}
	}

	private function is_mysql() {
		global $wpdb;
		return ! empty( $wpdb->is_mysql ) && ! ( class_exists( 'WP_SQLite_DB', false ) && $wpdb instanceof WP_SQLite_DB );
	}

	/** As SQL: the database connection of this process, or the process itself where the database is a file; and the check value. */
	private function owner( $check ) {
		if ( $this->is_mysql() ) {
			return "CONCAT('c ', CONNECTION_ID(), ' ', @@hostname, ':', @@port, ' $check')";
		}
		$process = function_exists( 'getmypid' ) ? (int) getmypid() : 0;
		return "'" . esc_sql( 'p ' . $process . ' ' . $this->started( $process ) . ' ' . PHP_SAPI . ' ' . php_uname( 'n' ) . " $check" ) . "'";
	}

	/** When a process began, in the kernel's count; '' when it is gone or cannot be looked at. */
	private function started( $process ) {
		$stat = @file_get_contents( "/proc/$process/stat" );
		// The second field, a name in parentheses, may hold spaces.
		$fields = is_string( $stat ) ? explode( ' ', substr( $stat, (int) strrpos( $stat, ')' ) + 2 ) ) : array();
		return isset( $fields[19] ) ? $fields[19] : '';
	}

	private function is_process_gone( $head ) {
		list( , $process, $started, $sapi, $host ) = explode( ' ', $head->note . '    ', 6 );
		$age = time() - $head->since;
		if ( php_uname( 'n' ) !== $host || '' === $started || '' === $this->started( getmypid() ) ) {
			return $age > $this->patience();
		}
		// A worker of a web server lives on after a request that could not close its mark.
		return $this->started( (int) $process ) !== $started || ( 'cli' !== $sapi && $age > $this->patience() );
	}

	/** Connections end with their process, at once; a busy one is waited for. */
	private function without_connection( $open ) {
		$own  = $this->query( "SELECT CONCAT(@@hostname, ':', @@port) AS server" );
		$list = $this->query( 'SHOW PROCESSLIST' );
		if ( ! $own || false === $list ) {
			return array();
		}
		$idle = array();
		foreach ( $list as $one ) {
			$idle[ (int) $one->Id ] = 'Sleep' === $one->Command ? (int) $one->Time : 0;
		}
		return array_filter(
			$open,
			function ( $head ) use ( $own, $idle ) {
				list( $kind, $connection, $server ) = explode( ' ', $head->note . '  ', 4 );
				if ( 'c' !== $kind || $server !== $own[0]->server ) {
					return time() - $head->since > $this->patience();
				}
				return ! isset( $idle[ (int) $connection ] ) || $idle[ (int) $connection ] > self::IDLE_SECONDS;
			}
		);
	}

	private function patience() {
		$limit = (int) ini_get( 'max_execution_time' );
		return $limit > 0 ? max( 60, 2 * $limit ) : self::IDLE_SECONDS;
	}
}

/**
 * What neither the schema nor a statement says: all that the companion knows of tables of plugins by their names. Each row has its reason.
 * A table that is not here is learned from its columns and from what is asked and written, and every change of it counts. Tasks, logs and
 * carts are what they are in each version; how a plugin uses a table holds for the version that was tested, see `Trellis_Known_Code`.
 */
final class Trellis_Known_Tables {
	/** No response shows them. */
	const HIDDEN = array(
		'actionscheduler_actions' => 'Action Scheduler: tasks to be run, which only screens of the administration list',
		'actionscheduler_claims'  => 'Action Scheduler: which process runs a task',
		'actionscheduler_groups'  => 'Action Scheduler: names of groups of tasks',
		'actionscheduler_logs'    => 'Action Scheduler: when tasks were run',
		'registration_log'        => 'a network: addresses from which blogs were registered',
		'signups'                 => 'a network: registrations that are not confirmed',
		'woocommerce_log'         => 'WooCommerce: messages for the administrator',
	);

	/** Each visitor is shown his own rows, and nobody those of others. */
	const OWN = array( 'woocommerce_sessions' => 'WooCommerce: the cart of a visitor, by his cookie or token' );

	/**
	 * A request that looks for a row in vain makes it of contents, and its response shows what it has made. That cannot be learned: a counter
	 * begins in the same way, and its first response does not show the row.
	 */
	const MEMOIZED = array(
		'yoast_indexable'           => array( 'wordpress-seo', 'titles, addresses and robots of an object, made when it is shown first' ),
		'yoast_indexable_hierarchy' => array( 'wordpress-seo', 'ancestors of an object, made with them' ),
	);

	/** Columns that no response shows, though a statement asks for all. A response whose statement names one depends on the whole table. */
	const UNSHOWN = array(
		// Yoast SEO writes them in the rows of author, terms and home page when a post has changed, and reads them in its sitemaps by name.
		'yoast_indexable' => array( 'wordpress-seo', array( 'object_last_modified', 'updated_at' ) ),
	);

	/** The name under which a table is known, however a statement writes it: some databases tell no case apart, and elsewhere too much changes. */
	public static function known_name( $text ) {
		return strtolower( trim( $text ) );
	}

	public static function is_hidden( $table ) {
		return isset( self::HIDDEN[ $table ] ) || self::is_own( $table );
	}

	public static function is_shown( $table ) {
		return ! self::is_hidden( $table );
	}

	public static function is_own( $table ) {
		return isset( self::OWN[ $table ] );
	}

	public static function is_memoized( $table ) {
		return isset( self::MEMOIZED[ $table ] ) && Trellis_Known_Code::is_tested( self::MEMOIZED[ $table ][0] );
	}

	public static function unshown_columns( $table ) {
		return isset( self::UNSHOWN[ $table ] ) && Trellis_Known_Code::is_tested( self::UNSHOWN[ $table ][0] ) ? self::UNSHOWN[ $table ][1] : array();
	}
}

/**
 * What no hook tells: all that the companion knows of code by its names. Each row has its reason. What other plugins hook to a plugin of
 * this list counts as any other code, and so does a version of it that was not tested: a newer one may show more.
 */
final class Trellis_Known_Code {
	/** By the folder of a plugin: the constant with its version, and the version whose code was read and tested, with all that mend it (6.8.2). */
	const TESTED = array(
		'advanced-custom-fields' => array( 'ACF_VERSION', '6.8' ),
		'cart-rest-api-for-woocommerce' => array( 'COCART_VERSION', '4.4' ),
		'pods'                   => array( 'PODS_VERSION', '3.3' ),
		'polylang'               => array( 'POLYLANG_VERSION', '3.8' ),
		'secure-custom-fields'   => array( 'ACF_VERSION', '6.4' ),
		'woocommerce'            => array( 'WC_VERSION', '10.5' ),
		'wp-graphql'             => array( 'WPGRAPHQL_VERSION', '2.20' ),
		'wordpress-seo'          => array( 'WPSEO_VERSION', '28.3' ),
	);

	/** Who asks how many posts an author has, to whom it matters only whether there is one: the plugin, '' for WordPress. */
	const ASKS_FOR_AUTHOR = array(
		// Visitors see authors with a published post.
		'WP_REST_Users_Controller::get_item_permissions_check' => '',
		// Search engines see them.
		'Yoast\WP\SEO\Presentations\Indexable_Author_Archive_Presentation::generate_robots' => 'wordpress-seo',
	);

	/** Yoast SEO asks by this. */
	const COUNTS_POSTS = 'Yoast\WP\SEO\Helpers\User_Helper::count_posts';

	/**
	 * Classes and functions that add to posts, users and comments, and show of no term how many posts it has; with the names of hooks by
	 * which other code may change what they add.
	 */
	const COUNTLESS = array(
		// Yoast SEO: titles, links and structured data, with names of terms; it takes its meta from visitors and changes addresses of terms.
		'Yoast\WP\SEO\Routes\Yoast_Head_REST_Field'      => '/^(?:wpseo|yoast)/i',
		'WPSEO_Meta'                                     => '/^(?:wpseo|yoast)/i',
		'WPSEO_Rewrite'                                  => '/^(?:wpseo|yoast)/i',
		// The category in the address of a post.
		'Yoast\WP\SEO\Integrations\Primary_Category'    => '/^(?:wpseo|yoast)/i',
		// ACF and Secure Custom Fields: values of fields as they are stored, see `shows_stored_values`; links to what they name.
		'ACF_Rest_Api'                                   => '/^acf/i',
		'ACF_Rest_Embed_Links'                           => '/^acf/i',
		// WooCommerce: titles of its own pages, classes of products, numbers of products of its own terms, settings of the user's screens,
		// sizes of images, its own blocks.
		'wc_page_endpoint_title'                         => '/woocommerce/i',
		'wc_product_post_class'                          => '/woocommerce/i',
		'wc_change_term_counts'                          => '/woocommerce/i',
		'WC_REST_Authentication'                         => '/woocommerce/i',
		'WC_Regenerate_Images'                           => '/woocommerce/i',
		'Automattic\WooCommerce\Internal\Admin\WCAdminUser' => '/woocommerce/i',
		'Automattic\WooCommerce\StoreApi\Authentication' => '/woocommerce/i',
		'Automattic\WooCommerce\Blocks\\'                => '/woocommerce/i',
		// Addresses of products, with slugs of their terms; of their files and variations; https; a block of brands in the template of a product.
		'wc_product_post_type_link'                      => '/woocommerce|^wc_product_post_type_link/i',
		'wc_fix_product_attachment_link'                 => '/woocommerce/i',
		'WC_Brands'                                      => '/woocommerce/i',
		'WC_HTTPS'                                       => '/woocommerce/i',
		'WC_Post_Data'                                   => '/woocommerce/i',
		// Polylang: the slug of the language in addresses.
		'PLL_Filters_Links'                              => '/^pll_/i',
		'PLL_Static_Pages'                               => '/^pll_/i',
		// Pods: the face of a user, from a field with a file.
		'PodsField_Avatar'                               => '/^pods/i',
	);

	/** Those of them that name terms in their texts; of all others a response shows terms by their ids and slugs, in the order of their names. */
	const NAMING = array( 'Yoast\WP\SEO\Routes\Yoast_Head_REST_Field', 'WPSEO_Meta' );

	/** Taxonomies that each response looks for, to know its template or its language, and of whose terms none shows how many posts they have. */
	const LOOKED_FOR = array(
		'wp_theme'      => '',
		'language'      => 'polylang',
		'term_language' => 'polylang',
	);

	/** Methods and functions that return what they get, nothing that a response shows, or the slug of a term that it names, and the plugin of each. */
	const HANDING_ON = array(
		// CoCart forbids to store responses, keeps sessions of its own, and lets WooCommerce log in who asks for its routes.
		'CoCart_REST_API::send_cache_control'                           => 'cart-rest-api-for-woocommerce',
		'CoCart_REST_API::cache_control'                                => 'cart-rest-api-for-woocommerce',
		'CoCart::session_handler'                                       => 'cart-rest-api-for-woocommerce',
		'CoCart_WooCommerce::allow_cocart_requests_wc'                  => 'cart-rest-api-for-woocommerce',
		// Polylang reads the languages of terms, and notes the request.
		'PLL_Translated_Term::_prime_terms_cache'                       => 'polylang',
		'WP_Syntex\Polylang\REST\Request::save_request'                 => 'polylang',
		'WP_Syntex\Polylang\REST\Request::reset_request'                => 'polylang',
		// It cleans what is written, and puts the slug of the language of a post into its address, see `pll_post_type_link`.
		'PLL_REST_Request::set_filters_sanitization'                    => 'polylang',
		'PLL_Filters_Links::post_type_link'                             => 'polylang',
		'PLL_Filters_Links::_get_page_link'                             => 'polylang',
		'PLL_Filters_Links::attachment_link'                            => 'polylang',
		// Pods adds its templates to the types that the settings of Polylang list.
		'Pods\Integrations\Polylang::pll_get_post_types'              => 'pods',
		// Secure Custom Fields notes whether scripts of media are to be loaded.
		'acf_set_after_rest_media_enqueue_reset_flag'                   => 'secure-custom-fields',
		'acf_reset_media_enqueue_after_rest'                            => 'secure-custom-fields',
		// Yoast SEO notes which pages are next to each other.
		'Yoast\WP\SEO\Integrations\Front_End_Integration::query_loop_next_prev' => 'wordpress-seo',
		// WPGraphQL shows meta of previews, in its own requests alone.
		'WPGraphQL\Utils\Preview::filter_post_meta_for_previews'        => 'wp-graphql',
	);

	/**
	 * Temporary values that who writes them has made of contents, and shows: WooCommerce keeps lists of products under a version, and
	 * makes one again when it has another.
	 */
	const REMADE = '/^_transient_wc_(?:blocks_query|product_loop)_/';

	/** Temporary values that say beside other things how many posts terms of a plugin have, and the plugin of each. */
	const COUNTING = array( '_transient_pll_languages_list' => 'polylang' );

	/** Those of them whose values can be told apart from the numbers. */
	public static function counting_options() {
		return array_keys( array_filter( self::COUNTING, array( __CLASS__, 'is_tested' ) ) );
	}

	/** What such a value says without the numbers, and the numbers by taxonomy and term; null when it is not understood. */
	public static function counts_in( $value ) {
		$languages = is_string( $value ) ? @unserialize( $value, array( 'allowed_classes' => false ) ) : null;
		if ( ! is_array( $languages ) ) {
			return null;
		}
		$counts = array();
		foreach ( $languages as $at => $language ) {
			if ( ! isset( $language['term_props'] ) || ! is_array( $language['term_props'] ) ) {
				return null;
			}
			foreach ( $language['term_props'] as $taxonomy => $term ) {
				if ( ! isset( $term['term_id'], $term['count'] ) || ! is_int( $term['term_id'] ) || ! is_int( $term['count'] ) ) {
					return null;
				}
				$counts[ $taxonomy ][ $term['term_id'] ] = $term['count'];
				unset( $languages[ $at ]['term_props'][ $taxonomy ]['count'] );
			}
		}
		return array( serialize( $languages ), $counts );
	}

	/** The function of a callback, or the class that it belongs to, also that of a closure; '' when it has none. */
	public static function owner_of( $callback ) {
		if ( $callback instanceof Closure ) {
			$class = ( new ReflectionFunction( $callback ) )->getClosureScopeClass();
			return $class ? $class->getName() : '';
		}
		if ( is_array( $callback ) ) {
			return is_object( $callback[0] ) ? get_class( $callback[0] ) : (string) $callback[0];
		}
		return is_string( $callback ) ? explode( '::', $callback )[0] : '';
	}

	/** Whether all that is known of a plugin holds for the version that runs; '' is WordPress itself. */
	public static function is_tested( $plugin ) {
		if ( '' === $plugin ) {
			return true;
		}
		list( $constant, $version ) = isset( self::TESTED[ $plugin ] ) ? self::TESTED[ $plugin ] : array( '', '' );
		return '' !== $constant && defined( $constant ) && 0 === strpos( constant( $constant ) . '.', "$version." );
	}

	/** Active plugins of this list in versions that were not tested, of which nothing here holds: `woocommerce 10.6.1`. */
	public static function untested() {
		$names = array();
		foreach ( (array) get_option( 'active_plugins', array() ) as $file ) {
			$plugin = (string) strtok( (string) $file, '/' );
			if ( isset( self::TESTED[ $plugin ] ) && defined( self::TESTED[ $plugin ][0] ) && ! self::is_tested( $plugin ) ) {
				$names[] = $plugin . ' ' . constant( self::TESTED[ $plugin ][0] );
			}
		}
		return $names;
	}

	/** The name under which a callback is listed: its own, or that of its namespace; '' for none. */
	private static function listed_name( $callback ) {
		$owner = self::owner_of( $callback );
		foreach ( array_keys( self::COUNTLESS ) as $name ) {
			if ( $name === $owner || '\\' === substr( $name, -1 ) && 0 === strpos( $owner, $name ) ) {
				return $name;
			}
		}
		return '';
	}

	/** Hooks by which other code changes what a callback of a plugin adds; '' when it may show numbers of posts, or names of terms where it must not. */
	public static function hooks_beside( $callback, $plugin, $may_name ) {
		$name     = self::listed_name( $callback );
		$is_known = '' !== $name && '' !== $plugin && self::is_tested( $plugin ) && ( $may_name || ! in_array( $name, self::NAMING, true ) );
		return $is_known && ( 'ACF_Rest_Api' !== $name || self::shows_stored_values() ) ? self::COUNTLESS[ $name ] : '';
	}

	/** The plugin of a callback that adds nothing to a response; '' for any other callback. */
	public static function hands_on( $callback ) {
		$method = is_array( $callback ) ? $callback[1] : ( $callback instanceof Closure ? ( new ReflectionFunction( $callback ) )->getName() : '' );
		$name   = self::owner_of( $callback ) . ( '' === $method ? '' : "::$method" );
		$plugin = isset( self::HANDING_ON[ $name ] ) ? self::HANDING_ON[ $name ] : '';
		return self::is_tested( $plugin ) ? $plugin : '';
	}

	public static function asks_for_author( $name ) {
		return isset( self::ASKS_FOR_AUTHOR[ $name ] ) && self::is_tested( self::ASKS_FOR_AUTHOR[ $name ] );
	}

	/** Whether who lists terms, `t:category`, may show how many posts they have. */
	public static function may_count( $list ) {
		$taxonomy = substr( $list, 2 );
		return ! isset( self::LOOKED_FOR[ $taxonomy ] ) || ! self::is_tested( self::LOOKED_FOR[ $taxonomy ] );
	}

	/** Whether terms of a taxonomy are looked for, and no route of WordPress shows them. */
	public static function is_looked_for( $taxonomy ) {
		$known = get_taxonomy( $taxonomy );
		return isset( self::LOOKED_FOR[ $taxonomy ] ) && self::is_tested( self::LOOKED_FOR[ $taxonomy ] ) && $known && ! $known->show_in_rest;
	}

	public static function is_remade( $name ) {
		return self::is_tested( 'woocommerce' ) && preg_match( self::REMADE, $name );
	}

	/** What a callback calls without a hook, and other code may register: variables of titles of Yoast SEO, types of fields of ACF. Null when unknown. */
	public static function registered_with( $callback ) {
		try {
			switch ( self::owner_of( $callback ) ) {
				case 'Yoast\WP\SEO\Routes\Yoast_Head_REST_Field':
					$variables = Closure::bind(
						function () {
							return static::$external_replacements;
						},
						null,
						'WPSEO_Replace_Vars'
					);
					return array_filter( $variables(), 'is_callable' );
				case 'ACF_Rest_Api':
					$formats = array();
					foreach ( acf()->fields->get_field_types() as $type ) {
						$formats[] = array( $type, 'format_value_for_rest' );
					}
					return array_filter( $formats, 'is_callable' );
				default:
					return array();
			}
		} catch ( Throwable $error ) {
			return null;
		}
	}

	/** ACF shows whole terms, with their numbers, in its other format. */
	private static function shows_stored_values() {
		return empty( $_GET['acf_format'] ) && function_exists( 'acf_get_setting' ) && 'light' === acf_get_setting( 'rest_api_format' );
	}
}

/**
 * What SQL may be written with, so that its text names all that it reads and writes. A function that is not among these may be stored in
 * the database, and read and write tables that no statement names; or it tells of this connection, as a variable does.
 */
final class Trellis_Known_Sql {
	/** Their values are made of their arguments alone, but for the clock, chance, and what stays as it is. */
	const FUNCTIONS = 'count sum min max avg group_concat std stddev stddev_pop stddev_samp variance var_pop var_samp bit_and bit_or bit_xor any_value '
		. 'concat concat_ws substring substr substring_index mid left right length octet_length bit_length char_length character_length lower upper lcase ucase trim ltrim rtrim replace lpad rpad locate position instr field find_in_set elt format hex unhex repeat reverse strcmp ascii ord char space soundex quote make_set export_set bin oct regexp_replace regexp_substr regexp_instr regexp_like natural_sort_key '
		. 'md5 sha sha1 sha2 crc32 to_base64 from_base64 inet_aton inet_ntoa inet6_aton inet6_ntoa '
		. 'abs ceil ceiling floor round truncate mod pow power sqrt sign greatest least exp ln log log2 log10 sin cos tan cot acos asin atan atan2 radians degrees pi conv '
		. 'if ifnull nullif nvl nvl2 coalesce isnull cast convert binary match against '
		. 'date time timestamp year month day dayofmonth dayofweek dayofyear dayname monthname weekday week weekofyear yearweek quarter hour minute second microsecond date_format time_format get_format date_add date_sub adddate subdate addtime subtime datediff timediff timestampdiff timestampadd period_add period_diff to_days to_seconds from_days from_unixtime unix_timestamp str_to_date makedate maketime last_day extract time_to_sec sec_to_time convert_tz '
		. 'now curdate curtime sysdate current_date current_time current_timestamp localtime localtimestamp utc_date utc_time utc_timestamp rand uuid '
		. 'json_extract json_unquote json_quote json_contains json_contains_path json_search json_length json_depth json_keys json_type json_valid json_value json_query json_exists json_object json_array json_arrayagg json_objectagg json_overlaps '
		. 'row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value over '
		. 'point st_distance st_distance_sphere st_geomfromtext st_geometryfromtext st_pointfromtext st_x st_y st_within st_contains st_intersects st_astext st_srid mbrcontains mbrwithin '
		. 'found_rows database schema version';

	/** Other words before a parenthesis. */
	const WORDS = 'in and or not xor on where from join straight_join using select distinct all any some exists union except intersect as by then when else case like rlike regexp is between having limit interval div index key values value set decimal numeric varchar signed unsigned integer datetime partition escape';

	/** What finds something else each time: the clock of the database, and chance. */
	const CHANGING = '/\b(?:(?:CURRENT_|LOCAL|UTC_)(?:DATE|TIME|TIMESTAMP)\b|(?:NOW|CURDATE|CURTIME|SYSDATE|RAND|UUID)\s*\(|UNIX_TIMESTAMP\s*\(\s*\))/i';

	/** Schemas whose tables the database writes itself. */
	const OF_DATABASE = '/\b(?:information_schema|performance_schema|mysql|sys)\s*\.|\bVALUE\s+FOR\b/i';

	/** What the database says of itself, and changes by statements that define tables alone: no numbers of rows, and nothing by conditions. */
	const DEFINITIONS = '/^(?!.*\b(?:WHERE|SELECT)\b)(?:SHOW\s+(?:(?:FULL|EXTENDED|GLOBAL|SESSION)\s+)*(?:TABLES|COLUMNS|FIELDS|CREATE(?!\s+TABLE)|VARIABLES(?=\s+LIKE\s*\')|DATABASES|COLLATION|CHARACTER|ENGINES|GRANTS|WARNINGS|ERRORS)\b|(?:DESCRIBE|DESC)\s+[`\w.]+\s*(?:;|$))/is';

	/** What stands before the columns of an INSERT: the table is no function. */
	const INSERTED_COLUMNS = '/^(?:INSERT|REPLACE)\s+(?:(?:LOW_PRIORITY|DELAYED|HIGH_PRIORITY|IGNORE)\s+)*+(?:INTO\s+)?' . Trellis_Changes::NAME . '\s*\(/i';

	/** Words that part a statement. A name in quotes is none of them, and gets a mark. */
	const CLAUSE = '/^(?:select|distinct|all|any|some|exists|union|except|intersect|minus|as|from|where|join|straight_join|natural|inner|cross|left|right|full|outer|on|using|use|force|ignore|partition|group|order|by|having|limit|for|lock|window|procedure|into|and|or|xor|not|in|is|null|like|between|case|when|then|else|end|div|set|values|table|update|delete|insert|replace|asc|desc|regexp|rlike|interval)$/iD';

	/** What the server reads as another character, or as two, than the one behind the backslash. */
	const ESCAPES = array( '\\\\' => '\\\\', '\\0' => "\0", '\\b' => "\x08", '\\n' => "\n", '\\r' => "\r", '\\t' => "\t", '\\Z' => "\x1a", '\\%' => '\\\\%', '\\_' => '\\\\_' );

	/** Quoted texts, and comments that are none of a statement. */
	const QUOTED = '~' . Trellis_Changes::STRING . '|/\*(?!M?!).*?\*/|(?:--(?=\s|$)|\#)[^\n]*+~s';

	/** Comments whose text the server runs. */
	const VERSIONED = '~' . Trellis_Changes::STRING . '|/\*M?!\d*+((?:' . Trellis_Changes::STRING . '|(?!\*/).)*+)\*/~s';

	/** Longer statements are looked at without their texts, in which calls may stand by the million. */
	const LONG_STATEMENT = 65536;

	/** Functions that tell of this connection. The database takes them before stored ones of these names. */
	const OF_CONNECTION = array( 'last_insert_id', 'row_count', 'connection_id', 'get_lock', 'release_lock', 'release_all_locks', 'is_free_lock', 'is_used_lock', 'user', 'current_user', 'session_user', 'system_user', 'current_role', 'sleep', 'benchmark', 'lastval', 'uuid_short' );

	/** What the statement right before has left in the connection: another one in between would change it. */
	const LEFT_BY_LAST = '/\b(?:FOUND_ROWS|ROW_COUNT|DIAGNOSTICS)\b|@@|\bSHOW\b[^;\']{0,40}\b(?:WARNINGS|ERRORS)\b/i';

	/** A SELECT without comments, names apart from their dots, what the connection knows, sequences, and calls but to count. */
	const PLAIN = '~^\s*+SELECT\s(?:[^(/\-\#@.v]++|\((?<=\sIN \(|\sOR \(|\sAND \(|\sWHERE \(|\sON \(|\sCOUNT\(|\(\(|\( \()|/(?!\*)|-(?!-)|@(?!@)|\.(?!\s)|v(?!alue\s+for\b))*+$~iD';

	private static $known = null;

	/** Whether a statement asks for something that another statement may change. */
	public static function asks_last_statement( $sql ) {
		return self::has( self::LEFT_BY_LAST, $sql );
	}

	/** Whether a statement does nothing but read rows, and what it calls is known: so are most. */
	public static function is_plain( $sql ) {
		return 1 === preg_match( self::PLAIN, $sql );
	}

	/** Whether a statement has such a text outside of its quoted ones. */
	private static function has( $pattern, $sql ) {
		return preg_match( $pattern, $sql ) && preg_match( $pattern, (string) preg_replace( self::QUOTED, ' ', $sql ) );
	}

	/** Whether a statement changes what no table has: a sequence, or what the statements inside of another one write. */
	public static function writes_unnamed( $verb, $sql ) {
		return 'BEGIN' === $verb && ! preg_match( '/^BEGIN(?:\s+WORK)?\s*;?\s*$/iD', $sql )
			|| 'ANALYZE' === $verb && ! preg_match( '/^ANALYZE\s+(?:(?:LOCAL|NO_WRITE_TO_BINLOG)\s+)?TABLES?\b/i', $sql )
			|| in_array( $verb, array( 'EXPLAIN', 'DESCRIBE', 'DESC' ), true ) && preg_match( '/^\w+\s+ANALYZE\b.*\b(?:INSERT|REPLACE|UPDATE|DELETE)\b/is', $sql )
			|| self::has( '/\bVALUE\s+FOR\b|\b(?:NEXTVAL|SETVAL)\s*\(/i', $sql );
	}

	/**
	 * A statement without comments, and with a number in the place of each quoted text, so that nothing in one is taken for a part of it.
	 * Null where the server runs what stands in a comment.
	 */
	public static function bare( $query, &$strings ) {
		$strings = array();
		$sql     = preg_replace_callback(
			'~' . Trellis_Changes::STRING . '|`[^`]*+`(?=((?:\s|/\*.*?\*/|(?:--|\#)[^\n]*+\n)*+\()?)|/\*(?!M?!).*?\*/|(?:--(?=\s|$)|\#)[^\n]*+~s',
			function ( $found ) use ( &$strings ) {
				$sign = $found[0][0];
				if ( '`' === $sign ) {
					$name = substr( $found[0], 1, -1 );
					// What is left in its quotes is not known.
					return ! preg_match( '/^\w+$/D', $name ) || isset( $found[1] ) && '' !== $found[1] ? $found[0] : ( preg_match( self::CLAUSE, $name ) ? "{$name}_" : $name );
				}
				if ( "'" !== $sign && '"' !== $sign ) {
					return ' ';
				}
				$strings[] = stripslashes( strtr( str_replace( $sign . $sign, $sign, substr( $found[0], 1, -1 ) ), self::ESCAPES ) );
				return "'" . ( count( $strings ) - 1 ) . "'";
			},
			$query
		);
		return null === $sql || false !== strpos( $sql, '/*' ) ? null : rtrim( $sql, "; \t\r\n" );
	}

	/** Functions that a bare text calls, and that are not known, in lower case. */
	public static function unknown_calls( $sql ) {
		if ( false === strpos( $sql, '(' ) ) {
			return array();
		}
		if ( null === self::$known ) {
			$words       = explode( ' ', self::FUNCTIONS . ' ' . self::WORDS );
			self::$known = array_fill_keys( array_merge( $words, array_map( 'strtoupper', $words ) ), true );
		}
		preg_match_all( '/((?:\.\s*+)?[\w$.`\x80-\xff]++)\s*+\(/', $sql, $found );
		$unknown = array();
		foreach ( $found[1] as $name ) {
			if ( ! isset( self::$known[ $name ] ) && ! isset( self::$known[ strtolower( $name ) ] ) ) {
				$unknown[ strtolower( $name ) ] = true;
			}
		}
		return $unknown;
	}

	/** Whether a bare SELECT is made of names, values, operators and functions that are known, and reads what statements have written. */
	public static function is_known( $sql ) {
		return preg_match( "/^(?:[\w\s.,()=<>!+\-*\/%&|^~:;?]++|'\d+')*+$/D", $sql ) && ! preg_match( self::OF_DATABASE, $sql ) && ! self::unknown_calls( $sql );
	}

	/** Whether a SET may change what quotes mean: by one of the modes, or by a value that its text does not show. */
	public static function sets_quotes( $sql ) {
		$rest = false === stripos( $sql, 'sql_mode' ) ? '' : preg_replace( array( '/' . Trellis_Changes::STRING . '/s', '/@@(?:\w+\s*\.\s*)?sql_mode\b/i' ), array( '?', '' ), $sql );
		return '' !== $rest && preg_match( '/ANSI|NO_BACKSLASH|ORACLE|MSSQL|DB2|MAXDB|POSTGRES/i', $sql ) + preg_match( '/[@\'"]|sql_mode`?\s*:?=[\s(]*[^\s(?a-z)]|\?\s*[^\s,;)]|\b[xn]\?|\b(?!REPLACE\b)\w+\s*\((?!\s*SELECT\b)/i', $rest ) > 0;
	}

	/** Whether a statement that writes is made of its own values, and finds rows by what they have: no other table is read. */
	public static function writes_values( $query ) {
		$sql = self::bare( $query, $strings );
		if ( null === $sql || preg_match( '/\b(?:SELECT|JOIN|TABLE|USING)\b|@/i', preg_replace( '/^(?:TRUNCATE|ALTER|DROP|RENAME)\s+TABLE\b/i', '', $sql ) ) || preg_match( '/^UPDATE\b(?:(?!\bSET\b).)*,/is', $sql ) || preg_match( '/^DELETE\b(?:(?!\bWHERE\b).)*,/is', $sql ) ) {
			return false;
		}
		return ! self::unknown_calls( preg_replace( self::INSERTED_COLUMNS, '', $sql ) );
	}

	/**
	 * Of a statement, the functions that may be stored ones, which may write; in most statements the text itself shows that there are none.
	 */
	public static function stored_calls( $sql ) {
		$rest = preg_replace( self::INSERTED_COLUMNS, '', $sql );
		if ( strlen( $rest ) > self::LONG_STATEMENT ) {
			$rest = (string) preg_replace( self::QUOTED, ' ', $rest );
		}
		$unknown = false === strpos( $rest, '/*' ) && false === strpos( $rest, '--' ) && false === strpos( $rest, '#' ) ? self::unknown_calls( $rest ) : array( '' => true );
		if ( ! $unknown ) {
			return array();
		}
		if ( false !== strpos( $rest, '/*' ) && 0 === stripos( $rest, 'SELECT' ) ) {
			$rest = (string) preg_replace_callback(
				self::VERSIONED,
				function ( $found ) {
					return isset( $found[1] ) ? " {$found[1]} " : $found[0];
				},
				$rest
			);
		}
		$bare = preg_replace( self::QUOTED, ' ', $rest );
		if ( null === $bare || '' === $rest || false !== strpos( $bare, '/*' ) || false !== strpos( $bare, '*/' ) ) {
			return array( '' );
		}
		return array_keys( array_diff_key( self::unknown_calls( $bare ), array_fill_keys( self::OF_CONNECTION, true ) ) );
	}
}

/**
 * What this PHP request has changed, learned from the statements that wpdb sends (the filter `query` sees each before it runs):
 * hooks are missing for direct SQL, are silenced by importers, and come before the last write. A statement that cannot be
 * understood is a change of its whole table, or of everything.
 */
final class Trellis_Changes {
	const MAX_ROWS    = 200;
	const MAX_OBJECTS = 500;
	const MAX_STEPS   = 5;
	/** More rows are not named in a response. */
	const MAX_NAMED   = 8;

	/** An importer, which suspends WordPress's own invalidation, changes most lists: few of its single objects are recorded. */
	const MAX_IMPORTED = 20;

	/** After this many seconds with an open mark the changes so far are reported, so that a long import does not hold them back. */
	const LONGEST_MARK = 5;

	/** In the place of the digest of a temporary value that is not there, or whose time is over. */
	const NOT_THERE = 'absent';

	/** Member of a state with what is compared here and not reported: drafts are secret. */
	const TEXTS = 'texts';

	const NAME   = '(?:`?[\w$-]+`?\.)?`?([\w$-]+)`?';
	const STRING = "'(?:[^'\\\\]++|\\\\.|'')*+'|\"(?:[^\"\\\\]++|\\\\.|\"\")*+\"";

	/** Statements that change no content. */
	const READS = array( 'SELECT', 'SHOW', 'DESCRIBE', 'DESC', 'EXPLAIN', 'SET', 'START', 'BEGIN', 'COMMIT', 'ROLLBACK', 'SAVEPOINT', 'RELEASE', 'USE', 'LOCK', 'UNLOCK', 'ANALYZE', 'CHECK', 'OPTIMIZE', 'REPAIR', 'FLUSH', 'KILL', 'PRAGMA', 'CREATE' );

	/** Statements in which names and types stand before parentheses, and no functions unless they find rows. */
	const DEFINING = array( 'CREATE', 'ALTER', 'DROP', 'RENAME', 'TRUNCATE', 'SHOW', 'DESCRIBE', 'DESC' );

	/**
	 * Tables of WordPress: the kind of object that a row belongs to, the column with its id, the row's own key, the column with a
	 * name, the columns that lists filter by.
	 */
	const TABLES = array(
		'posts'              => array( 'post', 'ID', 'ID', '', 'post_|menu_order|comment_count' ),
		'postmeta'           => array( 'post', 'post_id', 'meta_id', 'meta_key', '' ),
		'term_relationships' => array( 'post', 'object_id', 'object_id', '', 'term_taxonomy_id' ),
		'terms'              => array( 'term', 'term_id', 'term_id', '', 'name|slug|term_group' ),
		'term_taxonomy'      => array( 'term', 'term_id', 'term_taxonomy_id', '', 'taxonomy|parent|count' ),
		'termmeta'           => array( 'term', 'term_id', 'meta_id', 'meta_key', '' ),
		'comments'           => array( 'comment', 'comment_ID', 'comment_ID', '', 'comment_approved|comment_post_ID|comment_parent|comment_type|user_id' ),
		'commentmeta'        => array( 'comment', 'comment_id', 'meta_id', 'meta_key', '' ),
		'users'              => array( 'user', 'ID', 'ID', '', '' ),
		'usermeta'           => array( 'user', 'user_id', 'umeta_id', 'meta_key', '' ),
		'options'            => array( 'option', 'option_name', 'option_id', 'option_name', '' ),
		'sitemeta'           => array( 'network', 'meta_key', 'meta_id', 'meta_key', '' ),
	);

	/** Tables that belong to the whole network. */
	const GLOBAL_TABLES = array( 'users', 'usermeta', 'blogs', 'blogmeta', 'site', 'sitemeta', 'sitecategories', 'signups', 'registration_log' );

	/** Names whose values no answer shows; exact, or with the beginning that WordPress gives to temporary values. */
	const QUIET = array(
		'options'  => array( 'cron', 'action_scheduler_lock_async-request-runner' ),
		'sitemeta' => array( 'user_count', 'blog_count', 'wp_force_deactivated_plugins', 'can_compress_scripts', 'recently_activated' ),
		'postmeta' => array( '_edit_lock', '_edit_last', '_pingme', '_encloseme', '_wp_old_slug', '_wp_old_date' ),
		'usermeta' => array( 'session_tokens', 'community-events-location' ),
	);
	/** What WordPress shows of a user's meta, beside roles. All else is a plugin's, or a setting of screens: responses name the keys that they read. */
	const USER_KEYS = array( 'nickname', 'first_name', 'last_name', 'description', 'rich_editing', 'syntax_highlighting', 'comment_shortcuts', 'admin_color', 'use_ssl', 'show_admin_bar_front', 'locale' );

	/** @var Trellis_Log */
	private $log;
	/** @var callable Gets what is to be pushed. */
	private $send;

	/** Marks of this request; more than one only after a ROLLBACK, which may have undone the first. */
	private $marks      = array();
	private $marked_at  = 0;
	private $is_marked  = false;
	/** The open mark says that no post, term or comment is written. */
	private $is_aside   = false;
	/** By blog, kind and id: the states seen (null: not there), and what is known of how it was written. */
	private $objects    = array();
	/** By blog: names of options, of tables; of tables of plugins the rows, by `column:id`. */
	private $options    = array();
	private $tables     = array();
	private $table_rows = array();
	/** By blog, table and name: how many rows this request has inserted, with ids that the database counts by `true`. */
	private $inserts    = array();
	/** By blog, table and name: rows that a DELETE looked for, where none was. */
	private $cleared    = array();
	private $reason     = '';
	/** By blog and id of the row in `term_taxonomy`: terms that were read with a post and not written since. */
	private $terms      = array();
	/** Tables in which rows were found by something other than their key. */
	private $searched   = array();
	/** Tables of plugins of which rows may have got other names. */
	private $moved      = array();
	/** By blog: the sticky posts before the first write to them, and at the end those that are not any more, or are now. */
	private $sticky     = array();
	/** By blog and name: the values of options before each write, as digests; false where a value is not known. */
	private $values     = array();
	/** By blog: options with parents of terms that only were deleted, or made again. */
	private $hierarchies = array();
	/** By blog and name: the numbers of posts of terms that options say, of each of their values. */
	private $numbers    = array();
	/** By statement: blog, table and rows before the write. */
	private $compared   = array();
	private $transacted = false;
	/** A transaction is not committed yet: other connections still read the old state, and a gateway must not fetch that again. */
	private $is_uncommitted = false;
	private $autocommit     = true;
	private $count      = 0;
	/** A gateway has not accepted a part: it finds the others by its next poll as well. */
	private $has_failed = false;
	/** The table of the last INSERT, whose id is known only after it has run. */
	private $inserted   = null;
	/** Functions that were called and may be stored ones, and by name whether those that were looked for may write. */
	private $calls      = array();
	private $routines   = array();
	/** Everything has changed, and the mark waits until nothing of the last statement is asked for. */
	private $is_owed    = false;
	/** The last number that the database has counted in this connection is that of the mark. */
	private $has_own_id = false;
	/** Of the last UPDATE or DELETE whose rows were looked for: blog, table, how many rows were found, and the statement. */
	private $found      = null;
	/** Rows of the log with changes of this request: incarnation, sequence and check value of each. */
	private $rows       = array();
	/** Something may be written that no row has. */
	private $is_unsure  = false;
	/** Written was what only the user of this request is shown: his session, his settings of screens. */
	private $is_own     = false;
	/** Called when something is written. */
	private $written;
	/** Of a read of the REST interface: what its response names as well. Else ''. */
	private $request    = '';
	private $lists      = '__return_true';
	private $has_missed = '__return_false';
	/** Written were rows that were there before, and that the response may show as they were. */
	private $has_replaced = false;

	public function __construct( Trellis_Log $log, callable $send ) {
		$this->log     = $log;
		$this->send    = $send;
		$this->written = '__return_null';
	}

	/** The request reads, and its response gives it this name. The tags know what the response lists, and which rows it looked for in vain. */
	public function name_request( $name, Trellis_Tags $tags ) {
		$this->request    = $name;
		$this->lists      = array( $tags, 'lists' );
		$this->has_missed = array( $tags, 'has_missed' );
	}

	/** Whether this request has inserted a row with this name, in a site without a network. */
	public function has_inserted( $table, $name ) {
		return isset( $this->inserts[1][ $table ][ $name ] );
	}

	public function when_written( callable $written ) {
		$this->written = $written;
	}

	/** Something was written that has no row. */
	public function doubt() {
		$this->is_unsure = true;
		call_user_func( $this->written );
	}

	/** What the request has written up to now; '' when that is not known, or not all of it is reported. */
	public function summary() {
		if ( $this->is_unsure || $this->is_owed || $this->calls || $this->is_marked || $this->marks || $this->count > 0 || count( $this->rows ) > self::MAX_NAMED ) {
			return '';
		}
		return $this->rows ? 'rows ' . implode( ',', $this->rows ) : ( $this->is_own ? 'own' : 'nothing' );
	}

	public function start() {
		add_filter( 'query', array( $this, 'see' ), PHP_INT_MAX );
		// A plugin that writes through its own connection calls these.
		foreach ( array( 'post', 'comment', 'user' ) as $kind ) {
			add_action(
				"clean_{$kind}_cache",
				function ( $ids ) use ( $kind ) {
					$this->note_event( $kind, $ids );
				}
			);
		}
		add_action(
			'clean_term_cache',
			function ( $ids ) {
				$this->note_event( 'term', $ids );
			}
		);
	}

	private function note_event( $kind, $ids ) {
		$site = 'user' === $kind && is_multisite() ? 0 : get_current_blog_id();
		foreach ( (array) $ids as $id ) {
			$id    = (int) $id;
			$known = isset( $this->objects[ $site ][ $kind ][ $id ] ) ? $this->objects[ $site ][ $kind ][ $id ] : null;
			if ( $id > 0 && 'post' === $kind && $known && $known['counted'] > 0 ) {
				// WordPress counts the comments of a post again, and says so once.
				--$this->objects[ $site ][ $kind ][ $id ]['counted'];
			} elseif ( $id > 0 && ( ! $known || null !== $known['keys'] || 'post' === $kind && $known['counts_only'] ) ) {
				if ( $this->is_aside ) {
					$this->mark( $site, 'user' === $kind );
				}
				$this->touch( $site, $kind, $id );
				if ( isset( $this->objects[ $site ][ $kind ][ $id ] ) ) {
					// What was written before it, by another connection, has no state.
					$this->objects[ $site ][ $kind ][ $id ]['is_seen'] = false;
				}
			}
		}
	}

	/** The filter `query`: never throws, never changes the statement. */
	public function see( $query ) {
		if ( is_string( $query ) && ! $this->log->is_busy() ) {
			try {
				$this->read( $query );
			} catch ( Throwable $error ) {
				$this->everything( 'statement' );
			}
		}
		return $query;
	}

	private function read( $query ) {
		$is_plain  = Trellis_Known_Sql::is_plain( $query );
		$asks_last = ! $is_plain && ( false !== stripos( $query, 'LAST_INSERT_ID' ) || Trellis_Known_Sql::asks_last_statement( $query ) );
		$this->settle_insert( $asks_last );
		$this->settle_found( $asks_last );
		if ( $this->is_marked && ! $this->is_uncommitted && time() - $this->marked_at > self::LONGEST_MARK && ! $asks_last ) {
			// Set first: the report itself reads options.
			$this->marked_at = time();
			$id              = $this->log->last_insert_id();
			$this->finish();
			$this->log->restore_insert_id( $id );
		}
		if ( $is_plain && ! $this->is_owed && ! $this->calls ) {
			return;
		}
		list( $verb, $sql ) = self::split_verb( $query );
		if ( $this->has_own_id && ( $asks_last || 'INSERT' === $verb || 'REPLACE' === $verb ) ) {
			if ( preg_match( '/\bLAST_INSERT_ID\b|@@/i', $query ) && ! preg_match( '/\b(?:FOUND_ROWS|ROW_COUNT)\b|@@\w*\.?\w+_count\b/i', $query ) ) {
				$this->log->restore_insert_id( 0 );
			}
			$this->has_own_id = 'INSERT' !== $verb && 'REPLACE' !== $verb && false === stripos( $query, 'LAST_INSERT_ID' );
		}
		if ( $this->call( $verb, $sql, $asks_last ) ) {
			return;
		}
		if ( in_array( $verb, self::READS, true ) || 'WITH' === $verb && ! preg_match( '/\b(?:INSERT|REPLACE|UPDATE|DELETE)\b/i', $sql ) ) {
			$this->read_only( $verb, $sql );
			return;
		}
		if ( $asks_last && Trellis_Known_Sql::asks_last_statement( $query ) ) {
			$this->is_owed = true;
			return;
		}
		if ( $this->log->quotes_otherwise( $query ) ) {
			$this->everything( 'statement' );
			return;
		}
		// The mark is a separate row, and would change what the statement gets.
		$id = ! $this->is_marked && $asks_last ? $this->log->last_insert_id() : null;
		$this->write( $verb, $sql );
		if ( null !== $this->found && ! isset( $this->found[3] ) ) {
			$this->found[] = $query;
		}
		$this->log->restore_insert_id( $id );
	}

	/** The verb of a statement, and the statement without the comments and parentheses before it; '' where another text comes first. */
	public static function split_verb( $query ) {
		$sql = preg_replace( '~^(?:[\s(;]++|/\*(?!M?!).*?\*/|(?:--|\#)[^\n]*+(?:\n|$))++~s', '', $query );
		return array( strtoupper( substr( $sql, 0, strspn( $sql, 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ' ) ) ), $sql );
	}

	/** Notes what a statement calls. True if everything may have changed by it. */
	private function call( $verb, $sql, $asks_last ) {
		$is_defining = in_array( $verb, self::DEFINING, true ) && ! preg_match( '/\b(?:SELECT|WHERE|VALUES)\b/i', $sql );
		$calls       = $is_defining ? array() : Trellis_Known_Sql::stored_calls( $sql );
		if ( $this->is_owed && ! $asks_last ) {
			$this->is_owed = false;
			$this->everything( 'statement' );
		}
		if ( $this->calls && ! $calls && ! $asks_last && 'SELECT' === $verb ) {
			$this->settle_calls();
		}
		$names = $calls && $GLOBALS['wpdb']->dbh instanceof mysqli ? array_diff_key( array_flip( $calls ), array_diff( $this->routines, array( true ) ) ) : array();
		if ( preg_grep( '/^[\w$`]+$/D', array_keys( $names ), PREG_GREP_INVERT ) || array_intersect_key( $names, $this->routines ) || Trellis_Known_Sql::writes_unnamed( $verb, $sql ) ) {
			if ( $asks_last ) {
				$this->is_owed = true;
			} else {
				$this->everything( 'statement' );
			}
			return true;
		}
		$this->calls += $names;
		return false;
	}

	/**
	 * Whether a function that was called may write, and is not declared to do nothing but read. It may ask for what the statement before
	 * has left in the connection, so that the database is asked later: before a plain SELECT, or at the end.
	 */
	private function settle_calls() {
		$calls       = array_keys( $this->calls );
		$this->calls = array();
		$names       = implode( "', '", array_map( 'esc_sql', str_replace( '`', '', $calls ) ) );
		$writes      = array() !== $this->log->query( "SELECT 1 FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE() AND ROUTINE_NAME IN ('$names') AND SQL_DATA_ACCESS NOT IN ('NO SQL', 'READS SQL DATA') LIMIT 1" );

		$this->routines += array_fill_keys( $calls, $writes );
		if ( $writes ) {
			$this->everything( 'statement' );
		}
	}

	/** Whether a statement makes other tables or columns, which SHOW and DESCRIBE tell of; plugins look for theirs on each request. */
	private function redefines( $sql ) {
		if ( ! preg_match( '/^(?:CREATE\s+TABLE|DROP\s+TABLE|DROP\s+VIEW|ALTER|RENAME)\b/i', $sql ) ) {
			return false;
		}
		if ( preg_match( '/^(CREATE|DROP)\s+TABLE\s+IF\s+(?:NOT\s+)?EXISTS\s+`?([\w$-]++)`?+(?=[\s(;]|$)(?!\s*[.,])/i', $sql, $part ) ) {
			$is_there = array() !== $this->log->query( "SHOW TABLES LIKE '" . esc_sql( $GLOBALS['wpdb']->esc_like( $part[2] ) ) . "'" );
			return $is_there === ( 'DROP' === strtoupper( $part[1] ) );
		}
		return true;
	}

	private function write( $verb, $sql ) {
		if ( '' !== $this->reason && $this->is_marked ) {
			// Everything is reported as changed: what else is written need not be looked at, until a long request begins again.
			$this->mark( 0 );
			if ( '' !== $this->reason ) {
				return;
			}
		}
		if ( preg_match( '/^(?:INSERT|REPLACE)\s+(?:(?:LOW_PRIORITY|DELAYED|HIGH_PRIORITY|IGNORE)\s+)*+(?:INTO\s+)?' . self::NAME . '\s*\(([^()]*)\)\s*VALUES?\s*(?=\()/i', $sql, $part ) ) {
			$this->insert( $verb, $part[1], $part[2], substr( $sql, strlen( $part[0] ) ) );
		} elseif ( preg_match( '/^UPDATE\s+(?:(?:LOW_PRIORITY|IGNORE)\s+)*+' . self::NAME . '\s+SET\s/i', $sql, $part ) || preg_match( '/^DELETE\s+(?:(?:LOW_PRIORITY|QUICK|IGNORE)\s+)*+FROM\s+' . self::NAME . '\s*(?=(?:WHERE|ORDER|LIMIT)\b|;|$)/i', $sql, $part ) ) {
			$this->modify( $verb, $part[1], substr( $sql, strlen( $part[0] ) ) );
		} elseif ( preg_match( '/^(?:INSERT|REPLACE)\s+(?:(?:LOW_PRIORITY|DELAYED|HIGH_PRIORITY|IGNORE)\s+)*+(?:INTO\s+)?' . self::NAME . '\s*(?:\(([^()]*)\)\s*)?SELECT\s/i', $sql, $part ) ) {
			$this->insert_selected( $verb, $part[1], isset( $part[2] ) ? $part[2] : '', substr( $sql, strlen( $part[0] ) ) );
		} elseif ( $this->redefines( $sql ) ) {
			$this->everything( 'statement' );
		} else {
			$this->mention( $sql );
		}
	}

	private function read_only( $verb, $sql ) {
		if ( 'CREATE' === $verb && ! preg_match( '/^CREATE\s+(?:TEMPORARY\s+)?(?:TABLE|DATABASE|(?:UNIQUE\s+)?INDEX)\s/i', $sql ) || 0 === stripos( $sql, 'SET STATEMENT' ) || 'CREATE' === $verb && $this->redefines( $sql ) ) {
			$this->everything( 'statement' );
		}
		if ( 'SET' === $verb && Trellis_Known_Sql::sets_quotes( $sql ) ) {
			$this->everything( 'statement' );
		}
		if ( 'SET' === $verb && preg_match( '/\bautocommit`?\s*:?=\s*(\w+)/i', $sql, $part ) ) {
			$this->autocommit     = in_array( strtoupper( $part[1] ), array( '1', 'ON', 'TRUE' ), true );
			$this->is_uncommitted = ! $this->autocommit;
		} elseif ( 'START' === $verb || 'BEGIN' === $verb ) {
			$this->is_uncommitted = true;
		} elseif ( 'COMMIT' === $verb || 'ROLLBACK' === $verb && ! preg_match( '/\bTO\b/i', $sql ) ) {
			$this->is_uncommitted = ! $this->autocommit || (bool) preg_match( '/\bAND\s+CHAIN\b/i', $sql );
		}
		$this->transacted = $this->transacted || $this->is_uncommitted;
		if ( 'ROLLBACK' === $verb ) {
			// The mark may be undone with the rest: the next write needs another.
			$this->is_marked = false;
		}
	}

	/** An INSERT or REPLACE with values. */
	private function insert( $verb, $name, $columns, $values ) {
		list( $site, $table ) = $this->locate( $name );
		$spec    = isset( self::TABLES[ $table ] ) ? self::TABLES[ $table ] : null;
		$columns = self::names_in( $columns );
		if ( ! $spec ) {
			$this->insert_rows( $verb, $name, $columns, $this->tuples( $values, count( $columns ) ), $values );
			return;
		}
		list( $kind, $owner, $key, $named, $filters ) = $spec;
		$at_owner = array_search( $owner, $columns, true );
		$at_name  = '' === $named ? false : array_search( $named, $columns, true );
		$rows     = $this->tuples( $values, count( $columns ) );
		$may_hit  = 'REPLACE' === $verb || '' !== $this->on_duplicate( $values );
		if ( null === $rows || $may_hit && $owner !== $key && ( in_array( $key, $columns, true ) || 'term_taxonomy' === $table ) ) {
			// A row of another owner may be replaced.
			$this->whole( $site, $table );
			return;
		}
		if ( false === $at_owner || in_array( $rows[0][ $at_owner ], array( '0', 'NULL', "''", "'0'" ), true ) ) {
			if ( $owner !== $key || 'option_name' === $owner || count( $rows ) > 1 ) {
				$this->whole( $site, $table );
				return;
			}
			$this->mark( $site, self::is_aside_table( $table ) );
			$this->inserted = array( $site, $table, $kind, (int) $GLOBALS['wpdb']->insert_id, array() );
			return;
		}
		$ids = array();
		foreach ( $rows as $row ) {
			$text = $this->unquote( $row[ $at_owner ] );
			if ( false !== $at_name && $this->is_quiet( $table, $this->unquote( $row[ $at_name ] ) ) ) {
				continue;
			}
			if ( 'usermeta' === $table && ! $may_hit && false !== $at_name && ctype_digit( (string) $text ) && $this->touch_key( $site, $text, $this->unquote( $row[ $at_name ] ) ) ) {
				continue;
			}
			if ( 'option' === $kind || 'network' === $kind ? null === $text : ! ctype_digit( (string) $text ) ) {
				$this->whole( $site, $table );
				return;
			}
			$ids[ $text ] = true;
		}
		if ( $ids ) {
			$this->mark( $site, self::is_aside_table( $table ) );
			$this->touch_all( $site, $kind, array_keys( $ids ), '' !== $filters );
		}
	}

	/** The names of columns in a list. */
	private static function names_in( $list ) {
		return array_map(
			function ( $column ) {
				return trim( $column, " \t\r\n`" );
			},
			explode( ',', $list )
		);
	}

	/**
	 * An INSERT of what a SELECT finds. Of tables of plugins one that reads none, but sets a condition, inserts one row at most: WooCommerce
	 * reserves stock for an order so. Other tables than the first are read.
	 */
	private function insert_selected( $verb, $name, $columns, $select ) {
		list( $site, $table ) = $this->locate( $name );
		$row = isset( self::TABLES[ $table ] ) || '' === $columns ? null : $this->selected_row( $select );
		if ( null === $row || count( $row ) !== count( self::names_in( $columns ) ) ) {
			$this->whole( $site, $table );
			return;
		}
		$this->insert_rows( $verb, $name, self::names_in( $columns ), array( $row ), $select );
	}

	/** The values of a SELECT that reads no table, as written; null for any other. */
	private function selected_row( $select ) {
		$plain = $this->mask( $select );
		if ( null === $plain || ! preg_match( '/^((?:[^()]|(\((?:[^()]++|(?2))*+\)))*?)\bFROM\s+DUAL(?=\s*(?:;|$|WHERE\b|ON\b))/i', $plain, $part ) || preg_match( '/\bFROM\b/i', $part[1] ) || preg_match( '/\bUNION\b/i', $plain ) ) {
			return null;
		}
		$row   = array();
		$from  = 0;
		$depth = 0;
		$end   = strlen( $part[1] );
		for ( $at = 0; $at <= $end; ++$at ) {
			$sign   = $at < $end ? $plain[ $at ] : ',';
			$depth += '(' === $sign ? 1 : ( ')' === $sign ? -1 : 0 );
			if ( ',' === $sign && 0 === $depth ) {
				$row[] = trim( substr( $select, $from, $at - $from ) );
				$from  = $at + 1;
			}
		}
		return $row;
	}

	/** An UPDATE or DELETE of one table. `$rest` begins behind SET, or with what follows the name. */
	private function modify( $verb, $name, $rest ) {
		list( $site, $table ) = $this->locate( $name );
		$spec  = isset( self::TABLES[ $table ] ) ? self::TABLES[ $table ] : null;
		$plain = $this->mask( $rest );
		$where = null === $plain ? false : $this->find_where( $plain );
		if ( ! $spec && false !== $where && ! in_array( $table, self::GLOBAL_TABLES, true ) ) {
			$this->modify_rows( $verb, $name, substr( $rest, 0, $where ), rtrim( substr( $rest, $where + 5 ), "; \t\r\n" ), rtrim( substr( $plain, $where + 5 ), "; \t\r\n" ) );
			return;
		}
		if ( ! $spec || false === $where ) {
			if ( 'blogs' === $table && 'UPDATE' === $verb && false !== $where ) {
				$this->compare_later( $site, $table, "SELECT * FROM `$name` " . rtrim( substr( $rest, $where ), '; ' ) );
			} else {
				$this->whole( $site, $table );
			}
			return;
		}
		list( $kind, $owner, $key, $named, $filters ) = $spec;
		$set       = 'UPDATE' === $verb ? substr( $plain, 0, $where ) : '';
		$has_keys  = 'usermeta' === $table && ! preg_match( '/\b(?:meta_key|user_id|umeta_id)\b/i', $set );
		$condition = rtrim( substr( $rest, $where + 5 ), "; \t\r\n" );
		$masked    = rtrim( substr( $plain, $where + 5 ), "; \t\r\n" );
		$is_simple = ! preg_match( '/\b(?:OR|XOR|SELECT|LIMIT|UNION)\b|\|\||\(\s*`?[a-z]/i', $masked );

		if ( '' !== $named && $is_simple && preg_match( '/(?:^|\bAND\s)\s*`?' . $named . '`?\s*=\s*(' . self::STRING . ')/is', $condition, $part, PREG_OFFSET_CAPTURE ) ) {
			// Not in a quoted string, where the mask has question marks.
			$is_name = '?' !== $masked[ $part[0][1] ];
			if ( $is_name && $this->is_quiet( $table, $this->unquote( $part[1][0] ) ) && ! preg_match( '/\b' . $named . '\b/i', $set ) ) {
				return;
			}
		}
		$new_owner = null;
		if ( preg_match( '/(?:^|,)\s*`?' . $owner . '`?\s*=\s*(\d*)\s*(?:,|$)?/i', $set, $part ) ) {
			if ( '' === $part[1] || $owner === $key || ! preg_match( '/(?:^|,)\s*`?' . $owner . '`?\s*=\s*\d+\s*(?:,|$)/i', $set ) ) {
				$this->whole( $site, $table );
				return;
			}
			// Rows move to this owner, or stay with it.
			$new_owner = (int) $part[1];
		}
		$counted     = array( 'term_taxonomy' => 'count', 'posts' => 'comment_count' );
		$counts_only = isset( $counted[ $table ] ) && preg_match( '/^\s*`?' . $counted[ $table ] . '`?\s*=\s*(?:\d+|\?+)\s*$/i', $set );
		if ( $counts_only && 'term_taxonomy' === $table && preg_match( '/^\s*`?term_taxonomy_id`?\s*=\s*(\d+)\s*$/D', $condition, $part ) && $this->count_again( $site, (int) $part[1] ) ) {
			return;
		}
		$ids = null;
		if ( $is_simple && preg_match( '/^\s*`?' . $owner . '`?\s*(?:=\s*\'?(\d+)\'?|IN\s*\(([\d,\s]+)\))\s*(?:$|AND\b)/i', $condition, $part ) ) {
			$ids   = isset( $part[2] ) ? array_map( 'intval', explode( ',', $part[2] ) ) : array( (int) $part[1] );
			$found = $has_keys ? $this->find( $site, $name, $table, $owner, $named, $condition, $masked, true ) : null;
			if ( array() === $found ) {
				return;
			}
			$ids = null === $found ? $ids : $found;
		} elseif ( 'option_name' === $owner && $is_simple && preg_match( '/^\s*`?option_name`?\s*=\s*(' . self::STRING . ')\s*$/is', $condition, $part ) ) {
			$ids = array( $this->unquote( $part[1] ) );
		} else {
			$ids = $this->find( $site, $name, $table, $owner, $named, $condition, $masked, $has_keys );
			if ( array() === $ids ) {
				// Nothing to change, or quiet names only; a row that another request inserts meanwhile is reported as searched.
				$this->searched[ $site ][ $table ] = true;
				if ( ! $this->is_marked ) {
					return;
				}
			}
			if ( null === $ids || count( $ids ) > self::MAX_ROWS ) {
				$this->whole( $site, $table );
				return;
			}
			if ( ! preg_match( '/^\s*`?' . $key . '`?\s*(?:=|IN\b)/i', $condition ) || ! $is_simple ) {
				$this->searched[ $site ][ $table ] = true;
			}
		}
		if ( null !== $new_owner ) {
			$ids = array_unique( array_merge( array_map( 'intval', $ids ), array( $new_owner ) ) );
		}
		$this->mark( $site, self::is_aside_table( $table ) );
		$changes_state = '' !== $filters && ( 'DELETE' === $verb || preg_match( '/\b(?:' . $filters . ')/i', $set ) );
		$this->touch_all( $site, $kind, $ids, 'option' === $kind ? 'UPDATE' === $verb : $changes_state, (bool) $counts_only );
	}

	/** By table: its columns in lower case, as the database describes them; null when it does not. */
	private $columns = array();
	/** By table: the column that the database counts, '' for none, and the columns of its unique keys. */
	private $counted = array();
	private $keys    = array();

	/** Columns with ids, by which responses may name rows of a table: `id`, `post_id`, `ID`; and those with the kind of a row, as `object_type`. */
	const IDS = '/(?:^|_)(?:id|type)$/i';

	/** A value of such a column as responses and changes name it; null for others than numbers and simple words. */
	public static function row_value( $value ) {
		if ( preg_match( '/^[1-9]\d{0,17}$/D', $value ) ) {
			return $value;
		}
		return preg_match( '/^[a-z][a-z0-9_-]* *$/iD', $value ) ? substr( md5( strtolower( rtrim( $value ) ) ), 0, 10 ) : null;
	}

	/**
	 * A slug, type, status or taxonomy in one spelling of those that are equal in a collation; null where others may be. Names of attributes of
	 * WooCommerce are taxonomies in any script, and spelled as they are registered.
	 */
	public static function collated( $text ) {
		if ( preg_match( '/^[a-z0-9_%-]*+ *$/iD', $text ) ) {
			return strtolower( rtrim( $text ) );
		}
		return preg_match( '/[\x80-\xff]/', $text ) && taxonomy_exists( $text ) ? $text : null;
	}

	/**
	 * An option as responses and changes name it: to the database letters of either case are the same, and spaces at the end nothing. Null
	 * where letters of other alphabets may be the same as Latin ones.
	 */
	public static function option_name( $name ) {
		$plain = strtolower( rtrim( $name ) );
		return preg_match( '/[^\x20-\x7e]/', $name ) ? null : ( 'wplang' === $plain ? 'WPLANG' : $plain );
	}

	/** Reports of types, statuses and taxonomies that lists may spell otherwise than their rows would name no such list. */
	private function require_collated( $names ) {
		foreach ( $names as $name ) {
			if ( null !== $name && self::collated( $name ) !== $name ) {
				$this->everything( 'statement' );
			}
		}
	}

	/**
	 * A row by the column with its id, and by those of the same object together: `object_id:13`, `object_type:…` and `object_id-…:13` for
	 * an `object_id` beside an `object_type`. An id of its own is none of those.
	 */
	private static function pairs_of( $row ) {
		$pairs = array();
		foreach ( $row as $column => $text ) {
			$pairs[] = array( $column, $text );
			$kind    = self::kind_beside( $column );
			$value   = '' !== $kind && isset( $row[ $kind ] ) ? self::row_value( (string) $row[ $kind ] ) : null;
			if ( null !== $value ) {
				$pairs[] = array( "$column-$value", $text );
			}
		}
		return $pairs;
	}

	/** The column with the kind of the object whose id a column has: `object_type` for `object_id`; '' for others. */
	public static function kind_beside( $column ) {
		return '_id' === substr( $column, -3 ) ? substr( $column, 0, -2 ) . 'type' : '';
	}

	/** Whether a column has what statements say: no word that has an index as well, and nothing that the database makes of other columns. */
	private static function has_plain_values( $column ) {
		$default = isset( $column->Default ) ? (string) $column->Default : '';
		return ! preg_match( '/^(?:enum|set)\b/i', isset( $column->Type ) ? $column->Type : '' )
			&& false === stripos( isset( $column->Extra ) ? $column->Extra : '', 'GENERATED' )
			&& ( in_array( $default, array( '', '0' ), true ) || null !== self::row_value( $default ) );
	}

	/**
	 * The columns of a table with ids: the default of each, and whether the database counts it, as it may do with a key. Null when that is
	 * not known, or when a statement does not say what such a column has.
	 */
	private function id_columns( $name ) {
		if ( ! array_key_exists( $name, $this->columns ) ) {
			$rows     = $this->log->query( "SHOW COLUMNS FROM `$name`" );
			$known    = array();
			$is_plain = true;
			foreach ( $rows ? $rows : array() as $row ) {
				if ( isset( $row->Field ) && preg_match( self::IDS, $row->Field ) ) {
					$is_plain = $is_plain && self::has_plain_values( $row );
					$known[ strtolower( $row->Field ) ] = array( isset( $row->Default ) ? $row->Default : null, self::is_counted( $row ) || isset( $row->Key ) && 'PRI' === $row->Key );
				}
			}
			$this->columns[ $name ] = $rows && $is_plain ? $known : null;
			$this->counted[ $name ] = strtolower( implode( array_column( array_filter( (array) $rows, array( __CLASS__, 'is_counted' ) ), 'Field' ) ) );
		}
		return $this->columns[ $name ];
	}

	private static function is_counted( $column ) {
		return isset( $column->Extra ) && false !== stripos( $column->Extra, 'auto_increment' );
	}

	/** The columns of each unique key of a table; null when that is not known, or when one has a part of a column. */
	private function unique_keys( $name ) {
		if ( ! array_key_exists( $name, $this->keys ) ) {
			$rows = $this->log->query( "SHOW KEYS FROM `$name`" );
			$keys = array();
			foreach ( $rows ? $rows : array() as $row ) {
				if ( null === $keys || ! isset( $row->Key_name, $row->Column_name, $row->Non_unique ) || 0 === (int) $row->Non_unique && isset( $row->Sub_part ) ) {
					$keys = null;
				} elseif ( 0 === (int) $row->Non_unique ) {
					$keys[ $row->Key_name ][] = strtolower( $row->Column_name );
				}
			}
			$this->keys[ $name ] = false === $rows ? null : $keys;
		}
		return $this->keys[ $name ];
	}

	/**
	 * A condition for the rows that an INSERT would update: those that have its values in a unique key. '' for none; null when that is not
	 * known.
	 */
	private function duplicates( $name, $columns, $row ) {
		$keys = $this->unique_keys( $name );
		$any  = array();
		foreach ( null === $keys ? array() : $keys as $key ) {
			$all = array();
			foreach ( $key as $column ) {
				$at      = array_search( $column, $columns, true );
				$literal = false === $at ? '' : $row[ $at ];
				if ( $column === $this->counted[ $name ] && in_array( $literal, array( '', '0', 'NULL', "''", "'0'" ), true ) || 'NULL' === strtoupper( $literal ) ) {
					// A number that no row has, or a value that is equal to none.
					continue 2;
				}
				if ( ! preg_match( '/^(?:-?\d+|' . self::STRING . ')$/Ds', $literal ) ) {
					return null;
				}
				$all[] = "`$column` = $literal";
			}
			$any[] = implode( ' AND ', $all );
		}
		return null === $keys ? null : ( count( $any ) > 1 ? '(' . implode( ') OR (', $any ) . ')' : implode( $any ) );
	}

	/** What an INSERT does with a row that has one of its keys: `ON DUPLICATE KEY UPDATE` and its assignments; '' for nothing, null when it is not plain. */
	private function on_duplicate( $values ) {
		$plain = $this->mask( $values );
		$count = null === $plain ? 2 : preg_match_all( '/\bDUPLICATE\b/i', $plain );
		if ( 0 === $count ) {
			return '';
		}
		$is_plain = 1 === $count && preg_match( '/\bON\s+DUPLICATE\s+KEY\s+UPDATE\b(.*)$/is', $plain, $part ) && false === stripos( $part[1], 'SELECT' );
		return $is_plain ? $part[1] : null;
	}

	/**
	 * The rows that an INSERT with `ON DUPLICATE KEY UPDATE` may change, as they are and as they will be; null when that is not known. They
	 * are read once the request is known to write.
	 */
	private function updated_rows( $name, $columns, $row, $update ) {
		list( $site, $table ) = $this->locate( $name );
		$known     = $this->id_columns( $name );
		$condition = $known && ! Trellis_Known_Tables::is_memoized( $table ) ? $this->duplicates( $name, $columns, $row ) : null;
		$new       = array();
		foreach ( null === $condition ? array() : array_keys( $known ) as $column ) {
			$at  = array_search( $column, $columns, true );
			$set = preg_match_all( '/(?:^|,)\s*(?:`?\w+`?\s*\.\s*)?`?' . $column . '`?\s*=/i', $update );
			if ( 0 === $set ) {
				continue;
			}
			$new[ $column ] = false === $at ? null : $this->unquote( $row[ $at ] );
			if ( false === $at || $set !== preg_match_all( '/(?:^|,)\s*(?:`?\w+`?\s*\.\s*)?`?' . $column . '`?\s*=\s*VALUES\s*\(\s*`?' . $column . '`?\s*\)\s*(?=,|;|$)/i', $update ) || null === $new[ $column ] && 'NULL' !== strtoupper( $row[ $at ] ) ) {
				return null;
			}
		}
		if ( null === $condition || '' === $condition ) {
			return null === $condition ? null : array();
		}
		$this->mark( $site, true );
		$found = $this->log->query( 'SELECT `' . implode( '`, `', array_keys( $known ) ) . "` FROM `$name` WHERE $condition LIMIT " . ( self::MAX_ROWS + 1 ) );
		if ( false === $found || count( $found ) > self::MAX_ROWS ) {
			return null;
		}
		$this->note_search( $site, $table, $condition, $this->mask( $condition ) );
		// A row that is updated counts twice: another one was inserted right before.
		$this->found        = array( $site, $table, $found ? 2 : 1 );
		$this->has_replaced = $this->has_replaced || $found;
		$rows               = array();
		foreach ( $found as $one ) {
			$one    = array_change_key_case( (array) $one );
			$rows[] = $one;
			$rows[] = $new + $one;
		}
		return $rows;
	}

	/** An INSERT of rows into a table of a plugin; their values as written, null when these are not known. `$values` goes on behind them. */
	private function insert_rows( $verb, $name, $columns, $rows, $values ) {
		list( $site, $table ) = $this->locate( $name );
		if ( $this->is_quiet_table( $table ) ) {
			return;
		}
		$columns = array_map( 'strtolower', $columns );
		$update  = $this->on_duplicate( $values );
		$known   = null === $rows || 'REPLACE' === $verb || null === $update || '' !== $update && count( $rows ) > 1 ? null : $this->id_columns( $name );
		$updated = $known && '' !== $update ? $this->updated_rows( $name, $columns, $rows[0], $update ) : array();
		$known   = null === $updated ? null : $known;
		$named   = array();
		$counts  = null;
		foreach ( null === $known ? array() : $known as $column => list( $default, $is_counted ) ) {
			$at = array_search( $column, $columns, true );
			foreach ( $rows as $nth => $row ) {
				$value = false === $at ? $default : $this->unquote( $row[ $at ] );
				if ( $is_counted && ( false === $at || in_array( $row[ $at ], array( '0', 'NULL', "''", "'0'" ), true ) ) ) {
					$counts = $column;
				} elseif ( false === $at || null !== $value || 'NULL' === strtoupper( $row[ $at ] ) ) {
					$named[ $nth ][ $column ] = $value;
				} else {
					$known = null;
				}
			}
		}
		if ( ! $known || null !== $counts && count( $rows ) > 1 ) {
			$this->whole( $site, $table );
			return;
		}
		$this->mark( $site, true );
		$this->note_rows( $site, $table, array_merge( $named, $updated ) );
		$this->count_inserts( $site, $table, $named );
		if ( null !== $counts ) {
			$this->inserted = array( $site, $table, $counts, (int) $GLOBALS['wpdb']->insert_id, $named ? reset( $named ) : array() );
		}
	}

	/** An UPDATE or DELETE in a table of a plugin: its rows are read with its own condition, before it runs. */
	private function modify_rows( $verb, $name, $set, $condition, $masked ) {
		list( $site, $table ) = $this->locate( $name );
		if ( $this->is_quiet_table( $table ) ) {
			return;
		}
		$known = preg_match( '/\bLIMIT\b/i', $masked ) ? null : $this->id_columns( $name );
		$new   = $known && 'UPDATE' === $verb ? $this->assigned( $set ) : null;
		$sql   = $known ? 'SELECT `' . implode( '`, `', array_unique( array_merge( array_keys( $known ), array_keys( (array) $new ) ) ) ) . "` FROM `$name` WHERE $condition LIMIT " . ( self::MAX_ROWS + 1 ) : '';
		$rows  = $known ? $this->log->query( $sql ) : false;
		if ( $rows && ! $this->is_marked ) {
			// Requests that end from now on say what they have written: what others did before is among the rows.
			$this->mark( $site, true );
			$rows = $this->log->query( $sql );
		}
		$this->found = false === $rows ? null : array( $site, $table, count( $rows ) );
		$named       = array();
		$stays = null !== $new && $rows && count( $rows ) <= self::MAX_ROWS;
		foreach ( $rows ? $rows : array() as $row ) {
			if ( null !== $new && $this->keeps_shown( $table, $row, $new ) ) {
				if ( ! $this->keeps( $row, $new ) ) {
					// Only what was made of the table as a whole shows it.
					$this->note_rows( $site, $table, array() );
				}
				continue;
			}
			$stays   = false;
			$named[] = array_intersect_key( array_change_key_case( (array) $row ), $known );
		}
		if ( $stays ) {
			// Unless another request writes at the same time.
			$this->note_search( $site, $table, $condition, $masked );
			$this->mark( $site, true );
			return;
		}
		$moved = array();
		foreach ( 'UPDATE' === $verb && $known ? array_keys( $known ) : array() as $column ) {
			if ( preg_match( '/(?:^|,)\s*(?:`?\w+`?\s*\.\s*)?`?' . $column . '`?\s*=\s*(\d+|' . self::STRING . '|NULL)?\s*(,|$)?/is', $set, $part ) ) {
				if ( ! isset( $part[2] ) ) {
					// An expression.
					$known = null;
				} else {
					$moved[ $column ] = $this->unquote( $part[1] );
				}
			}
		}
		if ( ! $known || false === $rows || count( $rows ) > self::MAX_ROWS ) {
			$this->whole( $site, $table );
			return;
		}
		$this->note_search( $site, $table, $condition, $masked );
		if ( ! $rows && 'DELETE' === $verb && preg_match( '/^\s*`?(\w+_id)`?\s*=\s*\'?([1-9]\d{0,17})\'?\s*$/D', $condition, $part ) ) {
			$this->cleared[ $site ][ $table ][ strtolower( $part[1] ) . ":$part[2]" ] = true;
		}
		if ( ! $rows && ! $this->is_marked ) {
			return;
		}
		$this->mark( $site, true );
		$this->has_replaced = $this->has_replaced || $rows;
		// Without a row the new values are those of rows that another request adds at the same time.
		foreach ( $moved ? ( $named ? $named : array( array() ) ) : array() as $row ) {
			if ( array_diff_assoc( $moved, $row ) ) {
				$this->moved[ $site ][ $table ] = true;
				$named[]                        = $moved + $row;
			}
		}
		$this->note_rows( $site, $table, $named );
	}

	/** Rows of a plugin's table were searched for: those with one id, where the condition begins with it, or any. */
	private function note_search( $site, $table, $condition, $masked ) {
		$is_one = ! preg_match( '/\b(?:OR|XOR|SELECT|UNION)\b|\|\|/i', $masked ) && preg_match( '/^\s*`?(\w+)`?\s*=\s*\'?([1-9]\d{0,17})\'?\s*(?:$|AND\b)/i', $condition, $part ) && preg_match( self::IDS, $part[1] );
		$known  = isset( $this->searched[ $site ][ $table ] ) ? $this->searched[ $site ][ $table ] : array();
		$this->searched[ $site ][ $table ] = $is_one && is_array( $known ) ? $known + array( strtolower( $part[1] ) . ":$part[2]" => true ) : true;
	}

	/** What an UPDATE sets, by column in lower case; null when a value is an expression. */
	private function assigned( $set ) {
		$new = array();
		$at  = 0;
		while ( preg_match( '/\G\s*+`?(\w+)`?\s*=\s*(-?\d+(?:\.\d+)?|' . self::STRING . '|NULL)\s*+(,|$)/is', $set, $part, 0, $at ) ) {
			$new[ strtolower( $part[1] ) ] = 'NULL' === strtoupper( $part[2] ) ? null : ( is_numeric( $part[2] ) ? $part[2] : $this->unquote( $part[2] ) );
			$at                           += strlen( $part[0] );
			if ( '' === $part[3] ) {
				return $new;
			}
		}
		return null;
	}

	/** Whether a row has what an UPDATE sets already, but for columns that no response shows. */
	private function keeps_shown( $table, $row, $new ) {
		return $this->keeps( $row, array_diff_key( $new, array_flip( Trellis_Known_Tables::unshown_columns( $table ) ) ) );
	}

	/** Whether a row has these values already, by column in lower case. */
	private function keeps( $row, $new ) {
		foreach ( array_change_key_case( (array) $row ) as $column => $value ) {
			if ( array_key_exists( $column, $new ) && $new[ $column ] !== $value ) {
				return false;
			}
		}
		return true;
	}

	/** Rows by column in lower case; not all of a row need be there. */
	private function note_rows( $site, $table, $named ) {
		$rows = isset( $this->table_rows[ $site ][ $table ] ) ? $this->table_rows[ $site ][ $table ] : array();
		$ids  = array();
		foreach ( array_merge( array(), ...array_map( array( __CLASS__, 'pairs_of' ), $named ) ) as list( $column, $text ) ) {
			$text  = (string) $text;
			$value = self::row_value( $text );
			if ( null !== $value ) {
				$ids[ "$column:$value" ] = true;
			} elseif ( preg_match( '/^[\s0+]*[1-9]|[^\x20-\x7e]/', $text ) ) {
				// To the database a text that begins with a number is this number, and letters of other alphabets may be the same as Latin ones.
				$this->whole( $site, $table );
			}
		}
		$this->table_rows[ $site ][ $table ] = $rows + $ids;
		if ( count( $rows ) + count( $ids ) > self::MAX_ROWS ) {
			$this->whole( $site, $table );
		}
	}

	/** The row of the last INSERT, with the id that the database gave it. */
	private function note_counted( $site, $table, $column, $id, $row ) {
		$this->note_rows( $site, $table, array( array( $column => $id ) + $row ) );
		$this->inserts[ $site ][ $table ][ "$column:$id" ] = true;
	}

	private function count_inserts( $site, $table, $named ) {
		foreach ( Trellis_Known_Tables::is_memoized( $table ) ? $named : array() as $row ) {
			foreach ( self::pairs_of( $row ) as list( $column, $text ) ) {
				$name = $column . ':' . self::row_value( (string) $text );
				$this->inserts[ $site ][ $table ][ $name ] = isset( $this->inserts[ $site ][ $table ][ $name ] ) ? 2 : 1;
			}
		}
	}

	/**
	 * Rows that a read has memoized, by names of theirs: it looked for this object in vain, or cleared what there was of it and found
	 * nothing, and has inserted one row. Who saw a row with the name saw the same, and so did who inserted another.
	 */
	private function memoized( $site, $table ) {
		if ( '' === $this->request || ! $this->is_reading() || $this->has_replaced || ! Trellis_Known_Tables::is_memoized( $table ) ) {
			return array();
		}
		$names = array();
		foreach ( isset( $this->inserts[ $site ][ $table ] ) ? $this->inserts[ $site ][ $table ] : array() as $name => $count ) {
			$is_object = false !== strpos( $name, '-' ) && call_user_func( $this->has_missed, $table, $name );
			if ( true === $count || 1 === $count && ( $is_object || isset( $this->cleared[ $site ][ $table ][ $name ] ) ) ) {
				$names[ $name ] = true;
			}
		}
		return $names;
	}

	/** WordPress counts the terms of a post again after each save. Their states are known when they were read with the post. */
	private function count_again( $site, $row ) {
		if ( ! isset( $this->terms[ $site ][ $row ] ) ) {
			return false;
		}
		$this->mark( $site );
		if ( ! isset( $this->terms[ $site ][ $row ] ) ) {
			// A long request has reported meanwhile, and begins again.
			return false;
		}
		list( $id, $state ) = $this->terms[ $site ][ $row ];
		$this->forget_terms( $site, array( $id ) );
		$this->touch( $site, 'term', $id, $state, true );
		return true;
	}

	/** What was read of these terms is about to change. */
	private function forget_terms( $site, $ids ) {
		foreach ( isset( $this->terms[ $site ] ) ? $this->terms[ $site ] : array() as $row => list( $id ) ) {
			if ( in_array( $id, $ids ) ) {
				unset( $this->terms[ $site ][ $row ] );
			}
		}
	}

	/** WordPress writes the row of a blog with each post, mostly for its `last_updated` alone: other columns are compared at the end. */
	private function compare_later( $site, $table, $sql ) {
		$this->mark( $site );
		if ( ! isset( $this->compared[ $sql ] ) ) {
			$this->compared[ $sql ] = array( $site, $table, $this->without_time( $sql ) );
		}
	}

	private function without_time( $sql ) {
		$rows = $this->log->query( $sql );
		foreach ( $rows ? $rows : array() as $row ) {
			unset( $row->last_updated );
		}
		return json_encode( $rows );
	}

	/**
	 * The ids of the owners of rows that an UPDATE or DELETE will reach, read with its own condition, but for rows with quiet names; with
	 * `$has_keys` also but for rows with a user's keys, which are noted. Null when that fails.
	 */
	private function find( $site, $name, $table, $owner, $named, $condition, $masked, $has_keys = false ) {
		$columns = '' === $named || $named === $owner ? "`$owner` AS id" : "`$owner` AS id, `$named` AS name";
		$limit   = preg_match( '/\bLIMIT\b/i', $masked ) ? '' : ' LIMIT ' . ( self::MAX_ROWS * 5 );
		$rows    = $this->log->query( "SELECT $columns FROM `$name` WHERE $condition$limit" );
		if ( false === $rows || '' !== $limit && count( $rows ) >= self::MAX_ROWS * 5 ) {
			return null;
		}
		$this->found = array( $site, $table, count( $rows ) );
		$ids         = array();
		foreach ( $rows as $row ) {
			if ( '' !== $named && $this->is_quiet( $table, isset( $row->name ) ? $row->name : $row->id ) ) {
				continue;
			}
			if ( ! $has_keys || ! $this->touch_key( $site, $row->id, isset( $row->name ) ? $row->name : null ) ) {
				$ids[ $row->id ] = true;
			}
		}
		if ( $ids && ! $this->is_marked ) {
			// Requests that end from now on say what they have written: what others did before is among the rows.
			$this->mark( $site, self::is_aside_table( $table ) );
			return $this->find( $site, $name, $table, $owner, $named, $condition, $masked, $has_keys );
		}
		return array_keys( $ids );
	}

	/** Any other statement: every table that it names has changed. */
	private function mention( $sql ) {
		$plain  = $this->mask( $sql );
		$prefix = preg_quote( $GLOBALS['wpdb']->base_prefix, '/' );
		// The expired temporary values, which cron deletes from the table joined with itself.
		if ( preg_match( '/^DELETE a, b FROM \S+ a, \S+ b\s+WHERE a\.(?:option_name|meta_key) LIKE \'\\\\{1,2}_(?:site\\\\{1,2}_)?transient\\\\{1,2}_%\'/', $sql ) ) {
			return;
		}
		if ( null === $plain || ! preg_match_all( '/(?<![\w$])' . $prefix . '[\w$-]+/i', $plain, $found ) ) {
			$this->everything( 'statement' );
			return;
		}
		foreach ( array_unique( array_merge( $found[0], self::written_names( $plain ) ) ) as $name ) {
			list( $site, $table ) = $this->locate( $name );
			$this->whole( $site, $table );
		}
	}

	/** Names that stand where a statement may write a table, also without the prefix. */
	private static function written_names( $plain ) {
		$beside = '(?:\s+(?:AS\s+)?(?!(?:SET|WHERE|TO|JOIN|USING|VALUES?|SELECT)\b)\w+)?';
		preg_match_all( '/(?:\b(?:INTO|(?<!KEY )UPDATE|FROM|JOIN|USING|TABLE|TO)|^(?:INSERT|REPLACE))\s+(?:(?:TABLE|LOW_PRIORITY|DELAYED|HIGH_PRIORITY|IGNORE|QUICK|INTO|FROM|IF|EXISTS)\s+)*+((?:[`\w$.]+' . $beside . '\s*,\s*)*[`\w$.]+)/i', $plain, $lists );
		preg_match_all( '/,\s*([`\w$.]+)\s+TO\b/i', $plain, $renamed );
		$names = array();
		foreach ( preg_split( '/\s*,\s*/', implode( ',', array_merge( $lists[1], $renamed[1] ) ) ) as $name ) {
			$names[] = preg_match( '/^' . self::NAME . '/', $name, $part ) ? $part[1] : '';
		}
		return array_filter( $names );
	}

	/** Blog and unprefixed name of a table; the blog of a network's own tables is 0. */
	private function locate( $name ) {
		global $wpdb;
		list( $name, $users, $usermeta, $prefix ) = array_map( array( 'Trellis_Known_Tables', 'known_name' ), array( $name, $wpdb->users, $wpdb->usermeta, $wpdb->base_prefix ) );
		$network = is_multisite() ? 0 : 1;
		if ( $name === $users || $name === $usermeta ) {
			return array( $network, $name === $users ? 'users' : 'usermeta' );
		}
		if ( 0 !== strpos( $name, $prefix ) ) {
			return array( $network, $name );
		}
		$short = substr( $name, strlen( $prefix ) );
		if ( is_multisite() && preg_match( '/^(\d+)_(.+)$/', $short, $part ) ) {
			return array( (int) $part[1], $part[2] );
		}
		return array( in_array( $short, self::GLOBAL_TABLES, true ) ? $network : 1, $short );
	}

	private function is_quiet( $table, $name ) {
		if ( null === $name || ! isset( self::QUIET[ $table ] ) ) {
			return false;
		}
		if ( 'usermeta' === $table ) {
			$is_own       = in_array( $name, self::QUIET[ $table ], true ) || preg_match( '/^' . preg_quote( $GLOBALS['wpdb']->base_prefix, '/' ) . '(?:\d+_)?(?:user-settings|user-settings-time|dashboard_quick_press_last_post_id)$/D', $name );
			$this->is_own = $this->is_own || $is_own;
			if ( $is_own ) {
				call_user_func( $this->written );
			}
			return (bool) $is_own;
		}
		if ( in_array( $name, self::QUIET[ $table ], true ) ) {
			return true;
		}
		if ( 'postmeta' === $table || ! self::is_temporary( $name ) ) {
			return false;
		}
		if ( preg_match( Trellis_Tags::KNOWN_TEMPORARY, $name ) || preg_match( '/^_(?:site_)?transient_timeout_/', $name ) ) {
			// A response that shows a temporary value ends with it, as its end was known then.
			return true;
		}
		if ( 'sitemeta' === $table ) {
			$this->doubt();
			return true;
		}
		return false;
	}

	/** The taxonomy whose parents WordPress memoizes in an option of this name, `category_children`; '' for other names. */
	public static function hierarchy_in( $name ) {
		$taxonomy = '_children' === substr( (string) $name, -9 ) ? substr( $name, 0, -9 ) : '';
		return '' !== $taxonomy && is_taxonomy_hierarchical( $taxonomy ) ? $taxonomy : '';
	}

	private static function is_temporary( $name ) {
		return 0 === strpos( $name, '_transient_' ) || 0 === strpos( $name, '_site_transient_' );
	}

	/** The text with every quoted string replaced by question marks, so that keywords in it are not found; null when that fails. */
	private function mask( $text ) {
		return preg_replace_callback(
			'/' . self::STRING . '/s',
			function ( $found ) {
				return str_repeat( '?', strlen( $found[0] ) );
			},
			$text
		);
	}

	private function find_where( $plain ) {
		$from = 0;
		while ( preg_match( '/\bWHERE\b/i', $plain, $found, PREG_OFFSET_CAPTURE, $from ) ) {
			$at     = $found[0][1];
			$before = substr( $plain, 0, $at );
			if ( substr_count( $before, '(' ) === substr_count( $before, ')' ) ) {
				return $at;
			}
			$from = $at + 5;
		}
		return false;
	}

	/** The values of an INSERT, tuple by tuple, as written; null when they are not plain. */
	private function tuples( $text, $width ) {
		$rows  = array();
		$at    = 0;
		$value = '\s*+(' . self::STRING . '|[^\s,()\'"]++(?:\s*\([^()\'"]*\))?)\s*+';
		do {
			$row = array();
			if ( ! preg_match( '/\G\s*+\(/', $text, $found, 0, $at ) ) {
				return null;
			}
			$at += strlen( $found[0] );
			do {
				if ( ! preg_match( '/\G' . $value . '([,)])/s', $text, $found, 0, $at ) ) {
					return null;
				}
				$at   += strlen( $found[0] );
				$row[] = $found[1];
			} while ( ',' === $found[2] );
			if ( count( $row ) !== $width || count( $rows ) >= self::MAX_ROWS ) {
				return null;
			}
			$rows[] = $row;
			$next   = preg_match( '/\G\s*+,/', $text, $found, 0, $at );
			$at    += $next ? strlen( $found[0] ) : 0;
		} while ( $next );
		return $rows;
	}

	/** A literal's value; null for an expression. */
	private function unquote( $literal ) {
		if ( '' !== $literal && ( "'" === $literal[0] || '"' === $literal[0] ) ) {
			return stripslashes( str_replace( $literal[0] . $literal[0], $literal[0], substr( $literal, 1, -1 ) ) );
		}
		return ctype_digit( $literal ) ? $literal : null;
	}

	/** Whether no response shows what is written to a table, or only those of the user of this request. */
	private function is_quiet_table( $table ) {
		if ( 'trellis_changes' !== $table && ! Trellis_Known_Tables::is_hidden( $table ) && ! in_array( $table, array_map( array( 'Trellis_Known_Tables', 'known_name' ), explode( ',', trellis_setting( 'TRELLIS_IGNORED_TABLES' ) ) ), true ) ) {
			return false;
		}
		if ( Trellis_Known_Tables::is_own( $table ) ) {
			$this->is_own = true;
			call_user_func( $this->written );
		}
		return true;
	}

	/** A whole table has changed. */
	private function whole( $site, $table ) {
		if ( $this->is_quiet_table( $table ) ) {
			return;
		}
		$this->mark( $site, self::is_aside_table( $table ) );
		$this->tables[ $site ][ $table ] = true;
		$this->terms[ $site ]            = array();
	}

	private function everything( $reason ) {
		$this->mark( 0 );
		$this->reason = $reason;
	}

	private function touch_all( $site, $kind, $ids, $changes_state, $counts_only = false ) {
		if ( 'option' === $kind || 'network' === $kind ) {
			if ( 'option' === $kind ) {
				$this->keep_values( $site, $ids, $changes_state );
			}
			foreach ( $ids as $name ) {
				if ( 'network' === $kind ) {
					$this->tables[ $site ]['sitemeta'] = true;
				} elseif ( null === self::option_name( $name ) ) {
					$this->whole( $site, 'options' );
				} else {
					if ( 'sticky_posts' === $name && ! isset( $this->options[ $site ][ $name ] ) ) {
						$this->sticky[ $site ] = $this->sticky_posts( $site );
					}
					$this->options[ $site ][ $name ] = true;
				}
			}
			return;
		}
		if ( 'term' === $kind ) {
			$this->forget_terms( $site, $ids );
		}
		$states = $ids && $changes_state && 'user' !== $kind ? $this->states( $site, $kind, $ids ) : null;
		foreach ( $ids as $id ) {
			$this->touch( $site, $kind, (int) $id, null === $states ? false : ( isset( $states[ $id ] ) ? $states[ $id ] : null ), $counts_only );
		}
	}

	/** The ids in the option as it is in the database; null when it is no list of ids. */
	private function sticky_posts( $site ) {
		$rows  = $this->log->query( 'SELECT option_value FROM ' . $GLOBALS['wpdb']->get_blog_prefix( $site ) . "options WHERE option_name = 'sticky_posts'" );
		$value = $rows ? @unserialize( $rows[0]->option_value, array( 'allowed_classes' => false ) ) : ( false === $rows ? null : array() );
		return is_array( $value ) && array() === array_filter( $value, 'is_array' ) ? array_map( 'intval', $value ) : null;
	}

	/** Forms write each of their settings again: an UPDATE often leaves an option as it was. Temporary values are made again when they are gone. */
	private function keep_values( $site, $names, $may_stay ) {
		$may_stay = $may_stay || array( 'WPLANG' ) === $names || array() !== array_filter( $names, array( __CLASS__, 'is_temporary' ) ) || array() !== array_filter( $names, array( __CLASS__, 'hierarchy_in' ) );
		$values   = $may_stay && ! $this->is_uncommitted ? $this->values( $site, $names ) : null;
		foreach ( $names as $name ) {
			$value = isset( $values[ $name ] ) ? $values[ $name ] : false;
			if ( ! isset( $this->values[ $site ][ $name ] ) || ! in_array( $value, $this->values[ $site ][ $name ], true ) ) {
				$this->values[ $site ][ $name ][] = $value;
			}
		}
	}

	/**
	 * Digests of options as they are in the database, by name. Null when that says too little: a replica, which some classes in the place
	 * of wpdb ask before the first write, may lag behind, and a persistent object cache may have another value.
	 */
	private function values( $site, $names ) {
		if ( method_exists( $GLOBALS['wpdb'], 'send_reads_to_masters' ) ) {
			return null;
		}
		$temporary = array_values( array_filter( $names, array( __CLASS__, 'is_temporary' ) ) );
		$timeouts  = str_replace( '_transient_', '_transient_timeout_', $temporary );
		$in        = "'" . implode( "', '", array_map( 'esc_sql', array_merge( $names, $timeouts ) ) ) . "'";
		$counting  = array_intersect( $names, Trellis_Known_Code::counting_options() );
		$whole     = $counting ? ", IF(option_name IN ('" . implode( "', '", $counting ) . "'), option_value, NULL) AS whole" : '';
		$rows      = $this->log->query_primary( "SELECT option_name, autoload, MD5(option_value) AS digest, SUBSTR(option_value, 1, 10) AS start$whole FROM "  . $GLOBALS['wpdb']->get_blog_prefix( $site ) . "options WHERE option_name IN ($in)" );
		$ends      = array_intersect_key( array_column( (array) $rows, 'start', 'option_name' ), array_flip( $timeouts ) );
		$rows      = is_array( $rows ) ? array_filter(
			$rows,
			function ( $row ) use ( $ends ) {
				return ! isset( $ends[ $row->option_name ] );
			}
		) : $rows;
		$digests = array_column( (array) $rows, 'digest', 'option_name' );
		// The database may take names for the same that differ in case.
		if ( false === $rows || array_diff_key( $digests, array_flip( $names ) ) || wp_using_ext_object_cache() && ! $this->are_cached( $site, $names, $digests ) ) {
			return null;
		}
		$values = array();
		foreach ( $rows as $row ) {
			$values[ $row->option_name ] = "$row->autoload $row->digest";
		}
		foreach ( $temporary as $at => $name ) {
			$is_over         = isset( $ends[ $timeouts[ $at ] ] ) && (int) $ends[ $timeouts[ $at ] ] < time();
			$values[ $name ] = isset( $digests[ $name ] ) && ! $is_over ? $digests[ $name ] : self::NOT_THERE;
		}
		foreach ( array_filter( $names, array( __CLASS__, 'hierarchy_in' ) ) as $name ) {
			$values += array( $name => self::NOT_THERE );
		}
		foreach ( array_intersect_key( $counting ? array_column( $rows, 'whole', 'option_name' ) : array(), array_flip( $counting ) ) as $name => $whole ) {
			$parts = self::NOT_THERE === $values[ $name ] ? null : Trellis_Known_Code::counts_in( $whole );
			if ( null !== $parts ) {
				$values[ $name ]                     = md5( $parts[0] );
				$this->numbers[ $site ][ $name ][] = $parts[1];
			}
		}
		// The first save of the general settings adds an empty language, which is that of a site without one.
		if ( in_array( 'WPLANG', $names, true ) && ( ! isset( $digests['WPLANG'] ) || md5( '' ) === $digests['WPLANG'] ) && $this->is_english() ) {
			$values['WPLANG'] = 'none';
		}
		return $values;
	}

	/** Whether a persistent object cache has the same values of options as the database. */
	private function are_cached( $site, $names, $digests ) {
		$all = get_current_blog_id() === $site ? wp_cache_get( 'alloptions', 'options', true ) : null;
		foreach ( is_array( $all ) ? $names : array() as $name ) {
			$value  = isset( $all[ $name ] ) ? $all[ $name ] : wp_cache_get( $name, 'options', true );
			$digest = false === $value ? null : ( is_scalar( $value ) ? md5( $value ) : '' );
			if ( ( isset( $digests[ $name ] ) ? $digests[ $name ] : null ) !== $digest ) {
				return false;
			}
		}
		return is_array( $all );
	}

	/** Does a blog without its own language have the one that WordPress is written in? */
	private function is_english() {
		global $wpdb;
		if ( defined( 'WPLANG' ) || isset( $GLOBALS['wp_local_package'] ) ) {
			return false;
		}
		return ! is_multisite() || ! wp_using_ext_object_cache() && array() === $this->log->query( "SELECT meta_id FROM $wpdb->sitemeta WHERE meta_key = 'WPLANG' AND meta_value NOT IN ('', 'en_US')" );
	}

	/** Options of which each write has left the value as it was. */
	private function unchanged_options() {
		$unchanged = array();
		foreach ( $this->values as $site => $names ) {
			$stayed = array_filter(
				$names,
				function ( $values ) {
					return ! in_array( false, $values, true );
				}
			);
			$last   = $stayed ? $this->values( $site, array_map( 'strval', array_keys( $stayed ) ) ) : array();
			foreach ( $stayed as $name => $values ) {
				$value                       = isset( $last[ $name ] ) ? $last[ $name ] : null;
				$is_same                     = $value === $values[0] || self::NOT_THERE === $values[0] && $this->is_reading();
				$unchanged[ $site ][ $name ] = $is_same && array() === array_diff( $values, array( $value, self::NOT_THERE ) );
				if ( '' !== self::hierarchy_in( $name ) && null !== $value && count( array_diff( array_unique( array_merge( $values, array( $value ) ) ), array( self::NOT_THERE ) ) ) < 2 && ( self::NOT_THERE !== $value || isset( $this->objects[ $site ]['term'] ) ) ) {
					// Made again from the terms, or deleted with a change of one, which says which parents are others. Who deletes it alone knows that it is wrong.
					$this->hierarchies[ $site ][ $name ] = true;
				}
			}
		}
		return $unchanged;
	}

	/** A request that only reads makes a temporary value that is not there from what its response is made of as well. */
	private function is_reading() {
		return isset( $_SERVER['REQUEST_METHOD'] ) && in_array( $_SERVER['REQUEST_METHOD'], array( 'GET', 'HEAD' ), true ) && ! wp_doing_cron();
	}

	/** Whether a key of a user's meta is shown by those responses alone that name it. To the database letters of other alphabets may be the same as Latin ones. */
	public static function is_named_key( $key ) {
		return null !== $key && ! preg_match( '/[^\x20-\x7e]/', $key ) && ! in_array( strtolower( rtrim( $key ) ), self::USER_KEYS, true ) && ! preg_match( '/(?:capabilities|user_level)\s*$/iD', $key );
	}

	/** A key as responses and changes name it: to the database letters of either case are the same, and spaces at the end nothing. */
	public static function key_name( $key ) {
		return substr( md5( strtolower( rtrim( $key ) ) ), 0, 6 );
	}

	/** Notes that a user's meta with this key is written; false if that concerns all that is shown of the user. */
	private function touch_key( $site, $id, $key ) {
		if ( ! self::is_named_key( $key ) ) {
			return false;
		}
		$this->mark( $site, true );
		$this->touch( $site, 'user', (int) $id, false, false, self::key_name( $key ) );
		return true;
	}

	/**
	 * @param array|null|false $state Before the write that follows; null: not there; false: not read.
	 * @param string|null      $key   Of a user's meta, if only that is written.
	 */
	private function touch( $site, $kind, $id, $state = false, $counts_only = false, $key = null ) {
		if ( $this->count > ( empty( $GLOBALS['_wp_suspend_cache_invalidation'] ) ? self::MAX_OBJECTS : self::MAX_IMPORTED ) ) {
			$this->reason = 'overflow';
			return;
		}
		if ( ! isset( $this->objects[ $site ][ $kind ][ $id ] ) ) {
			++$this->count;
			$this->objects[ $site ][ $kind ][ $id ] = array( 'states' => array(), 'counts_only' => true, 'counted' => 0, 'is_seen' => true, 'keys' => array() );
		}
		$object = &$this->objects[ $site ][ $kind ][ $id ];
		if ( null === $key ) {
			$object['keys'] = null;
		} elseif ( null !== $object['keys'] ) {
			$object['keys'][ $key ] = true;
		}
		if ( false !== $state && ( ! $object['states'] || end( $object['states'] ) !== $state ) ) {
			$object['states'][] = $state;
		}
		$object['counts_only'] = $object['counts_only'] && $counts_only;
		$object['counted']    += $counts_only ? 1 : 0;
	}

	/** The id of the last INSERT, once it has run. */
	private function settle_insert( $asks_last = false ) {
		if ( null === $this->inserted ) {
			return;
		}
		global $wpdb;
		list( $site, $table, $kind, $earlier, $row ) = $this->inserted;
		$this->inserted = null;
		$is_own         = ! isset( self::TABLES[ $table ] );
		$id = (int) $wpdb->insert_id;
		if ( 0 === $id && '' === $wpdb->last_error ) {
			// `$wpdb->insert()` has set it back for the next row; the database still knows.
			$id = $this->log->last_insert_id( ! $asks_last );
		}
		if ( $id > 0 && ( $id !== $earlier || '' === $wpdb->last_error ) ) {
			// For a table of a plugin its counted column stands in the place of the kind.
			$is_own ? $this->note_counted( $site, $table, $kind, $id, $row ) : $this->touch( $site, $kind, $id, 'user' === $kind ? false : null );
		} elseif ( '' === $wpdb->last_error ) {
			$this->whole( $site, $table );
		}
	}

	/** An UPDATE or DELETE that has reached more rows than were found right before it: another request has inserted some in between. */
	private function settle_found( $asks_last = false ) {
		global $wpdb;
		if ( null === $this->found || ! isset( $this->found[3] ) || $wpdb->last_query !== $this->found[3] ) {
			return;
		}
		list( $site, $table, $count ) = $this->found;
		$this->found = null;
		// MariaDB and MySQL count rows that an UPDATE leaves as they were only here.
		$matched = $wpdb->dbh instanceof mysqli && preg_match( '/matched: (\d+)/', (string) mysqli_info( $wpdb->dbh ), $part ) ? (int) $part[1] : 0;
		if ( max( $matched, (int) $wpdb->rows_affected ) > $count ) {
			if ( $asks_last && ! $this->is_marked ) {
				$this->is_owed = true;
			} else {
				$this->whole( $site, $table );
			}
		}
	}

	/** Whether rows of a table belong to no post, term or comment: options, users, what plugins keep. */
	private static function is_aside_table( $table ) {
		return ! isset( self::TABLES[ $table ] ) || ! in_array( self::TABLES[ $table ][0], array( 'post', 'term', 'comment' ), true );
	}

	/** Whether changes, as the log has them, concern no post, term or comment. */
	public static function are_aside( $changes ) {
		foreach ( is_array( $changes ) ? $changes : array( null ) as $change ) {
			$kind = isset( $change->kind ) ? $change->kind : '';
			if ( 'option' !== $kind && 'user' !== $kind && ( 'table' !== $kind || ! self::is_aside_table( $change->name ) ) ) {
				return false;
			}
		}
		return true;
	}

	/**
	 * Before the first write of a request: from now on its changes cannot be lost. As long as it writes aside, those that write posts, terms
	 * and comments at the same time know their states.
	 */
	private function mark( $site, $is_aside = false ) {
		if ( $this->is_marked && $this->is_aside && ! $is_aside ) {
			$this->is_aside = false;
			foreach ( $this->marks as $mark ) {
				$this->log->leave_aside( $mark, '' !== $this->request );
			}
		}
		if ( ! $this->is_marked ) {
			call_user_func( $this->written );
			$this->is_marked = true;
			$this->marked_at = time();
			$this->is_aside  = $is_aside;

			$has_inserted = $GLOBALS['wpdb']->insert_id > 0;
			$id           = $has_inserted ? $this->log->last_insert_id() : null;
			$mark         = $this->log->open( $site, '' !== $this->request, $is_aside );
			if ( $mark > 0 ) {
				$this->marks[]    = $mark;
				$this->has_own_id = ! $has_inserted;
			}
			$this->log->restore_insert_id( $id );
		}
	}

	/** What lists filter by, as it is in the database now. At the end of the request also the surroundings of its mark. */
	private function states( $site, $kind, $ids, $ends = false ) {
		global $wpdb;
		$prefix = $wpdb->get_blog_prefix( $site );
		$in     = implode( ',', array_map( 'intval', $ids ) );
		$states = array();
		if ( 'post' === $kind ) {
			// Only with a mark there is a log.
			$more = ! $this->marks ? '' : ( $ends ? $this->log->around( end( $this->marks ) ) : $this->log->creation_unless_known() );
			$rows = $this->rows( "SELECT p.ID, p.post_type, p.post_status, p.post_name, p.post_parent, p.post_author, p.post_date, p.menu_order, p.post_password, p.post_modified, p.post_modified_gmt, p.comment_count, MD5(p.post_title) AS title, MD5(p.post_content) AS content, MD5(p.post_excerpt) AS excerpt, t.term_taxonomy_id, t.taxonomy, t.term_id, t.parent, t.count, n.slug, MD5(n.name) AS name$more FROM {$prefix}posts p LEFT JOIN {$prefix}term_relationships r ON r.object_id = p.ID LEFT JOIN {$prefix}term_taxonomy t ON t.term_taxonomy_id = r.term_taxonomy_id LEFT JOIN {$prefix}terms n ON n.term_id = t.term_id WHERE p.ID IN ($in) ORDER BY p.ID, t.taxonomy, t.term_id" );
			if ( '' !== $more && $rows ) {
				$this->log->take( $rows[0] );
			}
			foreach ( $rows as $row ) {
				$this->require_collated( array( $row->post_type, $row->post_status, $row->taxonomy ) );
				if ( ! isset( $states[ $row->ID ] ) ) {
					$states[ $row->ID ] = array( 'type' => $row->post_type, 'status' => $row->post_status, 'slug' => self::collated( $row->post_name ), 'parent' => (int) $row->post_parent, 'author' => (int) $row->post_author, 'date' => $row->post_date, 'menu_order' => (int) $row->menu_order, 'protected' => '' !== $row->post_password, 'terms' => array(), 'relations' => array(), self::TEXTS => array( 'title' => $row->title, 'content' => $row->content, 'excerpt' => $row->excerpt, 'modified' => "$row->post_modified $row->post_modified_gmt", 'comments' => (int) $row->comment_count ) );
				}
				if ( null !== $row->term_id ) {
					$states[ $row->ID ]['terms'][ $row->taxonomy ][] = (int) $row->term_id;
					if ( null !== $row->slug ) {
						$this->terms[ $site ][ (int) $row->term_taxonomy_id ] = array( (int) $row->term_id, $this->term_state( $row ) );
					}
					$states[ $row->ID ]['relations'][]               = (int) $row->term_taxonomy_id;
				}
			}
		} elseif ( 'term' === $kind ) {
			$rows = $this->rows( "SELECT t.term_id, t.slug, MD5(t.name) AS name, x.taxonomy, x.parent, x.count FROM {$prefix}terms t LEFT JOIN {$prefix}term_taxonomy x ON x.term_id = t.term_id WHERE t.term_id IN ($in) ORDER BY t.term_id, x.taxonomy" );
			foreach ( $rows as $row ) {
				$this->require_collated( array( $row->taxonomy ) );
				if ( null !== $row->taxonomy ) {
					$states[ $row->term_id ] = ( isset( $states[ $row->term_id ] ) ? $states[ $row->term_id ] : array() ) + $this->term_state( $row );
				}
			}
		} elseif ( 'comment' === $kind ) {
			$rows = $this->rows( "SELECT comment_ID, comment_post_ID, comment_approved, comment_parent FROM {$prefix}comments WHERE comment_ID IN ($in)" );
			foreach ( $rows as $row ) {
				$status                     = array( '1' => 'approve', '0' => 'hold' );
				$states[ $row->comment_ID ] = array( 'post' => (int) $row->comment_post_ID, 'status' => isset( $status[ $row->comment_approved ] ) ? $status[ $row->comment_approved ] : $row->comment_approved, 'parent' => (int) $row->comment_parent );
			}
		}
		return $states;
	}

	/** The rows of a statement; when it fails, nothing is known of what the request changes. */
	private function rows( $sql ) {
		$rows = $this->log->query( $sql );
		if ( false === $rows ) {
			$this->everything( 'statement' );
		}
		return array_filter( (array) $rows, 'is_object' );
	}

	private function term_state( $row ) {
		return array( $row->taxonomy => array( 'slug' => $row->slug, 'parent' => (int) $row->parent, 'count' => (int) $row->count, self::TEXTS => array( 'name' => $row->name ) ) );
	}

	/** The states at the end, of all objects of a blog. Posts come first: their terms are read with them. */
	private function last_states( $site, $kinds ) {
		$this->terms[ $site ] = array();
		$last                 = array();
		foreach ( array_intersect_key( array( 'post' => 1, 'comment' => 1, 'term' => 1 ), $kinds ) as $kind => $yes ) {
			$known = array();
			foreach ( 'term' === $kind ? $this->terms[ $site ] : array() as list( $id, $state ) ) {
				$known[ $id ] = ( isset( $known[ $id ] ) ? $known[ $id ] : array() ) + $state;
			}
			$missing       = array_diff_key( $kinds[ $kind ], $known );
			$last[ $kind ] = $known + ( $missing ? $this->states( $site, $kind, array_keys( $missing ), true ) : array() );
		}
		return $last;
	}

	/**
	 * Closes the mark and reports the changes so far. Called at the end of the request, and now and then in a long one; with
	 * `$may_wait` it leaves a transaction that may still be committed to the next call.
	 */
	public function finish( $may_wait = false ) {
		if ( $may_wait && $this->is_uncommitted ) {
			return;
		}
		try {
			$this->settle_insert();
			$this->settle_found();
			if ( $this->calls ) {
				$this->settle_calls();
			}
			if ( $this->is_owed ) {
				$this->is_owed = false;
				$this->everything( 'statement' );
			}
			if ( $this->is_marked || $this->marks || $this->count > 0 ) {
				$this->report();
			}
		} catch ( Throwable $error ) {
			$this->is_unsure = true;
			error_log( 'Trellis: the changes of this request could not be reported: ' . $error->getMessage() );
		}
		$this->marks      = array();
		$this->is_marked  = false;
		$this->is_aside   = false;
		$this->objects    = array();
		$this->options    = array();
		$this->tables     = array();
		$this->table_rows = array();
		$this->inserts    = array();
		$this->cleared    = array();
		$this->terms      = array();
		$this->searched   = array();
		$this->moved      = array();
		$this->compared   = array();
		$this->sticky     = array();
		$this->values     = array();
		$this->numbers    = array();
		$this->hierarchies = array();
		$this->reason     = '';
		$this->count      = 0;
		$this->inserted   = null;
		$this->found      = null;
		$this->transacted = $this->is_uncommitted;
		$this->has_replaced = false;
	}

	private function report() {
		$last = array();
		foreach ( $this->objects as $site => $kinds ) {
			$last[ $site ] = '' === $this->reason ? $this->last_states( $site, $kinds ) : array();
		}
		foreach ( $this->sticky as $site => $before ) {
			$after                 = null === $before ? null : $this->sticky_posts( $site );
			$this->sticky[ $site ] = null === $after ? null : array_values( array_unique( array_merge( array_diff( $before, $after ), array_diff( $after, $before ) ) ) );
		}
		foreach ( $this->compared as $sql => list( $site, $table, $rows ) ) {
			if ( $this->without_time( $sql ) !== $rows ) {
				$this->tables[ $site ][ $table ] = true;
			}
		}
		$unchanged = $this->unchanged_options();
		// After the last state was read: a request that begins to write now cannot have changed it.
		$mark   = $this->marks ? array_pop( $this->marks ) : 0;
		$around = $this->log->surroundings( $mark );
		$alone  = $around['alone'] && ! $this->transacted;
		// Asked after the last states were read: who has not written any up to now has not come in between.
		$has_states = $alone || $this->objects && ! $this->transacted && $this->log->is_alone_with_objects( $mark );
		$shown      = $this->is_shown( $unchanged );
		if ( ! $alone ) {
			$this->add_searched( $mark, $has_states );
		}
		$birth = $this->log->birth();
		$print = Trellis_Companion::fingerprint();
		$parts = $this->encode( $last, $alone, $has_states, $this->log->is_new( $print ), $alone ? $unchanged : array() );
		foreach ( $parts as $site => $part ) {
			// The mark itself closes last: until then the request is known to write. A mark that a long transaction hid takes no
			// changes: gateways may have given up its sequence.
			$is_last = array_key_last( $parts ) === $site && ! $this->transacted;
			$store   = function () use ( $is_last, $mark, $site, $part, $around ) {
				return $this->log->close( $is_last ? $mark : 0, $site, $part['json'], $around['newest'] );
			};
			if ( '[]' === $part['json'] ) {
				$store();
				continue;
			}
			// A gateway that has not accepted a part finds the others by its next poll as well.
			if ( $this->has_failed ) {
				$this->name_row( $birth, $store() );
				continue;
			}
			// The row of a mark is known before it is closed: that is done while gateways answer.
			$part['sequence'] = $is_last && $mark > 0 ? $mark : $store();
			$this->name_row( $birth, $part['sequence'] );
			$outcomes         = call_user_func( $this->send, $birth ? $birth['incarnation'] : '', $site, $part + ( $shown ? array( 'request' => $this->request ) : array() ), $around['previous'], $print, $is_last && $mark > 0 ? $store : '__return_null' );
			$this->has_failed = array() !== array_diff( $outcomes, array( 200 ) );
		}
		foreach ( array_merge( $this->marks, $this->transacted ? array( $mark ) : array() ) as $empty ) {
			$this->log->close( $empty, 0, '[]', $around['newest'] );
		}
		if ( $birth && 0 === $mark % 100 ) {
			$this->log->prune( $around['newest'] );
		}
	}

	/** Whether the response of this request, a read, shows the state after all that it has written. */
	private function is_shown( $unchanged ) {
		if ( '' === $this->request || ! $this->is_reading() || '' !== $this->reason || $this->has_replaced || $this->transacted || $this->objects || $this->tables || $this->compared ) {
			return false;
		}
		foreach ( $this->table_rows as $names ) {
			foreach ( $names as $table => $rows ) {
				// A list may have been read before the row was there.
				if ( ! Trellis_Known_Tables::is_memoized( $table ) || call_user_func( $this->lists, $table, $rows ) ) {
					return false;
				}
			}
		}
		foreach ( $this->options as $site => $names ) {
			foreach ( array_keys( $names ) as $name ) {
				$is_made = self::is_temporary( $name ) && ( ! empty( $unchanged[ $site ][ $name ] ) || Trellis_Known_Code::is_remade( $name ) );
				if ( ! $is_made && empty( $this->hierarchies[ $site ][ $name ] ) ) {
					return false;
				}
			}
		}
		return true;
	}

	/**
	 * Rows that this request has searched for may be those of another one that wrote at the same time. One that has ended says which these
	 * are, in tables of plugins; one that still writes reports its rows after this one.
	 */
	private function add_searched( $mark, $is_alone_with_objects ) {
		$meanwhile = $mark > 0 && ! $this->transacted ? $this->log->meanwhile( $mark ) : null;
		foreach ( $this->moved as $site => $tables ) {
			$this->tables[ $site ] = $tables + ( isset( $this->tables[ $site ] ) ? $this->tables[ $site ] : array() );
		}
		foreach ( $this->searched as $site => $tables ) {
			foreach ( $tables as $table => $searched ) {
				if ( $is_alone_with_objects && ! self::is_aside_table( $table ) ) {
					continue;
				}
				$rows = null === $meanwhile || isset( self::TABLES[ $table ] ) || is_multisite() ? null : $this->rows_among( $table, $searched, $meanwhile );
				if ( null === $rows ) {
					$this->tables[ $site ][ $table ] = true;
				} else {
					$this->table_rows[ $site ][ $table ] = $rows + ( isset( $this->table_rows[ $site ][ $table ] ) ? $this->table_rows[ $site ][ $table ] : array() );
				}
			}
		}
	}

	/** The rows of a table among the changes of other requests that have something of what was searched for; null when these may be any. */
	private function rows_among( $table, $searched, $texts ) {
		$rows = array();
		foreach ( $texts as $text ) {
			$changes = json_decode( $text );
			foreach ( is_array( $changes ) ? $changes : array( null ) as $change ) {
				if ( ! isset( $change->kind ) || 'all' === $change->kind || 'table' === $change->kind && $table === $change->name && ! isset( $change->rows ) ) {
					return null;
				}
				$others = 'table' === $change->kind && $table === $change->name ? array_fill_keys( array_merge( $change->rows, isset( $change->memoized ) ? $change->memoized : array() ), true ) : array();
				$rows  += true === $searched || array_intersect_key( $searched, $others ) ? $others : array();
			}
		}
		return count( $rows ) > self::MAX_ROWS ? null : $rows;
	}

	private function name_row( $birth, $sequence ) {
		if ( ! $birth || $sequence <= 0 ) {
			$this->is_unsure = true;
		} elseif ( count( $this->rows ) <= self::MAX_NAMED ) {
			$this->rows[] = $birth['incarnation'] . '.' . $sequence . '.' . $this->log->check( $sequence );
		}
	}

	/** By blog: the changes as JSON. At least one, possibly without changes. */
	private function encode( $last, $alone, $has_states, $is_new_code, $unchanged ) {
		$early = array();
		foreach ( array_keys( $this->options ) as $site ) {
			$early[ $site ] = Trellis_Early_Options::stored( $this->log, $site );
		}
		$lists = $is_new_code ? array( get_current_blog_id() => array( array( 'kind' => 'all', 'reason' => 'fingerprint' ) ) ) : array();
		foreach ( $this->tables as $site => $names ) {
			foreach ( $names as $name => $yes ) {
				$lists[ $site ][] = array( 'kind' => 'table', 'name' => (string) $name );
			}
		}
		foreach ( $this->table_rows as $site => $names ) {
			foreach ( array_diff_key( $names, isset( $this->tables[ $site ] ) ? $this->tables[ $site ] : array() ) as $name => $rows ) {
				$memoized         = array_intersect_key( $rows, $this->memoized( $site, $name ) );
				$lists[ $site ][] = array( 'kind' => 'table', 'name' => (string) $name, 'rows' => array_keys( array_diff_key( $rows, $memoized ) ) ) + ( $memoized ? array( 'memoized' => array_keys( $memoized ) ) : array() );
			}
		}
		foreach ( $this->options as $site => $names ) {
			foreach ( $names as $name => $yes ) {
				if ( ! empty( $this->hierarchies[ $site ][ $name ] ) ) {
					continue;
				}
				$is_unchanged = ! empty( $unchanged[ $site ][ $name ] );
				if ( $is_unchanged && 'WPLANG' !== $name ) {
					$lists[ $site ] = array_merge( isset( $lists[ $site ] ) ? $lists[ $site ] : array(), $this->counted_terms( $site, $name ) );
					continue;
				}
				$change = array( 'kind' => 'option', 'name' => $is_unchanged ? Trellis_Tags::LANGUAGE : self::option_name( $name ) );
				if ( isset( $early[ $site ][ $change['name'] ] ) ) {
					$change['early'] = true;
				}
				if ( 'sticky_posts' === $name && $alone && isset( $this->sticky[ $site ] ) ) {
					$change['posts'] = $this->sticky[ $site ];
				}
				$lists[ $site ][] = $change;
			}
		}
		foreach ( $this->objects as $site => $kinds ) {
			foreach ( $kinds as $kind => $objects ) {
				foreach ( $objects as $id => $object ) {
					$state  = isset( $last[ $site ][ $kind ][ $id ] ) ? $last[ $site ][ $kind ][ $id ] : null;
					$states = $object['states'];
					if ( ! $states || end( $states ) !== $state ) {
						$states[] = $state;
					}
					if ( 'term' === $kind && $has_states && $object['counts_only'] && 1 === count( $states ) && $object['states'] ) {
						// WordPress counts again after each save: the number is what it was.
						continue;
					}
					foreach ( $this->describe( $site, $kind, $id, $states, $has_states && $object['is_seen'], $object['counts_only'] ) as $change ) {
						$lists[ $site ][] = $change + ( $object['keys'] ? array( 'keys' => array_map( 'strval', array_keys( $object['keys'] ) ) ) : array() );
					}
				}
			}
		}
		if ( '' !== $this->reason ) {
			$lists = array( 0 => array( array( 'kind' => 'all', 'reason' => $this->reason ) ) );
		}
		$parts = array();
		foreach ( $lists ? $lists : array( get_current_blog_id() => array() ) as $site => $list ) {
			$texts = array();
			foreach ( $list as $change ) {
				$texts[ (string) json_encode( $change, JSON_UNESCAPED_SLASHES ) ] = true;
			}
			// A change that JSON cannot say (a name that is no UTF-8) is a change of everything, like too many of them.
			$json     = '[' . implode( ',', array_keys( $texts ) ) . ']';
			$overflow = isset( $texts[''] ) || strlen( $json ) > 200000 || 'overflow' === $this->reason;
			$parts[ $site ] = array( 'json' => $overflow ? '[{"kind":"all","reason":"overflow"}]' : $json, 'overflow' => $overflow );
		}
		return $parts;
	}

	/** Terms that have another number of posts in an option which has not changed otherwise. */
	private function counted_terms( $site, $name ) {
		$changes = array();
		$numbers = isset( $this->numbers[ $site ][ $name ] ) ? $this->numbers[ $site ][ $name ] : array();
		foreach ( $numbers ? end( $numbers ) : array() as $taxonomy => $counts ) {
			foreach ( $counts as $id => $count ) {
				$others = array_filter(
					$numbers,
					function ( $other ) use ( $taxonomy, $id, $count ) {
						return ! isset( $other[ $taxonomy ][ $id ] ) || $count !== $other[ $taxonomy ][ $id ];
					}
				);
				if ( $others ) {
					$changes[] = array( 'kind' => 'term', 'id' => $id, 'taxonomy' => $taxonomy, 'before' => array( 'only' => 'count' ), 'after' => array( 'only' => 'count', self::TEXTS => array( 'count' ) ) );
				}
			}
		}
		return $changes;
	}

	/** One change for each step from state to state; without states when another request wrote at the same time. */
	private function describe( $site, $kind, $id, $states, $alone, $counts_only ) {
		if ( 'user' === $kind ) {
			return array( array( 'kind' => 'user', 'id' => $id ) );
		}
		if ( 'term' === $kind ) {
			return $this->describe_term( $id, $states, $alone, $counts_only );
		}
		$known = array_values( array_filter( $states ) );
		if ( ! $known ) {
			return array( array( 'kind' => 'table', 'name' => 'post' === $kind ? 'posts' : 'comments' ) );
		}
		$name    = 'post' === $kind ? 'type' : 'post';
		// A post that changes its type is another one in each list: the states say too little.
		$is_told = $alone && count( $states ) <= self::MAX_STEPS + 1 && ( 'post' !== $kind || 1 === count( array_unique( array_column( $known, 'type' ) ) ) );
		$changes = array();
		if ( 'post' === $kind && 'revision' === $known[0]['type'] ) {
			// Answers about the parent count its revisions. The states of the revision name the parent; without them it is reported.
			foreach ( $is_told ? array() : array_unique( array_column( $known, 'parent' ) ) as $parent ) {
				$changes[] = array( 'kind' => 'post', 'id' => $parent, 'type' => $this->type_of( $site, $parent ) );
			}
		}
		foreach ( array_unique( array_column( $known, $name ) ) as $value ) {
			if ( ! $is_told ) {
				$changes[] = array( 'kind' => $kind, 'id' => $id, $name => $value );
				continue;
			}
			foreach ( 1 === count( $states ) ? array( 0 ) : range( 0, count( $states ) - 2 ) as $step ) {
				$change = array( 'kind' => $kind, 'id' => $id, $name => $value );
				foreach ( array( 'before' => $step, 'after' => min( $step + 1, count( $states ) - 1 ) ) as $when => $index ) {
					// Null says that there is no such object: it is created, or gone.
					$change[ $when ] = null;
					if ( null !== $states[ $index ] ) {
						$change[ $when ] = array_diff_key( $states[ $index ], array( $name => 1, self::TEXTS => 1 ) );
						if ( $counts_only ) {
							$change[ $when ]['only'] = 'comments';
						}
						if ( isset( $change[ $when ]['terms'] ) && ! $change[ $when ]['terms'] ) {
							$change[ $when ]['terms'] = new stdClass();
						}
					}
				}
				if ( isset( $change['before'], $change['after'] ) && 'post' === $kind ) {
					// Which of them are others now.
					list( $was, $is ) = array( $states[ $step ], $states[ min( $step + 1, count( $states ) - 1 ) ] );
					$change['after'][ self::TEXTS ] = array_keys( array_diff_assoc( $is[ self::TEXTS ], $was[ self::TEXTS ] ) );
				}
				$changes[] = $change;
			}
		}
		return $changes;
	}

	private function describe_term( $id, $states, $alone, $counts_only ) {
		$taxonomies = array();
		foreach ( array_filter( $states ) as $state ) {
			$taxonomies += array_fill_keys( array_keys( $state ), true );
		}
		if ( ! $taxonomies ) {
			return array( array( 'kind' => 'table', 'name' => 'terms' ) );
		}
		$changes = array();
		foreach ( $taxonomies as $taxonomy => $yes ) {
			$steps = $alone && count( $states ) <= self::MAX_STEPS + 1 ? range( 0, max( 0, count( $states ) - 2 ) ) : array( -1 );
			foreach ( $steps as $step ) {
				$change = array( 'kind' => 'term', 'id' => $id, 'taxonomy' => $taxonomy );
				foreach ( -1 === $step ? array() : array( 'before' => $step, 'after' => min( $step + 1, count( $states ) - 1 ) ) as $when => $index ) {
					$change[ $when ] = isset( $states[ $index ][ $taxonomy ] ) ? array_diff_key( $states[ $index ][ $taxonomy ], array( 'count' => 1, self::TEXTS => 1 ) ) : null;
					if ( $counts_only && null !== $change[ $when ] ) {
						// Nothing was written but the number of posts.
						$change[ $when ]['only'] = 'count';
					}
				}
				if ( isset( $change['before'], $change['after'] ) ) {
					list( $was, $is ) = array( $states[ $step ][ $taxonomy ], $states[ min( $step + 1, count( $states ) - 1 ) ][ $taxonomy ] );
					$change['after'][ self::TEXTS ] = array_keys( array_diff_assoc( $is[ self::TEXTS ] + array( 'count' => $is['count'] ), $was[ self::TEXTS ] + array( 'count' => $was['count'] ) ) );
				}
				$changes[] = $change;
			}
		}
		return $changes;
	}

	private function type_of( $site, $id ) {
		$rows = $this->log->query( 'SELECT post_type FROM ' . $GLOBALS['wpdb']->get_blog_prefix( $site ) . 'posts WHERE ID = ' . (int) $id );
		return $rows ? $rows[0]->post_type : 'post';
	}
}

/** Sends a push to every gateway at once, within one time limit for all. A push that fails is made up for by the next poll. */
final class Trellis_Push {
	const LIMIT_MS = 300;

	/** Returns for each gateway the status of its answer, or why there is none. `$meanwhile` is called once, while they answer. */
	public static function send( array $gateways, $token, $body, callable $meanwhile ) {
		$requests = array();
		foreach ( $gateways as $gateway ) {
			$url = rtrim( $gateway, '/' ) . '/changes';
			$at  = parse_url( $url );
			if ( ! is_array( $at ) || empty( $at['host'] ) || ! in_array( isset( $at['scheme'] ) ? $at['scheme'] : '', array( 'http', 'https' ), true ) ) {
				continue;
			}
			$at['port']  = isset( $at['port'] ) ? $at['port'] : ( 'https' === $at['scheme'] ? 443 : 80 );
			$signature   = Trellis_Signature::header( $token, 'POST', $at['path'], $body );
			$requests[ $gateway ] = array( $url, $at, array( 'Content-Type: application/json', "Trellis-Signature: $signature", 'Expect:' ) );
		}
		if ( ! $requests || ! function_exists( 'curl_multi_init' ) ) {
			$meanwhile();
			return self::by_stream( $requests, $body );
		}
		return self::by_curl( $requests, $body, $meanwhile );
	}

	/** A separate handle: the filters of WordPress's HTTP API cannot send it elsewhere or slow it down. */
	private static function by_curl( $requests, $body, $meanwhile ) {
		$all     = curl_multi_init();
		$handles = array();
		foreach ( $requests as $gateway => $request ) {
			$handle = curl_init( $request[0] );
			curl_setopt_array(
				$handle,
				array(
					CURLOPT_POST              => true,
					CURLOPT_POSTFIELDS        => $body,
					CURLOPT_HTTPHEADER        => $request[2],
					CURLOPT_RETURNTRANSFER    => true,
					CURLOPT_FOLLOWLOCATION    => false,
					CURLOPT_PROXY             => '',
					CURLOPT_PROTOCOLS         => CURLPROTO_HTTP | CURLPROTO_HTTPS,
					CURLOPT_NOSIGNAL          => true,
					CURLOPT_CONNECTTIMEOUT_MS => self::LIMIT_MS,
					CURLOPT_TIMEOUT_MS        => self::LIMIT_MS,
				)
			);
			curl_multi_add_handle( $all, $handle );
			$handles[ $gateway ] = $handle;
		}
		$end       = microtime( true ) + self::LIMIT_MS / 1000;
		$is_called = false;
		do {
			$state = curl_multi_exec( $all, $running );
			if ( ! $is_called && curl_getinfo( $handle, CURLINFO_REQUEST_SIZE ) > 0 ) {
				$is_called = true;
				$meanwhile();
			}
			$left = $end - microtime( true );
			if ( $running && $left > 0 ) {
				curl_multi_select( $all, min( $left, 0.05 ) );
			}
		} while ( $running && $left > 0 && CURLM_OK === $state );
		if ( ! $is_called ) {
			$meanwhile();
		}
		$outcomes = array_fill_keys( array_keys( $handles ), 'no answer in ' . self::LIMIT_MS . ' ms' );
		while ( $done = curl_multi_info_read( $all ) ) {
			foreach ( $handles as $gateway => $handle ) {
				if ( $handle === $done['handle'] ) {
					$outcomes[ $gateway ] = CURLE_OK === $done['result'] ? (int) curl_getinfo( $handle, CURLINFO_RESPONSE_CODE ) : curl_strerror( $done['result'] );
				}
			}
		}
		foreach ( $handles as $handle ) {
			curl_multi_remove_handle( $all, $handle );
			if ( PHP_VERSION_ID < 80000 ) {
				curl_close( $handle );
			}
		}
		curl_multi_close( $all );
		return $outcomes;
	}

	/** Without cURL: one after the other over plain sockets. Only the look-up of a host name is not bounded here. */
	private static function by_stream( $requests, $body ) {
		$end      = microtime( true ) + self::LIMIT_MS / 1000;
		$outcomes = array();
		foreach ( $requests as $gateway => $request ) {
			list( , $at, $headers ) = $request;
			$outcomes[ $gateway ]   = 'no answer in ' . self::LIMIT_MS . ' ms';
			$left                   = $end - microtime( true );
			if ( $left <= 0 ) {
				continue;
			}
			$socket = @stream_socket_client( ( 'https' === $at['scheme'] ? 'tls://' : 'tcp://' ) . $at['host'] . ':' . $at['port'], $number, $reason, $left );
			if ( ! $socket ) {
				$outcomes[ $gateway ] = '' !== $reason ? $reason : 'no connection';
				continue;
			}
			stream_set_blocking( $socket, false );
			array_pop( $headers );
			$text   = "POST {$at['path']} HTTP/1.1\r\nHost: {$at['host']}:{$at['port']}\r\nConnection: close\r\nContent-Length: " . strlen( $body ) . "\r\n" . implode( "\r\n", $headers ) . "\r\n\r\n$body";
			$answer = '';
			while ( false === strpos( $answer, "\r\n" ) && ( $left = $end - microtime( true ) ) > 0 ) {
				$readable = array( $socket );
				$writable = '' === $text ? null : array( $socket );
				$except   = null;
				if ( false === @stream_select( $readable, $writable, $except, 0, (int) ( $left * 1000000 ) ) ) {
					break;
				}
				if ( $writable ) {
					$text = substr( $text, (int) @fwrite( $socket, $text ) );
				}
				if ( $readable ) {
					$read = @fread( $socket, 8192 );
					if ( '' === (string) $read && feof( $socket ) ) {
						break;
					}
					$answer .= $read;
				}
			}
			fclose( $socket );
			if ( preg_match( '~^HTTP/1\.\d (\d{3})~', $answer, $part ) ) {
				$outcomes[ $gateway ] = (int) $part[1];
			}
		}
		return $outcomes;
	}
}

/** Answers `/?trellis-changes=SEQUENCE` while WordPress loads its must-use plugins, which saves most of a request's cost. */
final class Trellis_Poll {
	const MAX_ROWS  = 500;
	const MAX_BYTES = 400000;

	public static function is_asked() {
		return isset( $_GET['trellis-changes'], $_SERVER['REQUEST_METHOD'], $_SERVER['REQUEST_URI'] ) && 'GET' === $_SERVER['REQUEST_METHOD'];
	}

	public static function answer( Trellis_Log $log, $token ) {
		// Page caches keep neither this answer nor a refusal.
		defined( 'DONOTCACHEPAGE' ) || define( 'DONOTCACHEPAGE', true );
		header( 'Cache-Control: no-store' );
		$signature = isset( $_SERVER['HTTP_TRELLIS_SIGNATURE'] ) ? (string) $_SERVER['HTTP_TRELLIS_SIGNATURE'] : '';
		if ( ! Trellis_Signature::is_valid( $token, $signature, 'GET', (string) $_SERVER['REQUEST_URI'] ) ) {
			http_response_code( 401 );
			exit;
		}
		if ( ! is_string( $_GET['trellis-changes'] ) || ! preg_match( '/^\d{1,18}$/D', $_GET['trellis-changes'] ) ) {
			http_response_code( 400 );
			exit;
		}
		if ( method_exists( $GLOBALS['wpdb'], 'send_reads_to_masters' ) ) {
			$GLOBALS['wpdb']->send_reads_to_masters();
		}
		$asked  = (int) $_GET['trellis-changes'];
		// The newest row that the gateway has, and its check value.
		$known  = isset( $_GET['known'] ) && is_string( $_GET['known'] ) && preg_match( '/^(\d{1,18})\.([0-9a-f]{16})$/D', $_GET['known'], $part ) ? $part : array( '', 0, '' );
		$print  = Trellis_Companion::fingerprint();
		$answer = $log->rows_after( $asked, self::MAX_ROWS, self::MAX_BYTES, (int) $known[1] );
		$birth  = $log->birth();
		$is_new = $log->is_new( $print );
		if ( $is_new ) {
			$log->append( 0, '[{"kind":"all","reason":"fingerprint"}]' );
		}
		if ( $birth && ( $is_new || ! $answer ) ) {
			$answer = $log->rows_after( $asked, self::MAX_ROWS, self::MAX_BYTES, (int) $known[1] );
		}
		if ( ! $birth || ! $answer ) {
			// Not 503: a gateway would take the whole site for overloaded, and stop sending it requests.
			http_response_code( 500 );
			exit;
		}
		$is_back = $asked > $answer['last'] || $answer['known'] !== $known[2];
		if ( $is_back && isset( $_GET['incarnation'] ) && $_GET['incarnation'] === $birth['incarnation'] && ! ( $known[1] && $log->has( (int) $known[1], $known[2] ) ) ) {
			$birth = $log->renew();
		}
		header( 'Content-Type: application/json' );
		echo json_encode(
			array(
				'incarnation' => $birth['incarnation'],
				'first'       => $answer['first'],
				'last'        => $answer['last'],
				'fingerprint' => $print,
				'rows'        => $answer['rows'],
				'more'        => $answer['more'],
				'nonce'       => isset( $_GET['nonce'] ) && is_string( $_GET['nonce'] ) && ctype_xdigit( $_GET['nonce'] ) ? substr( $_GET['nonce'], 0, 64 ) : '',
				'table'       => $log->table(),
			),
			JSON_UNESCAPED_SLASHES
		);
		exit;
	}
}

/**
 * Stands before a persistent object cache while an answer is made, and notes what the cache gives: such a read sends no statement.
 */
final class Trellis_Cache_Reads {
	/** Methods that return no stored value. */
	const BLIND = array( 'delete', 'delete_multiple', 'set_multiple', 'add_multiple', 'flush', 'flush_group', 'flush_runtime', 'add_global_groups', 'add_non_persistent_groups', 'switch_to_blog', 'close', 'reset', 'stats' );

	private $trellis_inner;
	/** Gets group and key of each value that an earlier request has stored. */
	private $trellis_found;
	/** Objects by group and key, as WordPress's own object cache has them. */
	private $trellis_objects = array();
	/** Values that were not there, or are noted. */
	private $trellis_own     = array();
	private $trellis_is_sure = true;

	public function __construct( $inner, callable $found ) {
		$this->trellis_inner = $inner;
		$this->trellis_found = $found;
	}

	public function get( $key, $group = 'default', $force = false, &$found = null ) {
		$is_found = null;
		$value    = $this->trellis_inner->get( $key, $group, $force, $is_found );
		if ( null !== $is_found ) {
			$found = $is_found;
		}
		$this->trellis_note( $key, $group, $value, $is_found || false !== $value );
		return $value;
	}

	public function get_multiple( $keys, $group = 'default', $force = false ) {
		if ( ! is_callable( array( $this->trellis_inner, 'get_multiple' ) ) ) {
			$values = array();
			foreach ( $keys as $key ) {
				$values[ $key ] = $this->get( $key, $group, $force );
			}
			return $values;
		}
		$values = $this->trellis_inner->get_multiple( $keys, $group, $force );
		foreach ( is_array( $values ) ? $values : array() as $key => $value ) {
			$this->trellis_note( $key, $group, $value, false !== $value );
		}
		return $values;
	}

	public function __call( $name, $arguments ) {
		$outcome = $this->trellis_inner->$name( ...$arguments );
		if ( in_array( $name, array( 'set', 'add', 'replace' ), true ) ) {
			if ( false !== $outcome && count( $arguments ) > 1 ) {
				$group = isset( $arguments[2] ) ? $arguments[2] : '';
				$this->trellis_note( $arguments[0], $group, false, false );
				$this->trellis_note( $arguments[0], $group, $arguments[1], true );
			}
		} elseif ( ! in_array( $name, self::BLIND, true ) ) {
			$this->trellis_is_sure = false;
		}
		return $outcome;
	}

	public function &__get( $name ) {
		if ( array_key_exists( $name, get_object_vars( $this->trellis_inner ) ) ) {
			$value = &$this->trellis_inner->$name;
		} else {
			$value = $this->trellis_inner->$name;
		}
		// Counters and settings contain no stored value.
		$this->trellis_is_sure = $this->trellis_is_sure && is_scalar( $value );
		return $value;
	}

	public function __set( $name, $value ) {
		$this->trellis_inner->$name = $value;
	}

	public function __isset( $name ) {
		return isset( $this->trellis_inner->$name );
	}

	public function __unset( $name ) {
		unset( $this->trellis_inner->$name );
	}

	private function trellis_note( $key, $group, $value, $is_there ) {
		$group = '' === (string) $group ? 'default' : (string) $group;
		$name  = get_current_blog_id() . ":$group:$key";
		if ( ! $is_there ) {
			$this->trellis_own[ $name ] = true;
			return;
		}
		if ( isset( Trellis_Tags::GROUPS[ $group ] ) ) {
			$this->trellis_objects[ $group ][ $key ] = $value;
		}
		if ( ! isset( $this->trellis_own[ $name ] ) ) {
			$this->trellis_own[ $name ] = true;
			call_user_func( $this->trellis_found, $group, (string) $key );
		}
	}

	/** Does WordPress call this object, and not the cache behind it? A group that is not stored is read, which costs nothing. */
	public function trellis_is_asked() {
		wp_cache_get( 'trellis', 'counts' );
		wp_cache_get_multiple( array( 'trellis-many' ), 'counts' );
		$blog = get_current_blog_id();
		return isset( $this->trellis_own[ "$blog:counts:trellis" ], $this->trellis_own[ "$blog:counts:trellis-many" ] );
	}

	/** Objects that were given or stored; null when something else may have been read. Afterwards the cache is as it was. */
	public function trellis_end() {
		global $wp_object_cache;
		$is_sure = $this->trellis_is_sure && $wp_object_cache === $this;
		if ( $wp_object_cache === $this ) {
			$wp_object_cache = $this->trellis_inner;
		}
		return $is_sure ? $this->trellis_objects : null;
	}
}

/**
 * The names of options that some request has read before it knew what it is asked for: what plugins read while they load. They are stored
 * once, so that a response names all of them by one word, and a change of one of them says that it is among them. Names are only added: a
 * response that was described earlier stays right.
 */
final class Trellis_Early_Options {
	const NAME = 'trellis_early_options';
	/** Names that a client can make up, in a query, stay out. */
	const MAX_NAMES = 1500;

	/** @var Trellis_Log */
	private $log;
	private $text;

	public function __construct( Trellis_Log $log ) {
		$this->log  = $log;
		// Loaded with all other options, without a statement.
		$this->text = (string) get_option( self::NAME, '' );
	}

	/** Of a blog, as they are in the database: name by name. */
	public static function stored( Trellis_Log $log, $site ) {
		$rows = $log->query_primary( 'SELECT option_value FROM ' . $GLOBALS['wpdb']->get_blog_prefix( $site ) . "options WHERE option_name = '" . self::NAME . "'" );
		return $rows ? self::names_in( $rows[0]->option_value ) : array();
	}

	private static function names_in( $text ) {
		return '' === $text ? array() : array_fill_keys( explode( "\n", $text ), true );
	}

	/** Those that were stored when this request began; the others among these names are stored for later requests. */
	public function including( $names ) {
		$known = self::names_in( $this->text );
		$new   = array();
		foreach ( $names as $name ) {
			if ( ! isset( $known[ $name ] ) && false === strpos( $name, "\n" ) && strlen( $name ) <= 191 ) {
				$new[] = $name;
			}
		}
		if ( $new && count( $known ) + count( $new ) <= self::MAX_NAMES ) {
			$this->store( implode( "\n", array_merge( array_keys( $known ), $new ) ) );
		}
		return $known;
	}

	/** Unless another request has added some meanwhile. */
	private function store( $text ) {
		$table = $GLOBALS['wpdb']->options;
		$value = esc_sql( $text );
		$this->log->query(
			'' === $this->text
				? "INSERT IGNORE INTO $table (option_name, option_value, autoload) VALUES ('" . self::NAME . "', '$value', 'yes')"
				: "UPDATE $table SET option_value = '$value' WHERE option_name = '" . self::NAME . "' AND MD5(option_value) = '" . md5( $this->text ) . "'"
		);
		wp_cache_delete( 'alloptions', 'options' );
	}
}

/**
 * The tables of one SELECT by the names that it gives them, and the columns of them by which a condition bounds what it finds. What is
 * not understood is a table of a plugin.
 */
final class Trellis_Joined_Tables {
	/** Names of tables of WordPress without the prefix, and that prefix, by the name in the statement. */
	private $tables = array();
	/** Names of all tables, as the database calls them. */
	private $names  = array();
	/** A table of a plugin, or a subselect, is among them: a column without the name of a table may be one of it. */
	private $is_mixed = false;
	/** Conditions of joins: the name of the table that is joined, and what follows ON, or the column of USING. */
	private $conditions = array();

	/** The last text, and its tables: they are asked for more than once. */
	private static $last = array( '', null );

	public static function of( $sql, $prefix ) {
		if ( self::$last[0] !== $sql ) {
			self::$last = array( $sql, new self( $sql, $prefix ) );
		}
		return self::$last[1];
	}

	private function __construct( $sql, $prefix ) {
		$flat = false === strpos( $sql, '(' ) ? $sql : preg_replace_callback(
			'/\((?:[^()]++|(?R))*+\)/',
			function ( $found ) {
				return str_repeat( ' ', strlen( $found[0] ) );
			},
			$sql
		);
		if ( ! preg_match( '/\bFROM\b(.*?)(?:\b(?:WHERE|GROUP\s+BY|ORDER\s+BY|HAVING|LIMIT|FOR\s+UPDATE|LOCK\s+IN)\b|$)/is', (string) $flat, $part, PREG_OFFSET_CAPTURE ) ) {
			$this->is_mixed = true;
			return;
		}
		$item  = array( '', null );
		$depth = 0;
		$from  = 0;
		foreach ( preg_split( '/([(),]|\b(?:NATURAL|INNER|CROSS|LEFT|RIGHT|FULL|OUTER|(?:STRAIGHT_)?JOIN|ON|USING)\b)/i', substr( $sql, $part[1][1], strlen( $part[1][0] ) ), -1, PREG_SPLIT_DELIM_CAPTURE ) as $piece ) {
			$word   = strtoupper( $piece );
			$depth += '(' === $word ? 1 : ( ')' === $word ? -1 : 0 );
			if ( in_array( $word, array( 'ON', 'USING' ), true ) ) {
				$item[1] = 'USING' === $word ? ' = ' : '';
				$from    = $depth;
			} elseif ( ',' === $word && ( null === $item[1] || $depth <= $from ) || preg_match( '/^(?:[A-Z]+_)?JOIN$|^(?:NATURAL|INNER|CROSS|LEFT|RIGHT|FULL|OUTER)$/D', $word ) ) {
				$this->add( $item, $prefix );
				$item = array( '', null );
			} elseif ( null !== $item[1] ) {
				$item[1] .= $piece;
			} else {
				$item[0] .= strtr( $piece, '()', '  ' );
			}
		}
		$this->add( $item, $prefix );
	}

	private function add( $item, $prefix ) {
		if ( '' === trim( $item[0] ) ) {
			return;
		}
		if ( ! preg_match( '/^\s*((?:\w+\s*\.\s*)?[\w$]+)(?:\s+(?:AS\s+)?(?!(?:USE|FORCE|IGNORE|PARTITION)\b)(\w+))?/i', $item[0], $part ) ) {
			$this->is_mixed = true;
			return;
		}
		$this->names[] = preg_replace( '/^.*\./s', '', preg_replace( '/\s+/', '', $part[1] ) );
		$name          = strtolower( isset( $part[2] ) ? $part[2] : $part[1] );
		if ( ! preg_match( "/^($prefix(?:\\d+_)?)(\\w+)$/Di", $part[1], $parts ) || ! isset( Trellis_Tags::OBJECTS[ $parts[2] ] ) || isset( $this->tables[ $name ] ) ) {
			$this->is_mixed = true;
			return;
		}
		$this->tables[ $name ] = array( $parts[2], $parts[1] );
		if ( null !== $item[1] ) {
			$this->conditions[] = array( $name, $item[1] );
		}
	}

	/** Names of all tables, as the database calls them. */
	public function names() {
		return $this->names;
	}

	/** Expressions for a column of one of these tables. */
	public function columns( $of, $column ) {
		$columns = array();
		foreach ( $this->tables as $name => list( $table ) ) {
			if ( in_array( $table, $of, true ) ) {
				$columns[] = "$name\\.$column";
			}
		}
		return $columns && ! $this->is_mixed ? array_merge( $columns, array( $column ) ) : $columns;
	}

	/** Whether these are its tables of WordPress, and a row that it finds has of each what belongs to one object. */
	public function are_of_one_object( $tables, $where ) {
		$known = array_column( $this->tables, 0 );
		sort( $known );
		sort( $tables );
		if ( $known !== $tables ) {
			return false;
		}
		if ( 1 === count( $known ) ) {
			return true;
		}
		$links = $this->links( null, $where );
		foreach ( $this->conditions as list( $name, $condition ) ) {
			$links = array_merge( $links, $this->links( $name, $condition ) );
		}
		$reached = array_slice( array_fill_keys( array_keys( $this->tables ), true ), 0, 1 );
		do {
			$count = count( $reached );
			foreach ( $links as list( $one, $other ) ) {
				$reached += isset( $reached[ $one ] ) || isset( $reached[ $other ] ) ? array( $one => true, $other => true ) : array();
			}
		} while ( count( $reached ) > $count );
		return count( $reached ) === count( $this->tables );
	}

	/** Pairs of tables that a condition joins by the object to which their rows belong; those of a table that is joined by it, if one is. */
	private function links( $joined, $condition ) {
		$condition = Trellis_Tags::plain_condition( $condition );
		if ( null === $condition || count( Trellis_Tags::split( $condition, 'OR' ) ) > 1 ) {
			return array();
		}
		$parts = Trellis_Tags::split( $condition, 'AND' );
		if ( count( $parts ) > 1 ) {
			$links = array();
			foreach ( $parts as $part ) {
				$links = array_merge( $links, $this->links( $joined, $part ) );
			}
			return $links;
		}
		if ( preg_match( '/^=\s*\(\s*(\w+)\s*\)$/', $condition, $part ) ) {
			$others = array_diff( array_keys( $this->tables ), array( $joined ) );
			return array_filter(
				array_map(
					function ( $other ) use ( $joined, $part ) {
						return $this->is_same( $joined, $part[1], $other, $part[1] ) ? array( $joined, $other ) : null;
					},
					$others
				)
			);
		}
		if ( ! preg_match( '/^(?:(\w+)\s*\.\s*)?(\w+)\s*=\s*(?:(\w+)\s*\.\s*)?(\w+)$/D', $condition, $part ) ) {
			return array();
		}
		$one   = '' === $part[1] ? $this->owner( $part[2] ) : strtolower( $part[1] );
		$other = '' === $part[3] ? $this->owner( $part[4] ) : strtolower( $part[3] );
		return ( null === $joined || $joined === $one || $joined === $other ) && $this->is_same( $one, $part[2], $other, $part[4] ) ? array( array( $one, $other ) ) : array();
	}

	/** The one table of WordPress whose rows belong to objects by this column, which names no table; '' if that is not known. */
	private function owner( $column ) {
		$owners = array();
		foreach ( $this->is_mixed ? array() : $this->tables as $name => list( $table ) ) {
			if ( 0 === strcasecmp( Trellis_Tags::OBJECTS[ $table ][0], $column ) ) {
				$owners[] = $name;
			}
		}
		return 1 === count( $owners ) ? $owners[0] : '';
	}

	/** Whether two columns are equal where rows belong to one object: both have its id, or that of a term in its taxonomy. */
	private function is_same( $one, $column, $other, $beside ) {
		if ( $one === $other || ! isset( $this->tables[ $one ], $this->tables[ $other ] ) || $this->tables[ $one ][1] !== $this->tables[ $other ][1] ) {
			return false;
		}
		$pair  = array( $this->tables[ $one ][0], $this->tables[ $other ][0] );
		$names = array( strtolower( $column ), strtolower( $beside ) );
		if ( array( 'term_taxonomy_id', 'term_taxonomy_id' ) === $names ) {
			return array() === array_diff( array( 'term_taxonomy', 'term_relationships' ), $pair );
		}
		$kinds = array_map(
			function ( $table, $name ) {
				list( $id, $letter ) = Trellis_Tags::OBJECTS[ $table ];
				return strtolower( $id ) === $name ? $letter : null;
			},
			$pair,
			$names
		);
		return null !== $kinds[0] && $kinds[0] === $kinds[1];
	}
}

/**
 * Says in a header what an answer of the REST interface was made of: the objects in WordPress's cache of this request, the
 * collections, options and tables that were read. `complete` is left out when something may be missing.
 */
final class Trellis_Tags {
	/** With the other fields of WordPress it fits into the 4 KiB that nginx keeps for a head, unless `fastcgi_buffer_size` is more. */
	const MAX_BYTES = 2500;

	/** Longer ones are packed. */
	const MAX_PLAIN_BYTES = 1400;

	/** Each id stands for one in each blog. */
	const MAX_BLOGS = 4;

	/** Of more types and states a list is one of any: a shop has fourteen types that visitors see. */
	const MAX_LISTS = 24;

	/** Where a header names rows of tables: keys of users' meta. */
	const USER_KEYS = 'user_keys';

	/** Groups of the object cache, and the letter of their ids. */
	const GROUPS = array( 'posts' => 'p', 'post_meta' => 'p', 'terms' => 't', 'term_meta' => 't', 'comment' => 'c', 'comment_meta' => 'c', 'users' => 'u', 'user_meta' => 'u' );

	/** Temporary values that are made of files and of the clock: those of WordPress, and the list of WooCommerce's scripts with their versions. */
	const KNOWN_TEMPORARY = '/^_(?:site_)?transient_(?:doing_cron$|update_|theme_roots$|wp_theme_files_|wp_core_block_css_files$|php_check_|browser_|available_translations$|woocommerce_blocks_asset_api_script_data)/';

	/** Named beside WPLANG where the option is read by anything but `get_locale`, to which an empty one and none are the same. */
	const LANGUAGE = 'WPLANG:direct';

	/** Read before recording begins, or by every request: a change of one of them reaches every response that is described. */
	const COMMON = array( 'siteurl' => true, 'home' => true, 'active_plugins' => true, 'stylesheet' => true, 'template' => true, 'blog_charset' => true, 'WPLANG' => true );

	private $options     = self::COMMON;
	private $lists       = array();
	/** Classes that answered, also for what `_embed` adds. */
	private $controllers = array();
	/** What answered: objects of these classes, or null. */
	private $answering   = array();
	private $is_added_to = false;
	/** A statement has found terms of posts in another order than that of their names. */
	private $is_reordered = false;
	/** Options that only decide what is registered. */
	private $structure   = array();
	/** Options that are read before WordPress looks at the request. */
	private $early       = array();
	/** By table and column: ids of rows of tables of plugins. */
	private $rows        = array();
	/** The last statement that asked for rows which requests memoize: table, column, the names of it, ids, text. */
	private $asked       = null;
	/** By table and name: rows that were looked for and may not have been there; true where none was. */
	private $missed      = array();
	private $has_inserted;
	/** Temporary values: what they were made of is not known. */
	private $temporary   = array();
	/** Lists that are known by what their items have. */
	private $queries     = array();
	private $tables      = array();
	/** Questions whether an author has published anything: the author, types, and lists that show it. */
	private $authors     = array();
	private $ids         = array();
	/** In a network: blogs whose contents or options were read. */
	private $blogs       = array();
	private $is_complete = true;
	/** Why something may be missing, for the operator: the plugin whose code ran, and what it did. */
	private $cause       = '';
	private $max_age     = 0;
	/** What is read before belongs to each request, not to this answer. */
	private $is_dispatched = false;
	/**
	 * WordPress reads the terms of all posts that it finds. WPGraphQL shows few of them, and asks for these: without the others the response
	 * does not depend on them.
	 */
	private $reads_terms_late = false;
	/** @var Trellis_Cache_Reads|null With a persistent object cache. */
	private $reads = null;
	/** @var Trellis_Early_Options Those that other requests have read at their start. */
	private $stored;
	/** @var Trellis_Log */
	private $log;

	/** Names this request, as the reports of what it writes do. */
	private $request;

	/** What plugins have hooked to where they add. */
	private $additions = null;

	/** The pattern of statements that are read without more. */
	private $plain_query = null;

	/** `$has_inserted` says whether the request has inserted a row itself. */
	public function __construct( Trellis_Log $log, $request = '', $has_inserted = '__return_false' ) {
		$this->log          = $log;
		$this->stored       = new Trellis_Early_Options( $log );
		$this->request      = $request;
		$this->has_inserted = $has_inserted;
	}

	/** Reads only, and only where the address looks like an interface that is described. */
	public static function is_wanted() {
		$method = isset( $_SERVER['REQUEST_METHOD'] ) ? $_SERVER['REQUEST_METHOD'] : '';
		return self::is_graphql( $method ) || ( 'GET' === $method || 'HEAD' === $method ) && ( isset( $_GET['rest_route'] ) || false !== strpos( (string) $_SERVER['REQUEST_URI'], '/' . apply_filters( 'rest_url_prefix', 'wp-json' ) ) );
	}

	/** Whether the address looks like that of WPGraphQL. A POST for which a gateway asks for a statement is a mutation. */
	private static function is_graphql( $method ) {
		$path = (string) strtok( (string) $_SERVER['REQUEST_URI'], '?' );
		return ( isset( $_GET['graphql'] ) || '/graphql' === substr( rtrim( $path, '/' ), -8 ) ) && ( 'GET' === $method || 'POST' === $method && ! isset( $_SERVER['HTTP_TRELLIS_NONCE'] ) );
	}

	/** Records the reads of a request to the REST interface or to WPGraphQL, and describes its response. */
	public function start() {
		$this->record();
		$this->watch_rest();
		add_filter( 'rest_pre_echo_response', array( $this, 'send' ), PHP_INT_MAX, 3 );
		add_action(
			'graphql_process_http_request',
			function () {
				$this->begin_response();
				// Addresses with the category of a post need the terms of all posts.
				$this->reads_terms_late = false === strpos( (string) get_option( 'permalink_structure' ), '%category%' );
			}
		);
		add_action( 'graphql_process_http_request_response', array( $this, 'send_headers' ), PHP_INT_MAX, 0 );
	}

	/**
	 * Records what the request reads, whichever interface answers it: that one calls `begin_response` when WordPress has loaded and the
	 * request is about to be carried out, and `send_headers` when nothing more is read.
	 */
	public function record() {
		$this->blogs[ get_current_blog_id() ] = true;
		// Before 6.1 there is no filter that sees every option.
		if ( version_compare( $GLOBALS['wp_version'], '6.1-alpha', '<' ) ) {
			$this->miss( 'a WordPress before 6.1' );
		}
		$this->look_back();
		if ( wp_using_ext_object_cache() ) {
			$this->watch_cache();
		}
		if ( is_multisite() ) {
			$this->watch_network();
		}
		add_filter( 'query', array( $this, 'see' ), PHP_INT_MAX );
		add_filter(
			'pre_option',
			function ( $value, $name ) {
				if ( ! isset( $this->options[ $name ] ) || 'WPLANG' === $name ) {
					$this->read_any_option( (string) $name );
				}
				return $value;
			},
			PHP_INT_MAX,
			2
		);
		add_action(
			'pre_get_posts',
			function ( $query ) {
				if ( false === $query->get( 'cache_results', true ) ) {
					$this->miss( 'a query without the cache' );
				}
				if ( $this->reads_terms_late && '' === $query->get( 'update_post_term_cache' ) ) {
					$query->set( 'update_post_term_cache', false );
				}
			},
			PHP_INT_MAX
		);
		// What a query found is known by its statement; a plugin that answers instead sends none.
		foreach ( array( 'posts', 'terms', 'comments', 'users' ) as $kind ) {
			add_filter(
				"{$kind}_pre_query",
				function ( $found, $query ) use ( $kind ) {
					if ( null !== $found ) {
						$this->lists['any'] = true;
					} elseif ( $this->reads ) {
						$this->ask_query( $kind, $query );
					}
					return $found;
				},
				PHP_INT_MAX,
				2
			);
		}
		add_filter(
			'get_user_metadata',
			function ( $value, $user, $key ) {
				$this->read_user_key( (string) $key );
				return $value;
			},
			PHP_INT_MAX,
			3
		);
		// Gets all keys of these users, of which its callers in WordPress show those that they are asked for.
		add_filter(
			'update_user_metadata_cache',
			function ( $check ) {
				$callers = array_column( debug_backtrace( DEBUG_BACKTRACE_IGNORE_ARGS, 8 ), 'function' );
				$at      = array_search( 'update_meta_cache', $callers, true );
				if ( null !== $check || false === $at || ! isset( $callers[ $at + 1 ] ) || ! in_array( $callers[ $at + 1 ], array( 'get_metadata_raw', 'metadata_exists', 'cache_users' ), true ) ) {
					$this->read_user_key( '' );
				}
				return $check;
			},
			PHP_INT_MAX
		);
		// A plugin that reads all options at once reads each.
		add_filter(
			'alloptions',
			function ( $options ) {
				$callers = array_column( debug_backtrace( DEBUG_BACKTRACE_IGNORE_ARGS, 6 ), 'function' );
				$at      = array_search( 'wp_load_alloptions', $callers, true );
				if ( false === $at || ! isset( $callers[ $at + 1 ] ) || ! in_array( $callers[ $at + 1 ], array( 'get_option', 'add_option', 'update_option', 'delete_option', 'get_transient', 'wp_prime_option_caches', 'is_blog_installed' ), true ) ) {
					$this->miss( 'all options' );
				}
				return $options;
			},
			PHP_INT_MAX
		);
		add_action(
			'http_api_debug',
			function ( $response, $context, $class, $arguments, $url ) {
				// An answer made of another one; not the request with which WordPress starts its own cron.
				if ( 0 !== strpos( (string) $url, site_url( 'wp-cron.php' ) ) ) {
					$this->miss( 'a request to another server' );
				}
			},
			10,
			5
		);
		// "5 minutes ago", and the days of a calendar.
		add_filter(
			'human_time_diff',
			function ( $text ) {
				$this->bound( 60 );
				return $text;
			}
		);
		add_filter(
			'nonce_life',
			function ( $seconds ) {
				// A form whose nonce is older may be refused.
				$this->bound( max( 1, (int) ( $seconds / 2 ) ) );
				return $seconds;
			}
		);
		add_filter(
			'get_calendar',
			function ( $html ) {
				$this->bound( max( 1, min( 3600, strtotime( 'tomorrow', $this->local_time() ) - $this->local_time() ) ) );
				return $html;
			}
		);
		add_filter(
			'pre_do_shortcode_tag',
			function ( $html ) {
				$this->is_added_to = true;
				return $html;
			}
		);
		add_filter(
			'render_block',
			function ( $html, $block ) {
				$type = isset( $block['blockName'] ) ? WP_Block_Type_Registry::get_instance()->get_registered( $block['blockName'] ) : null;
				// What a binding or a directive shows comes from code that is registered by a name, and no hook.
				$is_bound      = ! empty( $block['attrs']['metadata']['bindings'] );
				$interactivity = isset( $type->supports['interactivity'] ) ? $type->supports['interactivity'] : false;
				$is_directed   = true === $interactivity || ! empty( $interactivity['interactive'] );
				if ( $is_bound || $is_directed || $type && $type->is_dynamic() ) {
					$this->is_added_to = true;
				}
				return $html;
			},
			PHP_INT_MAX,
			2
		);
		add_filter(
			'embed_handler_html',
			function ( $html, $url ) {
				foreach ( $GLOBALS['wp_embed']->handlers as $handlers ) {
					foreach ( $handlers as $handler ) {
						if ( preg_match( $handler['regex'], $url ) && is_callable( $handler['callback'] ) && $this->of_plugins( array( $handler['callback'] ) ) ) {
							$this->is_added_to = true;
						}
					}
				}
				return $html;
			},
			PHP_INT_MAX,
			2
		);
	}

	/** What is read from now on belongs to the response. */
	public function begin_response() {
		$this->is_dispatched = true;
	}

	/** What only the REST interface tells: when it begins, and which classes answer. */
	private function watch_rest() {
		add_filter(
			'rest_pre_dispatch',
			function ( $answer ) {
				$this->begin_response();
				return $answer;
			}
		);
		add_filter(
			'rest_index',
			function ( $answer ) {
				// The difference to UTC changes with summer time.
				$this->bound( 3600 );
				return $answer;
			}
		);
		// Posts and pages name their terms and authors and show no more of them; anything else may.
		add_filter(
			'rest_request_before_callbacks',
			function ( $answer, $handler, $request ) {
				// A closure is no array, and may not be asked for a member.
				$of = is_array( $handler['callback'] ) && isset( $handler['callback'][0] ) && is_object( $handler['callback'][0] ) ? get_class( $handler['callback'][0] ) : '';
				$this->answering[] = '' === $of ? null : $handler['callback'][0];
				// Not the first: `_embed` adds it.
				$this->controllers[ 'WP_REST_Terms_Controller' === $of && $this->controllers && 'embed' === $request['context'] ? 'embedded terms' : $of ] = true;
				return $answer;
			},
			PHP_INT_MAX,
			3
		);
	}

	/** An option by its name: a temporary value, the end of one, or any other. */
	private function read_any_option( $name ) {
		if ( preg_match( '/^_(?:site_)?transient_(timeout_)?/', $name, $part ) ) {
			if ( ! isset( $part[1] ) ) {
				$this->read_temporary( $name );
			}
		} elseif ( 'WPLANG' === $name ) {
			$callers = array_column( debug_backtrace( DEBUG_BACKTRACE_IGNORE_ARGS, 11 ), 'function' );
			$at      = array_search( 'get_option', $callers, true );
			if ( false === $at || ! isset( $callers[ $at + 1 ] ) || 'get_locale' !== $callers[ $at + 1 ] || array_filter( array( 'pre_option_WPLANG', 'default_option_WPLANG', 'option_WPLANG' ), 'has_filter' ) ) {
				$this->options[ self::LANGUAGE ] = true;
			}
		} else {
			$this->read_option( $name );
		}
	}

	/** Whether WordPress itself has sent the statement that is seen: filters say what of it is read. */
	private function is_asked_by_wordpress() {
		$frames = debug_backtrace( DEBUG_BACKTRACE_IGNORE_ARGS, 16 );
		$at     = (int) array_search( 'query', array_column( $frames, 'function' ), true );
		while ( isset( $frames[ $at ]['class'] ) && is_a( $frames[ $at ]['class'], 'wpdb', true ) ) {
			++$at;
		}
		return isset( $frames[ $at ] ) && ! isset( $frames[ $at ]['class'] ) && in_array( $frames[ $at ]['function'], array( 'get_option', 'add_option', 'update_option', 'delete_option', 'wp_load_alloptions', 'wp_prime_option_caches' ), true );
	}

	/** A statement asks for options: by these names, or null for any. */
	private function read_options_by( $names ) {
		if ( $this->is_asked_by_wordpress() ) {
			return;
		}
		$names = array_map( array( 'Trellis_Changes', 'collated' ), null === $names ? array( '' ) : $names );
		foreach ( $names as $name ) {
			if ( null === $name || '' === $name ) {
				$this->tables['options'] = true;
			} else {
				$this->read_any_option( Trellis_Changes::option_name( $name ) );
			}
		}
	}

	/** Options as changes name them. */
	private function named_options( $options ) {
		$named = array();
		foreach ( array_keys( $options ) as $name ) {
			$one = self::LANGUAGE === $name ? $name : Trellis_Changes::option_name( (string) $name );
			if ( null === $one ) {
				$this->miss( 'an option in letters of another alphabet' );
			} else {
				$named[ $one ] = true;
			}
		}
		return $named;
	}

	/**
	 * Options that WordPress reads at the start of each request, to register widgets and addresses, show in no answer of these
	 * controllers. Posts name their own state among the sticky ones, which the change of that option tells by post.
	 */
	private function read_option( $name ) {
		if ( ! $this->is_dispatched && preg_match( '/^(?:widget_.*|sidebars_widgets|rewrite_rules|link_manager_enabled|(theme_mods_.*)|(blog_public))$/D', $name, $part ) && ( 1 === count( $part ) || $this->is_called_by( isset( $part[2] ) ? 'sitemaps_enabled' : '_wp_block_theme_register_classic_sidebars' ) ) ) {
			$this->structure[ $name ] = true;
		} elseif ( 'sticky_posts' !== $name || ! $this->asks_if_sticky() ) {
			$this->options[ $name ] = true;
			if ( ! $this->is_dispatched ) {
				$this->early[ $name ] = true;
			}
		}
	}

	private function is_called_by( $function ) {
		return in_array( $function, array_column( debug_backtrace( DEBUG_BACKTRACE_IGNORE_ARGS, 12 ), 'function' ), true );
	}

	/** Whether `sticky_posts` is read for one post, whose id is noted, or by a query that does not use it. */
	private function asks_if_sticky() {
		$frames = debug_backtrace( DEBUG_BACKTRACE_PROVIDE_OBJECT, 10 );
		$at     = array_search( 'get_option', array_column( $frames, 'function' ), true );
		$caller = false !== $at && isset( $frames[ $at + 1 ] ) ? $frames[ $at + 1 ] : array( 'function' => '' );
		if ( 'is_sticky' === $caller['function'] && ! isset( $caller['class'] ) ) {
			$id = isset( $caller['args'][0] ) ? absint( $caller['args'][0] ) : 0;
			$this->ids['p'][ $id > 0 ? $id : (int) get_the_ID() ] = true;
			return true;
		}
		$query = isset( $caller['object'] ) && $caller['object'] instanceof WP_Query && 'get_posts' === $caller['function'] ? $caller['object'] : null;
		return $query && ( ! $query->is_home || ! empty( $query->query_vars['ignore_sticky_posts'] ) );
	}

	/** Controllers whose answers show no number of posts of a term or of comments of a post, unless a plugin adds it. */
	const COUNTLESS = array( 'WP_REST_Posts_Controller', 'WP_REST_Attachments_Controller', 'WP_REST_Users_Controller', 'WP_REST_Comments_Controller', 'embedded terms' );

	/** Those that show no authors but their ids. */
	const AUTHORLESS = array( 'WP_REST_Posts_Controller', 'WP_REST_Attachments_Controller' );

	/** Those that show terms by their ids and slugs, in the order of their names. */
	const SLUGS_ONLY = array( 'WP_REST_Posts_Controller', 'WP_REST_Attachments_Controller', 'WP_REST_Users_Controller', 'WP_REST_Comments_Controller' );

	/** More that show nothing of widgets and addresses. */
	const UNSTRUCTURED = array( 'WP_REST_Terms_Controller', 'WP_REST_Search_Controller', 'WP_REST_Post_Types_Controller', 'WP_REST_Post_Statuses_Controller', 'WP_REST_Taxonomies_Controller' );

	/** Where plugins change which terms a post shows, and in which order: those that were found, and the statement that finds them. */
	const REORDERING = array( 'get_terms', 'get_object_terms', 'wp_get_object_terms', 'get_the_terms' );
	const ORDERING   = array( 'get_terms_defaults', 'get_terms_args', 'get_terms_orderby', 'terms_clauses', 'wp_get_object_terms_args' );

	/** Where plugins add to what these show: texts, blocks, embeds, addresses of posts, files and terms, faces, objects and their meta, and whole responses. */
	const ADDING = '/^(?:the_content|the_content_more_link|the_excerpt|get_the_excerpt|excerpt_length|excerpt_more|wp_trim_excerpt|wp_trim_words|the_title|private_title_format|protected_title_format|the_password_form|content_pagination|get_the_guid|post_class|post_class_taxonomies|get_page_uri|get_ancestors|prepend_attachment|pre_kses|is_sticky|post_password_required|get_post_status|post_thumbnail_id|(?:pre_)?render_block(?:_.*)?|hooked_block.*|block_bindings_.*|do_shortcode_tag|shortcode_atts_.*|embed_.*|(?:pre_)?oembed_.*|wp_(?:audio|video)_.*|wp_embed_handler_.*|wp_mediaelement_fallback|smilies_src|wp_(?:get_attachment|calculate_image|img_tag|content_img)_.*|image_downsize|image_get_intermediate_size|get_attached_file|(?:pre_)?term_link|tag_link|category_link|author_link|pre_post_link|post_link|post_link_category|get_the_categories|page_link|_get_page_link|attachment_link|post_type_link|pll_post_type_link|get_comment_link|comment_text|get_comment_type|(?:pre_)?get_avatar_(?:data|url)|the_posts|posts_results|the_comments|get_comment|get_term|(?:get|default)_(?:post|term|comment|user)_metadata|rest_dispatch_request|rest_request_before_callbacks|rest_request_after_callbacks|rest_post_dispatch|rest_pre_echo_response|rest_pre_serve_request|rest_envelope_response|rest_route_for_.*|rest_response_link_curies|rest_prepare_.*)$/D';

	/** Where they change addresses of the site, folders of its files and its texts: these show no terms, but may show of whom an object is. */
	const OF_SITE = '/^(?:(?:home|site|rest|content|includes|plugins|get_site_icon)_url|set_url_scheme|user_trailingslashit|upload_dir|(?:pre_)?determine_locale|locale|n?gettext(?:_.*)?|pre_wp_theme_name)$/D';

	/** Whether a plugin, a shortcode or a dynamic block may have added anything to the answer. */
	private function is_added_to() {
		return $this->is_added_to || array() !== $this->fields() || array() !== $this->additions() || $this->is_filtered( preg_grep( self::OF_SITE, self::applied_filters() ) );
	}

	/** What plugins have hooked to where they add; looked for once, when the response is described. Terms have a filter for each taxonomy. */
	private function additions() {
		if ( null === $this->additions ) {
			$this->additions = $this->callbacks_of( array_merge( preg_grep( self::ADDING, self::applied_filters() ), preg_replace( '/^/', 'get_', get_taxonomies() ) ) );
		}
		return $this->additions;
	}

	/** Fields that plugins have registered for what the response shows; null when it is not known what that is. */
	private function fields() {
		$all    = isset( $GLOBALS['wp_rest_additional_fields'] ) ? array_filter( (array) $GLOBALS['wp_rest_additional_fields'] ) : array();
		$fields = array();
		foreach ( $all ? $this->answering : array() as $controller ) {
			$schema = $controller instanceof WP_REST_Controller ? $controller->get_item_schema() : array();
			if ( ! isset( $schema['title'] ) || ! is_string( $schema['title'] ) ) {
				return null;
			}
			$fields = array_merge( $fields, array_values( isset( $all[ $schema['title'] ] ) ? $all[ $schema['title'] ] : array() ) );
		}
		return $all && ! $this->answering ? null : array_merge( $fields, $this->answering ? $this->prepared_meta() : array() );
	}

	/** Meta that plugins have registered with a callback that prepares its value, of whatever objects. */
	private function prepared_meta() {
		$all = array();
		foreach ( isset( $GLOBALS['wp_meta_keys'] ) ? $GLOBALS['wp_meta_keys'] : array() as $subtypes ) {
			foreach ( $subtypes as $keys ) {
				foreach ( array_column( $keys, 'show_in_rest' ) as $shown ) {
					if ( is_array( $shown ) && ! empty( $shown['prepare_callback'] ) && $this->of_plugins( array_filter( array( $shown['prepare_callback'] ), 'is_callable' ) ) ) {
						$all[] = array( 'get_callback' => $shown['prepare_callback'] );
					}
				}
			}
		}
		return $all;
	}

	/** Whether a plugin, a shortcode or a dynamic block may have added to a response how many posts a term has; or else its name and description. */
	private function adds_of_terms( $may_name ) {
		$fields = $this->is_added_to ? null : $this->fields();
		if ( null === $fields ) {
			return true;
		}
		$hooks = array();
		foreach ( array_merge( $this->additions(), $this->callbacks_of( self::REORDERING ), array_filter( array_column( $fields, 'get_callback' ) ) ) as $callback ) {
			$plugin = $this->plugin_of( $callback );
			$names  = Trellis_Known_Code::hooks_beside( $callback, $plugin, $may_name );
			$others = '' === $names ? null : Trellis_Known_Code::registered_with( $callback );
			if ( null === $others || array_diff( array_map( array( $this, 'plugin_of' ), $others ), array( $plugin ) ) ) {
				return true;
			}
			$hooks[ $names ] = $plugin;
		}
		foreach ( $hooks as $names => $plugin ) {
			if ( $this->callbacks_of( preg_grep( $names, self::applied_filters() ), $plugin ) ) {
				return true;
			}
		}
		return false;
	}

	/** Whether posts may show their terms in another order than that of the names: by a column of a plugin, or by meta. */
	private function is_ordered() {
		if ( $this->is_reordered ) {
			return true;
		}
		// An object cache has the terms of a post without a statement.
		return $this->reads && ( $this->is_filtered( self::ORDERING ) || has_action( 'parse_term_query' ) || has_action( 'pre_get_terms' ) || array_filter( array_column( get_taxonomies( array(), 'objects' ), 'args' ) ) );
	}

	/** Those that were applied, and have callbacks. */
	private static function applied_filters() {
		return isset( $GLOBALS['wp_filters'] ) ? array_keys( array_intersect_key( $GLOBALS['wp_filters'], $GLOBALS['wp_filter'] ) ) : array();
	}

	/** Whether anything but WordPress itself is hooked to one of these filters, and the filter was applied. */
	private function is_filtered( $hooks ) {
		return array() !== $this->callbacks_of( $hooks );
	}

	/** What plugins other than this one have hooked to those of these filters that were applied, but for code that is plain. */
	private function callbacks_of( $hooks, $plugin = '' ) {
		global $wp_filter, $wp_filters;
		$all = array();
		foreach ( $hooks as $hook ) {
			foreach ( isset( $wp_filter[ $hook ] ) && ! empty( $wp_filters[ $hook ] ) ? $wp_filter[ $hook ]->callbacks : array() as $callbacks ) {
				$all = array_merge( $all, $this->of_plugins( array_column( $callbacks, 'function' ), $plugin ) );
			}
		}
		return $all;
	}

	/** Those of these callbacks that are neither of WordPress nor of this plugin, but for code that is plain. */
	private function of_plugins( $callbacks, $plugin = '' ) {
		$all = array();
		foreach ( $callbacks as $callback ) {
			$is_known = $this->is_of_wordpress( $callback ) || '' !== $plugin && $plugin === $this->plugin_of( $callback );
			if ( ! $is_known && ! $this->is_plain_code( $callback ) ) {
				$all[] = $callback;
			}
		}
		return $all;
	}

	/** Whether only these controllers were asked. */
	private function is_only_of( $controllers ) {
		return $this->controllers && array() === array_diff_key( $this->controllers, array_fill_keys( $controllers, true ) );
	}

	private function is_of_wordpress( $callback ) {
		$code = self::code_of( $callback );
		$file = (string) $code->getFileName();
		if ( __FILE__ === $file || '' !== $file && 0 === strpos( $file, ABSPATH . WPINC . '/' ) ) {
			return true;
		}
		return '' === $file ? $code->isInternal() : 0 === strpos( wp_normalize_path( $file ), wp_normalize_path( ABSPATH . WPINC ) . '/' );
	}

	private static function code_of( $callback ) {
		if ( is_string( $callback ) && false !== strpos( $callback, '::' ) ) {
			$callback = explode( '::', $callback );
		}
		return is_array( $callback ) ? new ReflectionMethod( $callback[0], $callback[1] ) : ( is_object( $callback ) && ! $callback instanceof Closure ? new ReflectionMethod( $callback, '__invoke' ) : new ReflectionFunction( $callback ) );
	}

	/** The folder of the plugin that a callback and its object belong to; '' for none, and for two. */
	private function plugin_of( $callback ) {
		$files   = array( (string) self::code_of( $callback )->getFileName() );
		$files[] = is_array( $callback ) && is_object( $callback[0] ) ? (string) ( new ReflectionClass( $callback[0] ) )->getFileName() : $files[0];
		$folder  = wp_normalize_path( WP_PLUGIN_DIR ) . '/';
		$names   = array();
		foreach ( array_map( 'wp_normalize_path', $files ) as $file ) {
			$names[ 0 === strpos( $file, $folder ) ? strtok( substr( $file, strlen( $folder ) ), '/' ) : '' ] = true;
		}
		return 1 === count( $names ) ? (string) key( $names ) : '';
	}

	/** What a short callback may consist of: functions, members of the first argument, members of others, tokens. */
	const PLAIN_FUNCTIONS = array( 'strtoupper', 'strtolower', 'ucfirst', 'trim', 'ltrim', 'rtrim', 'str_replace', 'substr', 'strlen', 'strpos', 'sprintf', 'implode', 'explode', 'is_string', 'is_array', 'in_array', 'array_merge', 'array_values', 'array_keys', 'intval', 'preg_replace', 'preg_match', 'wp_strip_all_tags' );
	const PLAIN_OF_FIRST  = array( 'data', 'get_data', 'set_data' );
	const PLAIN_MEMBERS   = array( 'get_param', 'ID', 'post_title', 'post_content', 'post_excerpt', 'post_name', 'post_type', 'post_status', 'post_parent', 'post_date', 'post_modified', 'menu_order' );
	const PLAIN_TOKENS    = array( T_IF, T_ELSE, T_ELSEIF, T_ISSET, T_EMPTY, T_UNSET, T_RETURN, T_ARRAY, T_DOUBLE_ARROW, T_COALESCE, T_CONCAT_EQUAL, T_BOOLEAN_AND, T_BOOLEAN_OR, T_IS_IDENTICAL, T_IS_NOT_IDENTICAL, T_IS_EQUAL, T_IS_NOT_EQUAL, T_IS_SMALLER_OR_EQUAL, T_IS_GREATER_OR_EQUAL, T_LNUMBER, T_DNUMBER, T_CONSTANT_ENCAPSED_STRING, T_INT_CAST, T_STRING_CAST, T_BOOL_CAST );

	/** By file and line: whether the callback there is one of those. */
	private $plain_code = array();

	/** Whether a callback uses only its first argument, parameters of the request and texts of the post: its code is short enough to be read. */
	private function is_plain_code( $callback ) {
		$plugin = Trellis_Known_Code::hands_on( $callback );
		if ( '' !== $plugin ) {
			return $plugin === $this->plugin_of( $callback );
		}
		if ( ! $callback instanceof Closure && ! ( is_string( $callback ) && function_exists( $callback ) ) ) {
			return false;
		}
		$code = new ReflectionFunction( $callback );
		$key  = $code->getFileName() . ':' . $code->getStartLine();
		if ( ! isset( $this->plain_code[ $key ] ) ) {
			$this->plain_code[ $key ] = $this->is_plain_function( $code );
		}
		return $this->plain_code[ $key ];
	}

	private function is_plain_function( ReflectionFunction $code ) {
		$file = (string) $code->getFileName();
		$size = $code->getEndLine() - $code->getStartLine() + 1;
		// Values that it captures or keeps are unknown.
		if ( $size > 50 || $code->getStaticVariables() || ! is_readable( $file ) || filesize( $file ) > 200000 ) {
			return false;
		}
		$lines = file( $file );
		// Functions may be others there than those with the same names.
		$has_own = (bool) preg_match( '/\bnamespace\b|\buse\s+[^;(]*\bfunction\b/i', implode( '', $lines ) );
		$names   = array();
		foreach ( $code->getParameters() as $parameter ) {
			if ( $parameter->isPassedByReference() || $parameter->isVariadic() || $parameter->isDefaultValueAvailable() ) {
				return false;
			}
			$names[] = '$' . $parameter->getName();
		}
		$tokens = array();
		foreach ( token_get_all( '<?php ' . implode( '', array_slice( $lines, $code->getStartLine() - 1, $size ) ) ) as $token ) {
			if ( ! in_array( $token[0], array( T_WHITESPACE, T_COMMENT, T_DOC_COMMENT ), true ) ) {
				$tokens[] = is_array( $token ) ? $token : array( $token, $token );
			}
		}
		$kinds = array_column( $tokens, 0 );
		$start = array_search( T_FUNCTION, $kinds, true );
		$body  = false === $start ? false : array_search( '{', array_slice( $kinds, $start, null, true ), true );
		$depth = 0;
		for ( $at = $body; false !== $body && isset( $tokens[ $at ] ); ++$at ) {
			$depth += '{' === $kinds[ $at ] ? 1 : ( '}' === $kinds[ $at ] ? -1 : 0 );
			if ( 0 === $depth ) {
				// With another function in these lines it is not known which one this is.
				return ! array_intersect( array( T_FUNCTION, T_FN ), array_diff_key( $kinds, array( $start => 1 ) ) );
			}
			$calls = T_STRING === $kinds[ $at ] && T_OBJECT_OPERATOR !== $kinds[ $at - 1 ] && '(' === $kinds[ $at + 1 ];
			if ( $calls && $has_own || ! $this->is_plain_token( $tokens, $at, $names ) ) {
				return false;
			}
		}
		return false;
	}

	private function is_plain_token( $tokens, $at, $parameters ) {
		list( $kind, $text )   = $tokens[ $at ];
		list( $before )        = $tokens[ $at - 1 ];
		list( $after )         = $tokens[ $at + 1 ];
		list( $first, $others ) = array( array_slice( $parameters, 0, 1 ), array_slice( $parameters, 1 ) );
		switch ( $kind ) {
			case '(':
				// What a variable or an expression names is not known.
				return ! in_array( $before, array( T_VARIABLE, T_CONSTANT_ENCAPSED_STRING, ')', ']', '}' ), true );
			case T_OBJECT_OPERATOR:
				return T_VARIABLE === $before && T_STRING === $after;
			case T_STRING:
				if ( T_OBJECT_OPERATOR === $before && '$this' === $tokens[ $at - 2 ][1] ) {
					// Set, and not read.
					return '=' === $after;
				}
				if ( T_OBJECT_OPERATOR === $before ) {
					return in_array( $text, in_array( $tokens[ $at - 2 ][1], $first, true ) ? array_merge( self::PLAIN_OF_FIRST, self::PLAIN_MEMBERS ) : self::PLAIN_MEMBERS, true );
				}
				return '(' === $after ? in_array( strtolower( $text ), self::PLAIN_FUNCTIONS, true ) : in_array( strtolower( $text ), array( 'true', 'false', 'null' ), true );
			case T_VARIABLE:
				// All of an object, as in JSON, is more than its texts.
				return ( '$this' !== $text || T_OBJECT_OPERATOR === $after ) && '$GLOBALS' !== $text && 0 !== strpos( $text, '$_' ) && ( T_OBJECT_OPERATOR === $after || ! in_array( $text, $others, true ) );
			default:
				return is_string( $kind ) ? false !== strpos( '{}[]),;=.+-*/%!?:<>', $kind ) : in_array( $kind, self::PLAIN_TOKENS, true );
		}
	}

	/** Something that the response shows may be missing in its description. */
	private function miss( $what ) {
		$this->is_complete = false;
		if ( '' !== $this->cause ) {
			return;
		}
		$this->cause = $what;
		foreach ( debug_backtrace( DEBUG_BACKTRACE_IGNORE_ARGS, 40 ) as $frame ) {
			if ( isset( $frame['file'] ) && preg_match( '~/plugins/([^/]+)/~', wp_normalize_path( $frame['file'] ), $part ) ) {
				$this->cause = "plugin {$part[1]}: $what";
				return;
			}
		}
	}

	/** What was read before this file: WordPress counts its filters, and has one for each option by name. */
	private function look_back() {
		$filters = isset( $GLOBALS['wp_filters'] ) ? $GLOBALS['wp_filters'] : array();
		$options = preg_filter( '/^pre_option_/', '', array_keys( $filters ) );
		$this->early += array_fill_keys( $options, true );
		$this->options += array_fill_keys( in_array( 'WPLANG', $options, true ) ? array_merge( $options, array( self::LANGUAGE ) ) : $options, true );
		if ( is_multisite() || wp_using_ext_object_cache() ) {
			// Statements do not tell: the network was looked up, or the object cache was asked. By WordPress alone, if nothing ran before.
			if ( ! self::is_first() ) {
				$this->miss( 'a plugin that runs before the companion' );
			}
		}
		// One statement reads all options, and one each that are not among these; of any other nothing is known.
		if ( ! is_multisite() && isset( $filters['query'] ) && $filters['query'] > 1 + count( $options ) ) {
			$this->miss( 'a statement before the companion was loaded' );
		}
	}

	/** Whether no other plugin ran before this file. */
	public static function is_first() {
		$files = wp_get_mu_plugins();
		return ! defined( 'SUNRISE' ) && $files && realpath( $files[0] ) === realpath( __FILE__ );
	}

	/**
	 * Groups of values that need not be named: ids of users, whose objects are read by id, options, of which those of a blog have a filter and
	 * those of a network reach all answers, and what is made of files.
	 */
	const TOLD_OTHERWISE = array( 'userlogins', 'userslugs', 'useremail', 'options', 'site-options', 'themes', 'theme_files', 'translation_files', 'translations', 'plugins' );

	/** By group: the beginning of keys of queries that a filter tells. */
	const TOLD_QUERIES = array( 'post-queries' => 'wp_query:', 'term-queries' => 'get_terms:', 'comment-queries' => 'get_comments:', 'user-queries' => 'get_users:' );

	/** A persistent object cache answers without a statement what an earlier request has read. */
	private function watch_cache() {
		global $wp_object_cache;
		if ( ! $this->is_complete || ! is_object( $wp_object_cache ) || ! function_exists( 'wp_cache_get_multiple' ) ) {
			return;
		}
		$inner           = $wp_object_cache;
		$reads           = new Trellis_Cache_Reads( $inner, array( $this, 'read_from_cache' ) );
		$wp_object_cache = $reads;
		if ( $reads->trellis_is_asked() ) {
			$this->reads   = $reads;
			$this->tables += array_fill_keys( array_keys( self::OBJECTS ), true );
		} else {
			$wp_object_cache = $inner;
		}
	}

	/** A value that an earlier request has stored in the object cache. What it is made of is known for those of WordPress. */
	public function read_from_cache( $group, $key ) {
		$is_id = ctype_digit( $key );
		if ( 'last_changed' === $key || $is_id && isset( self::GROUPS[ $group ] ) || in_array( $group, self::TOLD_OTHERWISE, true ) ) {
			return;
		}
		if ( $is_id && preg_match( '/^(.+)_relationships$/D', $group, $part ) && taxonomy_exists( $part[1] ) || 'posts' === $group && preg_match( '/^post_parent:\d+$/D', $key ) ) {
			$this->ids['p'][ (int) str_replace( 'post_parent:', '', $key ) ] = true;
		} elseif ( 'transient' === $group || 'site-transient' === $group ) {
			$this->read_temporary( ( 'transient' === $group ? '_transient_' : '_site_transient_' ) . $key, true );
		} elseif ( isset( self::TOLD_QUERIES[ $group ] ) && 0 === strpos( $key, self::TOLD_QUERIES[ $group ] ) ) {
			return;
		} elseif ( 'comment-queries' === $group && 0 === strpos( $key, 'get_comment_child_ids:' ) ) {
			$this->lists['comment'] = true;
		} elseif ( in_array( $group, array( 'post-queries', 'term-queries', 'comment-queries', 'user-queries', 'counts', 'timeinfo' ), true ) || 'posts' === $group && 'all_page_ids' === $key ) {
			$this->lists['any'] = true;
		} elseif ( 'default' !== $group || ! preg_match( '/^(?:is_blog_installed$|icon_files$|mime_type_icon_)/D', $key ) ) {
			if ( ! is_multisite() || ! $this->is_of_network( $group, $key ) ) {
				$this->miss( "the group $group of the object cache" );
			}
		}
	}

	/** Whether a value is made of tables of the network whose every change reaches all answers; but when a blog was last updated is not told. */
	private function is_of_network( $group, $key ) {
		return in_array( $group, array( 'networks', 'blog-lookup', 'blog-id-cache', 'blog_meta' ), true ) || in_array( $group, array( 'sites', 'site-details', 'blog-details' ), true ) && (int) $key === get_current_blog_id();
	}

	/** What a query is about to ask: the object cache may have what it finds. */
	private function ask_query( $kind, $query ) {
		try {
			foreach ( array( 'posts_request_ids', 'found_posts_query', 'found_users_query', 'found_comments_query', 'comments_clauses' ) as $hook ) {
				// Asked only when nothing is stored.
				if ( has_filter( $hook ) ) {
					$this->miss( "a filter of $hook" );
				}
			}
			if ( ! is_object( $query ) ) {
				$this->miss( 'a query of its own' );
			}
			if ( ! $this->is_complete ) {
				return;
			}
			$posts = $GLOBALS['wpdb']->posts;
			if ( 'comments' === $kind ) {
				$this->ask_comments( $query->query_vars );
			} elseif ( 'users' === $kind ) {
				$this->see( "SELECT {$query->query_fields} {$query->query_from} {$query->query_where} {$query->query_orderby} {$query->query_limit}" );
			} else {
				// Columns of posts are read by id, from the object cache as well.
				$request = 'posts' === $kind ? str_replace( "$posts.*", "$posts.ID", $query->request ) : $query->request;
				if ( 0 !== stripos( ltrim( $request ), 'SELECT' ) ) {
					$this->miss( 'a query without a statement' );
				}
				$this->see( $GLOBALS['wpdb']->remove_placeholder_escape( $request ) );
			}
		} catch ( Throwable $error ) {
			$this->miss( 'a query that cannot be read' );
		}
	}

	/** A query of comments has no statement yet. */
	private function ask_comments( $asked ) {
		$of = array_filter( array_intersect_key( $asked, array_flip( array( 'post_author', 'post_author__in', 'post_author__not_in', 'post_name', 'post_parent', 'post_status', 'post_type' ) ) ) );
		if ( $of ) {
			$this->lists['any'] = true;
			return;
		}
		foreach ( array( 'k:' => array( 'post_id', 'post__in' ), 'h:comment:' => array( 'parent', 'parent__in' ) ) as $list => list( $one, $many ) ) {
			$ids = wp_parse_id_list( empty( $asked[ $one ] ) ? ( empty( $asked[ $many ] ) ? array() : $asked[ $many ] ) : array( $asked[ $one ] ) );
			if ( $ids && count( $ids ) <= 20 ) {
				foreach ( $ids as $id ) {
					$this->queries[ $list . $id ] = true;
				}
				return;
			}
		}
		$this->lists['comment'] = true;
	}

	/** What a network writes and does not report: its counts, temporary values, and when a blog was last updated. */
	private function watch_network() {
		add_action(
			'switch_blog',
			function ( $blog ) {
				$this->blogs[ (int) $blog ] = true;
			}
		);
		foreach ( array( 'user_count', 'blog_count' ) as $name ) {
			add_filter(
				"pre_site_option_$name",
				function ( $value ) use ( $name ) {
					$this->miss( "the option $name of the network" );
					return $value;
				}
			);
		}
	}

	/** What a temporary value was made of is not known, but every change of it, unless an object cache has it, or a network. */
	private function read_temporary( $name, $is_cached = false ) {
		$this->temporary[ $name ][ $is_cached || is_multisite() && 0 === strpos( $name, '_site_' ) ? 'cache' : 'option' ] = true;
		if ( $is_cached ) {
			if ( $this->is_dispatched ) {
				$this->bound( 60 );
			}
		} elseif ( ! preg_match( self::KNOWN_TEMPORARY, $name ) ) {
			$this->read_option( $name );
		}
	}

	private function local_time() {
		return time() + (int) ( (float) get_option( 'gmt_offset' ) * 3600 );
	}

	private function bound( $seconds ) {
		$this->max_age = 0 === $this->max_age ? $seconds : min( $this->max_age, $seconds );
	}

	/** Statements that change tables, and find nothing unless they read others. */
	const WRITES = array( 'INSERT', 'REPLACE', 'UPDATE', 'DELETE', 'TRUNCATE', 'ALTER', 'DROP', 'RENAME', 'CREATE' );

	/** Statements that neither read nor write rows. */
	const SESSION = array( 'START', 'BEGIN', 'COMMIT', 'ROLLBACK', 'SAVEPOINT', 'RELEASE', 'USE', 'LOCK', 'UNLOCK', 'FLUSH', 'KILL' );

	/** Whether a response shows nothing of what a statement other than SELECT finds, or only what is told otherwise. */
	private static function reads_nothing( $verb, $sql ) {
		if ( in_array( $verb, self::WRITES, true ) ) {
			return 'CREATE' === $verb ? false === stripos( $sql, 'SELECT' ) : Trellis_Known_Sql::writes_values( $sql );
		}
		if ( 'SET' === $verb ) {
			return false === stripos( $sql, 'SELECT' ) && ! Trellis_Known_Sql::sets_quotes( $sql ) && ! Trellis_Known_Sql::stored_calls( $sql );
		}
		return in_array( $verb, self::SESSION, true ) || preg_match( Trellis_Known_Sql::DEFINITIONS, $sql );
	}

	/** Tables that are read, and what is looked for in them: also what is not there, and would be if it were created. */
	public function see( $query ) {
		if ( $this->log->is_busy() ) {
			return $query;
		}
		$this->settle_rows();
		list( $verb, $sql ) = is_string( $query ) ? Trellis_Changes::split_verb( $query ) : array( '', '' );
		if ( 'SELECT' === $verb ) {
			try {
				if ( ! $this->read_plainly( $query ) ) {
					if ( Trellis_Known_Sql::asks_last_statement( $query ) && preg_match( '/\bFROM\b/i', $query ) ) {
						// Looking for columns and ids would change what it finds.
						$this->miss( 'a statement that cannot be read' );
					} else {
						$this->read( $query );
					}
				}
			} catch ( Throwable $error ) {
				$this->miss( 'a statement that cannot be read' );
			}
		} elseif ( '' !== $sql && ( ! self::reads_nothing( $verb, $sql ) || $this->log->quotes_otherwise( $query ) ) ) {
			$this->miss( 'a statement that cannot be read' );
		}
		return $query;
	}

	/** What WordPress asks for most, in its own words, and what is read by it; `%` is the prefix. */
	const PLAIN = array(
		'options'   => "SELECT (?:option_name, )?option_value FROM %options WHERE option_name (?:= '[^'\\\\]*+'|IN \((?:'[^'\\\\]*+',?)+\))(?: LIMIT 1)?",
		'posts'     => "SELECT (?:%posts\.)?\* FROM %posts WHERE ID (?:= |IN \()([\d,]+)\)?(?: LIMIT 1)?",
		'users'     => "SELECT \* FROM %users WHERE ID (?:= '|IN \()([\d,]+)['\)](?: LIMIT 1)?",
		'postmeta'  => 'SELECT post_id, meta_key, meta_value FROM %postmeta WHERE post_id IN \(([\d,]+)\) ORDER BY meta_id ASC',
		'usermeta'  => 'SELECT user_id, meta_key, meta_value FROM %usermeta WHERE user_id IN \(([\d,]+)\) ORDER BY umeta_id ASC',
		'termmeta'  => 'SELECT term_id, meta_key, meta_value FROM %termmeta WHERE term_id IN \(([\d,]+)\) ORDER BY meta_id ASC',
		'terms'     => 'SELECT t\.\*, tt\.\* FROM %terms AS t INNER JOIN %term_taxonomy AS tt ON t\.term_id = tt\.term_id WHERE t\.term_id IN \(([\d,]+)\)',
		'relations' => "SELECT DISTINCT t\.term_id(?:, tr\.object_id)?\s+FROM %terms AS t +INNER JOIN %term_taxonomy AS tt ON t\.term_id = tt\.term_id INNER JOIN %term_relationships AS tr ON tr\.term_taxonomy_id = tt\.term_taxonomy_id\s+WHERE tt\.taxonomy IN \((?:'[\w-]++'(?:, )?)+\) AND tr\.object_id IN \(([\d, ]+)\)\s+ORDER BY t\.name ASC\s*",
		'revisions' => "SELECT SQL_CALC_FOUND_ROWS\s+%posts\.ID\s+FROM %posts\s+WHERE 1=1\s+AND %posts\.post_parent = (\d+)\s+AND %posts\.post_type = 'revision' AND \(\(%posts\.post_status = 'inherit'\)\)\s+ORDER BY %posts\.post_date DESC, %posts\.ID DESC\s+LIMIT 0, 1",
	);

	/** Tables of those that read others than one of their name. */
	const PLAIN_TABLES = array(
		'terms'     => array( 'terms', 'term_taxonomy' ),
		'relations' => array( 'terms', 'term_taxonomy', 'term_relationships' ),
		'revisions' => array( 'posts' ),
	);

	/** Whether a statement is one of these: it is read with one look, to what `read` finds in it. */
	private function read_plainly( $query ) {
		if ( null === $this->plain_query ) {
			$texts = array();
			foreach ( self::PLAIN as $name => $text ) {
				$texts[] = "$text(*MARK:$name)";
			}
			$this->plain_query = '/^(?|' . str_replace( '%', preg_quote( $GLOBALS['wpdb']->base_prefix, '/' ), implode( '|', $texts ) ) . ')$/D';
		}
		if ( is_multisite() || ! preg_match( $this->plain_query, $query, $part ) ) {
			return false;
		}
		$name = $part['MARK'];
		if ( 'options' === $name ) {
			preg_match_all( "/'([^']*+)'/", $query, $names );
			$this->read_options_by( $names[1] );
			return true;
		}
		$this->tables += array_fill_keys( isset( self::PLAIN_TABLES[ $name ] ) ? self::PLAIN_TABLES[ $name ] : array( $name ), true );
		if ( 'revisions' === $name ) {
			$this->queries[ "sd:revision:inherit:parent:{$part[1]}" ] = true;
		} else {
			$letter = 'relations' === $name ? 'p' : self::OBJECTS[ $name ][1];
			foreach ( explode( ',', $part[1] ) as $id ) {
				$this->ids[ $letter ][ (int) $id ] = true;
			}
		}
		return true;
	}

	private function read( $query ) {
		$prefix  = preg_quote( $GLOBALS['wpdb']->base_prefix, '/' );
		$sql    = Trellis_Known_Sql::bare( $query, $strings );
		if ( null === $sql || ! Trellis_Known_Sql::is_known( $sql ) || $this->log->quotes_otherwise( $query ) ) {
			$this->miss( 'a statement that cannot be read' );
		}
		if ( null === $sql ) {
			return;
		}
		$sql = (string) preg_replace_callback(
			"/(?<![\\w$])$prefix(\\w+)/i",
			function ( $found ) {
				return $GLOBALS['wpdb']->base_prefix . Trellis_Known_Tables::known_name( $found[1] );
			},
			$sql
		);
		preg_match_all( "/(?<![\\w$])$prefix(?:\\d+_)?(\\w+)|\\b(?:FROM|(?:STRAIGHT_)?JOIN)\\s+(?!$prefix)(\\w+)/i", $sql, $found );
		$names = array_map( array( 'Trellis_Known_Tables', 'known_name' ), array_filter( array_merge( $found[1], $found[2] ) ) );
		$this->miss_marked( $found[2] );
		if ( 2 === count( $names ) && $this->read_join( $sql, $strings, $prefix ) ) {
			return;
		}
		if ( preg_match( Trellis_Known_Sql::CHANGING, $sql ) ) {
			$this->bound( 60 );
		}
		if ( 1 === count( $names ) && $this->read_rows( (string) reset( $names ), $sql, $strings, $prefix ) ) {
			$this->asked = null === $this->asked ? null : $this->asked + array( 'text' => $query );
			return;
		}
		if ( in_array( 'options', $names, true ) ) {
			$where = preg_match( self::REPEATED, $sql ) || 1 !== count( $names ) || ! preg_match( '/\bWHERE\b(.*?)(?:\bORDER\s+BY\b|\bLIMIT\b|$)/is', $sql, $part ) ? '' : $part[1];
			$this->read_options_by( $this->values_of( $where, array( '(?:\w+\.)?option_name' ), $strings ) );
			$names = array_diff( $names, array( 'options' ) );
		}
		$this->tables += array_fill_keys( array_filter( $names, array( 'Trellis_Known_Tables', 'is_shown' ) ), true );
		if ( is_multisite() ) {
			if ( in_array( 'blogs', $names, true ) ) {
				$this->miss( 'the table blogs' );
			}
			preg_match_all( "/(?<![\\w$])$prefix(?:(\\d+)_)?(\\w+)/i", $sql, $found, PREG_SET_ORDER );
			foreach ( $found as list( , $blog, $name ) ) {
				if ( ! in_array( $name, Trellis_Changes::GLOBAL_TABLES, true ) ) {
					$this->blogs[ '' === $blog ? 1 : (int) $blog ] = true;
				}
			}
			foreach ( preg_grep( '/^_site_transient_(?!timeout_)/', $strings ) as $name ) {
				$this->read_temporary( $name );
			}
		}
		if ( in_array( 'usermeta', $names, true ) ) {
			$this->read_user_keys( $sql, $strings, $prefix );
		}
		if ( $this->read_authors( $sql, $strings, $prefix ) ) {
			return;
		}
		// Each SELECT by itself, from the innermost to the outermost.
		do {
			$sql = preg_replace_callback(
				'/\(\s*(SELECT\b(?:[^()]|\((?!\s*SELECT\b)(?:[^()]|\((?!\s*SELECT\b)(?:[^()]|\([^()]*\))*\))*\))*)\)/i',
				function ( $found ) use ( $sql, $strings, $prefix ) {
					$inner = $found[1][0];
					$this->read_select( $inner, $strings, $prefix, self::is_of_posts( substr( $sql, 0, $found[0][1] ), $inner, $prefix ) );
					// The relations by which posts are left out are among the columns of the statement around it.
					return preg_match( "/\\bFROM\\s+$prefix(?:\\d+_)?term_relationships\\b/i", $inner ) ? '(term_taxonomy_id)' : '(NULL)';
				},
				$sql,
				-1,
				$replaced,
				PREG_OFFSET_CAPTURE
			);
		} while ( $replaced > 0 );
		$this->read_select( $sql, $strings, $prefix, false );
	}

	/** A table whose name is a word of SQL has another one here than where it is written. */
	private function miss_marked( $tables ) {
		if ( preg_grep( '/_$/D', $tables ) ) {
			$this->miss( 'a statement that cannot be read' );
		}
	}

	/** Whether a SELECT within another one finds ids of the posts that this one lists, and no others. */
	private static function is_of_posts( $before, $inner, $prefix ) {
		do {
			// What stands in parentheses that are closed is not around it.
			$before = preg_replace( '/\([^()]*\)/', ' ', $before, -1, $count );
		} while ( $count > 0 );
		if ( ! preg_match( "/^.*\\bSELECT\\b.*?\\bFROM\\s+($prefix(?:\\d+_)?posts)\\b(?:\\s+(?:AS\\s+)?(?!(?:WHERE|INNER|LEFT|RIGHT|CROSS|NATURAL|JOIN|STRAIGHT_JOIN|USE|FORCE|IGNORE)\\b)(\\w+))?(.*)$/is", (string) $before, $part ) ) {
			return false;
		}
		$id = ( '' === $part[2] ? $part[1] : $part[2] ) . '\s*\.\s*ID';
		return preg_match( "/(?:\\b(?:WHERE|AND|OR|ON|NOT)\\b|\\()\\s*(?:$id|ID)\\s+(?:NOT\\s+)?IN\\s*$/iD", $part[3] )
			|| preg_match( '/\b(?:NOT\s+)?EXISTS\s*$/iD', $part[3] ) && preg_match( "/\\bWHERE\\s+(?:[^()]*\\bAND\\s+)?(?:\\w+\\.)?object_id\\s*=\\s*$id\\b(?!.*\\b(?:OR|XOR)\\b|.*\\|\\|)/is", $inner );
	}

	/** Of a user's meta: a response names the keys that it read but for those that WordPress shows; '' is any. */
	private function read_user_key( $key ) {
		if ( '' === $key ) {
			$this->tables[ self::USER_KEYS ] = true;
		} elseif ( Trellis_Changes::is_named_key( $key ) ) {
			$this->rows[ self::USER_KEYS ]['key'][ Trellis_Changes::key_name( $key ) ] = true;
		}
	}

	/** The keys that a statement asks users' meta for; `cache_users` and its like ask for the meta of users by their ids. */
	private function read_user_keys( $sql, $strings, $prefix ) {
		if ( preg_match( "/^\\s*SELECT user_id, meta_key, meta_value FROM {$prefix}usermeta WHERE user_id IN \\([\\d,\\s]+\\) ORDER BY umeta_id ASC\\s*$/iD", $sql ) ) {
			return;
		}
		preg_match_all( "/\\bmeta_key\\s*=\\s*'(\\d+)'/i", $sql, $found );
		$keys = array_map(
			function ( $at ) use ( $strings ) {
				return preg_match( '/[^\x20-\x7e]/', $strings[ (int) $at ] ) ? '' : $strings[ (int) $at ];
			},
			$found[1]
		);
		foreach ( $keys && count( $keys ) === preg_match_all( '/\bmeta_key\b/i', $sql ) && self::asks_by_keys( $sql, $prefix ) ? $keys : array( '' ) as $key ) {
			$this->read_user_key( $key );
		}
	}

	/** Whether every row of meta that a statement finds has one of the keys that it names: each table of meta has a key in each alternative. */
	private static function asks_by_keys( $sql, $prefix ) {
		$is_sure = true;
		$count   = function ( $text ) use ( $prefix, &$is_sure ) {
			$is_select = false !== stripos( $text, 'SELECT' );
			$counts    = array_map(
				function ( $alternative ) {
					return substr_count( $alternative, '#' );
				},
				preg_split( '/\bOR\b/i', $text )
			);
			$tables  = $is_select ? preg_match_all( "/(?<![\\w$]){$prefix}(?:\\d+_)?\\w*meta\\b(?!\\s*\\.)/i", $text ) : 0;
			$is_part = substr_count( $text, '#' ) === preg_match_all( '/(?:^|\b(?:WHERE|AND|OR|ON)\s)\s*#(?=\s*(?:$|;|(?:AND|OR|WHERE|GROUP|ORDER|LIMIT|HAVING|INNER|LEFT|JOIN)\b))/i', $text );
			$is_sure = $is_sure && $is_part && ( 0 === max( $counts ) || 0 < min( $counts ) ) && $tables <= min( $counts ) && ! preg_match( '/\|\||\b(?:XOR|UNION)\b|#.*\bFROM\b/is', $text );
			return $is_select ? 0 : min( $counts );
		};
		$text = preg_replace( "/(?<![\\w.])(?:\\w+\\.)?meta_key\\s*=\\s*'\\d+'/i", '#', str_replace( '#', '?', $sql ) );
		do {
			$text = preg_replace_callback(
				'/(\w*)\s*\(([^()]*)\)/',
				function ( $found ) use ( $count, &$is_sure ) {
					$keys    = $count( $found[2] );
					$is_sure = $is_sure && ( 0 === $keys || in_array( strtoupper( $found[1] ), array( '', 'WHERE', 'AND', 'OR', 'ON' ), true ) );
					return $found[1] . ' ' . ( 0 === $keys ? '1' : implode( ' AND ', array_fill( 0, $keys, '#' ) ) );
				},
				$text,
				-1,
				$replaced
			);
		} while ( $replaced > 0 );
		$count( $text );
		return $is_sure;
	}

	/** Whether a statement asks which of these users have published anything, as WPGraphQL does; how many posts does not matter. */
	private function read_authors( $sql, $strings, $prefix ) {
		$users = "{$prefix}users\\.ID";
		$posts = "{$prefix}(?:\\d+_)?posts";
		$ids   = '\(([\d\s,]+)\)\s*(?:ORDER\s+BY|LIMIT|$)';
		$inner = "SELECT\\s+DISTINCT\\s+$posts\\.post_author\\s+FROM\\s+$posts\\s+WHERE\\s+([^()]+(?:\\([^()]*\\))?)";
		if ( ! preg_match( "/^\\s*SELECT\\s+$users\\s+FROM\\s+{$prefix}users\\s+WHERE\\s+1=1\\s+AND\\s+$users\\s+IN\\s*\\(\\s*$inner\\s*\\)\\s*AND\\s+$users\\s+IN\\s*$ids/i", $sql, $part )
			&& ! preg_match( "/^\\s*SELECT\\s+DISTINCT\\s+$users\\s+FROM\\s+$posts\\s+INNER\\s+JOIN\\s+{$prefix}users\\s+ON\\s+post_author\\s*=\\s*$users\\s+WHERE\\s+(.+?)\\s+AND\\s+post_author\\s+IN\\s*$ids/is", $sql, $part ) ) {
			return false;
		}
		list( , $condition, $authors ) = $part;
		$types = $this->values_of( $condition, array( "(?:$posts\\.)?post_type" ), $strings );
		$words = preg_split( '/[^A-Za-z_]+/', strtolower( preg_replace( "/\\b$posts\\.|'\\d+'/i", ' ', $condition ) ), -1, PREG_SPLIT_NO_EMPTY );
		if ( ! $types || array( 'publish' ) !== $this->values_of( $condition, array( "(?:$posts\\.)?post_status" ), $strings ) || array_diff( $words, array( 'post_type', 'post_status', 'in', 'and', 'or' ) ) ) {
			return false;
		}
		foreach ( array_map( 'intval', explode( ',', $authors ) ) as $author ) {
			$this->ids['u'][ $author ] = true;
			$queries                   = array();
			foreach ( $types as $type ) {
				$queries[ "s:$type:publish:author:$author" ] = true;
			}
			$this->authors[] = array( $author, $types, $queries );
		}
		return true;
	}

	/** Of several SELECTs, whatever joins them, or of several conditions. */
	const REPEATED = '/\b(SELECT|WHERE)\b.*\b\1\b/is';

	/** Whether a statement asks a table of a plugin for rows by an id, which are noted. */
	private function read_rows( $table, $sql, $strings, $prefix ) {
		if ( isset( Trellis_Changes::TABLES[ $table ] ) || in_array( $table, Trellis_Changes::GLOBAL_TABLES, true ) || is_multisite() || preg_match( self::REPEATED, $sql ) || 1 !== count( Trellis_Joined_Tables::of( $sql, $prefix )->names() ) ) {
			return false;
		}
		$where = preg_match( '/\bWHERE\b(.*?)(?:\b(?:GROUP\s+BY|ORDER\s+BY|HAVING|LIMIT|FOR\s+UPDATE)\b|$)/is', $sql, $part ) ? $part[1] : '';
		$unshown = Trellis_Known_Tables::unshown_columns( $table );
		if ( $unshown && preg_match( '/\b(?:' . implode( '|', $unshown ) . ')\b/i', $sql ) ) {
			return false;
		}
		preg_match_all( '/(?<![\w$.])(?:\w+\.)?(\w*?(?:id|type))\s*(?:=|IN\b)/i', $where, $found );
		$columns = preg_grep( Trellis_Changes::IDS, array_unique( $found[1] ) );
		// Of one kind there are many rows.
		foreach ( array_merge( preg_grep( '/id$/i', $columns ), preg_grep( '/type$/i', $columns ) ) as $column ) {
			$ids    = $this->values_of( $where, array( "(?:\\w+\\.)?$column" ), $strings );
			$ids    = null === $ids ? null : array_map( array( 'Trellis_Changes', 'row_value' ), $ids );
			$column = strtolower( $column );
			if ( null !== $ids && count( $ids ) <= 100 && ! in_array( null, $ids, true ) ) {
				$columns = $this->with_kinds( $column, $where, $strings );
				if ( 'id' === substr( $column, -2 ) && Trellis_Known_Tables::is_memoized( $table ) ) {
					$is_alone    = ! preg_grep( "/^(?:\\w+\\.)?(?:$column|" . Trellis_Changes::kind_beside( $column ) . '|AND|IN)$/i', preg_split( "/'\\d+'|[^\\w.]+|\\b\\d+\\b/", $where, -1, PREG_SPLIT_NO_EMPTY ), PREG_GREP_INVERT );
					$this->asked = array( 'table' => $table, 'column' => $column, 'names' => $columns, 'ids' => $ids, 'is_alone' => $is_alone );
				}
				$this->note_ids( $table, $columns, $ids );
				return true;
			}
		}
		return false;
	}

	/**
	 * Whether a statement joins a table of a plugin, which it asks for rows by an id, with another one: WooCommerce asks so for the stock of
	 * a product that orders have reserved. The rows of the other table are those that these rows name, which are read before the
	 * statement: other ones are a change of the first table.
	 */
	private function read_join( $sql, $strings, $prefix ) {
		$table = "$prefix(\\w+)\\s+(?:AS\\s+)?(?!(?:ON|LEFT|INNER|JOIN)\\b)(\\w+)";
		$join  = "/^.*?\\bFROM\\s+$table\\s+(?:(?:LEFT|INNER)\\s+)?JOIN\\s+$table\\s+ON\\s+(\\w+)\\.(\\w+)\\s*=\\s*(\\w+)\\.(\\w+)\\s+WHERE\\b(.*?)(?:\\b(?:GROUP\\s+BY|ORDER\\s+BY|HAVING|LIMIT)\\b|$)/is";
		if ( is_multisite() || preg_match( self::REPEATED, $sql ) || ! preg_match( $join, $sql, $part ) ) {
			return false;
		}
		list( , $left, $left_name, $right, $right_name, $one, $one_column, $other, $other_column, $where ) = $part;
		$on     = array( $one => strtolower( $one_column ), $other => strtolower( $other_column ) );
		$tables = array( $left_name => $left, $right_name => $right );
		if ( 2 !== count( $tables ) || array_diff_key( $tables, $on ) || count( preg_grep( Trellis_Changes::IDS, $on ) ) < 2 ) {
			return false;
		}
		foreach ( array( array( $left_name, $right_name ), array( $right_name, $left_name ) ) as list( $first, $second ) ) {
			preg_match_all( "/(?<![\\w$.])$first\\.(\\w*?id)\\s*(?:=|IN\\b)/i", $where, $found );
			foreach ( self::is_learned( $tables[ $first ] ) ? preg_grep( Trellis_Changes::IDS, array_unique( $found[1] ) ) : array() as $column ) {
				$ids   = $this->values_of( $where, array( "$first\\.$column" ), $strings );
				$named = null === $ids ? null : $this->joined_ids( $tables[ $first ], $column, $ids, $on[ $first ] );
				if ( null !== $named && $this->note_joined( $tables[ $second ], $on[ $second ], $named ) ) {
					$this->note_ids( $tables[ $first ], array( strtolower( $column ) ), array_map( array( 'Trellis_Changes', 'row_value' ), $ids ) );
					$this->bound_join( $tables[ $first ], $column, $ids, $first, $where, $sql, array() !== $named );
					return true;
				}
			}
		}
		return false;
	}

	/** Whether a table is a plugin's of which rows are named by all that is known of them. */
	private static function is_learned( $table ) {
		return ! isset( Trellis_Changes::TABLES[ $table ] ) && ! in_array( $table, Trellis_Changes::GLOBAL_TABLES, true ) && ! Trellis_Known_Tables::is_memoized( $table ) && ! Trellis_Known_Tables::unshown_columns( $table );
	}

	private static function in_ids( $column, $ids ) {
		return "`$column` IN ('" . implode( "', '", array_map( 'esc_sql', $ids ) ) . "')";
	}

	/** What rows with one of these ids have in another column with ids; null when that cannot be named. */
	private function joined_ids( $table, $column, $ids, $other ) {
		if ( ! $ids || count( $ids ) > 100 || in_array( null, array_map( array( 'Trellis_Changes', 'row_value' ), $ids ), true ) ) {
			return null;
		}
		$name = $GLOBALS['wpdb']->base_prefix . $table;
		$rows = $this->log->query( "SELECT DISTINCT `$other` AS id FROM `$name` WHERE " . self::in_ids( $column, $ids ) . " AND `$other` IS NOT NULL LIMIT 101" );
		$of   = array_map( array( 'Trellis_Changes', 'row_value' ), array_column( (array) $rows, 'id' ) );
		return false === $rows || count( $of ) > 100 || in_array( null, $of, true ) ? null : $of;
	}

	/** Rows of the other table of a join: of a plugin, or posts by their ids. False when they cannot be named. */
	private function note_joined( $table, $column, $ids ) {
		if ( 'posts' === $table && 'id' === $column && count( $ids ) === count( array_filter( array_map( 'strval', $ids ), 'ctype_digit' ) ) ) {
			$this->tables['posts'] = true;
			$this->ids             = array( 'p' => ( isset( $this->ids['p'] ) ? $this->ids['p'] : array() ) + array_fill_keys( array_map( 'intval', $ids ), true ) ) + $this->ids;
			return true;
		}
		if ( self::is_learned( $table ) ) {
			$this->note_ids( $table, array( $column ), $ids );
		}
		return self::is_learned( $table );
	}

	/** A row that is compared with the clock counts until its time comes, without a write. Where no row is found, none counts. */
	private function bound_join( $table, $column, $ids, $alias, $where, $sql, $is_found ) {
		$clock = '(?:NOW\s*\(\s*\)|CURRENT_TIMESTAMP(?:\s*\(\s*\))?)';
		$times = preg_match_all( Trellis_Known_Sql::CHANGING, $sql );
		if ( 0 === $times || ! $is_found && preg_match_all( Trellis_Known_Sql::CHANGING, $where ) === $times ) {
			return;
		}
		$name = $GLOBALS['wpdb']->base_prefix . $table;
		$rows = 1 === $times && preg_match( "/(?:^|\\bAND|\\bOR|\\()\\s*$alias\\.(\\w+)\\s*[<>]=?\\s*$clock(?=\\s*(?:\\)|$|(?:AND|OR)\\b))/i", $where, $part )
			? $this->log->query( "SELECT UNIX_TIMESTAMP(MIN(`$part[1]`)) - UNIX_TIMESTAMP(NOW()) AS seconds FROM `$name` WHERE " . self::in_ids( $column, $ids ) . " AND `$part[1]` > NOW()" )
			: false;
		if ( ! $rows || null !== $rows[0]->seconds ) {
			$this->bound( $rows ? max( 1, (int) $rows[0]->seconds ) : 60 );
		}
	}

	/** Rows of a table by one of these names of columns. */
	private function note_ids( $table, $columns, $ids ) {
		foreach ( $ids ? $columns : array() as $name ) {
			$known = isset( $this->rows[ $table ][ $name ] ) ? $this->rows[ $table ][ $name ] : array();
			$this->rows[ $table ][ $name ] = $known + array_fill_keys( $ids, true );
		}
	}

	/** What the last statement has found, of rows that requests memoize. Called before the next one, and at the end. */
	private function settle_rows() {
		$asked       = $this->asked;
		$this->asked = null;
		if ( null === $asked ) {
			return;
		}
		global $wpdb;
		$is_one   = 1 === count( $asked['ids'] );
		$is_known = isset( $asked['text'] ) && $wpdb->last_query === $asked['text'] && '' === $wpdb->last_error && 1 === count( $asked['names'] ) && ! preg_match( $is_one ? '/\bLIMIT\b(?!\s+[1-9]\d*\s*$)/i' : '/\bLIMIT\b/i', $asked['text'] );
		$rows     = $is_known ? array_map( 'array_change_key_case', array_map( 'get_object_vars', (array) $wpdb->last_result ) ) : array();
		$found    = array_fill_keys( array_column( $rows, $asked['column'] ), true );
		if ( $rows && ! array_key_exists( $asked['column'], $rows[0] ) ) {
			// What a function makes, as COUNT, is a row also where there is none.
			$is_known = $is_one && preg_match( '/^\s*SELECT\b[^()]*\bFROM\b/i', $asked['text'] );
			$found    = $is_known ? array_fill_keys( $asked['ids'], true ) : array();
		}
		foreach ( $asked['names'] as $name ) {
			foreach ( $asked['ids'] as $id ) {
				$missed = &$this->missed[ $asked['table'] ][ "$name:$id" ];
				if ( ! isset( $found[ $id ] ) ) {
					$missed = $missed || $is_known && $asked['is_alone'];
				}
				unset( $missed );
			}
		}
	}

	/** Whether rows with this name were looked for by it alone, and none was there. */
	public function has_missed( $table, $name ) {
		$this->settle_rows();
		return ! empty( $this->missed[ $table ][ $name ] );
	}

	/** Rows that may have been missing when the response was made, and that the request has not inserted itself. */
	private function absent_lists() {
		$this->settle_rows();
		$lists = array();
		foreach ( $this->missed as $table => $names ) {
			foreach ( array_keys( isset( $this->tables[ $table ] ) ? array() : array_filter( $names, 'is_bool' ) ) as $name ) {
				list( $column, $id ) = explode( ':', $name );
				if ( ! call_user_func( $this->has_inserted, $table, $name ) ) {
					$lists += array( $this->plain( $table ) . ":$column:$id" => true );
				}
			}
		}
		return $lists;
	}

	/** A column with ids, together with each kind of object that the condition bounds them to: post 13 and term 13 are two. */
	private function with_kinds( $column, $where, $strings ) {
		$beside = Trellis_Changes::kind_beside( $column );
		$kinds  = '' === $beside ? null : $this->values_of( $where, array( "(?:\\w+\\.)?$beside" ), $strings );
		$kinds  = null === $kinds ? array( null ) : array_unique( array_map( array( 'Trellis_Changes', 'row_value' ), $kinds ) );
		return count( $kinds ) > 8 || in_array( null, $kinds, true ) ? array( $column ) : preg_replace( '/^/', "$column-", $kinds );
	}

	/** Whether something was made of a table as a whole, or of the kind of one of these rows. */
	public function lists( $table, $rows ) {
		if ( isset( $this->tables[ $table ] ) ) {
			return true;
		}
		foreach ( isset( $this->rows[ $table ] ) ? $this->rows[ $table ] : array() as $column => $values ) {
			foreach ( 'type' === substr( $column, -4 ) ? array_keys( $values ) : array() as $value ) {
				if ( isset( $rows[ "$column:$value" ] ) ) {
					return true;
				}
			}
		}
		return false;
	}

	/** Rows as a header names them, `orders:id:5.7`. */
	private function row_lists() {
		$lists = array();
		foreach ( $this->rows as $table => $columns ) {
			foreach ( isset( $this->tables[ $table ] ) ? array() : $columns as $column => $ids ) {
				$lists += $this->numbered( $this->plain( $table ) . ":$column:", array_keys( $ids ) );
			}
		}
		return $lists;
	}

	/** Lists that differ in their last number together: `sd:revision:inherit:parent:5.7`; in a packed text with differences. */
	private function post_lists( $is_packed ) {
		$lists   = array();
		$numbers = array();
		foreach ( array_keys( $this->queries ) as $query ) {
			$list = $this->plain( $query );
			if ( preg_match( $is_packed ? '/^((?:k|h:comment|.+:(?:parent|author|relation)):)(\d+)$/D' : '/^(.+:(?:parent|author|relation):)(\d+)$/D', $list, $part ) ) {
				$numbers[ $part[1] ][ $part[2] ] = true;
			} else {
				$lists[ $list ] = true;
			}
		}
		foreach ( $numbers as $beginning => $all ) {
			$lists += $this->numbered( $beginning, array_keys( $all ), $is_packed );
		}
		return $lists;
	}

	/** The numbers behind what they have in common, in texts of at most 191 characters as long as a number has eleven digits. */
	private function numbered( $beginning, $numbers, $is_packed = false ) {
		$texts = array();
		foreach ( array_chunk( $numbers, max( 1, intdiv( 191 - strlen( $beginning ), 12 ) ) ) as $some ) {
			$texts[ $beginning . implode( '.', $is_packed ? self::differences( $some ) : $some ) ] = true;
		}
		return $texts;
	}

	/** The first number, and how much each is above the one before it. */
	private static function differences( $numbers ) {
		sort( $numbers );
		return array_map(
			function ( $number, $before ) {
				return (int) $number - (int) $before;
			},
			$numbers,
			array_slice( array_merge( array( 0 ), $numbers ), 0, count( $numbers ) )
		);
	}

	/** Columns by which posts are listed whose values changes tell, and words of statements. */
	const STRUCTURE = array( 'comment_count', 'post_modified_gmt', 'sum', 'min', 'max', 'coalesce', 'id', 'post_type', 'post_status', 'post_name', 'post_parent', 'post_author', 'post_date', 'menu_order', 'post_title', 'post_content', 'post_excerpt', 'post_modified', 'object_id', 'term_taxonomy_id', 'like', 'case', 'when', 'then', 'else', 'end', 'select', 'sql_calc_found_rows', 'distinct', 'from', 'where', 'and', 'or', 'in', 'not', 'as', 'inner', 'left', 'join', 'on', 'order', 'group', 'by', 'asc', 'desc', 'limit', 'count', 'is', 'null', 'field', 'between', 'year', 'month', 'dayofmonth' );

	/** The letters of columns whose change moves a post in a list, or in or out of it; its status always does. */
	const COLUMNS = array( 'post_date' => 'd', 'post_name' => 'w', 'post_parent' => 'p', 'post_author' => 'a', 'menu_order' => 'm', 'term_taxonomy_id' => 'r', 'post_title' => 't', 'post_content' => 'c', 'post_excerpt' => 'e', 'post_modified' => 'u', 'post_modified_gmt' => 'u', 'comment_count' => 'n' );

	/** Tables with the contents of WordPress, and the column of each with the id of an object, and the letter of that. */
	const OBJECTS = array( 'posts' => array( 'ID', 'p' ), 'postmeta' => array( 'post_id', 'p' ), 'term_relationships' => array( 'object_id', 'p' ), 'terms' => array( 'term_id', 't' ), 'term_taxonomy' => array( 'term_id', 't' ), 'termmeta' => array( 'term_id', 't' ), 'comments' => array( 'comment_ID', 'c' ), 'commentmeta' => array( 'comment_id', 'c' ), 'users' => array( 'ID', 'u' ), 'usermeta' => array( 'user_id', 'u' ) );

	/**
	 * Rows that a statement looks for by id are known by that id. A list is known by the type, the status and one more value that its
	 * items have. Any statement that is not understood reads everything.
	 */
	private function read_select( $sql, $strings, $prefix, $is_of_posts ) {
		foreach ( preg_split( '/\bUNION\b/i', $sql ) as $one ) {
			// Behind a comma stand tables that no prefix tells.
			$others        = preg_grep( "/^(?:$prefix|NULL$|term_taxonomy_id$)/Di", Trellis_Joined_Tables::of( $one, $prefix )->names(), PREG_GREP_INVERT );
			$this->tables += array_fill_keys( array_filter( $others, array( 'Trellis_Known_Tables', 'is_shown' ) ), true );
			$this->miss_marked( $others );
		}
		preg_match_all( "/(?<![\\w$])$prefix(?:\\d+_)?(\\w+)(?!\\s*\\.|\\w)/", $sql, $found );
		$tables = array_values( array_intersect( $found[1], array_keys( self::OBJECTS ) ) );
		if ( ! $tables ) {
			return;
		}
		$where = preg_match( '/\bWHERE\b(.*?)(?:\b(?:GROUP\s+BY|ORDER\s+BY|HAVING|LIMIT|FOR\s+UPDATE)\b(?!.*\bWHERE\b)|$)/is', $sql, $part ) ? $part[1] : '';
		$joined = Trellis_Joined_Tables::of( $sql, $prefix );
		$value  = function ( $of, $column ) use ( $where, $strings, $joined ) {
			return false === stripos( $where, $column ) ? null : $this->values_of( $where, $joined->columns( $of, $column ), $strings );
		};
		$names  = array_unique( $tables );
		$first  = $tables[0];
		if ( self::reads_twice( $tables ) || ! $joined->are_of_one_object( $tables, $where ) ) {
			// Of objects and others beside them, such as their parents, conditions bound one or the other.
			$value = '__return_null';
		}
		if ( array() === array_diff( array( 'terms', 'term_relationships' ), $names ) && ! preg_match( '/\bORDER\s+BY\s+t\.name\s+(?:ASC|DESC)\s*$/i', $sql ) ) {
			$this->is_reordered = true;
		}
		if ( preg_match( self::REPEATED, $sql ) ) {
			$this->lists['any'] = true;
			return;
		}
		if ( $this->is_never( $where ) ) {
			return;
		}
		// By id, from the one table or from it and what belongs to it.
		list( $column, $letter ) = self::OBJECTS[ $first ];
		$is_term                 = in_array( $first, array( 'terms', 'term_taxonomy' ), true );
		$of_terms                = array( 'terms', 'term_taxonomy', 'termmeta' );
		$ids                     = 1 === count( $names ) || $is_term && array() === array_diff( $names, $of_terms ) ? $value( $names, $column ) : null;
		$objects                 = $is_term && in_array( 'term_relationships', $names, true ) && array() === array_diff( $names, $of_terms, array( 'term_relationships' ) ) ? $value( array( 'term_relationships' ), 'object_id' ) : null;
		$taxonomies              = $value( array( 'term_taxonomy' ), 'taxonomy' );
		if ( null !== $ids || null !== $objects ) {
			if ( null === $ids && ( self::shows_terms( $sql ) || preg_match( '/\b(?:name|slug|term_group|description|parent|count|meta_\w+)\b/i', $where ) ) ) {
				// What the object has of terms is a change of it, what these are called is none.
				$this->note_terms( $taxonomies, $sql );
			}
			foreach ( null !== $ids ? $ids : $objects as $id ) {
				$this->ids[ null !== $ids ? $letter : 'p' ][ (int) $id ] = true;
			}
			return;
		}
		if ( array() === array_diff( $names, array( 'posts', 'postmeta', 'term_relationships' ) ) && in_array( 'posts', $names, true ) ) {
			// A password that is there or not is a part of the status.
			$this->read_posts( preg_replace_callback(
				'/\b(?:\w+\.)?post_password\s*=\s*\'(\d+)\'/',
				function ( $found ) use ( $strings ) {
					return '' === $strings[ (int) $found[1] ] ? '1=1' : $found[0];
				},
				$sql
			), $value, $prefix, in_array( 'term_relationships', $names, true ) );
		} elseif ( $is_of_posts && array( 'term_relationships' ) === $names ) {
			// The statement around it lists the posts, and their terms are among what decides.
			return;
		} elseif ( array() === array_diff( $names, $of_terms ) && null !== $taxonomies ) {
			$this->note_terms( $taxonomies, $sql );
		} elseif ( array() === array_diff( $names, array( 'comments', 'commentmeta' ) ) ) {
			foreach ( array( 'comment_post_ID' => 'k:', 'comment_parent' => 'h:comment:' ) as $column => $list ) {
				$values = $value( array( 'comments' ), $column );
				if ( null !== $values && count( $values ) <= 20 ) {
					foreach ( $values as $one ) {
						$this->queries[ $list . (int) $one ] = true;
					}
					return;
				}
			}
			$this->lists += array( 'comment' => true );
		} elseif ( array() === array_diff( $names, array( 'users', 'usermeta' ) ) ) {
			$this->lists['user'] = true;
		} else {
			$this->lists['any'] = true;
		}
	}

	/** Whether a SELECT shows more of terms than which there are. */
	private static function shows_terms( $sql ) {
		$column = '(?:COUNT\s*\(\s*\*\s*\)|(?:\w+\.)?(?:term_id|term_taxonomy_id|object_id))(?:\s+AS\s+\w+)?';
		return ! preg_match( "/^\\s*SELECT\\s+(?:DISTINCT\\s+)?$column(?:\\s*,\\s*$column)*\\s+FROM\\b/i", $sql );
	}

	/** The terms of these taxonomies, and how many posts they have where a statement may show it; null is any. */
	private function note_terms( $taxonomies, $sql ) {
		if ( null === $taxonomies ) {
			$this->lists['any'] = true;
		}
		foreach ( (array) $taxonomies as $taxonomy ) {
			$this->queries[ "t:$taxonomy" ] = true;
			if ( preg_match( '/\bcount\b(?!\s*\()|\*/i', str_ireplace( 'COUNT(*)', '', $sql ) ) ) {
				$this->queries[ "n:$taxonomy" ] = true;
			}
		}
	}

	/** Whether a statement reads one of its tables twice. Meta is read once for each key, of the same objects, where these are read, too. */
	private static function reads_twice( $tables ) {
		$counts  = array_count_values( $tables );
		$objects = 1 === count( $counts ) ? $counts : array_diff_key( $counts, array_flip( array( 'postmeta', 'termmeta', 'commentmeta', 'usermeta' ) ) );
		return ! $objects || 1 < max( $objects );
	}

	private function read_posts( $sql, $value, $prefix, $has_relations ) {
		// Names that the statement gives to tables and values are none of columns.
		preg_match_all( "/\\b(?:FROM|JOIN)\\s+$prefix(?:\\d+_)?(?:posts|term_relationships)\\s+AS\\s+(\\w+)/i", $sql, $aliases );
		$plain = preg_replace( preg_replace( '/^.*$/', '/\b$0\s*\./', $aliases[1] ), ' ', $sql );
		$plain = preg_replace( array( "/\\b$prefix(?:\\d+_)?(?:posts|term_relationships)\\b/", '/COUNT\s*\(\s*\*\s*\)/i', "/'\\d+'/", '/\bAS\s+\w+/i' ), ' ', $plain );
		preg_match_all( '/[A-Za-z_]\w*/', $plain, $words );
		// Short names stand for tables, as in `tt1` and `p`.
		$others = array_diff( preg_grep( '/^(?:tt\d*|p)$/', array_map( 'strtolower', $words[0] ), PREG_GREP_INVERT ), self::STRUCTURE );
		$used   = array_count_values( array_map( 'strtolower', $words[0] ) ) + ( $has_relations ? array( 'term_taxonomy_id' => 1 ) : array() );
		$class  = $others || false !== strpos( $plain, '*' ) ? 'x' : 's';
		$types  = $value( array( 'posts' ), 'post_type' );
		$states = $value( array( 'posts' ), 'post_status' );
		if ( count( (array) $types ) * max( 1, count( (array) $states ) ) > self::MAX_LISTS ) {
			$states = null;
		}
		if ( count( (array) $types ) > self::MAX_LISTS ) {
			$types = null;
		}
		$filter = array( '' );
		foreach ( array( 'name' => 'post_name', 'relation' => 'term_taxonomy_id', 'parent' => 'post_parent', 'author' => 'post_author' ) as $name => $column ) {
			$values = $value( array( 'relation' === $name ? 'term_relationships' : 'posts' ), $column );
			if ( null !== $values && count( $values ) <= 5 ) {
				// The values of a change say what its columns would say.
				unset( $used[ $column ] );
				$filter = array();
				foreach ( $values as $one ) {
					$filter[] = ":$name:" . ( 'name' === $name ? substr( md5( $one ), 0, 12 ) : (int) $one );
				}
				break;
			}
		}
		foreach ( 's' === $class ? array_intersect_key( self::COLUMNS, $used ) : array() as $letter ) {
			$class .= $letter;
		}
		$queries = array();
		foreach ( null === $types ? array( 'any' ) : $types as $type ) {
			foreach ( null === $states ? array( 'any' ) : $states as $state ) {
				foreach ( $filter as $one ) {
					$queries[ "$class:$type:$state$one" ] = true;
				}
			}
		}
		if ( 1 === count( $filter ) && 0 === strpos( $filter[0], ':author:' ) && array( 'publish' ) === $states && $this->asks_for_author( $sql ) ) {
			$this->authors[] = array( (int) substr( $filter[0], 8 ), (array) $types, $queries );
		} else {
			$this->queries += $queries;
		}
	}

	/** Every visitor sees an author with a published post: how many posts does not matter. */
	private function asks_for_author( $sql ) {
		if ( ! preg_match( '/^\s*SELECT\s+COUNT\s*\(\s*\*\s*\)\s+FROM\b/i', $sql ) || has_filter( 'get_usernumposts' ) ) {
			return false;
		}
		$frames = debug_backtrace( DEBUG_BACKTRACE_IGNORE_ARGS, 20 );
		$at     = array_search( 'count_user_posts', array_column( $frames, 'function' ), true );
		foreach ( false === $at ? array() : array_slice( $frames, $at + 1, 2 ) as $frame ) {
			$name = ( isset( $frame['class'] ) ? $frame['class'] : '' ) . "::{$frame['function']}";
			if ( Trellis_Known_Code::COUNTS_POSTS !== $name ) {
				return Trellis_Known_Code::asks_for_author( $name );
			}
		}
		return false;
	}

	/** A post in the answer proves that its author has published one, as long as it stays as it is. */
	private function proves( $author, $types, $posts ) {
		foreach ( $posts as $post ) {
			if ( is_object( $post ) && isset( $post->post_author, $post->post_status, $post->post_type ) && $author === (int) $post->post_author && 'publish' === $post->post_status && in_array( $post->post_type, $types, true ) ) {
				return true;
			}
		}
		return false;
	}

	/** Columns of texts that responses and changes name. */
	const COLLATED = '/(?:post_type|post_status|post_name|taxonomy|option_name)$/iD';

	/** The values to which a condition bounds a column; null when it may have any. */
	private function values_of( $condition, $columns, $strings ) {
		$text = self::plain_condition( $condition );
		if ( null === $text ) {
			return null;
		}
		foreach ( array( 'OR', 'AND' ) as $word ) {
			$parts = self::split( $text, $word );
			if ( count( $parts ) < 2 ) {
				continue;
			}
			$all = array();
			foreach ( $parts as $part ) {
				$values = $this->values_of( $part, $columns, $strings );
				if ( 'AND' === $word && null !== $values ) {
					return $values;
				}
				if ( 'OR' === $word && null === $values ) {
					return null;
				}
				$all = array_merge( $all, (array) $values );
			}
			return 'OR' === $word ? array_values( array_unique( $all ) ) : null;
		}
		foreach ( $columns as $column ) {
			if ( preg_match( "/^$column\\s*(?:=\\s*('?\\d+'?)|IN\\s*\\(((?:\\s*'?\\d+'?\\s*,?)+)\\))$/is", $text, $part ) ) {
				$values = array();
				foreach ( explode( ',', '' !== $part[1] ? $part[1] : $part[2] ) as $one ) {
					$one      = trim( $one );
					$text     = '' !== $one && "'" === $one[0] ? $strings[ (int) substr( $one, 1, -1 ) ] : null;
					$values[] = preg_match( self::COLLATED, $column ) ? ( null === $text ? null : Trellis_Changes::collated( $text ) ) : ( null === $text ? $one : $text );
				}
				// A number equals each text that does not begin with another one.
				return in_array( null, $values, true ) ? null : $values;
			}
		}
		return null;
	}

	/**
	 * A condition without the parentheses around it, in which AND and OR join conditions and do nothing else; null for any other. A range
	 * between two values is a condition that names neither.
	 */
	public static function plain_condition( $condition ) {
		if ( preg_match( '/\|\||\b(?:XOR|CASE|BETWEEN)\b/i', $condition ) ) {
			$value     = "(?:'\\d+'|-?\\d+(?:\\.\\d+)?)";
			$condition = preg_replace( "/\\bBETWEEN\\s+$value\\s+AND\\s+$value(?=\\s*(?:\\)|$|(?:AND|OR)\\b))/i", 'IS 0', $condition );
			if ( preg_match( '/\|\||\b(?:XOR|CASE|BETWEEN)\b/i', $condition ) ) {
				return null;
			}
		}
		return self::unwrap( $condition );
	}

	/** Whether a condition holds for no row: WordPress adds `0 = 1` when another statement has not found the term that it looks for. */
	private function is_never( $condition ) {
		$text = self::plain_condition( $condition );
		if ( null === $text ) {
			return false;
		}
		$choices = self::split( $text, 'OR' );
		$parts   = count( $choices ) > 1 ? $choices : self::split( $text, 'AND' );
		if ( count( $parts ) < 2 ) {
			return 1 === preg_match( '/^0\s*=\s*1$/D', $text );
		}
		$never = count( array_filter( array_map( array( $this, 'is_never' ), $parts ) ) );
		return count( $choices ) > 1 ? $never === count( $parts ) : $never > 0;
	}

	/** A condition without the parentheses around all of it. */
	private static function unwrap( $condition ) {
		$text = trim( $condition );
		while ( preg_match( '/^\((.*)\)$/s', $text, $part ) && self::is_one( $part[1] ) ) {
			$text = trim( $part[1] );
		}
		return $text;
	}

	/** Whether every parenthesis in the text is closed in it. */
	private static function is_one( $text ) {
		$depth = 0;
		foreach ( str_split( preg_replace( '/[^()]/', '', $text ) ) as $sign ) {
			$depth += '(' === $sign ? 1 : ( ')' === $sign ? -1 : 0 );
			if ( $depth < 0 ) {
				return false;
			}
		}
		return 0 === $depth;
	}

	/** The parts of a condition between the words that stand in no parentheses. */
	public static function split( $text, $word ) {
		$parts = array( '' );
		$depth = 0;
		foreach ( preg_split( "/([()]|\\b$word\\b)/i", $text, -1, PREG_SPLIT_DELIM_CAPTURE ) as $piece ) {
			$depth += '(' === $piece ? 1 : ( ')' === $piece ? -1 : 0 );
			if ( 0 === $depth && 0 === strcasecmp( $piece, $word ) ) {
				$parts[] = '';
			} else {
				$parts[ count( $parts ) - 1 ] .= $piece;
			}
		}
		return $parts;
	}

	/** The last moment at which a header can be sent: what `_embed` reads is among it. */
	public function send( $answer, $server, $request ) {
		if ( false === strpos( $request->get_route(), '/batch/' ) ) {
			$this->send_headers();
		}
		return $answer;
	}

	/** Describes the response in its headers, from what has been read up to now. */
	public function send_headers() {
		if ( headers_sent() ) {
			return;
		}
		try {
			$value = $this->value();
			header( "Trellis-Tags: $value" );
			if ( '' !== $this->cause ) {
				header( 'Trellis-Incomplete: ' . substr( preg_replace( '/[^\x20-\x7e]/', '_', $this->cause ), 0, 200 ) );
			}
			$untested = Trellis_Known_Code::untested();
			if ( $untested ) {
				header( 'Trellis-Untested: ' . substr( preg_replace( '/[^\x20-\x7e]/', '_', implode( ', ', $untested ) ), 0, 200 ) );
			}
			header( "Trellis-Request: {$this->request}" );
			if ( $this->max_age > 0 ) {
				header( "Trellis-Max-Age: {$this->max_age}" );
			}
		} catch ( Throwable $error ) {
			// Without tags the gateway uses its own table.
			header_remove( 'Trellis-Tags' );
		}
	}

	private function value() {
		global $wp_object_cache;
		$shows_temporary = $this->shows_temporary();
		if ( wp_using_ext_object_cache() || $this->reads ) {
			$cache = $this->reads ? $this->reads->trellis_end() : null;
		} else {
			$cache = isset( $wp_object_cache->cache ) && is_array( $wp_object_cache->cache ) ? $wp_object_cache->cache : null;
		}
		if ( '' !== $shows_temporary ) {
			$this->miss( "the temporary value $shows_temporary" );
		} elseif ( null === $cache ) {
			$this->miss( 'an object cache that cannot be read' );
		} elseif ( count( $this->blogs ) > self::MAX_BLOGS ) {
			$this->miss( 'more than ' . self::MAX_BLOGS . ' sites of the network' );
		}
		foreach ( self::GROUPS as $group => $letter ) {
			foreach ( isset( $cache[ $group ] ) && is_array( $cache[ $group ] ) ? $cache[ $group ] : array() as $key => $value ) {
				if ( preg_match( '/^(?:\d+:)?(\d+)$/D', (string) $key, $part ) ) {
					$this->ids[ $letter ][ (int) $part[1] ] = true;
				}
			}
		}
		foreach ( array_filter( array_map( array( 'Trellis_Changes', 'hierarchy_in' ), array_combine( array_keys( $this->options ), array_keys( $this->options ) ) ) ) as $name => $taxonomy ) {
			unset( $this->options[ $name ] );
			$this->queries[ "h:$taxonomy" ] = true;
		}
		foreach ( $this->authors as list( $author, $types, $queries ) ) {
			// In a network the post may be of another blog.
			$this->queries += null !== $cache && 1 === count( $this->blogs ) && isset( $cache['posts'] ) && $this->proves( $author, $types, $cache['posts'] ) ? array() : $queries;
		}
		$this->name_counted( is_array( $cache ) && isset( $cache['terms'] ) ? $cache['terms'] : array() );
		$options     = $this->named_options( $this->options );
		$is_complete = $this->is_complete && ! wp_suspend_cache_addition() && 200 === http_response_code();
		$is_own      = ! $this->is_added_to() && ! did_action( 'switch_blog' );
		$is_countless = $this->is_only_of( self::COUNTLESS ) && array() === array_filter( preg_grep( '/^[tn]:/', array_keys( $this->queries ) ), array( 'Trellis_Known_Code', 'may_count' ) );
		$is_plain     = $is_own && $is_countless;
		if ( $is_plain && $this->is_only_of( self::AUTHORLESS ) && 0 === get_current_user_id() && false === strpos( (string) get_option( 'permalink_structure' ), '%author%' ) ) {
			unset( $this->ids['u'] );
		}
		$is_core = $is_own && $this->is_only_of( array_merge( self::COUNTLESS, self::UNSTRUCTURED ) );
		if ( $is_core && 0 === get_current_user_id() && ! $this->is_filtered( array( 'user_has_cap', 'map_meta_cap' ) ) ) {
			// A visitor who is not logged in has no role.
			unset( $options['wp_user_roles'] );
		}
		$options = array_diff_key( $options, array( 'cron' => true, Trellis_Early_Options::NAME => true ), self::COMMON );
		$flags   = ( $is_complete ? 'complete;' : '' ) . ( $is_plain ? 'plain;' : ( $is_countless && ! did_action( 'switch_blog' ) && ! $this->adds_of_terms( true ) ? 'uncounted;' : '' ) ) . ( $this->is_only_of( self::SLUGS_ONLY ) && ! did_action( 'switch_blog' ) && ! $this->is_ordered() && ! $this->adds_of_terms( false ) ? 'slugs;' : '' );
		if ( $this->structure && ! $is_core ) {
			$flags .= 'structure;';
		}
		// Not the roles, which most responses need not name.
		$early = array_diff_key( $this->named_options( $this->early ), array( 'wp_user_roles' => true ) );
		if ( $early && ! did_action( 'switch_blog' ) ) {
			$known    = $this->stored->including( array_map( 'strval', array_keys( array_intersect_key( $options, $early ) ) ) );
			$options  = array_diff_key( $options, array_intersect_key( $known, $early ) );
			$flags   .= 'early;';
		}
		$letters = array( 'p', 't', 'd', 'u', 'c' );
		$names   = array( 'list' => $this->lists, 'q' => $this->post_lists( false ), 'o' => $options, 'x' => $this->tables, 'r' => $this->row_lists(), 'a' => $this->absent_lists() );
		$text    = $this->join( $letters, $names, $flags );
		if ( strlen( $text ) > self::MAX_PLAIN_BYTES && function_exists( 'gzdeflate' ) ) {
			$text = 'v2;' . rtrim( base64_encode( gzdeflate( $this->join( $letters, array_merge( $names, array( 'q' => $this->post_lists( true ) ) ), $flags, true ), 9 ) ), '=' );
		}
		if ( strlen( $text ) <= self::MAX_BYTES ) {
			return $text;
		}
		// Too long: collections and tables alone, known as incomplete.
		$this->miss( 'more than ' . self::MAX_BYTES . ' bytes of tags' );
		return $this->join( array(), array( 'list' => array( 'any' => true ), 'x' => $this->tables + array_fill_keys( array_keys( $this->rows ), true ) ), '' );
	}

	/**
	 * Where all code that has made the response is known, it shows of no term that it only looks for how many posts there are: it names these
	 * terms in a list of their own. Elsewhere it names the terms of options that say such numbers.
	 */
	private function name_counted( $cached_terms ) {
		if ( $this->is_only_of( array_merge( self::COUNTLESS, self::UNSTRUCTURED ) ) && ! did_action( 'switch_blog' ) && ! is_multisite() && ! $this->adds_of_terms( true ) ) {
			foreach ( $cached_terms as $term ) {
				if ( isset( $term->term_id, $term->taxonomy ) && Trellis_Known_Code::is_looked_for( $term->taxonomy ) ) {
					unset( $this->ids['t'][ (int) $term->term_id ] );
					$this->ids['d'][ (int) $term->term_id ] = true;
				}
			}
			return;
		}
		foreach ( array_intersect( Trellis_Known_Code::counting_options(), array_keys( $this->temporary ) ) as $name ) {
			$parts = Trellis_Known_Code::counts_in( serialize( get_option( $name ) ) );
			if ( null === $parts ) {
				$this->miss( "the temporary value $name" );
			}
			foreach ( null === $parts ? array() : $parts[1] as $counts ) {
				$this->ids['t'] = ( isset( $this->ids['t'] ) ? $this->ids['t'] : array() ) + array_fill_keys( array_keys( $counts ), true );
			}
		}
	}

	/**
	 * The name of a temporary value that was there and is not told, apart from those of WordPress, which are made of files and of the clock;
	 * '' for none. The response ends with those that are told.
	 */
	private function shows_temporary() {
		// What is read from here on is not part of the answer.
		$this->is_dispatched = false;
		foreach ( $this->temporary as $name => $places ) {
			if ( preg_match( self::KNOWN_TEMPORARY, $name ) ) {
				continue;
			}
			$is_network = 0 === strpos( $name, '_site_' );
			$end        = isset( $places['option'] ) ? (int) get_option( str_replace( '_transient_', '_transient_timeout_', $name ) ) : 0;
			if ( $end > 0 ) {
				$this->bound( max( 1, $end - time() ) );
			}
			if ( isset( $places['cache'] ) && is_multisite() && $is_network && false !== get_site_option( $name ) ) {
				return $name;
			}
			if ( isset( $places['cache'] ) && false !== wp_cache_get( substr( $name, $is_network ? 16 : 11 ), $is_network ? 'site-transient' : 'transient' ) ) {
				return $name;
			}
		}
		return '';
	}

	private function plain( $name ) {
		return substr( preg_replace( '/[^A-Za-z0-9_.:-]/', '_', (string) $name ), 0, 64 );
	}

	private function join( $letters, $names, $flags, $is_packed = false ) {
		$count = 0;
		$parts = array();
		foreach ( $letters as $letter ) {
			$ids = isset( $this->ids[ $letter ] ) ? array_keys( $this->ids[ $letter ] ) : array();
			sort( $ids );
			if ( $ids ) {
				$count  += count( $ids );
				$parts[] = "$letter=" . implode( ',', $is_packed ? self::differences( $ids ) : $ids );
			}
		}
		foreach ( $names as $name => $list ) {
			// "mods_Twenty Twenty-Four" is an option, too: in the header it has other characters, and a gateway compares it so.
			$plain = in_array( $name, array( 'q', 'r', 'a' ), true ) ? array_keys( $list ) : array_unique( array_map( array( $this, 'plain' ), array_keys( $list ) ) );
			if ( $plain ) {
				$count  += count( $plain );
				$parts[] = "$name=" . implode( ',', $plain );
			}
		}
		return "v1;n=$count;{$flags}blogs=" . implode( ',', array_slice( array_keys( $this->blogs ), 0, self::MAX_BLOGS ) ) . ( $parts ? ';' . implode( ';', $parts ) : '' );
	}
}

/**
 * Says in a header what the request has written: rows of the log, or nothing. A gateway asks for it with a random value, and both
 * sides sign with the token. The response is held until PHP is at its end, when nothing more can be written. One that is longer, or
 * that takes longer to send, goes out without a statement, and so does that of a request that dies: the gateway expects the worst.
 */
final class Trellis_Statement {
	const MAX_BYTES   = 1048576;
	const MAX_SECONDS = 1;

	private $token;
	private $nonce;
	/** @var Trellis_Changes */
	private $changes;
	private $database;
	private $level;
	private $held      = '';
	private $held_from = 0;
	/** The response goes out as it comes. */
	private $is_passed = false;
	/** All functions have run that were to run at the end. */
	private $is_ended  = false;
	/** Something was sent to another server, which may have written it. */
	private $has_sent  = false;

	/** For a request whose gateway asks for a statement; null for all others. */
	public static function asked( $token, Trellis_Changes $changes ) {
		$asked = isset( $_SERVER['HTTP_TRELLIS_NONCE'] ) ? (string) $_SERVER['HTTP_TRELLIS_NONCE'] : '';
		if ( ! preg_match( '/^([0-9a-f]{32})\.([0-9a-f]{64})$/D', $asked, $part ) || ! hash_equals( hash_hmac( 'sha256', "ask\n{$part[1]}", $token ), $part[2] ) ) {
			return null;
		}
		$statement = new self( $token, $part[1], $changes );
		$statement->start();
		return $statement;
	}

	private function __construct( $token, $nonce, Trellis_Changes $changes ) {
		$this->token    = $token;
		$this->nonce    = $nonce;
		$this->changes  = $changes;
		$this->database = $GLOBALS['wpdb'];
	}

	private function start() {
		$filters = isset( $GLOBALS['wp_filters'] ) ? $GLOBALS['wp_filters'] : array();
		// Statements before this file are not seen: WordPress reads its options with one, and one each that is not among them.
		$is_seen = isset( $filters['query'] ) && ! is_multisite() && $filters['query'] <= 1 + count( preg_grep( '/^pre_option_/', array_keys( $filters ) ) );
		if ( ! $is_seen && ! Trellis_Tags::is_first() || wp_using_ext_object_cache() && ! Trellis_Cache_Writes::watch( array( $this->changes, 'doubt' ) ) ) {
			return;
		}
		$this->changes->when_written( array( $this, 'withdraw' ) );
		add_filter(
			'http_request_args',
			function ( $arguments, $url ) {
				$method = is_array( $arguments ) && isset( $arguments['method'] ) ? strtoupper( (string) $arguments['method'] ) : '';
				// WordPress starts its tasks by a POST, and reports what they write.
				if ( ! in_array( $method, array( 'GET', 'HEAD' ), true ) && 'wp-cron.php' !== basename( (string) wp_parse_url( (string) $url, PHP_URL_PATH ) ) ) {
					$this->has_sent = true;
				}
				return $arguments;
			},
			PHP_INT_MAX,
			2
		);
		// With 1 the callback gets each piece when it is written.
		ob_start( array( $this, 'hold' ), 1 );
		$this->level = ob_get_level();
		add_action(
			'shutdown',
			function () {
				// WordPress sends the response here, and plugins may write afterwards.
				if ( remove_action( 'shutdown', 'wp_ob_end_flush_all', 1 ) ) {
					add_action( 'shutdown', array( $this, 'end_inner' ), 1 );
				}
			},
			PHP_INT_MIN
		);
	}

	/** Ends the output buffers of plugins, as WordPress does. */
	public function end_inner() {
		if ( $this->is_passed ) {
			wp_ob_end_flush_all();
		}
		while ( ! $this->is_passed && ob_get_level() > $this->level && ob_end_flush() ) {
			continue;
		}
	}

	/** The output callback. */
	public function hold( $text, $phase ) {
		if ( $phase & PHP_OUTPUT_HANDLER_CLEAN ) {
			$this->held      = '';
			$this->is_passed = $this->is_passed || ( $phase & PHP_OUTPUT_HANDLER_FINAL );
			return '';
		}
		if ( $this->is_passed ) {
			return $text;
		}
		$this->held .= $text;
		if ( $phase & PHP_OUTPUT_HANDLER_FINAL ) {
			$this->state();
			return $this->pass();
		}
		if ( 0 === $this->held_from && '' !== $text ) {
			$this->held_from = microtime( true );
			$is_stream       = preg_grep( '~^(?:content-type:\s*text/event-stream|x-accel-buffering:\s*no)\b~i', headers_list() );
		}
		// Who flushes wants it to arrive.
		$is_long = ! empty( $is_stream ) || ( $phase & PHP_OUTPUT_HANDLER_FLUSH ) || strlen( $this->held ) > self::MAX_BYTES || $this->held_from > 0 && microtime( true ) - $this->held_from > self::MAX_SECONDS;
		return $is_long ? $this->pass() : '';
	}

	private function pass() {
		$text            = $this->held;
		$this->held      = '';
		$this->is_passed = true;
		return $text;
	}

	public function end() {
		$this->is_ended = true;
	}

	private function state() {
		if ( ! $this->is_ended || headers_sent() || $this->may_write_elsewhere() ) {
			return;
		}
		$summary = $this->changes->summary();
		// A response that another server has a part in is dropped by rows.
		if ( '' !== $summary && ( ! $this->has_sent || 0 === strpos( $summary, 'rows ' ) ) ) {
			header( "Trellis-Statement: $summary; hmac=" . hash_hmac( 'sha256', "statement\n{$this->nonce}\n$summary", $this->token ) );
		}
	}

	/** Something is written after the statement was made, by an output callback of a plugin around this one. */
	public function withdraw() {
		if ( ! headers_sent() ) {
			header_remove( 'Trellis-Statement' );
		}
	}

	/** Seconds by which the clock of the files may differ. */
	const CLOCK_SECONDS = 5;

	/**
	 * Whether code may be another one now: an upgrader is loaded, or a folder of code, a file of the theme or of this request was written. WooCommerce asks
	 * for the file system in each order, and writes its logs.
	 */
	private static function may_have_written_code( $files ) {
		if ( ! $files instanceof WP_Filesystem_Direct || class_exists( 'WP_Upgrader', false ) || did_action( 'delete_plugin' ) || did_action( 'delete_theme' ) ) {
			return true;
		}
		$since   = ( isset( $_SERVER['REQUEST_TIME'] ) ? (int) $_SERVER['REQUEST_TIME'] : time() ) - self::CLOCK_SECONDS;
		$folders = array( ABSPATH, WP_PLUGIN_DIR, WPMU_PLUGIN_DIR, get_theme_root(), get_stylesheet_directory(), get_template_directory(), WP_LANG_DIR, WP_LANG_DIR . '/plugins', WP_LANG_DIR . '/themes' );
		clearstatcache();
		$drop_ins = preg_replace( '/^/', WP_CONTENT_DIR . '/', array( 'advanced-cache.php', 'db.php', 'object-cache.php' ) );
		// Responses show files of a theme that are no code: its settings, styles, templates and patterns.
		$of_theme = array();
		foreach ( array_unique( array( get_stylesheet(), get_template() ) ) as $theme ) {
			$of_theme = array_merge( $of_theme, array_values( wp_get_theme( $theme )->get_files( null, 3 ) ) );
		}
		foreach ( array_merge( $folders, $drop_ins, $of_theme, get_included_files() ) as $path ) {
			if ( file_exists( $path ) && filemtime( $path ) >= $since ) {
				return true;
			}
		}
		return false;
	}

	/** Where no statement of SQL is seen: another database object, code and other files, sessions of PHP that are stored after the end. */
	private function may_write_elsewhere() {
		$script = isset( $_SERVER['SCRIPT_NAME'] ) ? basename( (string) $_SERVER['SCRIPT_NAME'] ) : '';
		return $GLOBALS['wpdb'] !== $this->database
			|| ! has_filter( 'query', array( $this->changes, 'see' ) )
			|| $_FILES
			|| ! empty( $GLOBALS['wp_filesystem'] ) && self::may_have_written_code( $GLOBALS['wp_filesystem'] )
			|| did_action( 'wp_ajax_edit-theme-plugin-file' )
			|| in_array( $script, array( 'theme-editor.php', 'plugin-editor.php' ), true )
			|| PHP_SESSION_ACTIVE === session_status() && 'user' === ini_get( 'session.save_handler' );
	}
}

/** Stands before a persistent object cache while a write is made, and notes values that are in no database. */
final class Trellis_Cache_Writes {
	/** Methods that store or remove values, and which of their arguments is the group. */
	const GROUP_OF = array( 'set' => 2, 'add' => 2, 'replace' => 2, 'incr' => 2, 'decr' => 2, 'delete' => 1, 'set_multiple' => 1, 'add_multiple' => 1, 'delete_multiple' => 1 );
	/** Methods that leave stored values as they are. */
	const HARMLESS = array( 'flush_runtime', 'add_global_groups', 'add_non_persistent_groups', 'switch_to_blog', 'close', 'reset', 'stats' );
	/** Groups of WordPress, whose values are those of the database, of files or of the clock. */
	const KNOWN    = array( 'options', 'site-options', 'posts', 'post_meta', 'terms', 'term_meta', 'comment', 'comment_meta', 'users', 'user_meta', 'userlogins', 'useremail', 'userslugs', 'user-queries', 'term-queries', 'post-queries', 'comment-queries', 'network-queries', 'site-queries', 'sites', 'networks', 'blog-details', 'blog-lookup', 'blog-id-cache', 'blog_meta', 'site-details', 'counts', 'plugins', 'themes', 'theme_files', 'theme_json', 'translation_files', 'translations', 'bookmark', 'calendar', 'timeinfo', 'image_editor' );

	private $trellis_inner;
	private $trellis_note;
	private $trellis_calls = 0;

	/** Whether the object cache can be watched. */
	public static function watch( callable $note ) {
		global $wp_object_cache;
		$inner = $wp_object_cache;
		// One that notes reads stands before it already.
		if ( ! is_object( $inner ) || $inner instanceof Trellis_Cache_Reads ) {
			return false;
		}
		$watch           = new self( $inner, $note );
		$wp_object_cache = $watch;
		wp_cache_add( 'trellis', 1, 'counts' );
		wp_cache_delete( 'trellis', 'counts' );
		if ( 2 === $watch->trellis_calls ) {
			return true;
		}
		$wp_object_cache = $inner;
		return false;
	}

	private function __construct( $inner, callable $note ) {
		$this->trellis_inner = $inner;
		$this->trellis_note  = $note;
	}

	public function get( $key, $group = 'default', $force = false, &$found = null ) {
		return $this->trellis_inner->get( $key, $group, $force, $found );
	}

	public function __call( $name, $arguments ) {
		++$this->trellis_calls;
		if ( isset( self::GROUP_OF[ $name ] ) ) {
			$group = isset( $arguments[ self::GROUP_OF[ $name ] ] ) ? (string) $arguments[ self::GROUP_OF[ $name ] ] : '';
			$keys  = false === strpos( $name, 'multiple' ) ? array( $arguments[0] ) : ( 'delete_multiple' === $name ? $arguments[0] : array_keys( $arguments[0] ) );
			foreach ( $keys as $key ) {
				if ( ! self::is_known( $group, (string) $key ) ) {
					call_user_func( $this->trellis_note );
				}
			}
		} elseif ( ! in_array( $name, self::HARMLESS, true ) && 0 !== strpos( $name, 'get' ) ) {
			call_user_func( $this->trellis_note );
		}
		return $this->trellis_inner->$name( ...$arguments );
	}

	private static function is_known( $group, $key ) {
		if ( 'transient' === $group || 'site-transient' === $group ) {
			return (bool) preg_match( Trellis_Tags::KNOWN_TEMPORARY, ( 'transient' === $group ? '_transient_' : '_site_transient_' ) . $key );
		}
		return in_array( $group, self::KNOWN, true ) || in_array( $key, array( 'is_blog_installed', 'last_changed' ), true ) || '_relationships' === substr( $group, -14 );
	}

	public function &__get( $name ) {
		if ( array_key_exists( $name, get_object_vars( $this->trellis_inner ) ) ) {
			$value = &$this->trellis_inner->$name;
		} else {
			$value = $this->trellis_inner->$name;
		}
		return $value;
	}

	public function __set( $name, $value ) {
		$this->trellis_inner->$name = $value;
	}

	public function __isset( $name ) {
		return isset( $this->trellis_inner->$name );
	}

	public function __unset( $name ) {
		unset( $this->trellis_inner->$name );
	}
}

/** Puts the parts together. */
final class Trellis_Companion {
	/** @var Trellis_Log */
	private $log;
	/** @var Trellis_Changes */
	private $changes;
	private $token;
	private $gateways;
	/** Memory for the end of a request that has used up its own. */
	private $reserve;
	/** @var Trellis_Statement|null Where a gateway asks for one. */
	private $statement = null;

	public function __construct( $token, array $gateways ) {
		$this->token    = $token;
		$this->gateways = $gateways;
		$this->log      = new Trellis_Log();
		$this->changes  = new Trellis_Changes( $this->log, array( $this, 'push' ) );
	}

	public function start() {
		if ( Trellis_Poll::is_asked() ) {
			Trellis_Poll::answer( $this->log, $this->token );
		}
		$this->changes->start();
		$this->reserve = str_repeat( ' ', 1 << 16 );
		// Before plugins that end the response early or take long at the end; and again behind all of them, for what they write.
		add_action(
			'shutdown',
			function () {
				$this->finish( true );
			},
			PHP_INT_MIN
		);
		register_shutdown_function(
			function () {
				register_shutdown_function( array( $this, 'finish' ) );
			}
		);
		if ( Trellis_Tags::is_wanted() ) {
			$name = bin2hex( random_bytes( 8 ) );
			$tags = new Trellis_Tags( $this->log, $name, array( $this->changes, 'has_inserted' ) );
			$this->changes->name_request( $name, $tags );
			$tags->start();
		}
		$this->statement = Trellis_Statement::asked( $this->token, $this->changes );
		if ( defined( 'WP_CLI' ) && WP_CLI ) {
			WP_CLI::add_command( 'trellis', new Trellis_Command( $this ) );
		}
	}

	public function finish( $may_wait = false ) {
		$this->reserve = null;
		$error         = error_get_last();
		$has_died      = $error && in_array( $error['type'], array( E_ERROR, E_PARSE, E_CORE_ERROR, E_COMPILE_ERROR, E_USER_ERROR, E_RECOVERABLE_ERROR ), true );
		if ( $has_died ) {
			// The request has reached its limits; its changes must still be reported.
			@set_time_limit( 5 );
			@ini_set( 'memory_limit', '-1' );
		}
		$this->log->reset();
		$this->changes->finish( $may_wait );
		if ( $this->statement && ! $may_wait && ! $has_died ) {
			$this->statement->end();
		}
	}

	public function push( $incarnation, $site, $part, $previous, $fingerprint, $meanwhile = '__return_null' ) {
		return Trellis_Push::send(
			$this->gateways,
			$this->token,
			'{"incarnation":"' . $incarnation . '","site":' . (int) $site . ',"sequence":' . (int) $part['sequence'] . ',"check":"' . $this->log->check( (int) $part['sequence'] ) . '","previous":' . (int) $previous . ',"fingerprint":"' . $fingerprint . '","changes":' . $part['json'] . ',"overflow":' . ( $part['overflow'] ? 'true' : 'false' ) . ( isset( $part['request'] ) ? ',"request":"' . $part['request'] . '"' : '' ) . '}',
			$meanwhile
		);
	}

	/** Reports that everything has changed. */
	public function drop() {
		$birth    = $this->log->birth();
		$json     = '[{"kind":"all","reason":"requested"}]';
		$sequence = $this->log->append( 0, $json );
		return $this->push( $birth ? $birth['incarnation'] : '', 0, array( 'json' => $json, 'overflow' => false, 'sequence' => $sequence ), max( 0, $sequence - 1 ), self::fingerprint() );
	}

	public function log() {
		return $this->log;
	}

	public function gateways() {
		return $this->gateways;
	}

	/** Of the versions of WordPress, of its active plugins and of its theme: a deployment changes answers and writes nothing. */
	public static function fingerprint() {
		static $print = null;
		if ( null === $print ) {
			$files = array();
			foreach ( wp_get_mu_plugins() as $file ) {
				$files[] = $file;
			}
			// Plugins and theme of a blog are options, whose change is reported; in a network each blog has its own.
			$plugins = is_multisite() ? array_keys( (array) get_site_option( 'active_sitewide_plugins', array() ) ) : (array) get_option( 'active_plugins', array() );
			foreach ( $plugins as $plugin ) {
				$files[] = WP_PLUGIN_DIR . '/' . $plugin;
			}
			foreach ( is_multisite() ? array() : array_unique( array( get_option( 'stylesheet' ), get_option( 'template' ) ) ) as $theme ) {
				$files[] = WP_CONTENT_DIR . "/themes/$theme/style.css";
			}
			// Another companion may name other things in responses and in changes, whatever its version.
			$text = $GLOBALS['wp_version'] . ' ' . $GLOBALS['wp_db_version'] . ' ' . filesize( __FILE__ );
			foreach ( $files as $file ) {
				$head  = is_readable( $file ) ? (string) file_get_contents( $file, false, null, 0, 8192 ) : '';
				$text .= "\n" . basename( $file ) . ' ' . ( preg_match( '/^[ \t\/*#@]*Version:(.*)$/mi', $head, $part ) ? trim( $part[1] ) : '' );
			}
			$print = sha1( $text );
		}
		return $print;
	}
}

/** `wp trellis`. */
final class Trellis_Command {
	/** @var Trellis_Companion */
	private $companion;

	public function __construct( Trellis_Companion $companion ) {
		$this->companion = $companion;
	}

	/** Shows the log of changes: its table, its last rows, requests that write at the moment. */
	public function status() {
		$log   = $this->companion->log();
		$birth = $log->birth();
		$all   = $birth ? $log->rows_after( 0, 1000000, PHP_INT_MAX ) : null;
		if ( ! $all ) {
			WP_CLI::error( 'The table ' . $log->table() . ' cannot be read or made. May the database user create tables?' );
		}
		$open = array_filter(
			$all['rows'],
			function ( $row ) {
				return 'open' === $row['state'];
			}
		);
		WP_CLI::line( 'gateways:    ' . ( implode( ', ', $this->companion->gateways() ) ?: 'none, they poll' ) );
		WP_CLI::line( 'table:       ' . $log->table() . ', rows ' . $all['first'] . ' to ' . $all['last'] );
		WP_CLI::line( 'incarnation: ' . $birth['incarnation'] );
		WP_CLI::line( 'open:        ' . count( $open ) );
		foreach ( array_slice( $all['rows'], -10 ) as $row ) {
			WP_CLI::line( $row['sequence'] . ' ' . $row['state'] . ' ' . substr( json_encode( isset( $row['changes'] ) ? $row['changes'] : array() ), 0, 200 ) );
		}
	}

	/** Makes all gateways drop everything that they hold of this site. */
	public function drop() {
		$this->show( $this->companion->drop() );
	}

	/** Sends an empty push to each gateway and shows the answer. */
	public function test() {
		$birth = $this->companion->log()->birth();
		$this->show( $this->companion->push( $birth ? $birth['incarnation'] : '', 0, array( 'json' => '[]', 'overflow' => false, 'sequence' => $birth ? $birth['sequence'] : 0 ), 0, Trellis_Companion::fingerprint() ) );
	}

	private function show( $outcomes ) {
		if ( ! $outcomes ) {
			WP_CLI::warning( 'TRELLIS_GATEWAYS names no gateway: each gateway finds changes when it polls.' );
		}
		$failed = 0;
		foreach ( $outcomes as $gateway => $outcome ) {
			WP_CLI::line( "$gateway: $outcome" );
			$failed += 200 === $outcome ? 0 : 1;
		}
		$failed ? WP_CLI::error( 'Not every gateway has accepted it.' ) : WP_CLI::success( 'Done.' );
	}
}

( function () {
	$token = trellis_setting( 'TRELLIS_TOKEN' );
	if ( '' === $token ) {
		return;
	}
	if ( strlen( $token ) < 16 ) {
		error_log( 'Trellis: TRELLIS_TOKEN has less than 16 characters; changes are not reported.' );
		return;
	}
	( new Trellis_Companion( $token, array_filter( array_map( 'trim', explode( ',', trellis_setting( 'TRELLIS_GATEWAYS' ) ) ) ) ) )->start();
} )();
