import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startBackend } from '../../packages/promise-suite/backend.js'
import { bundleSimulation } from '../cluster-simulation/bundle.ts'
import { readResults } from '../cluster-simulation/hunt-faults.ts'
import { protocolFaults } from '../cluster-simulation/protocol-faults.ts'
import { describeWith } from '../support/requirements.ts'

/** A read that began when a second version of what it read was acknowledged. */
const isAfterSecondWrite = (line: string, lines: readonly string[]): boolean => {
  const [kind, , key, , from] = line.split(' ')
  return (
    kind === 'read' &&
    lines.some((other) => {
      const [otherKind, , otherKey, version, , to] = other.split(' ')
      return (
        otherKind === 'write' &&
        otherKey === key &&
        Number(version) >= 2 &&
        to !== '-' &&
        Number(to) < Number(from)
      )
    })
  )
}

const run = promisify(execFile)

describeWith('go', 'the checker of histories, which shares no code with what it judges', () => {
  let folder: string
  let checker: string
  const at = (name: string): string => join(folder, name)

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'trellis-histories-'))
    checker = at('check-history')
    await run('go', ['build', '-o', checker, 'test/histories/check-history.go'])
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  const check = async (history: string): Promise<string> => {
    const { stdout } = await run(checker, [history]).catch((error: { stdout: string }) => error)
    return stdout
  }
  const checkLines = async (...lines: readonly string[]): Promise<string> => {
    await writeFile(at('lines'), `${lines.join('\n')}\n`)
    return check(at('lines'))
  }
  const verdict = (stale: number, unwritten: number): RegExp =>
    new RegExp(`^\\d{2,} reads, \\d{2,} writes, ${stale} stale, ${unwritten} unwritten$`, 'm')

  test('a read may show what was acknowledged before it began, and what was sent before it ended', async () => {
    const writes = ['write a x 1 0 10', 'write a x 2 20 30', 'write a x 3 40 -']
    expect(await checkLines(...writes, 'read b x 1 25 26', 'read b x 2 25 26')).toContain(
      '2 reads, 3 writes, 0 stale, 0',
    )
    expect(await checkLines(...writes, 'read b x 2 50 60', 'read b x 3 50 60')).toContain('0 stale, 0')
    expect(await checkLines(...writes, 'read b x 1 30 31')).toContain('0 stale')
    expect(await checkLines(...writes, 'read b x 1 31 32')).toContain('1 stale, 0 unwritten')
    expect(await checkLines(...writes, 'read b x 3 31 32')).toContain('0 stale, 1 unwritten')
    expect(await checkLines(...writes, 'read b x 4 50 60')).toContain('0 stale, 1 unwritten')
    expect(await checkLines(...writes, 'read b y 0 50 60')).toContain('0 stale, 0 unwritten')
  })

  test('of what is acknowledged in another order the highest version counts', async () => {
    const writes = ['write a x 2 0 10', 'write a x 1 0 20']
    expect(await checkLines(...writes, 'read b x 1 30 40')).toContain('1 stale')
  })

  const simulate = async (
    history: string,
    seed: number,
    fault?: (typeof protocolFaults)[number],
  ): Promise<string> => {
    const program = await bundleSimulation(fault)
    const args = [program, '--first', String(seed), '--seeds', '1', '--as-is', '--history', history]
    const { stdout } = await run(execPath, args).catch((error: { stdout: string }) => error)
    return stdout
  }

  test('the simulation of the cluster: nothing stale, nothing made up', async () => {
    expect(await simulate(at('simulated'), 3)).toMatch(/^{"seeds":1,"violations":0/m)
    expect(await check(at('simulated'))).toMatch(verdict(0, 0))
  })

  test('a fault planted in the protocol is seen by both', async () => {
    const [found] = (await readResults()).filter(({ seed, seconds }) => seed !== undefined && seconds < 2)
    const fault = protocolFaults.find(({ name }) => name === found?.name)
    expect(fault).toBeDefined()
    expect(await simulate(at('planted'), found?.seed ?? 0, fault)).toMatch(/^{"seeds":1,"violations":1/m)
    expect(await check(at('planted'))).toMatch(/[1-9]\d* stale, 0 unwritten$/m)
  })

  test('the public suite before its own backend, and a history in which a read is made older', async () => {
    const backend = await startBackend({ port: 0, maxAge: 0, delay: 1 })
    const historyOf = async (seconds: number): Promise<string> => {
      const history = at(`suite-${seconds}`)
      const options = ['--seconds', String(seconds), '--reads', '300', '--history', history]
      await run(execPath, ['packages/promise-suite/cli.js', ...options, backend.url])
      return history
    }
    let lines: string[] = []
    let later = -1
    try {
      // On a busy machine a second may not be enough for an item that is written twice and read.
      for (let seconds = 1; later < 0; seconds *= 2) {
        const history = await historyOf(seconds)
        lines = (await readFile(history, 'utf8')).split('\n')
        later = lines.findLastIndex((line) => isAfterSecondWrite(line, lines))
        if (later >= 0) expect(await check(history)).toMatch(verdict(0, 0))
      }
    } finally {
      await backend.close()
    }
    lines[later] = (lines[later] as string).replace(/^(read \S+ \S+) \d+ /, '$1 1 ')
    await writeFile(at('older'), lines.join('\n').trimEnd())
    expect(await check(at('older'))).toMatch(verdict(1, 0))
  })
})
