import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { targetKey } from '../../../src/cache/cache-key.ts'
import type { CacheRead } from '../../../src/cache/cache-read.ts'
import { beginsWithOneOf, type Purge } from '../../../src/cache/invalidation.ts'
import { QuarantinedTags } from '../../../src/cache/store/quarantined-tags.ts'
import { times } from '../../support/breadth.ts'
import {
  harness,
  readOf,
  response,
  rfcPolicy,
  safePolicy,
  scriptedForward,
  settle,
  textOf,
} from './cache-fixture.ts'

const tags = ['site/item/posts/5']

test('responses with an invalidated tag are removed, the others stay', async () => {
  const { cache } = harness()
  await cache.response(readOf({ target: '/5', tags }), async () => response('five'))
  await cache.response(readOf({ target: '/6', tags: ['site/item/posts/6'] }), async () => response('six'))
  expect(cache.invalidate(tags)).toBe(1)
  expect((await cache.response(readOf({ target: '/5', tags }), async () => response('new'))).outcome).toBe(
    'miss',
  )
  expect((await cache.response(readOf({ target: '/6', tags }), async () => response('new'))).outcome).toBe(
    'hit',
  )
})

test('a response that was requested before an invalidation and arrives after it is not stored', async () => {
  const { cache } = harness()
  const { forward, calls } = scriptedForward()
  const before = cache.response(readOf({ tags }), forward)
  cache.invalidate(tags)
  calls[0]?.response(response('old'))
  expect(await textOf(await before)).toBe('old')
  expect(cache.stats().entries).toBe(0)
})

test('a reader after an invalidation does not join a fetch that started before it', async () => {
  const { cache } = harness()
  const { forward, calls } = scriptedForward()
  const before = cache.response(readOf({ tags }), forward)
  cache.invalidate(tags)
  const after = [cache.response(readOf({ tags }), forward), cache.response(readOf({ tags }), forward)]
  expect(calls).toHaveLength(2)
  calls[1]?.response(response('new'))
  expect(await Promise.all((await Promise.all(after)).map(textOf))).toEqual(['new', 'new'])
  calls[0]?.response(response('old'))
  expect(await textOf(await before)).toBe('old')
  expect(await textOf(await cache.response(readOf({ tags }), forward))).toBe('new')
})

test('when only the response shows that it was overtaken, the waiting reader fetches again', async () => {
  const { cache } = harness()
  const { forward, calls } = scriptedForward()
  const onlyInContent: CacheRead['tags'] = ({ content }) => (content.includes('embedded') ? tags : [])
  const before = cache.response(readOf({ tags: onlyInContent }), forward)
  cache.invalidate(tags)
  const after = cache.response(readOf({ tags: onlyInContent }), forward)
  expect(calls).toHaveLength(1)
  calls[0]?.response(response('old embedded'))
  await settle()
  calls[1]?.response(response('new embedded'))
  expect(await textOf(await before)).toBe('old embedded')
  expect(await textOf(await after)).toBe('new embedded')
})

test('when the content is known, a later reader does not join the fetch', async () => {
  const { cache, clock } = harness()
  const { forward, calls } = scriptedForward()
  await cache.response(readOf({ tags }), async () => response('older'))
  clock.advance(61_000)
  const before = cache.response(readOf({ tags }), forward)
  cache.invalidate(tags)
  const after = cache.response(readOf({ tags }), forward)
  expect(calls).toHaveLength(2)
  calls[1]?.response(response('new'))
  expect(await textOf(await after)).toBe('new')
  calls[0]?.response(response('old'))
  expect(await textOf(await before)).toBe('old')
  expect(await textOf(await cache.response(readOf({ tags }), forward))).toBe('new')
})

test('an invalidation of other tags leaves the fetch joinable', async () => {
  const { cache } = harness()
  const { forward, calls } = scriptedForward()
  const first = cache.response(readOf({ tags }), forward)
  cache.invalidate(['site/item/posts/6'])
  const second = cache.response(readOf({ tags }), forward)
  calls[0]?.response(response('one'))
  expect((await second).outcome).toBe('collapsed')
  await first
  expect(calls).toHaveLength(1)
  expect(cache.stats().entries).toBe(1)
})

