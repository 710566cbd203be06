import type { PlainWrite } from './faulty-tables.ts'
import type { Read } from './site-under-fuzz.ts'
import type { Operation, Write } from './write.ts'

/** A write to the interface whose name others refer to as `{name}`. */
export type Step = Extract<Write, { readonly door: 'rest' | 'upload' | 'form' }>

type Body = NonNullable<Operation['body']>

const rest = (name: string, kind: string, operation: Operation): PlainWrite => ({
  name,
  kind,
  door: 'rest',
  style: 'json',
  operation,
})

export const create = (name: string, collection: string, body: Body): PlainWrite =>
  rest(name, `${collection}.create`, { method: 'POST', route: `/wp/v2/${collection}`, body })

/** Pages take no comments otherwise. */
const open: Readonly<Record<string, Body>> = { pages: { comment_status: 'open' } }

export const published = (name: string, collection: string, title: string, body: Body = {}): PlainWrite =>
  create(name, collection, {
    title,
    status: 'publish',
    content: paragraph(title),
    ...open[collection],
    ...body,
  })

/** `item`: `posts/{oak}`. */
export const update = (item: string, body: Body): PlainWrite =>
  rest(`update`, `${item.split('/')[0]}.update`, { method: 'POST', route: `/wp/v2/${item}`, body })

export const remove = (item: string, query = '?force=true'): PlainWrite =>
  rest(`delete`, `${item.split('/')[0]}.delete`, { method: 'DELETE', route: `/wp/v2/${item}${query}` })

export const upload = (name: string, query = ''): PlainWrite => ({
  name,
  kind: 'upload',
  door: 'upload',
  route: `/wp/v2/media${query}`,
  file: `${name}.png`,
})

/** The response gives an id only, so that the gateway does not know the values that were written. */
export const trimmed = (step: PlainWrite): PlainWrite =>
  step.door === 'rest' ? { ...step, style: 'fields' } : step

/** By an administrator who has published nothing. */
export const byNewcomer = (step: PlainWrite): PlainWrite =>
  step.door === 'rest' ? { ...step, by: 'subscriber' } : step

/** In the font family of that name. */
export const fontFace = (name: string, family: string, weight = '400'): PlainWrite =>
  rest(name, 'font-families.update', {
    method: 'POST',
    route: `/wp/v2/font-families/{${family}}/font-faces`,
    body: {
      font_face_settings: JSON.stringify({
        fontFamily: 'Oak',
        fontWeight: weight,
        src: `https://192.0.2.1/${name}.woff2`,
      }),
    },
  })

export const removeFontFace = (name: string, family: string): PlainWrite =>
  rest('delete', 'font-families.update', {
    method: 'DELETE',
    route: `/wp/v2/font-families/{${family}}/font-faces/{${name}}?force=true`,
  })

export const paragraph = (text: string): string =>
  `<!-- wp:paragraph -->\n<p>${text}</p>\n<!-- /wp:paragraph -->`

const query = (inner: string, more = ''): string =>
  `<!-- wp:query {"queryId":1,"query":{"postType":"post","order":"desc","orderBy":"date","inherit":false${more}}} --><div class="wp-block-query"><!-- wp:post-template -->${inner}<!-- /wp:post-template --></div><!-- /wp:query -->`

/** Ids that the next items get. */
export const nextIds = ['next1', 'next2', 'next3', 'next4', 'next5', 'next6', 'next7', 'next8'] as const

