import { type Call, type Context, contextOf, ok, type Resource, type SiteResponse } from './call.ts'
import { hasBlocks } from './content-rendering.ts'
import { blankEntry, type Template } from './entry.ts'
import { type Links, selfLink, withCuries } from './links.ts'
import { denied, SiteFault } from './site-fault.ts'
import { slugOf } from './store.ts'
import { flag, integer, rawText, siteDate, text } from './values.ts'

/** The only theme of the embedded site. */
export const theme = { stylesheet: 'twentytwentyfive', name: 'Twenty Twenty-Five' } as const

/** `templates` or `template-parts`. */
export type TemplateKind = { readonly base: string; readonly type: Template['type'] }

/** Identifier of a template: theme, two slashes, slug. */
export const templateId = (slug: string): string => `${theme.stylesheet}//${slug}`

const keyOf = (kind: TemplateKind, id: string): string => {
  // WordPress takes one slash or two between theme and slug.
  const slash = id.indexOf('/')
  const slug = id.slice(slash + 1).replace(/^\//, '')
  return id.slice(0, Math.max(slash, 0)) === theme.stylesheet ? `${kind.type}:${slug}` : ''
}

/** Key of a template in the store. */
export const storeKey = (template: Pick<Template, 'type' | 'slug'>): string =>
  `${template.type}:${template.slug}`

/** The template of an identifier; the 404 when there is none. */
export const findTemplate = (call: Call, kind: TemplateKind, id: string): Template => {
  const template = call.site.store.templates.get(keyOf(kind, id))
  if (template === undefined) {
    throw new SiteFault(404, 'rest_template_not_found', 'No templates exist with that id.')
  }
  return template
}

const templateLinks = (call: Call, kind: TemplateKind, template: Template): Links => {
  const { site, caller } = call
  const base = `${site.root}/${site.names.content}`
  const href = `${base}/${kind.base}/${templateId(template.slug)}`
  const versions = site.store.versionsOf(template.postId, 'both')
  const newest = versions[0]
  return withCuries({
    ...selfLink(caller, href),
    collection: [{ href: `${base}/${kind.base}` }],
    about: [{ href: `${base}/types/${kind.type}` }],
    ...(template.postId === 0
      ? {}
      : { 'version-history': [{ count: versions.length, href: `${href}/revisions` }] }),
    ...(newest && { 'predecessor-version': [{ id: newest.id, href: `${href}/revisions/${newest.id}` }] }),
    'wp:action-publish': [{ href }],
    'wp:action-unfiltered-html': [{ href }],
  })
}

/** The fields of a template, without links. */
export const renderTemplate = (call: Call, template: Template, context: Context): Record<string, unknown> => {
  const customised = template.postId !== 0
  const ofTheme = template.file !== undefined
  const version = context === 'edit' ? { block_version: hasBlocks(template.content) ? 1 : 0 } : {}
  return {
    id: templateId(template.slug),
    theme: theme.stylesheet,
    // An embedded template shows its content as an empty PHP array.
    content: context === 'embed' ? [] : { raw: template.content, ...version },
    slug: template.slug,
    source: customised ? 'custom' : 'theme',
    origin: customised && ofTheme ? 'theme' : null,
    type: template.type,
    description: template.description,
    title: { raw: template.title, rendered: template.title },
    status: 'publish',
    [call.site.names.templateId]: template.postId,
    has_theme_file: ofTheme,
    ...(template.type === 'wp_template' ? { is_custom: !ofTheme } : {}),
    author: template.author,
    ...(template.type === 'wp_template_part' ? { area: template.area } : {}),
    ...(context === 'embed' ? {} : { modified: customised ? siteDate(template.modified) : false }),
    author_text: ofTheme ? theme.name : 'admin',
    original_source: ofTheme ? 'theme' : 'user',
  }
}

const withLinks = (
  call: Call,
  kind: TemplateKind,
  template: Template,
  context: Context,
): Record<string, unknown> => ({
  ...renderTemplate(call, template, context),
  _links: templateLinks(call, kind, template),
})

const ofKind = (call: Call, kind: TemplateKind): readonly Template[] =>
  [...call.site.store.templates.values()].filter((template) => template.type === kind.type)

const listTemplates = (call: Call, kind: TemplateKind): SiteResponse => {
  const post = integer(call.args, call.site.names.templateId)
  const area = text(call.args, 'area')
  const shown = ofKind(call, kind)
    .filter((template) => post === undefined || template.postId === post)
    .filter((template) => area === undefined || kind.type === 'wp_template' || template.area === area)
  return ok(shown.map((template) => withLinks(call, kind, template, contextOf(call))))
}

/** Keeps a customised template, and the post that its revisions hang on. */
export const storeTemplate = (call: Call, template: Template): Template => {
  call.site.store.templates.set(storeKey(template), template)
  call.site.store.put({
    ...blankEntry,
    id: template.postId,
    type: template.type,
    slug: template.slug,
    title: template.title,
    content: template.content,
    author: template.author,
    date: template.modified,
    modified: template.modified,
  })
  return template
}

const createTemplate = (call: Call, kind: TemplateKind): SiteResponse => {
  const { args, site } = call
  // The contract's pattern is not anchored: anything may stand around a letter.
  const wanted = slugOf(text(args, 'slug') ?? '')
  let slug = wanted
  for (let suffix = 2; site.store.templates.has(`${kind.type}:${slug}`); suffix += 1)
    slug = `${wanted}-${suffix}`
  const template = storeTemplate(call, {
    type: kind.type,
    slug,
    title: rawText(args, 'title') || slug,
    description: text(args, 'description') ?? '',
    content: rawText(args, 'content') ?? '',
    area: text(args, 'area') ?? 'uncategorized',
    postId: site.store.nextId(),
    author: call.caller.userId,
    modified: site.now(),
    file: undefined,
  })
  return {
    status: 201,
    headers: { Location: `${site.root}/${site.names.content}/${kind.base}/${templateId(slug)}` },
    body: withLinks(call, kind, template, 'view'),
  }
}

const keepTemplateRevision = (call: Call, template: Template): void => {
  const { store: entries, now } = call.site
  const parent = entries.get(template.postId)
  if (parent === undefined) return
  const id = entries.nextId()
  const slug = `${template.postId}-revision-v1`
  const date = now()
  entries.put({ ...parent, id, type: 'revision', status: 'inherit', slug, parent: template.postId, date, modified: date, own: { kind: 'revision' } }) // biome-ignore format: one record
}

const updateTemplate = (call: Call, kind: TemplateKind, before: Template): SiteResponse => {
  const { args, site } = call
  const after = storeTemplate(call, {
    ...before,
    title: rawText(args, 'title') ?? before.title,
    description: text(args, 'description') ?? before.description,
    content: rawText(args, 'content') ?? before.content,
    area: text(args, 'area') ?? before.area,
    postId: before.postId === 0 ? site.store.nextId() : before.postId,
    author: call.caller.userId,
    modified: site.now(),
  })
  const changed = before.content !== after.content || before.title !== after.title
  if (before.postId !== 0 && changed) keepTemplateRevision(call, after)
  return ok(withLinks(call, kind, after, 'edit'))
}

const deleteTemplate = (call: Call, kind: TemplateKind, template: Template): SiteResponse => {
  if (template.postId === 0) {
    throw new SiteFault(400, 'rest_invalid_template', "Templates based on theme files can't be removed.")
  }
  const { store: entries } = call.site
  const previous = renderTemplate(call, template, 'edit')
  entries.remove(template.postId)
  if (template.file === undefined) entries.templates.delete(storeKey(template))
  else
    entries.templates.set(storeKey(template), {
      ...template,
      ...template.file,
      postId: 0,
      author: 0,
      modified: 0,
    })
  if (flag(call.args, 'force')) return ok({ deleted: true, previous })
  return ok({ ...previous, status: 'trash', _links: templateLinks(call, kind, { ...template, postId: 0 }) })
}

const manage = (call: Call): void => {
  if (call.caller.role === 'admin') return
  const message = 'Sorry, you are not allowed to access the templates on this site.'
  throw denied(call.caller, 'rest_cannot_manage_templates', message)
}

const lookUp = (call: Call, kind: TemplateKind): SiteResponse => {
  const all = ofKind(call, kind)
  const words = (text(call.args, 'slug') ?? '').split('-')
  // `single-post` falls back to `single`, anything to `index`.
  for (let length = words.length; length > 0; length -= 1) {
    const template = all.find(({ slug }) => slug === words.slice(0, length).join('-'))
    if (template !== undefined) return ok(withLinks(call, kind, template, 'view'))
  }
  const index = all.find(({ slug }) => slug === 'index') ?? all[0]
  return ok(index === undefined ? [] : withLinks(call, kind, index, 'view'))
}

/** Lists, creation and lookup of templates. */
export const templateCollection = (kind: TemplateKind): Resource => ({
  permit: manage,
  run: (call) => {
    if (call.row.kind === 'lookup') return lookUp(call, kind)
    return call.method === 'GET' ? listTemplates(call, kind) : createTemplate(call, kind)
  },
})

/** One template: reading, customising, giving up the customisation. */
export const templateItem = (kind: TemplateKind): Resource => ({
  permit: manage,
  run: (call) => {
    const template = findTemplate(call, kind, text(call.args, 'id') ?? '')
    if (call.method === 'GET') return ok(withLinks(call, kind, template, contextOf(call)))
    if (call.method === 'DELETE') return deleteTemplate(call, kind, template)
    return updateTemplate(call, kind, template)
  },
})
