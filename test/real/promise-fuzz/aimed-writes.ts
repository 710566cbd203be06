import {
  byNewcomer,
  create,
  fontFace,
  paragraph,
  published,
  remove,
  removeFontFace,
  type Step,
  trimmed,
  update,
  upload,
} from './aimed-site.ts'
import type { PlainWrite } from './faulty-tables.ts'

/** `before` is sent first; then what the write changes is looked at. */
export type Aim = { readonly before?: readonly Step[]; readonly write: PlainWrite }

const permalinks = (structure: string): Step => ({
  name: 'permalinks',
  kind: 'form.permalinks',
  door: 'form',
  method: 'POST',
  path: '/wp-admin/options-permalink.php',
  headers: { permalink_structure: structure, category_base: '', tag_base: '', submit: 'Save' },
  nonces: { _wpnonce: 'update-permalink' },
})
const namedLinks = permalinks('/index.php/%author%/%category%/%postname%/')

const settings = (body: Readonly<Record<string, unknown>>): PlainWrite => ({
  name: 'settings',
  kind: 'settings.update',
  door: 'rest',
  style: 'json',
  operation: { method: 'POST', route: '/wp/v2/settings', body },
})
const sidebars = (widgets: readonly string[]): PlainWrite => ({
  name: 'sidebars',
  kind: 'sidebars.update',
  door: 'rest',
  style: 'json',
  operation: { method: 'POST', route: '/wp/v2/sidebars/wp_inactive_widgets', body: { widgets } },
})
const widgetText = (text: string) => ({ instance: { raw: { content: paragraph(text) } } })

const hide = { status: 'draft' }
const show = { status: 'publish' }
const trash = (item: string): PlainWrite => remove(item, '')
const one = (write: PlainWrite): Aim => ({ write })
const after = (before: readonly Step[], write: PlainWrite): Aim => ({ before, write })
const theme = 'twentytwentyfour'
const own = `templates/${theme}//own`
const ownPart = `template-parts/${theme}//own`
const plainPart = `template-parts/${theme}//plain`
const header = `template-parts/${theme}//header`
const template = (slug: string) => ({ slug, title: slug, content: paragraph(slug) })
const part = (slug: string) => ({ ...template(slug), area: 'uncategorized' })
const front = settings({ show_on_front: 'page', page_on_front: '{front}' })
const styles = 'global-styles/{styles}'
const attach = (image: string, to: string): PlainWrite => update(`media/{${image}}`, { post: to })

const ofPosts: readonly Aim[] = [
  one(
    published('made', 'posts', 'Oak new', {
      author: '{quiet}',
      categories: ['{bare}'],
      tags: ['{unused}'],
      slug: 'oak-new',
    }),
  ),
  one(
    trimmed(
      published('made', 'posts', 'Oak new', {
        author: '{quiet}',
        categories: ['{bare}'],
        tags: ['{unused}'],
      }),
    ),
  ),
  one(published('made', 'posts', 'Oak sticky', { sticky: true, categories: ['{moss}'] })),
  one(update('posts/{draft}', show)),
  one(update('posts/{oak}', hide)),
  one(trimmed(update('posts/{oak}', hide))),
  one(update('posts/{oak}', { status: 'private' })),
  one(update('posts/{oak}', { slug: 'oak-moved' })),
  one(update('posts/{oak}', { date: '2025-02-03T08:00:00' })),
  one(update('posts/{oak}', { password: 'secret' })),
  one(update('posts/{oak}', { title: 'Bark post' })),
  one(update('posts/{oak}', { content: paragraph('bark') })),
  one(update('posts/{oak}', { excerpt: 'bark' })),
  one(update('posts/{oak}', { featured_media: '{loose}' })),
  one(update('posts/{oak}', { categories: ['{bare}'] })),
  one(update('posts/{oak}', { tags: ['{unused}'] })),
  one(update('posts/{oak}', { sticky: true })),
  one(update('posts/{oak}', { author: '{quiet}' })),
  one(update('posts/{oak}', { comment_status: 'closed' })),
  one(update('posts/{draft}', { categories: ['{bare}'] })),
  one(update('posts/{draft}', { tags: ['{unused}'] })),
  one(trash('posts/{oak}')),
  one(remove('posts/{oak}')),
  one(trimmed(trash('posts/{oak}'))),
  one(trash('posts/{draft}')),
  one(remove('posts/{draft}')),
  // The only one of its author.
  after([update('posts/{draft}', show)], update('posts/{draft}', hide)),
  after([update('posts/{draft}', show)], trash('posts/{draft}')),
]