/** What a content renders, by the name of the post whose whole content it is. */
const rendering: Readonly<Record<string, string>> = {
  latestposts:
    '<!-- wp:latest-posts {"postsToShow":6,"displayAuthor":true,"displayFeaturedImage":true,"displayPostContent":true} /-->',
  latestof: '<!-- wp:latest-posts {"categories":[{"id":{bare}}]} /-->',
  latestby: '<!-- wp:latest-posts {"selectedAuthor":{quiet}} /-->',
  latestcomments: '<!-- wp:latest-comments {"commentsToShow":9} /-->',
  cloud: '<!-- wp:tag-cloud {"showTagCounts":true,"smallestFontSize":"8pt","largestFontSize":"22pt"} /-->',
  categorylist: '<!-- wp:categories {"showPostCounts":true,"showHierarchy":true,"showEmpty":true} /-->',
  archives: '<!-- wp:archives {"showPostCounts":true} /-->',
  calendar: '<!-- wp:calendar /-->',
  pagelist: '<!-- wp:page-list /-->',
  childlist: '<!-- wp:page-list {"parentPageID":{childless}} /-->',
  draftlist: '<!-- wp:page-list {"parentPageID":{draftpage}} /-->',
  childrenof: '<!-- wp:page-list {"parentPageID":{parentpage}} /-->',
  sitetitle: '<!-- wp:site-title /-->',
  tagline: '<!-- wp:site-tagline /-->',
  sitelogo: '<!-- wp:site-logo /-->',
  loop: query(
    '<!-- wp:post-title {"isLink":true} /--><!-- wp:post-date /--><!-- wp:post-author-name /--><!-- wp:post-terms {"term":"category"} /--><!-- wp:post-terms {"term":"post_tag"} /--><!-- wp:post-featured-image /-->',
  ),
  times: query('<!-- wp:post-date {"format":null} /--><!-- wp:post-time-to-read /-->', ',"perPage":3'),
  pages: query('<!-- wp:post-title {"isLink":true} /-->', ',"perPage":50').replace('"post"', '"page"'),
  navigation: '<!-- wp:navigation {"ref":{menu}} /-->',
  emptynavigation: '<!-- wp:navigation {"ref":{emptymenu}} /-->',
  draftnavigation: '<!-- wp:navigation {"ref":{draftmenu}} /-->',
  patterntext: '<!-- wp:block {"ref":{pattern}} /-->',
  draftpatterntext: '<!-- wp:block {"ref":{draftpattern}} /-->',
  rollingtext: '<!-- wp:block {"ref":{rolling}} /-->',
  header: '<!-- wp:template-part {"slug":"header","theme":"twentytwentyfour"} /-->',
  ownpart: '<!-- wp:template-part {"slug":"own","theme":"twentytwentyfour"} /-->',
  plainpart: '<!-- wp:template-part {"slug":"plain","theme":"twentytwentyfour"} /-->',
  newpart: '<!-- wp:template-part {"slug":"new","theme":"twentytwentyfour"} /-->',
  gallery: '<!-- wp:shortcode -->\n[gallery]\n<!-- /wp:shortcode -->',
  galleryof: '<!-- wp:shortcode -->\n[gallery ids="{loose},{shown}"]\n<!-- /wp:shortcode -->',
  image:
    '<!-- wp:image {"id":{shown},"sizeSlug":"full"} -->\n<figure class="wp-block-image size-full"><img src="/leaf.png" alt="" class="wp-image-{shown}"/></figure>\n<!-- /wp:image -->',
  avatar: '<!-- wp:avatar {"userId":{writer}} /-->',
  author: '<!-- wp:post-author {"showBio":true} /--><!-- wp:post-author-biography /-->',
  classicmenu: '<!-- wp:shortcode -->\n[garden-menu]\n<!-- /wp:shortcode -->',
  linkto:
    '<!-- wp:navigation --><!-- wp:navigation-link {"label":"x","type":"page","id":{parentpage},"kind":"post-type","url":"/x"} /--><!-- wp:navigation-link {"label":"d","type":"post","id":{draft},"kind":"post-type","url":"/d"} /--><!-- /wp:navigation -->',
  storedwidget: '<!-- wp:legacy-widget {"id":"{widget}"} /-->',
  largetext:
    '<!-- wp:paragraph {"style":{"typography":{"fontSize":"40px"}}} -->\n<p style="font-size:40px">large</p>\n<!-- /wp:paragraph -->',
  spaced:
    '<!-- wp:group {"style":{"spacing":{"blockGap":"9px"}},"layout":{"type":"flex"}} --><div class="wp-block-group"><p>in it</p></div><!-- /wp:group -->',
  patterncloud: '<!-- wp:tag-cloud {"taxonomy":"wp_pattern_category"} /-->',
  group:
    '<!-- wp:group {"layout":{"type":"flex"}} --><div class="wp-block-group"><!-- wp:paragraph --><p>in it</p><!-- /wp:paragraph --></div><!-- /wp:group --><!-- wp:group {"layout":{"type":"constrained"}} --><div class="wp-block-group"><p>in it</p></div><!-- /wp:group -->',
  columns:
    '<!-- wp:columns --><div class="wp-block-columns"><!-- wp:column --><div class="wp-block-column"><p>in it</p></div><!-- /wp:column --></div><!-- /wp:columns -->',
  widgetmenu:
    '<!-- wp:legacy-widget {"idBase":"nav_menu","instance":{"encoded":"YTowOnt9","hash":"x","raw":{}}} /-->',
  recent:
    '<!-- wp:legacy-widget {"idBase":"recent-posts","instance":{"encoded":"YTowOnt9","hash":"x","raw":{}}} /-->',
}

