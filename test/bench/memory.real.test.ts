import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const bench = fileURLToPath(new URL('../../bench/memory.ts', import.meta.url))

test('an entry holds little more than its content, no less is counted, and ten are found at once', async ({
  annotate,
}) => {
  // Rejects when one of the bounds does not hold: npm run bench:memory checks them with ten times as many.
  const args = ['--expose-gc', '--import', 'tsx', bench, '10000']
  const { stdout } = await promisify(execFile)(process.execPath, args)
  await annotate(stdout)
  expect(stdout).toMatch(/^10000 entries/)
})
