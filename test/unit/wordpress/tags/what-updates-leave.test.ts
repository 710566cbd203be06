import { describe, expect, test } from 'vitest'
import { found, item, json, list, type Read, tagger } from '../../cache/site-fixture.ts'

type Properties = Readonly<Record<string, unknown>>

type Update = {
  readonly collection: string
  readonly id?: number
  readonly after: Properties
  readonly given?: readonly string[]
  /** What stored responses show. */
  readonly known?: unknown
  readonly method?: string
  readonly status?: number
}

const reaches = (update: Update, read: Read): boolean => {
  const { collection, id, after, given, known, method = 'PUT', status = 200 } = update
  const routeMatch =
    id === undefined ? found(collection, 'collection') : found(collection, 'item', { id: String(id) })
  const shown = () => (known === undefined ? [] : [Buffer.from(JSON.stringify(known))])
  const written = tagger.writtenTags(routeMatch, () => given, method, json(after, [], status), shown)
  const stored = tagger.storedTags(read.found, read.args ?? {}, json(read.body ?? {}, read.headers ?? []))
  return written.some((tag) => stored.includes(tag))
}

const revisions = (count: number, newest: number): Properties => ({
  'version-history': [{ count, href: '/revisions' }],
  'predecessor-version': [{ id: newest, href: '/revisions/x' }],
})

const post: Properties = {
  id: 5,
  type: 'post',
  status: 'publish',
  date: '2026-01-01T00:00:00',
  date_gmt: '2026-01-01T00:00:00',
  slug: 'five',
  link: '/five',
  author: 1,
  categories: [2],
  tags: [],
  sticky: false,
  format: 'standard',
  title: { rendered: 'Five' },
  content: { rendered: '<p>Five</p>', protected: false },
  excerpt: { rendered: '<p>Five</p>' },
  _links: revisions(2, 77),
}

const partOf = (kind: 'revisions' | 'autosaves', id: string): Read => ({
  found: found('posts', kind, kind === 'revisions' ? { parent: id } : { id }),
  body: [],
})

describe('an update of a post that is known from before', () => {
  const sticky: Update = {
    collection: 'posts',
    id: 5,
    after: { ...post, sticky: true },
    given: ['sticky'],
    known: post,
  }
  const search = list('posts', { search: 'five' })
  const results: Read = { found: found('search', 'lookup'), args: { type: 'post' }, body: [] }
  const embedding: Read = item('pages', 9, {
    _embedded: { 'wp:featuredmedia': [{ id: 8, type: 'attachment' }] },
  })

  test.each<[string, Update, Read, boolean]>([
    ['that gives no text leaves searches', sticky, search, false],
    ['that gives no text leaves results of the search', sticky, results, false],
    [
      'that gives no text reaches lists by the last change',
      sticky,
      list('posts', { orderby: 'modified' }),
      true,
    ],
    [
      'that gives no text reaches a search that shows it',
      sticky,
      list('posts', { search: 'five' }, [post]),
      true,
    ],
    ['that gives a text reaches searches', { ...sticky, given: ['sticky', 'excerpt'] }, search, true],
    ['whose content was not read reaches searches', { ...sticky, given: undefined as never }, search, true],
    [
      'that makes a revision reaches searches: raw content has changed',
      { ...sticky, after: { ...post, sticky: true, _links: revisions(3, 78) } },
      search,
      true,
    ],
    [
      'that does not tell of revisions reaches searches',
      { ...sticky, after: { ...post, sticky: true, _links: {} } },
      search,
      true,
    ],
    ['that makes no revision leaves its revisions', sticky, partOf('revisions', '5'), false],
    [
      'that makes one reaches its revisions',
      { ...sticky, after: { ...post, sticky: true, _links: revisions(3, 78) } },
      partOf('revisions', '5'),
      true,
    ],
    [
      'that makes one and drops the oldest reaches its revisions',
      { ...sticky, after: { ...post, sticky: true, _links: revisions(2, 78) } },
      partOf('revisions', '5'),
      true,
    ],
    ['leaves its autosaves', sticky, partOf('autosaves', '5'), false],
    [
      'of its author reaches its revisions and autosaves, which another may read then',
      { ...sticky, after: { ...post, author: 2 }, given: ['author'] },
      partOf('autosaves', '5'),
      true,
    ],
    ...(['publish', 'private', 'draft'] as const).flatMap((status) =>
      [item('comments', 9, { post: 5 }), item('media', 9, { post: 5 }), embedding].map(
        (read): [string, Update, Read, boolean] => [
          `of the author of a ${status} one reaches ${read.found?.row.id} that only authors may read`,
          {
            ...sticky,
            after: { ...post, status, author: 2 },
            given: ['author'],
            known: { ...post, status },
          },
          read,
          true,
        ],
      ),
    ),
    [
      'of its status reaches its revisions and autosaves',
      { ...sticky, after: { ...post, status: 'draft' }, given: ['status'] },
      partOf('autosaves', '5'),
      true,
    ],
    [
      'of its category leaves categories that it never had',
      { ...sticky, after: { ...post, categories: [3] }, given: ['categories'] },
      item('categories', 4),
      false,
    ],
    [
      'of its category reaches the one that it had',
      { ...sticky, after: { ...post, categories: [3] }, given: ['categories'] },
      item('categories', 2),
      true,
    ],
    [
      'of its category reaches lists of the children of one',
      { ...sticky, after: { ...post, categories: [3] }, given: ['categories'] },
      list('categories', { parent: 9 }),
      true,
    ],
  ])('%s', (_, update, read, expected) => {
    expect(reaches(update, read)).toBe(expected)
  })
})

