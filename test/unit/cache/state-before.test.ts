import { describe, expect, test } from 'vitest'
import { createConcurrentWrites } from '../../../src/exchange/write/concurrent-writes.ts'
import type { TaggedArguments } from '../../../src/service/tagger.ts'
import { found, item, json, list, type Read, tagger } from './site-fixture.ts'

const before = {
  id: 5,
  type: 'post',
  status: 'publish',
  date: '2026-01-01T00:00:00',
  date_gmt: '2026-01-01T00:00:00',
  slug: 'five',
  link: '/five',
  author: 1,
  categories: [2],
  tags: [],
  sticky: false,
  format: 'standard',
  title: { rendered: 'Five' },
  content: { rendered: '<p>Five</p>', protected: false },
  meta: {},
  rating: 4,
}

type Properties = Readonly<Record<string, unknown>>

/** Does a PUT that answers so reach a stored response, when another one shows that state before? */
const reaches = (after: Properties, read: Read, known: unknown = before): boolean => {
  const routeMatch = found('posts', 'item', { id: '5' })
  const shown = () => (known === undefined ? [] : [Buffer.from(JSON.stringify(known))])
  const written = tagger.writtenTags(routeMatch, () => undefined, 'PUT', json(after), shown)
  const stored = tagger.storedTags(read.found, read.args ?? {}, json(read.body ?? {}, read.headers ?? []))
  return written.some((tag) => stored.includes(tag))
}

const posts = (args: TaggedArguments = {}, body: unknown = []): Read => list('posts', args, body)
const title = { ...before, title: { rendered: 'Six' } }

