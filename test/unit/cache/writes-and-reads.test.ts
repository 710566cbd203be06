import { expect, test } from 'vitest'
import { found, item, json, list, type Read, reaches, type Write } from './site-fixture.ts'

const post = { id: 5, type: 'post', author: 1, categories: [2], tags: [] }

const update = (collection: string, id: number | string, body: Record<string, unknown> = {}): Write => ({
  found: found(collection, 'item', { id: String(id) }),
  method: 'PUT',
  response: json({ id, ...body }),
})

const create = (collection: string, body: Record<string, unknown>): Write => ({
  found: found(collection, 'collection'),
  method: 'POST',
  response: json(body, [], 201),
})

const remove = (collection: string, id: number, body: Record<string, unknown>): Write => ({
  found: found(collection, 'item', { id: String(id) }),
  method: 'DELETE',
  response: json(body),
})

const upload = (body: Record<string, unknown>): Write =>
  create('media', { id: 82, type: 'attachment', ...body })

const inPatternCategory = { wp_pattern_category: [2] }

/** All properties that WordPress shows of a page. */
const wholePage = (more: Record<string, unknown>): Record<string, unknown> => ({
  ...{ id: 5, type: 'page', status: 'publish', date: '2026-01-01T00:00:00', date_gmt: '2026-01-01T00:00:00' },
  ...{
    slug: 'five',
    link: '/five',
    author: 1,
    content: { protected: false },
    parent: 0,
    menu_order: 0,
    guid: {},
  },
  ...more,
})

const ofPost = { categories: [], tags: [], featured_media: 0, link: '/six' }
const listOfPages = {
  content: {
    rendered:
      '<ul class="wp-block-page-list"><li class="wp-block-pages-list__item has-child"><ul class="wp-block-navigation__submenu-container"><li>',
  },
}
const linkTo = (object: string, id: number) => ({ type: 'post_type', object, object_id: id })

/** Content in which nothing tells that it renders other things. */
const plain = { content: { rendered: '<p>Plain.</p>' } }

const face = { font_family_id: '5', id: '6' }
const createFace: Write = {
  found: found('font-families', 'related', { font_family_id: '5' }),
  method: 'POST',
  response: json({ id: 6, parent: 5 }, [], 201),
}
const removeFace: Write = {
  found: found('font-families', 'related', face),
  method: 'DELETE',
  response: json({ deleted: true, previous: { id: 6, parent: 5 } }),
}

const setting: Read = { found: found('settings', 'lookup'), body: { page_on_front: 3 } }
const updatePost = update('posts', 5, post)
const embedding: Read = item('posts', 9, { _embedded: { author: [{ id: 1 }] } })

