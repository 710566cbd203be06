import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

let folder: string
/** The functions that react to signals, for processes that load nothing else. */
const bundle = (): string => join(folder, 'stop-on-signal.cjs')
const from = (): string => JSON.stringify(pathToFileURL(bundle()).href)
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trellis-signals-'))
  const entryPoints = ['src/cli/stop-on-signal.ts']
  await build({ entryPoints, outfile: bundle(), bundle: true, platform: 'node', format: 'cjs' })
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** A process that has a stand-in for the gateway: a server that takes `closeMs` to close. */
const program = (closeMs: number, graceMs: number, outcome: string, isTerminal = false): string => `
  import { createServer } from 'node:http'
  import { stopOnSignal } from ${from()}
  const server = createServer((_request, response) => response.end())
  server.listen(0, '127.0.0.1', () => console.log('listening'))
  const drain = (start) => console.log('drain ' + start) ?? new Promise((resolve) => setTimeout(() => server.close(() => { console.log('closed'); resolve(${JSON.stringify(outcome)}) }), ${closeMs}))
  const reload = async () => console.log('reloaded')
  const faulted = (cause) => console.log('faulted ' + cause.message)
  const drainAndEnd = stopOnSignal({ publicAddress: '', adminAddress: '', drain, reload, faulted }, ${graceMs}, process.stderr, (start) => ' ' + start, ${isTerminal})
  process.on('message', (asked) => setImmediate(() => { if (asked === 'drain') drainAndEnd(); else throw new Error('planted') }))
`

/** A process that is starting until it gets a message. */
const startingProgram = (): string => `
  import { handleSignalsWhileStarting, stopOnSignal } from ${from()}
  const endOfStart = handleSignalsWhileStarting(process.stderr)
  const gateway = { publicAddress: '', adminAddress: '', drain: async () => 'finished', reload: async () => console.log('reloaded'), faulted: () => {} }
  process.on('message', () => {
    stopOnSignal(gateway, 10_000, process.stderr, () => '')
    if (endOfStart()) gateway.reload()
  })
  console.log('listening')
`

const started = (closeMs: number, graceMs = 10_000, outcome = 'finished') =>
  startedProgram(program(closeMs, graceMs, outcome))

