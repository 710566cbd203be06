import { type Refinement, refinements } from './refinements.ts'
import { effect, type WriteEffect } from './write-effect.ts'

/** What was done to an item. */
export type WriteAction = 'create' | 'update' | 'delete'

export type ListFilter = { readonly argument: string; readonly property: string }

export type CollectionTags = {
  readonly effects: Readonly<Record<WriteAction, WriteEffect>>
  /**
   * Arguments that bound what a list can contain, with the property of an item that they compare: a complete list
   * under such a filter changes only through an item that it shows, or that has the value now.
   */
  readonly filters: readonly ListFilter[]
  readonly refinement?: Refinement
  /** A new item shows in what this property names, in any of these collections: its links, its embedded replies. */
  readonly owners?: readonly { readonly property: string; readonly collections: readonly string[] }[]
  /** A write may give or take a caller's rights, or end a credential: no caller's own answers are left. */
  readonly rights?: true
  /**
   * What its answers hold of others: by default what the classes in the content tell. `none`: they hold what was written,
   * and render nothing. `any`: they render lists that have no class, such as the classic widgets and the blocks of plugins.
   */
  readonly renders?: 'none' | 'any'
}

const always = (one: WriteEffect): CollectionTags['effects'] => ({ create: one, update: one, delete: one })

const same = (name: string): ListFilter => ({ argument: name, property: name })

const onlyOwn = always(effect([]))
const ownAndSiblings = always(effect([], { siblings: true }))
const everything = always('everything')

// A term's count and its lists by post follow the post's status; an author is public only with a public post;
// menus and navigation show titles.
const shown = ['search', 'oembed', 'users', 'comments', 'menu-items', 'navigation'] as const

/** What is attached to a post or page is public as long as that is: a new one has nothing attached. */
const withAttachments = (
  collections: readonly string[],
  options: Parameters<typeof effect>[1],
): CollectionTags['effects'] => ({
  create: effect(collections, options),
  update: effect(['media', ...collections], options),
  delete: effect(['media', ...collections], options),
})

const post = withAttachments(['categories', 'tags', ...shown], { embedded: true, dynamic: true })

const page = withAttachments(shown, { siblings: true, embedded: true, dynamic: true })

// A search may be one for terms. `class_list` of a post holds the slugs of its terms, and a deleted term leaves its
// posts to the default one.
const term = (others: readonly string[]): CollectionTags['effects'] => ({
  create: effect(['search'], { dynamic: true }),
  update: effect(['posts', 'pages', 'search', 'menu-items', 'navigation', ...others], {
    siblings: true,
    embedded: true,
    dynamic: true,
  }),
  delete: effect(['posts', 'pages', 'search', 'menu-items', 'navigation', 'categories', ...others], {
    siblings: true,
    embedded: true,
    dynamic: true,
  }),
})

/** Rendered content repeats a synced pattern wherever it is used, and does not say so. */
const rendered = ['posts', 'pages', 'blocks', 'templates', 'template-parts', 'navigation', 'search'] as const

/**
 * Which write changes which answers, as observed on WordPress 6.9; where the observation could not reach (content that
 * renders other content), more rather than less. Every collection that is not listed counts as `everything`.
 */