const ofPages: readonly Aim[] = [
  one(
    published('made', 'pages', 'Oak new page', {
      parent: '{childless}',
      author: '{quiet}',
      menu_order: 7,
      slug: 'page-oak-new',
    }),
  ),
  one(published('made', 'pages', 'Oak new page', { author: '{quiet}', menu_order: 7 })),
  one(update('pages/{draftpage}', show)),
  one(update('pages/{parentpage}', hide)),
  one(update('pages/{parentpage}', { slug: 'oak-moved' })),
  one(trimmed(update('pages/{parentpage}', { slug: 'oak-moved' }))),
  one(update('pages/{parentpage}', { password: 'secret' })),
  one(update('pages/{parentpage}', { parent: '{childless}' })),
  one(update('pages/{childpage}', { parent: '{childless}' })),
  one(update('pages/{childpage}', { menu_order: 7 })),
  one(update('pages/{childpage}', { author: '{quiet}' })),
  one(update('pages/{parentpage}', { title: 'Bark page' })),
  one(update('pages/{parentpage}', { content: paragraph('bark') })),
  one(trash('pages/{parentpage}')),
  one(remove('pages/{parentpage}')),
  one(remove('pages/{childpage}')),
  after([front], trash('pages/{front}')),
  after([front], remove('pages/{front}')),
  one(update('pages/{draftpage}', { parent: '{childless}' })),
  one(update('pages/{draftpage}', { slug: 'oak-draft-moved' })),
  one(trash('pages/{draftpage}')),
  one(remove('pages/{draftpage}')),
  after([update('pages/{childless}', { author: '{quiet}' })], update('pages/{childless}', hide)),
  after([update('pages/{childless}', { author: '{quiet}' })], remove('pages/{childless}')),
  // The page below the draft goes to a page that had none; the second write says nothing of what it deleted.
  ...[remove('pages/{draftpage}'), trimmed(remove('pages/{draftpage}'))].map((write) =>
    after([update('pages/{draftpage}', { parent: '{childless}' })], write),
  ),
  // A front page that is a draft.
  after([front, update('pages/{front}', hide)], remove('pages/{front}')),
]

const ofMedia: readonly Aim[] = [
  one(upload('made')),
  one(upload('made', '?post={gallery}')),
  one(upload('made', '?post={gallery}&_fields=id')),
  one(upload('made', '?post={parentpage}&_fields=id')),
  one(upload('made', '?post={pagegallery}&_fields=id')),
  one(attach('loose', '{gallery}')),
  one(attach('ofpost', '{gallery}')),
  one(update('media/{loose}', { slug: 'bark-image' })),
  one(update('media/{shown}', { slug: 'bark-image' })),
  one(update('media/{shown}', { author: '{quiet}' })),
  one(update('media/{loose}', { author: '{writer}' })),
  one(trimmed(attach('loose', '{gallery}'))),
  ...['title', 'caption', 'alt_text', 'description'].map((name) =>
    one(update('media/{loose}', { [name]: 'bark' })),
  ),
  one(update('media/{shown}', { title: 'bark', alt_text: 'bark' })),
  one(remove('media/{shown}')),
  one(remove('media/{loose}')),
  one(remove('media/{ofpost}')),
  after([settings({ site_logo: '{logo}' })], remove('media/{logo}')),
]

const placed = (menu: string): PlainWrite => update(`menus/${menu}`, { locations: ['fuzz'] })

const item = (body: Readonly<Record<string, unknown>>): PlainWrite =>
  create('made', 'menu-items', {
    title: 'Oak item',
    type: 'custom',
    url: 'https://example.org/new',
    status: 'publish',
    menus: '{classic}',
    menu_order: 1,
    ...body,
  })

