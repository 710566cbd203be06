import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { descriptionLabels } from '../../../../src/wordpress/tags/description-labels.ts'

const causeLabel = (cause: string): string => descriptionLabels({ kind: 'incomplete', cause }).cause
const untestedIn = (untested: string): readonly string[] =>
  descriptionLabels({ kind: 'complete', untested }).untested

test('plugins, options and hooks keep their names', () => {
  for (const cause of [
    'plugin shop: all options',
    'a filter of pre_get_posts',
    'the option shop of the network',
  ])
    expect(causeLabel(cause)).toBe(cause)
})

test('of a temporary value only the prefix stays: the rest may be what a client searched for', () => {
  const value = 'the temporary value'
  expect(causeLabel(`${value} _transient_wc_product_loop_4b1d`)).toBe(`${value} _transient_wc_*`)
  expect(causeLabel(`${value} _site_transient_shop-secret`)).toBe(`${value} _site_transient_shop-*`)
  expect(causeLabel(`plugin shop: ${value} _transient_secret`)).toBe(`plugin shop: ${value}`)
  expect(causeLabel(`${value} secret of a visitor`)).toBe(value)
})

test('a text that the companion does not send is one label, whatever it is', () => {
  for (const cause of ['x', 'all options\u0001', 'plugin a b: all options', `a filter of ${'x'.repeat(100)}`])
    expect(causeLabel(cause)).toBe('another cause')
})

test('each cause that the companion sends has a label', async () => {
  const companion = await readFile('deploy/wordpress/trellis.php', 'utf8')
  const sent = [...companion.matchAll(/this->miss\( (['"])(.*?)\1(?: \. self::\w+ \. '(.*?)')? \);/g)].map(
    ([, , text = '', end]) => (end === undefined ? text : `${text}300${end}`).replaceAll(/\$\w+/g, 'shop_x'),
  )
  expect(sent.length).toBe(companion.match(/this->miss\(/g)?.length)
  expect(sent.filter((cause) => causeLabel(`plugin shop: ${cause}`) === 'another cause')).toEqual([])
})

test('an upstream that does not say why is counted as such', () => {
  expect(causeLabel('')).toBe('the companion does not say why')
})

test('a complete description has no cause, and an incomplete one no untested plugins', () => {
  expect(descriptionLabels({ kind: 'complete' })).toEqual({ cause: '', untested: [] })
  expect(descriptionLabels({ kind: 'incomplete', cause: 'all options' })).toEqual({
    cause: 'all options',
    untested: [],
  })
})

test('a plugin is a label with its version', () => {
  expect(untestedIn('woocommerce 10.6.1, pods 3.4, pods 3.4')).toEqual(['woocommerce 10.6.1', 'pods 3.4'])
})

test('any other text of an upstream is no plugin, and ten are the most', () => {
  for (const text of [
    '',
    'x',
    'a b c',
    'shop v1',
    'shop 1"',
    `${'s'.repeat(65)} 1`,
    `shop 1${'0'.repeat(32)}`,
  ])
    expect(untestedIn(text), text).toEqual([])
  expect(untestedIn(Array.from({ length: 12 }, (_, at) => `p${at} 1`).join(', '))).toHaveLength(10)
})
