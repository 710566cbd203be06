import type { ArgumentSchema, Arguments } from '../../service/row.ts'
import { editedMediaFields } from './write-fields.ts'

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