test('a validation that started before an invalidation freshens nothing', async () => {
  const { cache, clock } = harness()
  const { forward, calls } = scriptedForward()
  const read = () => readOf({ tags, policy: rfcPolicy })
  await cache.response(read(), async () => response('old', ['ETag', '"a"', 'Cache-Control', 'max-age=5']))
  clock.advance(6000)
  const validating = cache.response(read(), forward)
  cache.invalidate(tags)
  calls[0]?.response({ status: 304, headers: ['ETag', '"a"'], content: undefined })
  expect(await textOf(await validating)).toBe('old')
  expect(cache.stats().entries).toBe(0)
  const after = await cache.response(read(), async ({ headers }) => response(`new ${Object.keys(headers)}`))
  expect(await textOf(after)).toBe('new ')
})

test('an invalidated response is served neither during a fetch nor when the upstream fails', async () => {
  const { cache, clock } = harness()
  const policy = safePolicy({ staleWhileRevalidateMs: 60_000, staleIfErrorMs: 60_000 })
  await cache.response(readOf({ tags, policy }), async () => response('old'))
  clock.advance(61_000)
  cache.invalidate(tags)
  const failing = async () => {
    throw new Error('down')
  }
  await expect(cache.response(readOf({ tags, policy }), failing)).rejects.toThrow('down')
})

test('a background fetch that started before an invalidation stores nothing', async () => {
  const { cache, clock } = harness()
  const { forward, calls } = scriptedForward()
  const policy = safePolicy({ staleWhileRevalidateMs: 60_000 })
  await cache.response(readOf({ tags, policy }), async () => response('old'))
  clock.advance(61_000)
  expect((await cache.response(readOf({ tags, policy }), forward)).outcome).toBe('stale')
  cache.invalidate(tags)
  calls[0]?.response(response('old too'))
  await settle()
  expect(cache.stats().entries).toBe(0)
})

test('an older response never replaces a newer one', async () => {
  const { cache } = harness()
  const { forward, calls } = scriptedForward()
  const slow = cache.response(readOf({ headers: { range: 'bytes=0-99' } }), forward)
  const quick = cache.response(readOf(), forward)
  calls[1]?.response(response('newer'))
  await quick
  calls[0]?.response(response('older'))
  await slow
  expect(await textOf(await cache.response(readOf(), forward))).toBe('newer')
})

test('targets are invalidated in every partition', async () => {
  const { cache } = harness()
  for (const partition of ['public', 'credential'] as const) {
    await cache.response(readOf({ target: '/t?x=1', partition }), async () => response(partition))
  }
  await cache.response(readOf({ target: '/t' }), async () => response('other'))
  expect(cache.invalidate([targetKey('site', '/t?x=1')])).toBe(2)
  expect(cache.invalidate([targetKey('other', '/t')])).toBe(0)
  expect(cache.stats().entries).toBe(1)
})

test('the response to an invalidated target is not stored', async () => {
  const { cache } = harness()
  const { forward, calls } = scriptedForward()
  const before = cache.response(readOf({ target: '/t' }), forward)
  cache.invalidate([targetKey('site', '/t')])
  calls[0]?.response(response('old'))
  await before
  expect(cache.stats().entries).toBe(0)
})

test.each([
  ['target', { kind: 'target', service: 'site', target: '/a/1' }, 1],
  ['tag', { kind: 'tag', tag: 't' }, 2],
  ['prefix', { kind: 'prefix', service: 'site', prefixes: ['/a'] }, 2],
  ['prefix of another service', { kind: 'prefix', service: 'other', prefixes: ['/a'] }, 0],
  ['all', { kind: 'all' }, 3],
] as const)('a purge by %s counts in a dry run and then removes', async (_, selector, expected) => {
  const { cache } = harness()
  await cache.response(readOf({ target: '/a/1', tags: ['t'] }), async () => response('1'))
  await cache.response(readOf({ target: '/a/2' }), async () => response('2'))
  await cache.response(readOf({ target: '/b', tags: ['t'] }), async () => response('3'))
  expect(cache.purge({ selector, mode: 'hard', dryRun: true })).toBe(expected)
  expect(cache.stats().entries).toBe(3)
  expect(cache.purge({ selector, mode: 'hard', dryRun: false })).toBe(expected)
  expect(cache.stats().entries).toBe(3 - expected)
})