const startedProgram = async (source: string) => {
  const child = spawn(process.execPath, ['--input-type=module', '-e', source], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  let text = ''
  const isListening = new Promise<void>((resolve) => {
    child.stdout?.on('data', (chunk: Buffer) => {
      text += chunk.toString()
      if (text.includes('listening')) resolve()
    })
  })
  child.stderr?.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  await isListening
  return { child, text: () => text }
}

/** When all that it has written is read. */
const exitCode = async (child: ChildProcess): Promise<unknown> => {
  const open = [child.stdout, child.stderr].filter((stream) => stream?.readableEnded === false)
  const [[code]] = await Promise.all([
    once(child, 'exit'),
    ...open.map((stream) => stream && once(stream, 'end')),
  ])
  return code
}

test('SIGUSR1 does not open the debugger of Node, and SIGUSR2 does not end the process', async () => {
  const { child, text } = await startedProgram(`
    import { ignoreUserSignals } from ${from()}
    ignoreUserSignals(process.stderr)
    setInterval(() => {}, 1_000)
    console.log('listening')
  `)
  for (const signal of ['SIGUSR1', 'SIGUSR2'] as const) {
    child.kill(signal)
    await expect.poll(text).toContain(`trellis: ${signal}, nothing is done`)
  }
  expect(text()).not.toContain('Debugger')
  expect(child.exitCode ?? child.signalCode).toBeNull()
  child.kill('SIGTERM')
})

describe('a running gateway', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)(
    '%s drains the gateway and ends the process with 0',
    async (signal) => {
      const { child, text } = await started(50)
      child.kill(signal)
      expect(await exitCode(child)).toBe(0)
      expect(text()).toContain(`trellis: ${signal}, closing`)
      expect(text()).toContain('closed')
    },
  )

  test.each([
    ['SIGINT', true, 'at-once'],
    ['SIGINT', false, 'after-delay'],
    ['SIGTERM', true, 'after-delay'],
  ] as const)('%s, in a terminal: %s, begins the drain %s', async (signal, isTerminal, start) => {
    const { child, text } = await startedProgram(program(0, 10_000, 'finished', isTerminal))
    child.kill(signal)
    expect(await exitCode(child)).toBe(0)
    expect(text()).toContain(`trellis: ${signal}, closing ${start}`)
    expect(text()).toContain(`drain ${start}`)
  })

  test('the process ends with 5 when drain.timeout cut connections', async () => {
    const { child, text } = await started(0, 10_000, 'cut')
    child.kill('SIGTERM')
    expect(await exitCode(child)).toBe(5)
    expect(text()).toContain('drain.timeout has passed')
  })

  test('SIGHUP reloads the configuration', async () => {
    const { child, text } = await started(0)
    child.kill('SIGHUP')
    await expect.poll(text).toContain('reloaded')
    child.kill('SIGTERM')
    expect(await exitCode(child)).toBe(0)
  })

  test('a second signal ends the process at once with 5', async () => {
    const { child, text } = await started(60_000)
    child.kill('SIGTERM')
    await expect.poll(text).toContain('closing')
    child.kill('SIGINT')
    expect(await exitCode(child)).toBe(5)
    expect(text()).toContain('second signal (SIGINT)')
  })

  test('POST /drain closes the gateway once, with a message, and ends the process with 0', async () => {
    const { child, text } = await started(50)
    child.send('drain')
    child.send('drain')
    expect(await exitCode(child)).toBe(0)
    expect(text().match(/trellis: .*/g)).toEqual(['trellis: POST /drain, closing after-delay'])
    expect(text().match(/closed/g)).toHaveLength(1)
  })

  test('the first signal after POST /drain joins the drain, the second one ends it', async () => {
    const { child, text } = await started(60_000)
    child.send('drain')
    await expect.poll(text).toContain('POST /drain')
    child.kill('SIGTERM')
    await expect.poll(text).toContain('SIGTERM, closing')
    child.kill('SIGTERM')
    expect(await exitCode(child)).toBe(5)
    expect(text()).toContain('second signal (SIGTERM)')
  })

  test('POST /drain waits no longer than the grace period', async () => {
    const { child, text } = await started(60_000, 100)
    child.send('drain')
    expect(await exitCode(child)).toBe(5)
    expect(text()).toContain('not closed after 100 ms')
  })

  test('the process ends with 5 when closing takes longer than the grace period', async () => {
    const { child, text } = await started(60_000, 100)
    child.kill('SIGTERM')
    expect(await exitCode(child)).toBe(5)
    expect(text()).toContain('not closed after 100 ms')
  })

  test('an uncaught error drains the gateway, prints its stack and ends the process with 4', async () => {
    const { child, text } = await started(50)
    child.send('throw')
    expect(await exitCode(child)).toBe(4)
    expect(text()).toContain('faulted planted')
    expect(text()).toContain('unexpected error, closing: Error: planted')
    expect(text()).toContain('closed')
  })
})

describe('a starting gateway', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)('%s ends the process at once with 0', async (signal) => {
    const { child, text } = await startedProgram(startingProgram())
    child.kill(signal)
    expect(await exitCode(child)).toBe(0)
    expect(text()).toContain(`trellis: ${signal} before the start was complete`)
  })

  test('SIGHUP reloads the configuration as soon as the gateway runs', async () => {
    const { child, text } = await startedProgram(startingProgram())
    child.kill('SIGHUP')
    child.send('it runs')
    await expect.poll(text).toContain('reloaded')
    child.kill('SIGTERM')
    expect(await exitCode(child)).toBe(0)
    expect(text()).toContain('trellis: SIGTERM, closing')
    expect(text().match(/reloaded/g)).toHaveLength(1)
  })
})
