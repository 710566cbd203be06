/**
 * What a write to a collection can change beyond the item itself and the lists of its collection.
 * `everything`: nothing of the site is left; for writes that are rare, or whose reach is not known.
 */
export type WriteEffect = 'everything' | NamedEffect

/**
 * Answers with rendered content that a write reaches: `dynamic` are those whose content may render other things (see
 * static-content.ts), `styled` those with any class, `any` are all of them, for what can be rendered without a trace, or was not
 * rendered at all before.
 */
type ReachedContents = 'none' | 'dynamic' | 'styled' | 'any'

/** A reach that can be named. */
export type NamedEffect = {
  /** Other items of the same collection change too: order, parents, links below it. */
  readonly siblings: boolean
  /** Collections of which any answer may change. */
  readonly collections: readonly string[]
  /** Answers with `_embedded`, which may show the item or list it. */
  readonly embedded: boolean
  /** Answers of items that name the item by its id, such as posts their terms. */
  readonly shownBy: boolean
  /** Lists of these collections under a filter by that property. */
  readonly filteredBy: readonly FilteredLists[]
  readonly contents: ReachedContents
}

type FilteredLists = { readonly collection: string; readonly property: string }

type EffectOptions = {
  readonly siblings?: true
  readonly embedded?: true
  readonly shownBy?: true
  readonly filteredBy?: readonly FilteredLists[]
  readonly contents?: ReachedContents
}

/** A reach, of which only what is named is in it. */
export const effect = (collections: readonly string[], options: EffectOptions = {}): NamedEffect => ({
  siblings: options.siblings === true,
  collections,
  embedded: options.embedded === true,
  shownBy: options.shownBy === true,
  filteredBy: options.filteredBy ?? [],
  contents: options.contents ?? 'none',
})

/** How much less a write reaches when the state before it is known as well. */
export type Refinement = {
  /** Properties that must be known before and after, or nothing is; dots lead into objects. */
  readonly structure: readonly string[]
  /** The only properties that a minor update may change: no list's members or order depend on them, unless it looks at texts. */
  readonly texts: readonly string[]
  /** What a minor update reaches besides the item and the lists that look at texts. */
  readonly minor: NamedEffect
  /**
   * Properties on which no list depends that is not under a filter by them, and what a change reaches besides what a minor
   * update does.
   */
  readonly related?: Readonly<Record<string, NamedEffect>>
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

/** What says when and how an answer was made. */
const ofAnswers = ['_links', '_embedded', 'guid', 'modified', 'modified_gmt', 'class_list'] as const

const textsOfPosts = [
  ...ofAnswers,
  'title',
  'content',
  'excerpt',
  'featured_media',
  'comment_status',
  'ping_status',
] as const

/** Menu items without a label of their own take the title of what they lead to. */
const titleInMenus = { property: 'title.rendered', effect: effect([], { shownBy: true }) } as const

/** The slug of a term is in the classes of its posts, and in links; posts list their terms in the order of the names. */
const term: Refinement = {
  structure: ['slug', 'link', 'taxonomy', 'parent'],
  texts: [...ofAnswers, 'name', 'description', 'count'],
  minor: effect([], { contents: 'dynamic' }),
  copied: [{ property: 'name', effect: effect(['search/term'], { shownBy: true }) }],
  hidden: [],
  listed: undefined,
}

/** By collection. As observed on WordPress 6.9. */
export const refinements = {
  posts: {
    structure: [...shown, 'categories', 'tags', 'sticky', 'format'],
    texts: textsOfPosts,
    // A result of the search and an oEmbed answer show title and text.
    minor: effect(['search', 'oembed'], { contents: 'dynamic' }),
    related: {
      categories: effect(['categories']),
      tags: effect(['tags']),
      sticky: effect([]),
      // Who has published something is public.
      author: effect(['users']),
    },
    copied: [titleInMenus],
    hidden: onlyEditorsSee,
    listed: 'publish',
  },
  pages: {
    structure: [...shown, 'parent', 'menu_order'],
    texts: textsOfPosts,
    minor: effect(['search', 'oembed'], { contents: 'dynamic' }),
    related: { menu_order: effect([]) },
    copied: [titleInMenus],
    hidden: onlyEditorsSee,
    listed: 'publish',
  },
  // What was published, in the same menu, was rendered before.
  'menu-items': {
    structure: ['status', 'menus', 'type', 'object', 'object_id'],
    texts: [
      ...ofAnswers,
      ...['title', 'attr_title', 'classes', 'description', 'invalid', 'menu_order', 'meta', 'parent'],
      ...['target', 'type_label', 'url', 'xfn'],
    ],
    minor: effect([], { siblings: true, contents: 'dynamic' }),
    copied: [],
    hidden: [],
    listed: undefined,
  },
  navigation: {
    structure: ['status'],
    texts: [...ofAnswers, 'title', 'content', 'slug', 'link', 'date', 'date_gmt', 'template'],
    minor: effect([], { contents: 'dynamic' }),
    filled: 'content.rendered',
    copied: [],
    hidden: [],
    listed: undefined,
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
    texts: [...ofAnswers, 'title', 'caption', 'description', 'alt_text', 'comment_status', 'ping_status'],
    // Rendered images have their texts from the content; galleries take them from here.
    minor: effect([], { contents: 'dynamic' }),
    copied: [],
    hidden: [],
    listed: undefined,
  },
  categories: term,
  tags: { ...term, structure: ['slug', 'link', 'taxonomy'] },
  users: {
    // What a user may do is in `Allow` of everything it reads.
    structure: ['name', 'slug', 'link', 'url', 'roles', 'capabilities', 'avatar_urls'],
    texts: [...ofAnswers, 'description', 'email', 'first_name', 'last_name', 'nickname'],
    minor: effect([], { contents: 'dynamic' }),
    copied: [],
    hidden: [],
    listed: undefined,
  },
} as const satisfies Readonly<Record<string, Refinement>>
