import { rowsOf } from '../../support/breadth.ts'

/** One write of the matrix. `{name}` stands for an id that the site or an earlier answer gave. */
export type MatrixWrite = {
  readonly title: string
  readonly method: 'POST' | 'PUT' | 'DELETE'
  readonly path: string
  readonly body?: Readonly<Record<string, unknown>> | 'image'
  /** The user that writes: by default the administrator. */
  readonly by?: 'subscriber'
  /** The id in the response is called so from here on. */
  readonly keep?: string
  /** Statuses that count as carried out or as refused, as a real WordPress answers. */
  readonly status: number
  /** Later ones need it, whatever they name. */
  readonly isReliedOn?: true
}

const put = (title: string, path: string, body: Readonly<Record<string, unknown>>): MatrixWrite => ({
  title,
  method: 'PUT',
  path,
  body,
  status: 200,
})
const post = (
  title: string,
  path: string,
  body: Readonly<Record<string, unknown>>,
  keep: string,
): MatrixWrite => ({ title, method: 'POST', path, body, keep, status: 201 })
const remove = (title: string, path: string, status = 200): MatrixWrite => ({
  title,
  method: 'DELETE',
  path,
  status,
})

/** In an order in which each finds what it needs. */
const allWrites: readonly MatrixWrite[] = [
  put('posts/P identical title', 'posts/{P}', { title: 'Plant of the day 1' }),
  put('posts/P title', 'posts/{P}', { title: 'A plant with another name' }),
  put('posts/P categories', 'posts/{P}', { categories: ['{news}'] }),
  put('posts/P featured_media', 'posts/{P}', { featured_media: '{otherMedia}' }),
  put('posts/P sticky', 'posts/{P}', { sticky: true }),
  put('posts/P author', 'posts/{P}', { author: '{otherUser}' }),
  put('posts/P status=draft', 'posts/{P}', { status: 'draft' }),
  {
    ...put('posts/P status=publish', 'posts/{P}', { status: 'publish', sticky: false, author: 1 }),
    isReliedOn: true,
  },
  {
    ...post('posts/P/autosaves', 'posts/{P}/autosaves', { title: 'Saved by itself' }, 'autosave'),
    status: 200,
  },
  post('posts publish', 'posts', { title: 'Number one', status: 'publish', categories: ['{news}'] }, 'new'),
  post('posts draft', 'posts', { title: 'A draft', status: 'draft' }, 'draft'),
  put('categories/news name', 'categories/{news}', { name: 'News' }),
  put('tags/tag description', 'tags/{tag}', { description: 'Described' }),
  post('tags', 'tags', { name: 'New tag' }, 'newTag'),
  remove('tags?force', 'tags/{newTag}?force=true'),
  remove('posts/new (trash)', 'posts/{new}'),
  remove('posts/new?force', 'posts/{new}?force=true'),
  remove('posts/draft?force', 'posts/{draft}?force=true'),
  put('pages/page title', 'pages/{page}', { title: 'Garden page with another name' }),
  put('pages/page menu_order', 'pages/{page}', { menu_order: 77 }),
  put('pages/page parent', 'pages/{page}', { parent: '{menuPage}' }),
  put('pages/(menu-linked) title', 'pages/{menuPage}', { title: 'Linked page renamed' }),
  {
    title: 'media (raw upload)',
    method: 'POST',
    path: 'media?post={P}',
    body: 'image',
    keep: 'newMedia',
    status: 201,
  },
  put('media/media alt_text', 'media/{otherMedia}', { alt_text: 'A leaf' }),
  remove('media without force', 'media/{newMedia}', 501),
  remove('media?force', 'media/{newMedia}?force=true'),
  put('menu-items title', 'menu-items/{menuItem}', { title: 'Another link' }),
  put('menu-items menu_order', 'menu-items/{menuItem}', { menu_order: 5 }),
  post(
    'menu-items',
    'menu-items',
    { title: 'New link', url: 'https://example.org/new', status: 'publish', menus: '{menu}' },
    'newMenuItem',
  ),
  remove('menu-items without force', 'menu-items/{newMenuItem}', 501),
  remove('menu-items?force', 'menu-items/{newMenuItem}?force=true'),
  put('blocks content', 'blocks/{block}', {
    content: '<!-- wp:paragraph --><p>Changed</p><!-- /wp:paragraph -->',
  }),
  put('navigation content', 'navigation/{navigation}', {
    content: '<!-- wp:page-list {"parentPageID":0} /-->',
  }),
  put('templates/single content', 'templates/{template}', {
    content: '<!-- wp:paragraph --><p>Single</p><!-- /wp:paragraph -->',
  }),
  remove('templates/single?force', 'templates/{template}?force=true'),
  put('global-styles', 'global-styles/{globalStyles}', { styles: { color: { text: '#123456' } } }),
  post('comments on P', 'comments', { post: '{P}', content: 'A remark' }, 'comment'),
  remove('comments?force', 'comments/{comment}?force=true'),
  put('users/1 description', 'users/1', { description: 'Grows plants' }),
  put('settings title', 'settings', { title: 'Another garden' }),
  put('settings posts_per_page', 'settings', { posts_per_page: 7 }),
  post(
    'posts future',
    'posts',
    { title: 'Tomorrow', status: 'future', date: '2037-01-01T00:00:00' },
    'future',
  ),
  remove('posts/future?force', 'posts/{future}?force=true'),
  post('wp_pattern_category', 'wp_pattern_category', { name: 'Beds' }, 'patternCategory'),
  put('blocks wp_pattern_category', 'blocks/{block}', { wp_pattern_category: ['{patternCategory}'] }),
  {
    title: 'media of a pattern (raw upload)',
    method: 'POST',
    path: 'media?post={block}',
    body: 'image',
    keep: 'blockMedia',
    status: 201,
  },
  post('comments on media', 'comments', { post: '{blockMedia}', content: 'Of a leaf' }, 'mediaComment'),
  put('media slug', 'media/{blockMedia}', { slug: 'leaf-of-a-pattern' }),
  put('media post', 'media/{blockMedia}', { post: '{P}' }),
  put('media status=private', 'media/{blockMedia}', { status: 'private' }),
  // A user is public as long as it has a published item. The subscriber has none.
  { ...put('users roles', 'users/{subscriber}', { roles: ['editor'] }), isReliedOn: true },
  {
    ...post('blocks', 'blocks', { title: 'Own', content: 'x', status: 'publish' }, 'ownBlock'),
    by: 'subscriber',
  },
  put('blocks status=draft', 'blocks/{ownBlock}', { status: 'draft' }),
  put('menus auto_add', 'menus/{menu}', { auto_add: true }),
  post('pages publish', 'pages', { title: 'Of a menu', status: 'publish' }, 'newPage'),
]

