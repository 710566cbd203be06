import { expect, test } from 'vitest'
import { EvictedKeys } from '../../../../src/cache/store/evicted-keys.ts'

const keys = Array.from(
  { length: 10_000 },
  (_, nth) => `4:blog${`/posts/${nth}`.length}:/posts/${nth}6:public`,
)

test('what was evicted is known until it is stored again', () => {
  const evicted = new EvictedKeys()
  expect(evicted.has('a')).toBe(false)
  evicted.add('a')
  expect(evicted.has('a')).toBe(true)
  expect(evicted.has('b')).toBe(false)
  evicted.delete('a')
  expect(evicted.has('a')).toBe(false)
})

test('of ten thousand keys each is known, and few others are taken for one', () => {
  const evicted = new EvictedKeys()
  for (const key of keys) evicted.add(key)
  expect(keys.every((key) => evicted.has(key))).toBe(true)
  const others = keys.map((key) => `other ${key}`).filter((key) => evicted.has(key))
  expect(others.length).toBeLessThan(400)
})
