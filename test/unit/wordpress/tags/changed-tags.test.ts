import { expect, test } from 'vitest'
import type { Change, MaybeState } from '../../../../src/service/tagger.ts'
import { changeReaches, item, list, tagger } from '../../cache/site-fixture.ts'

const post = (
  before: Record<string, unknown> | null | undefined,
  after: Record<string, unknown> | null | undefined,
  type = 'post',
): Change => ({ kind: 'post', id: 12, type, before, after })

const shown = { status: 'publish', slug: 'a', author: 1, date: '', terms: { category: [3] }, sticky: false }
const draft = { ...shown, status: 'draft' }

test('a published post that changes reaches itself, its lists and the terms that count it', () => {
  const change = post(shown, { ...shown, slug: 'b' })
  for (const read of [
    item('posts', 12),
    list('posts'),
    list('posts', { categories: [3] }),
    item('categories', 3),
    list('search'),
  ])
    expect(changeReaches(change, read)).toBe(true)
  expect(changeReaches(change, item('posts', 13))).toBe(false)
})

test.each([
  ['a draft that stays a draft', post(draft, { ...draft, slug: 'b' })],
  ['a new draft', post(null, draft)],
])('%s leaves the lists of what is published alone', (_, change) => {
  expect(changeReaches(change, item('posts', 12))).toBe(true)
  expect(changeReaches(change, list('posts'))).toBe(false)
  expect(changeReaches(change, list('posts', { status: ['draft'] }))).toBe(true)
})

test.each([
  ['a draft of which the state before is not known', post(undefined, draft)],
  ['a post that becomes a draft', post(shown, draft)],
  ['a draft that is published', post(draft, shown)],
  ['a post in the trash', post(shown, { ...shown, status: 'trash' })],
  ['a post that is gone', post(shown, null)],
  ['a new post', post(null, shown)],
  ['a post of which nothing is known', post(undefined, undefined)],
])('%s reaches the lists', (_, change) => {
  expect(changeReaches(change, list('posts'))).toBe(true)
})

test.each<[string, Change, Parameters<typeof changeReaches>[1]]>([
  [
    'a post whose state after is not known reaches lists that it may have joined',
    post({ ...shown, terms: { category: [4] } }, undefined),
    list('posts', { categories: [3] }, [{ id: 13, categories: [3] }], '1'),
  ],
  [
    'a page whose status is not known may have been deleted',
    post({ slug: 'a' }, { slug: 'b' }, 'page'),
    list('settings'),
  ],
])('%s', (_, change, read) => {
  expect(changeReaches(change, read)).toBe(true)
})

test('what editors send each other while they work on a post reaches nothing', () => {
  for (const read of [list('posts'), item('posts', 12), list('settings')])
    expect(changeReaches(post(null, shown, 'wp_sync_storage'), read)).toBe(false)
})

test.each<[string, Change]>([
  ['a post of a type that is not listed', post(shown, shown, 'product')],
  ['a post without an id', { kind: 'post', id: 0, type: 'post', before: undefined, after: undefined }],
  [
    'a term of a taxonomy that is not listed',
    { kind: 'term', id: 1, taxonomy: 'x', before: null, after: {} },
  ],
  ['an option that is not listed', { kind: 'option', name: 'siteurl' }],
  ['a table', { kind: 'table', name: 'posts' }],
  ['everything', { kind: 'all', reason: 'fingerprint' }],
  ['an object named like a member of every object', post(null, shown, 'constructor')],
])('%s may reach every response of which not everything is known', (_, change) => {
  expect(changeReaches(change, item('posts', 999))).toBe(true)
})

test.each(['cron', '_transient_doing_cron', '_site_transient_update_core'])(
  'the option %s changes no response',
  (name) => {
    expect(changeReaches({ kind: 'option', name }, item('posts', 12))).toBe(false)
  },
)

test('a revision reaches the post that it belongs to, and its revisions', () => {
  const change = post(undefined, { parent: 40 }, 'revision')
  expect(changeReaches(change, item('posts', 40))).toBe(true)
  expect(changeReaches(change, item('posts', 41))).toBe(false)
})

test('the revision of a draft that is saved leaves the lists alone, and a post without any state does not', () => {
  const saved = [
    post(draft, { ...draft, slug: 'b' }),
    { ...post(null, { parent: 12 }, 'revision'), id: 13 } as Change,
  ]
  const stored = new Set(tagger.storedTags(list('posts').found, list('posts').args ?? {}, emptyList))
  const reach = (changes: readonly Change[]) =>
    tagger.changedTags(changes)?.filter((tag) => stored.has(tag)) ?? ['everything']
  expect(reach(saved)).toEqual([])
  expect(reach([...saved, post(undefined, undefined)])).not.toEqual([])
})

