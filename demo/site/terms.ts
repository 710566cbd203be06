import { type Call, contextOf, ok, type Resource, type SiteResponse } from './call.ts'
import type { taxonomyBases } from './collections.ts'
import type { Term } from './entry.ts'
import { selfLink, withCuries } from './links.ts'
import { cutPage } from './paging.ts'
import { denied, SiteFault } from './site-fault.ts'
import { slugOf } from './store.ts'
import { flag, integer, integers, text, texts } from './values.ts'

/** What distinguishes one taxonomy's collection from another. */
export type TermSpec = {
  readonly base: string
  readonly taxonomy: string
  readonly hierarchical: boolean
  /** Collection of the items that carry the terms, or undefined when they are not listed by term. */
  readonly items: string | undefined
}

const linkOf = (call: Call, term: Term): string => {
  const parent = call.site.store.terms.get(term.parent)
  const path = parent === undefined ? term.slug : `${parent.slug}/${term.slug}`
  return `${call.site.home}/index.php/${term.taxonomy === 'post_tag' ? 'tag' : 'category'}/${path}/`
}

const render = (call: Call, spec: TermSpec, term: Term): Record<string, unknown> => {
  const base = `${call.site.root}/${call.site.names.content}`
  const short = contextOf(call) === 'embed'
  return {
    id: term.id,
    ...(short ? {} : { count: call.site.store.countOf(term), description: term.description }),
    link: linkOf(call, term),
    name: term.name,
    slug: term.slug,
    taxonomy: term.taxonomy,
    ...(short || !spec.hierarchical ? {} : { parent: term.parent }),
    ...(short ? {} : { meta: [] }),
    _links: withCuries({
      ...selfLink(call.caller, `${base}/${spec.base}/${term.id}`),
      collection: [{ href: `${base}/${spec.base}` }],
      about: [{ href: `${base}/taxonomies/${spec.taxonomy}` }],
      ...(term.parent === 0
        ? {}
        : { up: [{ embeddable: true, href: `${base}/${spec.base}/${term.parent}` }] }),
      ...(spec.items && { 'wp:post_type': [{ href: `${base}/${spec.items}?${spec.base}=${term.id}` }] }),
    }),
  }
}

const listTerms = (call: Call, spec: TermSpec): readonly Term[] => {
  const { args } = call
  const { store } = call.site
  const post = integer(args, 'post')
  const carried = post === undefined ? undefined : (store.get(post)?.terms[spec.taxonomy] ?? [])
  const included = integers(args, 'include')
  const slugs = texts(args, 'slug')
  const parent = integer(args, 'parent')
  const search = text(args, 'search')?.toLowerCase() ?? ''
  const keeps: ((term: Term) => boolean)[] = [
    (term) => term.taxonomy === spec.taxonomy,
    (term) => carried === undefined || carried.includes(term.id),
    (term) => included.length === 0 || included.includes(term.id),
    (term) => !integers(args, 'exclude').includes(term.id),
    (term) => slugs.length === 0 || slugs.includes(term.slug),
    (term) => parent === undefined || term.parent === parent,
    (term) => term.name.toLowerCase().includes(search),
    (term) => !flag(args, 'hide_empty') || store.countOf(term) > 0,
  ]
  const byId = text(args, 'orderby') === 'id'
  const down = text(args, 'order') === 'desc' ? -1 : 1
  return [...store.terms.values()]
    .filter((term) => keeps.every((keep) => keep(term)))
    .sort((a, b) => (byId ? a.id - b.id : a.name.localeCompare(b.name) || a.id - b.id) * down)
}

const uniqueTermSlug = (call: Call, spec: TermSpec, wanted: string, except: number): string => {
  const taken = (slug: string): boolean =>
    [...call.site.store.terms.values()].some(
      (term) => term.taxonomy === spec.taxonomy && term.slug === slug && term.id !== except,
    )
  let slug = wanted
  for (let suffix = 2; taken(slug); suffix += 1) slug = `${wanted}-${suffix}`
  return slug
}

const write = (call: Call, spec: TermSpec, before: Term): Term => {
  const { args } = call
  const name = text(args, 'name') ?? before.name
  const slug = text(args, 'slug') ?? (before.slug === '' ? name : before.slug)
  const parent = integer(args, 'parent') ?? before.parent
  if (parent !== 0 && !call.site.store.terms.has(parent)) {
    throw new SiteFault(400, 'rest_term_invalid', 'Parent term does not exist.')
  }
  return {
    ...before,
    name,
    slug: uniqueTermSlug(call, spec, slugOf(slug), before.id),
    description: text(args, 'description') ?? before.description,
    parent,
  }
}

