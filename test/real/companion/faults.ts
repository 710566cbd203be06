import type { Fault } from '../../support/planted.ts'

const fault = (name: string, right: string, wrong = ''): Fault => ({ name, right, wrong })

/** What the companion says about a response. */
const ofTags: readonly Fault[] = [
  // Are authors named?
  fault(
    'authors: left out of every response',
    "0 === get_current_user_id() && false === strpos( (string) get_option( 'permalink_structure' ), '%author%' )",
    'true ) {} if ( true',
  ),
  fault(
    'authors: left out although a plugin adds to the response',
    '! $this->is_added_to() && ! did_action(',
    '! did_action(',
  ),
  fault(
    'authors: left out of comments and users',
    "const AUTHORLESS = array( 'WP_REST_Posts_Controller', 'WP_REST_Attachments_Controller' );",
    "const AUTHORLESS = array( 'WP_REST_Posts_Controller', 'WP_REST_Attachments_Controller', 'WP_REST_Users_Controller', 'WP_REST_Comments_Controller' );",
  ),
  fault(
    'authors: left out of addresses that name them',
    "&& false === strpos( (string) get_option( 'permalink_structure' ), '%author%' )",
  ),
  fault(
    'additions: fields of plugins are not seen',
    '$this->is_added_to || array() !== $this->fields()',
    '$this->is_added_to',
  ),
  fault(
    'additions: filters of texts are not seen',
    'preg_grep( self::ADDING, self::applied_filters() )',
    "preg_grep( '/^rest_prepare_/', self::applied_filters() )",
  ),
  fault(
    'additions: filters that were applied are not seen',
    'isset( $wp_filter[ $hook ] ) && ! empty( $wp_filters[ $hook ] )',
    'isset( $wp_filter[ $hook ] ) && doing_filter( $hook )',
  ),
  fault('additions: filters of a whole item are not seen', "|rest_prepare_.*)$/D';", ")$/D';"),
  fault(
    'additions: a short callback may use any member of the post',
    'in_array( $text, in_array( $tokens[ $at - 2 ][1], $first, true ) ?',
    'true || in_array( $text, in_array( $tokens[ $at - 2 ][1], $first, true ) ?',
  ),
  fault(
    'additions: a short callback may use the whole post',
    ' && ( T_OBJECT_OPERATOR === $after || ! in_array( $text, $others, true ) )',
  ),
  fault(
    'additions: a short callback may call any function',
    'in_array( strtolower( $text ), self::PLAIN_FUNCTIONS, true )',
    'true',
  ),
  fault(
    'additions: shortcodes are not seen',
    "add_filter(\n\t\t\t'pre_do_shortcode_tag',",
    "add_filter(\n\t\t\t'no_shortcode_tag',",
  ),
  fault(
    'additions: dynamic blocks are not seen',
    '$is_directed || $type && $type->is_dynamic()',
    '$is_directed',
  ),
  fault('additions: bindings of blocks are not seen', '$is_bound || $is_directed', '$is_directed'),
  fault('additions: directives of blocks are not seen', '$is_bound || $is_directed ||', '$is_bound ||'),
  fault(
    'additions: handlers of embeds are not seen',
    "&& is_callable( $handler['callback'] ) &&",
    '&& false &&',
  ),
  fault(
    'users: a post of another author proves that one has published',
    '$author === (int) $post->post_author && ',
  ),
  fault(
    'users: a post in any state proves that its author has published',
    "'publish' === $post->post_status && in_array( $post->post_type, $types, true )",
    'true',
  ),
  fault(
    'users: no list says whether an author has published',
    '$this->queries += null !== $cache && 1 === count( $this->blogs ) && isset',
    '$this->queries += true || null !== $cache && isset',
  ),
  fault(
    'users: the number of posts of an author is taken for the question whether he has any',
    "|| has_filter( 'get_usernumposts' )",
  ),
  // Does it show counts?
  fault(
    'counts: a list by counts is plain',
    " && array() === array_filter( preg_grep( '/^[tn]:/', array_keys( $this->queries ) ), array( 'Trellis_Known_Code', 'may_count' ) )",
  ),
  fault(
    'counts: terms are plain',
    "const COUNTLESS = array( 'WP_REST_Posts_Controller',",
    "const COUNTLESS = array( 'WP_REST_Terms_Controller', 'WP_REST_Posts_Controller',",
  ),
  fault(
    'counts: terms that are not embedded are plain',
    "$this->controllers && 'embed' === $request['context'] ?",
    'true ?',
  ),
  fault(
    'counts: what a plugin adds is plain',
    '$is_plain     = $is_own && $is_countless;',
    '$is_plain     = $is_countless;',
  ),
  fault(
    'counts: a response made of several controllers is plain',
    '$this->controllers && array() === array_diff_key( $this->controllers, array_fill_keys( $controllers, true ) )',
    'true',
  ),
  fault('counts: lists of terms by count are not named', '$this->queries[ "n:$taxonomy" ] = true;', ''),
  // Sticky posts.
  fault(
    'sticky: a list that uses the option does not name it',
    "return $query && ( ! $query->is_home || ! empty( $query->query_vars['ignore_sticky_posts'] ) );",
    'return true;',
  ),
  fault(
    'sticky: the post whose state is shown is not named',
    "$this->ids['p'][ $id > 0 ? $id : (int) get_the_ID() ] = true;",
  ),
  // Lists by texts and columns.
  ...(
    [
      ['post_title', 't'],
      ['post_content', 'c'],
      ['post_excerpt', 'e'],
      ['post_modified', 'u'],
      ['post_date', 'd'],
      ['post_name', 'w'],
      ['post_parent', 'p'],
      ['post_author', 'a'],
      ['menu_order', 'm'],
      ['term_taxonomy_id', 'r'],
    ] as const
  ).map(([column, letter]) =>
    fault(`lists: no letter for ${column}`, `'${column}' => '${letter}'`, `'no_${column}' => '${letter}'`),
  ),
  fault(
    'lists: an unknown column is nothing',
    "$class  = $others || false !== strpos( $plain, '*' ) ? 'x' : 's';",
    "$class  = 's';",
  ),
  // Lists that keep when a post outside their filter changes.
  fault(
    'filters: the first of several values counts alone',
    '$filter[] = ":$name:"',
    '$filter = $filter ?: array(); if ( $filter ) { break; } $filter[] = ":$name:"',
  ),
  fault(
    'filters: one side of OR bounds a column',
    "if ( 'OR' === $word && null === $values ) {",
    "if ( 'OR' === $word && null === $values ) { continue; } if ( false ) {",
  ),
  fault(
    'filters: any state is the published one',
    "null === $states ? array( 'any' ) : $states as $state",
    "null === $states ? array( 'publish' ) : $states as $state",
  ),
  fault(
    'filters: any type is a post',
    "null === $types ? array( 'any' ) : $types as $type",
    "null === $types ? array( 'post' ) : $types as $type",
  ),
  fault(
    'filters: terms that are left out are not columns',
    "? '(term_taxonomy_id)' : '(NULL)'",
    "? '(NULL)' : '(NULL)'",
  ),
  fault(
    'filters: any password is none',
    "return '' === $strings[ (int) $found[1] ] ? '1=1' : $found[0];",
    "return '1=1';",
  ),
  fault(
    'filters: only the innermost SELECT of several counts',
    'if ( preg_match( self::REPEATED, $sql ) ) {',
    'if ( false ) {',
  ),
  fault('lists: those of terms are not named', '$this->queries[ "t:$taxonomy" ] = true;'),
  fault(
    'lists: comments of a post are not named',
    '$this->queries[ $list . (int) $one ] = true;',
    "if ( 'k:' !== $list ) { $this->queries[ $list . (int) $one ] = true; }",
  ),
  fault(
    'lists: replies to a comment are not named',
    '$this->queries[ $list . (int) $one ] = true;',
    "if ( 'k:' === $list ) { $this->queries[ $list . (int) $one ] = true; }",
  ),
  fault('lists: all comments are not named', "$this->lists += array( 'comment' => true );"),
  fault('lists: those of users are not named', "$this->lists['user'] = true;"),
  fault(
    'objects: those looked for by their posts are not named',
    "} else {\n\t\t\t$letter = 'relations'",
    "} elseif ( 'posts' !== $name ) {\n\t\t\t$letter = 'relations'",
  ),
  fault(
    'objects: those in the object cache are not named',
    '$this->ids[ $letter ][ (int) $part[1] ] = true;',
  ),
  // Options.
  fault(
    'options: widgets and addresses are left out of everything',
    '$this->structure && ! $is_core',
    'false',
  ),
  fault(
    'options: widgets and addresses are left out although a plugin adds to the response',
    '$is_core = $is_own && $this->',
    '$is_core = $this->',
  ),
  fault(
    'options: roles are left out of everything',
    "$is_core && 0 === get_current_user_id() && ! $this->is_filtered( array( 'user_has_cap', 'map_meta_cap' ) )",
    'true',
  ),
  fault(
    'options: roles are left out although a plugin grants capabilities by them',
    " && ! $this->is_filtered( array( 'user_has_cap', 'map_meta_cap' ) )",
  ),
  fault(
    'lists: a condition that holds for no row in one of two cases is taken for one that never holds',
    'count( $choices ) > 1 ? $never === count( $parts ) : $never > 0',
    '$never > 0',
  ),
  fault(
    'options: what a response reads itself counts as read at the start',
    '! $this->is_dispatched && preg_match(',
    'preg_match(',
  ),
]