const ofMenus: readonly Aim[] = [
  one(item({})),
  one(byNewcomer(item({}))),
  one(item({ status: 'draft' })),
  // The menu that the content shows is empty.
  after([create('first', 'menus', { name: 'Aaa first' })], item({ menus: '{first}' })),
  after(
    [create('first', 'menus', { name: 'Aaa first' }), item({ menus: '{first}', status: 'draft' })],
    update('menu-items/{made}', show),
  ),
  one(update('menu-items/{custom}', hide)),
  one(update('menu-items/{unseenitem}', show)),
  one(update('menu-items/{custom}', { title: 'Bark item' })),
  one(update('menu-items/{custom}', { menu_order: 1 })),
  one(update('menu-items/{custom}', { parent: '{topost}' })),
  one(trimmed(update('menu-items/{custom}', hide))),
  one(update('menu-items/{topost}', { object: 'page', object_id: '{parentpage}' })),
  one(remove('menu-items/{custom}')),
  one(remove('menu-items/{topost}')),
  after([update('menu-items/{custom}', { parent: '{topost}' })], remove('menu-items/{topost}')),
  after([byNewcomer(item({ status: 'draft' }))], update('menu-items/{made}', show)),
  after([byNewcomer(item({}))], update('menu-items/{made}', hide)),
  after([byNewcomer(item({}))], remove('menu-items/{made}')),
  one(create('made', 'menus', { name: 'Aaa first' })),
  one(create('made', 'menus', { name: 'Zinnia menu', locations: [] })),
  // The first one of the site, and one in the place of another.
  after(
    [remove('menus/{classic}'), remove('menus/{seededmenu}')],
    create('made', 'menus', { name: 'Aaa first' }),
  ),
  after([placed('{classic}')], create('made', 'menus', { name: 'Zinnia menu', locations: ['fuzz'] })),
  after(
    [create('first', 'menus', { name: 'Aaa first' }), placed('{classic}')],
    update('menus/{first}', { locations: ['fuzz'] }),
  ),
  after([placed('{classic}')], remove('menus/{classic}')),
  // With the only item of an author.
  after(
    [create('first', 'menus', { name: 'Aaa first' }), byNewcomer(item({ menus: '{first}' }))],
    remove('menus/{first}'),
  ),
  after([create('first', 'menus', { name: 'Aaa first' })], update('menus/{first}', { name: 'Zzz last' })),
  one(update('menus/{classic}', { name: 'Bark menu', description: 'bark' })),
  one(remove('menus/{classic}')),
  after([create('first', 'menus', { name: 'Aaa first' })], remove('menus/{first}')),
]

const ofPatterns: readonly Aim[] = [
  one(published('made', 'blocks', 'Oak made', { wp_pattern_category: ['{unusedpatterns}'] })),
  one(byNewcomer(published('made', 'blocks', 'Oak made', { content: '<!-- wp:latest-posts /-->' }))),
  one(update('blocks/{pattern}', { content: paragraph('bark') })),
  one(update('blocks/{rolling}', { content: '<!-- wp:latest-comments /-->' })),
  one(update('blocks/{draftpattern}', show)),
  one(update('blocks/{pattern}', hide)),
  one(update('blocks/{rolling}', hide)),
  one(update('blocks/{pattern}', { title: 'Bark pattern' })),
  one(update('blocks/{pattern}', { slug: 'bark-pattern' })),
  one(update('blocks/{pattern}', { wp_pattern_category: ['{unusedpatterns}'] })),
  one(trimmed(update('blocks/{pattern}', { wp_pattern_category: ['{unusedpatterns}'], status: 'draft' }))),
  one(trash('blocks/{pattern}')),
  one(remove('blocks/{pattern}')),
  one(remove('blocks/{rolling}')),
  after([byNewcomer(published('made', 'blocks', 'Oak made', hide))], update('blocks/{made}', show)),
  after([byNewcomer(published('made', 'blocks', 'Oak made'))], update('blocks/{made}', hide)),
  after([byNewcomer(published('made', 'blocks', 'Oak made'))], remove('blocks/{made}')),
  one(create('made', 'wp_pattern_category', { name: 'Oak made' })),
  one(update('wp_pattern_category/{patterns}', { name: 'Zzz patterns' })),
  one(update('wp_pattern_category/{patterns}', { slug: 'bark' })),
  one(update('wp_pattern_category/{spare}', { name: 'Aaa spare' })),
  one(update('wp_pattern_category/{patterns}', { description: 'bark' })),
  one(remove('wp_pattern_category/{patterns}')),
]

