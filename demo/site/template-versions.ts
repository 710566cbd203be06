import { type Call, type Context, contextOf, ok, type Resource } from './call.ts'
import type { Entry, Template } from './entry.ts'
import { cutPage } from './paging.ts'
import { denied, SiteFault } from './site-fault.ts'
import { findTemplate, renderTemplate, storeTemplate, type TemplateKind, templateId } from './templates.ts'
import { rawText } from './values.ts'
import { putAutosave, revisionOf } from './versions.ts'

const customised = (call: Call, kind: TemplateKind, noun: string): Template => {
  const id = call.path['parent'] ?? call.path['id'] ?? ''
  const template = findTemplate(call, kind, id)
  if (call.caller.role !== 'admin' || (template.postId === 0 && call.method === 'GET')) {
    // A theme's file has no post, so no user may read its versions: 403 for the administrator too.
    throw denied(call.caller, 'rest_cannot_read', `Sorry, you are not allowed to view ${noun} of this post.`)
  }
  return template
}

const renderTemplateVersion = (
  call: Call,
  kind: TemplateKind,
  template: Template,
  version: Entry,
  context: Context,
) => {
  const shown = {
    ...template,
    title: version.title,
    content: version.content,
    author: version.author,
    modified: version.modified,
  }
  const href = `${call.site.root}/${call.site.names.content}/${kind.base}/${templateId(template.slug)}`
  const part = version.own['kind'] === 'autosave' ? 'autosaves' : 'revisions'
  return {
    ...renderTemplate(call, shown, context),
    status: 'inherit',
    [call.site.names.templateId]: version.id,
    parent: template.postId,
    _links: { self: [{ href: `${href}/${part}/${version.id}` }], parent: [{ href }] },
  }
}

const deleteVersion = (call: Call): never => {
  throw denied(call.caller, 'rest_cannot_delete', 'Sorry, you are not allowed to delete this revision.')
}

/** Revisions of a template, the list and one. */
export const templateRevisions = (kind: TemplateKind): Resource => ({
  permit: (call) => {
    customised(call, kind, 'revisions')
    if (call.method === 'DELETE') deleteVersion(call)
  },
  run: (call) => {
    const template = customised(call, kind, 'revisions')
    const show = (version: Entry) => renderTemplateVersion(call, kind, template, version, contextOf(call))
    if (call.row.kind === 'revision') return ok(show(revisionOf(call, template.postId)))
    const path = `/${call.site.names.content}/${kind.base}/${templateId(template.slug)}/revisions`
    const all = call.site.store.versionsOf(template.postId, 'both')
    const page = cutPage(call, path, all, 'rest_revision_invalid_page_number')
    return ok(page.items.map(show), page.headers)
  },
})

/** Autosaves of a template, the list, saving one, and one. */
export const templateAutosaves = (kind: TemplateKind): Resource => ({
  permit: (call) => {
    customised(call, kind, 'autosaves')
  },
  run: (call) => {
    const before = customised(call, kind, 'autosaves')
    // Saving the first autosave of a theme's file makes the post that it hangs on.
    const template =
      before.postId === 0
        ? storeTemplate(call, { ...before, postId: call.site.store.nextId(), modified: call.site.now() })
        : before
    if (call.method === 'POST') {
      const title = rawText(call.args, 'title') ?? ''
      const version = putAutosave(call, template.postId, {
        title,
        content: rawText(call.args, 'content') ?? '',
      })
      return ok(renderTemplateVersion(call, kind, template, version, 'edit'))
    }
    const all = call.site.store.versionsOf(template.postId, 'autosave')
    const show = (version: Entry) => renderTemplateVersion(call, kind, template, version, contextOf(call))
    if (call.row.kind === 'autosaves') return ok(all.map(show))
    const [newest] = all
    if (newest === undefined) {
      throw new SiteFault(404, 'rest_post_no_autosave', 'There is no autosave revision for this template.')
    }
    return ok(show(newest))
  },
})
