import { readdir, readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { errorTable } from '../../src/errors.ts'
import { attacks } from '../attack/table.ts'
import { renderings } from '../real/renderings/table.ts'
import { linksOfPages } from '../support/links-of-pages.ts'

const text = (name: string): Promise<string> => readFile(new URL(`../../${name}`, import.meta.url), 'utf8')

/** First cells of the rows of the table behind a header line. */
const rows = (document: string, header: string): string[][] => {
  // Tables may be padded.
  const unpadded = document.replaceAll(/ *\| */g, '|')
  const lines = unpadded.slice(unpadded.indexOf(header)).split('\n').slice(2)
  const end = lines.findIndex((line) => !line.startsWith('|'))
  return lines.slice(0, end).map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}

const evidence = (await readdir(new URL('../../docs/evidence/', import.meta.url))).map(
  (name) => `docs/evidence/${name}`,
)

describe('documents agree with the code', () => {
  test('evidence/caching.md lists everything that a real WordPress renders into content, and nothing else', async () => {
    const listed = rows(await text('docs/evidence/caching.md'), '|rendered|').map(([first]) => first)
    expect([...listed].sort()).toEqual([...new Set(renderings.map(({ thing }) => thing))].sort())
  })

  test('errors.md has a row for every error, and no other (UPDATE_DOCS=1 writes them)', async () => {
    const file = new URL('../../docs/errors.md', import.meta.url)
    const [begin, end] = ['<!-- errors: generated -->\n', '\n<!-- end of errors -->']
    const [before = '', rest = ''] = (await readFile(file, 'utf8')).split(begin)
    const [block, after = ''] = rest.split(end)
    const expected = [
      '|code|status|caused by|retry|meaning|',
      '|---|---|---|---|---|',
      ...Object.entries(errorTable).map(
        ([code, { status, fault, retryable, message }]) =>
          `|\`${code}\`|${status}|${fault}|${retryable ? 'yes' : 'no'}|${message}|`,
      ),
    ].join('\n')
    if (process.env['UPDATE_DOCS'] !== undefined)
      await writeFile(file, `${before}${begin}${expected}${end}${after}`)
    else expect(block).toBe(expected)
  })

  test('errors.md names every code that the site format spells in another way', async () => {
    const document = await text('docs/errors.md')
    for (const [code, facts] of Object.entries(errorTable))
      if ('siteCode' in facts) expect(document).toContain(`\`${code}\` is \`${facts.siteCode}\``)
  })

  test('every link of every page leads to a file and a heading that are there', async () => {
    const { links, dead } = await linksOfPages(fileURLToPath(new URL('../../', import.meta.url)))
    expect(links).toBeGreaterThan(500)
    expect(dead).toEqual([])
  })

  test.each(evidence)('every row of `npm run attack` that %s names is there', async (name) => {
    const named = [...(await text(name)).matchAll(/npm run attack -- --only ([\w-]+)/g)].map(([, row]) => row)
    const there = attacks.map((attack) => attack.name)
    expect(named.filter((row) => row === undefined || !there.includes(row))).toEqual([])
  })

  test('evidence/reported-faults.md has a row with a test for every finding', async () => {
    const document = await text('docs/evidence/reported-faults.md')
    const tables = document.split('\n## ').slice(1)
    const heads = ['|#|', '|finding|', '|difference|']
    const found = tables.map((table) => rows(table, heads.find((head) => table.includes(head)) ?? ''))
    const numbered = (prefix: string, last: number): string[] =>
      Array.from({ length: last }, (_, at) => `${prefix}${at + 1}`)
    const [reported = [], firstWeek = [], firstUse = []] = found
    expect(reported.map(([number]) => number)).toEqual(numbered('', 18))
    expect(firstWeek.map(([number]) => number)).toEqual(numbered('F', 10))
    expect(firstUse.map(([number]) => number).slice(0, 4)).toEqual(numbered('H', 4))
    const untested = found
      .flat()
      .filter((cells) => !/\]\((?:\.\.\/){2}test\/[^)]+\)/.test(cells.at(-1) ?? ''))
    expect(untested).toEqual([])
  })
})
