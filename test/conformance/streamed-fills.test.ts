import { randomBytes } from 'node:crypto'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, pause, startOrigin } from '../support/origin.ts'
import { type PacedReader, startReader } from '../support/paced-reader.ts'

const maxBytes = 1_048_576
const content = randomBytes(600_000)
const middle = 200_000

let origin: Origin
let gateway: TestGateway
let path = ''
let target = 0
let readers: PacedReader[] = []

beforeAll(async () => {
  origin = await startOrigin()
  gateway = await startTestGateway({
    cache: { maxEntryBytes: '1MiB' },
    services: {
      open: {
        contract: 'open',
        mount: '/',
        upstream: { targets: [origin.origin] },
        cache: { profile: 'rfc-shared-cache' },
      },
    },
  })
})
closeAfterAll(() => [gateway, origin])
beforeEach(() => {
  target += 1
  path = `/streamed/${target}`
  readers = []
})
afterEach(() => {
  for (const reader of readers) reader.leave()
})

const read = (headers: Record<string, string> = {}): PacedReader => {
  const reader = startReader(gateway.publicAddress + path, headers)
  readers.push(reader)
  return reader
}

const statusOf = async (reader: PacedReader): Promise<string> =>
  String((await reader.head).headers['cache-status'])

type Wire = Parameters<Origin['script']>[1]
type Framing = 'length' | 'chunked'

const headOf = (framing: Framing, headers: readonly string[] = []): string =>
  [
    'HTTP/1.1 200 OK',
    'Cache-Control: max-age=60',
    'Content-Type: application/octet-stream',
    framing === 'length' ? `Content-Length: ${content.length}` : 'Transfer-Encoding: chunked',
    ...headers,
    '',
    '',
  ].join('\r\n')

const framed = (framing: Framing, bytes: Buffer): Buffer =>
  framing === 'length'
    ? bytes
    : Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])

const lastChunk = Buffer.from('0\r\n\r\n')

/** Sends the first half of each response at once; the rest when the test says so. */
const halfway = (
  framing: Framing,
  headers: readonly string[] = [],
): { readonly wires: Wire[]; finish(): void } => {
  const wires: Wire[] = []
  origin.script = (_, wire) => {
    wires.push(wire)
    wire.write(headOf(framing, headers))
    wire.write(framed(framing, content.subarray(0, middle)))
  }
  return {
    wires,
    finish: () => {
      for (const wire of wires.splice(0)) {
        wire.write(framed(framing, content.subarray(middle)))
        if (framing === 'chunked') wire.write(lastChunk)
      }
    },
  }
}

const isWhole = (got: Buffer | 'broken', wanted: Buffer): boolean => got !== 'broken' && got.equals(wanted)

const asked = (): number => origin.received.filter((one) => one.target === path).length

describe.each<Framing>(['length', 'chunked'])('a long content, framed by %s', (framing) => {
  test('streams to all readers from one request, also to one that joins late; then it is a hit', async () => {
    const half = halfway(framing)
    const early = [read(), read(), read()]
    await Promise.all(early.map((reader) => reader.until(middle)))
    const late = read()
    await late.until(middle)
    expect(late.bytes()).toBe(middle)
    half.finish()
    for (const reader of [...early, late]) expect(isWhole(await reader.end, content)).toBe(true)
    expect(asked()).toBe(1)
    const statuses = await Promise.all([...early, late].map(statusOf))
    expect(statuses.filter((status) => status.includes('collapsed'))).toHaveLength(3)
    expect(statuses.filter((status) => status.includes('fwd-status=200'))).toHaveLength(1)
    const hit = read()
    expect(isWhole(await hit.end, content)).toBe(true)
    expect(await statusOf(hit)).toContain('hit')
  })

  test('does not wait for a slow reader, which gets all of it at its own pace', async () => {
    const half = halfway(framing)
    const slow = read()
    await slow.until(1)
    slow.pause()
    const quick = read()
    await quick.until(middle)
    half.finish()
    expect(isWhole(await quick.end, content)).toBe(true)
    const hit = read()
    expect(isWhole(await hit.end, content)).toBe(true)
    expect(await statusOf(hit)).toContain('hit')
    slow.resume()
    expect(isWhole(await slow.end, content)).toBe(true)
    expect(asked()).toBe(1)
  })

  test('that breaks off breaks off for all its readers, and is not stored', async () => {
    const half = halfway(framing)
    const begun = [read(), read()]
    await Promise.all(begun.map((reader) => reader.until(middle)))
    // It wants to know whether it has changed, so it waits for the whole.
    const waits = read({ 'if-none-match': '"other"' })
    await pause(50)
    const [first] = half.wires
    expect(half.wires).toHaveLength(1)
    first?.reset()
    for (const reader of begun) expect(await reader.end).toBe('broken')
    await origin.until(() => half.wires.length === 2)
    half.finish()
    expect(isWhole(await waits.end, content)).toBe(true)
    expect(asked()).toBe(2)
  })

  test('is aborted when its last reader disconnects, and not before', async () => {
    const half = halfway(framing)
    const both = [read(), read()]
    await Promise.all(both.map((reader) => reader.until(middle)))
    const [wire] = half.wires
    both[0]?.leave()
    await pause(50)
    expect(wire?.socket.destroyed).toBe(false)
    const third = read()
    await third.until(middle)
    both[1]?.leave()
    third.leave()
    await origin.until(() => wire?.socket.destroyed === true)
    const next = read()
    await next.until(middle)
    half.finish()
    expect(isWhole(await next.end, content)).toBe(true)
    expect(asked()).toBe(2)
  })
})

