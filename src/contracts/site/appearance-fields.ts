import type { ArgumentSchema, Arguments } from '../row.ts'
import { writableStatuses } from './parameter-sets.ts'
import { undeclaredMeta } from './write-fields.ts'

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
export const templateFields: Arguments = {
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
export const newTemplateFields: Arguments = {
  ...templateFields,
  slug: { ...slug, required: true },
  content: { default: '', ...content },
  title: { default: '', ...title },
  description: { default: '', type: 'string' },
  status: { default: 'publish', ...status },
}

const area: Arguments = { area: { type: 'string' } }

/** Write fields of a template part, for updates. */
export const templatePartFields: Arguments = { ...templateFields, ...area }

/** Write fields of a template part, for creation. */
export const newTemplatePartFields: Arguments = { ...newTemplateFields, ...area }

/** Write fields of global styles. */
export const globalStylesFields: Arguments = {
  styles: { type: ['object'] },
  settings: { type: ['object'] },
  title,
}
