import { expect, test } from 'vitest'
import { asksForTag } from '../../../../src/cache/respond/encodings.ts'

test.each([
  ['the tag of the stored response', '"a"', {}, true],
  ['that tag, weakened', '"a"', { 'if-none-match': 'W/"a"' }, true],
  ['the strong form of a weak tag', 'W/"a"', {}, true],
  ['another tag', '"b"', {}, false],
  ['no tag', '', { 'if-none-match': '' }, false],
  ['If-Match beside it, which decides first', '"a"', { 'if-match': '"b"' }, false],
  ['If-Unmodified-Since beside it', '"a"', { 'if-unmodified-since': 'Mon, 01 Jan 2024 00:00:00 GMT' }, false],
])('a request is answered with 304 by its If-None-Match alone: %s', (_, tag, more, expected) => {
  expect(asksForTag({ 'if-none-match': '"a"', ...more }, tag)).toBe(expected)
})
