import { describe, expect, test } from 'vitest'
import type { Endpoint } from '../../../../src/service/row.ts'
import { createPropertyReaches } from '../../../../src/wordpress/routes/property-reaches.ts'
import { siteRows } from '../../../../src/wordpress/routes/route-table.ts'
import { createSiteTagger } from '../../../../src/wordpress/tags/site-tagger.ts'
import { siteTags } from '../../../../src/wordpress/tags/tags.ts'
import { found, item, json, list, type Read } from '../../cache/site-fixture.ts'

const reachesOf = createPropertyReaches()
const tagger = createSiteTagger({ service: 'site', table: siteTags, properties: reachesOf })

const head = { yoast_head_json: { title: 'A - B' } }
const post = {
  ...{ type: 'post', status: 'publish', title: { rendered: 'A' }, author: 2, categories: [3], tags: [4] },
  ...{ featured_media: 5, slug: 'a', link: 'https://blog.test/a/', date: 'd', date_gmt: 'd' },
  ...{
    sticky: false,
    format: 'standard',
    guid: { rendered: 'g' },
    excerpt: { rendered: '', protected: false },
  },
  content: { rendered: '<p class="wp-image-6">A</p>', protected: false },
}
const aPost = item('posts', 1, { ...post, ...head })
const category = {
  name: 'A',
  slug: 'a',
  link: 'l',
  taxonomy: 'category',
  count: 1,
  parent: 0,
  description: '',
}

type Written = { readonly status?: number; readonly before?: object; readonly given?: readonly string[] }

/** Does a write with this response reach what is stored? `before`: the item as a stored response shows it. */
const reaches = (
  collection: string,
  body: { readonly id: number; readonly [name: string]: unknown },
  read: Read,
  { status = 200, before, given }: Written = {},
): boolean => {
  const stored = new Set(tagger.storedTags(read.found, read.args ?? {}, json(read.body, read.headers)))
  const row =
    status === 201 ? found(collection, 'collection') : found(collection, 'item', { id: String(body.id) })
  const shown = () => (before === undefined ? [] : [Buffer.from(JSON.stringify({ id: body.id, ...before }))])
  const written = tagger.writtenTags(row, () => given, 'POST', json(body, [], status), shown)
  return written.some((tag) => stored.has(tag))
}

