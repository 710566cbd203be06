import { expect, test } from 'vitest'
import { createFairTurns } from '../../../../src/http/bounds/fair-turns.ts'
import type { UpstreamEvent } from '../../../../src/upstream/events.ts'
import { Attempt } from '../../../../src/upstream/send/attempt.ts'
import type { Target } from '../../../../src/upstream/targets/targets.ts'

const timeouts = { connectMs: 0, headersMs: 0, idleMs: 0, totalMs: 0 }
const target = { origin: 'http://127.0.0.1', outstanding: 0 } as Target

/** An attempt whose response has begun, the octets that its listener got, and how often reading was resumed. */
const begun = (turns = createFairTurns(4), readOn = (): void => {}) => {
  const seen = { bytes: 0, resumed: 0, failed: 0, events: [] as string[] }
  const nothing = (): void => {}
  const listener = {
    interim: nothing,
    head: nothing,
    upgraded: nothing,
    data: (chunk: Buffer) => {
      seen.bytes += chunk.length
    },
    end: nothing,
    failed: () => {
      seen.failed += 1
    },
    contentSent: nothing,
  }
  const context = {
    options: { service: 'test', timeouts },
    clock: { now: () => 0, monotonic: () => 0 },
    report: ({ kind }: UpstreamEvent) => void seen.events.push(kind),
    targets: { succeeded: nothing, failed: nothing, abandoned: nothing },
    longResponses: turns,
  }
  const request = { content: undefined, headers: [], attempted: undefined }
  const attempt = new Attempt(context, { target, trial: false }, 1, request, listener)
  attempt.onConnect(nothing)
  attempt.onHeaders(200, [], () => {
    seen.resumed += 1
    readOn()
  })
  return { attempt, seen }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const chunk = Buffer.alloc(64 * 1024)

test('a response of many megabytes lets other connections be served after each 128 KiB', async () => {
  const { attempt, seen } = begun()
  expect(attempt.onData(chunk)).toBe(true)
  expect(attempt.onData(chunk)).toBe(false)
  expect(seen).toMatchObject({ bytes: 2 * chunk.length, resumed: 0 })
  await turn()
  expect(seen.resumed).toBe(1)
  expect(attempt.onData(chunk)).toBe(true)
})

test('an empty piece pauses nothing: the end of the connection may follow at once', () => {
  const { attempt } = begun()
  attempt.onData(chunk)
  attempt.pause()
  expect(attempt.onData(chunk)).toBe(false)
  expect(attempt.onData(Buffer.alloc(0))).toBe(true)
})

test('an assertion of the HTTP client that fails when it reads on fails this response alone, and is reported', async () => {
  const { attempt, seen } = begun(createFairTurns(4), () => {
    throw new Error('assertion')
  })
  attempt.onData(chunk)
  attempt.pause()
  attempt.onData(chunk)
  await turn()
  attempt.resume()
  expect(seen).toMatchObject({ failed: 1, events: ['connection-fault'] })
})

test('what a slow reader paused stays paused until that reader resumes', async () => {
  const { attempt, seen } = begun()
  attempt.onData(chunk)
  attempt.onData(chunk)
  attempt.pause()
  await turn()
  expect(seen.resumed).toBe(0)
  attempt.resume()
  expect(seen.resumed).toBe(1)
})

test('a reader that resumes within the same turn does not end the wait', async () => {
  const { attempt, seen } = begun()
  attempt.onData(chunk)
  attempt.pause()
  attempt.onData(chunk)
  attempt.resume()
  expect(seen.resumed).toBe(0)
  await turn()
  expect(seen.resumed).toBe(1)
})

test('of a hundred responses of many megabytes only some continue in one turn of the event loop, and all of them in the end', async () => {
  const turns = createFairTurns(4)
  const all = Array.from({ length: 100 }, () => begun(turns))
  for (const { attempt } of all) for (let at = 0; at < 2; at += 1) attempt.onData(chunk)
  const resumed = (): number => all.reduce((sum, { seen }) => sum + seen.resumed, 0)
  for (let passed = 1; passed <= 40; passed += 1) {
    const before = resumed()
    await turn()
    expect(resumed() - before).toBeLessThanOrEqual(4)
  }
  expect(resumed()).toBe(100)
})
