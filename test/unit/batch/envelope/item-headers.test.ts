import { expect, test } from 'vitest'
import { itemHeaders } from '../../../../src/batch/envelope/item-headers.ts'
import { interfaceItems } from '../../../../src/wordpress/batch.ts'

test('passes harmless headers on, strings and lists', () => {
  expect({ ...itemHeaders({ 'X-Foo': 'a', 'X-Bar': ['b', 'c'], 'X-Count': 3 }, false, []) }).toEqual({
    'x-foo': 'a',
    'x-bar': 'b, c',
    'x-count': '3',
  })
})

test.each([
  'Authorization',
  'Cookie',
  'X-Api-Key',
  'X-Auth-Token',
  'Remote-User',
  'Host',
  'Content-Length',
  'Content-Type',
  'Transfer-Encoding',
  'Connection',
  'X-Forwarded-For',
  'X-Forwarded-Host',
  'X-Real-IP',
  'Forwarded',
  'Proxy-Authorization',
  'Proxy',
  'X-HTTP-Method-Override',
  'X_HTTP_Method_Override',
  'X-WP-Nonce',
  'If-None-Match',
  'Range',
  'Idempotency-Key',
  'Expect',
  '__proto__',
  // No request of its own takes these to the upstream.
  ...['X-Remote-Addr', 'X-True-Client-IP', 'Acme-Client-IP', 'HTTPS', 'Front-End-Https', 'X-Url-Scheme'],
  ...['X-Method', 'X-Script-Name', 'X-Path-Info', 'X-Middleware-Subrequest', 'Trellis-Nonce'],
])('drops %s', (name) => {
  const headers = JSON.parse(`{${JSON.stringify(name)}:"x"}`)
  expect(Object.keys(itemHeaders(headers, false, []))).toEqual([])
})

test.each(['a\r\nX-Evil: 1', 'a\0b', 'ä', 'x'.repeat(1025)])('drops a header with the value %j', (value) => {
  expect(Object.keys(itemHeaders({ 'X-Foo': value }, false, []))).toEqual([])
})

test('says that content is JSON, whatever the item says', () => {
  expect({ ...itemHeaders({ 'Content-Type': 'text/plain' }, true, []) }).toEqual({
    'content-type': 'application/json',
  })
})

test('drops what the service says has no effect inside a batch', () => {
  const headers = { 'X-WP-Total': '1', 'X-Foo': 'a' }
  expect(Object.keys(itemHeaders(headers, false, interfaceItems.prefixesWithoutEffect))).toEqual(['x-foo'])
})
