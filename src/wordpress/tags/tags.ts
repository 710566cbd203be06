import {
  effect,
  type NamedEffect,
  type Refinement,
  refinements,
  type WriteEffect,
} from '../routes/refinements.ts'

/** The action on an item. */
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
  /** A new or deleted item appears in the responses of the item that this property names. */
  readonly owners?: readonly Owner[]
  /**
   * A write may give or take a caller's rights, or end a credential: no caller's own responses are left, unless an update of an item
   * gives no other arguments than these.
   */
  readonly rights?: { readonly unlessOnly: readonly string[] }
  /** The reach of a change that gives only arguments listed here, instead of `effects`. */
  readonly byArgument?: Readonly<Record<string, ArgumentEffect>>
  /**
   * A new item reaches dynamic contents only, and of its owners what embeds it, if another one with the same value of `property` was
   * rendered before: an empty list leaves no trace, a rendered one does.
   */
  readonly fellows?: { readonly property: string; readonly rendered: Readonly<Record<string, unknown>> }
  /**
   * Other items that its responses render: by default those that the HTML of the content shows. `none`: they contain what was
   * written, and render nothing. `any`: they render lists that no class marks, such as the classic widgets and the blocks of plugins.
   */
  readonly renders?: 'none' | 'any'
  /** Classes in its content that stand for nothing but the item itself, as regular expressions. */
  readonly ownClasses?: readonly string[]
  /** Its items may name others by their ids, and always do so in these properties unless the response is trimmed; see `namedItems`. */
  readonly names?: readonly string[]
  /** The responses that its actions change, where they differ from a creation. */
  readonly action?: WriteEffect
}

/** A property of an item that names another item, in any of these collections. */
export type Owner = {
  readonly property: string
  readonly collections: readonly string[]
  /** It shows the item in its `_embedded`, and where it renders items; see `fellows`. */
  readonly embedsOnly?: true
  /** A deleted one was shown with a trace, which other tags cover. */
  readonly createOnly?: true
}

type ArgumentEffect = {
  readonly effect: NamedEffect
  /** A value that was empty before left no trace in the content where it stands: then every content is reached. */
  readonly leavesTrace?: false
}

const always = (effect: WriteEffect): CollectionTags['effects'] => ({
  create: effect,
  update: effect,
  delete: effect,
})

const same = (name: string): ListFilter => ({ argument: name, property: name })

const onlyOwn = always(effect([]))
const everything = always('everything')

// A term's count and its lists by post follow the post's status; an author is public as long as one of its items is published.
const shown = ['oembed', 'users', 'comments'] as const

/** Media attached to an item, of whichever type, are public as long as it is, and have another permalink without it. */
const withAttached = (more: Partial<Omit<NamedEffect, 'collections'>> = {}): CollectionTags['effects'] => {
  const reached = effect(['media', ...shown], { embedded: true, ...more })
  return { create: effect(['users'], more), update: reached, delete: reached }
}

/** Items that are always published: an update may make the first version of its author's, and changes nothing that is attached. */
const alwaysPublished = (
  more: Partial<Omit<NamedEffect, 'collections'>> = {},
): CollectionTags['effects'] => ({
  ...withAttached(more),
  update: effect(['users'], more),
})

/** Pages and media have terms where a plugin says so. */
const counted = { countedBy: ['categories', 'tags'] } as const
const anywhere = { shownBy: true, embedded: true } as const

/**
 * What is attached to a post or page is public as long as that is: a new one has nothing attached, and is embedded nowhere. WordPress
 * deletes the menu items that lead to a deleted post, image or term, which moves the others in their lists.
 */
const post: CollectionTags['effects'] = {
  create: effect(['search', 'oembed', 'users'], { ...counted, contents: 'dynamic' }),
  update: effect(['media', 'search', ...shown], { ...counted, ...anywhere, contents: 'dynamic' }),
  delete: effect(['media', 'menu-items', 'search', ...shown], {
    ...counted,
    ...anywhere,
    contents: 'dynamic',
  }),
}

// A list of pages that was empty leaves no trace in the content where it stands. A deleted front page leaves the site without
// one, and the pages below a deleted page have another parent and another permalink. WordPress adds new pages to menus with `auto_add`.
const page: CollectionTags['effects'] = {
  create: effect(['menu-items', 'search', 'oembed', 'users'], { ...counted, contents: 'any' }),
  update: effect(['media', 'menu-items', 'search', ...shown], {
    ...counted,
    siblings: true,
    embedded: true,
    contents: 'any',
  }),
  delete: effect(['media', 'settings', 'menu-items', 'search', ...shown], {
    ...counted,
    siblings: true,
    embedded: true,
    contents: 'any',
  }),
}

const byTerm = (property: string) =>
  ['posts', 'pages', 'media', 'blocks'].map((collection) => ({ collection, property }))

/**
 * `class_list` of a post holds the slugs of its terms, and lists may follow the parents of terms. A deleted term leaves its posts to the
 * default one. The last parameter: what else a new slug or parent changes.
 */