/** Where all posts are dropped anyway, only the contents of pages show what is not. */
const renderingPages = [
  'loop',
  'latestposts',
  'latestcomments',
  'cloud',
  'categorylist',
  'avatar',
  'galleryof',
  'pagelist',
  'gallery',
  'storedwidget',
  'largetext',
  'spaced',
] as const

const renderingPosts = Object.keys(rendering)

/** Those named `of…` are attached to something. */
const images = [
  'shown',
  'loose',
  'logo',
  'ofpost',
  'ofdraft',
  'ofpage',
  'ofdraftpage',
  'ofchild',
  'ofitem',
  'ofpattern',
  'ofmenu',
  'ofpart',
  'oftemplate',
  'offamily',
  'offace',
]

const attachedImages = images.filter((name) => name.startsWith('of'))

/** A site on which each row of the table matters. Names of items are used as `{name}`. */
export const aimedSite: readonly Step[] = [
  create('writer', 'users', {
    username: 'writer',
    email: 'writer@example.org',
    password: 'Long enough 1',
    roles: ['author'],
  }),
  create('quiet', 'users', {
    username: 'quiet',
    email: 'quiet@example.org',
    password: 'Long enough 1',
    roles: ['author'],
  }),
  update('users/4', { roles: ['administrator'] }),
  create('grove', 'categories', { name: 'Oak grove' }),
  create('young', 'categories', { name: 'Oak young', parent: '{grove}' }),
  create('moss', 'categories', { name: 'Moss' }),
  create('empty', 'categories', { name: 'Oak empty' }),
  create('bare', 'categories', { name: 'Oak bare', parent: '{empty}' }),
  create('spring', 'tags', { name: 'Oak spring' }),
  create('autumn', 'tags', { name: 'Zinnia autumn' }),
  create('unused', 'tags', { name: 'Oak unused' }),
  create('patterns', 'wp_pattern_category', { name: 'Oak patterns' }),
  create('spare', 'wp_pattern_category', { name: 'Zinnia spare' }),
  create('unusedpatterns', 'wp_pattern_category', { name: 'Oak unused patterns' }),
  ...images.map((name) => upload(name)),
  published('oak', 'posts', 'Oak post', {
    author: '{writer}',
    categories: ['{young}'],
    tags: ['{spring}', '{autumn}'],
    featured_media: '{shown}',
    slug: 'oak-post',
  }),
  published('fern', 'posts', 'Fern post', { categories: ['{moss}'], slug: 'fern-post' }),
  published('draft', 'posts', 'Oak draft', {
    author: '{quiet}',
    categories: ['{young}'],
    tags: ['{spring}'],
    slug: 'oak-draft',
  }),
  published('parentpage', 'pages', 'Oak parent', { slug: 'oak-parent' }),
  published('childpage', 'pages', 'Oak child', { parent: '{parentpage}', slug: 'oak-child', menu_order: 2 }),
  published('childless', 'pages', 'Oak childless', { slug: 'oak-childless' }),
  published('draftpage', 'pages', 'Oak draft page', { slug: 'oak-draft-page' }),
  published('belowdraft', 'pages', 'Oak below', { parent: '{draftpage}', slug: 'oak-below' }),
  published('front', 'pages', 'Oak front', { slug: 'oak-front' }),
  published('pattern', 'blocks', 'Oak pattern', { wp_pattern_category: ['{patterns}', '{spare}'] }),
  published('draftpattern', 'blocks', 'Oak draft pattern', { status: 'draft' }),
  published('rolling', 'blocks', 'Oak rolling', { content: '<!-- wp:latest-posts /-->' }),
  published('menu', 'navigation', 'Oak menu', {
    content: '<!-- wp:navigation-link {"label":"oak","url":"/x"} /-->',
  }),
  published('emptymenu', 'navigation', 'Oak empty menu', { content: '' }),
  published('draftmenu', 'navigation', 'Oak draft menu', {
    status: 'draft',
    content: '<!-- wp:navigation-link {"label":"fern","url":"/y"} /-->',
  }),
  create('classic', 'menus', { name: 'Aster menu', auto_add: true }),
  ...[
    ['topost', { type: 'post_type', object: 'post', object_id: '{oak}' }],
    ['topage', { type: 'post_type', object: 'page', object_id: '{parentpage}' }],
    ['tochild', { type: 'post_type', object: 'page', object_id: '{childpage}' }],
    ['tobelow', { type: 'post_type', object: 'page', object_id: '{belowdraft}' }],
    ['todraft', { type: 'post_type', object: 'post', object_id: '{draft}' }],
    ['todraftpage', { type: 'post_type', object: 'page', object_id: '{draftpage}' }],
    ['toimage', { type: 'post_type', object: 'attachment', object_id: '{loose}' }],
    ['tocategory', { type: 'taxonomy', object: 'category', object_id: '{young}' }],
    ['totag', { type: 'taxonomy', object: 'post_tag', object_id: '{spring}' }],
    ['custom', { type: 'custom', url: 'https://example.org/oak', title: 'Oak custom' }],
  ].map(([name, body]) =>
    create(name as string, 'menu-items', {
      title: '',
      status: 'publish',
      menus: '{classic}',
      ...(body as Body),
    }),
  ),
  create('unseenitem', 'menu-items', {
    title: 'Oak hidden',
    type: 'custom',
    url: 'https://example.org/h',
    status: 'draft',
    menus: '{classic}',
  }),
  create('ownpart', 'template-parts', {
    slug: 'own',
    title: 'own',
    content: paragraph('own'),
    area: 'uncategorized',
  }),
  create('plainpart', 'template-parts', {
    slug: 'plain',
    title: 'plain',
    content: 'words',
    area: 'uncategorized',
  }),
  create('owntemplate', 'templates', { slug: 'own', title: 'own', content: paragraph('own') }),
  create('widget', 'widgets', {
    id_base: 'block',
    sidebar: 'wp_inactive_widgets',
    instance: { raw: { content: paragraph('widget') } },
  }),
  create('family', 'font-families', {
    font_family_settings: JSON.stringify({ name: 'Oak', slug: 'oak', fontFamily: 'Oak' }),
  }),
  fontFace('face', 'family'),
  ...Object.entries(rendering).map(([name, content]) =>
    published(name, 'posts', name, { content, author: '{writer}', slug: name }),
  ),
  ...renderingPages.map((name) =>
    published(`page${name}`, 'pages', `page ${name}`, { content: rendering[name], slug: `page-${name}` }),
  ),
  create('remark', 'comments', { post: '{oak}', content: 'Oak remark' }),
  create('reply', 'comments', { post: '{oak}', content: 'Oak reply', parent: '{remark}' }),
  create('ondraft', 'comments', { post: '{draft}', content: 'Oak on the draft' }),
  create('onpage', 'comments', { post: '{parentpage}', content: 'Oak on the page' }),
  create('onchild', 'comments', { post: '{childpage}', content: 'Oak on the child' }),
  create('onbelow', 'comments', { post: '{belowdraft}', content: 'Oak below' }),
  create('ondraftpage', 'comments', { post: '{draftpage}', content: 'Oak on the draft page' }),
  create('onimage', 'comments', { post: '{loose}', content: 'Oak on the image' }),
  ...attachedImages.map((name) =>
    create(`on${name}`, 'comments', { post: `{${name}}`, content: `Oak on ${name}` }),
  ),
  // Each has an image that is attached to something else.
  ...attachedImages.map((name) =>
    published(`with${name}`, 'pages', `With ${name}`, { featured_media: `{${name}}` }),
  ),
  // Their authors are public only as long as something of theirs is published.
  create('byquiet', 'posts', { title: 'Quiet draft', status: 'draft', author: '{quiet}' }),
  create('bynewcomer', 'posts', { title: 'Draft of a newcomer', status: 'draft', author: '{fourth}' }),
  ...[
    ['ofpost', 'oak'],
    ['ofdraft', 'draft'],
    ['ofpage', 'parentpage'],
    ['ofdraftpage', 'draftpage'],
    ['ofchild', 'belowdraft'],
    ['ofitem', 'custom'],
    ['ofpattern', 'pattern'],
    ['ofmenu', 'menu'],
    ['ofpart', 'ownpartpost'],
    ['oftemplate', 'owntemplatepost'],
    ['offamily', 'family'],
    ['offace', 'face'],
  ].map(([image, post]) => update(`media/{${image}}`, { post: `{${post}}` })),
  update('posts/{draft}', { status: 'draft' }),
  update('pages/{draftpage}', { status: 'draft' }),
  create('last', 'posts', { title: 'last', status: 'draft' }),
]

