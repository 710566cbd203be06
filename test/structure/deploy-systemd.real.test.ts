import { execFile } from 'node:child_process'
import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { exitCodes } from '../../src/cli/cli-ports.ts'
import { checkConfig } from '../../src/gateway/load-config.ts'
import { describeWith } from '../support/requirements.ts'

const run = promisify(execFile)
const unit = await readFile('deploy/systemd/trellis.service', 'utf8')

/** Last value of a setting. */
const setting = (name: string): string | undefined =>
  [...unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].at(-1)?.[1]

test('a reload is SIGHUP, a stop is SIGTERM to the main process, which has the time to drain', async () => {
  expect(setting('ExecReload')).toBe('/bin/kill -HUP $MAINPID')
  expect(setting('KillMode')).toBe('mixed')
  expect(setting('KillSignal')).toBeUndefined()
  const defaults = await checkConfig('', {})
  if (defaults.kind === 'faults') throw new Error('the defaults have faults')
  const { delayMs, timeoutMs } = defaults.config.drain
  expect(Number(setting('TimeoutStopSec')) * 1000).toBeGreaterThan(delayMs + timeoutMs)
})

test('it checks its configuration before it starts, and is not started again for faults of it', () => {
  const check = setting('ExecStart')
    ?.replace(' --no-allocation-site-pretenuring', '')
    .replace(' start ', ' check ')
  expect(setting('ExecStartPre')).toBe(check)
  const hopeless = [exitCodes.configFaults.code, exitCodes.usage.code]
  expect(setting('RestartPreventExitStatus')).toBe(hopeless.join(' '))
})

describeWith('systemd', 'systemd reads the unit', () => {
  let folder: string
  let file: string

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'trellis-unit-'))
    file = join(folder, 'trellis.service')
    // Node is elsewhere on some machines, and a program that is not there is a fault.
    await writeFile(file, unit.replaceAll('/usr/bin/node', process.execPath))
  })

  test('it finds no fault', async () => {
    const { stdout, stderr } = await run('systemd-analyze', ['verify', '--man=no', file])
    // Faults of other units of the machine do not count.
    expect(`${stdout}${stderr}`.split('\n').filter((line) => line.includes('trellis'))).toEqual([])
  })

  test('it exposes little: 1.5 of 10 or less', async () => {
    await run('systemd-analyze', ['security', '--offline=true', '--threshold=15', file])
  })
})
