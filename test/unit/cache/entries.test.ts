import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { cacheKey, createPartitions } from '../../../src/cache/cache-key.ts'
import type { CacheEntry } from '../../../src/cache/entries.ts'
import { harness, readOf, response } from './cache-fixture.ts'

test('stored responses are listed largest or oldest first, without content or credential', async () => {
  const { cache, clock } = harness()
  const partition = createPartitions()('Bearer secret')
  const key = cacheKey({ service: 'site', target: '/own', partition })
  await cache.response(readOf({ target: '/small', tags: ['t'] }), async () => response('x'))
  clock.advance(5000)
  await cache.response(readOf({ key, partition: 'credential' }), async () => response('x'.repeat(500)))
  clock.advance(5000)
  expect((await cache.entries('bytes', 10)).map(({ target }) => target)).toEqual(['/own', '/small'])
  expect(await cache.entries('age', 1)).toEqual([
    {
      service: 'site',
      host: '',
      target: '/small',
      partition: 'public',
      status: 200,
      bytes: expect.any(Number),
      hits: 0,
      ageSeconds: 10,
      ttlSeconds: 50,
      vary: [],
      tags: ['t'],
    },
  ])
  await cache.response(readOf({ target: '/small', tags: ['t'] }), async () => response('x'))
  expect((await cache.entries('hits', 10)).map(({ target, hits }) => [target, hits])).toEqual([
    ['/small', 1],
    ['/own', 0],
  ])
  const told = JSON.stringify(await cache.entries('bytes', 10))
  expect(told).not.toContain('secret')
  expect(told).not.toContain(partition)
})

test('of many stored responses the list is in order, and others are served while it is made', async () => {
  const { cache } = harness({ maxBytes: 20_000_000 })
  for (let at = 0; at < 2_100; at += 1)
    await cache.response(readOf({ target: `/${at}` }), async () => response('x'.repeat((at * 1_009) % 300)))
  let listed: readonly CacheEntry[] | undefined
  const listing = cache.entries('bytes', 1_000).then((entries) => {
    listed = entries
  })
  let turns = 0
  while (listed === undefined) {
    await setImmediate()
    turns += 1
  }
  await listing
  expect(turns).toBeGreaterThanOrEqual(10)
  const bytes = listed.map((entry) => entry.bytes)
  expect(bytes).toHaveLength(1_000)
  expect(bytes).toEqual([...bytes].sort((a, b) => b - a))
  expect(new Set(listed.map(({ target }) => target)).size).toBe(1_000)
  const all = (await cache.entries('bytes', 5_000)).map((entry) => entry.bytes)
  expect(all).toHaveLength(2_100)
  expect(bytes).toEqual(all.slice(0, 1_000))
})

test('one credential has one partition as long as the process lives, and another in the next', () => {
  const partitionOf = createPartitions()
  expect(partitionOf('a')).toBe(partitionOf('a'))
  expect(partitionOf('a')).not.toBe(partitionOf('b'))
  expect(partitionOf('a')).not.toBe(createPartitions()('a'))
})

test('a flood of selecting headers keeps a bounded number of variants', async () => {
  const { cache } = harness()
  for (let i = 0; i < 100; i += 1) {
    const read = readOf({ headers: { origin: `https://${i}.test` } })
    await cache.response(read, async () => response('x', ['Vary', 'Origin']))
  }
  expect(cache.stats().entries).toBe(16)
})

test('a flood of targets keeps the bytes bounded', async () => {
  const { cache, events } = harness({ maxBytes: 50_000 })
  for (let i = 0; i < 500; i += 1) {
    await cache.response(readOf({ target: `/${i}`, tags: [`t${i}`] }), async () => response('x'.repeat(1000)))
  }
  const { bytes, tags, entries } = cache.stats()
  expect(bytes).toBeLessThanOrEqual(50_000)
  expect(tags).toBe(entries)
  expect(events.filter(({ kind }) => kind === 'evicted')).toHaveLength(500 - entries)
})

test('a list is as long as it can be where a purge that waits concerns all that would be first', async () => {
  const { cache } = harness()
  // Of fewer, the purge removes all at once, and none waits.
  const purged = Array.from({ length: 500 }, (_, nth) => nth)
  for (const [target, bytes] of [
    ...purged.map((nth) => [`/purged/${nth}`, 1_000] as const),
    ...[1, 2, 3].map((nth) => [`/left/${nth}`, 10] as const),
  ])
    await cache.response(readOf({ target }), async () => response('x'.repeat(bytes)))
  cache.purge({
    selector: { kind: 'prefix', service: 'site', prefixes: ['/purged/'] },
    mode: 'hard',
    dryRun: false,
  })
  const listed = (await cache.entries('bytes', 3)).map(({ target }) => target)
  expect([...listed].sort()).toEqual(['/left/1', '/left/2', '/left/3'])
})
