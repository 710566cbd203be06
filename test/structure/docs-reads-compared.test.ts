import { readFile, writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { type LedgerRow, ledgerTable, readLedger, readmeLine, withRun } from '../support/reads-compared.ts'

const end = '<!-- end -->'

/** What is generated in a page, and what has to be there. */
const checkGenerated = async (page: string, name: string, lines: readonly string[]): Promise<void> => {
  const begin = `<!-- ${name}: generated -->\n`
  const text = await readFile(page, 'utf8')
  const from = text.indexOf(begin) + begin.length
  const to = text.indexOf(end, from)
  expect(from, `${page} has no place for what is generated`).toBeGreaterThan(begin.length)
  const expected = `${lines.join('\n')}\n`
  if (process.env['UPDATE_DOCS'] !== undefined)
    await writeFile(page, text.slice(0, from) + expected + text.slice(to))
  expect((await readFile(page, 'utf8')).slice(from)).toContain(expected)
}

test('the line of README about simulated reads is what the ledger says (UPDATE_DOCS=1 writes it)', async () => {
  const ledger = await readLedger()
  await checkGenerated('README.md', 'reads compared', [readmeLine(ledger)])
})

test('the table of docs/evidence/promise.md is the ledger (UPDATE_DOCS=1 writes it)', async () => {
  await checkGenerated('docs/evidence/promise.md', 'reads compared', ledgerTable(await readLedger()))
})

const row: LedgerRow = {
  ...{ run: 'simulation', date: '2026-01-01', commit: 'a', machine: 'm', firstSeed: 1, nextSeed: 11 },
  ...{ seeds: 10, reads: 1_000, hits: 500, writes: 20, faults: 5, older: 0, seconds: 2 },
}

test('runs of one day and commit are one row of the ledger, others are their own', () => {
  const [both] = withRun([row], { ...row, firstSeed: 11, nextSeed: 21, older: 1 })
  expect(both).toMatchObject({ firstSeed: 1, nextSeed: 21, seeds: 20, reads: 2_000, older: 1, seconds: 4 })
  expect(withRun([row], { ...row, commit: 'b' })).toHaveLength(2)
  expect(withRun([row], { ...row, run: 'wordpress' })).toHaveLength(2)
})

test('a read that was older is in the line of README', () => {
  expect(readmeLine([{ ...row, older: 3 }])).toContain('1,000 reads compared under 5 faults, 3 older')
})
