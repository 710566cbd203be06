import type { Call, Values } from './call.ts'
import type { CollectionSpec } from './collections.ts'
import type { Entry } from './entry.ts'
import { invalidParameter, SiteFault } from './site-fault.ts'
import { slugOf } from './store.ts'
import { instant, integer, integers, rawText, text, texts } from './values.ts'

type Patch = { -readonly [Key in keyof Entry]?: Entry[Key] }

const textArguments = {
  status: 'status',
  password: 'password',
  comment_status: 'commentStatus',
  ping_status: 'pingStatus',
  format: 'format',
  template: 'template',
} as const

const rawArguments = { title: 'title', content: 'content', excerpt: 'excerpt' } as const

const plainPatch = (args: Values): Patch => {
  const patch: Patch = {}
  for (const [name, key] of Object.entries(textArguments)) {
    const value = text(args, name)
    if (value !== undefined) patch[key] = value
  }
  for (const [name, key] of Object.entries(rawArguments)) {
    const value = rawText(args, name)
    if (value !== undefined) patch[key] = value
  }
  const slug = text(args, 'slug')
  if (slug !== undefined) patch.slug = slugOf(slug)
  const date = instant(args, 'date_gmt') ?? instant(args, 'date')
  if (date !== undefined) patch.date = date
  if (typeof args['sticky'] === 'boolean') patch.sticky = args['sticky']
  const order = integer(args, 'menu_order')
  if (order !== undefined) patch.menuOrder = order
  return patch
}

const referencePatch = (call: Call, spec: CollectionSpec): Patch => {
  const { args, site } = call
  const patch: Patch = {}
  const author = integer(args, 'author')
  if (author !== undefined && !site.store.users.has(author)) {
    throw new SiteFault(400, 'rest_invalid_author', 'Invalid author ID.')
  }
  if (author !== undefined) patch.author = author
  const media = integer(args, 'featured_media')
  // A number that is no attachment is dropped without a word.
  if (media !== undefined && (media === 0 || site.store.get(media)?.type === 'attachment')) {
    patch.featuredMedia = media
  }
  const parent = integer(args, spec.type === 'attachment' ? 'post' : 'parent')
  if (parent !== undefined && parent !== 0 && site.store.get(parent) === undefined) {
    throw new SiteFault(400, 'rest_post_invalid_id', 'Invalid post parent ID.')
  }
  if (parent !== undefined) patch.parent = parent
  return patch
}

const termIds = (args: Values, name: string): readonly number[] | undefined => {
  const single = integer(args, name)
  if (single !== undefined) return single === 0 ? [] : [single]
  return Array.isArray(args[name]) ? integers(args, name) : undefined
}

const termsPatch = (call: Call, spec: CollectionSpec, entry: Entry): Patch => {
  const terms = { ...entry.terms }
  // A post left without a category falls into the default one, but only when it is written the next time.
  if (entry.type === 'post' && terms['category']?.length === 0) terms['category'] = [1]
  for (const [name, taxonomy] of Object.entries(spec.taxonomies)) {
    const ids = termIds(call.args, name)
    if (ids !== undefined) {
      terms[taxonomy] = ids.filter((id) => call.site.store.terms.get(id)?.taxonomy === taxonomy)
    }
  }
  return { terms }
}

type OwnArguments = {
  readonly plain: readonly string[]
  readonly raw: readonly string[]
  readonly lists: readonly string[]
}

const noOwnArguments: OwnArguments = { plain: [], raw: [], lists: [] }

const ownArguments: Readonly<Record<string, OwnArguments>> = {
  attachment: { plain: ['alt_text'], raw: ['caption', 'description'], lists: [] },
  nav_menu_item: {
    plain: ['type', 'object', 'object_id', 'url', 'attr_title', 'target'],
    raw: [],
    lists: ['classes', 'xfn'],
  },
}

const ownPatch = (call: Call, spec: CollectionSpec, entry: Entry): Patch => {
  const { args } = call
  const { plain, raw, lists } = ownArguments[spec.type] ?? noOwnArguments
  const own: Record<string, unknown> = { ...entry.own }
  for (const name of plain) if (args[name] !== undefined) own[name] = args[name]
  for (const name of raw) own[name] = rawText(args, name) ?? own[name]
  for (const name of lists) if (Array.isArray(args[name])) own[name] = texts(args, name)
  const description = spec.type === 'nav_menu_item' ? text(args, 'description') : undefined
  return { own, ...(description === undefined ? {} : { content: description }) }
}

