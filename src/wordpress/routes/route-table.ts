import { templateIdentifier } from '../../service/route-paths.ts'
import type { ArgumentSchema, Arguments, Row } from '../../service/row.ts'
import {
  blocksQuery,
  context,
  globalStylesRevisionsQuery,
  mediaQuery,
  menuItemsQuery,
  navigationQuery,
  pagesQuery,
  postsQuery,
  revisionsQuery,
  strings,
  templatesQuery,
  writableStatuses,
} from './parameter-sets.ts'
import {
  autosaveRows,
  type Collection,
  collectionRow,
  deletes,
  digits,
  integer,
  itemRow,
  listRow,
  posts,
  reads,
  revisionRows,
  row,
  updates,
} from './row-builders.ts'
import {
  batchBody,
  blockFields,
  embedProxyQuery,
  embedQuery,
  everywhere,
  mediaEditBody,
  mediaFields,
  mediaPostProcessBody,
  navigationFields,
  pageFields,
  postFields,
  raw,
  responded,
  templateLookupQuery,
  undeclaredMeta,
} from './write-fields.ts'

/** Index of a namespace. `namespace` and `context` are announced without a type: any value passes. */
export const namespaceIndex = (id: string, namespace: string): Row =>
  row({
    id,
    template: `/${namespace}`,
    namespace,
    kind: 'index',
    handledBy: 'discovery',
    endpoints: [reads({ namespace: { default: namespace }, context: { default: 'view' } })],
  })

const lookup = { namespace: 'oembed/1.0', kind: 'lookup' } as const

/** Embed lookup. */
const oembedRows: readonly Row[] = [
  namespaceIndex('oembed.index', 'oembed/1.0'),
  row({ id: 'oembed.embed', template: '/oembed/1.0/embed', ...lookup, endpoints: [reads(embedQuery)] }),
  row({ id: 'oembed.proxy', template: '/oembed/1.0/proxy', ...lookup, endpoints: [reads(embedProxyQuery)] }),
]

const batchable = { allowBatch: true } as const

const collection = (name: string, marks: Collection['marks'] = batchable): Collection => ({
  name,
  namespace: 'site/v2',
  identifier: digits,
  identifierSchema: integer,
  marks,
})

const forms = { ...collection('contact-forms', {}), namespace: 'contact-form/v1', identifier: '\\d+' }
const form = { name: 'id', pattern: forms.identifier }

/** Browsers send forms as multipart, perhaps with files. */
const uploads = { acceptsUploads: true } as const

const formRows: readonly Row[] = [
  namespaceIndex('contact-form.index', forms.namespace),
  collectionRow(forms, 'collection', 'collection', [], reads({}), posts({}, uploads)),
  collectionRow(forms, 'item', 'item', [form], reads({}), updates({}, uploads), deletes({})),
  collectionRow(forms, 'action', 'feedback', [form, 'feedback'], posts({}, uploads)),
  collectionRow(forms, 'related', 'feedback-schema', [form, 'feedback', 'schema'], reads({})),
  collectionRow(forms, 'related', 'refill', [form, 'refill'], reads({})),
]

/** Contact forms. Their arguments are not announced: all parameters are forwarded. */
const contactFormRows: readonly Row[] = formRows.map((row) => ({ ...row, ofPlugin: true }))

const rendered = responded('string', ...everywhere)
const status: ArgumentSchema = { type: 'string', enum: writableStatuses }
const itemType: ArgumentSchema = {
  type: 'string',
  enum: ['taxonomy', 'post_type', 'post_type_archive', 'custom'],
}
const parent: ArgumentSchema = { type: 'integer', minimum: 0 }
const menuOrder: ArgumentSchema = { type: 'integer', minimum: 1 }
const objectId: ArgumentSchema = { type: 'integer', minimum: 0 }

const menuItemFields: Arguments = {
  title: { type: ['string', 'object'], properties: { raw: raw('edit'), rendered } },
  type: itemType,
  status,
  parent,
  attr_title: { type: 'string' },
  classes: strings,
  description: { type: 'string' },
  menu_order: menuOrder,
  object: { type: 'string' },
  object_id: objectId,
  target: { type: 'string', enum: ['_blank', ''] },
  url: { type: 'string', format: 'uri' },
  xfn: strings,
  menus: { type: 'integer' },
  meta: undeclaredMeta,
}

const newMenuItemFields: Arguments = {
  ...menuItemFields,
  type: { default: 'custom', ...itemType },
  status: { default: 'publish', ...status },
  parent: { default: 0, ...parent },
  menu_order: { default: 1, ...menuOrder },
  object_id: { default: 0, ...objectId },
}

const slug: ArgumentSchema = { type: 'string', minLength: 1, pattern: '[a-zA-Z0-9_\\%-]+' }
const content: ArgumentSchema = {
  type: ['object', 'string'],
  properties: { raw: raw('view', 'edit'), block_version: responded('integer', 'edit') },
}
const title: ArgumentSchema = {
  type: ['object', 'string'],
  properties: { raw: raw(...everywhere), rendered },
}

/** Write fields of a template, for updates. */
const templateFields: Arguments = {
  slug,
  theme: { type: 'string' },
  type: { type: 'string' },
  content,
  title,
  description: { type: 'string' },
  status,
  author: { type: 'integer' },
}

/** Write fields of a template, for creation. */
const newTemplateFields: Arguments = {
  ...templateFields,
  slug: { ...slug, required: true },
  content: { default: '', ...content },
  title: { default: '', ...title },
  description: { default: '', type: 'string' },
  status: { default: 'publish', ...status },
}

