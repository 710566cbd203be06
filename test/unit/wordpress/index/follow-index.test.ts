import { expect, test } from 'vitest'
import { isJsonObject, type JsonObject } from '../../../../src/http/json-text.ts'
import { followIndex } from '../../../../src/wordpress/index/index-source.ts'
import { siteRows } from '../../../../src/wordpress/routes/route-table.ts'
import { siteValidator } from '../arguments/support.ts'
import { indexOf, publicDocument } from './upstream-index.ts'

const template = '/site/v2/media'

/** The list of media as a site takes it that announces other arguments. */
const validate = (change: (args: Record<string, unknown>) => void, query: string) => {
  const document = publicDocument() as { routes: Record<string, { endpoints: { args: unknown }[] }> }
  const args = document.routes[template]?.endpoints[0]?.args
  if (!isJsonObject(args)) throw new Error('no arguments')
  change(args as Record<string, unknown>)
  const row = followIndex(siteRows, indexOf(document)).find((one) => one.template === template)
  const endpoint = row?.endpoints.find(({ methods }) => methods.includes('GET'))
  if (row === undefined || endpoint === undefined) throw new Error('no row')
  const none = { pathParameters: {}, content: undefined, contentType: undefined }
  return siteValidator.validate({ row, endpoint, method: 'GET', query, ...none })
}

const plain = { kind: 'valid', query: 'per_page=8' }
const anything = { mayShowAnything: true }

test('an argument that the site has as the contract says is read', () => {
  expect(validate(() => {}, 'orderby=date&per_page=08')).toEqual(expect.objectContaining(plain))
  expect(validate(() => {}, 'per_page=8')).not.toMatchObject(anything)
})

test('an argument that the site lacks: without it the contract holds, with it the response may show anything', () => {
  const withoutOrder = (args: Record<string, unknown>): void => {
    delete args['orderby']
  }
  expect(validate(withoutOrder, 'per_page=08')).toMatchObject(plain)
  expect(validate(withoutOrder, 'per_page=8')).not.toMatchObject(anything)
  expect(validate(withoutOrder, 'orderby=date&per_page=8')).toMatchObject({
    ...anything,
    query: 'orderby=date&per_page=8',
  })
})

test('an argument with another default: without it the response may show anything that this default means', () => {
  const otherwise = (value: unknown) => (args: Record<string, unknown>) => {
    const orderby = args['orderby'] as JsonObject & { enum: unknown[] }
    args['orderby'] = { ...orderby, default: value, enum: [...Object.values(orderby.enum), 'rank'] }
  }
  expect(validate(otherwise('rank'), 'per_page=8')).toMatchObject(anything)
  expect(validate(otherwise('title'), 'per_page=8')).toMatchObject({ arguments: { orderby: 'title' } })
  expect(validate(otherwise('title'), 'per_page=8')).not.toMatchObject(anything)
  expect(validate(otherwise(undefined), 'per_page=8')).toMatchObject(anything)
  expect(validate(otherwise('rank'), 'orderby=date&per_page=8')).not.toMatchObject(anything)
})

test('an argument that only the site has: without it the contract holds, with it the response may show anything', () => {
  const withLanguage = (args: Record<string, unknown>): void => {
    args['lang'] = { type: 'string' }
  }
  expect(validate(withLanguage, 'per_page=8')).not.toMatchObject(anything)
  expect(validate(withLanguage, 'lang=de&per_page=8')).toMatchObject(anything)
})
