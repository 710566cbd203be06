import { expect, test } from 'vitest'
import type { RateLimitStore } from '../../../src/exchange/ports.ts'
import { createRateLimiter } from '../../../src/server/rate-limiter.ts'
import { pause } from '../origin.ts'

const windowMs = 400

/** What a rate limit must do, wherever its requests are counted. `store` gives an empty one; undefined: in this process. */
export const testRateLimiter = (store: () => RateLimitStore | undefined): void => {
  const limitTo = (max: number, milliseconds = 60_000) =>
    createRateLimiter(
      { name: 'reads', by: 'address', max, windowMs: milliseconds },
      {
        maxKeys: 100,
        store: store(),
        processes: 1,
        clock: { monotonic: () => performance.now() },
        partitionOf: (credential) => credential,
      },
    )
  const from = (address: string) => ({ address, credential: undefined })

  test('requests over the limit are exceeded, and those of another client are not', async () => {
    const limit = limitTo(2)
    const verdicts = []
    for (let request = 0; request < 3; request += 1) verdicts.push(await limit.count(from('192.0.2.1')))
    expect(verdicts.map(({ remaining, retryAfterSeconds }) => [remaining, retryAfterSeconds > 0])).toEqual([
      [1, false],
      [0, false],
      [0, true],
    ])
    expect(await limit.count(from('192.0.2.2'))).toMatchObject({ remaining: 1, retryAfterSeconds: 0 })
  })

  test('requests at the same time are all counted', async () => {
    const limit = limitTo(50)
    const verdicts = await Promise.all(Array.from({ length: 60 }, async () => limit.count(from('192.0.2.1'))))
    expect(verdicts.filter(({ retryAfterSeconds }) => retryAfterSeconds > 0)).toHaveLength(10)
  })

  test('a client that waits has its whole quota again', async () => {
    const limit = limitTo(1, windowMs)
    await limit.count(from('192.0.2.1'))
    expect(await limit.count(from('192.0.2.1'))).toMatchObject({ retryAfterSeconds: 1, resetSeconds: 1 })
    await pause(windowMs + 50)
    expect(await limit.count(from('192.0.2.1'))).toMatchObject({ retryAfterSeconds: 0 })
  })

  test('an interval may be shorter than a millisecond', async () => {
    const limit = limitTo(20_000, 2_000)
    const verdicts = await Promise.all(
      Array.from({ length: 500 }, async () => limit.count(from('192.0.2.1'))),
    )
    const min = Math.min(...verdicts.map(({ remaining }) => remaining))
    // It gets back ten in each millisecond.
    expect(min).toBeGreaterThanOrEqual(20_000 - 500)
    expect(min).toBeLessThan(20_000)
  })
}