const ofNavigation: readonly Aim[] = [
  one(
    published('made', 'navigation', 'Oak made', {
      content: '<!-- wp:navigation-link {"label":"m","url":"/m"} /-->',
    }),
  ),
  one(byNewcomer(published('made', 'navigation', 'Oak made'))),
  one(update('navigation/{menu}', { content: '<!-- wp:navigation-link {"label":"bark","url":"/b"} /-->' })),
  one(
    update('navigation/{emptymenu}', { content: '<!-- wp:navigation-link {"label":"bark","url":"/b"} /-->' }),
  ),
  one(update('navigation/{draftmenu}', show)),
  one(update('navigation/{menu}', hide)),
  one(update('navigation/{menu}', { title: 'Bark menu' })),
  one(trash('navigation/{menu}')),
  one(remove('navigation/{menu}')),
  after([byNewcomer(published('made', 'navigation', 'Oak made', hide))], update('navigation/{made}', show)),
  after([byNewcomer(published('made', 'navigation', 'Oak made'))], update('navigation/{made}', hide)),
  after([byNewcomer(published('made', 'navigation', 'Oak made'))], remove('navigation/{made}')),
]

const ofThemes: readonly Aim[] = [
  one(create('made', 'templates', template('page-oak-new'))),
  one(byNewcomer(create('made', 'templates', template('made')))),
  one(byNewcomer(update(`templates/${theme}//single`, { content: paragraph('bark') }))),
  one(update(own, { title: 'bark' })),
  one(update(own, { content: paragraph('bark') })),
  one(remove(own)),
  after([byNewcomer(create('made', 'templates', template('made')))], remove('templates/{made}')),
  // Over those of the theme.
  one(create('made', 'templates', template('single'))),
  one(create('made', 'template-parts', part('header'))),
  one(create('made', 'template-parts', part('new'))),
  one(byNewcomer(create('made', 'template-parts', part('made')))),
  one(byNewcomer(update(header, { content: paragraph('bark') }))),
  one(update(ownPart, { content: paragraph('bark') })),
  one(update(plainPart, { content: 'bark' })),
  one(update(ownPart, { title: 'bark' })),
  one(remove(ownPart)),
  one(remove(plainPart)),
  after([byNewcomer(create('made', 'template-parts', part('made')))], remove('template-parts/{made}')),
  one(update(styles, { styles: { color: { background: '#123456' } } })),
  one(update(styles, { styles: { spacing: { blockGap: '13px' } } })),
  one(update(styles, { settings: { layout: { contentSize: '513px', wideSize: '777px' } } })),
  one(
    update(styles, {
      settings: { color: { palette: { custom: [{ slug: 'oak', name: 'Oak', color: '#aabbcc' }] } } },
    }),
  ),
  one(update(styles, { title: 'bark' })),
  one(trimmed(update(styles, { styles: { spacing: { blockGap: '17px' } } }))),
  one(update(styles, { settings: { spacing: { blockGap: null } } })),
  one(update(styles, { settings: { typography: { fluid: false } } })),
]

const ofTerms: readonly Aim[] = [
  one(create('made', 'categories', { name: 'Oak made', parent: '{grove}' })),
  one(create('made', 'categories', { name: 'Bark made' })),
  one(update('categories/{grove}', { slug: 'bark' })),
  one(update('categories/{young}', { slug: 'bark' })),
  one(update('categories/{young}', { parent: '{empty}' })),
  one(update('categories/{young}', { name: 'Bark young' })),
  one(update('categories/{young}', { description: 'bark' })),
  one(remove('categories/{young}')),
  one(remove('categories/{grove}')),
  one(remove('categories/{empty}')),
  ...[
    update('categories/{grove}', { slug: 'bark' }),
    update('categories/{young}', { slug: 'bark' }),
    // The default one is in the links of what has no categories.
    update('categories/1', { slug: 'bark' }),
    remove('categories/{grove}'),
    remove('categories/{young}'),
  ].map((write) => after([namedLinks], write)),
  one(create('made', 'tags', { name: 'Oak made' })),
  one(update('tags/{spring}', { slug: 'bark' })),
  one(update('tags/{spring}', { name: 'Zzz spring' })),
  one(update('tags/{autumn}', { name: 'Aaa autumn' })),
  one(update('tags/{spring}', { description: 'bark' })),
  one(remove('tags/{spring}')),
]

const remark = (body: Readonly<Record<string, unknown>>): PlainWrite =>
  create('made', 'comments', { content: 'Oak made', ...body })