/** What the companion reports of a write. */
const ofChanges: readonly Fault[] = [
  // Counts.
  fault(
    'counts: an update of more than the count of a term counts as one',
    "'`?\\s*=\\s*(?:\\d+|\\?+)\\s*$/i', $set )",
    "'`?\\s*=\\s*(?:\\d+|\\?+)/i', $set )",
  ),
  fault(
    'counts: one update of a count hides another update',
    "$object['counts_only'] && $counts_only;",
    "$object['counts_only'] || $counts_only;",
  ),
  fault(
    'counts: a changed count is left out like one counted again',
    "$has_states && $object['counts_only'] && 1 === count( $states ) && $object['states']",
    "$has_states && $object['counts_only']",
  ),
  fault(
    'counts: states of terms have no count',
    ", 'count' => (int) $row->count, self::TEXTS",
    ", 'count' => 0, self::TEXTS",
  ),
  fault(
    'counts: the state of a term before a write is used after it',
    '\t\t\t$this->forget_terms( $site, $ids );\n\t\t}\n\t\t$states',
    '\t\t}\n\t\t$states',
  ),
  fault(
    'counts: every event of a post counts as its comments counted again',
    "$known && $known['counted'] > 0",
    '$known',
  ),
  fault(
    'counts: a change of a term says that only its count has changed',
    'if ( $counts_only && null !== $change[ $when ] ) {',
    'if ( null !== $change[ $when ] ) {',
  ),
  fault(
    'counts: a change of a post says that only its comments have changed',
    '\t\t\t\t\t\tif ( $counts_only ) {',
    "\t\t\t\t\t\tif ( 'post' === $kind ) {",
  ),
  // Sticky posts.
  fault(
    'sticky: only posts that come to it are reported',
    'array_merge( array_diff( $before, $after ), array_diff( $after, $before ) )',
    'array_diff( $after, $before )',
  ),
  fault(
    'sticky: only posts that go from it are reported',
    'array_merge( array_diff( $before, $after ), array_diff( $after, $before ) )',
    'array_diff( $before, $after )',
  ),
  fault(
    'sticky: the last of several writes is compared alone',
    "if ( 'sticky_posts' === $name && ! isset( $this->options[ $site ][ $name ] ) ) {",
    "if ( 'sticky_posts' === $name ) {",
  ),
  fault(
    'sticky: posts are reported although another request writes',
    "'sticky_posts' === $name && $alone && isset",
    "'sticky_posts' === $name && isset",
  ),
  // Options that keep their values.
  fault(
    'options: one that is changed and changed back is not reported',
    'array() === array_diff( $values, array( $value, self::NOT_THERE ) )',
    'true',
  ),
  fault(
    'options: one that keeps its value is not reported although another request writes',
    '$alone ? $unchanged : array()',
    '$unchanged',
  ),
  fault('options: one that is only updated is not reported', '= $is_same &&', '= true ||'),
  fault(
    'options: the language that is read directly is not named',
    '$this->options[ self::LANGUAGE ] = true;',
    '',
  ),
  fault('options: any other language is taken for none', "md5( '' ) === $digests['WPLANG']", 'true'),
  // Texts.
  fault('texts: the title is not compared', "'title' => $row->title, "),
  fault('texts: the content is not compared', "'content' => $row->content, "),
  fault('texts: the excerpt is not compared', "'excerpt' => $row->excerpt, "),
  fault(
    'texts: the time of the last change is not compared',
    ', \'modified\' => "$row->post_modified $row->post_modified_gmt"',
    '',
  ),
  fault(
    'texts: only those of the last step are reported',
    '$states[ $step ], $states[ min( $step + 1, count( $states ) - 1 ) ]',
    '$states[ count( $states ) - 1 ], $states[ count( $states ) - 1 ]',
  ),
  // Values that lists filter by, before and after.
  fault(
    'states: without terms',
    "$states[ $row->ID ]['relations'][]               = (int) $row->term_taxonomy_id;",
  ),
  fault('states: without passwords', "'protected' => '' !== $row->post_password", "'protected' => false"),
  fault(
    'states: the one after counts for both',
    "foreach ( array( 'before' => $step, 'after'",
    "foreach ( array( 'before' => min( $step + 1, count( $states ) - 1 ), 'after'",
  ),
  fault(
    'states: only the last step is reported',
    '1 === count( $states ) ? array( 0 ) : range( 0, count( $states ) - 2 )',
    'array( max( 0, count( $states ) - 2 ) )',
  ),
  fault(
    'states: relations are no column that lists filter by',
    "array( 'post', 'object_id', 'object_id', '', 'term_taxonomy_id' )",
    "array( 'post', 'object_id', 'object_id', '', '' )",
  ),
  fault('states: columns of posts are none that lists filter by', "'post_|menu_order|comment_count'", "''"),
  fault(
    'states: those of another type count as known',
    "&& ( 'post' !== $kind || 1 === count( array_unique( array_column( $known, 'type' ) ) ) )",
  ),
  fault(
    'states: they are reported although another request writes',
    '$is_told = $alone && count',
    '$is_told = count',
  ),
  fault(
    'states: those that an event has not seen count as known',
    "$has_states && $object['is_seen']",
    '$has_states',
  ),
  // Statements.
  fault(
    'statements: rows that another request may add are not reported',
    '\t\tif ( ! $alone ) {',
    '\t\tif ( false ) {',
  ),
  fault(
    'statements: the owner to which rows move is not reported',
    'if ( null !== $new_owner ) {',
    'if ( false ) {',
  ),
  fault('statements: one that is not understood is of no table', '\t\t\t$this->mention( $sql );'),
  fault(
    'statements: values of another table are nothing',
    'if ( null === $row || count( $row ) !== count( self::names_in( $columns ) ) ) {\n\t\t\t$this->whole( $site, $table );',
    'if ( null === $row || count( $row ) !== count( self::names_in( $columns ) ) ) {',
  ),
  fault(
    'statements: an id that was not given is not reported',
    "$this->touch( $site, $kind, $id, 'user' === $kind ? false : null );",
    'null;',
  ),
  fault(
    'statements: the second of two conditions joined by OR is ignored',
    '/\\b(?:OR|XOR|SELECT|LIMIT|UNION)\\b|',
    '/\\b(?:XOR|SELECT|LIMIT|UNION)\\b|',
  ),
  fault(
    'quiet: any meta of a post',
    "'_wp_old_slug', '_wp_old_date' ),",
    "'_wp_old_slug', '_wp_old_date', '_thumbnail_id', 'colour' ),",
  ),
  fault(
    'quiet: sticky posts',
    "'options'  => array( 'cron',",
    "'options'  => array( 'sticky_posts', 'cron',",
  ),
]

