import type { Call, Context, Site } from './call.ts'
import type { Caller } from './caller.ts'
import { type CollectionSpec, taxonomyBases } from './collections.ts'
import type { Entry } from './entry.ts'

/** One link relation's targets, as WordPress writes them. */
export type Links = Record<string, Record<string, unknown>[]>

const curies = [{ name: 'wp', href: 'https://api.w.org/{rel}', templated: true }]

/** Adds the prefix's explanation when a relation needs it. */
export const withCuries = (links: Links): Links =>
  Object.keys(links).some((relation) => relation.startsWith('wp:')) ? { ...links, curies } : links

const everyMethod = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/** A link to the item itself, with the methods this caller may use on it. */
export const selfLink = (caller: Caller, href: string, methods = everyMethod): Links => ({
  self: [{ href, targetHints: { allow: caller.role === 'admin' ? methods : ['GET'] } }],
})

type Target = {
  readonly site: Site
  readonly spec: CollectionSpec
  readonly entry: Entry
  readonly href: string
}

const versionLinks = ({ site, entry, href }: Target): Links => {
  const versions = site.store.versionsOf(entry.id, 'both')
  const history: Links = { 'version-history': [{ count: versions.length, href: `${href}/revisions` }] }
  const [newest] = versions
  if (newest === undefined) return history
  return { ...history, 'predecessor-version': [{ id: newest.id, href: `${href}/revisions/${newest.id}` }] }
}

const linkMakers: Readonly<Record<CollectionSpec['links'][number], (target: Target, base: string) => Links>> =
  {
    author: ({ entry }, base) => ({ author: [{ embeddable: true, href: `${base}/users/${entry.author}` }] }),
    replies: ({ entry }, base) => ({
      replies: [{ embeddable: true, href: `${base}/comments?post=${entry.id}` }],
    }),
    versions: versionLinks,
    up: ({ entry, spec }, base) =>
      entry.parent === 0 ? {} : { up: [{ embeddable: true, href: `${base}/${spec.base}/${entry.parent}` }] },
    featured: ({ entry }, base) =>
      entry.featuredMedia === 0
        ? {}
        : { 'wp:featuredmedia': [{ embeddable: true, href: `${base}/media/${entry.featuredMedia}` }] },
    attachments: ({ entry }, base) => ({ 'wp:attachment': [{ href: `${base}/media?parent=${entry.id}` }] }),
  }

const termLinks = ({ entry, spec, site }: Target, base: string): Links => {
  const taxonomies = Object.values(spec.taxonomies)
  if (taxonomies.length === 0) return {}
  const bases = taxonomyBases(site.names)
  return {
    'wp:term': taxonomies.map((taxonomy) => ({
      taxonomy,
      embeddable: true,
      href: `${base}/${bases[taxonomy]}?post=${entry.id}`,
    })),
  }
}

const menuTargetLink = ({ entry }: Target, base: string): Links => {
  const { type, object, object_id: id } = entry.own
  if (type === 'taxonomy') {
    return {
      'wp:menu-item-object': [{ taxonomy: object, embeddable: true, href: `${base}/categories/${id}` }],
    }
  }
  if (type !== 'post_type') return {}
  const collection = object === 'page' ? 'pages' : 'posts'
  return {
    'wp:menu-item-object': [{ post_type: object, embeddable: true, href: `${base}/${collection}/${id}` }],
  }
}

const actionLinks = ({ spec, href }: Target): Links => {
  const actions = [
    ...(spec.type === 'attachment' ? [] : ['publish']),
    'unfiltered-html',
    ...(spec.type === 'post' ? ['sticky'] : []),
    ...(spec.links.includes('author') ? ['assign-author'] : []),
    ...Object.keys(spec.taxonomies).flatMap((name) => [`create-${name}`, `assign-${name}`]),
  ]
  return Object.fromEntries(actions.map((action) => [`wp:action-${action}`, [{ href }]]))
}

/** All links of an item for one caller. */
export const itemLinks = (call: Call, spec: CollectionSpec, entry: Entry, context: Context): Links => {
  const { site, caller } = call
  const base = `${site.root}/${site.names.content}`
  const collection = `${base}/${spec.base}`
  const target: Target = { site, spec, entry, href: `${collection}/${entry.id}` }
  return withCuries({
    ...selfLink(caller, target.href),
    collection: [{ href: collection }],
    about: [{ href: `${base}/types/${spec.type}` }],
    ...Object.assign({}, ...spec.links.map((name) => linkMakers[name](target, base))),
    ...termLinks(target, base),
    ...(spec.type === 'nav_menu_item' ? menuTargetLink(target, base) : {}),
    ...(context === 'edit' && caller.role === 'admin' ? actionLinks(target) : {}),
  })
}
