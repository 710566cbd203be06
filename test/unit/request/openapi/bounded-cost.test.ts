import { expect, test } from 'vitest'
import { cost } from '../../../support/cost.ts'
import { described, onePost } from './described.ts'

// What one body of a megabyte costs, whatever the document describes.

const bytes = 1_000_000
const filled = (piece: string): string => piece.repeat(Math.floor(bytes / piece.length))
const numbered = (count: number, piece: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => piece(at)).join('')

const members = (count: number, schema: object): object =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, schema]))

const form = (properties: object, encoding: object = {}) => ({
  openapi: '3.1.0',
  info: { title: 'x', version: '1' },
  paths: {
    '/x': {
      post: {
        requestBody: {
          content: {
            'application/x-www-form-urlencoded': { schema: { type: 'object', properties }, encoding },
          },
        },
        responses: {},
      },
    },
  },
})

const text = { type: 'string' }
const codes = Array.from({ length: 1_000 }, (_, at) => `code-${at}`)

const formType = 'application/x-www-form-urlencoded'

test.each([
  ['a form of half a million members', 40, form({ a: text }), formType, filled('a&')],
  [
    'ten thousand members of a form with a thousand others',
    150,
    form(members(1_000, text)),
    formType,
    numbered(9_999, (at) => `x${at}=1&`),
  ],
  [
    'ten thousand members of an object in a form with a thousand others',
    150,
    form(members(1_000, { type: 'object' }), members(1_000, { style: 'deepObject', explode: true })),
    formType,
    numbered(9_999, (at) => `p0[${at}]=1&`),
  ],
  [
    'a list of items from a long enum',
    150,
    onePost({ type: 'array', items: { enum: codes } }),
    'application/json',
    `[${filled('"code-999",')}"code-999"]`,
  ],
])('%s takes at most %i ms', (_, mostMs, document, contentType, content) => {
  const { validate } = described(document)
  const request = { method: 'POST', fields: { 'content-type': contentType }, content }
  expect(cost(() => validate(request), mostMs)).toBeLessThan(mostMs)
})
