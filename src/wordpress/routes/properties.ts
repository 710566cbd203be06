/** What changes a property of a response: its own item, this and what it links to, nearly everything, or every write. */
export type PropertyReach = 'item' | 'linked' | 'site' | 'all'

const ofContent =
  'date date_gmt guid id link modified modified_gmt slug status type password permalink_template generated_slug class_list title content excerpt author featured_media comment_status ping_status meta template'
const ofTerms = 'id count description link name slug taxonomy parent meta'
const ofTemplates =
  'id slug theme type source origin plugin content title description status site_id wp_id has_theme_file author modified author_text original_source is_custom area date'

/**
 * The properties that WordPress itself gives the items of a collection, in versions 6.4 to 7.1. One that is missing here costs hits, and
 * no promise: every write reaches it. Settings and contact forms have no list, since plugins may register more of theirs.
 */
const properties: Readonly<Record<string, string>> = {
  posts: `${ofContent} format sticky categories tags`,
  pages: `${ofContent} parent menu_order`,
  media: `${ofContent} alt_text caption description media_type mime_type media_details post source_url missing_image_sizes filename filesize exif_orientation`,
  blocks: `${ofContent} site_pattern_category wp_pattern_category site_pattern_sync_status wp_pattern_sync_status`,
  navigation: ofContent,
  'menu-items':
    'title id type_label type status parent attr_title classes description menu_order object object_id target url xfn invalid menus meta',
  templates: ofTemplates,
  'template-parts': ofTemplates,
  'global-styles': 'id styles settings title',
  'font-families': 'id theme_json_version font_faces font_family_settings font_face_settings',
  categories: ofTerms,
  tags: ofTerms,
  site_pattern_category: ofTerms,
  menus: `${ofTerms} locations auto_add`,
  users:
    'id username name first_name last_name email url description link locale nickname slug registered_date roles password capabilities extra_capabilities avatar_urls meta',
  comments:
    'id author author_email author_ip author_name author_url author_user_agent content date date_gmt link parent post status type author_avatar_urls meta',
  search: 'id title url type subtype',
  types:
    'capabilities description hierarchical viewable labels name slug supports has_archive taxonomies rest_base rest_namespace visibility icon template template_lock',
  statuses: 'name private protected public queryable show_in_list slug date_floating',
  taxonomies:
    'capabilities description hierarchical labels name slug show_cloud types rest_base rest_namespace visibility',
  'menu-locations': 'name description menu',
  'block-renderer': 'rendered',
  widgets: 'id id_base sidebar rendered rendered_form instance form_data',
  sidebars: 'id name description class before_widget after_widget before_title after_title status widgets',
  themes:
    'stylesheet stylesheet_uri template template_uri author author_uri description is_block_theme name requires_php requires_wp screenshot tags textdomain theme_supports theme_uri version status default_template_types default_template_part_areas',
  plugins:
    'plugin status name plugin_uri author author_uri description version network_only requires_wp requires_php textdomain',
  oembed:
    'version provider_name provider_url author_name author_url title type width height html thumbnail_url thumbnail_width thumbnail_height cache_age',
}

/** Of every item, and of its revisions and autosaves. */
const common = '_links _embedded parent preview_link'

export const coreProperties: Readonly<Record<string, ReadonlySet<string>>> = Object.fromEntries(
  Object.entries(properties).map(([collection, names]) => [
    collection,
    new Set(`${names} ${common}`.split(' ')),
  ]),
)

/** Collections whose list is an object with an item in each member. */
export const listedByName: ReadonlySet<string> = new Set([
  'types',
  'statuses',
  'taxonomies',
  'menu-locations',
])

/**
 * What properties of usual plugins depend on. Yoast SEO shows titles, authors, terms, images and the number of comments of its item, names
 * of its ancestors and settings of the site, and nothing of other posts; Jetpack an address of its item and its image, and settings;
 * WooCommerce of users their meta and whether their role is the highest. Any property that is not here depends on everything; `acf` is
 * judged by its value (property-reaches.ts).
 */
export const pluginProperties: Readonly<Record<string, PropertyReach>> = {
  yoast_head: 'linked',
  yoast_head_json: 'linked',
  jetpack_featured_media_url: 'linked',
  jetpack_sharing_enabled: 'site',
  jetpack_shortlink: 'linked',
  is_super_admin: 'item',
  woocommerce_meta: 'item',
}
