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
        mostKeys: 100,
        store: store(),
        clock: { monotonic: () => performance.now() },
        partitionOf: (credential) => credential,
      },
    )
  const from = (address: string) => ({ address, credential: undefined })

  test('requests over the limit are exceeded, and those of another client are not', async () => {
    const limit = limitTo(2)
    const verdicts = []
    for (let request = 0; request < 3; request += 1) verdicts.push(await limit.count(from('192.0.2.1')))
    expect(verdicts.map(({ remaining, exceeded }) => [remaining, exceeded])).toEqual([
      [1, false],
      [0, false],
      [0, true],
    ])
    expect(await limit.count(from('192.0.2.2'))).toMatchObject({ remaining: 1, exceeded: false })
  })

  test('requests at the same time are all counted', async () => {
    const limit = limitTo(50)
    const verdicts = await Promise.all(Array.from({ length: 60 }, async () => limit.count(from('192.0.2.1'))))
    expect(verdicts.filter(({ exceeded }) => exceeded)).toHaveLength(10)
  })

  test('a window begins with its first request, and the next one counts anew', async () => {
    const limit = limitTo(1, windowMs)
    await limit.count(from('192.0.2.1'))
    expect(await limit.count(from('192.0.2.1'))).toMatchObject({ exceeded: true, resetSeconds: 1 })
    await pause(windowMs + 50)
    expect(await limit.count(from('192.0.2.1'))).toMatchObject({ exceeded: false })
  })
}
