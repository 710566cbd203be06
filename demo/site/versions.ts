import { type Call, type Context, contextOf, ok, type Resource, type SiteResponse } from './call.ts'
import type { CollectionSpec } from './collections.ts'
import { permalinkOf, renderContent } from './content-rendering.ts'
import { blankEntry, type Entry } from './entry.ts'
import { cutPage } from './paging.ts'
import { denied, SiteFault } from './site-fault.ts'
import { integer, integers, rawText, siteDate, text } from './values.ts'

const parentOf = (call: Call, spec: CollectionSpec, id: number | undefined): Entry => {
  const parent = id === undefined ? undefined : call.site.store.get(id)
  if (parent === undefined || parent.type !== spec.type) {
    throw new SiteFault(404, 'rest_post_invalid_parent', 'Invalid post parent ID.')
  }
  return parent
}

const pair = (raw: string, rendered: string, context: Context, rawToo: boolean): Record<string, string> =>
  context === 'edit' || rawToo ? { raw, rendered } : { rendered }

const textOf = (
  call: Call,
  spec: CollectionSpec,
  version: Entry,
  context: Context,
): Record<string, unknown> => {
  const isNavigation = spec.type === 'wp_navigation'
  const embedded = context === 'embed'
  // The raw text of blocks is for every context but `embed`, that of navigations is in `embed` too.
  const rawToo = (spec.type === 'wp_block' && !embedded) || (isNavigation && embedded)
  const title = { title: pair(version.title, version.title, context, rawToo) }
  if (spec.type === 'nav_menu_item') return title
  const html = renderContent(call.site, version.content)
  const content = { content: pair(version.content, html, context, rawToo) }
  if (isNavigation) return { ...title, ...content }
  const excerpt = {
    excerpt: pair(
      version.excerpt,
      version.excerpt === '' ? '' : `<p>${version.excerpt}</p>\n`,
      context,
      false,
    ),
  }
  return embedded ? { ...title, ...excerpt } : { ...title, ...content, ...excerpt }
}

const metaOf = (call: Call, spec: CollectionSpec, version: Entry): unknown => {
  if (spec.type === 'wp_navigation' || spec.type === 'nav_menu_item') return []
  const footnotes = version.meta['footnotes'] ?? ''
  if (spec.type !== 'wp_block') return { footnotes }
  return { [call.site.names.patternSyncStatus]: null, footnotes }
}

const renderVersion = (
  call: Call,
  spec: CollectionSpec,
  version: Entry,
  context: Context = contextOf(call),
): Record<string, unknown> => {
  const { site } = call
  const address = `${site.home}/?p=${version.id}`
  const head = { author: version.author, date: siteDate(version.date) }
  const links = {
    _links: { parent: [{ href: `${site.root}/${site.names.content}/${spec.base}/${version.parent}` }] },
  }
  const words = textOf(call, spec, version, context)
  if (context === 'embed') {
    return { ...head, id: version.id, parent: version.parent, slug: version.slug, ...words, ...links }
  }
  const parent = site.store.get(version.parent)
  const preview =
    call.row.kind.startsWith('autosave') && context === 'edit'
      ? {
          preview_link:
            spec.viewable && parent
              ? `${permalinkOf(site, parent)}?preview_id=${parent.id}&preview=true`
              : '',
        }
      : {}
  return {
    ...head,
    date_gmt: siteDate(version.date),
    id: version.id,
    modified: siteDate(version.modified),
    modified_gmt: siteDate(version.modified),
    parent: version.parent,
    slug: version.slug,
    guid: pair(address, address, context, spec.type === 'nav_menu_item'),
    ...words,
    meta: metaOf(call, spec, version),
    ...preview,
    ...links,
  }
}

const cannotRead = (call: Call, noun: string): SiteFault =>
  denied(call.caller, 'rest_cannot_read', `Sorry, you are not allowed to view ${noun} of this post.`)

const cannotDelete = (call: Call): SiteFault => {
  // WordPress maps the deletion of a revision to a right that no user has.
  const what = call.caller.role === 'admin' ? 'this revision' : 'revisions of this post'
  return denied(call.caller, 'rest_cannot_delete', `Sorry, you are not allowed to delete ${what}.`)
}

const orders: Readonly<Record<string, (version: Entry) => number | string>> = {
  date: (version) => version.date,
  id: (version) => version.id,
  slug: (version) => version.slug,
  title: (version) => version.title.toLowerCase(),
}

const listVersions = (call: Call, versions: readonly Entry[]): readonly Entry[] => {
  const { args } = call
  const included = integers(args, 'include')
  const excluded = integers(args, 'exclude')
  const search = text(args, 'search')?.toLowerCase() ?? ''
  const rank = orders[text(args, 'orderby') ?? 'date'] ?? ((version: Entry) => version.date)
  const down = text(args, 'order') === 'asc' ? 1 : -1
  return versions
    .filter((version) => included.length === 0 || included.includes(version.id))
    .filter((version) => !excluded.includes(version.id))
    .filter((version) => `${version.title}\n${version.content}`.toLowerCase().includes(search))
    .toSorted((a, b) => {
      const [left, right] = [rank(a), rank(b)]
      return (left < right ? -1 : left > right ? 1 : a.id - b.id) * down
    })
}