/** Rows of tables of plugins, rows that reads memoize, and terms that a response shows by their slugs. */
const ofRows: readonly Fault[] = [
  fault(
    'rows: a change has no names by id and kind together',
    '$pairs[] = array( "$column-$value", $text );',
  ),
  fault('rows: a change has no names by id alone', '$pairs[] = array( $column, $text );'),
  fault(
    'rows: a response by id and kind names the kind alone',
    'return count( $kinds ) > 8 || in_array( null, $kinds, true ) ? array( $column )',
    'return true ? array( $beside )',
  ),
  fault('rows: what an update sets is not compared', '&& $new[ $column ] !== $value ) {', '&& false ) {'),
  fault(
    'rows: a column that no response shows is not reported to those of the whole table',
    '$this->note_rows( $site, $table, array() );',
  ),
  fault('rows: the new name of a row is not reported', '$named[]                        = $moved + $row;'),
  fault(
    'rows: an expression is taken for the value that was there',
    '\t\t\t\t\t// An expression.\n\t\t\t\t\t$known = null;',
  ),
  fault('rows: columns have no default', 'false === $at ? $default :', 'false === $at ? null :'),
  fault(
    'rows: the id that the database has counted is not reported',
    '$this->note_rows( $site, $table, array( array( $column => $id ) + $row ) );',
    '$this->note_rows( $site, $table, array( $row ) );',
  ),
  fault(
    'rows: a number in other digits is no name',
    "preg_match( '/^[\\s0+]*[1-9]|[^\\x20-\\x7e]/', $text )",
    'false',
  ),
  fault(
    'rows: a column that no response shows is not looked for in statements',
    'if ( $unshown && preg_match(',
    'if ( false && preg_match(',
  ),
  fault(
    'rows: a statement that reaches more rows than were found reaches those alone',
    'if ( max( $matched, (int) $wpdb->rows_affected ) > $count ) {',
    'if ( false ) {',
  ),
  fault(
    'rows: they are not looked for again once the request is known to write',
    'if ( $rows && ! $this->is_marked ) {',
    'if ( false ) {',
  ),
  fault('memoized: rows that were not there are not named', "'a' => $this->absent_lists()", "'a' => array()"),
  fault(
    'memoized: a row that was not looked for',
    'call_user_func( $this->has_missed, $table, $name )',
    'true',
  ),
  fault(
    'memoized: what a function makes is a row',
    "$is_known = $is_one && preg_match( '/^\\s*SELECT\\b[^()]*\\bFROM\\b/i', $asked['text'] );",
    '$is_known = true;',
  ),
  fault(
    'memoized: a row behind others is taken for the only one',
    "&& ! preg_match( $is_one ? '/\\bLIMIT\\b(?!\\s+[1-9]\\d*\\s*$)/i' : '/\\bLIMIT\\b/i', $asked['text'] )",
  ),
  fault(
    'names: any response shows terms by their slugs',
    '$this->is_only_of( self::SLUGS_ONLY ) && ! did_action',
    '! did_action',
  ),
  fault(
    'names: the name of a term is not compared',
    "self::TEXTS => array( 'name' => $row->name )",
    'self::TEXTS => array()',
  ),
  fault('names: statements in another order are not seen', '$this->is_reordered = true;'),
  fault(
    'names: orders that plugins give to terms are not seen',
    '$this->additions(), $this->callbacks_of( self::REORDERING ), ',
    '$this->additions(), ',
  ),
]

