import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeAll, expect, test, vi } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { startSupervisor } from '../../../src/cluster/supervisor.ts'
import type { WorkerEvent } from '../../../src/cluster/worker-link.ts'

/** Does what its settings say, and answers what is held when it is asked to let go. */
const program = `
  let held
  const say = (message) => process.send(message)
  const taken = { message: 'taken', facts: { code: 'EADDRINUSE', syscall: 'bind', address: '127.0.0.1', port: 8080 } }
  process.on('message', (message) => {
    if (message.kind === 'drain') process.exit(0)
    if (message.kind === 'assigned') {
      const { settings } = message.assignment
      if (settings === 'fails') say({ kind: 'failed', ...taken })
      else if (settings !== 'never ready') say({ kind: 'ready', addresses: 'here' })
      if (settings === 'ends') say({ kind: 'end' })
    }
    if (message.kind !== 'asked') return
    if (message.question.topic === 'hold') held = message.id
    else {
      say({ kind: 'answer', id: held, content: 'held' })
      say({ kind: 'answer', id: message.id, content: 'let go' })
    }
  })
  say({ kind: 'hello' })
`

const node = process.execPath

let folder: string
let file: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trellis-supervisor-'))
  file = join(folder, 'worker.mjs')
  await writeFile(file, program)
})
afterEach(() => {
  vi.useRealTimers()
  process.execPath = node
})

const start = async (settings: string, workers = 1) => {
  const events: WorkerEvent[] = []
  const end = vi.fn()
  const supervisor = await startSupervisor({
    workers,
    program: { file, args: [] },
    settings: () => settings,
    through: (question, ask) => ask(question, question.topic === 'hold' ? 'until-all' : 'brief'),
    end,
    stale: () => undefined,
    graceMs: 60_000,
    clock: systemClock,
    report: (event) => events.push(event),
  })
  const ready = () => events.filter(({ kind }) => kind === 'worker-ready')
  return { supervisor, events, ready, end }
}

/** What the system says when Node is being replaced on the disk; it says as much without memory or processes to give. */
const noProcesses = (): void => {
  process.execPath = join(folder, 'nowhere')
}

test('a worker whose successor cannot be started has one as soon as one can', async () => {
  const { supervisor, events, ready } = await start('ready')
  noProcesses()
  process.kill(ready()[0]?.pid ?? 0, 'SIGKILL')
  await expect
    .poll(() => events)
    .toContainEqual(expect.objectContaining({ kind: 'worker-ended', code: 'ENOENT', pid: 0 }))
  process.execPath = node
  await expect.poll(() => ready().length).toBe(2)
  expect(await supervisor.close()).toBe('finished')
})

test('a worker that cannot be started does not delay the end', async () => {
  const { supervisor, events, ready } = await start('ready', 2)
  noProcesses()
  process.kill(ready()[0]?.pid ?? 0, 'SIGKILL')
  await expect.poll(() => events).toContainEqual(expect.objectContaining({ code: 'ENOENT' }))
  expect(await supervisor.close()).toBe('finished')
})

test('a start without processes to give fails, and says why', async () => {
  noProcesses()
  await expect(start('ready')).rejects.toThrow(/^a worker could not be started: spawn .*nowhere ENOENT$/)
})

test('a worker that falls silent while it starts is killed', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const started = start('never ready')
  vi.advanceTimersByTime(60_000)
  await expect(started).rejects.toThrow('a worker ended with SIGKILL before it was ready')
})

test("the reason why a worker could not listen is the system's", async () => {
  await expect(start('fails')).rejects.toMatchObject({
    message: 'taken',
    code: 'EADDRINUSE',
    syscall: 'bind',
    address: '127.0.0.1',
    port: 8080,
  })
})

test('a question that concerns all is answered when all have answered, however long it takes', async () => {
  const { supervisor } = await start('ready', 2)
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const held = supervisor.ask({ topic: 'hold', content: null })
  vi.advanceTimersByTime(3_600_000)
  expect(await supervisor.ask({ topic: 'let go', content: null })).toEqual(['let go', 'let go'])
  expect(await held).toEqual(['held', 'held'])
  vi.useRealTimers()
  expect(await supervisor.close()).toBe('finished')
})

test('a drain requested at one worker reaches the parent', async () => {
  const { supervisor, end } = await start('ends')
  await expect.poll(() => end).toHaveBeenCalledOnce()
  expect(await supervisor.close()).toBe('finished')
})