/** The revision that a call names, which must hang on the item it names. */
export const revisionOf = (call: Call, parentId: number): Entry => {
  const revision = call.site.store.get(integer(call.args, 'id') ?? 0)
  if (revision === undefined || revision.type !== 'revision') {
    throw new SiteFault(404, 'rest_post_invalid_id', 'Invalid revision ID.')
  }
  if (revision.parent !== parentId) {
    const message = `The revision does not belong to the specified parent with id of "${parentId}"`
    throw new SiteFault(404, 'rest_revision_parent_id_mismatch', message)
  }
  return revision
}

/** The list of an item's revisions; its autosaves are among them. */
export const revisionsResource = (spec: CollectionSpec): Resource => ({
  permit: (call) => {
    parentOf(call, spec, integer(call.args, 'parent'))
    if (call.caller.role !== 'admin') throw cannotRead(call, 'revisions')
  },
  run: (call) => {
    const parent = parentOf(call, spec, integer(call.args, 'parent'))
    const { names, store } = call.site
    const path = `/${names.content}/${spec.base}/${parent.id}/revisions`
    const all = listVersions(call, store.versionsOf(parent.id, 'both'))
    const page = cutPage(call, path, all, 'rest_revision_invalid_page_number')
    return ok(
      page.items.map((version) => renderVersion(call, spec, version)),
      page.headers,
    )
  },
})

/** One revision: editors can read it, no user can delete it. */
export const revisionResource = (spec: CollectionSpec): Resource => ({
  permit: (call) => {
    parentOf(call, spec, integer(call.args, 'parent'))
    if (call.method === 'DELETE') throw cannotDelete(call)
    if (call.caller.role !== 'admin') throw cannotRead(call, 'revisions')
  },
  run: (call) => ok(renderVersion(call, spec, revisionOf(call, integer(call.args, 'parent') ?? 0))),
})

/** Stores the autosave of a caller; each has one for an item. */
export const putAutosave = (call: Call, parentId: number, fields: Partial<Entry>): Entry => {
  const { store, now } = call.site
  const mine = store.versionsOf(parentId, 'autosave').find((version) => version.author === call.caller.userId)
  const date = now()
  return store.put({
    ...blankEntry,
    id: mine?.id ?? store.nextId(),
    type: 'revision',
    status: 'inherit',
    slug: `${parentId}-autosave-v1`,
    parent: parentId,
    author: call.caller.userId,
    date,
    modified: date,
    ...fields,
    own: { kind: 'autosave' },
  })
}

const saveAutosave = (call: Call, spec: CollectionSpec, parent: Entry): SiteResponse => {
  const version = putAutosave(call, parent.id, {
    title: rawText(call.args, 'title') ?? '',
    content: rawText(call.args, 'content') ?? '',
    excerpt: rawText(call.args, 'excerpt') ?? '',
    meta: parent.meta,
  })
  return ok(renderVersion(call, spec, version, 'edit'))
}

/** The autosaves of an item: the list, and saving one. */
export const autosavesResource = (spec: CollectionSpec): Resource => ({
  permit: (call) => {
    const parent = integer(call.path, 'id')
    if (call.method === 'POST' && call.site.store.get(parent ?? 0)?.type !== spec.type) {
      throw new SiteFault(404, 'rest_post_invalid_id', 'Invalid post ID.')
    }
    parentOf(call, spec, parent)
    if (call.caller.role === 'admin') return
    if (call.method === 'GET') throw cannotRead(call, 'autosaves')
    throw denied(call.caller, 'rest_cannot_edit', 'Sorry, you are not allowed to edit this post.')
  },
  run: (call) => {
    const parent = parentOf(call, spec, integer(call.path, 'id'))
    if (call.method === 'POST') return saveAutosave(call, spec, parent)
    return ok(
      call.site.store.versionsOf(parent.id, 'autosave').map((version) => renderVersion(call, spec, version)),
    )
  },
})

/** One autosave. WordPress looks at the item only and answers its newest autosave, whatever the identifier. */
export const autosaveResource = (spec: CollectionSpec): Resource => ({
  permit: (call) => {
    parentOf(call, spec, integer(call.args, 'parent'))
    if (call.caller.role !== 'admin') throw cannotRead(call, 'revisions')
  },
  run: (call) => {
    const newest = call.site.store.versionsOf(integer(call.args, 'parent') ?? 0, 'autosave')[0]
    if (newest === undefined) {
      const message = 'There is no autosave revision for this post.'
      throw new SiteFault(404, 'rest_post_no_autosave', message)
    }
    return ok(renderVersion(call, spec, newest))
  },
})
