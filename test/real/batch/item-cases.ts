import { type BatchCase, batch, create, remove, update } from './batch-case.ts'

const fine = [80, 81, 82].map((id) => update(`posts/${id}?_fields=id,title.raw`, { title: `fine ${id}` }))
/** The item between valid ones, so that a shifted index shows. */
const among = (...items: unknown[]): unknown[] => [fine[0], ...items, fine[1], fine[2]]

const paths: readonly [title: string, path: string][] = [
  ['no leading slash', 'wp/v2/posts/83'],
  ['a trailing slash', '/wp/v2/posts/83/'],
  ['nothing', ''],
  ['the root', '/'],
  ['a slash twice', '/wp/v2//posts/83'],
  ['dot segments', '/wp/v2/posts/../posts/83'],
  ['an escaped digit', '/wp/v2/posts/8%33'],
  ['upper case', '/WP/V2/Posts/83?_fields=id'],
  ['a leading zero', '/wp/v2/posts/0083?_fields=id'],
  ['a fragment', '/wp/v2/posts/83?_fields=id#x?_fields=slug'],
  ['a fragment before the query', '/wp/v2/posts/83#frag?_fields=id'],
  ['a host in front', 'http://evil.example/wp/v2/posts/83?_fields=id'],
  ['a host without scheme', '//evil.example/wp/v2/posts/83?_fields=id'],
  ['user, password and port', 'https://u:p@evil.example:81/wp/v2/posts/83?_fields=id'],
  ['a port that is none', 'http://host:99999/wp/v2/posts/83'],
  ['no host', 'http:///wp/v2/posts/83'],
  ['three slashes', '///wp/v2/posts/83'],
  ['the whole path of the site', '/index.php/wp-json/wp/v2/posts/83'],
  ['the batch route itself', '/batch/v1'],
  ['an unknown route', '/wp/v2/nothing/83'],
  ['a wrong method for the route', '/wp/v2/types/post'],
  ['a namespace that is not there', '/nowhere/v1/posts'],
  ['a space', '/wp/v2/posts /83'],
  ['text that is not ASCII', '/wp/v2/pösts/83'],
  ['an unknown id', '/wp/v2/posts/999999'],
  ['an id that is no number', '/wp/v2/posts/abc'],
]

const queries: readonly [title: string, query: string][] = [
  ['_fields as list', '_fields[]=id&_fields[]=slug'],
  ['_fields nested', '_fields=id,title.raw,content.protected'],
  ['_fields of nothing', '_fields=nothing'],
  ['an unknown parameter', '_fields=id&whatever=1'],
  ['parameters of the body', '_fields=id,title.raw&title=From%20query'],
  ['_method', '_fields=id&_method=DELETE'],
  ['_envelope and _embed', '_fields=id,_links,_embedded&_envelope=1&_embed=1'],
  ['rest_route', '_fields=id&rest_route=/wp/v2/pages/112'],
  ['context', 'context=view&_fields=id,title,content'],
  ['a context that is none', 'context=bogus'],
  ['an empty query', ''],
  ['escapes', '_fields=id%2Cslug'],
  ['a list', '_fields=id,tags&tags[]=8&tags[]=9'],
  ['a list with commas', '_fields=id,categories&categories=2,3'],
  ['a colon and a number', '_fields=id&x=a:80'],
]

const bodies: readonly [title: string, body: unknown][] = [
  ['an empty object', {}],
  ['an empty list', []],
  ['a list', ['a', 'b']],
  ['a title as object', { title: { raw: 'Raw' } }],
  ['a number for text', { title: 12 }],
  ['text for lists', { categories: '2,3', sticky: 'false' }],
  ['lists and numbers as text', { tags: ['8', '9'], author: '2' }],
  ['unknown members', { title: 'u', nothing: { a: [1, { b: null }] } }],
  ['an invalid status', { status: 'bogus' }],
  ['several wrong values', { status: 'bogus', author: 'x', sticky: 'maybe' }],
  ['a date with zone', { date: '2026-02-01T00:00:00+02:00' }],
  ['a date that is none', { date: 'yesterday' }],
  ['meta', { meta: { footnotes: '[]' } }],
  ['null', { title: null }],
  ['text beyond ASCII', { title: 'ä 𝄞 \u2028 "quoted" \\ /', content: '<p>é</p>' }],
  ['an unknown category', { categories: [999999] }],
  ['an unknown author', { author: 999999 }],
  ['large integers', { featured_media: 9007199254740991 }],
  ['zero and false', { featured_media: 0, sticky: false, comment_status: 'closed' }],
]

