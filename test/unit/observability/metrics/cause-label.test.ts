import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { causeLabel } from '../../../../src/observability/metrics/cause-label.ts'

const labelOf = (cause: string | undefined): string => causeLabel({ kind: 'incomplete', cause })

test('a complete description has none', () => {
  expect(causeLabel({ kind: 'complete' })).toBe('')
})

test('plugins, options and hooks keep their names', () => {
  for (const cause of [
    'plugin shop: all options',
    'a filter of pre_get_posts',
    'the option shop of the network',
  ])
    expect(labelOf(cause)).toBe(cause)
})

test('of a temporary value only the prefix stays: the rest may be what a client searched for', () => {
  const value = 'the temporary value'
  expect(labelOf(`${value} _transient_wc_product_loop_4b1d`)).toBe(`${value} _transient_wc_*`)
  expect(labelOf(`${value} _site_transient_shop-secret`)).toBe(`${value} _site_transient_shop-*`)
  expect(labelOf(`plugin shop: ${value} _transient_secret`)).toBe(`plugin shop: ${value}`)
  expect(labelOf(`${value} secret of a visitor`)).toBe(value)
})

test('a text that the companion does not send is one label, whatever it is', () => {
  for (const cause of ['x', 'all options\u0001', 'plugin a b: all options', `a filter of ${'x'.repeat(100)}`])
    expect(labelOf(cause)).toBe('another cause')
})

test('each cause that the companion sends has a label', async () => {
  const companion = await readFile('deploy/wordpress/trellis.php', 'utf8')
  const sent = [...companion.matchAll(/this->miss\( (['"])(.*?)\1(?: \. self::\w+ \. '(.*?)')? \);/g)].map(
    ([, , text = '', end]) => (end === undefined ? text : `${text}300${end}`).replaceAll(/\$\w+/g, 'shop_x'),
  )
  expect(sent.length).toBe(companion.match(/this->miss\(/g)?.length)
  expect(sent.filter((cause) => labelOf(`plugin shop: ${cause}`) === 'another cause')).toEqual([])
})

test('an upstream that does not say why is counted as such', () => {
  for (const cause of [undefined, '']) expect(labelOf(cause)).toBe('the companion does not say why')
})
