import { LRUCache } from 'lru-cache'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { Purge } from '../../../../src/cache/invalidation.ts'
import { contentsTagged } from '../../../../src/cache/store/contents-tagged.ts'
import { MemoryStore } from '../../../../src/cache/store/memory-store.ts'
import { harness, readOf, response, safePolicy, textOf } from '../cache-fixture.ts'
import { storedAt } from '../stored-at.ts'

// What another process has purged is carried out in one turn, before it is acknowledged: how much is done with each counts.

const many = 1_000
const policy = safePolicy({ staleIfErrorMs: 60_000 })

const filled = async () => {
  const made = harness({ maxBytes: 1_000_000_000 })
  for (let i = 0; i < many; i += 1) {
    const read = readOf({ target: `/${i}`, tags: ['all', `item/${i}`], policy })
    await made.cache.response(read, async () => response('old'))
  }
  return made
}

/** Counts lookups in the library meanwhile, which take longer than everything else per entry. */
const asked = () => {
  const spies = (['get', 'peek', 'set', 'delete'] as const).map((name) => vi.spyOn(LRUCache.prototype, name))
  return () => spies.reduce((sum, spy) => sum + spy.mock.calls.length, 0)
}

afterEach(() => {
  vi.restoreAllMocks()
})

describe('a purge in another process', () => {
  test('by a prefix: some positions are cleared in each turn', async () => {
    const { cache } = await filled()
    const deleted = vi.spyOn(LRUCache.prototype, 'delete')
    cache.purge({
      selector: { kind: 'prefix', service: 'site', prefixes: ['/'] },
      mode: 'hard',
      dryRun: false,
    })
    let before = 0
    for (let turn = 0; deleted.mock.calls.length < many; turn += 1) {
      await new Promise((done) => setImmediate(done))
      expect(deleted.mock.calls.length - before).toBeLessThanOrEqual(100)
      before = deleted.mock.calls.length
      expect(turn).toBeLessThan(many)
    }
    expect(cache.stats()).toMatchObject({ entries: 0, bytes: 0, tags: 0 })
  })

  test.each<[string, Omit<Purge, 'dryRun'>]>([
    ['by a prefix', { selector: { kind: 'prefix', service: 'site', prefixes: ['/'] }, mode: 'hard' }],
    ['by a prefix, softly', { selector: { kind: 'prefix', service: 'site', prefixes: ['/'] }, mode: 'soft' }],
    ['by a tag, softly', { selector: { kind: 'tag', tag: 'all' }, mode: 'soft' }],
    ['of all, softly', { selector: { kind: 'all' }, mode: 'soft' }],
  ])('%s: holds for all who look, and nothing is looked up', async (_, purge) => {
    const { cache, events } = await filled()
    const lookups = asked()
    cache.purge({ ...purge, dryRun: false })
    // The key of the tag itself.
    expect(lookups()).toBeLessThanOrEqual(1)
    const failing = async () => response('down', [], 503)
    for (const target of ['/0', '/777', `/${many - 1}`]) {
      const response = await cache.response(readOf({ target, tags: ['all'], policy }), failing)
      expect(await textOf(response)).toBe(purge.mode === 'soft' ? 'old' : 'down')
      expect(response.outcome).toBe(purge.mode === 'soft' ? 'stale' : 'miss')
    }
    const counted = () => events.flatMap((event) => (event.kind === 'invalidated' ? [event.entries] : []))
    await expect.poll(counted).toEqual([many])
  })

  test.each(['hard', 'soft'] as const)(
    '%s, of what no tag describes: some are compared in each turn',
    async (mode) => {
      const { cache, events } = await filled()
      let compared = 0
      const matches = (_service: string, target: string) => {
        compared += 1
        return target.endsWith('7')
      }
      cache.purge({ selector: { kind: 'matching', matches }, mode, dryRun: false })
      expect(compared).toBe(0)
      const isOver = () => events.some((event) => event.kind === 'invalidated')
      for (let before = 0; !isOver(); before = compared) {
        await new Promise((done) => setImmediate(done))
        expect(compared - before).toBeLessThanOrEqual(200)
      }
      expect(events.at(-1)).toMatchObject({ kind: 'invalidated', entries: many / 10 })
      // What is stored afterwards stays.
      const read = readOf({ target: '/77', tags: ['all'], policy })
      if (mode === 'hard') await cache.response(read, async () => response('new'))
      const again = await cache.response(read, async () => response('newer'))
      expect([again.outcome, await textOf(again)]).toEqual(
        mode === 'hard' ? ['hit', 'new'] : ['miss', 'newer'],
      )
    },
  )

  test('many at once: no turn compares more than 1,100 times, and a key is compared with each of them once', async () => {
    const { cache, events } = await filled()
    let compared = 0
    const matches = () => {
      compared += 1
      return false
    }
    for (let purge = 0; purge < 50; purge += 1)
      cache.purge({ selector: { kind: 'matching', matches }, mode: 'hard', dryRun: false })
    expect(compared).toBe(0)
    const read = readOf({ target: '/5', tags: ['all'], policy })
    expect((await cache.response(read, async () => response('new'))).outcome).toBe('hit')
    expect(compared).toBe(50)
    const ended = () => events.filter((event) => event.kind === 'invalidated').length
    for (let before = compared; ended() < 50; before = compared) {
      await new Promise((done) => setImmediate(done))
      expect(compared - before).toBeLessThanOrEqual(1_100)
    }
    expect(compared).toBe(50 * many)
  })

  test('more than 1,000 that wait: everything is removed', async () => {
    const { cache, events } = await filled()
    const matches = () => false
    for (let purge = 0; purge <= 1_000; purge += 1)
      cache.purge({ selector: { kind: 'matching', matches }, mode: 'soft', dryRun: false })
    expect(cache.stats().entries).toBe(0)
    expect(events.at(-1)).toMatchObject({ kind: 'invalidated', entries: many })
    expect(events.filter((event) => event.kind === 'invalidated')).toHaveLength(1_001)
  })
})

