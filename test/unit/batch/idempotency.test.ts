import { expect, test } from 'vitest'
import { createKeysInMemory, hashOf, readIdempotencyKey } from '../../../src/batch/idempotency.ts'

test.each([
  [undefined, { kind: 'none' }],
  ['"8e03978e-40d5"', { kind: 'key', key: '8e03978e-40d5' }],
  ['8e03978e-40d5', { kind: 'key', key: '8e03978e-40d5' }],
  ['"a \\"b\\" \\\\"', { kind: 'key', key: 'a "b" \\' }],
  ['"a", "b"', { kind: 'malformed' }],
  ['""', { kind: 'malformed' }],
  ['', { kind: 'malformed' }],
  ['"a', { kind: 'malformed' }],
  ['a b', { kind: 'malformed' }],
  [`"${'a'.repeat(256)}"`, { kind: 'malformed' }],
])('the header %j is %j', (value, read) => {
  expect(readIdempotencyKey(value)).toEqual(read)
})

test('the boundaries between texts change their hash', () => {
  expect(hashOf(['ab', 'c'])).not.toBe(hashOf(['a', 'bc']))
  expect(hashOf(['', 'a'])).not.toBe(hashOf(['a', '']))
})

const response = (length: number) => ({ status: 207, contentType: 'x', content: Buffer.alloc(length) })

const storeAt = (maxBytes: number, ttlMs = 1_000) => {
  const time = { ms: 0 }
  const clock = { now: () => time.ms, monotonic: () => time.ms }
  const keys = createKeysInMemory(clock)
  return { time, keys, store: keys.under({ maxBytes, ttlMs }) }
}

test('a key is in flight, then finished, and another fingerprint never fits', async () => {
  const { store } = storeAt(100_000)
  expect(await store.begin('k', 'f')).toEqual({ kind: 'begun' })
  expect(await store.begin('k', 'f')).toEqual({ kind: 'in-flight' })
  expect(await store.begin('k', 'g')).toEqual({ kind: 'mismatch' })
  await store.finish('k', 'f', response(1))
  expect(await store.begin('k', 'f')).toEqual({ kind: 'finished', response: response(1) })
  expect(await store.begin('k', 'g')).toEqual({ kind: 'mismatch' })
})

test('another configuration knows the keys, and its bounds are its own, whether it comes into use or not', async () => {
  const { store, keys, time } = storeAt(100_000)
  const next = keys.under({ maxBytes: 100_000, ttlMs: 10 })
  await store.begin('k', 'f')
  await store.finish('k', 'f', response(1))
  await next.begin('short', 'f')
  time.ms = 999
  for (const one of [store, next]) expect(await one.begin('k', 'f')).toMatchObject({ kind: 'finished' })
  expect(await store.begin('short', 'f')).toEqual({ kind: 'begun' })
})

test('an abandoned key is free, and so is an expired one', async () => {
  const { store, time } = storeAt(100_000)
  await store.begin('a', 'f')
  await store.abandon('a')
  expect(await store.begin('a', 'other')).toEqual({ kind: 'begun' })
  await store.finish('a', 'other', response(1))
  time.ms = 1_001
  expect(await store.begin('a', 'f')).toEqual({ kind: 'begun' })
})

test('the oldest responses are evicted when memory is full, those in flight stay, and a large one is not stored', async () => {
  const { store } = storeAt(8_000)
  await store.begin('flying', 'f')
  for (let n = 0; n < 20; n += 1) {
    await store.begin(`k${n}`, 'f')
    await store.finish(`k${n}`, 'f', response(900))
  }
  expect(await store.begin('k19', 'f')).toMatchObject({ kind: 'finished' })
  expect(await store.begin('flying', 'f')).toEqual({ kind: 'in-flight' })
  expect(await store.begin('k0', 'f')).toEqual({ kind: 'begun' })
  await store.begin('large', 'f')
  await store.finish('large', 'f', response(1_001))
  expect(await store.begin('large', 'f')).toEqual({ kind: 'not-kept' })
})

test('a response that is kept holds no more memory than is counted', async () => {
  const { store } = storeAt(100_000)
  await store.begin('k', 'f')
  const content = Buffer.concat([Buffer.from('{"responses":'), Buffer.from('[]}')])
  expect(content.buffer.byteLength).toBeGreaterThan(1_000)
  await store.finish('k', 'f', { ...response(1), content })
  const state = await store.begin('k', 'f')
  if (state.kind !== 'finished') throw new Error(state.kind)
  expect(state.response.content).toEqual(content)
  expect(state.response.content.buffer.byteLength).toBe(content.length)
})
