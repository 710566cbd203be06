import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeWith } from '../support/requirements.ts'
import { faults } from './companion/faults.ts'
import { findFaults, planted, startFaultySite } from './companion/find-faults.ts'
import { narrowWrites } from './companion/narrow-writes.ts'
import { moreReads, narrowReads } from './companion/reads.ts'
import type { CompanionSite } from './companion/site.ts'
import { writes } from './companion/writes.ts'
import { companionFile } from './wordpress/start-wordpress.ts'

test('each fault changes the companion', async () => {
  const text = await readFile(companionFile, 'utf8')
  const broken = faults.filter((one) => {
    try {
      return planted(text, one) === text
    } catch {
      return true
    }
  })
  expect(broken.map(({ name }) => name)).toEqual([])
  expect(new Set(faults.map(({ name }) => name)).size).toBe(faults.length)
})

describeWith('php', 'a fault of the companion', () => {
  let site: CompanionSite

  beforeAll(async () => {
    site = await startFaultySite()
  })
  afterAll(() => site?.stop())

  test('each leaves a response outdated', async () => {
    const only = process.env['COMPANION_FAULTS'] ?? ''
    const all = process.env['W'] === 'narrow' ? narrowWrites : process.env['W'] === 'none' ? [] : [...writes, ...narrowWrites]
    const { findings, stale } = await findFaults(site, {
      faults: faults.filter(({ name }) => name.startsWith(only)),
      writes: all,
      paths: [...moreReads, ...narrowReads],
      tell: (line) => process.stdout.write(`${line}\n`),
    })
    expect(stale).toEqual([])
    expect(findings.length).toBe(faults.length)
  }, 3_600_000)
})