test.each<[string, Write, Read, boolean]>([
  ['a post reaches itself', updatePost, item('posts', 5), true],
  ['a post reaches itself under another spelling of its id', updatePost, item('posts', '0005'), true],
  ['a post leaves another post alone', updatePost, item('posts', 6), false],
  ['a post reaches lists of posts', updatePost, list('posts'), true],
  [
    'a post reaches its revisions',
    updatePost,
    { found: found('posts', 'revisions', { parent: '5' }), body: [] },
    true,
  ],
  [
    'a post leaves revisions of another post alone',
    updatePost,
    { found: found('posts', 'revisions', { parent: '6' }), body: [] },
    false,
  ],
  ['a post reaches counts of terms', updatePost, list('categories'), true],
  [
    'a page with terms reaches their counts',
    update('pages', 5, { categories: [2] }),
    item('categories', 2),
    true,
  ],
  [
    'a new page with terms reaches lists of terms',
    create('pages', wholePage({ tags: [2] })),
    list('tags'),
    true,
  ],
  ['a new page without terms leaves counts of terms', create('pages', wholePage({})), list('tags'), false],
  [
    'a new page whose response may omit its terms reaches their counts',
    create('pages', wholePage({ guid: undefined })),
    list('tags'),
    true,
  ],
  [
    'a pattern reaches the count of its category',
    update('blocks', 5, inPatternCategory),
    item('site_pattern_category', 2),
    true,
  ],
  [
    'a new pattern whose response is whole reaches the count of its category',
    create('blocks', {
      ...{ id: 5, type: 'wp_block', status: 'publish', slug: 'five', guid: {}, wp_pattern_sync_status: '' },
      ...{ content: { raw: '', protected: false }, ...inPatternCategory },
    }),
    item('site_pattern_category', 2),
    true,
  ],
  [
    'a new pattern reaches lists of its categories',
    create('blocks', { id: 5, type: 'wp_block', ...inPatternCategory }),
    list('site_pattern_category'),
    true,
  ],
  [
    'a category reaches a page that shows it in its classes alone',
    update('categories', 2, { slug: 'two' }),
    item('pages', 9, { id: 9, class_list: { 0: 'page', 2: 'category-one' } }),
    true,
  ],
  [
    'a category leaves a page without terms',
    update('categories', 2, { slug: 'two' }),
    item('pages', 9, { id: 9, class_list: ['page'] }),
    false,
  ],
  ...['blocks', 'navigation', 'menu-items', 'templates', 'template-parts', 'font-families'].map(
    (collection): [string, Write, Read, boolean] => [
      `a new item of ${collection} reaches the users, where its author may be shown from now on`,
      create(collection, { id: 5 }),
      list('users', {}, [{ id: 1 }]),
      true,
    ],
  ),
  ...['blocks', 'navigation', 'menu-items', 'templates', 'template-parts'].map(
    (collection): [string, Write, Read, boolean] => [
      `a deleted item of ${collection} reaches what embeds its author, who may be hidden from now on`,
      remove(collection, 5, { deleted: true, previous: { id: 5 } }),
      list('comments', {}, [{ id: 7, _embedded: { author: [{ id: 1 }] } }]),
      true,
    ],
  ),
  ...['blocks', 'navigation', 'menu-items'].map((collection): [string, Write, Read, boolean] => [
    `an item of ${collection} reaches lists of what is attached to it`,
    update(collection, 5, { status: 'publish' }),
    list('media', { parent: [5] }),
    true,
  ]),
  ...['templates', 'template-parts'].map((collection): [string, Write, Read, boolean] => [
    `a deleted item of ${collection} reaches lists of what is attached to it`,
    remove(collection, 5, { deleted: true, previous: { id: 5 } }),
    list('media', { parent: [5] }),
    true,
  ]),
  [
    'an image that is attached elsewhere reaches its comments, which are public as long as it is',
    update('media', 81, { type: 'attachment', post: 9 }),
    list('comments', { post: [81] }, [{ id: 3, post: 81 }]),
    true,
  ],
  [
    'an image reaches the menu items that lead to it, and show its title',
    update('media', 81, { type: 'attachment' }),
    item('menu-items', 9, linkTo('attachment', 81)),
    true,
  ],
  [
    'a new page reaches menu items, since WordPress adds it to menus',
    create('pages', { id: 5 }),
    list('menu-items'),
    true,
  ],
  ['a post reaches the search', updatePost, { found: found('search', 'lookup'), body: [] }, true],
  ['a post reaches what embeds', updatePost, embedding, true],
  ['a post reaches media, which are public as long as it is', updatePost, list('media'), true],
  ['a new post leaves media alone', create('posts', post), list('media'), false],
  ['a post leaves pages alone', updatePost, list('pages'), false],
  [
    'a post reaches a page that renders a list of posts',
    updatePost,
    item('pages', 2, { content: { rendered: '<ul class="wp-block-latest-posts__list">' } }),
    true,
  ],
  [
    'a style reaches text without a class, whose size follows the settings of the theme',
    update('global-styles', 7),
    item('posts', 9, { content: { rendered: '<p style="font-size:40px">Large.</p>' } }),
    true,
  ],
  [
    'a widget reaches text without a class, which may be the widget',
    update('widgets', 'block-2'),
    item('posts', 9, plain),
    true,
  ],
  ['another name of a user leaves a page alone', update('users', 1), item('pages', 9), false],
  [
    'another name of a user reaches a page that embeds its author',
    update('users', 1),
    item('pages', 9, { _embedded: { author: [{ id: 1 }] } }),
    true,
  ],
  [
    'an updated comment leaves a post that embeds others',
    update('comments', 7, { post: 5, parent: 0 }),
    embedding,
    false,
  ],
  [
    'an upload reaches an oEmbed response in XML that said that there is nothing',
    upload({ post: null }),
    {
      found: found('oembed', 'lookup'),
      body: '<?xml version="1.0"?><oembed><code>oembed_invalid_url</code></oembed>',
    },
    true,
  ],
  ['a new font face reaches its family', createFace, item('font-families', 5), true],
  ['a deleted font face reaches its family', removeFace, item('font-families', 5), true],
  ['a deleted font face reaches what was attached to it', removeFace, item('media', 9, { post: 6 }), true],
  ['a post reaches answers of unknown collections', updatePost, list('shop/v1/offers'), true],
  ['a post reaches answers of unlisted paths', updatePost, { found: undefined, body: {} }, true],
  [
    'a new post reaches a classic widget, which lists posts and has no class that says so',
    create('posts', post),
    item('widgets', 'recent-posts-2', { rendered: '<ul><li>Hello</li></ul>' }),
    true,
  ],
  [
    'a new post reaches what a block of a plugin renders',
    create('posts', post),
    { found: found('block-renderer', 'related'), body: { rendered: '<ul><li>Hello</li></ul>' } },
    true,
  ],
  ['a new post reaches lists', create('posts', post), list('posts'), true],
  ['a new post reaches the answer that it was missing', create('posts', post), item('posts', 5), true],
  ['a new post leaves other posts alone', create('posts', post), item('posts', 6), false],
  ['a deletion reaches lists', remove('posts', 5, { deleted: true, previous: post }), list('posts'), true],
  [
    'an autosave reaches its post',
    {
      found: found('posts', 'autosaves', { id: '5' }),
      method: 'POST',
      response: json({ id: 77, parent: 5 }),
    },
    item('posts', 5),
    true,
  ],
  ['a page reaches other pages', update('pages', 2), item('pages', 3), true],
  [
    'a page reaches a navigation that lists pages',
    update('pages', 2),
    item('navigation', 92, listOfPages),
    true,
  ],
  [
    'a post leaves a navigation that lists pages alone',
    updatePost,
    item('navigation', 92, listOfPages),
    false,
  ],
  ...(
    [
      ['posts', { id: 5, type: 'post', status: 'trash' }],
      ['posts', { deleted: true, previous: { ...post, status: 'draft', guid: {} } }],
      ['media', { deleted: true, previous: { id: 5, type: 'attachment' } }],
      ['tags', { deleted: true, previous: { id: 5, taxonomy: 'post_tag' } }],
      ['categories', { deleted: true, previous: { id: 5, taxonomy: 'category' } }],
    ] as const
  ).map(([collection, body]): [string, Write, Read, boolean] => [
    `a deletion in ${collection} reaches each list of menu items, from which WordPress removes those that lead to it`,
    remove(collection, 5, body),
    list('menu-items', { page: 2, menus: [3] }, [{ id: 9, type: 'custom' }]),
    true,
  ]),
  [
    'a draft reaches a search for post formats, of which it may use the first',
    create('posts', { ...post, status: 'draft', format: 'video' }),
    { found: found('search', 'lookup'), args: { type: 'post-format' }, body: [] },
    true,
  ],
  [
    'a draft leaves a search for posts',
    create('posts', { ...post, status: 'draft', format: 'video' }),
    { found: found('search', 'lookup'), args: { type: 'post' }, body: [] },
    false,
  ],
  ['a post reaches a menu item that leads to it', updatePost, item('menu-items', 9, linkTo('post', 5)), true],
  [
    'a post leaves a menu item that leads to another',
    updatePost,
    item('menu-items', 9, linkTo('post', 6)),
    false,
  ],
  [
    'a post leaves a menu item with a link alone',
    updatePost,
    item('menu-items', 9, { type: 'custom' }),
    false,
  ],
  [
    'a post reaches a menu item that does not say what it leads to',
    updatePost,
    item('menu-items', 9, { title: { rendered: 'x' } }),
    true,
  ],
  ['a tag leaves what embeds others', update('tags', 2), embedding, false],
  [
    'a term reaches what embeds it',
    update('categories', 2),
    item('posts', 9, { _embedded: { 'wp:term': [[{ id: 2, taxonomy: 'category' }]] } }),
    true,
  ],
  [
    'a term whose id is not known reaches what embeds',
    { found: found('categories', 'item', { id: '2' }), method: 'DELETE', response: json({ deleted: true }) },
    embedding,
    true,
  ],
  [
    'a term reaches posts that have it',
    update('categories', 2),
    item('posts', 6, { categories: [1, 2] }),
    true,
  ],
  [
    'a tag leaves posts that do not have it alone',
    update('tags', 2),
    item('posts', 6, { ...ofPost, tags: [1] }),
    false,
  ],
  [
    'a term reaches posts of which it is left out',
    update('categories', 2),
    item('posts', 6, { link: '/six' }),
    true,
  ],
  [
    'a term reaches posts when it is not known which it was',
    { ...update('categories', 2), response: json({}) },
    item('posts', 6, { categories: [1] }),
    true,
  ],
  [
    'a term reaches lists of posts under it',
    update('categories', 2),
    list('posts', { categories: [2] }),
    true,
  ],
  [
    'a term reaches lists of posts without it',
    update('categories', 2),
    list('posts', { categories_exclude: [2] }),
    true,
  ],
  ['a tag leaves lists of posts that show none of it alone', update('tags', 2), list('posts'), false],
  [
    'a deleted menu reaches what was attached to its items',
    remove('menus', 7, { deleted: true, previous: { id: 7, taxonomy: 'nav_menu' } }),
    item('media', 81, { post: 6 }),
    true,
  ],
  [
    'the slug of a user reaches patterns, which have the permalinks of posts',
    update('users', 1, { slug: 'bark' }),
    item('blocks', 5, { id: 5, type: 'wp_block', link: '/one/five' }),
    true,
  ],
  [
    'the slug of a category reaches navigations, which have the permalinks of posts',
    update('categories', 2, { slug: 'bark' }),
    item('navigation', 5, { id: 5, type: 'wp_navigation', link: '/bark/five' }),
    true,
  ],
  [
    'media reach a post whose featured image they are',
    update('media', 81, { post: null }),
    item('posts', 6, { ...ofPost, featured_media: 81 }),
    true,
  ],
  [
    'media reach a post with their image in its text',
    update('media', 81, { post: null }),
    item('posts', 6, { ...ofPost, content: { rendered: '<img class="wp-image-81">' } }),
    true,
  ],
  [
    'media leave a post without them alone',
    update('media', 81, { post: null }),
    item('posts', 6, ofPost),
    false,
  ],
  ['a new tag leaves posts alone', create('tags', { id: 8, taxonomy: 'post_tag' }), item('posts', 6), false],
  [
    'a new tag reaches the search, which may be one for terms',
    create('tags', { id: 8, taxonomy: 'post_tag' }),
    { found: found('search', 'lookup'), body: [] },
    true,
  ],
  ['a synced pattern reaches posts', update('blocks', 97), item('posts', 6, plain), true],
  ['a synced pattern leaves answers without content alone', update('blocks', 97), item('posts', 6), false],
  ['media reach posts with their images', update('media', 81), item('posts', 6), true],
  ['new media leave posts alone', upload({ post: null }), item('posts', 6, plain), false],
  ['new media reach the post that they are attached to', upload({ post: 6 }), item('posts', 6, plain), true],
  [
    'new media of which it is not known where they are attached reach posts',
    upload({}),
    item('posts', 6),
    true,
  ],
  [
    'a deleted page reaches the settings, which may have named it as the front page',
    remove('pages', 3, { deleted: true, previous: { id: 3, type: 'page' } }),
    setting,
    true,
  ],
  [
    'a page in the trash reaches the settings, which may have named it as the front page',
    remove('pages', 3, { id: 3, type: 'page', status: 'trash' }),
    setting,
    true,
  ],
  ['an update of a page leaves the settings alone', update('pages', 3), setting, false],
  [
    'a write whose response renders a navigation reaches the navigations, of which WordPress then creates the first',
    update('posts', 5, { ...post, content: { rendered: '<nav class="wp-block-navigation">' } }),
    list('navigation'),
    true,
  ],
  [
    'a write whose response could not be read reaches the navigations, of which WordPress may have created the first',
    { ...updatePost, response: { status: 200, headers: [], content: undefined } },
    list('navigation'),
    true,
  ],
  [
    'a write whose response renders no navigation leaves the navigations alone',
    updatePost,
    list('navigation'),
    false,
  ],
  [
    'a deleted image reaches search results that embed the post whose featured image it was',
    remove('media', 81, { deleted: true, previous: { id: 81, type: 'attachment', post: 9 } }),
    {
      found: found('search', 'lookup'),
      args: { _embed: true },
      body: [{ id: 5, _embedded: { self: [{ id: 5, type: 'post', featured_media: 81 }] } }],
    },
    true,
  ],
  [
    'an image that was attached elsewhere reaches a list under a filter that counts more than it may show',
    update('media', 81, { type: 'attachment', post: 9 }),
    { ...list('media', { parent: 5 }), headers: ['X-WP-Total', '1', 'X-WP-TotalPages', '1'] },
    true,
  ],
  [
    'an image leaves a list under a filter that shows all that it counts',
    update('media', 81, { type: 'attachment', post: 9 }),
    { ...list('media', { parent: 5 }), headers: ['X-WP-Total', '0', 'X-WP-TotalPages', '0'] },
    false,
  ],
  ['a menu item leaves its neighbours alone', update('menu-items', 83), item('menu-items', 84), false],
  [
    'a saved form reaches content, whatever renders it there',
    update('contact-forms', 3),
    item('pages', 2, plain),
    true,
  ],
  [
    'a form that a visitor sends leaves content alone',
    {
      found: found('contact-forms', 'action', { id: '3' }),
      method: 'POST',
      response: json({ status: 'mail_sent' }),
    },
    item('pages', 2, { content: { rendered: '<form class="wpcf7-form">' } }),
    false,
  ],
  [
    'a menu item reaches content with a menu',
    update('menu-items', 83),
    item('pages', 2, { content: { rendered: '<ul id="menu-main" class="menu">' } }),
    true,
  ],
  [
    'a template part reaches content',
    update('template-parts', 'theme//footer'),
    item('pages', 2, plain),
    true,
  ],
  ['a menu item leaves posts alone', update('menu-items', 83), list('posts'), false],
  ['a comment reaches what embeds', create('comments', { id: 3, post: 5 }), embedding, true],
  [
    'a comment that is deleted leaves its post, which shows none, or them with a class',
    remove('comments', 3, { deleted: true, previous: { id: 3, post: 5, parent: 0 } }),
    item('posts', 5),
    false,
  ],
  [
    'a comment reaches its post that was asked to embed replies and had none',
    create('comments', { id: 3, post: 5, parent: 0 }),
    { ...item('posts', 5), args: { _embed: true } },
    true,
  ],
  [
    'a comment reaches its post whose answer was asked to embed and shows no id',
    create('comments', { id: 3, post: 5, parent: 0 }),
    { ...list('posts', { _embed: ['replies'] }, [{ guid: {} }]) },
    true,
  ],
  [
    'a comment reaches lists that embed replies and do not say which posts they show',
    create('comments', { id: 3, post: 5, parent: 0 }),
    list('posts', {}, [{ title: 'x', _embedded: { replies: [[]] } }]),
    true,
  ],
  [
    'a comment leaves another post alone where replies are embedded',
    create('comments', { id: 3, post: 5, parent: 0 }),
    item('posts', 6, { _embedded: { replies: [[]] } }),
    false,
  ],
  [
    'a comment that is deleted reaches the comments that may have answered it',
    remove('comments', 3, { deleted: true, previous: { id: 3, post: 5, parent: 0 } }),
    item('comments', 4),
    true,
  ],
  [
    'a comment that is deleted leaves other posts alone',
    remove('comments', 3, { deleted: true, previous: { id: 3, post: 5, parent: 0 } }),
    item('posts', 6, { _embedded: { replies: [[]] } }),
    false,
  ],
  ['a comment leaves media alone', create('comments', { id: 3, post: 5 }), list('media'), false],
  ['settings reach everything', update('settings', 0), list('media'), true],
  ['an unknown collection reaches everything', update('shop/v1/offers', 1), list('media'), true],
  [
    'an unlisted path reaches everything',
    { found: undefined, method: 'POST', response: json({}) },
    list('media'),
    true,
  ],
])('%s', (_, write, read, expected) => {
  expect(reaches(write, read)).toBe(expected)
})

