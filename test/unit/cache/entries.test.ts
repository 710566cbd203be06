import { expect, test } from 'vitest'
import { cacheKey, createPartitions } from '../../../src/cache/cache-key.ts'
import { harness, readOf, response } from './cache-fixture.ts'

test('stored responses are listed largest or oldest first, without content or credential', async () => {
  const { cache, clock } = harness()
  const partition = createPartitions()('Bearer secret')
  const key = cacheKey({ service: 'site', target: '/own', partition })
  await cache.response(readOf({ target: '/small', tags: ['t'] }), async () => response('x'))
  clock.advance(5000)
  await cache.response(readOf({ key, partition: 'credential' }), async () => response('x'.repeat(500)))
  clock.advance(5000)
  expect(cache.entries('bytes', 10).map(({ target }) => target)).toEqual(['/own', '/small'])
  expect(cache.entries('age', 1)).toEqual([
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
  expect(cache.entries('hits', 10).map(({ target, hits }) => [target, hits])).toEqual([
    ['/small', 1],
    ['/own', 0],
  ])
  const told = JSON.stringify(cache.entries('bytes', 10))
  expect(told).not.toContain('secret')
  expect(told).not.toContain(partition)
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
