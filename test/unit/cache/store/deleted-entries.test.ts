import fc from 'fast-check'
import { expect, test } from 'vitest'
import { MemoryStore } from '../../../../src/cache/store/memory-store.ts'
import { keyOf, storedAt } from '../stored-at.ts'

type Step = { readonly step: string; readonly target: number; readonly tags: readonly string[] }

const steps = fc.array(
  fc.record({
    step: fc.constantFrom('put', 'put', 'put', 'mark', 'mark', 'drop', 'drop', 'delete', 'sweep', 'clear'),
    target: fc.nat(12),
    tags: fc.uniqueArray(fc.constantFrom('a', 'b', 'c'), { maxLength: 3 }),
  }),
  { maxLength: 120, size: 'max' },
)

/** The store, and what it must hold. */
const pair = () => {
  const store = new MemoryStore({
    maxBytes: 1_000_000,
    maxHeapBytes: 1_000_000,
    maxEntryBytes: 1000,
    onEvict: () => undefined,
  })
  return { store, expected: new Map<string, readonly string[]>() }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0)

const drop = (expected: Map<string, readonly string[]>, key: string): number => (expected.delete(key) ? 1 : 0)

const take = ({ store, expected }: ReturnType<typeof pair>, { step, target, tags }: Step, order: number) => {
  const key = keyOf(target)
  switch (step) {
    case 'put':
      store.put(storedAt({ target, tags, order }))
      return expected.set(key, tags)
    case 'mark':
      return expect(
        sum(
          store
            .all()
            .filter((one) => one.key === key)
            .map((one) => store.markDeleted(one)),
        ),
      ).toBe(drop(expected, key))
    case 'drop': {
      const before = expected.size
      for (const [held, of] of [...expected]) if (of.some((tag) => tags.includes(tag))) expected.delete(held)
      return expect(store.drop(tags) > 0 || expected.size === before).toBe(true)
    }
    case 'delete':
      return expect(store.delete(key)).toBe(drop(expected, key))
    case 'sweep':
      return store.sweep(1 + target)
    default:
      expect(store.clear()).toBeLessThanOrEqual(expected.size)
      return expected.clear()
  }
}

test('a response that was marked deleted, or dropped by a tag, is found by no reader, before and after the sweep', () => {
  fc.assert(
    fc.property(steps, (all) => {
      const both = pair()
      const { store, expected } = both
      for (const [order, one] of all.entries()) {
        take(both, one, order)
        const key = keyOf(one.target)
        expect(store.stats().entries).toBeLessThanOrEqual(expected.size)
        expect(store.peek(key)).toHaveLength(expected.has(key) ? 1 : 0)
      }
      while (store.sweep(100));
      expect(store.stats().entries).toBe(expected.size)
      expect(
        store
          .all()
          .map(({ key }) => key)
          .sort(),
      ).toEqual([...expected.keys()].sort())
      for (const tag of ['a', 'b', 'c']) {
        const tagged = [...expected].filter(([, tags]) => tags.includes(tag)).map(([key]) => key)
        expect(Array.from(store.withTag(tag), ({ key }) => key).sort()).toEqual(tagged.sort())
      }
      for (const key of expected.keys()) store.delete(key)
      expect(store.stats()).toEqual({ entries: 0, bytes: 0, tags: 0 })
    }),
    { numRuns: 200 },
  )
})

test('a drop touches no entry, however many there are, and a second one has nothing to do', () => {
  const { store } = pair()
  for (let target = 0; target < 500; target += 1)
    store.put(storedAt({ target, tags: ['all', `item/${target}`], order: target }))
  const entries = store.all()
  expect(store.drop(['all'])).toBe(500)
  expect(store.stats().entries).toBe(0)
  expect(entries.filter(({ variants }) => variants.length === 0)).toHaveLength(0)
  expect([...store.withTag('all')]).toEqual([])
  expect(store.drop(['all'])).toBe(0)
  store.put(storedAt({ target: 5, tags: ['all'], order: 500 }))
  expect([store.peek(keyOf(5)).length, store.peek(keyOf(6)).length]).toEqual([1, 0])
  while (store.sweep(100));
  expect(store.all().map(({ key }) => key)).toEqual([keyOf(5)])
  expect(store.stats()).toMatchObject({ entries: 1, tags: 1 })
})

test('a purge that goes on after everything was removed counts nothing', () => {
  const { store } = pair()
  store.put(storedAt({ target: 1, tags: [], order: 1 }))
  const entries = store.all()
  store.clear()
  store.put(storedAt({ target: 2, tags: [], order: 2 }))
  expect(entries.map((entry) => store.markDeleted(entry))).toEqual([0])
  expect(store.stats().entries).toBe(1)
})
