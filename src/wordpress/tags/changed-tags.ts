import type { TagNames } from '../../cache/tag-names.ts'
import { isJsonObject } from '../../http/json-text.ts'
import type { Change, ChangedState, MaybeState } from '../../service/tagger.ts'
import { describedChange, tagOfBlog } from './companion-tags.ts'
import { lookUp, type Properties } from './described-items.ts'
import { type CollectionTags, collectionOfTaxonomy, collectionOfType, type WriteAction } from './tags.ts'
import type { SiteWrite } from './written-tags.ts'

/** Collection of the posts of a type. A change of any other type counts as a change of everything. */
const collectionOfChangedType: Readonly<Record<string, string>> = {
  ...collectionOfType,
  wp_global_styles: 'global-styles',
  wp_font_family: 'font-families',
  wp_font_face: 'font-families',
  wpcf7_contact_form: 'contact-forms',
}

/** Posts that no response shows: what editors send each other while they work on one post (WordPress 7.0, Gutenberg), every second. */
const hiddenTypes: ReadonlySet<string> = new Set(['wp_sync_storage'])

/** Collections whose items have other identifiers in the interface than in the database, or show each other. */
const reachedAsWhole: ReadonlySet<string> = new Set([
  'templates',
  'template-parts',
  'global-styles',
  'font-families',
])

/** Collection of the terms of a taxonomy. A change of any other taxonomy counts as a change of everything. */
const collectionOfChangedTaxonomy: Readonly<Record<string, string>> = {
  ...collectionOfTaxonomy,
  wp_pattern_category: 'site_pattern_category',
}

/** Was the row there in this state, with all that is reported of it? */
const isThere = (state: MaybeState): boolean => state?.['status'] !== undefined && state['date'] !== undefined

/** Collections whose items have revisions and autosaves. */
const revisedCollections: readonly string[] = [
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
const propertiesOfState: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  media: { parent: 'post' },
}

const propertyOfTaxonomy: Readonly<Record<string, string>> = {
  category: 'categories',
  post_tag: 'tags',
  nav_menu: 'menus',
  wp_pattern_category: 'wp_pattern_category',
}

/** Members that responses show under their own name. */
const plainMembers: ReadonlySet<string> = new Set([
  ...['status', 'slug', 'author', 'date', 'sticky', 'format', 'template', 'menu_order', 'parent'],
])

/** The argument of the settings that sets an option. */
const argumentOfOption: Readonly<Record<string, string>> = {
  blogname: 'title',
  blogdescription: 'description',
  posts_per_page: 'posts_per_page',
  date_format: 'date_format',
  time_format: 'time_format',
  start_of_week: 'start_of_week',
}

/** Options that hold items of a collection. */
const collectionOfOption: Readonly<Record<string, string>> = { sticky_posts: 'posts' }

const unshownOptions: ReadonlySet<string> = new Set([
  ...['cron', 'doing_cron', 'recently_activated', 'uninstall_plugins', 'fresh_site', 'db_upgraded'],
  ...['auto_updater.lock', 'core_updater.lock', 'recovery_keys', 'recovery_mode_email_last_sent'],
  // Collected from other events: the parents of terms.
  ...['category_children', 'can_compress_scripts', 'user_count', 'adminhash', 'new_admin_email'],
])

/** No response shows them. Every other option counts as a change of everything. */
const isUnshownOption = (name: string): boolean =>
  unshownOptions.has(name) || name.startsWith('_transient_') || name.startsWith('_site_transient_')

/** The object before and after, with the names of the interface. */
type Item = {
  readonly collection: string
  /** Undefined for any item of the collection. */
  readonly id: number | undefined
  readonly before: MaybeState
  readonly after: MaybeState
  readonly hasStatuses: boolean
}

const unknownItem = { id: undefined, before: undefined, after: undefined, hasStatuses: false }

/** A state of an object as the interface shows it, as far as it is known. */
const asItem = (collection: string, state: ChangedState): Properties => {
  const renamed = propertiesOfState[collection] ?? {}
  const properties: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(state)) {
    if (plainMembers.has(name)) properties[lookUp(renamed, name) ?? name] = value
  }
  if (state['post'] !== undefined) properties['post'] = state['post']
  if (isJsonObject(state['terms'])) {
    for (const [taxonomy, ids] of Object.entries(state['terms'])) {
      const property = lookUp(propertyOfTaxonomy, taxonomy)
      if (property !== undefined) properties[property] = ids
    }
  }
  return properties
}

/** Objects with a status are public or not by it: one without may have been anything. */
const hasStatus = (state: ChangedState | null): boolean =>
  state === null || typeof state['status'] === 'string'

