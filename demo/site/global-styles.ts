import { type Call, ok, type Resource, type SiteResponse } from './call.ts'
import type { Entry } from './entry.ts'
import { selfLink, withCuries } from './links.ts'
import { cutPage } from './paging.ts'
import { denied, SiteFault } from './site-fault.ts'
import { theme } from './templates.ts'
import { integer, rawText, siteDate } from './values.ts'
import { revisionOf } from './versions.ts'

const methods = ['GET', 'POST', 'PUT', 'PATCH']

const stylesOf = (call: Call, id: number | undefined): Entry => {
  const entry = call.site.store.get(id ?? 0)
  if (entry === undefined || entry.type !== 'wp_global_styles') {
    throw new SiteFault(404, 'rest_global_styles_not_found', 'No global styles config exist with that id.')
  }
  return entry
}

/** Empty settings stay an object here: WordPress takes care of these two. */
const looks = (entry: Entry) => ({ settings: entry.own['settings'] ?? {}, styles: entry.own['styles'] ?? {} })

const render = (call: Call, entry: Entry): Record<string, unknown> => {
  const { site, caller } = call
  const base = `${site.root}/${site.names.content}`
  const href = `${base}/global-styles/${entry.id}`
  const count = site.store.versionsOf(entry.id, 'revision').length
  return {
    id: entry.id,
    title: { raw: entry.title, rendered: entry.title },
    ...looks(entry),
    _links: withCuries({
      ...selfLink(caller, href, methods),
      about: [{ href: `${base}/types/wp_global_styles` }],
      'version-history': [{ count, href: `${href}/revisions` }],
      'wp:action-publish': [{ href }],
      'wp:action-edit-css': [{ href }],
    }),
  }
}

const update = (call: Call, before: Entry): SiteResponse => {
  const { store, now } = call.site
  const { styles, settings } = call.args
  const date = now()
  const after = store.put({
    ...before,
    title: rawText(call.args, 'title') ?? before.title,
    modified: date,
    own: {
      settings: settings ?? before.own['settings'],
      styles: styles ?? before.own['styles'],
    },
  })
  const id = store.nextId()
  const own = { ...after.own, kind: 'revision' }
  store.put({ ...after, id, type: 'revision', status: 'inherit', slug: `${after.id}-revision-v1`, parent: after.id, date, own }) // biome-ignore format: one record
  return ok(render(call, after))
}

/** The site's own styles. */
export const globalStylesItem: Resource = {
  permit: (call) => {
    stylesOf(call, integer(call.path, 'id'))
    if (call.caller.role === 'admin') return
    const [code, verb] = call.method === 'GET' ? ['rest_cannot_view', 'view'] : ['rest_cannot_edit', 'edit']
    throw denied(call.caller, code, `Sorry, you are not allowed to ${verb} this global style.`)
  },
  run: (call) => {
    const entry = stylesOf(call, integer(call.path, 'id'))
    return call.method === 'GET' ? ok(render(call, entry)) : update(call, entry)
  },
}

const renderRevision = (revision: Entry): Record<string, unknown> => ({
  ...looks(revision),
  author: revision.author,
  date: siteDate(revision.date),
  date_gmt: siteDate(revision.date),
  id: revision.id,
  modified: siteDate(revision.modified),
  modified_gmt: siteDate(revision.modified),
  parent: revision.parent,
})

/** Revisions of the site's styles, the list and one. */
export const globalStylesRevisions: Resource = {
  permit: (call) => {
    stylesOf(call, integer(call.path, 'parent'))
    if (call.caller.role === 'admin') return
    const message = 'Sorry, you are not allowed to view revisions of this post.'
    throw denied(call.caller, 'rest_cannot_read', message)
  },
  run: (call) => {
    const { id } = stylesOf(call, integer(call.path, 'parent'))
    if (call.row.kind === 'revision') return ok(renderRevision(revisionOf(call, id)))
    const path = `/${call.site.names.content}/global-styles/${id}/revisions`
    const all = call.site.store.versionsOf(id, 'revision')
    const page = cutPage(call, path, all, 'rest_revision_invalid_page_number')
    return ok(page.items.map(renderRevision), page.headers)
  },
}

const palette = [
  { name: 'Base', slug: 'base', color: '#ffffff' },
  { name: 'Contrast', slug: 'contrast', color: '#111111' },
]

const themeLooks = {
  settings: { appearanceTools: true, color: { palette: { theme: palette } } },
  styles: { color: { background: 'var(--wp--preset--color--base)' } },
}

const variations = ['Evening', 'Noon', 'Morning'].map((title, index) => ({
  version: 3,
  title,
  settings: {
    color: { palette: { theme: palette.map((color) => ({ ...color, slug: `${color.slug}-${index}` })) } },
  },
  styles: { color: { background: `var(--wp--preset--color--base-${index})` } },
}))

/** What the theme brings: its styles, or their variations. */
export const themeStyles: Resource = {
  permit: (call) => {
    if (call.caller.role === 'admin') return
    const message = 'Sorry, you are not allowed to access the global styles on this site.'
    throw denied(call.caller, 'rest_cannot_manage_global_styles', message)
  },
  run: (call) => {
    if (call.path['stylesheet'] !== theme.stylesheet) {
      throw new SiteFault(404, 'rest_theme_not_found', 'Theme not found.')
    }
    if (call.row.id.endsWith('variations')) return ok(variations)
    const href = `${call.site.root}/${call.site.names.content}/global-styles/themes/${theme.stylesheet}`
    return ok({ ...themeLooks, _links: selfLink(call.caller, href, ['GET']) })
  },
}
