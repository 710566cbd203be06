import { expect, test } from 'vitest'
import type { IdempotencyStore } from '../../../src/exchange/ports.ts'

const response = (length: number) => ({
  status: 207,
  contentType: 'application/json',
  content: Buffer.alloc(length, 'a'),
})

/** What every store of idempotency keys must do. `keeping(bytes)`: an empty one that keeps responses of at most that length. */
export const testIdempotencyStore = (keeping: (bytes: number) => IdempotencyStore): void => {
  test('a key is in flight until its request is finished, and then has its response', async () => {
    const keys = keeping(100)
    expect(await keys.begin('k', 'f')).toEqual({ kind: 'begun' })
    expect(await keys.begin('k', 'f')).toEqual({ kind: 'in-flight' })
    await keys.finish('k', 'f', response(100))
    expect(await keys.begin('k', 'f')).toEqual({ kind: 'finished', response: response(100) })
  })

  test('a key that another request used is refused, in flight and finished', async () => {
    const keys = keeping(100)
    await keys.begin('k', 'f')
    expect(await keys.begin('k', 'g')).toEqual({ kind: 'mismatch' })
    await keys.finish('k', 'f', response(1))
    expect(await keys.begin('k', 'g')).toEqual({ kind: 'mismatch' })
  })

  test('of requests with one key at the same time one begins', async () => {
    const keys = keeping(100)
    const states = await Promise.all(Array.from({ length: 20 }, () => keys.begin('k', 'f')))
    expect(states.filter(({ kind }) => kind === 'begun')).toHaveLength(1)
    expect(states.filter(({ kind }) => kind === 'in-flight')).toHaveLength(19)
  })

  test('a response that is too large is not kept, and its request is not repeated', async () => {
    const keys = keeping(100)
    await keys.begin('k', 'f')
    await keys.finish('k', 'f', response(101))
    expect(await keys.begin('k', 'f')).toEqual({ kind: 'not-kept' })
  })

  test('an abandoned key is free for any request', async () => {
    const keys = keeping(100)
    await keys.begin('k', 'f')
    await keys.abandon('k')
    expect(await keys.begin('k', 'g')).toEqual({ kind: 'begun' })
  })

  test('a response to a key that another request has by now is ignored', async () => {
    const keys = keeping(100)
    await keys.begin('k', 'f')
    // As when it expires.
    await keys.abandon('k')
    await keys.begin('k', 'g')
    await keys.finish('k', 'f', response(1))
    expect(await keys.begin('k', 'g')).toEqual({ kind: 'in-flight' })
  })

  test('a response to a key that is not in flight is ignored', async () => {
    const keys = keeping(100)
    await keys.finish('k', 'f', response(1))
    expect(await keys.begin('k', 'f')).toEqual({ kind: 'begun' })
  })
}
