import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { InvalidationLog } from '../../../../src/cache/store/invalidation-log.ts'
import { createTagIndex, type TagHolder } from '../../../../src/cache/store/tag-index.ts'

const names = ['a', 'b', 'c', 'd', 'e']

const holderOf = (key: number, tags: readonly number[], number = 0): TagHolder => ({
  key: `k${key}`,
  number,
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

test('what is detached from a tag stays with its other tags until it is removed, and what is added later is found', () => {
  const tags = fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 4 })
  const plan = fc.record({ early: fc.array(tags), late: fc.array(tags), tag: fc.integer({ min: 0, max: 4 }) })
  fc.assert(
    fc.property(plan, ({ early, late, tag }) => {
      const index = createTagIndex<TagHolder>()
      const holders = [...early, ...late].map((of, at) => holderOf(at, of, at + 1))
      const name = names[tag] ?? 'a'
      const [before, after] = [holders.slice(0, early.length), holders.slice(early.length)]
      before.forEach(index.add)
      const detached = index.detach(name, early.length)
      expect(detached).toEqual(before.filter((one) => one.tags.includes(name)))
      expect(index.holders(name)).toEqual([])
      after.forEach(index.add)
      expect(holders.filter(index.wasDetached)).toEqual(detached)
      detached.forEach(index.remove)
      index.forget(name, early.length)
      expect(holders.some(index.wasDetached)).toBe(false)
      const left = holders.filter((one) => !detached.includes(one))
      for (const other of names) {
        const expected = left.filter((one) => one.tags.includes(other)).map(({ key }) => key)
        expect(Array.from(index.holders(other), ({ key }) => key).sort()).toEqual(expected.sort())
      }
      left.forEach(index.remove)
      expect(index.size).toBe(0)
    }),
  )
})

test('a tag of many holders is one string', () => {
  const index = createTagIndex<TagHolder>()
  const again = ['site', 'all'].join('/')
  index.add({ key: 'k1', tags: ['site/all'], number: 0, positions: undefined })
  index.add({ key: 'k2', tags: [again], number: 0, positions: undefined })
  expect(index.canonical(again)).toBe('site/all')
  expect(index.holders('site/all').map(({ key }) => key)).toEqual(['k1', 'k2'])
  expect(index.holders('other')).toEqual([])
})

describe('what a request has invalidated and its own response shows', () => {
  const log = () => new InvalidationLog(100)

  test('does not supersede this response', () => {
    const own = log()
    own.record(['a', 'b'], 'request')
    own.record(['a'], 'request')
    expect(own.invalidatedSince(['a', 'b'], 0, 'request')).toBe(false)
    expect(own.invalidatedSince(['a'], 0, 'another')).toBe(true)
    expect(own.invalidatedSince(['a'], 0)).toBe(true)
  })

  test('supersedes it where another request has invalidated the same before, between or after', () => {
    const orders = [
      [undefined, 'request'],
      ['request', undefined, 'request'],
      ['request', undefined],
      ['request', 'another'],
    ]
    for (const order of orders) {
      const own = log()
      for (const request of order) own.record(['a'], request)
      expect([order, own.invalidatedSince(['a'], 0, 'request')]).toEqual([order, true])
    }
  })

  test('supersedes it after everything was invalidated, and where a request has too many tags', () => {
    const own = log()
    own.record(['a'], 'request')
    own.recordAll()
    expect(own.invalidatedSince(['a'], 0, 'request')).toBe(true)
    const many = new InvalidationLog(10_000)
    many.record(
      Array.from({ length: 1_001 }, (_, at) => `tag ${at}`),
      'request',
    )
    expect(many.invalidatedSince(['tag 1'], 0, 'request')).toBe(true)
  })
})
