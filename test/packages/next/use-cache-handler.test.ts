import { beforeAll, expect, test } from 'vitest'
import { notKept, purges } from '../../../packages/next/purges.js'
import handler from '../../../packages/next/use-cache-handler.js'

beforeAll(() => {
  purges.purgeAll()
})

const entry = (text: string, tags: readonly string[] = [], more: object = {}) => ({
  value: new Blob([text]).stream(),
  tags: [...tags],
  stale: 0,
  timestamp: purges.now,
  revalidate: 900,
  expire: 3600,
  ...more,
})
type Entry = ReturnType<typeof entry>

const shown = async (key: string, softTags: readonly string[] = []): Promise<string | undefined> => {
  const found = await handler.get(key, softTags)
  return found === undefined ? undefined : new Response(found.value).text()
}
/** As Next.js does: asks, runs the function, and hands the result over. */
const made = async (key: string, result: Entry): Promise<void> => {
  await handler.get(key, [])
  await handler.set(key, Promise.resolve(result))
}

test('a result is kept, for any number of readers, until one of its tags is purged', async () => {
  await made('a', entry('one', ['x', 'y']))
  expect([await shown('a'), await shown('a')]).toEqual(['one', 'one'])
  purges.purge(['z'])
  expect(await shown('a')).toBe('one')
  await handler.updateTags(['y'])
  expect(await shown('a')).toBeUndefined()
})

test('what began before a purge of one of its tags is not kept, however late it ends', async () => {
  await handler.get('b', [])
  const old = entry('old', ['x'])
  let end = (_: Entry): void => {}
  const kept = handler.set(
    'b',
    new Promise<Entry>((resolve) => {
      end = resolve
    }),
  )
  purges.purge(['x'])
  end(old)
  await kept
  expect(await shown('b')).toBeUndefined()
})

test('of several runs of one function each counts by when it began, in whatever order they end', async () => {
  await handler.get('c', [])
  const first = entry('first', ['x'])
  await handler.get('c', [])
  const second = entry('second', ['x'])
  await handler.set('c', Promise.resolve(first))
  purges.purge(['x'])
  await handler.get('c', [])
  await handler.set('c', Promise.resolve(second))
  expect(await shown('c')).toBeUndefined()
  await handler.set('c', Promise.resolve(entry('third', ['x'])))
  expect(await shown('c')).toBe('third')
})

test('what Trellis lets nobody keep is not kept, nor is what failed in the middle', async () => {
  await made('d', entry('one', ['x', notKept]))
  expect(await shown('d')).toBeUndefined()
  await handler.set('d', Promise.reject(new Error('the function has thrown')))
  expect(await shown('d')).toBeUndefined()
})

test('past its time a result is made again', async () => {
  await made('e', entry('one', [], { timestamp: Date.now() - 901_000 }))
  expect(await shown('e')).toBeUndefined()
})

test('a purge of the path of a page reaches what the page uses', async () => {
  await made('f', entry('one'))
  expect(await shown('f', ['_N_T_/posts'])).toBe('one')
  await handler.updateTags(['_N_T_/posts'])
  expect(await shown('f', ['_N_T_/posts'])).toBeUndefined()
})

test('who asks while a result is being written waits for it', async () => {
  await handler.get('g', [])
  let end = (_: Entry): void => {}
  const kept = handler.set(
    'g',
    new Promise<Entry>((resolve) => {
      end = resolve
    }),
  )
  const waiting = shown('g')
  end(entry('one'))
  expect(await waiting).toBe('one')
  await kept
})

test('a purge of everything reaches all', async () => {
  await made('h', entry('one'))
  purges.purgeAll()
  expect(await shown('h')).toBeUndefined()
})
