import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { isAll, rowsOf } from '../support/breadth.ts'
import { planted } from '../support/planted.ts'
import { describeWith } from '../support/requirements.ts'
import { faults } from './companion/faults.ts'
import { findFaults, startFaultySite } from './companion/find-faults.ts'
import { faultWrites, issuesIn } from './companion/plant-in-companion.ts'
import type { CompanionSite } from './companion/site.ts'
import { companionFile } from './wordpress/copy-companion.ts'

const page = fileURLToPath(new URL('../../docs/evidence/planted-companion-faults.md', import.meta.url))

test('each planted fault changes the companion, and the page says of each whether it is found', async () => {
  const text = await readFile(companionFile, 'utf8')
  for (const fault of faults) expect(planted(text, fault), fault.name).not.toBe(text)
  const shown = await readFile(page, 'utf8')
  for (const { name } of faults) expect(shown).toContain(`\n| ${name} | `)
})

/** Says of which of the files PHP cannot read. */
const parse =
  'foreach ( array_slice( $argv, 1 ) as $file ) { try { token_get_all( file_get_contents( $file ), TOKEN_PARSE ); } catch ( ParseError $error ) { echo "$file: ", $error->getMessage(), "\n"; } }'

describeWith('php', 'faults in the WordPress companion', () => {
  test('each is a program: one that PHP cannot read is found by nothing', async () => {
    const text = await readFile(companionFile, 'utf8')
    const folder = await mkdtemp(join(tmpdir(), 'trellis-planted-'))
    const some = rowsOf(faults, 4)
    const files = some.map((_fault, at) => join(folder, `${at}.php`))
    for (const [at, fault] of some.entries()) await writeFile(files[at] ?? '', planted(text, fault))
    const { stdout } = await promisify(execFile)('php', ['-r', parse, '--', ...files])
    await rm(folder, { recursive: true })
    expect(stdout).toBe('')
  })

  let site: CompanionSite

  beforeAll(async () => {
    site = await startFaultySite()
  })
  afterAll(() => site?.stop())

  test('each that was found leaves a response stale again after the write with which it was found', async () => {
    const all = issuesIn(await readFile(page, 'utf8'))
    expect(all.length).toBeGreaterThan(60)
    const known = rowsOf(all, 40)
    const { findings: issues, stale } = await findFaults(site, {
      faults: faults.filter(({ name }) => isAll || known.some(({ fault }) => fault === name)),
      writes: faultWrites,
      known,
      tell: () => {},
    })
    expect(stale).toEqual([])
    const found = new Set(issues.map(({ fault }) => fault))
    expect(known.map(({ fault }) => fault).filter((fault) => !found.has(fault))).toEqual([])
  }, 1_200_000)
})