test('a post without tags that is no longer public reaches the list of its tags, which is refused then', () => {
  const hidden: Update = { collection: 'posts', id: 5, after: { ...post, status: 'pending' }, known: post }
  expect(reaches(hidden, list('tags', { post: 5 }))).toBe(true)
})

test('the title of an image is in its oEmbed response', () => {
  const image: Properties = {
    ...{
      id: 8,
      type: 'attachment',
      status: 'inherit',
      date: '2026-01-01',
      date_gmt: '2026-01-01',
      slug: 'leaf',
    },
    ...{
      link: '/leaf',
      author: 1,
      post: null,
      media_type: 'image',
      mime_type: 'image/png',
      source_url: '/leaf.png',
    },
    ...{ media_details: {}, title: { rendered: 'Leaf' } },
  }
  const titled = {
    collection: 'media',
    id: 8,
    after: { ...image, title: { rendered: 'Bark' } },
    known: image,
  }
  expect(reaches(titled, { found: found('oembed', 'lookup'), body: {} })).toBe(true)
  expect(reaches(titled, item('users', 1))).toBe(false)
})

describe('a write to what only editors see', () => {
  const draft: Properties = { ...post, status: 'draft' }
  const page: Properties = { ...draft, type: 'page', parent: 0, menu_order: 0 }
  const update = (after: Properties, known: Properties = draft): Update => ({
    collection: known['type'] === 'page' ? 'pages' : 'posts',
    id: 5,
    after,
    known,
  })
  const deletion: Update = { ...update({ ...draft, status: 'trash' }), method: 'DELETE' }
  const forced: Update = { ...update({ deleted: true, previous: draft }), method: 'DELETE' }
  const attached = item('media', 8, { post: 5 })
  const link = item('menu-items', 9, { type: 'post_type', object: 'post', object_id: 5 })
  const child = item('pages', 6, { parent: 5, link: '/five/six' })
  const linkOfChild = item('menu-items', 9, { type: 'post_type', object: 'page', object_id: 6 })
  const plain = item('posts', 9, { content: { rendered: '<p>Plain.</p>' } })
  const goneParent: Update = { ...update({ deleted: true, previous: page }, page), method: 'DELETE' }

  test.each<[string, Update, Read, boolean]>([
    [
      'of its texts leaves the comments',
      update({ ...draft, title: { rendered: 'Six' } }),
      list('comments'),
      false,
    ],
    ['that moves it to the trash reaches the comments, which go with it', deletion, list('comments'), true],
    ['that deletes it reaches the comments, which go with it', forced, list('comments'), true],
    ['that deletes it reaches media, which are attached to nothing then', forced, attached, true],
    ['that deletes it leaves the lists of what is public', forced, list('posts'), false],
    ['that deletes it leaves the search', forced, { found: found('search', 'lookup'), body: [] }, false],
    ['that deletes it reaches the menu items that lead to it', forced, link, true],
    ['that deletes it reaches the lists of its terms', forced, list('categories', { post: 5 }), true],
    [
      'that deletes a page reaches the settings',
      { ...update({ ...page, status: 'trash' }, page), method: 'DELETE' },
      { found: found('settings', 'lookup'), body: {} },
      true,
    ],
    [
      'that deletes a page reaches the search, which shows the permalinks of the pages below it',
      goneParent,
      { found: found('search', 'lookup'), body: [] },
      true,
    ],
    [
      'that deletes a page reaches the oEmbeds of the pages below it',
      goneParent,
      { found: found('oembed', 'lookup'), body: {} },
      true,
    ],
    ['that deletes a page reaches the menu items of the pages below it', goneParent, linkOfChild, true],
    [
      'that deletes a page reaches content with an empty list of pages, which gets those below it',
      goneParent,
      plain,
      true,
    ],
    [
      'of its categories reaches the list of its categories',
      update({ ...draft, categories: [9] }),
      list('categories', { post: 5 }),
      true,
    ],
    [
      'that keeps its categories leaves the lists of categories',
      update({ ...draft, tags: [9] }),
      list('categories', { post: 5 }),
      false,
    ],
    [
      'of the slug of a page reaches the pages below it, whose permalinks hold it',
      update({ ...page, slug: 'cinq' }, page),
      child,
      true,
    ],
    [
      'of the parent of a page reaches the pages below it, whose permalinks begin with those of both',
      update({ ...page, parent: 3 }, page),
      child,
      true,
    ],
    [
      'of the author of a page reaches what is attached to it, which only authors may read',
      update({ ...page, author: 2 }, page),
      attached,
      true,
    ],
    [
      'of the texts of a page leaves what is attached to it',
      update({ ...page, title: { rendered: 'Six' } }, page),
      attached,
      false,
    ],
    [
      'of the texts of a page leaves the pages below it',
      update({ ...page, title: { rendered: 'Six' } }, page),
      child,
      false,
    ],
  ])('%s', (_, write, read, expected) => {
    expect(reaches(write, read)).toBe(expected)
  })
})