test('a purge by several prefixes concerns what begins with one of them', () => {
  const part = fc.stringMatching(/^[ab/é]{0,4}$/)
  fc.assert(
    fc.property(fc.array(part, { maxLength: 8 }), part, (prefixes, text) => {
      expect(beginsWithOneOf(prefixes)(text)).toBe(prefixes.some((prefix) => text.startsWith(prefix)))
    }),
    { numRuns: times(500, 2_000) },
  )
})

test('a soft purge keeps a response for the time in which staleness is allowed', async () => {
  const { cache } = harness()
  const policy = safePolicy({ staleIfErrorMs: 60_000 })
  await cache.response(readOf({ policy, tags: ['t'] }), async () => response('old'))
  expect(cache.purge({ selector: { kind: 'tag', tag: 't' }, mode: 'soft', dryRun: false })).toBe(1)
  const served = await cache.response(readOf({ policy, tags: ['t'] }), async () => response('down', [], 503))
  expect(served.outcome).toBe('stale')
  expect(await textOf(served)).toBe('old')
  const renewed = await cache.response(readOf({ policy, tags: ['t'] }), async () => response('new'))
  expect(await textOf(renewed)).toBe('new')
})

test('after a write of unknown outcome, nothing that it may have changed is stored until it is settled', async () => {
  const { cache, clock } = harness()
  const read = async (text: string) =>
    (await cache.response(readOf({ tags }), async () => response(text))).outcome
  expect(await read('before')).toBe('miss')
  cache.quarantine(tags, 30_000)
  expect(cache.invalidate(tags)).toBe(1)
  expect(await read('still before')).toBe('miss')
  clock.advance(29_999)
  expect(await read('carried out')).toBe('miss')
  clock.advance(1)
  expect(await read('after')).toBe('miss')
  expect(await read('wrong')).toBe('hit')
})

test('a response that was requested before a late write and arrives when it cannot come any more is not stored', async () => {
  const { cache, clock } = harness()
  const { forward, calls } = scriptedForward()
  cache.quarantine(tags, 30_000)
  clock.advance(29_000)
  const before = cache.response(readOf({ tags }), forward)
  // Now the write is carried out.
  clock.advance(2_000)
  calls[0]?.response(response('old'))
  expect(await textOf(await before)).toBe('old')
  expect(cache.stats().entries).toBe(0)
  expect((await cache.response(readOf({ tags }), async () => response('new'))).outcome).toBe('miss')
  expect(cache.stats().entries).toBe(1)
})

test('a quarantine of the empty tag is one of every tag', () => {
  const held = new QuarantinedTags(100)
  held.addUntil([''], 0, 10)
  expect([held.includes(['a'], 9), held.includes([], 9), held.includes(['a'], 10)]).toEqual([
    true,
    true,
    false,
  ])
})

test('of expired tags that are forgotten, what was requested before is not stored', () => {
  const held = new QuarantinedTags(2)
  held.addUntil(['a', 'b'], 0, 10)
  held.addUntil(['c'], 15, 20)
  expect([held.includes(['a'], 9), held.includes(['a'], 15)]).toEqual([true, false])
})

test('with more quarantined tags than are remembered, nothing is stored until they expire', () => {
  const held = new QuarantinedTags(2)
  held.addUntil(['a', 'b'], 0, 10)
  expect(held.includes(['c'], 5)).toBe(false)
  held.addUntil(['c'], 5, 20)
  expect(held.includes(['d'], 6)).toBe(true)
  expect(held.includes(['d'], 20)).toBe(false)
  held.addUntil(['c'], 20, 30)
  expect([held.includes(['a'], 21), held.includes(['c'], 21), held.includes(['d'], 21)]).toEqual([
    false,
    true,
    false,
  ])
})

