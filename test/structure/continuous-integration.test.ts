import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { parts } from '../../.ci/nightly-parts.mjs'
import { longest } from '../support/longest-first.ts'
import { requirements } from '../support/requirements.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const script = readFileSync(join(root, '.ci/run'), 'utf8')
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>
}
const folder = mkdtempSync(join(tmpdir(), 'trellis-count-'))

test('CI installs every package that a suite needs', () => {
  const installed = /packages=\(([^)]*)\)/.exec(script)?.[1]?.split(/\s+/)
  const needed = new Set(Object.values(requirements).flatMap((requirement) => [...requirement.packages]))
  expect(installed?.sort()).toEqual([...needed].sort())
})

test('CI runs every step of npm run check', () => {
  const steps = [...(scripts['check'] ?? '').matchAll(/npm run (check:\S+)/g)].map((match) => match[1] ?? '')
  expect(steps.length).toBeGreaterThan(3)
  for (const step of steps) expect(script).toContain(`npm run --silent ${step}\n`)
  // Of the longest tables CI runs a part: test/support/breadth.ts.
  expect(scripts['test:coverage']).toBe(`TRELLIS_TESTS=all ${scripts['test:all']} --coverage`)
})

test('CI runs what npm run test:all runs: npm test, and every other project', () => {
  expect(scripts['test']).toBe(`${scripts['test:all']} --project=quick`)
  expect(script).toContain('npm test --silent')
  expect(script).toContain("npm run test:all --silent -- --project='!quick'")
})

test('the files that run first exist', () => {
  expect(longest.length).toBeGreaterThan(20)
  expect(longest.filter((name) => !existsSync(join(root, name)))).toEqual([])
})

test('the folders that run each night with the Node of the image exist, and those of sockets are among them', () => {
  const folders = parts.find(({ name }) => name === 'node')?.command.filter((one) => one.startsWith('test/'))
  expect(folders?.length).toBeGreaterThan(5)
  for (const folder of folders ?? []) expect(existsSync(join(root, folder)), folder).toBe(true)
  expect(folders).toEqual(expect.arrayContaining(['test/conformance', 'test/gateway', 'test/unit/server']))
})

test('each part of the night is a command of package.json, and has a name of its own', () => {
  expect(new Set(parts.map(({ name }) => name)).size).toBe(parts.length)
  for (const { command } of parts)
    if (command[1] === 'run') expect(Object.keys(scripts)).toContain(command[3])
})

test('.ci/run is a script that bash takes', () => {
  execFileSync('bash', ['-n', join(root, '.ci/run')])
})

const passed = { status: 'passed' }
const file = (status: string, ...assertionResults: { status: string }[]) => ({ status, assertionResults })
test.each([
  ['all passed', { testResults: [file('passed', passed, passed)] }, '2 passed, 0 failed, 0 skipped', 0],
  [
    'one failed',
    { testResults: [file('failed', passed, { status: 'failed' })] },
    '1 passed, 1 failed, 0 skipped',
    1,
  ],
  [
    'skipped and todo',
    {
      testResults: [file('passed', passed, { status: 'pending' }, { status: 'todo' }, { status: 'skipped' })],
    },
    '1 passed, 0 failed, 3 skipped',
    1,
  ],
  [
    'a file that does not load',
    { testResults: [file('failed'), file('passed', passed)] },
    '1 passed, 1 failed, 0 skipped',
    1,
  ],
  ['nothing ran', { testResults: [] }, '0 passed, 0 failed, 0 skipped', 1],
  ['no report', 'broken', '0 passed, 1 failed, 0 skipped', 1],
])('the last line counts: %s', (_description, report, line, code) => {
  const path = join(folder, 'report.json')
  writeFileSync(path, JSON.stringify(report).replace('"broken"', '{'))
  const counted = spawnSync(process.execPath, [join(root, '.ci/count.mjs'), path], { encoding: 'utf8' })
  expect(counted.stdout.split('\n').at(-2)).toBe(line)
  expect(counted.status).toBe(code)
})

test('what failed is named with its file, its title and the beginning of its message', () => {
  const path = join(folder, 'failed.json')
  const failedTest = {
    status: 'failed',
    fullName: 'a title',
    failureMessages: ['expected 1 to be 2\n  at line 7'],
  }
  const unloaded = { name: 'b.test.ts', status: 'failed', message: 'no such module', assertionResults: [] }
  const testResults = [{ name: 'a.test.ts', status: 'failed', assertionResults: [failedTest] }, unloaded]
  writeFileSync(path, JSON.stringify({ testResults }))
  const { stdout } = spawnSync(process.execPath, [join(root, '.ci/count.mjs'), path], { encoding: 'utf8' })
  expect(stdout).toContain('failed: a.test.ts > a title\nexpected 1 to be 2\n  at line 7\n')
  expect(stdout).toContain('failed: b.test.ts > the file\nno such module\n')
})

test('files that took five seconds and more are named, the slowest first', () => {
  const path = join(folder, 'slow.json')
  const tookSeconds = (name: string, seconds: number) => ({
    name,
    status: 'passed',
    assertionResults: [passed],
    startTime: 1000,
    endTime: 1000 + seconds * 1000,
  })
  const testResults = [tookSeconds('quick', 4.9), tookSeconds('slow', 5), tookSeconds('slowest', 61)]
  writeFileSync(path, JSON.stringify({ testResults }))
  const { stdout } = spawnSync(process.execPath, [join(root, '.ci/count.mjs'), path], { encoding: 'utf8' })
  expect(stdout).toBe('  61 s  slowest\n   5 s  slow\n3 passed, 0 failed, 0 skipped\n')
})

test('the last line counts all reports, and a report without a test is a failure', () => {
  const paths = ['sound', 'other', 'empty'].map((name) => join(folder, `${name}.json`))
  writeFileSync(paths[0] ?? '', JSON.stringify({ testResults: [file('passed', passed)] }))
  writeFileSync(paths[1] ?? '', JSON.stringify({ testResults: [file('passed', passed, passed)] }))
  writeFileSync(paths[2] ?? '', JSON.stringify({ testResults: [] }))
  const count = (...reports: readonly string[]) =>
    spawnSync(process.execPath, [join(root, '.ci/count.mjs'), ...reports], { encoding: 'utf8' })
  expect(count(...paths.slice(0, 2))).toMatchObject({ stdout: '3 passed, 0 failed, 0 skipped\n', status: 0 })
  expect(count(...paths).status).toBe(1)
})