describe('the deletion of a published page', () => {
  const page: Properties = { ...post, type: 'page', parent: 0, menu_order: 0 }
  const deletion: Update = {
    collection: 'pages',
    id: 5,
    after: { deleted: true, previous: page },
    known: page,
    method: 'DELETE',
  }

  test.each<[string, Read]>([
    [
      'menu items of the pages below it',
      item('menu-items', 9, { type: 'post_type', object: 'page', object_id: 6 }),
    ],
    [
      'content with an empty list of pages, which gets those below it',
      item('posts', 9, { content: { rendered: '<p>Plain.</p>' } }),
    ],
  ])('reaches %s', (_, read) => {
    expect(reaches(deletion, read)).toBe(true)
  })
})

describe('a new post', () => {
  const created: Update = { collection: 'posts', after: post, method: 'POST', status: 201 }

  test('without tags leaves tags', () => {
    expect(reaches(created, list('tags'))).toBe(false)
  })

  test('that does not tell its tags reaches them', () => {
    const { tags: _, ...untold } = post
    expect(reaches({ ...created, after: untold }, list('tags'))).toBe(true)
    expect(reaches({ ...created, after: untold }, item('tags', 9))).toBe(true)
  })
})

describe('the new name of a term', () => {
  const term = { id: 2, taxonomy: 'category', slug: 'guides', link: '/guides', parent: 0, name: 'Guides' }
  const renamed: Update = {
    collection: 'categories',
    id: 2,
    after: { ...term, name: 'Zeal' },
    given: ['name'],
    known: term,
  }

  test.each<[string, Read, boolean]>([
    ['leaves posts that have no other', item('posts', 9, { categories: [2], tags: [], link: '/' }), false],
    ['reaches posts that sort it among others', item('posts', 9, { categories: [3, 2], tags: [] }), true],
    ['reaches posts that do not say how many they have', item('posts', 9, { link: '/', tags: [] }), true],
    [
      'reaches menu items that lead to it',
      item('menu-items', 9, { type: 'taxonomy', object: 'category', object_id: 2 }),
      true,
    ],
  ])('%s', (_, read, expected) => {
    expect(reaches(renamed, read)).toBe(expected)
  })

  test('with a new slug it reaches all its posts', () => {
    const moved = { ...renamed, after: { ...term, slug: 'zeal' } }
    expect(reaches(moved, item('posts', 9, { categories: [2], tags: [] }))).toBe(true)
  })
})

