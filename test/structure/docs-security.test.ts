import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { readApiKeys } from '../../src/config/access.ts'
import { printedBy } from '../support/shown-commands.ts'

const evidence = new URL('../../docs/evidence/', import.meta.url)
const attacks = readFileSync(new URL('attacks.md', evidence), 'utf8')
const rows = [...attacks.matchAll(/^\| (\d+) +\| (.*) \|$/gm)].map(([, number, rest = '']) => ({
  number: Number(number),
  files: [...rest.matchAll(/\]\(([^)]+)\)/g)].map(([, file]) => file ?? ''),
}))

test('evidence/attacks.md has a row for each group of attacks, at least 60, in order', () => {
  expect(rows.length).toBeGreaterThanOrEqual(60)
  expect(rows.map(({ number }) => number)).toEqual(rows.map((_, at) => at + 1))
})

test('every row names tests, and they are there', () => {
  expect(rows.filter(({ files }) => files.length === 0)).toEqual([])
  const missing = rows.flatMap(({ files }) => files).filter((file) => !existsSync(new URL(file, evidence)))
  expect(missing).toEqual([])
})

const bounds = readFileSync(new URL('bounds.md', evidence), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('|') && !/^\|(?:structure|---)\|/.test(line))
  .map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )

test('every structure that can grow has a bound, what happens at it, and a test that is there', () => {
  expect(bounds.length).toBeGreaterThan(25)
  for (const [structure, bound, beyond, tests = ''] of bounds) {
    expect(structure).toMatch(/^[a-z]/)
    expect(bound, structure).toMatch(/\w/)
    expect(beyond, structure).toMatch(/\w/)
    const files = [...tests.matchAll(/\]\(([^)]+)\)/g)].map(([, file]) => file ?? '')
    expect(files, structure).not.toEqual([])
    expect(
      files.filter((file) => !existsSync(new URL(file, evidence))),
      structure,
    ).toEqual([])
  }
})

test('security.md makes the line of an API key with a command, which the gateway reads', async () => {
  const page = readFileSync(new URL('../../docs/security.md', import.meta.url), 'utf8')
  const [, command = ''] = /`(echo "NAME:[^`]*) >> [^`]*`/.exec(page) ?? []
  const digest = createHash('sha256').update('KEY').digest('hex')
  expect(readApiKeys(await printedBy(command))).toEqual({ kind: 'read', value: [{ name: 'NAME', digest }] })
})
