import { expect, test } from 'vitest'
import { planOrder } from '../../../../src/batch/order/plan-order.ts'
import { type OrderFacts, unknownOrder } from '../../../../src/batch/order/reach.ts'
import { siteItemOrder } from '../../../../src/wordpress/item-order.ts'

const on = (method: string, place: string, ...parameters: string[]): OrderFacts => {
  const [collection = '', itemId, part] = place.split('/')
  const kind = part ?? (itemId === undefined ? 'collection' : 'item')
  const effect = method === 'GET' ? 'read' : 'write'
  return { method, effect, collection, kind, itemId, parameters }
}

test.each([
  [
    'two updates of different items',
    [on('PUT', 'posts/1', 'title'), on('PUT', 'posts/2', 'title')],
    [[], []],
  ],
  ['two updates of one item', [on('PUT', 'posts/1', 'title'), on('PUT', 'posts/1', 'title')], [[], [0]]],
  ['update, then delete of one item', [on('PUT', 'posts/1', 'title'), on('DELETE', 'posts/1')], [[], [0]]],
  ['two creates', [on('POST', 'posts', 'title'), on('POST', 'posts', 'title')], [[], [0]]],
  [
    'a create, then an update: the item may be the new one',
    [on('POST', 'posts'), on('PUT', 'posts/9', 'title')],
    [[], [0]],
  ],
  [
    'an update, then a create: the new item may get that number',
    [on('PUT', 'posts/9', 'title'), on('POST', 'posts')],
    [[], [0]],
  ],
  ['two that want a slug', [on('PUT', 'posts/1', 'slug'), on('PUT', 'posts/2', 'slug')], [[], [0]]],
  [
    'two sticky posts: one list holds both',
    [on('PUT', 'posts/1', 'sticky'), on('PUT', 'posts/2', 'sticky')],
    [[], [0]],
  ],
  [
    'a slug and a title of a flat collection',
    [on('PUT', 'posts/1', 'slug'), on('PUT', 'posts/2', 'title')],
    [[], []],
  ],
  [
    'a slug and a title of a tree: links change',
    [on('PUT', 'pages/1', 'slug'), on('PUT', 'pages/2', 'title')],
    [[], [0]],
  ],
  ['a delete and an update of a tree', [on('DELETE', 'pages/1'), on('PUT', 'pages/2', 'title')], [[], [0]]],
  ['two deletes: each frees a name', [on('DELETE', 'posts/1'), on('DELETE', 'posts/2')], [[], [0]]],
  ['posts and pages', [on('POST', 'posts'), on('POST', 'pages')], [[], []]],
  [
    'a category and a post',
    [on('PUT', 'categories/1', 'description'), on('PUT', 'posts/1', 'title')],
    [[], [0]],
  ],
  [
    'a page and a menu item that may show its title',
    [on('PUT', 'pages/1', 'title'), on('PUT', 'menu-items/2', 'title')],
    [[], [0]],
  ],
  ['two reads', [on('GET', 'posts'), on('GET', 'posts')], [[], []]],
  ['a write and a list', [on('PUT', 'posts/1', 'title'), on('GET', 'posts')], [[], [0]]],
  ['a write and another item', [on('PUT', 'posts/1', 'title'), on('GET', 'posts/2')], [[], []]],
  [
    'an autosave stands between',
    [on('PUT', 'posts/1', 'title'), on('POST', 'posts/2/autosaves'), on('PUT', 'posts/3', 'title')],
    [[], [0], [1]],
  ],
  [
    'an unknown resource waits for all and all wait for it',
    [on('PUT', 'posts/1', 'title'), on('POST', ''), on('PUT', 'pages/1', 'title')],
    [[], [0], [1]],
  ],
  [
    'an identifier that is not a number',
    [on('PUT', 'users/me', 'description'), on('PUT', 'users/1', 'description')],
    [[], [0]],
  ],
  ['a deleted user hands posts over', [on('DELETE', 'users/2'), on('PUT', 'posts/1', 'title')], [[], [0]]],
])('orders %s', (_, items, waits) => {
  expect(planOrder(items, siteItemOrder)).toEqual(waits)
})

test('no item waits for an item that does not run', () => {
  const update = on('PUT', 'posts/1', 'title')
  expect(planOrder([undefined, update, undefined, update], siteItemOrder)).toEqual([
    undefined,
    [],
    undefined,
    [1],
  ])
})

test('where nothing is known of collections, writes of two of them are kept in order', () => {
  expect(planOrder([on('PUT', 'posts/1', 'title'), on('PUT', 'pages/2', 'title')], unknownOrder)).toEqual([
    [],
    [0],
  ])
})