const metaPatch = (call: Call, own: Entry['own'], entry: Entry): Patch => {
  const meta = call.args['meta'] as Values | null | undefined
  const sync = meta?.[call.site.names.patternSyncStatus]
  const footnotes = meta?.['footnotes']
  return {
    ...(sync === undefined ? {} : { own: { ...own, syncStatus: sync } }),
    ...(typeof footnotes === 'string' ? { meta: { ...entry.meta, footnotes } } : {}),
  }
}

const trashedSuffix = '__trashed'

/** A publication in the future waits; one that was to wait for a moment gone by does not. */
const scheduled = (entry: Entry, now: number): string => {
  if (entry.status !== 'publish' && entry.status !== 'future') return entry.status
  return entry.date > now ? 'future' : 'publish'
}

/** The slug and status that follow from what was asked for: scheduling, the way out of the trash, uniqueness. */
const settled = (call: Call, entry: Entry, before: Entry): Entry => {
  const status = scheduled(entry, call.site.now())
  const untrashed = before.status === 'trash' && status !== 'trash' && entry.slug.endsWith(trashedSuffix)
  const slug = untrashed ? entry.slug.slice(0, -trashedSuffix.length) : entry.slug
  if (status === 'draft' || status === 'pending') return { ...entry, status, slug }
  const wanted = slug === '' ? slugOf(entry.title) || String(entry.id) : slug
  return { ...entry, status, slug: call.site.store.uniqueSlug(wanted, entry.type, entry.id) }
}

/** Templates that posts and pages may name; the theme brings no others. */
const pageTemplates = ['', 'single-with-sidebar', 'page-no-title']

/** What is wrong depends on which of the two came later. */
const stickyMessage = (args: Values): string => {
  if (args['sticky'] === undefined) return 'A sticky post can not be password protected.'
  if (args['password'] === undefined) return 'A password protected post can not be set to sticky.'
  return 'A post can not be sticky and have a password.'
}

const checkTogether = (args: Values, entry: Entry): void => {
  if (entry.sticky && entry.password !== '') {
    throw new SiteFault(400, 'rest_invalid_field', stickyMessage(args))
  }
  if (!pageTemplates.includes(entry.template)) {
    const message = `template is not one of ${pageTemplates.slice(1).join(', ')}.`
    throw invalidParameter('template', 'rest_invalid_param', message, null)
  }
}

/** The entry with the arguments of a call written over it; nothing is stored yet. */
export const written = (call: Call, spec: CollectionSpec, before: Entry): Entry => {
  const own = ownPatch(call, spec, before)
  const after: Entry = {
    ...before,
    ...plainPatch(call.args),
    ...referencePatch(call, spec),
    ...termsPatch(call, spec, before),
    ...own,
    ...metaPatch(call, own.own ?? {}, before),
    modified: call.site.now(),
  }
  checkTogether(call.args, after)
  return settled(call, after, before)
}

/** The entry as it lies in the trash. */
export const trashed = (call: Call, entry: Entry): Entry => ({
  ...entry,
  status: 'trash',
  slug: call.site.store.uniqueSlug(`${entry.slug}${trashedSuffix}`, entry.type, entry.id),
  modified: call.site.now(),
})

/** Keeps the new state as a revision: the first one always, later ones when the text changed. */
export const keepRevision = (call: Call, spec: CollectionSpec, before: Entry, after: Entry): void => {
  const changed =
    before.title !== after.title ||
    before.content !== after.content ||
    before.excerpt !== after.excerpt ||
    before.meta['footnotes'] !== after.meta['footnotes']
  const { store, now } = call.site
  const isFirst = store.versionsOf(after.id, 'revision').length === 0
  if (!spec.revisions || !(changed || isFirst)) return
  const date = now()
  store.put({
    ...after,
    id: store.nextId(),
    type: 'revision',
    status: 'inherit',
    slug: `${after.id}-revision-v1`,
    parent: after.id,
    author: call.caller.userId,
    password: '',
    terms: {},
    date,
    modified: date,
    own: { kind: 'revision' },
  })
}