export const siteTags: Readonly<Record<string, CollectionTags>> = {
  posts: {
    effects: post,
    filters: [same('author'), same('categories'), same('tags'), same('sticky')],
    refinement: refinements.posts,
  },
  pages: {
    effects: page,
    filters: [same('author'), same('parent'), same('menu_order')],
    refinement: refinements.pages,
  },
  media: {
    effects: {
      create: effect([], { dynamic: true }),
      // Rendered images take their sizes from the media item.
      update: effect(['posts', 'pages', 'search', 'oembed'], { embedded: true, dynamic: true }),
      delete: effect(['posts', 'pages', 'search', 'oembed'], {
        siblings: true,
        embedded: true,
        dynamic: true,
      }),
    },
    filters: [same('author'), { argument: 'parent', property: 'post' }],
    refinement: refinements.media,
  },
  'menu-items': {
    effects: always(effect([], { siblings: true, dynamic: true })),
    filters: [],
  },
  blocks: { effects: always(effect([...rendered], { siblings: true, dynamic: true })), filters: [] },
  navigation: { effects: always(effect([], { dynamic: true })), filters: [] },
  templates: { effects: ownAndSiblings, filters: [], renders: 'none' },
  'template-parts': { effects: ownAndSiblings, filters: [], renders: 'none' },
  'global-styles': { effects: always(effect(['themes'], { siblings: true })), filters: [] },
  'contact-forms': { effects: ownAndSiblings, filters: [] },
  categories: { effects: term([]), filters: [same('parent')], refinement: refinements.categories },
  tags: { effects: term([]), filters: [], refinement: refinements.tags },
  menus: {
    effects: always(
      effect(['menu-items', 'menu-locations', 'navigation'], { siblings: true, dynamic: true }),
    ),
    filters: [],
  },
  site_pattern_category: { effects: term(['blocks']), filters: [] },
  wp_pattern_category: { effects: term(['blocks']), filters: [] },
  comments: {
    effects: always(effect(['posts', 'pages'], { siblings: true, embedded: true, dynamic: true })),
    filters: [same('post'), same('parent'), same('author')],
    owners: [
      { property: 'post', collections: ['posts', 'pages', 'media'] },
      { property: 'parent', collections: ['comments'] },
    ],
  },
  users: {
    effects: {
      create: effect([], { dynamic: true }),
      update: effect(['oembed', 'comments', 'posts', 'pages', 'search'], { embedded: true, dynamic: true }),
      // Content goes to another author or goes away.
      delete: 'everything',
    },
    filters: [],
    refinement: refinements.users,
    // Roles and passwords; application passwords lie below a user.
    rights: true,
  },
  // Renders a block for an editor; its POST stores nothing.
  'block-renderer': { effects: onlyOwn, filters: [], renders: 'any' },
  widgets: {
    effects: always(effect(['sidebars', 'widget-types'], { siblings: true })),
    filters: [],
    renders: 'any',
  },
  sidebars: { effects: always(effect(['widgets'], { siblings: true })), filters: [], renders: 'any' },
  'font-families': { effects: onlyOwn, filters: [] },
  'font-faces': { effects: onlyOwn, filters: [] },
  settings: { effects: everything, filters: [] },
  themes: { effects: everything, filters: [] },
  plugins: { effects: everything, filters: [] },
  // Read only, but what they show is known: no other write reaches them.
  oembed: { effects: everything, filters: [] },
  search: { effects: everything, filters: [] },
  types: { effects: everything, filters: [] },
  statuses: { effects: everything, filters: [] },
  taxonomies: { effects: everything, filters: [] },
  'menu-locations': { effects: everything, filters: [] },
}

/** Collection of the items with a `type`, in both spellings of the names. */
export const collectionOfType: Readonly<Record<string, string>> = {
  post: 'posts',
  page: 'pages',
  attachment: 'media',
  nav_menu_item: 'menu-items',
  wp_block: 'blocks',
  wp_navigation: 'navigation',
  wp_template: 'templates',
  wp_template_part: 'template-parts',
  comment: 'comments',
}

/** Collection of the terms of a `taxonomy`. */
export const collectionOfTaxonomy: Readonly<Record<string, string>> = {
  category: 'categories',
  post_tag: 'tags',
  nav_menu: 'menus',
}

/** Collection of what is embedded under a relation and says neither type nor taxonomy. */
export const collectionOfRelation: Readonly<Record<string, string>> = { author: 'users' }

/** Class names and elements in rendered content that stand for a list of other things, made anew with each answer. */
export const dynamicMarkers: readonly string[] = [
  'wp-block-archives',
  'wp-block-calendar',
  'wp-block-categories',
  'wp-block-comments',
  'wp-block-gallery',
  'wp-block-latest-comments',
  'wp-block-latest-posts',
  'wp-block-navigation',
  'wp-block-page-list',
  'wp-block-post-',
  'wp-block-query',
  'wp-block-rss',
  'wp-block-search',
  'wp-block-site-',
  'wp-block-tag-cloud',
  'wp-block-term',
  'wp-block-template-part',
  'wp-block-avatar',
  'wp-block-loginout',
  'wp-block-read-more',
  'gallery-columns-',
  'wp-embedded-content',
]
