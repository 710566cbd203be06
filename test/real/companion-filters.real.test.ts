import { readFile, rm, writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { rowsOf } from '../support/breadth.ts'
import { describeWith } from '../support/requirements.ts'
import { reads, showingContents } from './companion/reads.ts'
import { type CompanionSite, startCompanionSite } from './companion/site.ts'

/** Writes down which filters WordPress applies while it makes a response; `?hooked=` hooks a callback to one, which may return anything. */
const probe = `<?php
add_filter( 'rest_pre_dispatch', function ( $result ) {
	$GLOBALS['applied_before'] = isset( $GLOBALS['applied_before'] ) ? $GLOBALS['applied_before'] : $GLOBALS['wp_filters'];
	return $result;
}, 0 );
if ( isset( $_GET['applied'] ) ) {
	register_shutdown_function( function () {
		global $wp_filters, $applied_before;
		$applied = array_filter( array_keys( $wp_filters ), function ( $name ) use ( $wp_filters, $applied_before ) {
			return $wp_filters[ $name ] > ( isset( $applied_before[ $name ] ) ? $applied_before[ $name ] : 0 );
		} );
		file_put_contents( WP_CONTENT_DIR . '/applied.json', json_encode( array_values( $applied ) ) );
	} );
}
isset( $_GET['controlled'] ) && add_filter( 'register_post_type_args', function ( $args, $type ) {
	if ( ! class_exists( 'Acme_Posts' ) ) {
		class Acme_Posts extends WP_REST_Posts_Controller {
			public function prepare_item_for_response( $item, $request ) {
				$response       = parent::prepare_item_for_response( $item, $request );
				$response->data['by'] = get_userdata( $item->post_author )->display_name;
				return $response;
			}
		}
	}
	return 'post' === $type ? array( 'rest_controller_class' => 'Acme_Posts' ) + $args : $args;
}, 10, 2 );
isset( $_GET['hooked'] ) && add_filter( $_GET['hooked'], function ( $given ) {
	$GLOBALS['acme_name'] = strlen( md5( 'acme' ) );
	return $given;
} );`

/** Prepares meta by a callback where `?prepared=` is. */
const preparing = `<?php
isset( $_GET['prepared'] ) && add_action( 'init', function () {
	register_post_meta( 'post', 'shown', array( 'type' => 'string', 'single' => true, 'show_in_rest' => array( 'prepare_callback' => function () {
		return companion_shown();
	} ) ) );
} );`

/** Makes posts of contents and of the addresses whose embeds they have kept, with what another server once sent. */
const makePosts = `
foreach ( array(
	array( 'https://videos.example/1', 'https://videos.example/1', '<p>A video.</p>' ),
	array( 'https://www.youtube.com/embed/1', 'https://youtube.com/watch?v=1', '<p>Another video.</p>' ),
	array( 'https://nothing.example/1', 'https://nothing.example/1', '{{unknown}}' ),
	array( 'https://files.example/1.mp3', '', '' ),
	array( 'https://files.example/1.mp4', '', '' ),
	array( 'More. <!--more--> :-)', '', '' ),
) as list( $content, $address, $embed ) ) {
	$id  = wp_insert_post( array( 'post_title' => 'Embeds', 'post_status' => 'publish', 'post_content' => $content ) );
	$key = md5( $address . serialize( wp_embed_defaults( $address ) ) );
	update_post_meta( $id, "_oembed_$key", $embed );
	update_post_meta( $id, "_oembed_time_$key", time() );
	$ids[] = $id;
}
echo json_encode( $ids );`

/** Filters that these reads apply and whose callbacks add nothing that a description leaves out, by what tells of them; what is registered without a filter is tested below. */
const others: readonly (readonly [reason: string, names: RegExp])[] = [
  [
    'an option is named when it is read',
    /^(?:pre_|default_)?(?:site_)?option(?:_|$)|^pre_wp_load_alloptions$|^alloptions$|^wp_autoload_values|^theme_mod_|(?:^|_)transient_/,
  ],
  [
    'the statement tells what is looked for',
    /^(?:query|split_the_query|get_meta_sql|list_terms_exclusions|wp_search_stopwords|wp_query_search_exclusion_prefix|wp_allow_query_attachment_by_filename|url_to_postid|oembed_request_post_id)$|^(?:posts|comments|terms|users)_(?:pre_query|clauses|distinct|fields|groupby|join|orderby|request|search|where)|^post_(?:limits|search_columns)|^found_|^rest_.*_query$|^rest_query_var-/,
  ],
  [
    'orders of terms are looked at by themselves',
    /^get_terms|^get_(?:object|the)_terms$|^wp_get_object_terms/,
  ],
  ['the number of posts of an author is asked for by itself', /^get_usernumposts$/],
  ['each taxonomy has one, which is taken from their list', /^get_(?:category|post_tag)$/],
  [
    'they say whether it may be seen, and what it has',
    /_cap$|_viewable$|^has_post_thumbnail$|^rest_allow_anonymous_comments$|^current_theme_supports-|_revisions_to_keep$|^get_avatar_comment_types$|^wp_is_application_passwords_available$/,
  ],
  [
    'they name no object: types of files, the theme, where texts are read from',
    /^admin_url$|^(?:upload_mimes|mime_types|wp_should_replace_insecure_home_url)$|^(?:stylesheet|template|theme)(?:_directory|_root|_file_path)?$|_locale|textdomain|translation|^wp_theme_json_data_/,
  ],
  [
    'they clean a text, or say how',
    /^sanitize_|^(?:attribute|esc|js)_(?:escape|html)$|^clean_url$|^pre_term_name$|^(?:run_|no_)?(?:wp)?texturize|^no_texturize_|^wp_kses_|^wp_(?:sprintf|parse_str)|^strip_shortcodes_tagnames$/,
  ],
  [
    'they say what blocks are; blocks that show more than their content, and shortcodes, are seen when they are rendered',
    /^block_(?:parser_class|type_)|^get_block_type_|^block_default_classname$|^excerpt_allowed_|^interactivity_process_directives$|^pre_do_shortcode_tag$/,
  ],
  [
    'how large an image is, and when it loads',
    /^(?:editor_max_image_size|max_srcset_image_width|wp_constrain_dimensions)$|_lazy_loading_|_loading_optimization_/,
  ],
  [
    'what scripts of a page are told, which no content shows; the lifetime of a nonce bounds that of the response',
    /^salt$|^nonce_(?:life|user_logged_out)$|^(?:heartbeat|mejs)_settings$/,
  ],
  ['what the object cache keeps is named by its id', /^update_(?:post|term|comment|user)_metadata_cache$/],
  [
    'they say which response is asked for, or are none of an item',
    /^rest_(?:pre_dispatch|index|endpoints|endpoints_description|route_data|request_from_url|request_parameter_order|send_nocache_headers|url_prefix|json_encode_options|avatar_sizes|.*_collection_params)$|^status_header$|^http_origin$/,
  ],
]

describeWith('php', 'filters that WordPress applies while it makes a response', () => {
  let site: CompanionSite
  let adding: RegExp
  let embeds: readonly string[]

  const read = async (path: string): Promise<string> => {
    const response = await fetch(`${site.origin}/index.php/wp-json${path}`)
    await response.arrayBuffer()
    return response.headers.get('trellis-tags') ?? ''
  }
  const applied = async (path: string): Promise<readonly string[]> => {
    const file = `${site.site}/wp-content/applied.json`
    await rm(file, { force: true })
    await read(`${path}${path.includes('?') ? '&' : '?'}applied=1`)
    let names: readonly string[] = []
    const hasNames = async (): Promise<boolean> => {
      names = JSON.parse(await readFile(file, 'utf8').catch(() => '[]')) as readonly string[]
      return names.length > 0
    }
    // PHP writes the file after it has sent the response.
    await expect.poll(hasNames, { timeout: 30_000 }).toBe(true)
    return names
  }

  beforeAll(async () => {
    site = await startCompanionSite({}, ['companion-shows'])
    await writeFile(`${site.site}/wp-content/mu-plugins/zz-applied.php`, probe)
    await writeFile(`${site.site}/wp-content/mu-plugins/zz-preparing.php`, preparing)
    for (const [id, content] of Object.entries(showingContents)) {
      await (await site.rest('PUT', `/wp/v2/posts/${id}`, { content })).text()
    }
    const made = await site.php(makePosts)
    embeds = (JSON.parse(made.output) as readonly number[]).map((id) => `/wp/v2/posts/${id}`)
    const { output } = await site.php(
      'echo json_encode( array( Trellis_Tags::ADDING, Trellis_Tags::OF_SITE ) );',
    )
    const patterns = JSON.parse(output) as readonly string[]
    adding = new RegExp(patterns.map((one) => one.replace(/^\/|\/D?$/g, '')).join('|'))
  })
  afterAll(() => site?.stop())

  test('each is one by which plugins add to the response, or is known to add nothing that its description leaves out', {
    timeout: 300_000,
  }, async () => {
    const names = new Set<string>()
    const paths = [...reads, ...embeds, '/wp/v2/posts/10?_envelope=1']
    for (const path of paths) for (const name of await applied(path)) names.add(name)
    expect(names.size).toBeGreaterThan(200)
    const unknown = [...names].filter(
      (name) => !adding.test(name) && !others.some(([, known]) => known.test(name)),
    )
    expect(unknown).toEqual([])
  })

  test.each(['/wp/v2/posts/10', '/wp/v2/media/121', '/wp/v2/comments/2', '/wp/v2/users/1'])(
    'a response names all it may show where a plugin hooks to one of those that add to it: %s',
    { timeout: 300_000 },
    async (path) => {
      expect(await read(path)).toContain(';plain;')
      const names = (await applied(path)).filter(
        (name) => adding.test(name) && name !== 'rest_pre_echo_response',
      )
      expect(names.length).toBeGreaterThan(5)
      for (const name of rowsOf(names, 6))
        expect(await read(`${path}?hooked=${name}`), name).not.toContain(';plain;')
    },
  )

  test('what a plugin registers by a name, and hooks to nothing, adds to the responses that show it', async () => {
    for (const id of Object.keys(showingContents)) {
      expect(await read(`/wp/v2/posts/${id}`), showingContents[Number(id)]).not.toContain(';plain;')
    }
    const path = '/wp/v2/posts/10'
    expect(await read(path)).toContain(';plain;')
    expect(await read(`${path}?prepared=1`)).not.toContain(';plain;')
  })

  test('a class of a plugin in the place of the one of WordPress may show anything of what it reads', async () => {
    const tags = await read('/wp/v2/posts/10?controlled=1')
    expect(tags).toContain(';complete;')
    expect(tags).toMatch(/;u=\d/)
    for (const flag of [';plain;', ';uncounted;', ';slugs;']) expect(tags).not.toContain(flag)
  })

  test('an embed of WordPress adds nothing, unless a plugin hooks to it or to the whole of the response', async () => {
    const [video = '', player = ''] = embeds
    const plain = [video, player, '/wp/v2/posts/10?_envelope=1']
    for (const path of plain) expect(await read(path), path).toContain(';plain;')
    const hooked = [
      `${video}?hooked=embed_oembed_html`,
      `${video}?hooked=oembed_ttl`,
      `${player}?hooked=embed_handler_html`,
      `${player}?hooked=wp_embed_handler_youtube`,
      '/wp/v2/posts/10?_envelope=1&hooked=rest_envelope_response',
    ]
    for (const path of hooked) expect(await read(path), path).not.toContain(';plain;')
  })
})
