import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createTagIndex, type TagHolder } from '../../../src/cache/store/tag-index.ts'

const names = ['a', 'b', 'c', 'd', 'e']

const holderOf = (key: number, tags: readonly number[]): TagHolder => ({
  key: `k${key}`,
  tags: tags.map((at) => names[at] ?? 'a'),
  positions: undefined,
})

const steps = fc.array(
  fc.record({
    key: fc.integer({ min: 0, max: 60 }),
    tags: fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 6 }),
    stays: fc.boolean(),
  }),
  { maxLength: 400, size: 'max' },
)

test('a tag finds its holders, each once, whatever was added and removed before', () => {
  fc.assert(
    fc.property(steps, (all) => {
      const index = createTagIndex<TagHolder>()
      const held = new Map<number, TagHolder>()
      for (const { key, tags, stays } of all) {
        const before = held.get(key)
        if (before !== undefined) index.remove(before)
        held.delete(key)
        if (!stays) continue
        const holder = holderOf(key, tags)
        index.add(holder)
        held.set(key, holder)
      }
      const carried = new Set([...held.values()].flatMap(({ tags }) => tags))
      expect(index.size).toBe(carried.size)
      for (const name of names) {
        const carriers = [...held.values()].filter(({ tags }) => tags.includes(name)).map(({ key }) => key)
        expect(
          index
            .holders(name)
            .map(({ key }) => key)
            .sort(),
        ).toEqual(carriers.sort())
      }
    }),
    { numRuns: 300 },
  )
})

test('a tag of many holders is one string', () => {
  const index = createTagIndex<TagHolder>()
  const again = ['site', 'all'].join('/')
  index.add({ key: 'k1', tags: ['site/all'], positions: undefined })
  index.add({ key: 'k2', tags: [again], positions: undefined })
  expect(index.canonical(again)).toBe('site/all')
  expect(index.holders('site/all').map(({ key }) => key)).toEqual(['k1', 'k2'])
  expect(index.holders('other')).toEqual([])
})