/** Are both states known? One alone does not show the lists that the other one is in. */
const isKnown = ({ before, after, hasStatuses }: Item): boolean =>
  before !== undefined && after !== undefined && (!hasStatuses || (hasStatus(before) && hasStatus(after)))

/** What may have been done. An object of which one state is unknown may have been created, changed or deleted. */
const actionsOf = ({ before, after }: Item): readonly WriteAction[] => {
  if (before === undefined || after === undefined) return ['create', 'update', 'delete']
  if (before === null) return ['create']
  if (after === null) return ['delete']
  return after['status'] === 'trash' || before['status'] === 'trash' ? ['update', 'delete'] : ['update']
}

const contentOf = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))

const isHidden = (state: MaybeState, hidden: readonly string[]): boolean =>
  state === null || (typeof state?.['status'] === 'string' && hidden.includes(state['status']))

/**
 * The earlier version for the comparison that a write makes; given only for an item that was and is visible to editors alone, since a
 * comparison of public items would need more than a change contains.
 */
const shownBefore = (item: Item, { refinement }: CollectionTags): readonly Buffer[] => {
  const { before, after, collection, id } = item
  if (refinement === undefined || !before || !after) return []
  if (!isHidden(before, refinement.hidden) || !isHidden(after, refinement.hidden)) return []
  const unknown: Record<string, unknown> = {}
  for (const path of refinement.structure) {
    const [name = '', member] = path.split('.', 2)
    unknown[name] = member === undefined ? '' : { [member]: '' }
  }
  return [contentOf({ ...unknown, id, ...asItem(collection, before) })]
}

/** The change as the write through the gateway that would have the same effect. */
const asWrite = (item: Item, entry: CollectionTags, action: WriteAction): SiteWrite => {
  const { collection, id, before, after } = item
  const last = after ?? before
  const properties = { ...(id === undefined ? {} : { id }), ...(last ? asItem(collection, last) : {}) }
  const isNew = action === 'create' && before === null
  const isGone = action === 'delete' && after === null
  const earlier = shownBefore(item, entry)
  return {
    match: {
      row: { kind: isNew ? 'collection' : 'item' },
      pathParameters: isNew || id === undefined ? {} : { id: String(id) },
    },
    collection,
    entry,
    action,
    response: {
      status: isNew ? 201 : 200,
      headers: [],
      content: contentOf(isGone ? { deleted: true, previous: properties } : properties),
    },
    shown: () => earlier,
    given: undefined,
  }
}

/** More tags than this count as a change of everything. */
const maxTags = 5_000

type PostChange = Extract<Change, { kind: 'post' }>

const parentOf = ({ before, after }: Pick<PostChange, 'before' | 'after'>): number | undefined => {
  const parent = (after ?? before)?.['parent']
  return typeof parent === 'number' && parent > 0 ? parent : undefined
}

/**
 * Gives the tags that changes reach. A response that the companion describes completely is reached by changes of its listed parts, any
 * other one by the same table as a write through the gateway. undefined when the changes may reach everything of the service.
 */
class ChangedTags {
  readonly #names: TagNames
  readonly #table: Readonly<Record<string, CollectionTags>>
  readonly #writtenTags: (write: SiteWrite) => readonly string[]

  constructor(
    names: TagNames,
    table: Readonly<Record<string, CollectionTags>>,
    writtenTags: (write: SiteWrite) => readonly string[],
  ) {
    this.#names = names
    this.#table = table
    this.#writtenTags = writtenTags
  }

