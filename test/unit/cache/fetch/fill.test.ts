import { PassThrough, Readable } from 'node:stream'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Fill } from '../../../../src/cache/fetch/fill.ts'
import { unlimited } from '../../../../src/http/bounds/byte-budget.ts'
import { pause } from '../../../support/origin.ts'
import { settle } from '../cache-fixture.ts'

const fillOf = (source: Readable, maxBytes: number, stallTimeoutMs = 10_000): Fill =>
  new Fill({ status: 200, headers: [] }, source, maxBytes, unlimited, stallTimeoutMs)

const all = async (content: Readable): Promise<Buffer> => {
  const chunks: Buffer[] = []
  for await (const chunk of content) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

/** Stops to think after every few chunks. */
const slowly = async (content: Readable, restsEvery: number): Promise<Buffer> => {
  const chunks: Buffer[] = []
  for await (const chunk of content) {
    chunks.push(chunk as Buffer)
    if (chunks.length % restsEvery === 0) await settle()
  }
  return Buffer.concat(chunks)
}

const period = Buffer.from(Array.from({ length: 251 }, (_, i) => i))
const bytesOf = (length: number, from = 0): Buffer =>
  Buffer.alloc((from % period.length) + length, period).subarray(from % period.length)

test('readers who come at any time and read at any pace all get the same bytes', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 9000 }), { minLength: 1, maxLength: 12 }),
      fc.array(fc.record({ after: fc.nat(11), restsEvery: fc.integer({ min: 1, max: 8 }) }), {
        minLength: 1,
        maxLength: 5,
      }),
      fc.constantFrom(4_000, 30_000, 200_000),
      async (lengths, readers, maxBytes) => {
        const source = new PassThrough()
        const fill = fillOf(source, maxBytes)
        const total = lengths.reduce((sum, length) => sum + length, 0)
        const results: Promise<Buffer>[] = []
        let sent = 0
        for (const [i, length] of lengths.entries()) {
          const come = fill.overflowed ? [] : readers.filter(({ after }) => after === i)
          results.push(...come.map(({ restsEvery }) => slowly(fill.reader(), restsEvery)))
          source.write(bytesOf(length, sent))
          sent += length
          await settle()
        }
        source.end()
        for (const result of await Promise.all(results)) {
          expect(result.equals(bytesOf(total))).toBe(true)
        }
        const end = await fill.done
        expect(end.kind).toBe(total > maxBytes ? 'overflowed' : 'complete')
        if (end.kind === 'complete') expect(end.content.equals(bytesOf(total))).toBe(true)
      },
    ),
    { numRuns: 150 },
  )
})

/** A source that counts what was taken from it, 10 kB at a time and without end. */
const endless = () => {
  const counted = { bytes: 0 }
  const source = new Readable({
    highWaterMark: 10_000,
    read() {
      counted.bytes += 10_000
      setImmediate(() => this.push(bytesOf(10_000)))
    },
  })
  return { source, counted }
}

test('beyond the bound the slowest reader sets the pace: no more is held than may be stored', async () => {
  const { source, counted } = endless()
  const fill = fillOf(source, 100_000)
  const quick = fill.reader().on('data', () => {})
  const slow = fill.reader()
  await expect.poll(() => fill.overflowed && source.isPaused() && source.readableLength > 0).toBe(true)
  // What is held, what each stream has taken up, and one more read.
  expect(counted.bytes).toBeLessThan(100_000 + 65_536 + 40_000)
  const before = counted.bytes
  slow.on('data', () => {})
  await expect.poll(() => counted.bytes).toBeGreaterThan(before)
  slow.destroy()
  quick.destroy()
  await expect.poll(() => source.destroyed).toBe(true)
})

test('a stalled reader is dropped while others wait for it; a reader alone is not', async () => {
  const { source, counted } = endless()
  const fill = fillOf(source, 100_000, 30)
  const quick = fill.reader().on('data', () => {})
  const stuck = fill.reader()
  await pause(20)
  const before = counted.bytes
  await expect.poll(() => stuck.destroyed).toBe(true)
  await expect.poll(() => counted.bytes).toBeGreaterThan(before)
  quick.pause()
  await pause(80)
  expect(quick.destroyed).toBe(false)
  quick.destroy()
})

test('a fill that overflows before its first reader waits for that reader', async () => {
  const source = new PassThrough()
  const fill = fillOf(source, 1000)
  source.write(bytesOf(5000))
  expect(await fill.endOrLongerThan(10)).toEqual({ kind: 'overflowed' })
  const reader = fill.reader()
  source.end(bytesOf(100, 5000))
  expect((await all(reader)).equals(bytesOf(5100))).toBe(true)
})