/** Ids that a write names. */
const namedBy = ({ path, body }: MatrixWrite): readonly string[] =>
  [...JSON.stringify([path, body]).matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)

/** Every `nth` write and what makes the ids that these name, or all of them. */
export const writesOf = (nth: number): readonly MatrixWrite[] => {
  const named = new Set(rowsOf(allWrites, nth).flatMap(namedBy))
  return rowsOf(
    allWrites,
    nth,
    ({ keep, isReliedOn }) => isReliedOn === true || (keep !== undefined && named.has(keep)),
  )
}

/** Anonymous reads, before and after each write. */
export const publicProbes: readonly string[] = [
  'posts',
  'posts?order=asc&per_page=4',
  'posts?orderby=modified&per_page=3',
  'posts?search=number',
  'posts?search=plant&per_page=2',
  'posts?categories={guides}&order=asc&per_page=2',
  'posts?categories={news}&per_page=3',
  'posts?categories={unrelated}&per_page=3',
  'posts?tags={tag}&order=asc&per_page=2',
  'posts?author=1&per_page=2',
  'posts?author={otherUser}&per_page=2&order=asc',
  'posts?sticky=true',
  'posts/{P}',
  'posts/{P}?_embed=1',
  'posts/{Q}',
  'posts/{Q}?_embed=1',
  'categories',
  'categories/{guides}',
  'categories/{news}',
  'categories?post={P}',
  'tags',
  'tags/{tag}',
  'tags?post={P}',
  'pages',
  'pages?orderby=menu_order&order=asc',
  'pages?parent={menuPage}',
  'pages/{page}',
  'media',
  'media?parent={P}',
  'media/{otherMedia}',
  'media?parent={block}',
  'comments',
  'comments?post={P}',
  'users',
  'users/1',
  'search?search=page',
  'search?search=number',
  'types',
  'taxonomies',
]

/** Read by the administrator only. */
export const adminProbes: readonly string[] = [
  'posts?context=edit&status=any&per_page=3',
  'posts?status=draft,trash',
  'posts/{P}?context=edit',
  'posts/{P}/revisions',
  'posts/{P}/autosaves',
  'pages/{page}/revisions',
  'users?context=edit',
  'menu-items',
  'menu-items/{menuItem}',
  'menus',
  'menu-locations',
  'blocks',
  'blocks/{block}',
  'wp_pattern_category',
  'navigation',
  'navigation/{navigation}',
  'templates/{template}',
  'templates/lookup?slug=single-post',
  'global-styles/{globalStyles}',
  'settings',
  'themes',
]
