import { expect, test } from 'vitest'
import { type Change, type MaybeState, requestTags } from '../../../../src/service/tagger.ts'
import { found, tagger } from '../../cache/site-fixture.ts'

const head = { status: 200, headers: [], content: Buffer.from('{}') }

/** Does a change reach a response that the companion describes by these lists? */
const reaches = (change: Change, lists: string): boolean => {
  const named = lists.split(';').filter((list) => list.includes('='))
  const n = named.flatMap((list) => list.slice(list.indexOf('=') + 1).split(',')).length
  const tags = `v1;n=${n};complete;blogs=1;${lists}`
  const stored = new Set(tagger.storedTags(undefined, {}, { ...head, hints: { tags, maxAge: undefined } }))
  expect(stored.has('site/described')).toBe(true)
  return tagger.changedTags([change])?.some((tag) => stored.has(tag)) ?? true
}

const rows = 'r=orders:id:5.7,orders:id:9'

const term = (before: MaybeState, after: MaybeState): Change => ({
  ...{ kind: 'term', id: 3, taxonomy: 'category' },
  ...{ before, after },
})
const described = (texts: readonly string[] | undefined): Change =>
  term({ slug: 'a', parent: 0 }, { slug: 'a', parent: 0, ...(texts === undefined ? {} : { texts }) })
const parents = 'q=h:category'

const counted = term({ slug: 'a', parent: 0, only: 'count' }, { slug: 'a', parent: 0, only: 'count' })

const state = {
  ...{ status: 'publish', slug: 'a', parent: 0, author: 1, date: '2026-01-01 00:00:00', menu_order: 0 },
  ...{ protected: false, relations: [37] },
}
const post = (texts: readonly string[], only?: 'comments'): Change => {
  const counts = only === undefined ? {} : { only }
  return {
    ...{ kind: 'post', id: 5, type: 'product' },
    ...{ before: { ...state, ...counts }, after: { ...state, ...counts, texts } },
  }
}
const sumOfComments = 'q=sn:any:any:relation:37'