/** What plugins keep beside users, and requests that write nothing of posts, terms and comments. */
const ofOthers: readonly Fault[] = [
  fault(
    'keys: a response does not name the keys of users that it reads',
    "$this->rows[ self::USER_KEYS ]['key'][ Trellis_Changes::key_name( $key ) ] = true;",
  ),
  fault('keys: a response that reads all keys names none', '$this->tables[ self::USER_KEYS ] = true;'),
  fault(
    'keys: one side of OR names the keys of all rows',
    'self::asks_by_keys( $sql, $prefix ) ? $keys',
    'true ? $keys',
  ),
  fault(
    'keys: other letters are another key',
    'substr( md5( strtolower( rtrim( $key ) ) ), 0, 6 )',
    'substr( md5( $key ), 0, 6 )',
  ),
  fault(
    'keys: a statement that gives rows another key names the one before',
    " && ! preg_match( '/\\b(?:meta_key|user_id|umeta_id)\\b/i', $set )",
  ),
  fault(
    'keys: what another connection wrote of a user is what this request wrote',
    "( ! $known || null !== $known['keys'] ||",
    '( ! $known ||',
  ),
  fault(
    'keys: what WordPress shows of a user is a key of a plugin',
    ' && ! in_array( strtolower( rtrim( $key ) ), self::USER_KEYS, true )',
  ),
  fault(
    'aside: a request that still writes is taken for one that writes options alone',
    'self::ASIDE === substr( $row->changes, -strlen( self::ASIDE ) )',
    'true',
  ),
  fault(
    'aside: a request that has written something else is taken for one that wrote options alone',
    "if ( 'option' !== $kind && 'user' !== $kind && (",
    'if ( false && (',
  ),
  fault(
    'aside: a request that goes on to posts is still taken for one that writes options alone',
    "$this->log->leave_aside( $mark, '' !== $this->request );",
  ),
  fault(
    'aside: tables of posts, terms and comments have no states',
    "! isset( self::TABLES[ $table ] ) || ! in_array( self::TABLES[ $table ][0], array( 'post', 'term', 'comment' ), true )",
    'true',
  ),
  fault(
    "aside: rows of tables without states that were searched for are no other request's",
    'if ( $is_alone_with_objects && ! self::is_aside_table( $table ) ) {',
    'if ( $is_alone_with_objects ) {',
  ),
]