const term = (
  property: string,
  { collections = ['search/term'], ...more }: Partial<NamedEffect> = {},
): CollectionTags['effects'] => {
  const reached = effect(collections, {
    shownBy: true,
    filteredBy: byTerm(property),
    contents: 'dynamic',
    ...more,
  })
  return {
    create: effect(['search/term'], { contents: 'dynamic' }),
    update: reached,
    delete: { ...reached, collections: [...reached.collections, 'menu-items'] },
  }
}

/** Types of WordPress's own that are no pages have the permalinks of posts. */
const linkedAsPosts = ['blocks', 'navigation'] as const

const ofAuthor = [
  ...['oembed', 'comments', 'posts', 'media', 'menu-items', 'search'],
  ...linkedAsPosts,
] as const

/** Links of the categories below it begin with its own, and so may links of posts (%category%) and of what belongs to them. */
const movedCategory = {
  siblings: true,
  embedded: true,
  collections: ['posts', 'media', 'comments', 'search', 'oembed', 'menu-items', ...linkedAsPosts],
} as const

/**
 * Which write changes which responses, as observed on WordPress 6.9; where the observation could not reach (content that
 * renders other content), more rather than less. Every collection that is not listed counts as `everything`.
 */
export const siteTags: Readonly<Record<string, CollectionTags>> = {
  posts: {
    effects: post,
    filters: [same('author'), same('categories'), same('tags'), same('sticky')],
    refinement: refinements.posts,
    names: ['categories', 'tags', 'featured_media'],
  },
  pages: {
    effects: page,
    filters: [same('author'), same('parent'), same('menu_order')],
    refinement: refinements.pages,
    names: ['featured_media'],
  },
  media: {
    effects: {
      // A gallery of what is attached was empty before, and left no trace; an oEmbed response in XML said that there is nothing.
      create: effect(['posts', 'pages', 'oembed'], { ...counted, contents: 'dynamic' }),
      // Rendered images take their sizes from the media item; its comments are public as long as it is, and have its permalink in theirs.
      update: effect(['oembed', 'comments'], { ...counted, shownBy: true, contents: 'dynamic' }),
      // Its comments go with it, and so does the logo of the site.
      delete: effect(['oembed', 'comments', 'settings', 'menu-items'], {
        ...counted,
        ...anywhere,
        contents: 'dynamic',
      }),
    },
    filters: [same('author'), { argument: 'parent', property: 'post' }],
    refinement: refinements.media,
    names: [],
    // Where it is attached, galleries may show it.
    owners: [{ property: 'post', collections: ['posts', 'pages'], createOnly: true }],
    // The link to the file in the description.
    ownClasses: ['attachment', 'attachment-[\\w-]+'],
  },
  // A menu that was empty leaves no trace in the content where it stands.
  'menu-items': {
    effects: {
      ...withAttached({ contents: 'any' }),
      delete: effect(['media', ...shown], { embedded: true, contents: 'dynamic' }),
    },
    filters: [],
    refinement: refinements['menu-items'],
    fellows: { property: 'menus', rendered: { status: 'publish', invalid: false } },
    names: ['object_id'],
    renders: 'none',
  },
  // Content repeats a synced pattern wherever it is used, without a mark.
  blocks: {
    effects: withAttached({
      contents: 'any',
      countedBy: ['site_pattern_category', 'wp_pattern_category'],
    }),
    filters: [],
    refinement: refinements.blocks,
    names: ['site_pattern_category', 'wp_pattern_category'],
  },
  // One that was no more than a draft was not rendered at all.
  navigation: {
    effects: withAttached({ contents: 'any' }),
    filters: [],
    refinement: refinements.navigation,
  },
  templates: { effects: alwaysPublished(), filters: [], renders: 'none' },
  'template-parts': {
    effects: alwaysPublished({ contents: 'any' }),
    filters: [],
    renders: 'none',
  },
  // The layout of groups and columns is in their classes; the size of a large text in it follows the settings without a class.
  'global-styles': {
    effects: always(effect(['themes'], { contents: 'any' })),
    filters: [],
    refinement: refinements['global-styles'],
    renders: 'none',
  },
  // A filter of the theme may remove the class that marks a form.
  'contact-forms': {
    effects: always(effect([], { siblings: true, embedded: true, contents: 'any' })),
    filters: [],
    // The submission of a form changes no content.
    action: effect([], { siblings: true }),
  },
  categories: {
    effects: term('categories', movedCategory),
    filters: [same('parent')],
    refinement: refinements.categories,
    renders: 'none',
  },
  tags: { effects: term('tags'), filters: [], refinement: refinements.tags, renders: 'none' },
  menus: {
    effects: {
      ...always(effect(['menu-locations'], { siblings: true, contents: 'any' })),
      // Its items go with it, and leave what is attached to them.
      delete: effect(['menu-items', 'menu-locations', 'media', ...shown], {
        embedded: true,
        contents: 'any',
      }),
    },
    filters: [],
    renders: 'none',
  },
  site_pattern_category: { effects: term('site_pattern_category'), filters: [], renders: 'none' },
  comments: {
    effects: {
      ...always(effect([], { siblings: true, contents: 'dynamic' })),
      create: effect([], { siblings: true, embedded: true, contents: 'dynamic' }),
    },
    filters: [same('post'), same('parent'), same('author')],
    // Where a post renders its comments, nothing stands before it has any.
    fellows: { property: 'post', rendered: { status: 'approved', type: 'comment' } },
    owners: [
      { property: 'post', collections: ['posts', 'pages', 'media'], embedsOnly: true },
      { property: 'parent', collections: ['comments'] },
    ],
  },
  users: {
    renders: 'none',
    effects: {
      create: effect([], { contents: 'dynamic' }),
      // Templates contain the name of their author; links of posts, and of what belongs to them, may hold the slug (%author%).
      update: effect([...ofAuthor, 'templates', 'template-parts'], {
        embedded: true,
        contents: 'dynamic',
      }),
      // Content gets another author or is deleted.
      delete: 'everything',
    },
    filters: [],
    refinement: refinements.users,
    // Roles and passwords; application passwords lie below a user.
    rights: { unlessOnly: ['description', 'first_name', 'last_name', 'name', 'nickname', 'slug', 'url'] },
  },
  // Renders a block for an editor; its POST stores nothing.
  'block-renderer': { effects: onlyOwn, filters: [], renders: 'any' },
  // Content may render a widget that has no class.
  widgets: {
    effects: always(effect([], { contents: 'any' })),
    filters: [],
    renders: 'any',
  },
  sidebars: {
    effects: always(effect([], { contents: 'any' })),
    filters: [],
    renders: 'any',
  },
  // Font faces are parts of their family.
  'font-families': {
    effects: {
      create: effect(['users']),
      // Of a face: what was attached to it goes to the family, and keeps its link.
      update: effect(['media', 'users'], { siblings: true, embedded: true }),
      delete: effect(['media', ...shown], { siblings: true, embedded: true }),
    },
    filters: [],
    renders: 'none',
  },
  settings: {
    effects: everything,
    filters: [],
    renders: 'none',
    byArgument: {
      // Templates without an author name the site instead.
      title: {
        effect: effect(['oembed', 'templates', 'template-parts'], { contents: 'dynamic' }),
        leavesTrace: false,
      },
      description: { effect: effect([], { contents: 'dynamic' }), leavesTrace: false },
      // The number of posts of a query loop without an explicit number.
      posts_per_page: { effect: effect([], { contents: 'dynamic' }) },
      date_format: { effect: effect([], { contents: 'dynamic' }) },
      time_format: { effect: effect([], { contents: 'dynamic' }) },
      start_of_week: { effect: effect([], { contents: 'dynamic' }) },
    },
  },
  themes: { effects: everything, filters: [], renders: 'none' },
  plugins: { effects: everything, filters: [], renders: 'none' },
  // Read only, with known parts: no other write reaches them.
  oembed: { effects: everything, filters: [], renders: 'none' },
  search: { effects: everything, filters: [] },
  types: { effects: everything, filters: [], renders: 'none' },
  statuses: { effects: everything, filters: [], renders: 'none' },
  taxonomies: { effects: everything, filters: [], renders: 'none' },
  'menu-locations': { effects: everything, filters: [], renders: 'none' },
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

/**
 * Properties in which an item names others by their ids, and the collection of these. Terms are sorted by their names. WordPress has
 * another name for the property of a pattern than the gateway for its collection, which is one under both names of the route.
 */
export const namedItems: Readonly<Record<string, string>> = {
  categories: 'categories',
  tags: 'tags',
  site_pattern_category: 'site_pattern_category',
  wp_pattern_category: 'site_pattern_category',
  featured_media: 'media',
}

/** How the classes of an item begin that stand for a term. */
export const classOfTerm: Readonly<Record<string, string>> = { categories: 'category-', tags: 'tag-' }

/** Collection of what a menu item leads to, by its `object`. */
export const linkedItems: Readonly<Record<string, string>> = {
  post: 'posts',
  page: 'pages',
  attachment: 'media',
  category: 'categories',
  post_tag: 'tags',
}

/** Collections whose items may name those of a collection. */
export const namedBy: Readonly<Record<string, readonly string[]>> = {
  posts: ['menu-items'],
  pages: ['menu-items'],
  categories: ['posts', 'pages', 'media', 'menu-items'],
  tags: ['posts', 'pages', 'media', 'menu-items'],
  media: ['posts', 'pages', 'menu-items'],
  site_pattern_category: ['blocks'],
}

export const collectionOfTaxonomy: Readonly<Record<string, string>> = {
  category: 'categories',
  post_tag: 'tags',
  nav_menu: 'menus',
}

/** Collection of embedded items of a relation that have neither type nor taxonomy. */
export const collectionOfRelation: Readonly<Record<string, string>> = { author: 'users' }