test('a user reaches its own responses, those of its contents and what is stored for single credentials', () => {
  const tags = tagger.changedTags([{ kind: 'user', id: 3 }])
  expect(tags).toContain('site/callers')
  for (const read of [list('users'), item('users', 3), list('posts'), list('media')])
    expect(changeReaches({ kind: 'user', id: 3 }, read)).toBe(true)
})

const emptyList = { status: 200, headers: ['X-WP-TotalPages', '3'], content: Buffer.from('[]') }

const describedBy = (tags: string) =>
  tagger.storedTags(
    undefined,
    {},
    {
      status: 200,
      headers: [],
      content: Buffer.from('{}'),
      hints: { tags, maxAge: undefined },
    },
  )

const reply = (before: MaybeState, after: MaybeState): Change => ({
  kind: 'comment',
  id: 9,
  post: 12,
  before,
  after,
})

test.each<[string, Change, string]>([
  ['post', post(shown, shown), 'v1;n=1;blogs=1;complete;p=12'],
  ['listed type', post(shown, shown), 'v1;n=1;blogs=1;complete;list=post'],
  ['list of any type', post(shown, shown), 'v1;n=1;blogs=1;complete;list=any'],
  [
    'listed taxonomy',
    { kind: 'term', id: 5, taxonomy: 'category', before: {}, after: {} },
    'v1;n=1;blogs=1;complete;list=category',
  ],
  [
    'term',
    { kind: 'term', id: 5, taxonomy: 'category', before: {}, after: {} },
    'v1;n=1;blogs=1;complete;t=5',
  ],
  ['comment', { kind: 'comment', id: 9, post: 12, before: {}, after: {} }, 'v1;n=1;blogs=1;complete;c=9'],
  [
    'comment whose replies are listed',
    reply({ parent: 7 }, { parent: 8 }),
    'v1;n=1;blogs=1;complete;q=h:comment:7',
  ],
  [
    'parent that a comment gets',
    reply({ parent: 7 }, { parent: 8 }),
    'v1;n=1;blogs=1;complete;q=h:comment:8',
  ],
  [
    'parent that may have been that of a comment',
    reply(undefined, {}),
    'v1;n=1;blogs=1;complete;q=h:comment:8',
  ],
  ['user', { kind: 'user', id: 3 }, 'v1;n=1;blogs=1;complete;u=3'],
  [
    'key of users',
    { kind: 'user', id: 3, keys: ['ab01f8', '69b97d'] },
    'v1;n=1;blogs=1;complete;r=user_keys:key:12672e.69b97d',
  ],
  ['all keys of users', { kind: 'user', id: 3, keys: ['ab01f8'] }, 'v1;n=1;blogs=1;complete;x=user_keys'],
  ['anything, when the list is not complete', post(draft, shown), 'v1;n=1;blogs=1;p=99'],
  ['anything, when an option changes', { kind: 'option', name: 'blogname' }, 'v1;n=0;blogs=1'],
])('a response that names a %s in Trellis-Tags is reached by its change', (_, change, text) => {
  const stored = new Set(describedBy(text))
  expect(
    tagger.changedTags([change])?.filter((tag) => stored.has(tag) && tag.includes('/companion')),
  ).not.toEqual([])
})

test('an autosave that is saved again reaches what shows revisions of its post, and leaves alone what shows the post', () => {
  const autosave = {
    status: 'inherit',
    slug: '13-autosave-v1',
    parent: 13,
    author: 1,
    date: '2026-11-29 10:00:00',
  }
  const state = { ...autosave, menu_order: 0, protected: false, terms: {}, relations: [] }
  const change = {
    ...{ kind: 'post', id: 157, type: 'revision', before: state },
    after: { ...state, date: '2026-11-29 10:01:00', texts: ['content', 'modified'] },
  }
  const tags = tagger.changedTags([change as Change]) ?? []
  const reached = (text: string): boolean => describedBy(text).some((tag) => tags.includes(tag))
  expect(reached('v1;n=1;blogs=1;complete;q=sd:revision:inherit:parent:13')).toBe(true)
  expect(reached('v1;n=3;blogs=1;complete;p=13,101;q=sd:revision:inherit:parent:101')).toBe(false)
})

test('a key of a user leaves alone what shows the user without it', () => {
  const stored = new Set(
    describedBy('v1;n=4;blogs=1;complete;u=3;list=user;x=usermeta;r=user_keys:key:12672e'),
  )
  const tags = tagger.changedTags([{ kind: 'user', id: 3, keys: ['ab01f8'] }]) ?? []
  expect(tags.filter((tag) => stored.has(tag))).toEqual([])
})

test('a reply leaves the comments alone that it does not answer', () => {
  const stored = new Set(describedBy('v1;n=1;blogs=1;complete;q=h:comment:6'))
  const tags = tagger.changedTags([reply({ parent: 7 }, { parent: 8 })]) ?? []
  expect(tags.filter((tag) => stored.has(tag))).toEqual([])
})