const ofComments: readonly Aim[] = [
  one(remark({ post: '{oak}' })),
  one(remark({ post: '{fern}' })),
  one(remark({ post: '{oak}', parent: '{remark}' })),
  one(remark({ post: '{parentpage}', parent: '{onpage}' })),
  one(remark({ post: '{loose}' })),
  one(trimmed(remark({ post: '{oak}', parent: '{remark}' }))),
  one(trimmed(remark({ post: '{parentpage}' }))),
  one(trimmed(remark({ post: '{childpage}', parent: '{onchild}' }))),
  one(trimmed(remark({ post: '{loose}' }))),
  one(update('comments/{remark}', { status: 'hold' })),
  one(update('comments/{remark}', { content: 'bark' })),
  one(update('comments/{onpage}', { content: 'bark', author_name: 'Bark' })),
  one(update('comments/{reply}', { status: 'spam' })),
  one(update('comments/{reply}', { parent: '0' })),
  one(update('comments/{reply}', { post: '{fern}', parent: '0' })),
  one(trimmed(update('comments/{remark}', { status: 'trash' }))),
  one(trash('comments/{remark}')),
  one(trash('comments/{onimage}')),
  one(remove('comments/{remark}')),
  one(remove('comments/{reply}')),
  one(trimmed(remove('comments/{onpage}'))),
  one(trimmed(remove('comments/{reply}'))),
]

const ofUsers: readonly Aim[] = [
  one(
    create('made', 'users', {
      username: 'made',
      email: 'made@example.org',
      password: 'Long enough 1',
      roles: ['author'],
    }),
  ),
  one(update('users/{writer}', { name: 'Bark writer' })),
  one(update('users/{writer}', { slug: 'bark' })),
  one(update('users/{writer}', { description: 'bark' })),
  one(update('users/{writer}', { url: 'https://example.org/bark' })),
  one(trimmed(update('users/{writer}', { name: 'Bark writer' }))),
  one(update('users/1', { name: 'Bark admin' })),
  one(update('users/1', { nickname: 'bark', description: 'bark' })),
  after([namedLinks], update('users/{writer}', { slug: 'bark' })),
  after([namedLinks], update('users/1', { slug: 'bark' })),
  one({ ...update('users/2', { roles: ['subscriber'] }), kind: 'users.update.role' }),
  one(remove('users/{writer}', '?force=true&reassign=1')),
]

const family = (slug: string) => ({
  font_family_settings: JSON.stringify({ name: slug, slug, fontFamily: slug }),
})

const ofFonts: readonly Aim[] = [
  one(byNewcomer(create('made', 'font-families', family('bark')))),
  one(
    update('font-families/{family}', {
      font_family_settings: JSON.stringify({ name: 'Bark', fontFamily: 'Bark' }),
    }),
  ),
  one(remove('font-families/{family}')),
  after([byNewcomer(create('made', 'font-families', family('bark')))], remove('font-families/{made}')),
  one(byNewcomer(fontFace('made', 'family', '700'))),
  one(removeFontFace('face', 'family')),
  after([byNewcomer(fontFace('made', 'family', '700'))], removeFontFace('made', 'family')),
]

const ofTheSite: readonly Aim[] = [
  one({
    ...create('made', 'widgets', { id_base: 'block', sidebar: 'wp_inactive_widgets', ...widgetText('made') }),
  }),
  one(update('widgets/{widget}', widgetText('bark'))),
  one(remove('widgets/{widget}')),
  one(sidebars([])),
  one(settings({ title: 'Bark' })),
  one(settings({ description: 'Bark' })),
  after([settings({ description: 'Oak' })], settings({ description: 'Bark' })),
  one(settings({ posts_per_page: 3 })),
  one(settings({ date_format: 'Y-m-d' })),
  one(settings({ time_format: 'H:i' })),
  one(settings({ start_of_week: 3 })),
  one(settings({ timezone: 'Europe/Paris' })),
  one(settings({ show_on_front: 'page', page_on_front: '{front}' })),
]

export const aims: readonly Aim[] = [
  ...ofPosts,
  ...ofPages,
  ...ofMedia,
  ...ofMenus,
  ...ofPatterns,
  ...ofNavigation,
  ...ofThemes,
  ...ofTerms,
  ...ofComments,
  ...ofUsers,
  ...ofFonts,
  ...ofTheSite,
  ...[
    ['custom', 'menu-items', 'ofitem'],
    ['pattern', 'blocks', 'ofpattern'],
    ['menu', 'navigation', 'ofmenu'],
  ].flatMap(([name, collection]): Aim[] => [
    one(update(`${collection}/{${name}}`, { status: 'private' })),
    one(trimmed(remove(`${collection}/{${name}}`))),
  ]),
]