const area: Arguments = { area: { type: 'string' } }

const templatePartFields: Arguments = { ...templateFields, ...area }

const newTemplatePartFields: Arguments = { ...newTemplateFields, ...area }

const globalStylesFields: Arguments = {
  styles: { type: ['object'] },
  settings: { type: ['object'] },
  title,
}

const text: ArgumentSchema = { type: 'string' }

/** Templates and template parts differ in name and fields only. The identifier matches slashes too: revisions and autosaves come first. */
const templateRows = (name: string, created: Arguments, updated: Arguments): readonly Row[] => {
  const templates = { ...collection(name, {}), identifier: templateIdentifier, identifierSchema: text }
  return [
    ...revisionRows(templates, revisionsQuery(text)),
    ...autosaveRows(templates, 'id', updated),
    listRow(templates, templatesQuery, posts(created)),
    collectionRow(templates, 'lookup', 'lookup', ['lookup'], reads(templateLookupQuery)),
    itemRow(templates, { query: {}, fields: updated }),
  ]
}

const styles = collection('global-styles', {})
const revisionsOf = { name: 'parent', pattern: digits }
const unbatched = { allowBatch: false } as const
const stylesheet: Arguments = { stylesheet: text }

const globalStylesRows: readonly Row[] = [
  collectionRow(
    styles,
    'revisions',
    'revisions',
    [revisionsOf, 'revisions'],
    reads(globalStylesRevisionsQuery),
  ),
  collectionRow(
    styles,
    'revision',
    'revision',
    [revisionsOf, 'revisions', { name: 'id', pattern: digits }],
    reads({ parent: integer, id: integer, context }),
  ),
  collectionRow(
    styles,
    'related',
    'variations',
    ['themes', { name: 'stylesheet', pattern: '[\\/\\s%\\w\\.\\(\\)\\[\\]\\@_\\-]+' }, 'variations'],
    reads(stylesheet, unbatched),
  ),
  collectionRow(
    styles,
    'related',
    'theme',
    ['themes', { name: 'stylesheet', pattern: '[^\\/:<>\\*\\?"\\|]+(?:\\/[^\\/:<>\\*\\?"\\|]+)?' }],
    reads(stylesheet, unbatched),
  ),
  collectionRow(
    styles,
    'item',
    'item',
    // As announced: a class of slash, digit and plus. It matches `/5/6` too, which the integer type of `id` then refuses.
    [{ name: 'id', pattern: '[\\/\\d+]+' }],
    reads({ id: integer }, unbatched),
    updates(globalStylesFields, unbatched),
  ),
]

const navigation = collection('navigation')

const appearanceRows: readonly Row[] = [
  ...templateRows('templates', newTemplateFields, templateFields),
  ...templateRows('template-parts', newTemplatePartFields, templatePartFields),
  ...globalStylesRows,
  listRow(navigation, navigationQuery, posts(navigationFields, navigation.marks)),
]

const postsOf = collection('posts')
const pagesOf = collection('pages')
const mediaOf = collection('media', {})
const menuItemsOf = collection('menu-items')
const blocksOf = collection('blocks')

const protectedItem: Arguments = { excerpt_length: integer, password: { type: 'string' } }
const mediaItem = { name: 'id', pattern: digits }

const contentRows: readonly Row[] = [
  namespaceIndex('site.index', 'site/v2'),

  listRow(postsOf, postsQuery, posts(postFields, batchable)),
  itemRow(postsOf, { query: protectedItem, fields: postFields }),
  ...revisionRows(postsOf, revisionsQuery(integer)),
  ...autosaveRows(postsOf, 'parent', postFields),

  listRow(pagesOf, pagesQuery, posts(pageFields, batchable)),
  itemRow(pagesOf, { query: protectedItem, fields: pageFields }),
  ...revisionRows(pagesOf, revisionsQuery(integer)),
  ...autosaveRows(pagesOf, 'parent', pageFields),

  listRow(mediaOf, mediaQuery, posts(mediaFields, { acceptsUploads: true })),
  itemRow(mediaOf, { query: {}, fields: mediaFields }),
  collectionRow(mediaOf, 'action', 'post-process', [mediaItem, 'post-process'], posts(mediaPostProcessBody)),
  collectionRow(mediaOf, 'action', 'edit', [mediaItem, 'edit'], posts(mediaEditBody)),

  listRow(menuItemsOf, menuItemsQuery, posts(newMenuItemFields, batchable)),
  itemRow(menuItemsOf, { query: {}, fields: menuItemFields }),
  ...autosaveRows(menuItemsOf, 'parent', menuItemFields),

  listRow(blocksOf, blocksQuery, posts(blockFields, batchable)),
  itemRow(blocksOf, { query: protectedItem, fields: blockFields }),
  ...revisionRows(blocksOf, revisionsQuery(integer)),
  ...autosaveRows(blocksOf, 'parent', blockFields),
]

/**
 * The route table of the site contract, in the order in which WordPress looks for a match:
 * the first row whose pattern fits and that has the method answers.
 */
export const siteRows: readonly Row[] = [
  row({
    id: 'index',
    template: '/',
    kind: 'index',
    handledBy: 'discovery',
    endpoints: [reads({ context: { default: 'view' } })],
  }),
  row({
    id: 'batch',
    template: '/batch/v1',
    kind: 'batch',
    handledBy: 'batch',
    endpoints: [posts(batchBody)],
  }),
  ...oembedRows,
  ...contactFormRows,
  ...contentRows,
  ...appearanceRows,
]
