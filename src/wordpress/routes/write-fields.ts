import type { ArgumentSchema, Arguments } from '../../service/row.ts'
import { integers, postFormats, writableStatuses } from './parameter-sets.ts'

const dateTimeOrNull: ArgumentSchema = { type: ['string', 'null'], format: 'date-time' }
const openOrClosed: ArgumentSchema = { type: 'string', enum: ['open', 'closed'] }

const object = (properties: Arguments): ArgumentSchema => ({ type: 'object', properties })

/** Sub-field that only the server writes, e.g. the HTML made of a title. */
export const responded = (type: 'string' | 'integer' | 'boolean', ...context: string[]): ArgumentSchema => ({
  type,
  context,
  readonly: true,
})

export const raw = (...context: string[]): ArgumentSchema => ({ type: 'string', context })
export const everywhere = ['view', 'edit', 'embed'] as const
const isProtected = responded('boolean', ...everywhere)

/** A text that is written raw and read rendered. */
const title = object({ raw: raw('edit'), rendered: responded('string', ...everywhere) })

const content = object({
  raw: raw('edit'),
  rendered: responded('string', 'view', 'edit'),
  block_version: responded('integer', 'edit'),
  protected: isProtected,
})

const excerpt = object({
  raw: raw('edit'),
  rendered: responded('string', ...everywhere),
  protected: isProtected,
})

const footnotes: ArgumentSchema = { type: 'string', title: '', default: '' }
const metaWithFootnotes = object({ footnotes })

/** Metadata of types that declare no property of it. */
export const undeclaredMeta = object({})

const published: Arguments = {
  date: dateTimeOrNull,
  date_gmt: dateTimeOrNull,
  slug: { type: 'string' },
  status: { type: 'string', enum: writableStatuses },
}

const template: Arguments = { template: { type: 'string' } }
const password: Arguments = { password: { type: 'string' } }

const shown: Arguments = {
  featured_media: { type: 'integer' },
  comment_status: openOrClosed,
  ping_status: openOrClosed,
}

export const postFields: Arguments = {
  ...published,
  ...password,
  title,
  content,
  author: { type: 'integer' },
  excerpt,
  ...shown,
  format: { type: 'string', enum: postFormats },
  meta: metaWithFootnotes,
  sticky: { type: 'boolean' },
  ...template,
  categories: integers,
  tags: integers,
}

export const pageFields: Arguments = {
  ...published,
  ...password,
  parent: { type: 'integer' },
  title,
  content,
  author: { type: 'integer' },
  excerpt,
  ...shown,
  menu_order: { type: 'integer' },
  meta: metaWithFootnotes,
  ...template,
}

/** Caption, description and what else belongs to the file more than to the item. */
const mediaTexts: Arguments = {
  caption: title,
  description: object({ raw: raw('edit'), rendered: responded('string', 'view', 'edit') }),
}

export const mediaFields: Arguments = {
  ...published,
  title,
  author: { type: 'integer' },
  ...shown,
  meta: undeclaredMeta,
  ...template,
  alt_text: { type: 'string' },
  ...mediaTexts,
  post: { type: 'integer' },
}

/** Texts of the image that an edit makes. */
const editedMediaFields: Arguments = {
  ...mediaTexts,
  title,
  post: { type: 'integer' },
  alt_text: { type: 'string' },
}

/** Write fields of a block: its texts are read raw, because it is rendered only where it is used. */
export const blockFields: Arguments = {
  ...published,
  ...password,
  title: object({ raw: raw('view', 'edit') }),
  content: object({
    raw: raw('view', 'edit'),
    block_version: responded('integer', 'edit'),
    protected: isProtected,
  }),
  excerpt,
  meta: object({
    site_pattern_sync_status: { type: 'string', title: '', default: '', enum: ['partial', 'unsynced'] },
    footnotes,
  }),
  ...template,
  site_pattern_category: integers,
}

/** Write fields of a navigation: what embeds it reads it raw too. */
export const navigationFields: Arguments = {
  ...published,
  ...password,
  title: object({ raw: raw('edit', 'embed'), rendered: responded('string', ...everywhere) }),
  content: object({
    raw: raw('edit', 'embed'),
    rendered: responded('string', ...everywhere),
    block_version: responded('integer', 'edit', 'embed'),
    protected: isProtected,
  }),
  ...template,
}

export const batchBody: Arguments = {
  validation: { type: 'string', enum: ['require-all-validate', 'normal'], default: 'normal' },
  requests: {
    type: 'array',
    maxItems: 25,
    items: {
      type: 'object',
      properties: {
        method: { type: 'string', enum: ['POST', 'PUT', 'PATCH', 'DELETE'], default: 'POST' },
        path: { type: 'string', required: true },
        body: { type: 'object', properties: {}, additionalProperties: true },
        headers: {
          type: 'object',
          properties: {},
          additionalProperties: { type: ['string', 'array'], items: { type: 'string' } },
        },
      },
    },
    required: true,
  },
}

/** Query of the oEmbed lookup; `format` and `maxwidth` are announced without a type, so any value passes. */
export const embedQuery: Arguments = {
  url: { type: 'string', format: 'uri', required: true },
  format: { default: 'json' },
  maxwidth: { default: 600 },
}

export const embedProxyQuery: Arguments = {
  url: { type: 'string', format: 'uri', required: true },
  format: { type: 'string', default: 'json', enum: ['json', 'xml'] },
  maxwidth: { type: 'integer', default: 600 },
  maxheight: { type: 'integer' },
  discover: { type: 'boolean', default: true },
}

export const templateLookupQuery: Arguments = {
  slug: { type: 'string', required: true },
  is_custom: { type: 'boolean' },
  template_prefix: { type: 'string' },
}

export const mediaPostProcessBody: Arguments = {
  id: { type: 'integer' },
  action: { type: 'string', enum: ['create-image-subsizes'], required: true },
}

const number: ArgumentSchema = { type: 'number' }
const boolean: ArgumentSchema = { type: 'boolean' }
const percent: ArgumentSchema = { type: 'number', minimum: 0, maximum: 100 }

/** One kind of image edit: its name and its arguments, all required. */
const modifier = (
  title: string,
  name: string,
  properties: Readonly<Record<string, ArgumentSchema>>,
): ArgumentSchema => ({
  title,
  properties: {
    type: { type: 'string', enum: [name] },
    args: { type: 'object', required: Object.keys(properties), properties },
  },
})

export const mediaEditBody: Arguments = {
  src: { type: 'string', format: 'uri', required: true },
  modifiers: {
    type: 'array',
    minItems: 1,
    items: {
      type: 'object',
      required: ['type', 'args'],
      oneOf: [
        modifier('Flip', 'flip', {
          flip: {
            type: 'object',
            required: ['horizontal', 'vertical'],
            properties: { horizontal: boolean, vertical: boolean },
          },
        }),
        modifier('Rotation', 'rotate', { angle: number }),
        modifier('Crop', 'crop', { left: number, top: number, width: number, height: number }),
      ],
    },
  },
  rotation: {
    type: 'integer',
    minimum: 0,
    exclusiveMinimum: true,
    maximum: 360,
    exclusiveMaximum: true,
  },
  x: percent,
  y: percent,
  width: percent,
  height: percent,
  ...editedMediaFields,
}
