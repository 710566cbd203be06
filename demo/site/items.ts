import { type Call, contextOf, ok, type Resource, type SiteResponse } from './call.ts'
import type { Caller } from './caller.ts'
import type { CollectionSpec } from './collections.ts'
import { permalinkOf } from './content-rendering.ts'
import { blankEntry, type Entry } from './entry.ts'
import { listEntries } from './list.ts'
import { cutPage } from './paging.ts'
import { rawBody } from './raw-body.ts'
import { renderFields, renderItem, viewOf } from './render-item.ts'
import { denied, invalidParameter, SiteFault } from './site-fault.ts'
import { flag, integer, rawText, text, texts } from './values.ts'
import { keepRevision, trashed, written } from './write.ts'

/** The entry a call names, or the 404 that comes before any question of rights. */
export const entryOf = (call: Call, spec: CollectionSpec, id: number | undefined): Entry => {
  const entry = id === undefined ? undefined : call.site.store.get(id)
  if (entry === undefined || entry.type !== spec.type) {
    throw new SiteFault(404, 'rest_post_invalid_id', 'Invalid post ID.')
  }
  return entry
}

const isPublic = (entry: Entry): boolean => entry.status === 'publish' || entry.status === 'inherit'

/** Whether a caller may see an entry at all. */
const mayRead = (caller: Caller, spec: CollectionSpec, entry: Entry): boolean =>
  caller.role === 'admin' || (spec.readers === 'everyone' && isPublic(entry))

const permitList = (call: Call, spec: CollectionSpec): void => {
  if (call.caller.role === 'admin') return
  if (spec.readers === 'editors') {
    throw denied(call.caller, 'rest_cannot_view', 'Sorry, you are not allowed to view menu items.')
  }
  if (contextOf(call) === 'edit') {
    const message = 'Sorry, you are not allowed to edit posts in this post type.'
    throw denied(call.caller, 'rest_forbidden_context', message)
  }
}

const permitCreate = (call: Call): void => {
  if (rawBody(call)['id'] !== undefined) {
    throw new SiteFault(400, 'rest_post_exists', 'Cannot create existing post.')
  }
  if (call.caller.role !== 'admin') {
    const message = 'Sorry, you are not allowed to create posts as this user.'
    throw denied(call.caller, 'rest_cannot_create', message)
  }
}

const permitRead = (call: Call, spec: CollectionSpec, entry: Entry): void => {
  const { caller } = call
  if (contextOf(call) === 'edit' && caller.role !== 'admin') {
    throw denied(caller, 'rest_forbidden_context', 'Sorry, you are not allowed to edit this post.')
  }
  const password = text(call.args, 'password')
  // A password for an item that has none is wrong as well.
  if (password !== undefined && password !== '' && password !== entry.password) {
    throw new SiteFault(403, 'rest_post_incorrect_password', 'Incorrect post password.')
  }
  if (mayRead(caller, spec, entry)) return
  if (spec.readers === 'editors') {
    throw denied(caller, 'rest_cannot_view', 'Sorry, you are not allowed to view menu items.')
  }
  throw denied(caller, 'rest_forbidden', 'Sorry, you are not allowed to do that.')
}

/** Statuses are checked with the arguments, so before the rights and with 400. */
const checkStatuses = (call: Call): void => {
  const hidden = texts(call.args, 'status').some((status) => status !== 'publish' && status !== 'inherit')
  if (call.method === 'GET' && hidden && call.caller.role !== 'admin') {
    const { status } = denied(call.caller, '', '')
    throw invalidParameter('status', 'rest_forbidden_status', 'Status is forbidden.', { status })
  }
}

const list = (call: Call, spec: CollectionSpec): SiteResponse => {
  const path = `/${call.site.names.content}/${spec.base}`
  const page = cutPage(call, path, listEntries(call, spec), 'rest_post_invalid_page_number')
  // Items are left out after they were counted: the totals are higher than the number of items in the list.
  const readable = page.items.filter((entry) => mayRead(call.caller, spec, entry))
  return ok(
    readable.map((entry) => renderItem(call, spec, entry)),
    page.headers,
  )
}

const menuItemFault = (args: Call['args']): SiteFault | undefined => {
  if (args['type'] !== 'custom') return undefined
  const missing = [...(rawText(args, 'title') ? [] : ['title']), ...(text(args, 'url') ? [] : ['url'])].map(
    (name) => {
      const message = `The ${name} is required when using a custom menu item type.`
      return new SiteFault(400, `rest_${name}_required`, message)
    },
  )
  const [first, ...more] = missing
  return first && new SiteFault(first.status, first.code, first.message, {}, more)
}

/** What a menu item is before anything is said of it. */
const newLink = { object: 'custom', classes: [''], xfn: [''], target: '', attr_title: '' }

