import type { DialectNames } from './dialect-names.ts'

/** Who may read the items of a collection. */
type Readers = 'everyone' | 'editors-by-item' | 'editors'

/** What distinguishes one collection of items from another; the engine is the same for all. */
export type CollectionSpec = {
  readonly base: string
  readonly type: string
  /** Fields in the order WordPress writes them; contexts are in fields.ts. */
  readonly fields: readonly string[]
  /** Argument and field name of each taxonomy. */
  readonly taxonomies: Readonly<Record<string, string>>
  /** What a DELETE without force answers when there is no trash: the noun in the message. */
  readonly noTrash: string | undefined
  readonly readers: Readers
  readonly newStatus: string
  readonly revisions: boolean
  /** Do items have their own page, and so a Link rel=alternate? */
  readonly viewable: boolean
  readonly links: readonly ('author' | 'replies' | 'versions' | 'up' | 'featured' | 'attachments')[]
}

const stamp = ['id', 'date', 'date_gmt', 'guid', 'modified', 'modified_gmt']
const identity = ['slug', 'status', 'type', 'link', 'title']
const edited = ['permalink_template', 'generated_slug', 'class_list']
const file = ['description', 'caption', 'alt_text', 'media_type', 'mime_type', 'media_details', 'post', 'source_url', 'missing_image_sizes'] // biome-ignore format: a list of names
const link = ['url', 'attr_title', 'description', 'type', 'type_label', 'object', 'object_id', 'parent', 'menu_order', 'target', 'classes', 'xfn', 'invalid', 'meta', 'menus'] // biome-ignore format: a list of names

/** The collections of items, by the name in their rows. */
export const collectionSpecs = (names: DialectNames): Readonly<Record<string, CollectionSpec>> => ({
  posts: {
    base: 'posts',
    type: 'post',
    fields: [
      ...stamp,
      'password',
      ...identity,
      'content',
      'excerpt',
      'author',
      'featured_media',
      'comment_status',
      'ping_status',
      'sticky',
      'template',
      'format',
      'meta',
      'categories',
      'tags',
      ...edited,
    ],
    taxonomies: { categories: 'category', tags: 'post_tag' },
    noTrash: undefined,
    readers: 'everyone',
    newStatus: 'draft',
    revisions: true,
    viewable: true,
    links: ['author', 'replies', 'versions', 'featured', 'attachments'],
  },
  pages: {
    base: 'pages',
    type: 'page',
    fields: [
      ...stamp,
      'password',
      ...identity,
      'content',
      'excerpt',
      'author',
      'featured_media',
      'parent',
      'menu_order',
      'comment_status',
      'ping_status',
      'template',
      'meta',
      ...edited,
    ],
    taxonomies: {},
    noTrash: undefined,
    readers: 'everyone',
    newStatus: 'draft',
    revisions: true,
    viewable: true,
    links: ['author', 'replies', 'versions', 'up', 'featured', 'attachments'],
  },
  media: {
    base: 'media',
    type: 'attachment',
    fields: [
      ...stamp,
      ...identity,
      'author',
      'featured_media',
      'comment_status',
      'ping_status',
      'template',
      'meta',
      ...edited,
      ...file,
    ],
    taxonomies: {},
    noTrash: 'The post does',
    readers: 'everyone',
    newStatus: 'inherit',
    revisions: false,
    viewable: true,
    links: ['author', 'replies'],
  },
  'menu-items': {
    base: 'menu-items',
    type: 'nav_menu_item',
    fields: ['id', 'title', 'status', ...link],
    taxonomies: { menus: 'nav_menu' },
    noTrash: 'Menu items do',
    readers: 'editors',
    newStatus: 'publish',
    revisions: false,
    viewable: false,
    links: [],
  },
  blocks: {
    base: 'blocks',
    type: 'wp_block',
    fields: [
      ...stamp,
      'password',
      ...identity,
      'content',
      'excerpt',
      'template',
      'meta',
      names.patternCategory,
      names.patternSyncStatus,
    ],
    taxonomies: { [names.patternCategory]: 'wp_pattern_category' },
    noTrash: undefined,
    readers: 'editors-by-item',
    newStatus: 'draft',
    revisions: true,
    viewable: false,
    links: ['versions', 'attachments'],
  },
  navigation: {
    base: 'navigation',
    type: 'wp_navigation',
    fields: [...stamp, 'password', ...identity, 'content', 'template'],
    taxonomies: {},
    noTrash: undefined,
    readers: 'everyone',
    newStatus: 'draft',
    revisions: true,
    viewable: false,
    links: ['versions', 'attachments'],
  },
})

/** REST base of a taxonomy, for links between terms and items. */
export const taxonomyBases = (names: DialectNames): Readonly<Record<string, string>> => ({
  category: 'categories',
  post_tag: 'tags',
  nav_menu: 'menus',
  wp_pattern_category: names.patternCategory,
})