const senders = ['nobody', 'wrong-password', 'subscriber', 'author', 'editor'] as const

const rights = [
  update('posts/84?_fields=id,title.raw', { title: 'rights' }),
  update('posts/999999', { title: 'none' }),
  create('posts?_fields=id,status', { title: 'mine', status: 'draft' }),
  create('categories?_fields=id,name', { name: 'By right' }),
  remove('posts/85?_fields=id,status'),
  update('users/2?_fields=id', { name: 'Other' }),
  create('posts?_fields=id', { title: 'bad', status: 'bogus' }),
]

/** What single items say, right and wrong, each among others. */
export const itemCases: readonly BatchCase[] = [
  ...paths.map(([title, path]) =>
    batch(`path: ${title}`, among({ method: 'POST', path, body: { title: 'path' } })),
  ),
  ...queries.map(([title, query]) =>
    batch(`query: ${title}`, among(update(`posts/86?${query}`, { excerpt: 'query' }))),
  ),
  ...bodies.map(([title, body]) => batch(`body: ${title}`, among(update('posts/87', body)))),
  ...senders.map((as) => batch(`rights of ${as}`, rights, { as })),
  batch('an id in the body', among(update('posts/88?_fields=id', { id: 89, title: 'other' }))),
  batch('no body at all', among({ method: 'PUT', path: '/wp/v2/posts/90?_fields=id' })),
  batch('item headers', [
    update(
      'posts/91?_fields=id,title.raw',
      { title: 'h' },
      { headers: { 'X-Foo': 'a', 'X-Bar': ['b', 'c'], 'X-HTTP-Method-Override': 'DELETE' } },
    ),
    update(
      'posts/92?_fields=id,title.raw',
      { title: 'json' },
      { headers: { 'Content-Type': 'application/json' } },
    ),
    update(
      'posts/93?_fields=id,title.raw',
      { title: 'form' },
      { headers: { 'Content-Type': 'application/x-www-form-urlencoded', 'X-Number': 3 } },
    ),
    update(
      'posts/94?_fields=id,title.raw',
      { title: 'auth' },
      { headers: { Authorization: 'Basic eDp5', Cookie: 'a=b', Host: 'evil.example' } },
    ),
  ]),
  batch(
    'routes that take no batch',
    among(
      create('media', { title: 'x' }),
      create('comments', { content: 'x', post: 4 }),
      update('settings', { title: 'x' }),
      create('templates', { slug: 'x' }),
    ),
  ),
  batch(
    'two slashes in an identifier, and where no identifier is',
    among(
      update('templates/twentytwentyfour//single', { content: 'x' }),
      update('template-parts/twentytwentyfour//footer', { content: 'x' }),
      update('templates/nope//nope', {}),
      create('templates/twentytwentyfour//single/autosaves', { content: 'x' }),
      update('templates/twentytwentyfour///single', {}),
      update('posts//4', { title: 'x' }),
      { path: '/wp/v2//posts', body: { title: 'x' } },
      { path: '//wp/v2/templates/twentytwentyfour//single', body: {} },
    ),
  ),
  batch(
    'parameters that are missing',
    among(create('users', {}), create('categories', {}), remove('users/3')),
  ),
  batch(
    'a term that exists',
    among(create('categories', { name: 'Herbs' }), create('tags', { name: 'Season 8' })),
  ),
  batch('an empty post', among(create('posts', {}), create('posts', { title: '' }))),
  batch('a create that names an id', among(create('posts', { id: 4, title: 'x' }))),
  batch('refused in every other way', [
    { path: 'x' },
    create('media', {}),
    update('posts/95', { status: 'bogus' }),
  ]),
  batch('refused in every way', [
    { path: 'x' },
    { path: 'http:///' },
    create('media', {}),
    update('posts/95', { status: 'bogus' }),
  ]),
  batch('two items', [
    update('posts/95?_fields=id', { title: '2' }),
    update('posts/96?_fields=id', { title: '2' }),
  ]),
  batch(
    'a create in full',
    among(
      create('posts', { title: 'In full', content: 'text', status: 'publish', categories: [3], tags: [10] }),
    ),
  ),
  batch('deletes in full', among(remove('posts/97?force=true'), remove('posts/98'), remove('pages/120'))),
  batch(
    'learned routes',
    among(
      create('menus', { name: 'Side menu' }),
      update('menus/15?_fields=id,name', { name: 'Main' }),
      create('wp_pattern_category', { name: 'Heroes' }),
    ),
  ),
]
