import { expect, test } from 'vitest'
import { ask } from './support.ts'

// `check_comment_author_email` of WordPress lets an empty address pass; no other format has such a callback.
test.each([
  ['site/v2/comments', 'POST', '{"post":1,"author_email":""}', 'valid'],
  ['site/v2/comments', 'POST', '{"post":1,"author_email":"0"}', 'valid'],
  ['site/v2/comments/{id}', 'PUT', '{"author_email":""}', 'valid'],
  ['site/v2/comments/{id}', 'PUT', '{"author_email":"x"}', 'invalid'],
  ['site/v2/comments', 'POST', '{"post":1,"author_ip":""}', 'invalid'],
  ['site/v2/users/{id}', 'PUT', '{"email":""}', 'invalid'],
])('%s: %s %s is %s', (row, method, content, kind) => {
  const path = row.endsWith('{id}') ? { id: '1' } : {}
  expect(ask({ row, method, path, content }).kind).toBe(kind)
})
