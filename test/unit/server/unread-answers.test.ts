import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { expect, test } from 'vitest'
import { createBufferedBytes, createUnreadAnswers } from '../../../src/server/buffered-bytes.ts'
import type { EdgeEvent } from '../../../src/server/events.ts'

class FakeResponse extends EventEmitter {
  readonly req = { httpVersionMajor: 1 }
  readonly socket = null
  destroyed = false
  destroy(): void {
    if (this.destroyed) return
    this.destroyed = true
    this.emit('close')
  }
}

const setUp = (mostBytes: number) => {
  const events: EdgeEvent[] = []
  const buffered = createBufferedBytes({
    mostBytes: () => mostBytes,
    report: () => undefined,
  })
  const unread = createUnreadAnswers({
    mostBytes: () => mostBytes,
    forced: buffered.forced,
    report: (event) => events.push(event),
  })
  const hold = (content: Buffer, address: string): FakeResponse => {
    const raw = new FakeResponse()
    unread.hold(raw as unknown as ServerResponse, content, address)
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
