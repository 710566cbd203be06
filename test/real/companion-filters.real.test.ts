import { readFile, rm, writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeWith } from '../support/requirements.ts'
import { reads } from './companion/reads.ts'
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
isset( $_GET['hooked'] ) && add_filter( $_GET['hooked'], function ( $given ) {
	$GLOBALS['acme_name'] = strlen( md5( 'acme' ) );
	return $given;
} );`

/** Filters whose callbacks add nothing that a description leaves out, by what tells of them. */
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
  [
    'addresses of posts are looked at by themselves',
    /^(?:pre_post|post|_get_page|page|attachment|post_type)_link$/,
  ],
  ['the number of posts of an author is asked for by itself', /^get_usernumposts$/],
  ['each taxonomy has one, which is taken from their list', /^get_(?:category|post_tag)$/],
  [
    'they say whether it may be seen, and what it has',
    /_cap$|_viewable$|^has_post_thumbnail$|^rest_allow_anonymous_comments$|^current_theme_supports-|_revisions_to_keep$|^get_avatar_comment_types$|^wp_is_application_passwords_available$/,
  ],
  [
    'they name no object: addresses of the site, its files and its languages',
    /^(?:home|site|admin|includes|content|plugins|rest|get_site_icon)_url$|^(?:upload_dir|upload_mimes|mime_types|set_url_scheme|user_trailingslashit|wp_should_replace_insecure_home_url)$|^(?:stylesheet|template|theme)(?:_directory|_root|_file_path)?$|gettext|^ngettext|locale|textdomain|translation|^pre_wp_theme_name$|^wp_theme_json_data_/,
  ],
  [
    'they clean a text, or say how',
    /^sanitize_|^(?:attribute|esc|js)_(?:escape|html)$|^clean_url$|^pre_term_name$|^(?:run_|no_)?(?:wp)?texturize|^no_texturize_|^wp_kses_|^wp_(?:sprintf|parse_str)|^strip_shortcodes_tagnames$/,
  ],
  [
    'blocks that are rendered for it are seen',
    /^block_(?:parser_class|bindings_|type_)|^get_block_type_|^excerpt_allowed_|^interactivity_process_directives$|^hooked_block/,
  ],
  [
    'how large an image is, and when it loads',
    /^(?:editor_max_image_size|max_srcset_image_width|wp_constrain_dimensions)$|_lazy_loading_|_loading_optimization_/,
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
    site = await startCompanionSite()
    await writeFile(`${site.site}/wp-content/mu-plugins/zz-applied.php`, probe)
    const { output } = await site.php('echo json_encode( Trellis_Tags::ADDING );')
    adding = new RegExp((JSON.parse(output) as string).replace(/^\/|\/D?$/g, ''))
  })
  afterAll(() => site?.stop())

  test('each is one by which plugins add to the response, or is known to add nothing that its description leaves out', {
    timeout: 300_000,
  }, async () => {
    const names = new Set<string>()
    for (const path of reads) for (const name of await applied(path)) names.add(name)
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
      for (const name of names) expect(await read(`${path}?hooked=${name}`), name).not.toContain(';plain;')
    },
  )
})