  #ofItem(reported: Item): readonly string[] | undefined {
    const item = isKnown(reported) ? reported : { ...reported, before: undefined, after: undefined }
    const entry = lookUp(this.#table, item.collection)
    if (entry === undefined || Object.values(entry.effects).includes('everything')) return undefined
    const tags = actionsOf(item).flatMap((action) => this.#writtenTags(asWrite(item, entry, action)))
    return reachedAsWhole.has(item.collection) ? [...tags, this.#names.any(item.collection)] : tags
  }

  /** The tag of responses that are not described completely. Without lists the object is visible to editors only, by its id. */
  #seen(isSeen: boolean): readonly string[] {
    return isSeen ? [this.#names.companionUnknown] : []
  }

  #ofRevision(change: PostChange): readonly string[] {
    const parent = parentOf(change)
    // The companion reports its post as well.
    if (parent === undefined) return []
    const tags = revisedCollections.flatMap((collection) =>
      [this.#names.item, this.#names.revisionsOf, this.#names.autosavesOf].map((tag) =>
        tag(collection, String(parent)),
      ),
    )
    const any = [...reachedAsWhole].map(this.#names.any)
    // What shows the number of revisions names their list; one that is saved again, as an autosave is, leaves the number as it was.
    const isUpdate = isThere(change.before) && isThere(change.after)
    const post = isUpdate ? [] : [tagOfBlog(this.#names, change.blog)('p', String(parent))]
    return [
      ...tags.filter((tag) => tag !== undefined),
      ...any,
      this.#names.unknownDependencies,
      this.#names.opaque,
      ...post,
    ]
  }

  #ofPost(change: PostChange): readonly string[] | undefined {
    const { id, type, before, after } = change
    if (type === 'revision') return this.#ofRevision(change)
    if (hiddenTypes.has(type)) return []
    const collection = lookUp(collectionOfChangedType, type)
    if (collection === undefined || collection === 'comments' || id <= 0) return undefined
    const item = { collection, id, before, after, hasStatuses: true }
    const tags = this.#ofItem(item)
    if (tags === undefined) return undefined
    const hidden = lookUp(this.#table, collection)?.refinement?.hidden ?? []
    const isListed = !isHidden(before, hidden) || !isHidden(after, hidden)
    return [...tags, ...this.#seen(isListed)]
  }

  #ofTerm(change: Extract<Change, { kind: 'term' }>): readonly string[] | undefined {
    const { id, before, after } = change
    const collection = lookUp(collectionOfChangedTaxonomy, change.taxonomy)
    if (collection === undefined || id <= 0) return undefined
    const tags = this.#ofItem({ collection, id, before, after, hasStatuses: false })
    return tags && [...tags, ...this.#seen(true)]
  }

  #ofComment(change: Extract<Change, { kind: 'comment' }>): readonly string[] | undefined {
    const { id, post, before, after } = change
    const withPost = (state: MaybeState): MaybeState => state && { ...state, post }
    const states = { before: withPost(before), after: withPost(after) }
    const item = { collection: 'comments', id, ...states, hasStatuses: true }
    const tags = this.#ofItem(item)
    return tags && [...tags, ...this.#seen(true)]
  }

  /** Content that gets another author, or is deleted with a user, has its own changes. */
  #ofUser(id: number): readonly string[] | undefined {
    const entry = lookUp(this.#table, 'users')
    if (entry === undefined) return undefined
    const tags = this.#writtenTags(asWrite({ ...unknownItem, collection: 'users', id }, entry, 'update'))
    return [
      ...tags,
      this.#names.any('users'),
      this.#names.any('media'),
      this.#names.callers,
      ...this.#seen(true),
    ]
  }

  #ofOption(name: string): readonly string[] | undefined {
    if (isUnshownOption(name)) return []
    const collection = lookUp(collectionOfOption, name)
    if (collection !== undefined) {
      const tags = this.#ofItem({ ...unknownItem, collection })
      return tags && [...tags, this.#names.companionUnknown]
    }
    const argument = lookUp(argumentOfOption, name)
    const settings = lookUp(this.#table, 'settings')
    if (argument === undefined || settings === undefined) return undefined
    const item: Item = { ...unknownItem, collection: 'settings', after: {} }
    return [
      ...this.#writtenTags({ ...asWrite(item, settings, 'update'), given: [argument] }),
      this.#names.companionUnknown,
    ]
  }

  #ofOne(change: Change): readonly string[] | undefined {
    switch (change.kind) {
      case 'post':
        return this.#ofPost(change)
      case 'term':
        return this.#ofTerm(change)
      case 'comment':
        return this.#ofComment(change)
      case 'user':
        return this.#ofUser(change.id)
      case 'option':
        return this.#ofOption(change.name)
      case 'table':
      case 'all':
        return undefined
    }
  }

  of(changes: readonly Change[]): readonly string[] | undefined {
    const tags = new Set<string>()
    for (const change of changes) {
      const described = describedChange(this.#names, change)
      if (described === undefined || tags.size > maxTags) return undefined
      for (const tag of this.#ofOne(change) ?? [this.#names.undescribed]) tags.add(tag)
      for (const tag of described) tags.add(tag)
    }
    return [...tags]
  }
}

export const createChangedTags = (
  names: TagNames,
  table: Readonly<Record<string, CollectionTags>>,
  writtenTags: (write: SiteWrite) => readonly string[],
): ((changes: readonly Change[]) => readonly string[] | undefined) => {
  const changedTags = new ChangedTags(names, table, writtenTags)
  return (changes) => changedTags.of(changes)
}
