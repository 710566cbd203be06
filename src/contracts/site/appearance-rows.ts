import type { ArgumentSchema, Arguments, Row } from '../row.ts'
import { templateLookupQuery } from './action-bodies.ts'
import {
  context,
  globalStylesRevisionsQuery,
  navigationQuery,
  revisionsQuery,
  templatesQuery,
  writableStatuses,
} from './parameter-sets.ts'
import {
  autosaveRows,
  type Collection,
  collectionRow,
  digits,
  integer,
  itemRow,
  listRow,
  posts,
  reads,
  revisionRows,
  templateIdentifier,
  updates,
} from './row-builders.ts'
import { navigationFields, undeclaredMeta } from './write-fields.ts'

const raw = (...context: string[]): ArgumentSchema => ({ type: 'string', context })
const rendered: ArgumentSchema = { type: 'string', context: ['view', 'edit', 'embed'], readonly: true }
const status: ArgumentSchema = { type: 'string', enum: writableStatuses }
const strings: ArgumentSchema = { type: 'array', items: { type: 'string' } }

const itemType: ArgumentSchema = {
  type: 'string',
  enum: ['taxonomy', 'post_type', 'post_type_archive', 'custom'],
}
const parent: ArgumentSchema = { type: 'integer', minimum: 0 }
const menuOrder: ArgumentSchema = { type: 'integer', minimum: 1 }
const objectId: ArgumentSchema = { type: 'integer', minimum: 0 }

/** Write fields of a menu item, for updates. */
export const menuItemFields: Arguments = {
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

/** Write fields of a menu item, for creation. */
export const newMenuItemFields: Arguments = {
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
  properties: {
    raw: raw('view', 'edit'),
    block_version: { type: 'integer', context: ['edit'], readonly: true },
  },
}
const title: ArgumentSchema = {
  type: ['object', 'string'],
  properties: { raw: raw('view', 'edit', 'embed'), rendered },
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

/** Write fields of a template part, for updates. */
const templatePartFields: Arguments = { ...templateFields, ...area }

/** Write fields of a template part, for creation. */
const newTemplatePartFields: Arguments = { ...newTemplateFields, ...area }

/** Write fields of global styles. */
const globalStylesFields: Arguments = {
  styles: { type: ['object'] },
  settings: { type: ['object'] },
  title,
}

const text: ArgumentSchema = { type: 'string' }

/** Templates and template parts differ in name and fields only. The identifier matches slashes too: revisions and autosaves come first. */
const templateRows = (name: string, created: Arguments, updated: Arguments): readonly Row[] => {
  const collection: Collection = {
    name,
    namespace: 'site/v2',
    identifier: templateIdentifier,
    identifierSchema: text,
    marks: {},
  }
  return [
    ...revisionRows(collection, revisionsQuery(text)),
    ...autosaveRows(collection, 'id', updated),
    listRow(collection, templatesQuery, posts(created)),
    collectionRow(collection, 'lookup', 'lookup', ['lookup'], [reads(templateLookupQuery)]),
    itemRow(collection, { query: {}, fields: updated }),
  ]
}

const styles: Collection = {
  name: 'global-styles',
  namespace: 'site/v2',
  identifier: digits,
  identifierSchema: integer,
  marks: {},
}
const revisionsOf = { name: 'parent', pattern: digits }
const unbatched = { allowBatch: false } as const
const stylesheet: Arguments = { stylesheet: text }

const globalStylesRows: readonly Row[] = [
  collectionRow(
    styles,
    'revisions',
    'revisions',
    [revisionsOf, 'revisions'],
    [reads(globalStylesRevisionsQuery)],
  ),
  collectionRow(
    styles,
    'revision',
    'revision',
    [revisionsOf, 'revisions', { name: 'id', pattern: digits }],
    [reads({ parent: integer, id: integer, context })],
  ),
  collectionRow(
    styles,
    'related',
    'variations',
    ['themes', { name: 'stylesheet', pattern: '[\\/\\s%\\w\\.\\(\\)\\[\\]\\@_\\-]+' }, 'variations'],
    [reads(stylesheet, unbatched)],
  ),
  collectionRow(
    styles,
    'related',
    'theme',
    ['themes', { name: 'stylesheet', pattern: '[^\\/:<>\\*\\?"\\|]+(?:\\/[^\\/:<>\\*\\?"\\|]+)?' }],
    [reads(stylesheet, unbatched)],
  ),
  collectionRow(
    styles,
    'item',
    'item',
    // As announced: a class of slash, digit and plus. It matches `/5/6` too, which the integer type of `id` then refuses.
    [{ name: 'id', pattern: '[\\/\\d+]+' }],
    [reads({ id: integer }, unbatched), updates(globalStylesFields, unbatched)],
  ),
]

const navigation: Collection = {
  name: 'navigation',
  namespace: 'site/v2',
  identifier: digits,
  identifierSchema: integer,
  marks: { allowBatch: true },
}

/** Templates, template parts, global styles and navigation. */
export const appearanceRows: readonly Row[] = [
  ...templateRows('templates', newTemplateFields, templateFields),
  ...templateRows('template-parts', newTemplatePartFields, templatePartFields),
  ...globalStylesRows,
  listRow(navigation, navigationQuery, posts(navigationFields, navigation.marks)),
]