describe('an update of an item that is known from before', () => {
  test.each<[string, Properties, Read, boolean]>([
    ['of texts leaves lists that do not show it', title, posts(), false],
    ['of texts reaches lists that show it', title, posts({}, [{ id: 5, type: 'post' }]), true],
    ['of texts reaches lists that look at texts', title, posts({ search: 'x' }), true],
    ['of texts reaches lists ordered by them', title, posts({ orderby: 'modified' }), true],
    ['of texts reaches lists that do not say what they show', title, posts({}, [{ title: 'x' }]), true],
    ['of texts leaves counts of terms', title, list('categories'), false],
    ['of texts leaves the revisions of others', title, item('posts', 6), false],
    ['of a title reaches menu items, which may repeat it', title, item('menu-items', 9), true],
    ['of nothing leaves menu items', { ...before, modified: 'later' }, item('menu-items', 9), false],
    [
      'of texts reaches what embeds something that nobody knows',
      title,
      item('posts', 9, { _embedded: { up: [{ code: 'rest_forbidden' }] } }),
      true,
    ],
    [
      'of texts leaves what embeds something else',
      title,
      item('posts', 9, { _embedded: { author: [{ id: 1 }] } }),
      false,
    ],
    ['of the status reaches lists', { ...before, status: 'draft' }, posts(), true],
    ['of something that a plugin added reaches lists', { ...before, rating: 5 }, posts(), true],
    [
      'of meta, of which editors see more, leaves lists that do not show it',
      { ...before, meta: { a: 1 } },
      posts(),
      false,
    ],
    [
      'of terms that the earlier version did not show reaches lists under them',
      { ...before, topic: [5] },
      posts({ topic: 5 }),
      true,
    ],
    [
      'of its category reaches lists of the old one',
      { ...before, categories: [3] },
      posts({ categories: [2] }),
      true,
    ],
    [
      'of its category reaches lists of the new one',
      { ...before, categories: [3] },
      posts({ categories: [3] }),
      true,
    ],
    [
      'of its category leaves lists of another',
      { ...before, categories: [3] },
      posts({ categories: [4] }),
      false,
    ],
    ['of its category reaches counts of terms', { ...before, categories: [3] }, list('categories'), true],
    ['of its category leaves lists of all posts', { ...before, categories: [3] }, posts(), false],
    ['of its category leaves tags', { ...before, categories: [3] }, list('tags'), false],
    ['of its category leaves comments', { ...before, categories: [3] }, list('comments'), false],
    [
      'of its category reaches lists without the old one',
      { ...before, categories: [3] },
      posts({ categories_exclude: [2] }),
      true,
    ],
    [
      'of its category reaches lists of an author and a category',
      { ...before, categories: [3] },
      posts({ author: [1], categories: [3] }),
      true,
    ],
    [
      'of its category reaches lists under an argument that the table does not know',
      { ...before, categories: [3] },
      posts({ topic: 5 }),
      true,
    ],
    ['of its author reaches users', { ...before, author: 2 }, list('users'), true],
    [
      'of its author reaches lists in the order of authors',
      { ...before, author: 2 },
      posts({ orderby: 'author' }),
      true,
    ],
    ['of its author and its slug reaches all lists', { ...before, author: 2, slug: 'six' }, posts(), true],
    [
      'of its category leaves lists of drafts',
      { ...before, categories: [3] },
      posts({ status: ['draft'] }),
      false,
    ],
    [
      'of its status leaves lists of pending posts',
      { ...before, status: 'draft' },
      posts({ status: ['pending'] }),
      false,
    ],
    [
      'of its status reaches lists of drafts',
      { ...before, status: 'draft' },
      posts({ status: ['draft'] }),
      true,
    ],
    [
      'of its status reaches lists of any status',
      { ...before, status: 'draft' },
      posts({ status: ['any'] }),
      true,
    ],
    [
      'of its category leaves lists of another author',
      { ...before, categories: [3] },
      posts({ author: [7] }),
      false,
    ],
  ])('%s', (_, after, read, expected) => {
    expect(reaches(after, read)).toBe(expected)
  })

  test.each<[string, unknown]>([
    ['nothing stored shows it', undefined],
    ['what is stored was trimmed', { id: 5, type: 'post', title: { rendered: 'Five' } }],
    ['what is stored shows another', { ...before, id: 6 }],
    ['what is stored cannot be read', 'x'],
  ])('when %s it reaches all lists of which only a part is known', (_, known) => {
    expect(reaches(title, posts(), known === undefined ? null : known)).toBe(true)
    expect(reaches(title, posts({ categories: [4] }), known === undefined ? null : known)).toBe(true)
  })

  test('between drafts reaches itself and lists of drafts, and no public response', () => {
    const draft = { ...before, status: 'draft' }
    const after = { ...draft, title: { rendered: 'Six' } }
    expect(reaches(after, item('posts', 5), draft)).toBe(true)
    expect(reaches(after, posts({ status: ['draft'] }), draft)).toBe(true)
    expect(reaches(after, posts({ status: ['any'] }), draft)).toBe(true)
    expect(reaches(after, posts(), draft)).toBe(false)
    expect(reaches(after, list('categories'), draft)).toBe(false)
  })
})

describe('a write is alone', () => {
  test('when no other of its service ran at any time', () => {
    const watch = createConcurrentWrites()
    const first = watch.begin(['site'])
    const elsewhere = watch.begin(['plants'])
    expect([first.isAlone(), elsewhere.isAlone()]).toEqual([true, true])
    first.end()
    expect(watch.begin(['site']).isAlone()).toBe(true)
  })

  test('not when one began before its end, or had not ended when it began', () => {
    const watch = createConcurrentWrites()
    const first = watch.begin(['site'])
    const second = watch.begin(['site'])
    second.end()
    expect([first.isAlone(), second.isAlone()]).toEqual([false, false])
    const third = watch.begin(['site'])
    first.end()
    third.end()
    expect(third.isAlone()).toBe(false)
    expect(watch.begin(['site']).isAlone()).toBe(true)
  })

  test('not when another service writes to the same upstream, whichever began first', () => {
    const watch = createConcurrentWrites()
    const site = watch.begin(['site'])
    const pages = watch.begin(['pages', 'site'])
    site.end()
    expect([site.isAlone(), watch.begin(['site']).isAlone()]).toEqual([false, false])
    pages.end()
  })
})
