import { describe, expect, test } from 'vitest'
import { type Asked, ask } from './support.ts'

const item: Asked = { row: 'posts.item', path: { id: '5' } }
const update: Asked = { ...item, method: 'PUT' }
const revision: Asked = { row: 'posts.revision', path: { parent: '5', id: '7' } }
const template: Asked = { row: 'templates.item', path: { id: 'theme//index' } }

const code = (asked: Asked): string => {
  const response = ask(asked)
  return response.kind === 'valid' ? `valid ${response.query}`.trim() : response.code
}

const ambiguous = 'trellis_ambiguous_request'

describe('parameters of the path', () => {
  test.each<[string, Asked, string]>([
    ['another id in the query', { ...item, query: 'id=6' }, ambiguous],
    ['the same id in the query', { ...item, query: 'id=5&context=edit' }, 'valid context=edit'],
    ['the same id in another spelling', { ...item, query: 'id=%2B5.0' }, 'valid'],
    ['another id by a folded name', { ...item, query: '%20id=6' }, ambiguous],
    ['another id in front of the same', { ...item, query: 'id=6&id=5' }, 'valid'],
    ['a list', { ...item, query: 'id[]=5' }, 'rest_invalid_param'],
    ['no integer', { ...item, query: 'id=x' }, 'rest_invalid_param'],
    ['another id in the content', { ...update, content: '{"id":6}' }, ambiguous],
    ['the same id in the content', { ...update, content: '{"id":5}' }, 'valid'],
    ['the same id as text in the content', { ...update, content: '{"id":"5"}' }, 'valid'],
    ['the last of two ids in the content', { ...update, content: '{"id":5,"id":6}' }, ambiguous],
    [
      'another id in a form',
      { ...update, content: 'id=6', contentType: 'application/x-www-form-urlencoded' },
      ambiguous,
    ],
    ['another id on a deletion', { ...item, method: 'DELETE', query: 'force=1&id=6' }, ambiguous],
    [
      'another id in the content of a deletion',
      { ...item, method: 'DELETE', content: '{"id":6}' },
      ambiguous,
    ],
    ['another parent of a revision', { ...revision, query: 'parent=6' }, ambiguous],
    ['another revision', { ...revision, query: 'id=8' }, ambiguous],
    ['the same parent and revision', { ...revision, query: 'parent=5&id=7' }, 'valid'],
    ['a template by another name', { ...template, query: 'id=theme//home' }, ambiguous],
    ['a template by its name', { ...template, query: 'id=theme//index' }, 'valid'],
    [
      'a new parent of a page, which is no part of the path',
      { row: 'pages.item', path: { id: '5' }, method: 'PUT', content: '{"parent":6}' },
      'valid',
    ],
    ['an id that is not in the path', { query: 'id=6' }, 'valid'],
  ])('%s', (_, asked, expected) => {
    expect(code(asked)).toBe(expected)
  })

  test('an id beyond 2^53 in JSON never equals the one in the path', () => {
    const path = { id: '9007199254740992' }
    expect(code({ ...update, path, content: '{"id":9007199254740993}' })).toBe(ambiguous)
    expect(code({ ...update, path, content: '{"id":"9007199254740993"}' })).toBe(ambiguous)
    expect(code({ ...update, path, content: '{"id":"9007199254740992"}' })).toBe('valid')
  })
})