test.each<[string, Change, string, boolean]>([
  ['a row that it shows', { kind: 'table', name: 'orders', rows: ['id:7', 'post_id:1'] }, rows, true],
  ['a row of its second list', { kind: 'table', name: 'orders', rows: ['id:9'] }, rows, true],
  ['another row', { kind: 'table', name: 'orders', rows: ['id:6', 'post_id:5'] }, rows, false],
  ['no row, since nothing was there', { kind: 'table', name: 'orders', rows: [] }, rows, false],
  ['a row with this id of another table', { kind: 'table', name: 'order', rows: ['id:5'] }, rows, false],
  ['unknown rows of the table', { kind: 'table', name: 'orders' }, rows, true],
  [
    'a row that another read memoized, and that was there',
    { kind: 'table', name: 'orders', rows: ['post_id:1'], memoized: ['id:5'] },
    rows,
    false,
  ],
  [
    'a row that another read memoized, and that was not there',
    { kind: 'table', name: 'orders', rows: [], memoized: ['id:5'] },
    `${rows};a=orders:id:5`,
    true,
  ],
  [
    'a row that was not there, and is changed now',
    { kind: 'table', name: 'orders', rows: ['id:5'] },
    `${rows};a=orders:id:5`,
    true,
  ],
  [
    'a row that another read memoized, where it shows the whole table',
    { kind: 'table', name: 'orders', rows: [], memoized: ['id:6'] },
    'x=orders',
    true,
  ],
  ['the number of posts of a term', counted, 't=3', true],
  ['the number of posts of a term, where it shows none', counted, 'uncounted;t=3', false],
  ['the number of posts of a term that it only looks for', counted, 'd=3', false],
  ['the name of a term that it only looks for', described(['name']), 'd=3', true],
  ['the description of a term that it only looks for', described([]), 'd=3', true],
  ['the description of such a term, where it shows slugs', described([]), 'slugs;d=3', false],
  ['the name of a term, where it shows no number of posts', described(['name']), 'uncounted;t=3', true],
  ['the number of comments of a post', post(['comments'], 'comments'), 'uncounted;p=5', true],
  [
    'the number of comments of a post, where it shows none',
    post(['comments'], 'comments'),
    'plain;p=5',
    false,
  ],
  ['the number of comments, of which it shows the sum', post(['comments'], 'comments'), sumOfComments, true],
  ['the number of comments and the time', post(['modified', 'comments']), sumOfComments, true],
  ['the time of the last change, where it shows a sum of comments', post(['modified']), sumOfComments, false],
  ['the description of a term', described([]), 'plain;slugs;t=3', false],
  ['the description of a term, where it shows more than slugs', described([]), 't=3', true],
  ['the description of a term, where it shows numbers of posts', described([]), 'slugs;t=3', false],
  ['the number of posts of a term as well', described(['count']), 'slugs;t=3', true],
  ['the name of a term, which orders terms', described(['name']), 'plain;slugs;t=3', true],
  ['something of a term that is not known', described(undefined), 'plain;slugs;t=3', true],
  [
    'the slug of a term',
    term({ slug: 'a', parent: 0 }, { slug: 'b', parent: 0, texts: [] }),
    'slugs;t=3',
    true,
  ],
  [
    'the parent of a term',
    term({ slug: 'a', parent: 0 }, { slug: 'a', parent: 7, texts: [] }),
    parents,
    true,
  ],
  ['a term that stays where it was', described(['name']), parents, false],
  ['a new term at the top', term(null, { slug: 'a', parent: 0 }), parents, false],
  ['a new term below another', term(null, { slug: 'a', parent: 7 }), parents, true],
  ['a term that is gone from below another', term({ slug: 'a', parent: 7 }, null), parents, true],
  ['a term of which nothing is known', term(undefined, undefined), parents, true],
  ['the option with the parents', { kind: 'option', name: 'category_children' }, parents, true],
  ['the option with other parents', { kind: 'option', name: 'genre_children' }, parents, false],
  [
    'any row, where it shows the whole table',
    { kind: 'table', name: 'orders', rows: ['id:6'] },
    'x=orders',
    true,
  ],
  [
    'an option that plugins read while they load',
    { kind: 'option', name: 'shop', early: true },
    'early;p=1',
    true,
  ],
  ['an option that they do not read then', { kind: 'option', name: 'shop' }, 'early;p=1', false],
  ['an option that registers widgets', { kind: 'option', name: 'widget_text' }, 'structure;p=1', true],
  ['another option', { kind: 'option', name: 'my_widget_text' }, 'structure;p=1', false],
  ['an early option, where none is shown', { kind: 'option', name: 'shop', early: true }, 'p=1', false],
  ['an option that it names', { kind: 'option', name: 'shop_mail' }, 'o=shop_mail', true],
])('what a change of %s reaches', (_what, change, lists, expected) => {
  expect(reaches(change, lists)).toBe(expected)
})

test.each<[string, string | undefined, Change, boolean]>([
  ['described completely', 'v1;n=1;complete;blogs=1;t=4', counted, false],
  ['described completely, of what it shows', 'v1;n=1;complete;blogs=1;t=3', counted, true],
  ['not described completely', 'v1;n=1;blogs=1;t=4', post([]), true],
  ['without the companion', undefined, post([]), true],
])('a response with an undeclared parameter, %s: what a change reaches', (_, lists, change, expected) => {
  const hints = lists === undefined ? undefined : { tags: lists, maxAge: undefined }
  const match = found('tags', 'collection')
  const rowTags = tagger.storedTags(
    match,
    {},
    { ...head, content: Buffer.from('[]'), ...(hints && { hints }) },
  )
  const asked = { service: 'site', target: '/site/v2/tags?lang=de', isPublic: true, sendsUndeclared: true }
  const stored = new Set(requestTags({ tagger, invalidatesTargets: false }, rowTags, asked))
  expect(tagger.changedTags([change])?.some((tag) => stored.has(tag))).toBe(expected)
})