const variant = (order: number, language: string) =>
  storedAt({ target: 5, tags: ['all'], order, vary: ['accept-language', language] })

test('a variant that is stored during a pause does not save the entry from the purge', () => {
  const store = new MemoryStore({
    maxBytes: 1_000_000,
    maxHeapBytes: 1_000_000,
    maxEntryBytes: 1000,
    onEvict: () => undefined,
  })
  store.put(variant(1, 'de'))
  const [held] = store.all()
  if (held === undefined) throw new Error('nothing is held')
  store.put(variant(2, 'en'))
  expect(held.variants).toHaveLength(0)
  expect(store.currentVariants(held)).toHaveLength(2)
  expect(store.markDeleted(held)).toBe(2)
  expect(store.markDeleted(held)).toBe(0)
  expect(store.stats().entries).toBe(0)
})

test('an entry that was removed already is not counted again', () => {
  const store = new MemoryStore({
    maxBytes: 1_000_000,
    maxHeapBytes: 1_000_000,
    maxEntryBytes: 1000,
    onEvict: () => undefined,
  })
  store.put(variant(1, 'de'))
  const [held] = store.all()
  if (held === undefined) throw new Error('nothing is held')
  expect(store.delete(held.key)).toBe(1)
  expect(store.markDeleted(held)).toBe(0)
  expect(store.stats().entries).toBe(0)
})

test('for a few contents only some of the entries with a tag are searched', () => {
  const store = new MemoryStore({
    maxBytes: 1e9,
    maxHeapBytes: 1e9,
    maxEntryBytes: 1e6,
    onEvict: () => undefined,
  })
  const long = Buffer.alloc(70_000)
  for (let target = 0; target < 1_000; target += 1) {
    store.put(storedAt({ target, tags: ['all'], order: target, content: long }))
  }
  let looks = 0
  const counting = {
    *withTag(tag: string) {
      for (const held of store.withTag(tag)) {
        looks += 1
        yield held
      }
    },
  }
  expect(contentsTagged(counting, 'all')).toEqual([])
  expect(looks).toBe(64)
})

test('a burst of writes that may have changed all of it looks up nothing that is stored, and drops it for every reader', async () => {
  const { cache, events } = await filled()
  const lookups = asked()
  for (let write = 0; write < 20; write += 1) cache.invalidate(['all', 'another'])
  // The public response of each tag, if a tag is a target.
  expect(lookups()).toBeLessThanOrEqual(20 * 2 * 3)
  expect(events.flatMap((event) => (event.kind === 'invalidated' ? [event.entries] : []))).toEqual([
    many,
    ...Array.from({ length: 19 }, () => 0),
  ])
  expect(cache.stats().entries).toBe(0)
  const again = await cache.response(readOf({ target: '/7', tags: ['all'], policy }), async () =>
    response('new'),
  )
  expect([again.outcome, await textOf(again)]).toEqual(['miss', 'new'])
})

test('a fetch in flight for a key that a write of wide reach drops is joined by no later reader', async () => {
  const { cache, clock, events } = await filled()
  clock.advance(1e9)
  const calls: string[] = []
  const never = async () => {
    calls.push('asked')
    return new Promise<never>(() => undefined)
  }
  void cache.response(readOf({ target: '/7', policy }), never)
  void cache.response(readOf({ target: '/other', policy }), never)
  await new Promise((done) => setImmediate(done))
  cache.invalidate(['all'])
  expect(events.at(-1)).toMatchObject({ kind: 'invalidated', cut: 1 })
  void cache.response(readOf({ target: '/7', policy }), never)
  void cache.response(readOf({ target: '/other', policy }), never)
  await new Promise((done) => setImmediate(done))
  expect(calls).toHaveLength(3)
})