/** One of many tags that all carry, and one that each tenth carries. */
const filled = async (count: number) => {
  const made = harness({ maxBytes: 1_000_000_000 })
  for (let i = 0; i < count; i += 1) {
    const tags = ['all', 'list', `item/${i}`, `tenth/${i % 10}`]
    await made.cache.response(readOf({ target: `/${i}`, tags }), async () => response('x'))
  }
  return made
}

describe('an operator purges 20,000 stored responses', () => {
  test.each<[string, Omit<Purge, 'dryRun'>]>([
    ['softly', { selector: { kind: 'all' }, mode: 'soft' }],
    ['by a prefix', { selector: { kind: 'prefix', service: 'site', prefixes: ['/'] }, mode: 'hard' }],
    ['by a tag', { selector: { kind: 'tag', tag: 'all' }, mode: 'hard' }],
  ])('%s: others have their turns meanwhile, and none is left fresh at the end', async (_, purge) => {
    const { cache, events } = await filled(20_000)
    expect(await cache.purgeInTurns({ ...purge, dryRun: true })).toBe(20_000)
    expect(cache.stats().entries).toBe(20_000)
    let turns = 0
    let going = true
    const others = (async () => {
      while (going) {
        await new Promise((done) => setImmediate(done))
        turns += 1
      }
    })()
    events.length = 0
    const superseded = scriptedForward()
    const before = cache.response(readOf({ target: '/new', tags: ['all'] }), superseded.forward)
    const purging = cache.purgeInTurns({ ...purge, dryRun: false })
    superseded.calls[0]?.response(response('asked for before'))
    await before
    expect(await purging).toBe(20_000)
    going = false
    await others
    expect(turns).toBeGreaterThan(30)
    expect(events.filter(({ kind }) => kind === 'invalidated')).toMatchObject([{ entries: 20_000 }])
    const again = await cache.response(readOf({ target: '/19999' }), async () => response('new'))
    expect(await textOf(again)).toBe('new')
    expect(cache.stats().entries).toBe(purge.mode === 'soft' ? 20_000 : 1)
  })
})

test('removing many responses does not delay readers: the index is cleared in turns', async () => {
  const { cache, events } = await filled(30_000)
  const waiting = scriptedForward()
  const before = cache.response(readOf({ target: '/new', tags: ['list'] }), waiting.forward)
  expect(cache.invalidate(['list', 'tenth/3'])).toBe(30_000)
  // No read gets them any more, and the index is cleared later.
  expect(cache.stats().entries).toBe(0)
  expect(cache.stats().tags).toBeGreaterThan(20_000)
  expect(events.at(-1)).toEqual({ kind: 'invalidated', by: 'write', entries: 30_000, cut: 0 })
  const again = (target: string, text: string) =>
    cache.response(readOf({ target, tags: ['list'] }), async () => response(text))
  expect((await again('/7', 'stored while the rest is cleared')).outcome).toBe('miss')
  waiting.calls[0]?.response(response('asked for before'))
  await before
  expect(await textOf(await again('/new', 'new'))).toBe('new')
  expect(cache.invalidate(['item/8', 'tenth/3'])).toBe(0)
  for (let i = 0; i < 400; i += 1) await new Promise((done) => setImmediate(done))
  expect(await textOf(await again('/7', 'other'))).toBe('stored while the rest is cleared')
  expect(cache.stats()).toMatchObject({ entries: 2, tags: 1 })
  expect(cache.stats().bytes).toBeLessThan(3_000)
})

test('everything is removed at once, however much it is', async () => {
  const { cache, events } = await filled(20_000)
  const waiting = scriptedForward()
  const before = cache.response(readOf({ target: '/new', tags: ['list'] }), waiting.forward)
  expect(cache.purge({ selector: { kind: 'all' }, mode: 'hard', dryRun: false })).toBe(20_000)
  expect(events.at(-1)).toEqual({ kind: 'invalidated', by: 'purge', entries: 20_000, cut: 1 })
  expect(cache.stats()).toEqual({ entries: 0, bytes: 0, tags: 0 })
  waiting.calls[0]?.response(response('asked for before'))
  await before
  const again = await cache.response(readOf({ target: '/new', tags: ['list'] }), async () => response('new'))
  expect(await textOf(again)).toBe('new')
  expect(cache.stats()).toMatchObject({ entries: 1, tags: 1 })
})
