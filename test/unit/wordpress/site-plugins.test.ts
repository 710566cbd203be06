import { expect, test } from 'vitest'
import { pluginsOf } from '../../../src/wordpress/site-plugins.ts'

const names = (...namespaces: readonly unknown[]): readonly string[] =>
  pluginsOf({ namespaces }).map(({ name }) => name)

test('plugins are named by what they announce, each once; WordPress itself is none', () => {
  expect(names('oembed/1.0', 'wp/v2', 'wp-site-health/v1', 'wc/v3', 'wc/store', 'yoast/v1')).toEqual([
    'WooCommerce',
    'Yoast SEO',
  ])
})

test('of others the first part of the namespace is shown, if it is a word', () => {
  expect(names('acme/v1', 'a\u001b[31m/v1', '', 'x'.repeat(99), 7, null)).toEqual(['acme', '7', 'null'])
  expect(names(...Array.from({ length: 500 }, (_, index) => `plugin-${index}/v1`))).toHaveLength(20)
})

test.each([undefined, 'nothing', [], {}, { namespaces: 7 }])('%j has none', (index) => {
  expect(pluginsOf(index)).toEqual([])
})
