import { expect, test } from 'vitest'
import { createPublicLinks, maxReferences } from '../../../../src/http/headers/links.ts'
import { cost } from '../../../support/cost.ts'

const links = createPublicLinks({
  targets: ['http://[::1]:9', 'https://pool.test', 'http://plain.test:80'],
  publicHost: 'public.test',
  publicRoot: 'https://public.test/shop/api',
  basePath: '',
  mount: '/shop/api',
})

test.each([
  ['http://[::1]:9/b', 'https://public.test/shop/api/b'],
  ['http://[0:0:0:0:0:0:0:1]:9/b', 'https://public.test/shop/api/b'],
  ['http://[::1]/b', 'http://[::1]/b'],
  ['https://Pool.test:443/b', 'https://public.test/shop/api/b'],
  ['https://pool.test', 'https://public.test/shop/api'],
  ['https://pool.test?a', 'https://public.test/shop/api?a'],
  ['http://plain.test:80/b', 'https://public.test/shop/api/b'],
  ['http://plain.test/b', 'https://public.test/shop/api/b'],
  ['http://plain.test:8080/b', 'http://plain.test:8080/b'],
])('the origin of a target is compared as a URL: %s', (sent, shown) => {
  expect(links(['Location', sent], '/a')).toEqual(['Location', shown])
})

test('headers without such URLs are the same list', () => {
  const lines = ['Content-Type', 'text/html', 'Location', 'https://other.test/', 'Link', '<b>; rel=next']
  expect(links(lines, '/a')).toBe(lines)
})

test('a response has a bounded number of links that change', () => {
  const value = '</b>,'.repeat(maxReferences + 2)
  const [, shown] = links(['Link', value], '/a')
  expect(shown).toBe(`${'</shop/api/b>,'.repeat(maxReferences)}</b>,</b>,`)
})

test.each([
  ['references that climb', '<../..>,'],
  ['absolute URLs', '<http://[::1]:9/b>,'],
  ['dot segments', '</./b/../c>,'],
  ['unclosed brackets', '<'],
  ['quotation marks', '"<a'],
])('64 KiB of %s take less than a turn may', (_, part) => {
  const value = part.repeat(65_536 / part.length)
  expect(cost(() => links(['Link', value], '/books/7'), 50)).toBeLessThan(50)
})

test.each([`5;${' '.repeat(65_536)}`, '1'.repeat(65_536), `1;url${' '.repeat(65_536)}x`])(
  'a Refresh of 64 KiB takes less than a turn may',
  (value) => {
    expect(cost(() => links(['Refresh', value], '/a'), 50)).toBeLessThan(50)
  },
)
