import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cacheKey, targetKeyOf } from '../../../../src/cache/cache-key.ts'
import { MemoryStore } from '../../../../src/cache/store/memory-store.ts'
import { heapBytesOf, type StoredResponse } from '../../../../src/cache/store/stored-response.ts'
import { storedAt } from '../stored-at.ts'

// Variants, partitions, added forms and evictions, beside drops by tag that are swept later.

const targets = 4
const partitions = ['public', 'one', 'other'] as const
const step = fc.record({
  step: fc.constantFrom(
    'put',
    'put',
    'put',
    'put',
    'drop',
    'drop',
    'sweep',
    'sweep',
    'delete',
    'form',
    'clear',
  ),
  target: fc.nat(targets - 1),
  partition: fc.constantFrom(...partitions),
  variant: fc.constantFrom('1', '2'),
  tags: fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 3 }),
  bytes: fc.nat(300),
})
const steps = fc.array(step, { maxLength: 120, size: 'max' })

type Step = typeof step extends fc.Arbitrary<infer Taken> ? Taken : never
type Expected = Map<string, readonly StoredResponse[]>

const keyOf = (target: number, partition: string): string =>
  cacheKey({ service: 'site', target: `/${target}`, partition })

const allKeys = Array.from({ length: targets }, (_, target) => target).flatMap((target) =>
  partitions.map((partition) => keyOf(target, partition)),
)

const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0)
const of = (variants: readonly StoredResponse[] = []) => variants.map(({ order }) => order).sort()

/** What is counted must be that of what is there, once all that was dropped is swept. */
const expectCounted = (store: MemoryStore, maxBytes: number): void => {
  while (store.sweep(3)) expect(store.stats().entries).toBeGreaterThanOrEqual(0)
  const entries = store.all()
  const responses = entries.flatMap(({ variants }) => variants)
  const bytes = sum(responses.map((response) => response.bytes))
  expect(store.stats()).toEqual({
    entries: responses.length,
    bytes,
    tags: new Set(entries.flatMap(({ tags }) => tags)).size,
  })
  const heapBytes = sum(responses.map(heapBytesOf))
  expect(store.usedShare() * maxBytes).toBeCloseTo(Math.max(bytes, heapBytes), 3)
  for (const entry of entries) for (const tag of entry.tags) expect([...store.withTag(tag)]).toContain(entry)
}

const put = (store: MemoryStore, expected: Expected, order: number, one: Step) => {
  const { target, partition, variant, tags, bytes } = one
  const key = keyOf(target, partition)
  const content = Buffer.alloc(bytes, 'x')
  const stored = { ...storedAt({ target, tags, order, content, vary: ['X-Variant', variant] }), key }
  store.put(stored)
  const others = (expected.get(key) ?? []).filter(({ varyKey }) => varyKey !== stored.varyKey)
  return expected.set(key, [...others, stored])
}

const drop = (store: MemoryStore, expected: Expected, tags: readonly string[]) => {
  for (const [key, variants] of [...expected]) {
    // A target stands for its responses in all partitions.
    const found = [targetKeyOf(key), ...variants.flatMap((stored) => stored.tags)]
    if (found.some((tag) => tags.includes(tag))) expected.delete(key)
  }
  return store.drop(tags)
}

const take = (store: MemoryStore, expected: Expected, order: number, one: Step): unknown => {
  const { step: name, target, partition, tags, bytes } = one
  const key = keyOf(target, partition)
  switch (name) {
    case 'put':
      return put(store, expected, order, one)
    case 'drop':
      return drop(store, expected, bytes % 2 === 0 ? tags : [...tags, targetKeyOf(key)])
    case 'form':
      return store
        .peek(key)
        .slice(0, 1)
        .map((stored) => store.addForm(stored, { coding: 'gzip', content: Buffer.alloc(50) }))
    case 'sweep':
      return store.sweep(1 + target)
    case 'delete':
      store.delete(key)
      return expected.delete(key)
    default:
      store.clear()
      return expected.clear()
  }
}

/** What was evicted does not come back. */
const forgetEvicted = (expected: Expected, key: string, seen: readonly number[]): void =>
  void expected.set(
    key,
    (expected.get(key) ?? []).filter(({ order }) => seen.includes(order)),
  )

test.each([
  ['with room for all', 1_000_000],
  ['with evictions', 9_000],
])('%s, readers see what no later drop had a tag of', (_, maxBytes) => {
  fc.assert(
    fc.property(steps, (taken) => {
      const bounds = { maxBytes, maxHeapBytes: maxBytes, maxEntryBytes: 2_000 }
      const evicted: number[] = []
      const store = new MemoryStore({ ...bounds, onEvict: (bytes) => evicted.push(bytes) })
      const expected: Expected = new Map()
      for (const [order, one] of taken.entries()) {
        take(store, expected, order, one)
        const wrong = allKeys.filter((key) => {
          const seen = of(store.peek(key))
          const known = of(expected.get(key))
          forgetEvicted(expected, key, seen)
          return (
            seen.some((each) => !known.includes(each)) || (evicted.length === 0 && seen.length < known.length)
          )
        })
        expect(wrong).toEqual([])
      }
      expectCounted(store, maxBytes)
    }),
    { numRuns: 100 },
  )
})
