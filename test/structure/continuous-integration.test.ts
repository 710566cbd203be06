import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
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

test('the folders that run each night with the Node of the image exist, and those of sockets are among them', () => {
  const nightly = readFileSync(join(root, '.ci/nightly'), 'utf8')
  const folders = /touch_node=\(([^)]*)\)/.exec(nightly)?.[1]?.split(/\s+/) ?? []
  expect(folders.length).toBeGreaterThan(5)
  for (const folder of folders) expect(existsSync(join(root, folder)), folder).toBe(true)
  expect(folders).toEqual(expect.arrayContaining(['test/conformance', 'test/gateway', 'test/unit/server']))
})

test.each(['run', 'nightly'])('.ci/%s is a script that bash takes', (name) => {
  execFileSync('bash', ['-n', join(root, '.ci', name)])
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

describe('a file that failed', () => {
  const failedFile = (name: string, message: string, source = '') => {
    const path = join(folder, name)
    writeFileSync(path, source)
    const failure = { status: 'failed', fullName: 'a title', failureMessages: [message] }
    return { ...file('failed', passed), name: path, assertionResults: [passed, failure] }
  }
  const write = (name: string, ...testResults: readonly unknown[]): string => {
    const path = join(folder, `${name}.json`)
    writeFileSync(path, JSON.stringify({ testResults }))
    return path
  }
  const mayRunAgain = (...testResults: readonly unknown[]) => {
    const args = [join(root, '.ci/failed-files.mjs'), write('first', ...testResults)]
    const { stdout, status } = spawnSync(process.execPath, args, { encoding: 'utf8' })
    return { stdout: stdout.replaceAll(`${folder}/`, ''), status }
  }
  const late = 'expected 0 to be 1'
  const sound = { ...file('passed', passed), name: 'sound.test.ts' }
  const [a, b, c, ...others] = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((name) =>
    failedFile(`${name}.test.ts`, late),
  )

  test('may run again, up to six of them', () => {
    expect(mayRunAgain(sound, a)).toEqual({ stdout: 'a.test.ts\n', status: 0 })
    expect(mayRunAgain(a, b, sound, c)).toEqual({ stdout: 'a.test.ts\nb.test.ts\nc.test.ts\n', status: 0 })
    expect(mayRunAgain(a, b, c, ...others)).toEqual({ stdout: '', status: 1 })
    expect(mayRunAgain(sound)).toEqual({ stdout: '', status: 1 })
  })

  test.each([
    ['a.test.ts', 'stale: GET /posts', ''],
    ['a.test.ts', 'expected an OLDER title', ''],
    ['a.test.ts', 'expected 1 to be 0', 'expect(stale).toBe(0)'],
    ['redis-consistency.test.ts', late, ''],
    ['promise-fuzz.test.ts', late, ''],
  ])('does not run again where it looks for stale responses: %s, %s, %s', (name, message, source) => {
    expect(mayRunAgain(failedFile(name, message, source))).toEqual({ stdout: '', status: 1 })
  })

  describe('of a file with several tests', () => {
    const lines = [
      'const same = () => expect(1).toBe(2)',
      "test('a stale response is not served', () => {",
      '  expect(1).toBe(2)',
      '})',
      "test('a title', () => {",
      '  expect(1).toBe(2)',
      '})',
    ]
    const at = (...places: readonly string[]) =>
      ['expected 1 to be 2', ...places.map((place) => `at ${join(folder, place)}:9`)].join('\n    ')
    const repeats = (...places: readonly string[]) =>
      mayRunAgain(failedFile('a.test.ts', at(...places), lines.join('\n'))).status === 0

    test('counts what the failed test looks for, and what its functions do', () => {
      expect(repeats('a.test.ts:6')).toBe(true)
      expect(repeats('a.test.ts:3')).toBe(false)
      expect(repeats('a.test.ts:1', 'a.test.ts:6')).toBe(false)
      expect(repeats('test/support/checker.ts:1', 'a.test.ts:6')).toBe(false)
      expect(repeats()).toBe(false)
    })
  })

  test.each([
    'expected 56.2 to be less than 50',
    'Error: Test timed out in 60000ms.',
    'Error: ended with 3 before it was ready:\ntrellis: cannot start: admin.port: another program listens',
    'Error: not ready in 60000 ms (fetch failed):',
  ])('runs again where only the machine was slow, whatever it looks for: %s', (message) => {
    const file = failedFile('consistency.test.ts', message, 'expect(stale).toBe(0)')
    expect(mayRunAgain(file)).toEqual({ stdout: 'consistency.test.ts\n', status: 0 })
  })

  test('counts as its second run, and is named', () => {
    const path = write('twice', failedFile('a.test.ts', late), sound)
    const count = () => spawnSync(process.execPath, [join(root, '.ci/count.mjs'), path], { encoding: 'utf8' })
    expect(count()).toMatchObject({ status: 1 })
    write('twice-again', { ...file('passed', passed, passed), name: join(folder, 'a.test.ts') })
    const named = `failed once, passed alone: ${join(folder, 'a.test.ts')} > a title`
    expect(count()).toMatchObject({ stdout: `${named}\n3 passed, 0 failed, 0 skipped\n`, status: 0 })
    write('twice-again', failedFile('a.test.ts', late))
    expect(count()).toMatchObject({ status: 1 })
  })
})
