import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { planted } from '../support/planted.ts'
import { writeFaults } from '../support/write-faults.ts'

const page = new URL('../../docs/evidence/planted-write-faults.md', import.meta.url)

test('each planted fault changes the code of a write, and the page says which test finds it', async () => {
  const shown = await readFile(page, 'utf8')
  for (const [name, faults] of Object.entries(writeFaults)) {
    const text = await readFile(new URL(`../../src/exchange/${name}`, import.meta.url), 'utf8')
    for (const fault of faults) {
      expect(planted(text, fault), fault.name).not.toBe(text)
      expect(shown).toContain(`\n| ${fault.name} | `)
    }
  }
})
