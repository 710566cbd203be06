import type { Context, Site } from './call.ts'
import type { CollectionSpec } from './collections.ts'
import { hasBlocks, permalinkOf, renderContent, renderExcerpt } from './content-rendering.ts'
import type { Entry } from './entry.ts'
import { slugOf } from './store.ts'
import { siteDate } from './values.ts'

/** How an entry is shown. */
export type View = {
  readonly site: Site
  readonly spec: CollectionSpec
  readonly context: Context
  /** Whether the content of a password-protected entry may be shown. */
  readonly unlocked: boolean
  /** Words of an excerpt made from the content. */
  readonly excerptLength: number
}

/** One field: where it shows, and its value. */
export type Field = {
  readonly contexts: readonly Context[]
  value(entry: Entry, view: View): unknown
}

/** Contexts of fields that an embedded item shows too. */
export const everywhere: readonly Context[] = ['view', 'embed', 'edit']
/** Contexts of fields of a full item. */
export const full: readonly Context[] = ['view', 'edit']
/** Fields for editors alone. */
export const editing: readonly Context[] = ['edit']

/** A field of the given contexts. */
export const field = (contexts: readonly Context[], value: Field['value']): Field => ({ contexts, value })

/** `raw` for editors beside `rendered` for all; an embedded navigation is made for its editor and shows both. */
export const rendered = (raw: string, html: string, view: View): Record<string, string> =>
  view.context === 'edit' || isEmbeddedNavigation(view) ? { raw, rendered: html } : { rendered: html }

const isEmbeddedNavigation = (view: View): boolean =>
  view.context === 'embed' && view.spec.type === 'wp_navigation'

const isLocked = (entry: Entry, view: View): boolean => entry.password !== '' && !view.unlocked

const content = (entry: Entry, view: View): Record<string, unknown> => {
  const versioned = view.context === 'edit' || isEmbeddedNavigation(view)
  const version = versioned ? { block_version: hasBlocks(entry.content) ? 1 : 0 } : {}
  // Blocks are read by the editor: they have no rendered form, and `raw` in every context.
  if (entry.type === 'wp_block') return { raw: entry.content, protected: entry.password !== '', ...version }
  const locked = isLocked(entry, view)
  const html = locked ? '' : renderContent(view.site, entry.content)
  return { ...rendered(entry.content, html, view), protected: entry.password !== '', ...version }
}

const title = (entry: Entry, view: View): unknown => {
  const html = entry.status === 'private' ? `Private: ${entry.title}` : entry.title
  if (entry.type !== 'wp_block') return rendered(entry.title, html, view)
  // Blocks have no rendered title, so that nothing is left of it when they are embedded: an empty PHP array.
  return view.context === 'embed' ? [] : { raw: entry.title }
}

const excerpt = (entry: Entry, view: View): Record<string, unknown> => {
  const html = isLocked(entry, view) ? '' : renderExcerpt(view.site, entry, view.excerptLength)
  return { ...rendered(entry.excerpt, html, view), protected: entry.password !== '' }
}

const guid = (entry: Entry, view: View): Record<string, string> => {
  const source = entry.own['source_url']
  const address = typeof source === 'string' ? source : `${view.site.home}/?p=${entry.id}`
  return rendered(address, address, view)
}

const permalinkTemplate = (entry: Entry, view: View): string => {
  if (entry.type === 'attachment') return `${view.site.home}/?attachment_id=${entry.id}`
  if (entry.status === 'trash') return `${view.site.home}/?p=${entry.id}`
  return `${view.site.home}/index.php/${entry.type === 'page' ? '%pagename%' : '%postname%'}/`
}

const termClasses = (entry: Entry, site: Site): string[] =>
  Object.entries(entry.terms).flatMap(([taxonomy, ids]) =>
    ids.flatMap((id) => {
      const term = site.store.terms.get(id)
      return term === undefined ? [] : [`${taxonomy === 'post_tag' ? 'tag' : taxonomy}-${term.slug}`]
    }),
  )

const classList = (entry: Entry, view: View): string[] => [
  `post-${entry.id}`,
  entry.type,
  `type-${entry.type}`,
  `status-${entry.status}`,
  ...(entry.type === 'post' ? [`format-${entry.format}`] : []),
  ...(entry.featuredMedia === 0 ? [] : ['has-post-thumbnail']),
  ...(isLocked(entry, view) ? ['post-password-required'] : []),
  'hentry',
  ...termClasses(entry, view.site),
]

/** An empty PHP array is written `[]`, whatever it stands for. */
export const phpMap = (map: Readonly<Record<string, unknown>>): unknown =>
  Object.keys(map).length === 0 ? [] : map

/** The fields that several types share. */
export const sharedFields: Readonly<Record<string, Field>> = {
  id: field(everywhere, (entry) => entry.id),
  date: field(everywhere, (entry) => siteDate(entry.date)),
  date_gmt: field(full, (entry) => siteDate(entry.date)),
  guid: field(full, guid),
  modified: field(full, (entry) => siteDate(entry.modified)),
  modified_gmt: field(full, (entry) => siteDate(entry.modified)),
  password: field(editing, (entry) => entry.password),
  slug: field(everywhere, (entry) => entry.slug),
  status: field(full, (entry) => entry.status),
  type: field(everywhere, (entry) => entry.type),
  link: field(everywhere, (entry, view) => permalinkOf(view.site, entry)),
  title: field(everywhere, title),
  content: field(full, content),
  excerpt: field(everywhere, excerpt),
  author: field(everywhere, (entry) => entry.author),
  featured_media: field(everywhere, (entry) => entry.featuredMedia),
  parent: field(full, (entry) => entry.parent),
  menu_order: field(full, (entry) => entry.menuOrder),
  comment_status: field(full, (entry) => entry.commentStatus),
  ping_status: field(full, (entry) => entry.pingStatus),
  sticky: field(full, (entry) => entry.sticky),
  template: field(full, (entry) => entry.template),
  format: field(full, (entry) => entry.format),
  meta: field(full, (entry) => phpMap(entry.type === 'attachment' ? {} : { footnotes: '', ...entry.meta })),
  permalink_template: field(editing, permalinkTemplate),
  generated_slug: field(editing, (entry) => slugOf(entry.title)),
  class_list: field(full, classList),
}
