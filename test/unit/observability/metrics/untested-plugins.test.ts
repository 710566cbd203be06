import { expect, test } from 'vitest'
import { untestedPlugins } from '../../../../src/observability/metrics/untested-plugins.ts'

const ofText = (untested: string) => untestedPlugins({ kind: 'complete', untested })

test('a plugin is a label with its version', () => {
  expect(untestedPlugins({ kind: 'complete' })).toEqual([])
  expect(untestedPlugins({ kind: 'incomplete', cause: 'all options' })).toEqual([])
  expect(ofText('woocommerce 10.6.1, pods 3.4, pods 3.4')).toEqual(['woocommerce 10.6.1', 'pods 3.4'])
})

test('any other text of an upstream is none, and ten are the most', () => {
  for (const text of [
    '',
    'x',
    'a b c',
    'shop v1',
    'shop 1"',
    `${'s'.repeat(65)} 1`,
    `shop 1${'0'.repeat(32)}`,
  ])
    expect(ofText(text), text).toEqual([])
  expect(ofText(Array.from({ length: 12 }, (_, at) => `p${at} 1`).join(', '))).toHaveLength(10)
})
