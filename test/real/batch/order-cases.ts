import { type BatchCase, batch, create, remove, update } from './batch-case.ts'

const slim = '_fields=id,slug,status,title.raw'

/** What runs, and in which order: the seed's posts are 4 to 111, pages 112 to 120, categories 1 to 6, tags 7 to 14. */
export const orderCases: readonly BatchCase[] = [
  batch(
    '25 updates of different posts',
    range(4, 25).map((id) => update(`posts/${id}?_fields=id,title`, { title: `n ${id}` })),
  ),
  batch(
    '25 updates in full',
    range(4, 25).map((id) => update(`posts/${id}`, { title: `m ${id}` })),
  ),
  batch(
    'three updates of different posts',
    [30, 31, 32].map((id) => update(`posts/${id}`, { excerpt: `e ${id}` })),
  ),
  batch(
    '25 creates in one collection',
    range(1, 25).map((n) =>
      create(`posts?${slim}`, { title: `Created ${n}`, status: 'publish', slug: 'same' }),
    ),
  ),
  batch('creates in different collections', [
    create('categories', { name: 'Mosses', description: 'green' }),
    create(`pages?${slim}`, { title: 'New page', status: 'publish' }),
    create('users?_fields=id,username,roles,email', {
      username: 'gardener',
      email: 'g@example.org',
      password: 'long-and-secret',
    }),
  ]),
  batch('creates in collections that show each other', [
    create('tags', { name: 'Winter' }),
    create(`posts?${slim}`, { title: 'New post', status: 'draft' }),
  ]),
  batch('two of one slug, two titles of one post, trash, change, trash again, restore', [
    create(`posts?${slim}`, { title: 'Order A', status: 'publish', slug: 'order-x' }),
    create(`posts?${slim}`, { title: 'Order B', status: 'publish', slug: 'order-x' }),
    update(`posts/40?${slim}`, { title: 'one' }),
    update(`posts/40?${slim}`, { title: 'two' }),
    remove(`posts/40?_fields=id,status`),
    update(`posts/40?${slim}`, { title: 'three' }),
    remove(`posts/40?_fields=id,status`),
    update(`posts/40?_fields=id,status,slug`, { status: 'publish', slug: 'plant-back' }),
  ]),
  batch(
    'the same slug for four posts',
    [41, 42, 43, 44].map((id) => update(`posts/${id}?${slim}`, { slug: 'wanted' })),
  ),
  batch(
    'titles of ten posts twice, interleaved',
    [...range(50, 10), ...range(50, 10)].map((id, at) =>
      update(`posts/${id}?${slim}`, { title: `turn ${at}` }),
    ),
  ),
  batch('delete for good, then update', [
    remove('posts/60?force=true'),
    update('posts/60', { title: 'gone' }),
    update('posts/61?_fields=id', { title: 'there' }),
  ]),
  batch('a parent and its child', [
    update('pages/113?_fields=id,link,slug', { slug: 'parent-renamed' }),
    update('pages/119?_fields=id,link,parent', { title: 'child' }),
    update('pages/119?_fields=id,link,parent', { parent: 113 }),
    update('pages/113?_fields=id,link,slug', { slug: 'parent-again' }),
  ]),
  batch('a category and the posts in it', [
    update('categories/2?_fields=id,slug,count,name', { name: 'Tall trees', slug: 'tall-trees' }),
    update('posts/62?_fields=id,categories,class_list', { categories: [2, 3] }),
    update('categories/2?_fields=id,slug,count', { description: 'd' }),
    update('posts/63?_fields=id,categories,class_list', { categories: [2] }),
  ]),
  batch('terms deleted between their uses', [
    update('posts/64?_fields=id,tags', { tags: [7, 8] }),
    remove('tags/7?force=true'),
    update('posts/64?_fields=id,tags', { title: 'x' }),
    update('tags/8?_fields=id,count', { name: 'Season B' }),
  ]),
  batch('terms without force cannot go', [
    remove('tags/9'),
    remove('categories/3'),
    update('tags/9?_fields=id', { name: 'Nine' }),
  ]),
  batch('sticky on and off', [
    update('posts/65?_fields=id,sticky', { sticky: true }),
    update('posts/66?_fields=id,sticky', { sticky: true }),
    update('posts/65?_fields=id,sticky', { sticky: false }),
  ]),
  batch('menu items', [
    update('menu-items/125?_fields=id,title,menu_order', { title: 'First' }),
    update('menu-items/126?_fields=id,title,menu_order', { menu_order: 1 }),
    create('menu-items?_fields=id,title,menu_order,url', {
      title: 'Made',
      url: 'https://example.org/made',
      menus: 15,
      status: 'publish',
    }),
    remove('menu-items/127?force=true'),
  ]),
  batch('blocks and a navigation', [
    update('blocks/134', { title: 'Block' }),
    update('blocks/135', { content: '<!-- wp:paragraph --><p>x</p><!-- /wp:paragraph -->' }),
    update('navigation/133?_fields=id,title', { title: 'Nav' }),
    create('blocks?_fields=id,title,wp_pattern_sync_status', {
      title: 'Pattern',
      content: '',
      meta: { wp_pattern_sync_status: 'unsynced' },
    }),
  ]),
  batch('users', [
    update('users/2?_fields=id,name,description', { description: 'Edits.' }),
    update('users/3?_fields=id,name', { name: 'Annie' }),
    update('users/me?_fields=id,name', { name: 'Me' }),
    remove('users/4'),
    remove('users/4?force=true&reassign=1'),
    update('posts/67?_fields=id,author', { author: 3 }),
  ]),
  batch(
    'pages of a tree side by side',
    range(114, 6).map((id) => update(`pages/${id}?_fields=id,title,link`, { title: `p ${id}` })),
  ),
  batch(
    'drafts, private and protected posts',
    [109, 110, 111, 108].map((id) => update(`posts/${id}`, { title: `hidden ${id}` })),
  ),
  batch(
    'publish drafts',
    [109, 111]
      .map((id) => update(`posts/${id}?${slim}`, { status: 'publish' }))
      .concat(update(`posts/70?${slim}`, { status: 'draft' })),
  ),
  batch('a mixture of methods', [
    { ...update('posts/71?_fields=id,title.raw', { title: 'put' }) },
    { ...update('posts/72?_fields=id,title.raw', { title: 'patch' }), method: 'PATCH' },
    { ...update('posts/73?_fields=id,title.raw', { title: 'post' }), method: 'POST' },
    { path: '/wp/v2/posts/74?_fields=id,title.raw', body: { title: 'none' } },
    remove('posts/75?_fields=id,status'),
  ]),
]

function range(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, at) => first + at)
}
