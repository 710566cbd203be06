import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { planted } from '../../support/planted.ts'
import { writeFaults } from '../../support/write-faults.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const copied = ['src', 'test', 'contracts', 'config', 'package.json', 'tsconfig.json', 'vitest.config.ts']
const suites = [
  'test/unit/exchange/write/write-progress.test.ts',
  'test/unit/exchange/write.test.ts',
  'test/unit/exchange/write/open-response.test.ts',
  'test/gateway/write-states.test.ts',
  'test/gateway/write-states-ends.test.ts',
]

/** A test that waits for what a fault keeps from coming about is stopped after this time. */
const maxTestMs = 8_000

/** The name of the first test that fails; undefined: all pass. */
const firstFailure = (folder: string): Promise<string | undefined> =>
  new Promise((resolve) => {
    const vitest = join(root, 'node_modules/vitest/vitest.mjs')
    const options = ['run', '--bail=1', `--testTimeout=${maxTestMs}`, '--reporter=tap-flat', ...suites]
    execFile(process.execPath, [vitest, ...options], { cwd: folder }, (error, stdout) => {
      if (error === null) return resolve(undefined)
      resolve(/^not ok \d+ - \S+ > (.*?) # time/m.exec(stdout)?.[1] ?? 'the tests do not start')
    })
  })

const head = `# Planted faults in the life of a write

Would the tests find a missing step between the first octet of a write and the last of its response ([what each state removes](../caching.md#however-a-write-ends))? Written by \`npm run fuzz:promise -- --plant-write\`, with \`PROMISE_PAGE\` set. Each fault ([all of them](../../test/support/write-faults.ts)) removes or weakens one line of a copy of \`src/exchange\`, in which the tests of these states then run.

| fault | the first test that fails |
| --- | --- |
`

type Options = {
  /** Only faults whose names contain it. */
  readonly only: string | undefined
  /** The file for the page of what was found. */
  readonly page: string | undefined
  tell(line: string): void
}

/** Plants each fault in a copy of the source and runs the tests of the states of a write: does one fail? */
export const plantInWrite = async ({ only = '', page, tell }: Options): Promise<boolean> => {
  const folder = await mkdtemp(join(tmpdir(), 'trellis-planted-'))
  const rows: string[] = []
  try {
    for (const name of copied) await cp(join(root, name), join(folder, name), { recursive: true })
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
    const right = await firstFailure(folder)
    if (right !== undefined) throw new Error(`without a fault there fails: ${right}`)
    let found = 0
    for (const [name, faults] of Object.entries(writeFaults)) {
      const file = join(folder, 'src/exchange', name)
      const text = await readFile(file, 'utf8')
      for (const fault of faults.filter((one) => one.name.includes(only))) {
        await writeFile(file, planted(text, fault))
        const failure = await firstFailure(folder)
        found += failure === undefined ? 0 : 1
        rows.push(`| ${fault.name} | ${failure ?? 'not found'} |`)
        tell(rows.at(-1) ?? '')
      }
      await writeFile(file, text)
    }
    if (page !== undefined) await writeFile(page, `${head}${rows.join('\n')}\n`)
    tell(`${found} of ${rows.length} faults found`)
    return found === rows.length
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
