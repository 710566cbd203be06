import { expect, test } from 'vitest'
import {
  contentEntityTag,
  evaluatePreconditions,
  notModified,
  type PreconditionOutcome,
} from '../../../../src/http/conditional/preconditions.ts'

const now = Date.UTC(2026, 0, 1)
const before = 'Wed, 01 Jan 2025 00:00:00 GMT'
const modified = 'Thu, 02 Jan 2025 00:00:00 GMT'
const after = 'Fri, 03 Jan 2025 00:00:00 GMT'
const strong = ['ETag', '"a"', 'Last-Modified', modified]
const weak = ['ETag', 'W/"a"', 'Last-Modified', modified]

test.each<[string, string, Record<string, string>, string[], PreconditionOutcome]>([
  ['no condition', 'GET', {}, strong, 'proceed'],
  ['If-None-Match with the tag', 'GET', { 'if-none-match': '"a"' }, strong, 'not-modified'],
  ['If-None-Match with the tag, HEAD', 'HEAD', { 'if-none-match': '"a"' }, strong, 'not-modified'],
  ['If-None-Match with the tag, PUT', 'PUT', { 'if-none-match': '"a"' }, strong, 'failed'],
  ['If-None-Match compares weakly', 'GET', { 'if-none-match': 'W/"a"' }, strong, 'not-modified'],
  ['If-None-Match against a weak tag', 'GET', { 'if-none-match': '"a"' }, weak, 'not-modified'],
  ['If-None-Match in a list', 'GET', { 'if-none-match': '"x", W/"y" ,"a"' }, strong, 'not-modified'],
  ['If-None-Match with a comma in a tag', 'GET', { 'if-none-match': '"x,y", "a"' }, strong, 'not-modified'],
  ['If-None-Match with another tag', 'GET', { 'if-none-match': '"b"' }, strong, 'proceed'],
  ['If-None-Match with part of the tag', 'GET', { 'if-none-match': 'a' }, strong, 'proceed'],
  ['If-None-Match: *', 'GET', { 'if-none-match': '*' }, strong, 'not-modified'],
  ['If-None-Match: *, PUT', 'PUT', { 'if-none-match': '*' }, strong, 'failed'],
  [
    'If-None-Match goes before If-Modified-Since',
    'GET',
    { 'if-none-match': '"b"', 'if-modified-since': after },
    strong,
    'proceed',
  ],
  ['If-Modified-Since of the same moment', 'GET', { 'if-modified-since': modified }, strong, 'not-modified'],
  ['If-Modified-Since later', 'GET', { 'if-modified-since': after }, strong, 'not-modified'],
  ['If-Modified-Since earlier', 'GET', { 'if-modified-since': before }, strong, 'proceed'],
  ['If-Modified-Since that is no date', 'GET', { 'if-modified-since': 'yesterday' }, strong, 'proceed'],
  [
    'If-Modified-Since without Last-Modified',
    'GET',
    { 'if-modified-since': after },
    ['ETag', '"a"'],
    'proceed',
  ],
  ['If-Modified-Since, PUT', 'PUT', { 'if-modified-since': after }, strong, 'proceed'],
  ['If-Match with the tag', 'GET', { 'if-match': '"a"' }, strong, 'proceed'],
  ['If-Match compares strongly', 'GET', { 'if-match': '"a"' }, weak, 'failed'],
  ['If-Match with another tag', 'PUT', { 'if-match': '"b"' }, strong, 'failed'],
  ['If-Match: *', 'PUT', { 'if-match': '*' }, strong, 'proceed'],
  ['If-Unmodified-Since earlier', 'PUT', { 'if-unmodified-since': before }, strong, 'failed'],
  ['If-Unmodified-Since later', 'PUT', { 'if-unmodified-since': after }, strong, 'proceed'],
  [
    'If-Match goes before If-Unmodified-Since',
    'PUT',
    { 'if-match': '"a"', 'if-unmodified-since': before },
    strong,
    'proceed',
  ],
  [
    'If-Match holds, If-None-Match too',
    'GET',
    { 'if-match': '"a"', 'if-none-match': '"a"' },
    strong,
    'not-modified',
  ],
])('%s', (_, method, headers, responseHeaders, expected) => {
  expect(evaluatePreconditions(headers, method, { status: 200, headers: responseHeaders }, now)).toBe(
    expected,
  )
})

test.each([301, 404, 500])('a %i is not subject to preconditions', (status) => {
  expect(evaluatePreconditions({ 'if-none-match': '*' }, 'GET', { status, headers: strong }, now)).toBe(
    'proceed',
  )
})

test('a 304 keeps headers about the resource and drops those about the content', () => {
  const headers = [
    'ETag',
    '"a"',
    'Vary',
    'Accept',
    'Content-Type',
    'text/plain',
    'Content-Length',
    '5',
    'Date',
    modified,
  ]
  expect(notModified({ status: 200, headers })).toEqual({
    status: 304,
    headers: ['ETag', '"a"', 'Vary', 'Accept', 'Date', modified],
  })
})

test('a tag made of the content differs with it', () => {
  const tag = contentEntityTag(Buffer.from('a'))
  expect(tag).toMatch(/^"[\w-]{24}"$/)
  expect(contentEntityTag(Buffer.from('a'))).toBe(tag)
  expect(contentEntityTag(Buffer.from('b'))).not.toBe(tag)
})
