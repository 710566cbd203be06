import { expect, test } from 'vitest'
import { ownBytes } from '../../../src/http/retained.ts'

/** A content behind other bytes in one buffer, as one read of a socket returns it. */
const behind = (besides: number, length: number): Buffer =>
  Buffer.allocUnsafeSlow(besides + length)
    .fill(1)
    .subarray(besides)

test.each([
  { besides: 0, length: 1, kept: true },
  { besides: 400, length: 2000, kept: true },
  { besides: 400, length: 1500, kept: false },
  { besides: 1024, length: 60_000, kept: true },
  { besides: 1025, length: 60_000, kept: false },
])('$length bytes behind $besides others stay where they are: $kept', ({ besides, length, kept }) => {
  const content = behind(besides, length)
  const own = ownBytes(content)
  expect(own.equals(content)).toBe(true)
  expect(own.buffer === content.buffer).toBe(kept)
  if (!kept) expect(own.buffer.byteLength).toBe(length)
})

test('a slice of the pool is copied', () => {
  const content = Buffer.from('short')
  expect(ownBytes(content).buffer.byteLength).toBe(5)
})