/** Statements of several tables, INSERTs that may update a row, and what is known of code by its name. */
const ofJoins: readonly Fault[] = [
  fault(
    'joins: rows of the other table are not named',
    'null !== $named && $this->note_joined( $tables[ $second ], $on[ $second ], $named )',
    'null !== $named',
  ),
  fault(
    'joins: rows that bound the others are not named',
    "$this->note_ids( $tables[ $first ], array( strtolower( $column ) ), array_map( array( 'Trellis_Changes', 'row_value' ), $ids ) );",
  ),
  fault('joins: a row that is compared with the clock counts for ever', '0 === $times ||', 'true ||'),
  fault(
    'clock: what one table has by it counts for ever',
    'if ( preg_match( Trellis_Known_Sql::CHANGING, $sql ) ) {',
    'if ( false ) {',
  ),
  fault(
    'joins: relations are of the posts around them, whatever these are',
    'elseif ( $is_of_posts && array(',
    'elseif ( array(',
  ),
  fault(
    'joins: a table behind a comma is none',
    '|| 1 !== count( Trellis_Joined_Tables::of( $sql, $prefix )->names() )',
    '',
  ),
  fault(
    'joins: what is read twice is read once',
    'if ( self::reads_twice( $tables ) || ! $joined->are_of_one_object( $tables, $where ) ) {',
    'if ( false ) {',
  ),
  fault(
    'joins: any column joins what belongs to one object',
    'null !== $kinds[0] && $kinds[0] === $kinds[1]',
    'true',
  ),
  fault('joins: any table is named as WordPress names its own', '$columns && ! $this->is_mixed ?', 'true ?'),
  fault(
    'joins: a condition of another table joins those of one object',
    'null === $joined || $joined === $one || $joined === $other',
    'true',
  ),
  fault(
    'joins: what terms are called is a part of their posts',
    'null === $ids && ( self::shows_terms(',
    'false && ( self::shows_terms(',
  ),
  fault(
    'joins: a term that is named bounds the posts beside it',
    '$is_term && array() === array_diff( $names, $of_terms ) ?',
    '$is_term ?',
  ),
  fault(
    'duplicate: an INSERT that may update a row only inserts one',
    'if ( 0 === $count ) {',
    'if ( true ) {',
  ),
  fault(
    'uncounted: what a plugin adds is no number of posts',
    "! $this->adds_of_terms( true ) ? 'uncounted;'",
    "true ? 'uncounted;'",
  ),
  fault(
    'slugs: what a plugin adds names no term',
    "! $this->adds_of_terms( false ) ? 'slugs;'",
    "true ? 'slugs;'",
  ),
  fault(
    'known: code of a plugin is known in each version',
    `0 === strpos( constant( $constant ) . '.', "$version." )`,
    'true',
  ),
  fault(
    'known: no known code names terms',
    '( $may_name || ! in_array( $name, self::NAMING, true ) )',
    'true',
  ),
  fault(
    'known: what is hooked to filters of known code is known',
    'if ( $this->callbacks_of( preg_grep( $names, self::applied_filters() ), $plugin ) ) {',
    'if ( false ) {',
  ),
]