const anonymous = (...routes: readonly string[]): Read[] =>
  routes.map((route) => ({
    route: route.startsWith('/oembed') ? route : `/wp/v2/${route}`,
    caller: 'anonymous',
  }))
const admin = (...routes: readonly string[]): Read[] =>
  routes.map((route) => ({ route: `/wp/v2/${route}`, caller: 'admin' }))

const of = (collection: string, ...names: readonly string[]): string[] =>
  names.map((name) => `${collection}/{${name}}`)
const oembed = (...names: readonly string[]): string[] =>
  names.map((name) => `/oembed/1.0/embed?url=http%3A%2F%2Fwordpress.test%2F%3Fp%3D{${name}}`)
const items = [
  'topost',
  'topage',
  'tochild',
  'tobelow',
  'todraft',
  'todraftpage',
  'toimage',
  'tocategory',
  'totag',
  'custom',
  'unseenitem',
]
const comments = [
  ...attachedImages.map((name) => `on${name}`),
  ...['remark', 'reply', 'ondraft', 'onpage', 'onchild', 'onbelow', 'ondraftpage', 'onimage'],
]

/** Stored before each aimed write. */
export const aimedReads: readonly Read[] = [
  ...anonymous(
    ...of('posts', 'oak', 'fern', 'draft', ...renderingPosts),
    'posts/{oak}?_embed=true',
    'posts/{fern}?_embed=true',
    'posts/{oak}?_fields=id,tags,categories',
    'posts?per_page=5',
    'posts?include={oak},{fern}',
    'posts?search=oak&per_page=5',
    'posts?orderby=title&order=asc&per_page=5',
    ...['young', 'moss', 'bare', 'grove'].flatMap((name) => [
      `posts?categories={${name}}&_fields=id`,
      `posts?categories_exclude={${name}}&per_page=5&_fields=id`,
    ]),
    ...['spring', 'autumn', 'unused'].flatMap((name) => [
      `posts?tags={${name}}&_fields=id`,
      `posts?tags_exclude={${name}}&per_page=5&_fields=id`,
    ]),
    ...['writer', 'quiet', 'fourth'].flatMap((name) => [
      `posts?author={${name}}&_fields=id`,
      `pages?author={${name}}&_fields=id`,
      `media?author={${name}}&_fields=id`,
    ]),
    'posts?sticky=true&_fields=id',
    'posts?slug=oak-post,oak-moved,oak-new&_fields=id,slug',
    ...of(
      'pages',
      ...renderingPages.map((name) => `page${name}`),
      'parentpage',
      'childpage',
      'childless',
      'draftpage',
      'belowdraft',
      'front',
    ),
    'pages/{childpage}?_embed=true',
    'pages/{belowdraft}?_embed=true',
    'pages?per_page=100&_fields=id,link,parent',
    'pages?orderby=menu_order&order=asc&per_page=100&_fields=id,menu_order',
    ...['parentpage', 'childless', 'draftpage'].map((name) => `pages?parent={${name}}&_fields=id,link`),
    'pages?menu_order=2&_fields=id',
    'pages?menu_order=7&_fields=id',
    'pages?search=oak&_fields=id',
    ...of('categories', 'grove', 'young', 'moss', 'empty', 'bare'),
    'categories?per_page=100&_fields=id,name,link',
    'categories?hide_empty=true&orderby=count&order=desc&_fields=id,count',
    ...['grove', 'empty', 'moss'].flatMap((name) => [
      `categories?parent={${name}}&_fields=id,name`,
      `categories?parent={${name}}&hide_empty=true&_fields=id`,
      `categories?parent={${name}}&orderby=id&_fields=id`,
    ]),
    ...['oak', 'fern'].flatMap((name) => [
      `categories?post={${name}}&_fields=id`,
      `tags?post={${name}}&_fields=id`,
    ]),
    ...of('tags', 'spring', 'autumn', 'unused'),
    'tags?hide_empty=true&orderby=count&order=desc&_fields=id,count',
    'tags?search=oak&_fields=id,name',
    ...of('media', ...images),
    'media?_fields=id,link&per_page=100',
    'media/{ofpost}?_embed=true',
    'media/{loose}?_embed=true',
    ...['oak', 'gallery', 'draft', 'parentpage'].map((name) => `media?parent={${name}}&_fields=id`),
    ...of('comments', ...comments),
    'comments?per_page=100&_fields=id,link',
    'comments?per_page=5&_embed=true',
    ...['oak', 'fern', 'parentpage', 'loose'].map((name) => `comments?post={${name}}&_fields=id`),
    'comments?parent={remark}&_fields=id',
    'comments?parent={onpage}&_fields=id',
    'comments/{remark}?_embed=true',
    'comments/{reply}?_embed=true',
    'comments/{onimage}?_embed=true',
    'comments/{onpage}?_embed=true',
    ...of('users', 'writer', 'quiet', 'fourth'),
    'users?_fields=id,name',
    ...['oak', 'moved', 'zinnia', 'aster', 'bark'].flatMap((word) => [
      `search?search=${word}&_fields=id,title,url`,
      `search?search=${word}&type=term&_fields=id,title,url`,
    ]),
    'search?search=oak&_embed=true',
    ...oembed(
      'oak',
      'draft',
      'parentpage',
      'childpage',
      'draftpage',
      'belowdraft',
      'loose',
      ...images,
      ...nextIds,
    ),
    ...nextIds.map((name) => `${oembed(name)}&format=xml`),
    ...attachedImages.map((name) => `pages/{with${name}}?_embed=true&_fields=id,_links`),
    'navigation/{menu}',
    'navigation',
  ),
  { route: '/?_fields=name,description,site_logo,site_icon', caller: 'anonymous' },
  ...admin(
    'posts/{draft}',
    'posts/{draft}?_embed=true',
    'pages/{draftpage}?_embed=true',
    'pages/{belowdraft}?context=edit',
    'pages/{childpage}?context=edit',
    'posts?status=draft&_fields=id,title',
    'pages?status=draft&_fields=id,link',
    'pages?parent={draftpage}&status=any&_fields=id,link',
    'categories?post={draft}&_fields=id',
    'tags?post={draft}&_fields=id',
    'comments?status=any&per_page=100&_fields=id,link,status',
    'comments?author=1&_fields=id',
    'comments/{ondraft}',
    'comments/{ondraftpage}',
    'media/{ofdraft}',
    'media/{ofdraftpage}',
    'media?parent={draftpage}&_fields=id,link',
    'media?parent={draft}&_fields=id,link',
    ...of('menu-items', ...items),
    'menu-items?per_page=100&_fields=id,title,url,menu_order,menus,invalid',
    'menu-items?menus={classic}&per_page=100&_fields=id,title,url',
    'menu-items?per_page=100&_embed=true&_fields=id,title,_embedded,_links',
    'menu-items?orderby=menu_order&per_page=100&_fields=id',
    'menu-items?per_page=2&_fields=id,title',
    'menu-items?orderby=menu_order&order=desc&per_page=2&_fields=id',
    'menus',
    'menus/{classic}',
    'menu-locations',
    'menu-locations/fuzz',
    'navigation?_fields=id,title,slug',
    'navigation/{menu}?_embed=true',
    ...of('blocks', 'pattern', 'draftpattern', 'rolling'),
    'blocks?_fields=id,title,slug',
    'blocks?_fields=id,link',
    'navigation?_fields=id,link',
    'blocks/{pattern}?_embed=true',
    'blocks?orderby=title&order=asc&_fields=id',
    ...['patterns', 'spare', 'unusedpatterns'].flatMap((name) => [
      `blocks?wp_pattern_category={${name}}&_fields=id,slug`,
      `wp_pattern_category/{${name}}`,
    ]),
    'wp_pattern_category?_fields=id,name,count',
    'wp_pattern_category?hide_empty=true&_fields=id',
    'wp_pattern_category?post={pattern}&_fields=id',
    'search?search=oak&type=term&_fields=id,title',
    'templates?_fields=id,title,source,author,author_text',
    'templates/twentytwentyfour//own',
    'templates/twentytwentyfour//single',
    'templates/lookup?slug=page-oak-new',
    'template-parts?_fields=id,title,author,author_text',
    'template-parts/twentytwentyfour//own',
    'template-parts/twentytwentyfour//header',
    // WordPress takes one slash for two.
    'templates/twentytwentyfour/own?_fields=content,source',
    'template-parts/twentytwentyfour/header?_fields=content,source',
    'themes?_fields=stylesheet,theme_supports,status',
    'themes?status=active',
    'global-styles/themes/twentytwentyfour',
    'global-styles/{styles}?context=edit',
    'global-styles/{styles}/revisions',
    'settings',
    'users?context=edit&per_page=100&_fields=id,name,slug,link,roles',
    'users/{writer}?context=edit',
    'users/{quiet}',
    'widgets',
    'widgets/{widget}',
    'widgets?sidebar=wp_inactive_widgets&_fields=id',
    'sidebars',
    'sidebars/wp_inactive_widgets',
    'widget-types?_fields=id,name',
    'types?_fields=post',
    'font-families',
    'font-families/{family}',
    'font-families/{family}?_embed=true',
    'font-families/{family}/font-faces',
    'font-families/{family}/font-faces/{face}',
    'block-renderer/core/latest-posts?context=edit',
    'block-renderer/core/page-list?context=edit',
  ),
  ...[
    'blocks',
    'posts/{oak}?context=edit',
    'users/me?context=edit',
    'categories?context=edit&_fields=id',
    'posts/{byquiet}?_embed=true&_fields=id,_links',
    'posts/{bynewcomer}?_embed=true&_fields=id,_links',
  ].map((route): Read => ({ route: `/wp/v2/${route}`, caller: 'editor' })),
]