describe('a response with what a plugin for search engines shows of its item', () => {
  const image = {
    type: 'attachment',
    slug: 'i',
    link: 'i',
    status: 'inherit',
    post: null,
    source_url: 's',
    alt_text: 'a',
  }
  const full = {
    ...image,
    ...{ date: 'd', date_gmt: 'd', author: 1, media_type: 'image', mime_type: 'm', media_details: {} },
  }
  const renamed = { ...category, name: 'B' }

  test('is reached by a change of its featured image, of an image in its text, of its category, and by a comment to it', () => {
    for (const id of [5, 6])
      expect(reaches('media', { id, ...full, alt_text: 'b' }, aPost, { before: full })).toBe(true)
    expect(reaches('categories', { id: 3, ...category, description: 'b' }, aPost, { before: category })).toBe(
      true,
    )
    expect(
      reaches('comments', { id: 9, post: 1, parent: 0, status: 'approved' }, aPost, { status: 201 }),
    ).toBe(true)
  })

  test('is reached by a user, by settings, and by what may be in the breadcrumbs of any item', () => {
    expect(reaches('users', { id: 8, name: 'C' }, aPost)).toBe(true)
    expect(reaches('settings', { id: 1 }, aPost, { given: ['title'] })).toBe(true)
    expect(reaches('categories', { id: 7, ...renamed }, aPost, { before: category })).toBe(true)
    expect(reaches('pages', { id: 7, title: { rendered: 'A' } }, aPost)).toBe(true)
    expect(reaches('media', { id: 7, ...full }, aPost)).toBe(true)
  })

  test('is not reached by texts of another post, image or category, nor by a comment to another post', () => {
    const other = { ...post, type: 'post', ...head, content: { rendered: '<p>B</p>', protected: false } }
    const now = {
      ...other,
      content: { rendered: '<p>C</p>', protected: false },
      yoast_head_json: { title: 'C' },
    }
    expect(reaches('posts', { id: 2, ...now }, aPost, { before: other })).toBe(false)
    expect(reaches('media', { id: 7, ...full, alt_text: 'b' }, aPost, { before: full })).toBe(false)
    expect(reaches('categories', { id: 7, ...category, description: 'b' }, aPost, { before: category })).toBe(
      false,
    )
    expect(
      reaches('comments', { id: 9, post: 2, parent: 0, status: 'approved' }, aPost, { status: 201 }),
    ).toBe(false)
  })

  test('is not reached as what renders other items: the HTML of the property is no content', () => {
    const html = '<script type="application/ld+json" class="yoast-schema-graph">{}</script>'
    const withHtml = item('categories', 3, { ...category, yoast_head: html, ...head })
    const now = { ...post, content: { rendered: '<p>C</p>', protected: false } }
    expect(reaches('posts', { id: 2, ...now }, withHtml, { before: post })).toBe(false)
    const unknown = item('categories', 3, { ...category, description: html, ...head })
    expect(reaches('tags', { id: 9, ...category }, unknown, { before: category })).toBe(true)
  })

  test('a post keeps the lists where only its meta differ, of which editors are shown more', () => {
    const before = { ...post, content: { rendered: '<p>B</p>', protected: false }, meta: { footnotes: '' } }
    const now = { ...before, meta: { footnotes: '', hidden: 'x' } }
    expect(reaches('posts', { id: 2, ...now }, list('categories', {}, []), { before })).toBe(false)
  })

  test('is reached by every write where _fields has trimmed what it links to, or where it is no item', () => {
    const trimmed = item('posts', 1, { title: { rendered: 'A' }, ...head })
    const types = list('types', {}, { post: { slug: 'post', ...head } })
    for (const read of [trimmed, types])
      expect(
        reaches('comments', { id: 9, post: 2, parent: 0, status: 'approved' }, read, { status: 201 }),
      ).toBe(true)
  })
})

describe('a property of ACF', () => {
  const comment = { id: 9, post: 2, parent: 0, status: 'approved' }
  const withHeaders = (acf: unknown): Read => item('posts', 1, { ...post, acf })
  const isReached = (acf: unknown) => reaches('comments', comment, withHeaders(acf), { status: 201 })

  test.each([
    ['texts, numbers and ids', { subtitle: 'A', related: [7, 8], group: { hero: 5 } }],
    ['an address of another site', { link: { title: 'A', url: 'https://example.org/', target: '' } }],
    ['nothing', []],
  ])('with %s changes with its own item alone', (_what, acf) => {
    expect(isReached(acf)).toBe(false)
  })

  test.each([
    ['a post', { related: [{ ID: 7, post_title: 'B' }] }],
    ['a term', { topic: { term_id: 3, name: 'A' } }],
    ['an address of this site', { page: 'https://blog.test/b/' }],
  ])('that shows %s, as in the format standard, changes with every write', (_what, acf) => {
    expect(isReached(acf)).toBe(true)
  })
})

test('the terms of a taxonomy that the site announces change with their item alone', () => {
  const args = { hide_empty: {}, slug: {}, post: {}, per_page: {}, exclude: {} }
  const [row] = siteRows.filter(({ collection, kind }) => collection === 'posts' && kind === 'collection')
  const rowOf = (name: string, more: Endpoint['arguments']) => ({
    ...(row as NonNullable<typeof row>),
    template: `/wp/v2/${name}`,
    endpoints: [{ methods: ['GET'] as const, arguments: more }],
  })
  const learned = createPropertyReaches()
  learned.learn([
    rowOf('genres', args),
    rowOf('shelves', args),
    rowOf('books', { genres: {}, genres_exclude: {} }),
  ])
  expect(learned.of('genres', { genres: [7, 8] })).toBe('item')
  expect(learned.of('genres', { genres: [{ name: 'Novel' }] })).toBe('all')
  // No list has a filter for it.
  expect(learned.of('shelves', { shelves: [7] })).toBe('all')
  expect(createPropertyReaches({ genres: 'all' }).of('genres', { genres: [7] })).toBe('all')
})
