/**
 * The responses that a write to a collection can change beyond the item itself and the lists of its collection.
 * `everything`: all responses of the site; for writes that are rare, or whose effects are not known.
 */
export type WriteEffect = 'everything' | NamedEffect

/**
 * Responses with rendered content that a write reaches: `dynamic` are those whose content may render other things (see
 * static-content.ts), `any` are all of them, for what can be rendered without a trace, or was not
 * rendered at all before.
 */
export type ReachedContents = 'none' | 'dynamic' | 'any'

export type NamedEffect = {
  /** Other items of the same collection change too: order, parents, links below it. */
  readonly siblings: boolean
  /** Collections of which any response may change. */
  readonly collections: readonly string[]
  /** Responses with `_embedded`, which may show the item or list it. */
  readonly embedded: boolean
  /** Responses of items that name the item by its id, such as posts their terms. */
  readonly shownBy: boolean
  /** Those of them that depend on its name: they show it, or sort several such items by it. */
  readonly nameShownBy: boolean
  /**
   * Collections of terms that count the written item when it names them in the property of that name: these terms, and lists, which may
   * leave out terms without items.
   */
  readonly countedBy: readonly string[]
  /** Lists of these collections under a filter by that property. */
  readonly filteredBy: readonly FilteredLists[]
  readonly contents: ReachedContents
}

type FilteredLists = { readonly collection: string; readonly property: string }

/** A reach that contains the named responses only. */
export const effect = (
  collections: readonly string[],
  more: Partial<Omit<NamedEffect, 'collections'>> = {},
): NamedEffect => ({
  ...{ siblings: false, embedded: false, shownBy: false, nameShownBy: false },
  ...{ countedBy: [], filteredBy: [], contents: 'none' },
  ...more,
  collections,
})

/** Facts that narrow the reach of a write when the item before the write is known as well. */
export type Refinement = {
  /** Properties that must be known before and after, or nothing is; dots lead into objects. */
  readonly structure: readonly string[]
  /** The only properties that a minor update may change: no list's members or order depend on them, unless it looks at texts. */
  readonly texts: readonly string[]
  /** Responses that a minor update reaches besides the item and the lists that depend on texts. */
  readonly minor: NamedEffect
  /** Properties that a search compares, and the other responses that a change of one of them reaches. Without this any update may change them. */
  readonly searched?: { readonly properties: readonly string[]; readonly effect: NamedEffect }
  /** Members of a property that a minor update may change; all others of its members must be as they were. */
  readonly within?: Readonly<Record<string, readonly string[]>>
  /**
   * Properties on which no list depends that is not under a filter by them, and what a change reaches besides what a minor
   * update does.
   */
  readonly related?: Readonly<Record<string, NamedEffect>>
  /** By property: the reach of its update besides the item and the lists for editors, where only editors see the item before and after. */
  readonly relatedHidden?: Readonly<Record<string, NamedEffect>>
  /** The responses that its deletion changes then. */
  readonly deletedHidden?: NamedEffect
  /** A property that must not be empty before: what was empty left no trace in the content where it stands. */
  readonly filled?: string
  /** Properties of which others show a copy, and where. */
  readonly copied: readonly { readonly property: string; readonly effect: NamedEffect }[]
  /** Statuses that only editors see, and the one that lists show unless they are asked for another. */
  readonly hidden: readonly string[]
  readonly listed: string | undefined
}

const onlyEditorsSee = ['draft', 'pending', 'future', 'auto-draft', 'trash'] as const

const shown = ['status', 'type', 'date', 'date_gmt', 'slug', 'link', 'author', 'content.protected'] as const

/** Values that show when and how a response was made. */
const ofResponses = ['_links', '_embedded', 'guid', 'modified', 'modified_gmt', 'class_list'] as const

const textsOfPosts = [
  ...ofResponses,
  'title',
  'content',
  'excerpt',
  'featured_media',
  'comment_status',
  'ping_status',
] as const

const searchedPosts = {
  properties: ['title', 'content', 'excerpt'],
  effect: effect(['search']),
} as const

/** The permalink of a page begins with those of its parents, and what belongs to a page has its permalink in its own. */
const movedWithPage = ['media', 'comments', 'search', 'oembed', 'menu-items'] as const

const movedPage = effect(movedWithPage, { siblings: true, contents: 'any' })

/** Menu items without their own label take the title of what they lead to. */
const titleInMenus = { property: 'title.rendered', effect: effect([], { shownBy: true }) } as const

/** Terms count what names them, and there is a list of the terms of each item. */
const inTerms = {
  categories: effect([], { countedBy: ['categories'] }),
  tags: effect([], { countedBy: ['tags'] }),
} as const

/** No list is filtered or sorted by it, unless a plugin adds an argument that does so. Editors are shown more of its members. */
const metaAlone = { meta: effect([]) } as const

/** The author decides who may read the comments that wait for approval, and what is attached to a draft. */
const readByAuthor = ['comments', 'media'] as const

/** Nothing has a copy of a property, and no status hides an item. */
const shownPlainly = { copied: [], hidden: [], listed: undefined } as const

