import { type Call, contextOf, ok, type Resource } from './call.ts'
import { type CollectionSpec, taxonomyBases } from './collections.ts'
import { permalinkOf } from './content-rendering.ts'
import { withCuries } from './links.ts'
import { cutPage } from './paging.ts'
import { denied, SiteFault } from './site-fault.ts'
import { theme } from './templates.ts'
import { text } from './values.ts'

const everyone = (): void => undefined

const typeLinks = (call: Call, listing: string, base: string) => ({
  _links: withCuries({
    collection: [{ href: `${call.site.root}/${call.site.names.content}/${listing}` }],
    'wp:items': [{ href: `${call.site.root}/${call.site.names.content}/${base}` }],
  }),
})

const oneOf = (call: Call, all: Record<string, unknown>, part: string, fault: [string, string]) => {
  const name = call.path[part]
  if (name === undefined) return ok(all)
  const one = Object.hasOwn(all, name) ? all[name] : undefined
  if (one === undefined) throw new SiteFault(404, fault[0], fault[1])
  return ok(one)
}

/** The post types. */
export const typesResource = (specs: Readonly<Record<string, CollectionSpec>>): Resource => ({
  permit: everyone,
  run: (call) => {
    const types = Object.values(specs).map((spec) => [
      spec.type,
      {
        description: '',
        hierarchical: spec.type === 'page',
        has_archive: false,
        name: spec.base,
        slug: spec.type,
        icon: 'dashicons-admin-post',
        taxonomies: Object.values(spec.taxonomies),
        rest_base: spec.base,
        rest_namespace: call.site.names.content,
        template: [],
        template_lock: false,
        ...typeLinks(call, 'types', spec.base),
      },
    ])
    return oneOf(call, Object.fromEntries(types), 'type', ['rest_type_invalid', 'Invalid post type.'])
  },
})

/** The taxonomies. */
export const taxonomiesResource: Resource = {
  permit: everyone,
  run: (call) => {
    const bases = taxonomyBases(call.site.names)
    const all = ['category', 'post_tag'].map((slug) => [
      slug,
      {
        name: slug === 'category' ? 'Categories' : 'Tags',
        slug,
        description: '',
        types: ['post'],
        hierarchical: slug === 'category',
        rest_base: bases[slug],
        rest_namespace: call.site.names.content,
        ...typeLinks(call, 'taxonomies', bases[slug] ?? slug),
      },
    ])
    const fault: [string, string] = ['rest_taxonomy_invalid', 'Invalid taxonomy.']
    return oneOf(call, Object.fromEntries(all), 'taxonomy', fault)
  },
}

/** The statuses that everyone may know of. */
export const statusesResource: Resource = {
  permit: everyone,
  run: (call) => {
    const archives = [{ href: `${call.site.root}/${call.site.names.content}/posts` }]
    const publish = { name: 'Published', public: true, queryable: true, slug: 'publish', date_floating: false, _links: { archives } } // biome-ignore format: one record
    return oneOf(call, { publish }, 'status', ['rest_status_invalid', 'Invalid status.'])
  },
}

/** The one theme; leads to the site's global styles. */
export const themesResource: Resource = {
  permit: (call) => {
    if (call.caller.role === 'admin') return
    throw denied(call.caller, 'rest_cannot_view_themes', 'Sorry, you are not allowed to view themes.')
  },
  run: (call) => {
    const base = `${call.site.root}/${call.site.names.content}`
    const styles = call.site.store.ofType('wp_global_styles')[0]
    const active = {
      stylesheet: theme.stylesheet,
      template: theme.stylesheet,
      name: { raw: theme.name, rendered: theme.name },
      status: 'active',
      _links: withCuries({
        collection: [{ href: `${base}/themes` }],
        'wp:user-global-styles': [{ href: `${base}/global-styles/${styles?.id ?? 0}` }],
      }),
    }
    const page = cutPage(call, `/${call.site.names.content}/themes`, [active], undefined)
    return ok(page.items, page.headers)
  },
}

/** Search in the titles and contents of published posts and pages. */
export const searchResource: Resource = {
  permit: everyone,
  run: (call) => {
    const { site } = call
    const words = text(call.args, 'search')?.toLowerCase() ?? ''
    const all = ['post', 'page']
      .flatMap((type) => site.store.ofType(type))
      .filter((entry) => entry.status === 'publish' && entry.password === '')
      .filter((entry) => `${entry.title}\n${entry.content}`.toLowerCase().includes(words))
      .sort((a, b) => b.date - a.date || b.id - a.id)
    const page = cutPage(call, `/${site.names.content}/search`, all, undefined)
    const base = `${site.root}/${site.names.content}`
    const items = page.items.map((entry) => ({
      id: entry.id,
      title: entry.title,
      url: permalinkOf(site, entry),
      type: 'post',
      subtype: entry.type,
      _links: {
        self: [
          { embeddable: true, href: `${base}/${entry.type === 'page' ? 'pages' : 'posts'}/${entry.id}` },
        ],
        about: [{ href: `${base}/types/${entry.type}` }],
        collection: [{ href: `${base}/search` }],
      },
    }))
    return ok(
      contextOf(call) === 'embed' ? items.map(({ subtype: _, ...item }) => item) : items,
      page.headers,
    )
  },
}
