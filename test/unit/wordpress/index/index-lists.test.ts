import { expect, test } from 'vitest'
import { readIndex } from '../../../../src/wordpress/index/index-document.ts'
import { isIndex } from '../../../../src/wordpress/index/site-issues.ts'

const indexWith = (namespaces: unknown): Buffer => Buffer.from(JSON.stringify({ namespaces, routes: {} }))
const seen = (content: Buffer) => ({ kind: 'answer' as const, status: 200, headers: [], content })

test('namespaces are a list, also where PHP writes it as an object because a plugin has removed some', () => {
  const content = indexWith({ 0: 'oembed/1.0', 3: 'wp/v2' })
  const reading = readIndex(content)
  expect(reading.kind === 'index' && reading.index.namespaces).toEqual(['oembed/1.0', 'wp/v2'])
  expect(isIndex(seen(content))).toBe(true)
})

test.each([
  ['no list', 'wp/v2'],
  ['an object with other names', { wp: 'v2' }],
  ['none', undefined],
])('a document whose namespaces are %s is the index of no WordPress', (_what, namespaces) => {
  expect(isIndex(seen(indexWith(namespaces)))).toBe(false)
})
