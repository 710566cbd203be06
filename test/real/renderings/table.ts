/** A request to the interface, as the administrator. `{name}` stands for an id that the site or an earlier answer gave. */
export type Step = {
  readonly method: 'POST' | 'PUT' | 'DELETE'
  /** Behind the root of the interface. */
  readonly path: string
  readonly body?: Readonly<Record<string, unknown>> | 'image'
  /** The id in the response is called so from here on. */
  readonly keep?: string
}

/** Something that WordPress renders into a content, and a write that changes what it shows there. */
export type Rendering = {
  readonly title: string
  /** As docs/evidence/caching.md calls what is rendered. */
  readonly thing: string
  /** What the content needs before it is made. */
  readonly setUp?: readonly Step[]
  /** Content of a new page, which is read as `wp/v2/pages/{content}` and in a list; none where `reads` says what shows it. */
  readonly content?: string
  readonly reads?: readonly string[]
  readonly caller?: 'admin'
  readonly write: Step
}

const post = (path: string, body: Step['body'], keep?: string): Step => ({
  method: 'POST',
  path,
  ...(body === undefined ? {} : { body }),
  ...(keep === undefined ? {} : { keep }),
})
const put = (path: string, body: Readonly<Record<string, unknown>>): Step => ({ method: 'PUT', path, body })
const remove = (path: string): Step => ({ method: 'DELETE', path: `${path}?force=true` })

const published = (title: string, more: Readonly<Record<string, unknown>> = {}) => ({
  title,
  status: 'publish',
  content: `<!-- wp:paragraph --><p>${title}.</p><!-- /wp:paragraph -->`,
  ...more,
})

const newPost = (title: string): Step => post('wp/v2/posts', published(title), 'newPost')
const newPage = (title: string, more = {}): Step => post('wp/v2/pages', published(title, more), 'newPage')
const newInvalidation = (text: string): Step =>
  post('garden-notes/v1/notes', { title: 'A note', text }, 'note')

/** The newest post and what stands in the template of the loop. */
const queryLoop = (inner: string): string =>
  `<!-- wp:query {"query":{"perPage":3,"postType":"post","inherit":false}} --><div class="wp-block-query"><!-- wp:post-template -->${inner}<!-- /wp:post-template --></div><!-- /wp:query -->`

const newest = (more: Readonly<Record<string, unknown>> = {}): Step =>
  post('wp/v2/posts', published('The newest plant', more), 'newest')

