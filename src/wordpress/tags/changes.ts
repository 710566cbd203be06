import { collectionOfTaxonomy, collectionOfType } from './tags.ts'

/** Collection of the posts of a type. A change of any other type counts as a change of everything. */
export const collectionOfChangedType: Readonly<Record<string, string>> = {
  ...collectionOfType,
  wp_global_styles: 'global-styles',
  wp_font_family: 'font-families',
  wp_font_face: 'font-faces',
  wpcf7_contact_form: 'contact-forms',
}

/** Posts that no response shows: what editors send each other while they work on one post (WordPress 7.0, Gutenberg), every second. */
export const hiddenTypes: ReadonlySet<string> = new Set(['wp_sync_storage'])

/** Collections whose items have other identifiers in the interface than in the database, or show each other. */
export const anyItemOf: Readonly<Record<string, readonly string[]>> = {
  templates: ['templates'],
  'template-parts': ['template-parts'],
  'global-styles': ['global-styles'],
  'font-families': ['font-families', 'font-faces'],
  'font-faces': ['font-families', 'font-faces'],
}

/** Collections of the terms of a taxonomy. A change of any other taxonomy counts as a change of everything. */
export const collectionsOfChangedTaxonomy: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(Object.entries(collectionOfTaxonomy).map(([taxonomy, one]) => [taxonomy, [one]])),
  wp_pattern_category: ['wp_pattern_category', 'site_pattern_category'],
}

/** Collections whose items have revisions and autosaves. */
export const revisedCollections: readonly string[] = [
  'posts',
  'pages',
  'blocks',
  'navigation',
  'templates',
  'template-parts',
  'global-styles',
  'menu-items',
]

/** Properties of an item in the interface, by the member of a state; `terms` has the taxonomies. */
export const propertiesOfState: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  media: { parent: 'post' },
}

export const propertyOfTaxonomy: Readonly<Record<string, string>> = {
  category: 'categories',
  post_tag: 'tags',
  nav_menu: 'menus',
  wp_pattern_category: 'wp_pattern_category',
}

/** Members that answers show under their own name. */
export const plainMembers: ReadonlySet<string> = new Set([
  ...['status', 'slug', 'author', 'date', 'sticky', 'format', 'template', 'menu_order', 'parent'],
])

/** The argument of the settings that sets an option. */
export const argumentOfOption: Readonly<Record<string, string>> = {
  blogname: 'title',
  blogdescription: 'description',
  posts_per_page: 'posts_per_page',
  date_format: 'date_format',
  time_format: 'time_format',
  start_of_week: 'start_of_week',
}

/** Options that hold items of a collection. */
export const collectionOfOption: Readonly<Record<string, string>> = { sticky_posts: 'posts' }

const harmlessOptions: ReadonlySet<string> = new Set([
  ...['cron', 'doing_cron', 'recently_activated', 'uninstall_plugins', 'fresh_site', 'db_upgraded'],
  ...['auto_updater.lock', 'core_updater.lock', 'recovery_keys', 'recovery_mode_email_last_sent'],
  // Collected from other events: the parents of terms.
  ...['category_children', 'can_compress_scripts', 'user_count', 'adminhash', 'new_admin_email'],
])

/** No answer shows them. Every other option counts as a change of everything. */
export const isHarmlessOption = (name: string): boolean =>
  harmlessOptions.has(name) || name.startsWith('_transient_') || name.startsWith('_site_transient_')