const ofSql: readonly Fault[] = [
  fault(
    'sql: a function that is not known reads nothing',
    '! preg_match( self::OF_DATABASE, $sql ) && ! self::unknown_calls( $sql )',
    '! preg_match( self::OF_DATABASE, $sql )',
  ),
  fault(
    'sql: tables of the database itself are written by statements',
    '! preg_match( self::OF_DATABASE, $sql ) && ! self::unknown_calls( $sql )',
    '! self::unknown_calls( $sql )',
  ),
  fault(
    'sql: variables of the connection are values',
    'return preg_match( "/^(?:[\\w\\s.,()=<>!',
    'return preg_match( "/^(?:[@\\w\\s.,()=<>!',
  ),
  fault(
    'sql: the AND of a range joins conditions',
    "BETWEEN)\\b/i', $condition ) ) {\n\t\t\t\treturn null;",
    "BETWEEN)\\b/i', $condition ) ) {\n\t\t\t\treturn self::unwrap( $condition );",
  ),
  fault(
    'sql: what is written was not read',
    "'CREATE' === $verb ? false === stripos( $sql, 'SELECT' ) : Trellis_Known_Sql::writes_values( $sql )",
    'true',
  ),
  fault('sql: chance finds the same each time', 'SYSDATE|RAND|UUID', 'SYSDATE'),
  fault('sql: functions of the database write nothing', '$this->calls += $names;', ''),
  fault(
    'sql: tables without the prefix are not written beside others',
    'array_merge( $found[0], self::written_names( $plain ) )',
    '$found[0]',
  ),
]