describe('a new slug of a category', () => {
  const category = { id: 2, taxonomy: 'category', slug: 'guides', link: '/guides', parent: 0, name: 'Guides' }
  const moved: Update = {
    collection: 'categories',
    id: 2,
    after: { ...category, slug: 'help', link: '/help' },
    given: ['slug'],
    known: category,
  }
  const below = { id: 3, taxonomy: 'category', link: '/guides/short', name: 'Short' }

  test.each<[string, Read]>([
    ['the categories below it', item('categories', 3, { ...below, parent: 2 })],
    [
      'posts that embed a category below it',
      item('posts', 9, { categories: [3], tags: [], _embedded: { 'wp:term': [[below]] } }),
    ],
    [
      'menu items of a category below it',
      item('menu-items', 9, { type: 'taxonomy', object: 'category', object_id: 3 }),
    ],
    [
      'posts of a category below it',
      item('posts', 9, { categories: [3], tags: [], link: '/guides/short/nine' }),
    ],
    ['comments, whose links begin with those of their posts', item('comments', 4, { post: 9 })],
    ['searches', { found: found('search', 'lookup'), body: [] }],
  ])('reaches %s', (_, read) => {
    expect(reaches(moved, read)).toBe(true)
  })
})

describe('an update of settings', () => {
  const update: Update = {
    collection: 'settings',
    after: { title: 'New' },
    given: ['title'],
    known: { title: 'Old' },
  }
  const plain = item('posts', 6, { content: { rendered: '<p>Plain.</p>' }, categories: [], tags: [] })
  const dynamic = item('posts', 6, { content: { rendered: '<h1 class="wp-block-site-title">Old</h1>' } })
  test.each<[string, Update, Read, boolean]>([
    ['of the title leaves terms', update, list('categories'), false],
    ['of the title leaves plain contents', update, plain, false],
    ['of the title reaches a template without author', update, item('templates', 'a//b'), true],
    ['of the title reaches a template part without author', update, item('template-parts', 'a//b'), true],
    ['of the title reaches contents that may show it', update, dynamic, true],
    ['of the title reaches the settings', update, list('settings', {}, { title: 'Old' }), true],
    ['of a title that was empty reaches plain contents', { ...update, known: { title: ' ' } }, plain, true],
    ['of a title that is not known reaches plain contents', { ...update, known: undefined }, plain, true],
    [
      'of another setting reaches everything',
      { ...update, given: ['title', 'page_on_front'] },
      list('categories'),
      true,
    ],
    [
      'that was not read reaches everything',
      { ...update, given: undefined as never },
      list('categories'),
      true,
    ],
    ['of the posts per page leaves plain contents', { ...update, given: ['posts_per_page'] }, plain, false],
  ])('%s', (_, one, read, expected) => {
    expect(reaches(one, read)).toBe(expected)
  })
})

describe('an update of a user', () => {
  const reachesCallers = (given: readonly string[] | undefined): boolean => {
    const routeMatch = found('users', 'item', { id: '1' })
    const tags = tagger.writtenTags(routeMatch, () => given, 'PUT', json({ id: 1 }))
    return tags.includes(tagger.callers ?? '')
  }

  test('of texts leaves what is kept for single callers', () => {
    expect(reachesCallers(['description', 'first_name'])).toBe(false)
  })

  test.each(['roles', 'password', 'email', 'locale', 'meta', 'acf'])('of %s does not', (name) => {
    expect(reachesCallers(['description', name])).toBe(true)
  })

  test.each(['templates', 'template-parts'])(
    'reaches %s, which show its name or may have its slug in their links',
    (collection) => {
      const renamed: Update = { collection: 'users', id: 1, after: { id: 1, name: 'New' }, given: ['name'] }
      expect(reaches(renamed, list(collection))).toBe(true)
    },
  )

  test('of what is not known does not', () => {
    expect(reachesCallers(undefined)).toBe(true)
  })

  const user: Properties = {
    ...{ id: 1, name: 'A', slug: 'a', link: '/a', url: '', roles: ['author'], capabilities: {} },
    ...{ avatar_urls: { 24: '/24' }, description: '' },
  }
  const plain = item('pages', 6, { content: { rendered: '<p>Plain.</p>' } })
  const described: Update = {
    collection: 'users',
    id: 1,
    after: { ...user, description: 'New' },
    given: ['description'],
  }
  test.each<[string, Update, boolean]>([
    ['a description that was empty reaches plain contents', { ...described, known: user }, true],
    ['a description that is not known reaches plain contents', described, true],
    ['a content that was not read reaches plain contents', { ...described, given: undefined as never }, true],
    ['a first name leaves plain contents', { ...described, given: ['first_name'] }, false],
    ['the same description leaves plain contents', { ...described, known: described.after }, false],
  ])('%s', (_, update, expected) => {
    expect(reaches(update, plain)).toBe(expected)
  })
})

