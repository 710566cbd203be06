import { readFile, writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { simulationTable } from '../../bench/simulation.ts'

const begin = '<!-- simulation: generated -->\n'
const end = '<!-- end -->'

test('the table of docs/evidence/scale.md is what the simulation gives (UPDATE_DOCS=1 writes it)', async () => {
  const text = await readFile('docs/evidence/scale.md', 'utf8')
  const from = text.indexOf(begin) + begin.length
  const table = `${simulationTable().join('\n')}\n`
  if (process.env['UPDATE_DOCS'] !== undefined) {
    await writeFile('docs/evidence/scale.md', text.slice(0, from) + table + text.slice(text.indexOf(end)))
  }
  expect((await readFile('docs/evidence/scale.md', 'utf8')).slice(from)).toContain(table)
})