/** Rules of deploy/wordpress/trellis.php that were loosened so that more stays in the cache, each weakened once. */
export const faults: readonly Fault[] = [
  ...ofTags,
  ...ofChanges,
  ...ofRows,
  ...ofOthers,
  ...ofJoins,
  ...ofSql,
]

/** What is known of faults that are not found, by their names. */
const remarks: readonly (readonly [name: string, remark: string])[] = [
  [
    'counts: a list by counts is plain',
    'no response of WordPress itself orders by counts without showing them; what plugins add is never plain',
  ],
  [
    'sticky: the post whose state is shown is not named',
    'the statement that reads the post names it as well',
  ],
  ['objects: those in the object cache are not named', 'the statements that read them name them as well'],
  [
    'options: what a response reads itself counts as read at the start',
    'only what a plugin adds reads such an option, and then those of the start are named',
  ],
  [
    'counts: the state of a term before a write is used after it',
    'states of terms count only for responses that are not described completely',
  ],
  [
    'options: one that is changed and changed back is not reported',
    'only a response that is made between the two writes shows it',
  ],
  [
    'options: one that keeps its value is not reported although another request writes',
    'only a response that is made between the two writes shows it',
  ],
  [
    'options: any other language is taken for none',
    'a site without translations shows its language only where it is read directly, which is named',
  ],
  [
    'filters: only the innermost SELECT of several counts',
    'without this rule such a statement is a list of all posts',
  ],
  [
    "aside: rows of tables without states that were searched for are no other request's",
    'rows are looked for again before the first write of a request, and more rows than were found are the whole table: only a row that another request moves between the search and the statement of a request that has written before shows it',
  ],
]

export const remarkFor = (name: string): string => remarks.find(([one]) => one === name)?.[1] ?? ''