/** In the order in which they run; each makes what it needs. */
export const renderings: readonly Rendering[] = [
  {
    title: 'a new post shows in a block of the latest posts',
    thing: 'blocks that list posts',
    content: '<!-- wp:latest-posts /-->',
    write: newPost('Just published'),
  },
  {
    title: 'a new title of a post shows in a block of the latest posts',
    thing: 'blocks that list posts',
    setUp: [newest()],
    content: '<!-- wp:latest-posts /-->',
    write: put('wp/v2/posts/{newest}', { title: 'The newest plant, renamed' }),
  },
  {
    title: 'a new text of a post shows in a block of the latest posts with their texts',
    thing: 'blocks that list posts',
    setUp: [newest()],
    content: '<!-- wp:latest-posts {"displayPostContent":true,"displayAuthor":true} /-->',
    write: put('wp/v2/posts/{newest}', { content: '<p>Another text</p>' }),
  },
  {
    title: 'a new name of an author shows in a block of the latest posts with their authors',
    thing: 'names of authors',
    setUp: [newest({ author: '{otherUser}' })],
    content: '<!-- wp:latest-posts {"displayAuthor":true} /-->',
    write: put('wp/v2/users/{otherUser}', { name: 'Author of the latest' }),
  },
  {
    title: 'a new text of a post shows as excerpt in a query loop',
    thing: 'query loops',
    setUp: [newest()],
    content: queryLoop('<!-- wp:post-title /--><!-- wp:post-excerpt /-->'),
    write: put('wp/v2/posts/{newest}', { excerpt: 'Another excerpt' }),
  },
  {
    title: 'a post that moves to the trash leaves a query loop',
    thing: 'query loops',
    setUp: [newest()],
    content: queryLoop('<!-- wp:post-title /-->'),
    write: { method: 'DELETE', path: 'wp/v2/posts/{newest}' },
  },
  {
    title: 'a new alternative text shows with the featured images of a query loop',
    thing: 'featured images',
    setUp: [newest({ featured_media: '{otherMedia}' })],
    content: queryLoop('<!-- wp:post-featured-image /-->'),
    write: put('wp/v2/media/{otherMedia}', { alt_text: 'A leaf in a loop' }),
  },
  {
    title: 'a new name of a category shows with the terms of a query loop',
    thing: 'names of terms',
    setUp: [newest({ categories: ['{news}'] })],
    content: queryLoop('<!-- wp:post-terms {"term":"category"} /-->'),
    write: put('wp/v2/categories/{news}', { name: 'News of the loop' }),
  },
  {
    title: 'a new name of an author shows in a query loop',
    thing: 'names of authors',
    setUp: [newest({ author: '{otherUser}' })],
    content: queryLoop('<!-- wp:post-author {"showAvatar":false} /-->'),
    write: put('wp/v2/users/{otherUser}', { name: 'Author of the loop' }),
  },
  {
    title: 'a new name of a user shows with an avatar',
    thing: 'avatars',
    content: '<!-- wp:avatar {"userId":{otherUser}} /-->',
    write: put('wp/v2/users/{otherUser}', { name: 'Author of the avatar' }),
  },
  {
    title: 'a new address of a user changes an avatar',
    thing: 'avatars',
    content: '<!-- wp:avatar {"userId":{otherUser}} /-->',
    write: put('wp/v2/users/{otherUser}', { email: 'another@example.org' }),
  },
  {
    title: 'a new biography shows with the author of a content',
    thing: 'names of authors',
    content: '<!-- wp:post-author-biography /--><!-- wp:post-author {"showBio":true} /-->',
    write: put('wp/v2/users/1', { description: 'Grows what is shown' }),
  },
  {
    title: 'a first biography shows where nothing was',
    thing: 'biographies of authors',
    setUp: [put('wp/v2/users/1', { description: '' })],
    content: '<!-- wp:post-author-biography /-->',
    write: put('wp/v2/users/1', { description: 'Grows what is shown' }),
  },
  {
    title: 'a new comment shows in a block of the latest comments',
    thing: 'comments',
    content: '<!-- wp:latest-comments /-->',
    write: post('wp/v2/comments', { post: '{P}', content: 'Shown as the latest' }, 'comment'),
  },
  {
    title: 'a comment that is deleted leaves a block of the latest comments',
    thing: 'comments',
    setUp: [post('wp/v2/comments', { post: '{Q}', content: 'Shown for a while' }, 'comment')],
    content: '<!-- wp:latest-comments /-->',
    write: remove('wp/v2/comments/{comment}'),
  },
  {
    title: 'a first comment shows where nothing was',
    thing: 'comments',
    setUp: [
      post(
        'wp/v2/posts',
        { title: 'Silent', status: 'publish', content: '<!-- wp:comments-title /-->' },
        'silent',
      ),
    ],
    reads: ['wp/v2/posts/{silent}', 'wp/v2/posts?include={silent}'],
    write: post('wp/v2/comments', { post: '{silent}', content: 'The first one here' }, 'comment'),
  },
  {
    title: 'a new comment shows in the comments of its own content',
    thing: 'comments',
    setUp: [
      post(
        'wp/v2/posts',
        {
          title: 'Discussed',
          status: 'publish',
          content:
            '<!-- wp:comments --><div class="wp-block-comments"><!-- wp:comments-title /--><!-- wp:comment-template --><!-- wp:comment-content /--><!-- /wp:comment-template --></div><!-- /wp:comments -->',
        },
        'discussed',
      ),
    ],
    reads: ['wp/v2/posts/{discussed}', 'wp/v2/posts?include={discussed}'],
    write: post('wp/v2/comments', { post: '{discussed}', content: 'The first one' }, 'comment'),
  },
  {
    title: 'a new post shows in the archives and the calendar',
    thing: 'archives and calendars',
    content: '<!-- wp:archives {"showPostCounts":true} /--><!-- wp:calendar /-->',
    write: newPost('In the archive'),
  },
  {
    title: 'a new name of a category shows in a list of categories',
    thing: 'lists of terms',
    content: '<!-- wp:categories /-->',
    write: put('wp/v2/categories/{guides}', { name: 'Guides of the list' }),
  },
  {
    title: 'a post changes the counts in a list of categories',
    thing: 'lists of terms',
    content: '<!-- wp:categories {"showPostCounts":true} /-->',
    write: post('wp/v2/posts', published('Counted', { categories: ['{guides}'] }), 'newPost'),
  },
  {
    title: 'a new name of a tag shows in a tag cloud',
    thing: 'lists of terms',
    content: '<!-- wp:tag-cloud /-->',
    write: put('wp/v2/tags/{tag}', { name: 'Season of the cloud' }),
  },
  {
    title: 'a new title of a page shows in a list of pages',
    thing: 'lists of pages',
    setUp: [newPage('Listed page')],
    content: '<!-- wp:page-list /-->',
    write: put('wp/v2/pages/{newPage}', { title: 'Listed page, renamed' }),
  },
  {
    title: 'the first child of a page shows in a list of children, which was empty and left no trace',
    thing: 'lists of pages',
    setUp: [newPage('Parent of none')],
    content: '<!-- wp:page-list {"parentPageID":{newPage}} /-->',
    write: post('wp/v2/pages', published('The first child', { parent: '{newPage}' }), 'child'),
  },
  {
    title: 'a draft that is published shows in a list of children, which was empty and left no trace',
    thing: 'lists of pages',
    setUp: [
      newPage('Parent of a draft'),
      post('wp/v2/pages', { title: 'A child', status: 'draft', parent: '{newPage}' }, 'child'),
    ],
    content: '<!-- wp:page-list {"parentPageID":{newPage}} /-->',
    write: put('wp/v2/pages/{child}', { status: 'publish' }),
  },
  {
    title: 'a synced pattern that is changed shows in what it is part of',
    thing: 'synced patterns',
    setUp: [post('wp/v2/blocks', published('Pattern'), 'pattern')],
    content: '<!-- wp:block {"ref":{pattern}} /-->',
    write: put('wp/v2/blocks/{pattern}', { content: '<p>Another pattern</p>' }),
  },
  {
    title: 'a synced pattern that is changed shows in what holds a pattern that holds it',
    thing: 'synced patterns',
    setUp: [
      post('wp/v2/blocks', published('Inner'), 'inner'),
      post(
        'wp/v2/blocks',
        { title: 'Outer', status: 'publish', content: '<!-- wp:block {"ref":{inner}} /-->' },
        'outer',
      ),
    ],
    content: '<!-- wp:block {"ref":{outer}} /-->',
    write: put('wp/v2/blocks/{inner}', { content: '<p>Another inner pattern</p>' }),
  },
  {
    title: 'a synced pattern that is published shows where it left no trace as a draft',
    thing: 'synced patterns',
    setUp: [post('wp/v2/blocks', { ...published('Draft'), status: 'draft' }, 'pattern')],
    content: '<!-- wp:block {"ref":{pattern}} /-->',
    write: put('wp/v2/blocks/{pattern}', { status: 'publish' }),
  },
  {
    title: 'a template part that is changed shows in a content that includes it',
    thing: 'template parts',
    content: '<!-- wp:template-part {"slug":"footer","theme":"{theme}"} /-->',
    write: put('wp/v2/template-parts/{theme}//footer', {
      content: '<!-- wp:paragraph --><p>zebra</p><!-- /wp:paragraph -->',
    }),
  },
  {
    title: 'a new template part shows in a content that included it before it was there',
    thing: 'template parts',
    content: '<!-- wp:template-part {"slug":"beds","theme":"{theme}"} /-->',
    write: post('wp/v2/template-parts', { slug: 'beds', theme: '{theme}', content: '<p>beds</p>' }, 'part'),
  },
  {
    title: 'a navigation that is changed shows in a content that includes it',
    thing: 'navigation',
    content: '<!-- wp:navigation {"ref":{navigation}} /-->',
    write: put('wp/v2/navigation/{navigation}', {
      content: '<!-- wp:navigation-link {"label":"Beds","url":"/beds","kind":"custom"} /-->',
    }),
  },
  {
    title: 'a navigation that is published shows where it left no trace as a draft',
    thing: 'navigation',
    setUp: [
      post(
        'wp/v2/navigation',
        {
          title: 'Later',
          status: 'draft',
          content: '<!-- wp:navigation-link {"label":"Later","url":"/later","kind":"custom"} /-->',
        },
        'later',
      ),
    ],
    content: '<!-- wp:navigation {"ref":{later}} /-->',
    write: put('wp/v2/navigation/{later}', { status: 'publish' }),
  },
  {
    title: 'a new title of a page shows in a navigation that lists pages',
    thing: 'navigation',
    setUp: [
      newPage('In the navigation'),
      post(
        'wp/v2/navigation',
        { title: 'Pages', status: 'publish', content: '<!-- wp:page-list /-->' },
        'list',
      ),
    ],
    content: '<!-- wp:navigation {"ref":{list}} /-->',
    write: put('wp/v2/pages/{newPage}', { title: 'In the navigation, renamed' }),
  },
  {
    title: 'a menu item that is renamed shows in a menu that a shortcode renders',
    thing: 'classic menus',
    content: '[garden-menu]',
    write: put('wp/v2/menu-items/{menuItem}', { title: 'Another link of the menu' }),
  },
  {
    title: 'a new menu item shows in a menu that a shortcode renders',
    thing: 'classic menus',
    content: '[garden-menu]',
    write: post(
      'wp/v2/menu-items',
      { title: 'New link', url: 'https://example.org/new', status: 'publish', menus: '{menu}' },
      'newMenuItem',
    ),
  },
  {
    title: 'a menu item that is deleted leaves a menu that a shortcode renders',
    thing: 'classic menus',
    content: '[garden-menu]',
    write: remove('wp/v2/menu-items/{newMenuItem}'),
  },
  {
    title: 'a page that is renamed shows in a menu that links to it',
    thing: 'classic menus',
    content: '[garden-menu]',
    write: put('wp/v2/pages/{menuPage}', { title: 'Linked page of the menu' }),
  },
  {
    title: 'a category that is renamed shows in a menu that links to it',
    thing: 'classic menus',
    content: '[garden-menu]',
    write: put('wp/v2/categories/{menuCategory}', { name: 'Trees of the menu' }),
  },
  {
    title: 'a form that is saved shows in a content that renders it by shortcode',
    thing: 'things of plugins',
    setUp: [newInvalidation('aloe')],
    content: '[garden-note id="{note}"]',
    write: put('garden-notes/v1/notes/{note}', { text: 'birch' }),
  },
  {
    title: 'a form that is saved shows in a content that renders it by block',
    thing: 'things of plugins',
    setUp: [newInvalidation('aloe')],
    content: '<!-- wp:garden/note {"id":{note}} /-->',
    write: put('garden-notes/v1/notes/{note}', { text: 'birch' }),
  },
  {
    title: 'a form that is saved shows in a content that renders it as bare text',
    thing: 'things of plugins',
    setUp: [newInvalidation('aloe')],
    content: '[garden-plain id="{note}"]',
    write: put('garden-notes/v1/notes/{note}', { text: 'birch' }),
  },
  {
    title: 'a form that is deleted leaves a content that renders it as bare text',
    thing: 'things of plugins',
    setUp: [newInvalidation('aloe')],
    content: '[garden-plain id="{note}"]',
    write: { method: 'DELETE', path: 'garden-notes/v1/notes/{note}' },
  },
  {
    title: 'a new caption shows in a gallery that a shortcode renders',
    thing: 'galleries and playlists',
    content: '[gallery ids="{otherMedia}"]',
    write: put('wp/v2/media/{otherMedia}', { caption: 'A leaf in a gallery' }),
  },
  {
    title: 'an image that is deleted leaves a gallery',
    thing: 'galleries and playlists',
    setUp: [post('wp/v2/media', 'image', 'shortLived')],
    content: '[gallery ids="{otherMedia},{shortLived}"]',
    write: remove('wp/v2/media/{shortLived}'),
  },
  {
    title: 'the first image that is attached shows in a gallery, which was empty and left no trace',
    thing: 'galleries and playlists',
    setUp: [post('wp/v2/posts', { title: 'Images', status: 'publish', content: '[gallery]' }, 'gallery')],
    reads: ['wp/v2/posts/{gallery}', 'wp/v2/posts?include={gallery}'],
    write: post('wp/v2/media?post={gallery}', 'image', 'attached'),
  },
  {
    title: 'an image that is deleted leaves what shows it as featured image',
    thing: 'featured images',
    setUp: [
      post('wp/v2/media', 'image', 'shortLived'),
      post(
        'wp/v2/posts',
        {
          title: 'Featured',
          status: 'publish',
          content: '<!-- wp:post-featured-image /-->',
          featured_media: '{shortLived}',
        },
        'featured',
      ),
    ],
    reads: ['wp/v2/posts/{featured}', 'wp/v2/posts/{featured}?_embed=1', 'wp/v2/posts?include={featured}'],
    write: remove('wp/v2/media/{shortLived}'),
  },
  {
    title: 'a new alternative text shows with the featured image of a content',
    thing: 'featured images',
    setUp: [
      post(
        'wp/v2/posts',
        {
          title: 'Featured',
          status: 'publish',
          content: '<!-- wp:post-featured-image /-->',
          featured_media: '{otherMedia}',
        },
        'featured',
      ),
    ],
    reads: ['wp/v2/posts/{featured}', 'wp/v2/posts/{featured}?_embed=1'],
    write: put('wp/v2/media/{otherMedia}', { alt_text: 'Its own leaf' }),
  },
  {
    title: 'an image that is cropped changes the images of a content',
    thing: 'images in texts',
    setUp: [post('wp/v2/media', 'image', 'inText')],
    content:
      '<!-- wp:image {"id":{inText},"sizeSlug":"full"} --><figure class="wp-block-image size-full"><img src="{inTextUrl}" alt="" class="wp-image-{inText}"/></figure><!-- /wp:image -->',
    write: remove('wp/v2/media/{inText}'),
  },
  {
    title: 'a new title of the site shows in a content',
    thing: 'settings',
    content: '<!-- wp:site-title /--><!-- wp:site-tagline /-->',
    write: post('wp/v2/settings', { title: 'Garden of the settings' }),
  },
  {
    title: 'a tagline shows where there was none and no trace of it',
    thing: 'settings',
    setUp: [post('wp/v2/settings', { description: '' })],
    content: '<!-- wp:site-tagline /-->',
    write: post('wp/v2/settings', { description: 'All that grows' }),
  },
  {
    title: 'a logo shows where there was none and no trace of it',
    thing: 'settings',
    content: '<!-- wp:site-logo /-->',
    write: post('wp/v2/settings', { site_logo: '{otherMedia}' }),
  },
  {
    title: 'global styles change the layout of groups',
    thing: 'global styles',
    content:
      '<!-- wp:group {"layout":{"type":"constrained"}} --><div class="wp-block-group"><!-- wp:paragraph --><p>In a group</p><!-- /wp:paragraph --></div><!-- /wp:group -->',
    write: put('wp/v2/global-styles/{globalStyles}', {
      settings: { useRootPaddingAwareAlignments: false },
    }),
  },
  {
    title: 'a new name of a category changes the order of the categories of a post',
    thing: 'order of terms',
    setUp: [
      post('wp/v2/categories', { name: 'Aaa' }, 'first'),
      post('wp/v2/categories', { name: 'Bbb' }, 'second'),
      post('wp/v2/posts', published('Ordered', { categories: ['{first}', '{second}'] }), 'ordered'),
    ],
    reads: [
      'wp/v2/posts/{ordered}',
      'wp/v2/posts?include={ordered}',
      'wp/v2/posts?include={ordered}&_fields=id,categories',
    ],
    write: put('wp/v2/categories/{first}', { name: 'Ccc' }),
  },
  {
    title: 'a new name of a tag changes the order of the tags of a post',
    thing: 'order of terms',
    setUp: [
      post('wp/v2/tags', { name: 'Aaa' }, 'first'),
      post('wp/v2/tags', { name: 'Bbb' }, 'second'),
      post('wp/v2/posts', published('Ordered', { tags: ['{first}', '{second}'] }), 'ordered'),
    ],
    reads: ['wp/v2/posts/{ordered}', 'wp/v2/posts?include={ordered}', 'wp/v2/posts/{ordered}?_fields=tags'],
    write: put('wp/v2/tags/{first}', { name: 'Ccc' }),
  },
  {
    title: 'a new name of a category shows where it is embedded',
    thing: 'names of terms',
    reads: ['wp/v2/posts/{P}?_embed=1', 'wp/v2/posts?include={P}&_embed=wp:term'],
    write: put('wp/v2/categories/{guides}', { name: 'Guides, embedded' }),
  },
  {
    title: 'a new name of a user shows where it is embedded',
    thing: 'names of authors',
    setUp: [newest({ author: '{otherUser}' })],
    reads: ['wp/v2/posts/{newest}?_embed=1', 'wp/v2/posts?include={newest}&_embed=author'],
    write: put('wp/v2/users/{otherUser}', { name: 'Author, embedded' }),
  },
  {
    title: 'a new comment shows where replies are embedded',
    thing: 'comments',
    setUp: [newest()],
    reads: ['wp/v2/posts/{newest}?_embed=1', 'wp/v2/posts?include={newest}&_embed=replies'],
    write: post('wp/v2/comments', { post: '{newest}', content: 'Embedded' }, 'comment'),
  },
  {
    title: 'a new title of a post shows in its oEmbed answer',
    thing: 'oEmbed answers',
    setUp: [newest()],
    reads: ['oembed/1.0/embed?url={newestUrl}&_fields=title,author_name'],
    write: put('wp/v2/posts/{newest}', { title: 'Embedded elsewhere' }),
  },
  {
    title: 'a new name of an author shows in an oEmbed answer',
    thing: 'oEmbed answers',
    setUp: [newest({ author: '{otherUser}' })],
    reads: ['oembed/1.0/embed?url={newestUrl}&_fields=title,author_name'],
    write: put('wp/v2/users/{otherUser}', { name: 'Author of the embed' }),
  },
  {
    title: 'a new title of a page shows in the search',
    thing: 'results of the search',
    setUp: [newPage('Searchable page')],
    reads: ['wp/v2/search?search=searchable'],
    write: put('wp/v2/pages/{newPage}', { title: 'Searchable page, renamed' }),
  },
  {
    title: 'a new post shows in a block that is rendered for an editor',
    thing: 'blocks rendered for editors',
    caller: 'admin',
    reads: ['wp/v2/block-renderer/core/latest-posts?context=edit'],
    write: newPost('Shown to an editor'),
  },
  {
    title: 'a new post shows in a classic widget that stands in a content, and has no class',
    thing: 'widgets',
    setUp: [
      post(
        'wp/v2/widgets',
        { id_base: 'recent-posts', sidebar: 'wp_inactive_widgets', instance: { raw: { title: 'Latest' } } },
        'widget',
      ),
    ],
    content: '<!-- wp:legacy-widget {"id":"{widget}"} /-->',
    write: newPost('Shown in a widget'),
  },
  {
    title: 'a widget that is changed shows in a content where it stands',
    thing: 'widgets',
    content: '<!-- wp:legacy-widget {"id":"{widget}"} /-->',
    write: put('wp/v2/widgets/{widget}', { instance: { raw: { title: 'Newest' } } }),
  },
]