describe('a comment', () => {
  const comment = { id: 3, post: 5, parent: 0, status: 'approved', type: 'comment' }
  const created: Update = { collection: 'comments', after: comment, method: 'POST', status: 201 }
  const approved: Update = { collection: 'comments', id: 3, after: comment, given: ['status'] }
  const shown = (more: Properties): readonly unknown[] => [{ ...comment, id: 2, ...more }]
  const its = item('posts', 5, { content: { rendered: '' } })
  const embedding: Read = { ...its, args: { _embed: true } }

  test.each<[string, Update, Read, boolean]>([
    ['is the first: where its post renders comments, nothing was', created, its, true],
    ['is the first that is approved', approved, its, true],
    ['is not the first', { ...created, known: shown({}) }, its, false],
    ['is not the first that is approved', { ...approved, known: shown({}) }, its, false],
    ['is the first beside one that waits', { ...created, known: shown({ status: 'hold' }) }, its, true],
    ['is the first beside a note', { ...created, known: shown({ type: 'note' }) }, its, true],
    ['is the first of its post', { ...created, known: shown({ post: 6 }) }, its, true],
    ['is not the first, but embedded', { ...created, known: shown({}) }, embedding, true],
    ['is the first of another post', created, item('posts', 6), false],
    ['is the first of an image', created, item('media', 5), true],
  ])('%s', (_, update, read, expected) => {
    expect(reaches(update, read)).toBe(expected)
  })
})

describe('a new menu item', () => {
  const created = { id: 9, type: 'custom', status: 'publish', menus: 3, invalid: false }
  const plain = item('posts', 6, { content: { rendered: '<p>Plain.</p>' } })
  const beside = (known: unknown): Update => ({
    collection: 'menu-items',
    after: created,
    method: 'POST',
    status: 201,
    known,
  })

  test.each<[string, unknown, boolean]>([
    ['leaves plain contents when its menu had another', [{ ...created, id: 8 }], false],
    ['reaches them when another menu had one', [{ ...created, id: 8, menus: 4 }], true],
    ['reaches them when the other one was a draft', [{ ...created, id: 8, status: 'draft' }], true],
    ['reaches them when the other one led nowhere', [{ ...created, id: 8, invalid: true }], true],
    ['reaches them when nothing is known of its menu', undefined, true],
  ])('%s', (_, known, expected) => {
    expect(reaches(beside(known), plain)).toBe(expected)
  })
})

describe('an update of what contents are made of', () => {
  const plain = item('posts', 6, { content: { rendered: '<p class="has-text-align-center">Plain.</p>' } })

  test('a synced pattern with another title leaves contents, with another content it does not', () => {
    const pattern = {
      id: 7,
      type: 'wp_block',
      status: 'publish',
      slug: 'seven',
      content: { raw: '<p>x</p>', protected: false },
      wp_pattern_sync_status: '',
    }
    const update: Update = {
      collection: 'blocks',
      id: 7,
      after: { ...pattern, title: { raw: 'New' } },
      known: pattern,
    }
    expect(reaches(update, plain)).toBe(false)
    const content = { raw: '<p>y</p>', protected: false }
    expect(reaches({ ...update, after: { ...pattern, content } }, plain)).toBe(true)
    expect(reaches({ ...update, known: undefined }, plain)).toBe(true)
  })

  test('a synced pattern with other categories reaches a cloud of them', () => {
    const pattern = {
      ...{ id: 7, type: 'wp_block', status: 'publish', slug: 'seven', wp_pattern_sync_status: '' },
      content: { raw: '<p>x</p>', protected: false },
      wp_pattern_category: [3],
    }
    const after = { ...pattern, wp_pattern_category: [4] }
    const update: Update = { collection: 'blocks', id: 7, after, known: pattern }
    const cloud = item('posts', 6, { content: { rendered: '<p class="wp-block-tag-cloud">Three</p>' } })
    expect(reaches(update, cloud)).toBe(true)
    expect(reaches(update, plain)).toBe(false)
  })

  test('other colours leave contents, other blocks do not', () => {
    const styles = { id: 8, settings: {}, styles: { color: { text: '#111111' }, blocks: {} } }
    const after = { ...styles, styles: { color: { text: '#222222' }, blocks: {} } }
    const update: Update = { collection: 'global-styles', id: 8, after, known: styles }
    expect(reaches(update, plain)).toBe(false)
    expect(reaches({ ...update, known: { ...styles, styles: [] } }, plain)).toBe(true)
    const blocks = { ...styles, styles: { ...styles.styles, blocks: { 'core/group': {} } } }
    expect(reaches({ ...update, after: blocks }, plain)).toBe(true)
  })
})