/** The slug of a term is in the classes of its posts, and in links; posts list their terms in the order of the names. */
const term: Refinement = {
  ...shownPlainly,
  structure: ['slug', 'link', 'taxonomy', 'parent'],
  texts: [...ofResponses, 'name', 'description', 'count'],
  minor: effect([], { contents: 'dynamic' }),
  related: metaAlone,
  copied: [{ property: 'name', effect: effect(['search/term'], { nameShownBy: true }) }],
}

/** By collection. As observed on WordPress 6.9. */
export const refinements = {
  posts: {
    structure: [...shown, 'categories', 'tags', 'sticky', 'format'],
    texts: textsOfPosts,
    // An oEmbed response shows title, author and image.
    minor: effect(['oembed'], { contents: 'dynamic' }),
    searched: searchedPosts,
    related: {
      ...inTerms,
      ...metaAlone,
      sticky: effect([]),
      // Authors of published contents are public.
      author: effect(['users', ...readByAuthor], { embedded: true }),
    },
    relatedHidden: { ...inTerms, author: effect(readByAuthor, { embedded: true }) },
    // Menus show links to drafts; what was attached to it, and may be embedded anywhere, is attached to nothing.
    deletedHidden: effect(['media', 'comments', 'menu-items'], {
      shownBy: true,
      embedded: true,
      countedBy: ['categories', 'tags'],
      contents: 'dynamic',
    }),
    copied: [titleInMenus],
    hidden: onlyEditorsSee,
    listed: 'publish',
  },
  pages: {
    structure: [...shown, 'parent', 'menu_order'],
    texts: textsOfPosts,
    minor: effect(['oembed'], { contents: 'dynamic' }),
    searched: searchedPosts,
    related: { ...metaAlone, menu_order: effect([]), parent: movedPage, link: movedPage },
    relatedHidden: {
      parent: movedPage,
      slug: movedPage,
      author: effect(readByAuthor, { embedded: true }),
      ...inTerms,
    },
    deletedHidden: effect([...movedWithPage, 'settings'], {
      countedBy: ['categories', 'tags'],
      siblings: true,
      contents: 'any',
    }),
    copied: [titleInMenus],
    hidden: onlyEditorsSee,
    listed: 'publish',
  },
  // A published item in the same menu was rendered before.
  'menu-items': {
    structure: ['status', 'menus', 'type', 'object', 'object_id'],
    texts: [
      ...ofResponses,
      ...['title', 'attr_title', 'classes', 'description', 'invalid', 'menu_order', 'meta', 'parent'],
      ...['target', 'type_label', 'url', 'xfn'],
    ],
    minor: effect([], { siblings: true, contents: 'dynamic' }),
    ...shownPlainly,
  },
  navigation: {
    structure: ['status'],
    texts: [...ofResponses, 'title', 'content', 'slug', 'link', 'date', 'date_gmt', 'template'],
    minor: effect([], { contents: 'dynamic' }),
    filled: 'content.rendered',
    ...shownPlainly,
  },
  // Its content is shown unrendered: contents change with that, not with its title. They may show the categories in use.
  blocks: {
    structure: ['status', 'slug', 'content.raw', 'content.protected', 'wp_pattern_sync_status'],
    texts: [...ofResponses, 'title', 'excerpt', 'content'],
    minor: effect([]),
    related: {
      site_pattern_category: effect([], { countedBy: ['site_pattern_category'], contents: 'dynamic' }),
      wp_pattern_category: effect([], { countedBy: ['wp_pattern_category'], contents: 'dynamic' }),
    },
    ...shownPlainly,
  },
  // Colours and fonts are in the style sheet of a page, not in its content.
  'global-styles': {
    structure: ['settings', 'styles'],
    texts: [...ofResponses, 'title'],
    within: { styles: ['color', 'typography', 'css'] },
    minor: effect([]),
    ...shownPlainly,
  },
  media: {
    structure: [
      'status',
      'date',
      'date_gmt',
      'slug',
      'link',
      'author',
      'post',
      'media_type',
      'mime_type',
      'source_url',
      'media_details',
    ],
    texts: [
      ...ofResponses,
      ...['title', 'caption', 'description', 'alt_text', 'comment_status', 'ping_status'],
      'missing_image_sizes',
    ],
    // Rendered images have their texts from the content; galleries take them from here, and oEmbed responses the title.
    minor: effect(['oembed'], { contents: 'dynamic' }),
    ...shownPlainly,
    related: metaAlone,
    copied: [titleInMenus],
  },
  categories: term,
  tags: { ...term, structure: ['slug', 'link', 'taxonomy'] },
  users: {
    // The rights of a user show in `Allow` of everything it reads.
    structure: ['name', 'slug', 'link', 'url', 'roles', 'capabilities', 'avatar_urls'],
    texts: [...ofResponses, 'description', 'email', 'first_name', 'last_name', 'nickname'],
    minor: effect([], { contents: 'dynamic' }),
    ...shownPlainly,
    // The block for the biography of an author leaves no trace where that is empty.
    copied: [{ property: 'description', effect: effect([], { contents: 'any' }) }],
  },
} as const satisfies Readonly<Record<string, Refinement>>
