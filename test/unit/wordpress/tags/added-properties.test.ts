import { describe, expect, test } from 'vitest'
import { coreProperties } from '../../../../src/wordpress/routes/properties.ts'
import { createPropertyReaches } from '../../../../src/wordpress/routes/property-reaches.ts'
import { createSiteTagger } from '../../../../src/wordpress/tags/site-tagger.ts'
import { siteTags } from '../../../../src/wordpress/tags/tags.ts'
import { found, json, list, type Read, item as shownItem } from '../../cache/site-fixture.ts'

const properties = { acf: 'item', large_head: 'site' } as const
const tagger = createSiteTagger({
  service: 'site',
  table: siteTags,
  properties: createPropertyReaches(properties),
})

type Sent = readonly [what: string, collection: string, id: number | undefined, given: readonly string[]]

/** Does a write with this response reach what is stored? */
const reaches = ([, collection, id, given]: Sent, read: Read): boolean => {
  const stored = new Set(
    tagger.storedTags(read.found, read.args ?? {}, json(read.body, read.headers ?? ['X-WP-TotalPages', '1'])),
  )
  const row =
    id === undefined ? found(collection, 'collection') : found(collection, 'item', { id: String(id) })
  const body = { id, status: 'publish', type: collection === 'posts' ? 'post' : undefined }
  const status = collection === 'settings' || id === 7 ? 200 : 201
  return tagger.writtenTags(row, () => given, 'POST', json(body, [], status)).some((tag) => stored.has(tag))
}

const title: Sent = ['the title of the site', 'settings', undefined, ['title']]
const comment: Sent = ['a new comment', 'comments', undefined, ['post', 'content']]
const page: Sent = ['a page', 'pages', 7, ['title']]
const user: Sent = ['a user', 'users', 7, ['name']]
const otherPost: Sent = ['another post', 'posts', 7, ['content']]
const menuItem: Sent = ['a menu item', 'menu-items', 7, ['attr_title']]
const writes = [title, comment, page, user, otherPost, menuItem]

const with_ = (name: string, more: Record<string, unknown> = {}) => ({ ...more, [name]: { title: 'A - B' } })
const category = { name: 'A', slug: 'a', taxonomy: 'category', count: 1 }

const added: readonly (readonly [string, (name: string) => Read])[] = [
  ['an item', (name) => shownItem('categories', 3, with_(name, category))],
  [
    'a list',
    (name) =>
      list('categories', { include: [3] }, [
        { id: 3, ...category },
        { id: 4, ...with_(name, category) },
      ]),
  ],
  ['a list of types', (name) => ({ ...list('types', {}, { post: with_(name, { slug: 'post' }) }) })],
  [
    'a type',
    (name) => ({ found: found('types', 'item', { type: 'post' }), body: with_(name, { slug: 'post' }) }),
  ],
  [
    'an item without an id, as _fields leaves it',
    (name) => ({ found: found('tags', 'item', { id: '3' }), body: with_(name) }),
  ],
  [
    'an embedded item',
    (name) => ({
      found: found('categories', 'item', { id: '3' }),
      args: { _embed: true },
      body: { id: 3, ...category, _embedded: { author: [{ id: 1, ...with_(name) }] } },
    }),
  ],
]

describe.each(added)('%s with a property of a plugin', (_where, readOf) => {
  test.each(writes)('is reached by %s when its property is unknown', (...write) => {
    expect(reaches(write, readOf('rank_math'))).toBe(true)
  })

  test.each([title, comment, page, user])(
    'is reached by %s when its property depends on the site',
    (...write) => {
      expect(reaches(write, readOf('large_head'))).toBe(true)
      expect(reaches(write, readOf('yoast_head_json'))).toBe(true)
    },
  )
})

const known: readonly (readonly [string, Read, Sent])[] = [
  ['of its item alone', shownItem('categories', 3, with_('acf', category)), title],
  ['of WordPress', shownItem('categories', 3, { ...category, _links: {}, meta: [] }), title],
  ['of the site', shownItem('pages', 3, with_('large_head')), otherPost],
  [
    'in a whole list of types',
    list('types', {}, { post: { slug: 'post', name: 'Posts', rest_base: 'posts' } }),
    menuItem,
  ],
]

test('what WooCommerce adds to users is their own', () => {
  const read = shownItem('users', 7, { name: 'A', is_super_admin: false, woocommerce_meta: { help: '' } })
  expect(reaches(comment, read)).toBe(false)
  expect(reaches(user, read)).toBe(true)
})

test.each(known)('a property %s is reached by no other write', (_what, read, write) => {
  expect(reaches(write, read)).toBe(false)
})

test('a response that is too long to be read is reached by every write', () => {
  const long = { ...category, description: 'x'.repeat(300_000) }
  expect(reaches(title, shownItem('categories', 3, long))).toBe(true)
})

test('a response as a script is not read, and is reached by every write', () => {
  const read = found('posts', 'collection')
  const stored = tagger.storedTags(
    read,
    { page: 1, _jsonp: 'f' },
    { status: 200, headers: [], content: Buffer.from('/**/f([{"id":3,"rank_math":"A"}])') },
  )
  const written = tagger.writtenTags(found('comments', 'collection'), () => undefined, 'POST', {
    ...json({ id: 7, post: 4 }, [], 201),
  })
  expect(written.some((tag) => stored.includes(tag))).toBe(true)
})

test('every collection but two has its properties', () => {
  const without = Object.keys(siteTags).filter((collection) => coreProperties[collection] === undefined)
  expect(without).toEqual(['contact-forms', 'settings'])
})