/** As many terms as any demo needs. */
const maxTerms = 2000

const create = (call: Call, spec: TermSpec): SiteResponse => {
  const { store, root, names } = call.site
  const name = text(call.args, 'name') ?? ''
  const parent = integer(call.args, 'parent') ?? 0
  const twin = [...store.terms.values()].find(
    (term) => term.taxonomy === spec.taxonomy && term.name === name && term.parent === parent,
  )
  if (twin !== undefined) {
    const message = 'A term with the name provided already exists with this parent.'
    throw new SiteFault(400, 'term_exists', message, { term_id: twin.id })
  }
  if (store.terms.size >= maxTerms)
    throw new SiteFault(507, 'demo_store_full', 'The embedded site holds no more terms.')
  const id = Math.max(0, ...store.terms.keys()) + 1
  const blank: Term = { id, taxonomy: spec.taxonomy, name: '', slug: '', description: '', parent: 0 }
  store.terms.set(id, write(call, spec, blank))
  return {
    status: 201,
    headers: { Location: `${root}/${names.content}/${spec.base}/${id}` },
    body: render(call, spec, termOf(call, spec, id)),
  }
}

const termOf = (call: Call, spec: TermSpec, id: number | undefined): Term => {
  const term = call.site.store.terms.get(id ?? 0)
  if (term === undefined || term.taxonomy !== spec.taxonomy) {
    throw new SiteFault(404, 'rest_term_invalid', 'Term does not exist.')
  }
  return term
}

const remove = (call: Call, spec: TermSpec, term: Term): SiteResponse => {
  if (!flag(call.args, 'force')) {
    const message = "Terms do not support trashing. Set 'force=true' to delete."
    throw new SiteFault(501, 'rest_trash_not_supported', message)
  }
  const { _links, ...previous } = render(call, spec, term)
  const { store } = call.site
  store.terms.delete(term.id)
  for (const type of ['post', 'wp_block', 'nav_menu_item']) {
    for (const entry of store.ofType(type)) {
      const ids = entry.terms[term.taxonomy]
      if (ids?.includes(term.id) !== true) continue
      store.put({ ...entry, terms: { ...entry.terms, [term.taxonomy]: ids.filter((id) => id !== term.id) } })
    }
  }
  return ok({ deleted: true, previous })
}

const permit = (call: Call, spec: TermSpec): void => {
  if (call.row.kind === 'item') termOf(call, spec, integer(call.args, 'id'))
  if (call.caller.role === 'admin') return
  const refuse = (code: string, what: string) =>
    denied(call.caller, code, `Sorry, you are not allowed to ${what}.`)
  if (call.method === 'GET' && spec.taxonomy === 'nav_menu') throw refuse('rest_cannot_view', 'view menus')
  if (call.method === 'GET' && contextOf(call) === 'edit') {
    throw refuse('rest_forbidden_context', 'edit terms in this taxonomy')
  }
  if (call.method === 'GET') return
  if (call.row.kind === 'collection') throw refuse('rest_cannot_create', 'create terms in this taxonomy')
  if (call.method === 'DELETE') throw refuse('rest_cannot_delete', 'delete this term')
  throw refuse('rest_cannot_update', 'edit this term')
}

const runCollection = (call: Call, spec: TermSpec): SiteResponse => {
  if (call.method !== 'GET') return create(call, spec)
  const page = cutPage(call, `/${call.site.names.content}/${spec.base}`, listTerms(call, spec), undefined)
  return ok(
    page.items.map((term) => render(call, spec, term)),
    page.headers,
  )
}

const runItem = (call: Call, spec: TermSpec): SiteResponse => {
  const term = termOf(call, spec, integer(call.args, 'id'))
  if (call.method === 'GET') return ok(render(call, spec, term))
  if (call.method === 'DELETE') return remove(call, spec, term)
  const after = write(call, spec, term)
  call.site.store.terms.set(term.id, after)
  return ok(render(call, spec, after))
}

/** The collection and the items of one taxonomy. */
export const termResource = (spec: TermSpec): Resource => ({
  permit: (call) => permit(call, spec),
  run: (call) => (call.row.kind === 'item' ? runItem(call, spec) : runCollection(call, spec)),
})

/** The taxonomies whose terms have routes. */
export const termSpecs = (bases: ReturnType<typeof taxonomyBases>): readonly TermSpec[] =>
  Object.entries(bases).map(([taxonomy, base]) => ({
    base,
    taxonomy,
    hierarchical: taxonomy === 'category',
    items: taxonomy === 'category' || taxonomy === 'post_tag' ? 'posts' : undefined,
  }))
