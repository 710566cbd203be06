import { describe, expect, test } from 'vitest'
import { type Harness, harness, readOf, response } from '../cache-fixture.ts'

const text = 'x'.repeat(1000)

const ask = async ({ cache }: Harness, target: string): Promise<string> => {
  const reply = await cache.response(readOf({ target }), async () => response(text))
  return reply.outcome
}

const targets = (name: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `/${name}/${index}`)

const outcomes = async (room: Harness, asked: readonly string[]): Promise<string[]> => {
  const seen = new Set<string>()
  for (const target of asked) seen.add(await ask(room, target))
  return [...seen]
}

/** A cache that holds a hundred responses, and a working set that fills most of it. */
const filled = async (admission: 'always' | 'second-request'): Promise<Harness> => {
  const probe = harness({ maxBytes: 1_000_000 })
  await ask(probe, '/working/00')
  const room = harness({ maxBytes: probe.cache.stats().bytes * 100, admission })
  for (let round = 0; round < 2; round += 1) await outcomes(room, targets('working', 95))
  expect(await outcomes(room, targets('working', 95))).toEqual(['hit'])
  return room
}

describe('a flood of targets that are requested once', () => {
  test('evicts the working set where everything is stored', async () => {
    const room = await filled('always')
    await outcomes(room, targets('flood', 5000))
    expect(await outcomes(room, targets('working', 95))).toEqual(['miss'])
  })

  test('leaves the working set stored where admission needs a second request', async () => {
    const room = await filled('second-request')
    const before = room.cache.stats()
    room.events.length = 0
    expect(await outcomes(room, targets('flood', 5000))).toEqual(['miss'])
    expect(room.cache.stats()).toEqual(before)
    expect(
      new Set(room.events.filter(({ kind }) => kind !== 'forwarded').map((e) => JSON.stringify(e))),
    ).toEqual(new Set(['{"kind":"not-stored","service":"site","route":"/a","reason":"not-admitted"}']))
    expect(await outcomes(room, targets('working', 95))).toEqual(['hit'])
  })
})

describe('a response is admitted', () => {
  test('by the second request while the cache is nearly full', async () => {
    const room = await filled('second-request')
    expect([await ask(room, '/new'), await ask(room, '/new'), await ask(room, '/new')]).toEqual([
      'miss',
      'miss',
      'hit',
    ])
  })

  test('by the first request while the cache has space', async () => {
    const room = harness({ admission: 'second-request' })
    expect([await ask(room, '/new'), await ask(room, '/new')]).toEqual(['miss', 'hit'])
  })

  test('once: a stored response is replaced by every later fetch', async () => {
    const room = await filled('second-request')
    room.clock.advance(61_000)
    expect([await ask(room, '/working/7'), await ask(room, '/working/7')]).toEqual(['miss', 'hit'])
  })
})
