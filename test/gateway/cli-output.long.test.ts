import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, open, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { builtGateway } from '../support/built-gateway.ts'
import { pause } from '../support/origin.ts'
import { freePort } from '../support/ports.ts'

// Where a program's own words go may be full, or gone.

let main = ''
let folder = ''
beforeAll(async () => {
  main = await builtGateway()
  folder = await mkdtemp(join(tmpdir(), 'trellis-output-'))
})

/** A machine that is busy with other tests is no overload of the gateway under test. */
const calm = { overload: { eventLoopDelay: '0s' }, services: { plants: { contract: 'plants' } } }

const untilAlive = async (url: string): Promise<void> => {
  for (let tries = 0; tries < 600; tries += 1) {
    const response = await fetch(url).catch(() => undefined)
    await response?.arrayBuffer()
    if (response?.ok === true) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`${url} does not answer`)
}

test('a command ends without a message when the reader closes the pipe', async () => {
  const program = spawn(process.execPath, [main, 'schema'], { stdio: ['ignore', 'pipe', 'pipe'] })
  let stderr = ''
  program.stderr.on('data', (text) => {
    stderr += text
  })
  program.stdout.destroy()
  const [code] = await once(program, 'close')
  expect([code, stderr]).toEqual([0, ''])
})

test('a gateway with log.format: pretty keeps answering after its terminal has closed', async () => {
  const [port, admin] = [await freePort(), await freePort()]
  const file = join(folder, 'pretty.yaml')
  const config = {
    listen: { port },
    admin: { port: admin },
    drain: { delay: '0s', timeout: '1s' },
    ...calm,
    log: { format: 'pretty' },
  }
  await writeFile(file, JSON.stringify(config))
  const program = spawn(process.execPath, [main, 'start', '-c', file], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const ended = once(program, 'close')
  try {
    let text = ''
    program.stdout.on('data', (chunk) => {
      text += chunk
    })
    await untilAlive(`http://127.0.0.1:${admin}/livez`)
    await expect.poll(() => text).toMatch(/^\[[\d:.]+\] .*INFO.*: .*admin side listens on/m)
    program.stdout.destroy()
    for (let i = 0; i < 3; i += 1) {
      const refused = await fetch(`http://127.0.0.1:${port}/nothing`)
      expect(refused.status).toBe(404)
      await refused.arrayBuffer()
    }
    program.kill('SIGTERM')
    expect(await ended).toEqual([0, null])
  } finally {
    program.kill('SIGKILL')
  }
})

test('a gateway keeps answering while nothing reads its log, and ends on a signal', async () => {
  const [port, admin] = [await freePort(), await freePort()]
  const file = join(folder, 'stalled.yaml')
  const config = { listen: { port }, admin: { port: admin }, reload: { watch: false }, ...calm }
  await writeFile(file, JSON.stringify(config))
  const program = spawn(process.execPath, [main, 'start', '-c', file], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  try {
    await untilAlive(`http://127.0.0.1:${admin}/livez`)
    // Each refused reload is a long line: together they are more than the system holds for a reader.
    const faults = Object.fromEntries(Array.from({ length: 250 }, (_, index) => [`unknown-${index}`, 1]))
    await writeFile(file, JSON.stringify({ ...config, ...faults }))
    for (let lines = 0; lines < 12; lines += 1) {
      const refused = await fetch(`http://127.0.0.1:${admin}/reload`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: '{}',
        signal: AbortSignal.timeout(60_000),
      })
      expect(refused.status).toBe(422)
      await refused.arrayBuffer()
    }
    await pause(1_500)
    program.kill('SIGTERM')
    expect(await once(program, 'exit')).toEqual([0, null])
  } finally {
    program.kill('SIGKILL')
  }
})

// Linux has a device that is always full; no other system that Trellis runs on does.
describe.skipIf(!existsSync('/dev/full'))('a full disk', () => {
  test('a command that cannot write to stdout prints a message and ends with 4', async () => {
    const full = await open('/dev/full', 'w')
    const program = spawn(process.execPath, [main, 'check', '--demo'], { stdio: ['ignore', full.fd, 'pipe'] })
    let stderr = ''
    program.stderr?.on('data', (text) => {
      stderr += text
    })
    const [code] = await once(program, 'close')
    await full.close()
    expect(stderr).toMatch(/^trellis: cannot write to stdout: ENOSPC[^\n]*\n$/)
    expect(code).toBe(4)
  })

  test.each([
    ['without an access log', false],
    ['with an access log', true],
  ])('a gateway %s keeps answering and ends with 0', async (_, access) => {
    const [port, admin] = [await freePort(), await freePort()]
    const file = join(folder, `access-${access}.yaml`)
    const config = {
      listen: { port },
      admin: { port: admin },
      drain: { delay: '0s', timeout: '1s' },
      ...calm,
      log: { access },
    }
    await writeFile(file, JSON.stringify(config))
    const full = await open('/dev/full', 'w')
    const program = spawn(process.execPath, [main, 'start', '-c', file], {
      stdio: ['ignore', full.fd, full.fd],
    })
    const ended = once(program, 'close')
    try {
      await untilAlive(`http://127.0.0.1:${admin}/livez`)
      for (let i = 0; i < 3; i += 1) {
        const refused = await fetch(`http://127.0.0.1:${port}/nothing`)
        expect(refused.status).toBe(404)
        await refused.arrayBuffer()
      }
      program.kill('SIGTERM')
      const late = new Promise((resolve) => setTimeout(resolve, 20_000, ['still there']))
      expect(await Promise.race([ended, late])).toEqual([0, null])
    } finally {
      program.kill('SIGKILL')
      await full.close()
    }
  })
})