const newEntry = (call: Call, spec: CollectionSpec): Entry => {
  const { store, now } = call.site
  const date = now()
  const entry: Entry = {
    ...blankEntry,
    id: store.nextId(),
    type: spec.type,
    status: spec.newStatus,
    author: call.caller.userId,
    date,
    modified: date,
    // A post without a category is in the default one.
    terms: spec.type === 'post' ? { category: [1], post_tag: [] } : {},
    own: spec.type === 'nav_menu_item' ? newLink : {},
    // Pages are not for discussion unless someone says so.
    ...(spec.type === 'page' ? { commentStatus: 'closed', pingStatus: 'closed' } : {}),
  }
  return written(call, spec, entry)
}

const create = (call: Call, spec: CollectionSpec): SiteResponse => {
  const { args, site } = call
  if (spec.type === 'nav_menu_item') {
    const fault = menuItemFault(args)
    if (fault !== undefined) throw fault
  } else if (!rawText(args, 'title') && !rawText(args, 'content') && !rawText(args, 'excerpt')) {
    throw new SiteFault(400, 'empty_content', 'Content, title, and excerpt are empty.')
  }
  const entry = site.store.put(newEntry(call, spec))
  return {
    status: 201,
    headers: { Location: `${site.root}/${site.names.content}/${spec.base}/${entry.id}` },
    body: renderItem(call, spec, entry, 'edit'),
  }
}

const update = (call: Call, spec: CollectionSpec, entry: Entry): SiteResponse => {
  const after = call.site.store.put(written(call, spec, entry))
  keepRevision(call, spec, entry, after)
  return ok(renderItem(call, spec, after, 'edit'))
}

/** What is left of an entry when another one is gone. */
const without = (entry: Entry, gone: Entry): Entry | undefined => {
  if (entry.type === 'nav_menu_item') {
    const points = entry.own['type'] === 'post_type' && entry.own['object_id'] === gone.id
    return points ? undefined : entry
  }
  if (entry.featuredMedia === gone.id) return { ...entry, featuredMedia: 0 }
  if (entry.parent !== gone.id) return entry
  return { ...entry, parent: entry.type === 'page' ? gone.parent : 0 }
}

/** Removes what belonged to a deleted entry, as WordPress does. */
const letGo = (call: Call, gone: Entry): void => {
  const { store } = call.site
  for (const entry of ['post', 'page', 'attachment', 'nav_menu_item'].flatMap((type) => store.ofType(type))) {
    const left = without(entry, gone)
    if (left === undefined) store.remove(entry.id)
    else if (left !== entry) store.put(left)
  }
  for (const comment of store.comments.values()) {
    if (comment.post === gone.id) store.comments.delete(comment.id)
  }
}

const remove = (call: Call, spec: CollectionSpec, entry: Entry): SiteResponse => {
  const { store } = call.site
  if (flag(call.args, 'force')) {
    const previous = renderFields(
      entry,
      viewOf(call, spec, entry, spec.type === 'nav_menu_item' ? 'view' : 'edit'),
    )
    store.remove(entry.id)
    letGo(call, entry)
    return ok({ deleted: true, previous })
  }
  if (spec.noTrash !== undefined) {
    const message = `${spec.noTrash} not support trashing. Set 'force=true' to delete.`
    throw new SiteFault(501, 'rest_trash_not_supported', message)
  }
  if (entry.status === 'trash') {
    throw new SiteFault(410, 'rest_already_trashed', 'The post has already been deleted.')
  }
  const after = store.put(trashed(call, entry))
  keepRevision(call, spec, entry, after)
  return ok(renderItem(call, spec, after, 'edit'))
}

/** The list of a collection and creation in it. */
export const collectionResource = (spec: CollectionSpec): Resource => ({
  permit: (call) => (call.method === 'GET' ? permitList(call, spec) : permitCreate(call)),
  check: checkStatuses,
  run: (call) => (call.method === 'GET' ? list(call, spec) : create(call, spec)),
})

/** One item: reading, updating, trashing, deleting. */
export const itemResource = (spec: CollectionSpec): Resource => ({
  permit: (call) => {
    const entry = entryOf(call, spec, integer(call.args, 'id'))
    if (call.method === 'GET') return permitRead(call, spec, entry)
    if (call.caller.role === 'admin') return
    const [code, verb] =
      call.method === 'DELETE' ? ['rest_cannot_delete', 'delete'] : ['rest_cannot_edit', 'edit']
    throw denied(call.caller, code, `Sorry, you are not allowed to ${verb} this post.`)
  },
  run: (call) => {
    const entry = entryOf(call, spec, integer(call.args, 'id'))
    if (call.method === 'DELETE') return remove(call, spec, entry)
    if (call.method !== 'GET') return update(call, spec, entry)
    const link = spec.viewable
      ? { Link: `<${permalinkOf(call.site, entry)}>; rel="alternate"; type=text/html` }
      : {}
    return ok(renderItem(call, spec, entry), link)
  },
})
