import { expect, test } from 'vitest'
import type { Change } from '../../../../src/service/contract.ts'
import { tagger } from '../../cache/site-fixture.ts'

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
