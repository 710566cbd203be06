import { readFile, writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { metricTable } from '../../../src/observability/metrics/registry.ts'

const lines = Object.values(metricTable).map(({ name, type, labels, help }) => {
  const named = labels.map((label) => `\`${label}\``).join(', ')
  return `|\`${name}\`|${type}|${named}|${help}|`
})

test('docs/metrics.md lists every metric of the table (UPDATE_DOCS=1 writes it)', async () => {
  const file = 'docs/metrics.md'
  const [begin, end] = ['<!-- metrics: generated -->\n', '\n<!-- end of metrics -->']
  const [before = '', rest = ''] = (await readFile(file, 'utf8')).split(begin)
  const [block, after = ''] = rest.split(end)
  const expected = ['|metric|type|labels|meaning|', '|---|---|---|---|', ...lines].join('\n')
  if (process.env['UPDATE_DOCS'] !== undefined)
    await writeFile(file, `${before}${begin}${expected}${end}${after}`)
  else expect(block).toBe(expected)
})