test.each([
  [200, true],
  [201, true],
  [302, true],
  [400, false],
  [403, false],
  [404, false],
  [410, false],
  [500, true],
  [503, true],
])('a write answered %i counts as a change: %s', (status, expected) => {
  const write: Write = { ...updatePost, response: json({ ...post }, [], status) }
  expect(reaches(write, item('posts', 5))).toBe(expected)
})

const refusal = (code: string, data: Record<string, unknown> = {}): Record<string, unknown> => ({
  code,
  message: 'No.',
  data,
})

// WordPress saves a post before its terms, its meta and the headers of plugins, and answers with the first of their errors.
test.each<[string, number, Record<string, unknown> | undefined, boolean]>([
  ['arguments are wrong', 400, refusal('rest_invalid_param'), false],
  ['a right is missing', 403, refusal('rest_cannot_edit'), false],
  ['nobody is logged in', 401, refusal('some_plugin_wants_a_login'), false],
  ['a name is taken', 400, refusal('term_exists', { status: 400, term_id: 2 }), false],
  ['a page of a proxy forbids it', 403, undefined, false],
  ['a meta key may not be changed', 403, refusal('rest_cannot_update', { key: 'locked' }), true],
  ['a meta key may not be deleted', 403, refusal('rest_cannot_delete', { key: 'locked' }), true],
  ['nobody may change a meta key', 401, refusal('rest_cannot_update', { key: 'locked' }), true],
  ['a meta value has the wrong type', 400, refusal('rest_invalid_type', { param: 'meta.color' }), true],
  ['a place of a menu does not exist', 400, refusal('rest_invalid_menu_location'), true],
  ['a plugin does not like its field', 400, refusal('shop_invalid_price'), true],
])('a refusal because %s', (_, status, body, expected) => {
  const response =
    body === undefined ? { ...json(''), status, content: Buffer.from('<html>') } : json(body, [], status)
  expect(reaches({ ...updatePost, response }, item('posts', 5))).toBe(expected)
  const created = { ...create('posts', {}), response }
  expect(reaches(created, list('posts'))).toBe(expected)
})