test('a content that ends before its length is broken for all', async () => {
  const half = halfway('length')
  const reader = read()
  await reader.until(middle)
  half.wires[0]?.end()
  expect(await reader.end).toBe('broken')
  halfway('length').finish()
  const next = read()
  await next.until(middle)
  expect(await statusOf(next)).toContain('fwd=uri-miss')
})

test('a reader after a write gets nothing of a fill that started before it', async () => {
  const old = halfway('length')
  const before = [read(), read()]
  await Promise.all(before.map((reader) => reader.until(middle)))
  origin.script = (_, wire) => wire.respond({ content: 'written' })
  await fetch(gateway.publicAddress + path, { method: 'POST', body: 'x' })
  origin.script = (_, wire) => wire.respond({ headers: { 'Cache-Control': 'max-age=60' }, content: 'new' })
  const after = read()
  expect(String(await after.end)).toBe('new')
  old.finish()
  // They asked before the write was answered.
  for (const reader of before) expect(isWhole(await reader.end, content)).toBe(true)
  const hit = read()
  expect(String(await hit.end)).toBe('new')
  expect(await statusOf(hit)).toContain('hit')
})

test('a waiting reader whose selecting headers differ sends its own request', async () => {
  const half = halfway('length', ['Vary: Accept-Language'])
  const german = read({ 'accept-language': 'de' })
  await german.until(middle)
  const english = read({ 'accept-language': 'en' })
  await origin.until(() => half.wires.length === 2)
  await english.until(middle)
  half.finish()
  expect(isWhole(await english.end, content)).toBe(true)
  expect(isWhole(await german.end, content)).toBe(true)
})

test('preconditions and HEAD are answered from the complete content', async () => {
  const half = halfway('length', ['ETag: "a"'])
  const first = read()
  await first.until(middle)
  const conditional = read({ 'if-none-match': '"a"' })
  half.finish()
  expect((await conditional.head).statusCode).toBe(304)
  expect(isWhole(await first.end, content)).toBe(true)
  expect(asked()).toBe(1)
})

describe('a content that turns out too large to store', () => {
  const long = randomBytes(maxBytes * 3)
  const pieceBytes = 131_072

  /** Sends so much, then waits. */
  const sender = () => {
    const wires: { wire: Wire; at: number }[] = []
    origin.script = (_, wire) => {
      wires.push({ wire, at: 0 })
      wire.write(headOf('chunked'))
    }
    const send = (one: { wire: Wire; at: number }, bytes: number): void => {
      const end = Math.min(long.length, one.at + bytes)
      for (; one.at < end; one.at += pieceBytes) {
        one.wire.write(framed('chunked', long.subarray(one.at, Math.min(end, one.at + pieceBytes))))
      }
      if (end === long.length) one.wire.write(lastChunk)
    }
    const sendAll = (bytes: number): void => {
      for (const one of wires) send(one, bytes)
    }
    return { wires, sendAll }
  }

  test('continues for its readers; a later reader, or one that waits for the whole, sends its own request', async () => {
    const upstream = sender()
    const begun = [read(), read()]
    await origin.until(() => upstream.wires.length === 1)
    upstream.sendAll(pieceBytes * 2)
    await Promise.all(begun.map((reader) => reader.until(pieceBytes)))
    const waits = read({ 'if-none-match': '"other"' })
    await pause(30)
    upstream.sendAll(maxBytes)
    await Promise.all(begun.map((reader) => reader.until(maxBytes)))
    const later = read()
    // The one that waited and the one that came later, side by side.
    await origin.until(() => upstream.wires.length === 3)
    upstream.sendAll(long.length)
    for (const reader of [...begun, waits, later]) expect(isWhole(await reader.end, long)).toBe(true)
    expect(asked()).toBe(3)
  })

  test('is requested once by a reader that waits for the whole', async () => {
    const upstream = sender()
    const conditional = read({ 'if-none-match': '"other"' })
    await origin.until(() => upstream.wires.length === 1)
    upstream.sendAll(long.length)
    expect(isWhole(await conditional.end, long)).toBe(true)
    expect(await statusOf(conditional)).toContain('detail=too-large')
    expect(asked()).toBe(1)
  })

  test('is aborted when all its readers have disconnected', async () => {
    const upstream = sender()
    const reader = read()
    await origin.until(() => upstream.wires.length === 1)
    upstream.sendAll(maxBytes + pieceBytes * 2)
    await reader.until(maxBytes + 1)
    reader.leave()
    await origin.until(() => upstream.wires[0]?.wire.socket.destroyed === true)
  })
})

test('a short content is served at once, with an entity tag of the gateway', async () => {
  origin.script = (_, wire) => {
    wire.write(headOf('chunked'))
    setTimeout(() => wire.write(Buffer.concat([framed('chunked', Buffer.from('short')), lastChunk])), 10)
  }
  const reader = read()
  expect(String(await reader.end)).toBe('short')
  expect((await reader.head).headers).toMatchObject({
    etag: expect.any(String),
    'content-length': '5',
    'cache-status': expect.stringContaining('stored'),
  })
})
