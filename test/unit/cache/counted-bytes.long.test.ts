import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { cacheKey, targetKeyOf } from '../../../src/cache/cache-key.ts'
import { InvalidationLog } from '../../../src/cache/store/invalidation-log.ts'
import { QuarantinedTags } from '../../../src/cache/store/quarantined-tags.ts'
import {
  createStoredResponse,
  type StoredResponse,
  type StoredResponseParts,
  setTags,
} from '../../../src/cache/store/stored-response.ts'
import { varyKey } from '../../../src/http/headers/caching-headers.ts'
import type { ResponseHints } from '../../../src/http/message.ts'
import { type Harness, harness, readOf, response, safePolicy, settle } from './cache-fixture.ts'

const at = { now: 0, monotonic: 0 }

type Facts = {
  readonly target?: string
  readonly partition?: string
  readonly headers?: readonly string[]
  readonly sent?: Readonly<Record<string, string>>
  readonly content?: number
  readonly tags?: readonly string[]
  readonly etag?: string
  readonly hints?: ResponseHints
}

const stored = (facts: Facts): StoredResponse => {
  const parts: StoredResponseParts = {
    key: cacheKey({
      service: 'site',
      target: facts.target ?? '/a',

      partition: facts.partition ?? 'public',
    }),
    head: { status: 200, headers: [...(facts.headers ?? [])], hints: facts.hints },
    content: Buffer.alloc(facts.content ?? 2_000),
    selecting: { sentHeader: (name) => facts.sent?.[name] },
    times: { requested: at, received: at },
    policy: safePolicy(),
    upstreamTag: facts.etag,
    order: 1,
    codedFrom: Number.POSITIVE_INFINITY,
    forms: [],
  }
  return setTags(createStoredResponse(parts), facts.tags ?? [])
}

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
const heapBytes = (): number => {
  collect()
  return process.memoryUsage().heapUsed
}

const long = (length: number): string => 'x'.repeat(length)
const many = (count: number): readonly string[] => Array.from({ length: count }, (_, i) => `tag-${i}`)

describe('cache.maxBytes counts', () => {
  test.each<[description: string, more: Facts, atLeast: number]>([
    ['the request target', { target: `/${long(5_000)}` }, 4_990],
    ['the content', { content: 9_000 }, 7_000],
    ['response fields', { headers: ['X-A', long(3_000)] }, 3_000],
    [
      'values of the request that a response varies by',
      { headers: ['Vary', 'X-A'], sent: { 'x-a': long(100) } },
      100 + 'x-a'.length,
    ],
    [
      'names of the fields that a response varies by',
      { headers: ['Vary', many(50).join(', ')] },
      50 * 24 + 400,
    ],
    ['tags, each with its place in the index', { tags: many(50) }, 50 * 100],
    ['the entity tag that a later validation needs', { etag: `"${long(400)}"` }, 400],
    [
      'what the upstream tells the gateway alone',
      {
        hints: {
          tags: long(100),
          maxAge: '1',
          incomplete: long(200),
          receipt: long(300),
          request: long(400),
        },
      },
      1_000,
    ],
    ['the place by which a private response is found', { partition: 'secret' }, 96],
  ])('%s', (_, more, atLeast) => {
    expect(stored(more).bytes - stored({}).bytes).toBeGreaterThanOrEqual(atLeast)
  })
})

describe('long values of clients are stored as digests', () => {
  const key = (value: string): string => varyKey(['accept-language'], { sentHeader: () => value })

  test('a key of selecting headers has at most 128 characters', () => {
    expect(key(long(14_000)).length).toBeLessThanOrEqual(128)
    expect(stored({ headers: ['Vary', 'X-A'], sent: { 'x-a': long(14_000) } }).varyKey).toHaveLength(44)
  })

  test('different long values have different keys', () => {
    const values = Array.from({ length: 200 }, (_, i) => `${long(14_000)}${i}`)
    expect(new Set(values.map(key)).size).toBe(200)
  })

  test('a short value is its own key, and no value looks like a digest', () => {
    expect(key('de')).toBe('2:de;')
    expect(key(key(long(14_000)))).not.toBe(key(long(14_000)))
  })

  test.each<[description: string, remember: (tags: readonly string[]) => { knows(tag: string): boolean }]>([
    [
      'invalidated',
      (tags) => {
        const log = new InvalidationLog(16_384)
        for (const tag of tags) log.record([tag])
        return { knows: (tag) => log.invalidatedSince([tag], 0) }
      },
    ],
    [
      'held back',
      (tags) => {
        const held = new QuarantinedTags(16_384)
        for (const tag of tags) held.addUntil([tag], 0, 1_000)
        return { knows: (tag) => held.includes([tag], 0) }
      },
    ],
  ])('8 KiB targets that are remembered as %s take no 8 KiB each', (_, remember) => {
    const target = (at: number): string => `${Buffer.alloc(8_000, 'x').toString()}${at}`
    const before = heapBytes()
    const memory = remember(Array.from({ length: 16_384 }, (_, at) => target(at)))
    expect(heapBytes() - before).toBeLessThan(16 * 1024 * 1024)
    expect(memory.knows(target(5))).toBe(true)
    expect(memory.knows(target(16_384))).toBe(false)
  })
})

describe('what stored responses have in the JavaScript heap is bounded', () => {
  const fill = async (targetOf: (number: number) => string, content: string) => {
    const { cache } = harness({ maxBytes: 10_000_000, maxHeapBytes: 1_000_000 })
    for (let number = 0; number < 500; number += 1)
      await cache.response(readOf({ target: targetOf(number) }), async () => response(content))
    return { cache, entries: cache.stats().entries }
  }

  test('long targets are evicted although there is space for contents', async () => {
    const { cache, entries } = await fill((number) => `/${number}/${long(8_000)}`, 'x')
    expect(entries).toBeGreaterThan(80)
    expect(entries).toBeLessThan(120)
    const last = readOf({ target: `/499/${long(8_000)}` })
    expect((await cache.response(last, async () => response('y'))).outcome).toBe('hit')
  })

  test('contents do not count', async () => {
    expect((await fill((number) => `/${number}`, 'x'.repeat(16_000))).entries).toBe(500)
  })

  test.each<[string, (cache: Harness['cache'], targets: readonly string[]) => unknown]>([
    ['by a purge of all', (cache) => cache.purge({ selector: { kind: 'all' }, mode: 'hard', dryRun: false })],
    [
      'one by one',
      (cache, targets) => cache.invalidate(targets.map((target) => targetKeyOf(readOf({ target }).key))),
    ],
  ])('what has been removed %s no longer counts', async (_, remove) => {
    const targetOf = (number: number): string => `/${number}/${long(8_000)}`
    const { cache } = await fill(targetOf, 'x')
    remove(
      cache,
      Array.from({ length: 500 }, (_each, number) => targetOf(number)),
    )
    await settle()
    expect(cache.stats().entries).toBe(0)
    for (let number = 0; number < 80; number += 1)
      await cache.response(readOf({ target: `/b${targetOf(number)}` }), async () => response('x'))
    expect(cache.stats().entries).toBe(80)
  })
})