test('an unread refusal counts as a change', () => {
  const response = { status: 400, headers: [], content: undefined }
  expect(reaches({ ...updatePost, response }, item('posts', 5))).toBe(true)
})

test('a write without a response counts as a change', () => {
  expect(reaches({ ...updatePost, response: undefined }, item('posts', 5))).toBe(true)
  expect(reaches({ ...updatePost, response: undefined }, list('posts'))).toBe(true)
})

test('an upload, whose response is not read, reaches all of its collection', () => {
  const upload: Write = {
    found: found('media', 'collection'),
    method: 'POST',
    response: { status: 201, headers: [], content: undefined },
  }
  expect(reaches(upload, list('media'))).toBe(true)
  expect(reaches(upload, item('media', 81))).toBe(true)
})

test('a response trimmed to nothing reaches all of its collection', () => {
  const write: Write = { ...create('posts', {}), response: json({}, [], 201) }
  expect(reaches(write, item('posts', 6))).toBe(true)
})

const complete = (args: Record<string, unknown>, ids: readonly number[]): Read =>
  list(
    'posts',
    args,
    ids.map((id) => ({ id, type: 'post' })),
    '1',
  )

test.each<[string, Write, Read, boolean]>([
  ['of another author', updatePost, complete({ author: [3] }, [6, 7]), false],
  ['of the same author', updatePost, complete({ author: [1] }, [6, 7]), true],
  ['of several authors, one the same', updatePost, complete({ author: [3, 1] }, [6, 7]), true],
  ['of another author, that shows the post until now', updatePost, complete({ author: [3] }, [5, 7]), true],
  ['of another category', updatePost, complete({ categories: [9] }, [6]), false],
  ['of the same category', updatePost, complete({ categories: [2] }, [6]), true],
  ['of another category or a tag', updatePost, complete({ categories: [9], tax_relation: 'OR' }, [6]), true],
  [
    'of another author with sticky posts put first',
    updatePost,
    complete({ author: [3], ignore_sticky: false }, [6]),
    true,
  ],
  ['of another author, beginning later', updatePost, complete({ author: [3], offset: 2 }, [6]), true],
  ['of another author, of several pages', updatePost, list('posts', { author: [3] }, [{ id: 6 }], '2'), true],
  [
    'of another author, that does not show ids',
    updatePost,
    list('posts', { author: [3] }, [{ title: 'x' }], '1'),
    true,
  ],
  [
    'by category with its children',
    updatePost,
    complete({ categories: { terms: [9], include_children: true } }, [6]),
    true,
  ],
  [
    'of another author, when the write does not tell its own',
    update('posts', 5, { type: 'post' }),
    complete({ author: [3] }, [6]),
    true,
  ],
])('a complete list %s', (_, write, read, expected) => {
  expect(reaches(write, read)).toBe(expected)
})

test('identifiers too long for the index are covered by their collection', () => {
  const id = 'x'.repeat(4000)
  expect(reaches(update('templates', id), item('templates', id))).toBe(true)
})

test('no tag of one service is a tag of another', async () => {
  const { createSiteTagger } = await import('../../../src/wordpress/tags/site-tagger.ts')
  const { siteTags } = await import('../../../src/wordpress/tags/tags.ts')
  const other = createSiteTagger({ service: 'other', table: siteTags })
  const written = other.writtenTags(updatePost.found, () => undefined, 'PUT', updatePost.response)
  expect(written.every((tag) => tag.startsWith('other/'))).toBe(true)
})
