import { expect, test } from 'vitest'
import { retryAfterMs } from '../../../../src/http/headers/retry-after.ts'

const now = Date.UTC(2026, 0, 1)

test.each([
  ['0', 0],
  [' 17 ', 17_000],
  ['999999999', 999_999_999_000],
  ['Thu, 01 Jan 2026 00:00:09 GMT', 9_000],
  ['Wed, 31 Dec 2025 23:59:59 GMT', 0],
  ['1000000000', undefined],
  ['-1', undefined],
  ['1.5', undefined],
  ['1, 2', undefined],
  ['soon', undefined],
  ['', undefined],
  [undefined, undefined],
])('Retry-After: %s', (value, ms) => {
  expect(retryAfterMs(value, now)).toBe(ms)
})