describe('a purge in turns', () => {
  test('by a tag: what a build has read before it was reached is in doubt', async () => {
    const { cache, clock } = await filled()
    clock.advance(1)
    cache.beginBuild('build', undefined)
    const purging = cache.purgeInTurns({ selector: { kind: 'tag', tag: 'all' }, mode: 'hard', dryRun: false })
    const outcomes = new Map<string, string | undefined>()
    for (let i = 0; i < many; i += 1) {
      const read = readOf({ target: `/${i}`, tags: ['all'], policy })
      const build = cache.buildReading('build', `/${i}`, read.key)
      const { outcome } = await cache.response({ ...read, ...(build && { build }) }, async () =>
        response('new'),
      )
      outcomes.set(`/${i}`, outcome)
    }
    await purging
    const hits = [...outcomes].filter(([, outcome]) => outcome === 'hit').map(([target]) => target)
    expect(hits.length).toBeGreaterThan(0)
    expect(cache.buildReport('build')?.changed).toEqual(expect.arrayContaining(hits))
  })

  test.each([false, true])(
    'fifty at once that no tag describes, as a count %s: no turn compares more than 1,100 times',
    async (dryRun) => {
      const { cache } = await filled()
      let compared = 0
      const matches = (_service: string, target: string) => {
        compared += 1
        return target.endsWith('7')
      }
      let isOver = false
      const purge = { selector: { kind: 'matching', matches }, mode: 'hard', dryRun } as const
      const purges = Promise.all(Array.from({ length: 50 }, () => cache.purgeInTurns(purge))).finally(() => {
        isOver = true
      })
      for (let before = 0; !isOver; before = compared) {
        await new Promise((done) => setImmediate(done))
        expect(compared - before).toBeLessThanOrEqual(1_100)
      }
      const [first, ...others] = await purges
      expect(first).toBe(many / 10)
      expect(new Set(others)).toEqual(new Set([dryRun ? many / 10 : 0]))
    },
  )

  test('by a prefix: nothing from before is read once it has begun, and what is stored from then on stays', async () => {
    const { cache } = await filled()
    const selector = { kind: 'prefix', service: 'site', prefixes: ['/'] } as const
    const purging = cache.purgeInTurns({ selector, mode: 'hard', dryRun: false })
    const get = async (target: string, text: string) =>
      textOf(await cache.response(readOf({ target, tags: ['all'], policy }), async () => response(text)))
    expect(await get('/0', 'new')).toBe('new')
    expect(await get(`/${many - 1}`, 'new')).toBe('new')
    expect(await purging).toBe(many)
    expect(await get('/0', 'newer')).toBe('new')
    expect(await get(`/${many - 1}`, 'newer')).toBe('new')
  })
})

describe('while a hundred purges wait that no tag describes', () => {
  const waiting = 100
  const started = async () => {
    const made = await filled()
    let compared = 0
    const matches = () => {
      compared += 1
      return false
    }
    for (let i = 0; i < waiting; i += 1)
      made.cache.purge({ selector: { kind: 'matching', matches }, mode: 'hard', dryRun: false })
    compared = 0
    return { ...made, compared: () => compared }
  }

  test('a list of the largest compares only what it has', async () => {
    const { cache, compared } = await started()
    expect(await cache.entries('bytes', 3)).toHaveLength(3)
    expect(compared()).toBeLessThanOrEqual(3 * waiting)
  })

  test('a purge in turns pauses after some comparisons', async () => {
    const { cache, compared } = await started()
    const counted = cache.purgeInTurns({ selector: { kind: 'all' }, mode: 'hard', dryRun: true })
    expect(compared()).toBeLessThanOrEqual(1_000)
    expect(await counted).toBe(many)
  })
})

test('a sample has as many entries wherever it begins', () => {
  const store = new MemoryStore({
    maxBytes: 1_000_000,
    maxHeapBytes: 1_000_000,
    maxEntryBytes: 1_000,
    onEvict: () => undefined,
  })
  for (let target = 0; target < 4; target += 1) store.put(storedAt({ target, tags: [], order: target }))
  const seen = [0, 0.3, 0.6, 0.9].map((start) => {
    vi.spyOn(Math, 'random').mockReturnValue(start)
    return store.some(2).map(({ key }) => key)
  })
  const count = (key: string | undefined) => seen.flat().filter((other) => other === key).length
  expect(seen[0]?.concat(seen[2] ?? []).map(count)).toEqual([2, 2, 2, 2])
  expect(store.some(9)).toHaveLength(4)
})
