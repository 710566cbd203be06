import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { givenNames } from '../../../../src/exchange/write/given-names.ts'

const json = 'application/json'
const of = (content: string, query = '', type: string | undefined = json) =>
  givenNames(query, type, Buffer.from(content))

test('names of arguments come from the query and from JSON content, declared or not', () => {
  expect(of('{"title":"x","acf":{"a":1}}', 'status=draft&meta%5Ba%5D%5B%5D=1')).toEqual([
    'status',
    'meta',
    'title',
    'acf',
  ])
})

test('parameters of every route and the id change nothing', () => {
  expect(of('{"id":5,"title":null}', '_fields=id&_locale=user&context=edit')).toEqual(['title'])
})

test('a request without content gives what is in its query', () => {
  expect(givenNames('force=true', undefined, undefined)).toEqual(['force'])
  expect(of('', 'force=true', undefined)).toEqual(['force'])
})

test.each([
  ['a list', '[{"title":"x"}]', json],
  ['a text', '"x"', json],
  ['null', 'null', json],
  ['what is no JSON', '{"title"', json],
  ['a form', 'title=x', 'application/x-www-form-urlencoded'],
  ['content without a type', '{"title":"x"}', undefined],
  ['another kind of JSON', '{"title":"x"}', 'application/problem+json'],
  ['long content', JSON.stringify({ title: 'x'.repeat(300_000) }), json],
])('of %s they are not known', (_, content, type) => {
  expect(givenNames('', type, Buffer.from(content))).toBeUndefined()
})

test('of content that streams on unread they are not known', () => {
  expect(givenNames('', json, Readable.from(['{}']))).toBeUndefined()
})