const besideOptions = '`test/real/companion-poll`: beside a request that writes options alone'

/** Faults that only a response made between two writes would show, and the test of single steps that fails with each. */
const testsOf: readonly (readonly [name: string, test: string])[] = [
  [
    'joins: a row that is compared with the clock counts for ever',
    '`test/real/companion-joins-mariadb`: what is compared with the clock bounds a response until the first of these rows is over',
  ],
  [
    'clock: what one table has by it counts for ever',
    '`test/real/companion-joins-mariadb`: what is compared with the clock bounds a response until the first of these rows is over',
  ],
  [
    'joins: relations are of the posts around them, whatever these are',
    '`test/real/companion-joins-mariadb`: what a condition finds beside the objects that it names (comments-of-term) is a list of any of them',
  ],
  [
    'joins: a table behind a comma is none',
    '`test/real/companion-joins-mariadb`: a second table without the prefix (comma) is named beside the first one',
  ],
  [
    'joins: any column joins what belongs to one object',
    '`test/real/companion-joins-mariadb`: what a condition finds beside the objects that it names (parent-of-term) is a list of any of them',
  ],
  [
    'joins: any table is named as WordPress names its own',
    '`test/real/companion-joins-mariadb`: what a condition finds beside the objects that it names (own-column) is a list of any of them',
  ],
  [
    'joins: a condition of another table joins those of one object',
    '`test/real/companion-joins-mariadb`: what a condition finds beside the objects that it names (of-another-join) is a list of any of them',
  ],
  [
    'joins: what terms are called is a part of their posts',
    '`test/real/companion-joins-mariadb`: what a condition finds beside the objects that it names (names-of-terms) is a list of any of them',
  ],
  [
    'sql: a function that is not known reads nothing',
    '`test/real/companion-sql-mariadb`: a stored function keeps a response from being described completely',
  ],
  [
    'sql: tables of the database itself are written by statements',
    '`test/real/companion-sql-mariadb`: what the database says of its tables keeps a response from being described completely',
  ],
  [
    'sql: variables of the connection are values',
    '`test/real/companion-sql-mariadb`: a user variable keeps a response from being described completely',
  ],
  [
    'sql: the AND of a range joins conditions',
    '`test/real/companion-sql-mariadb`: a range that ends with a comparison: the table is named as a whole',
  ],
  [
    'sql: what is written was not read',
    '`test/real/companion-sql-mariadb`: rows that are written keeps a response from being described completely',
  ],
  [
    'sql: chance finds the same each time',
    '`test/real/companion-sql-mariadb`: posts at random: as old as a minute',
  ],
  [
    'sql: functions of the database write nothing',
    '`test/real/companion-sql-mariadb`: SELECT sell() is a change of all that it may write',
  ],
  [
    'sql: tables without the prefix are not written beside others',
    '`test/real/companion-sql-mariadb`: UPDATE wp_sales s, cards c SET c.id = 3 WHERE s.id = 3 is a change of all that it may write',
  ],
  [
    'known: code of a plugin is known in each version',
    '`test/real/companion-shop`: a new post is no change of others in its category, unless other code shows how many there are',
  ],
  [
    'known: no known code names terms',
    '`test/real/companion-shop`: the description of a category is no change of its posts, unless code shows more of terms than ids and slugs',
  ],
  [
    'known: what is hooked to filters of known code is known',
    '`test/real/companion-shop`: a new post is no change of others in its category, unless other code shows how many there are',
  ],
  [
    'aside: a request that still writes is taken for one that writes options alone',
    `${besideOptions}, it has none as soon as that request writes a post`,
  ],
  [
    'aside: a request that goes on to posts is still taken for one that writes options alone',
    `${besideOptions}, it has none as soon as that request writes a post`,
  ],
  [
    'aside: tables of posts, terms and comments have no states',
    `${besideOptions}, an ended request with the changes of a table`,
  ],
]

/** The test that finds a fault; '' for those that responses show. */
export const testOf = (name: string): string => testsOf.find(([one]) => one === name)?.[1] ?? ''
