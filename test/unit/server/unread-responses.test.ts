import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { createBufferedBytes } from '../../../src/server/buffered-bytes.ts'
import type { EdgeEvent } from '../../../src/server/events.ts'
import { createUnreadResponses } from '../../../src/server/unread-responses.ts'

class FakeResponse extends EventEmitter {
  readonly req: { readonly httpVersionMajor: number; readonly socket: PassThrough }
  readonly socket: PassThrough | null
  destroyed = false
  constructor(httpVersionMajor: number, waitsForTurn: boolean) {
    super()
    this.req = { httpVersionMajor, socket: new PassThrough() }
    this.socket = waitsForTurn ? null : this.req.socket
  }
  destroy(): void {
    if (this.destroyed) return
    this.destroyed = true
    this.emit('close')
  }
}

const setUp = (maxBytes: number) => {
  const events: EdgeEvent[] = []
  const buffered = createBufferedBytes({
    maxBytes: () => maxBytes,
    report: () => undefined,
  })
  const unread = createUnreadResponses({
    maxBytes: () => maxBytes,
    forced: buffered.forced,
    report: (event) => events.push(event),
  })
  const hold = (content: Buffer, address: string, version = 1, waitsForTurn = false): FakeResponse => {
    const raw = new FakeResponse(version, waitsForTurn)
    unread.buffer(raw as unknown as ServerResponse, content, address)
    return raw
  }
  return { buffered, hold, events }
}

const content = (): Buffer => Buffer.alloc(100_000)

test('a content counts once, however many clients are slow to take it, and until the last one has gone', () => {
  const { buffered, hold } = setUp(1_000_000)
  const one = content()
  const readers = ['a', 'b', 'c'].map((address) => hold(one, address))
  expect(buffered.bytes).toBe(100_000)
  for (const reader of readers) {
    expect(buffered.bytes).toBe(100_000)
    reader.destroy()
  }
  expect(buffered.bytes).toBe(0)
})

test('a small content is not counted', () => {
  const { buffered, hold } = setUp(1_000_000)
  hold(Buffer.alloc(65_536), 'a')
  expect(buffered.bytes).toBe(0)
})

test.each([
  ['over HTTP/2', 2, false],
  ['that waits for its turn', 1, true],
])('a small content %s counts, since its connection may have many of them', (_, version, waitsForTurn) => {
  const { buffered, hold } = setUp(1_000_000)
  const raw = hold(Buffer.alloc(60_000), 'a', version, waitsForTurn)
  hold(Buffer.alloc(4_096), 'a', version, waitsForTurn)
  expect(buffered.bytes).toBe(60_000)
  raw.destroy()
  expect(buffered.bytes).toBe(0)
})

test('a connection whose response waits for its turn is ended with it', () => {
  const { hold } = setUp(200_000)
  const waiting = hold(content(), 'a', 1, true)
  hold(content(), 'a', 1, true)
  expect(waiting.req.socket.destroyed).toBe(true)
})

test('where half of the bound is used, the client that has most loses the connection that has been reading longest', () => {
  const { buffered, hold, events } = setUp(1_000_000)
  const modest = hold(content(), 'b')
  const readers = Array.from({ length: 6 }, () => hold(content(), 'a'))
  expect(readers.map(({ destroyed }) => destroyed)).toEqual([true, true, false, false, false, false])
  expect(modest.destroyed).toBe(false)
  expect(buffered.bytes).toBe(500_000)
  expect(events).toEqual(Array(2).fill({ kind: 'connection-cut', reason: 'slow-reader' }))
})

test('another client of the same content goes on when the one that began it is ended', () => {
  const { buffered, hold } = setUp(400_000)
  const shared = content()
  const first = hold(shared, 'a')
  const second = hold(shared, 'b')
  hold(content(), 'a')
  hold(content(), 'a')
  expect(first.destroyed).toBe(true)
  expect(second.destroyed).toBe(false)
  expect(buffered.bytes).toBeLessThanOrEqual(200_000)
  second.destroy()
  expect(buffered.bytes).toBeLessThanOrEqual(200_000)
})
