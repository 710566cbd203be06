import { expect, test } from 'vitest'
import { type FetchInFlight, InFlightTable } from '../../../../src/cache/fetch/in-flight-table.ts'

class One implements FetchInFlight<One> {
  next: One | undefined
  readonly key: string
  readonly variant: string
  readonly name: string

  constructor(key: string, variant: string, name: string) {
    this.key = key
    this.variant = variant
    this.name = name
  }
}

const one = (key: string, variant = '', name = ''): One => new One(key, variant, name)

test('a fetch is found by key and variant until it is removed', () => {
  const table = new InFlightTable<One>()
  // More than there are chains: some share one.
  const all = Array.from({ length: 5_000 }, (_, at) => one(`site/posts?page=${at}`, String(at % 3)))
  for (const each of all) table.add(each)
  expect(all.filter((each) => table.find(each.key, each.variant) === each)).toHaveLength(5_000)
  expect(table.find('site/posts?page=1', '0')).toBeUndefined()
  const gone = all.filter((_, at) => at % 2 === 0)
  for (const each of gone) table.remove(each)
  expect(gone.filter((each) => table.find(each.key, each.variant) !== undefined)).toEqual([])
  const left = all.filter((_, at) => at % 2 === 1)
  expect(left.filter((each) => table.find(each.key, each.variant) === each)).toHaveLength(2_500)
})

test('all fetches of a key are removed together, and other keys of the same chain stay', () => {
  const table = new InFlightTable<One>()
  const others = Array.from({ length: 3_000 }, (_, at) => one(`other/${at}`))
  for (const each of others) table.add(each)
  for (const variant of ['a', 'b', 'c']) table.add(one('posts', variant))
  expect(table.removeAll('posts')).toBe(3)
  expect(table.removeAll('posts')).toBe(0)
  expect(['a', 'b', 'c'].map((variant) => table.find('posts', variant))).toEqual([
    undefined,
    undefined,
    undefined,
  ])
  expect(others.filter((each) => table.find(each.key, '') === each)).toHaveLength(3_000)
})

test('removing a fetch twice, or one that was never added, removes no other', () => {
  const table = new InFlightTable<One>()
  const first = one('posts', 'a', 'first')
  const second = one('posts', 'a', 'second')
  table.add(first)
  table.removeAll('posts')
  table.add(second)
  table.remove(first)
  table.remove(one('posts', 'a', 'third'))
  expect(table.find('posts', 'a')?.name).toBe('second')
  table.clear()
  expect(table.find('posts', 'a')).toBeUndefined()
})
