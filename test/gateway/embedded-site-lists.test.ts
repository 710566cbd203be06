import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { EmbeddedUpstream } from '../../demo/embedded-server.ts'
import { admin, ask, reader, startSite } from '../demo/wired-upstreams.ts'

let site: EmbeddedUpstream & { readonly rest: string }
beforeAll(async () => {
  site = await startSite('wordpress')
})
afterAll(() => site.close())

const list = async (path: string, as?: string) => {
  const reply = await ask(`${site.rest}/wp/v2/${path}`, as === undefined ? {} : { as })
  const total = Number(reply.headers.get('x-wp-total'))
  const pages = Number(reply.headers.get('x-wp-totalpages'))
  const ids: number[] = Array.isArray(reply.body) ? reply.body.map((item: { id: number }) => item.id) : []
  return { ...reply, total, pages, ids }
}

test('the seed: how much there is of everything', async () => {
  const counts: Record<string, number> = {}
  for (const name of [
    'posts',
    'pages',
    'media',
    'menu-items',
    'blocks',
    'navigation',
    'categories',
    'tags',
  ]) {
    counts[name] = (await list(name, admin)).total
  }
  expect(counts).toEqual({
    posts: 57,
    pages: 13,
    media: 5,
    'menu-items': 10,
    blocks: 5,
    navigation: 1,
    categories: 7,
    tags: 10,
  })
  expect((await list('posts?status=any&per_page=1', admin)).total).toBe(60)
})

test('two starts serve the same bytes', async () => {
  const other = await startSite('wordpress')
  try {
    for (const path of [
      '/wp/v2/posts?_embed&per_page=100',
      '/wp/v2/pages',
      '/wp/v2/media',
      '/wp/v2/categories',
    ]) {
      expect((await ask(other.rest + path)).text).toBe((await ask(site.rest + path)).text)
    }
  } finally {
    await other.close()
  }
})

/** Posts 1 to 57 are public, each a day after the one before; post i has category (i mod 6) + 2. */
const range = (from: number, to: number): number[] =>
  Array.from({ length: Math.abs(to - from) + 1 }, (_, i) => from + (from < to ? i : -i))

test.each<[what: string, query: string, ids: number[]]>([
  ['newest first', 'per_page=3', [57, 56, 55]],
  ['the second page', 'per_page=3&page=2', [54, 53, 52]],
  ['offset instead of page', 'per_page=3&offset=4', [53, 52, 51]],
  ['offset beyond the end', 'offset=500', []],
  ['ascending', 'per_page=3&order=asc', [1, 2, 3]],
  ['by identifier', 'per_page=2&orderby=id&order=asc', [1, 2]],
  ['by title', 'per_page=3&orderby=title&order=asc', [1, 10, 11]],
  ['in the order of include', 'include=7,3,5&orderby=include', [7, 3, 5]],
  ['include by date', 'include=7,3,5', [7, 5, 3]],
  ['exclude', 'per_page=2&exclude=57,56', [55, 54]],
  ['slug', 'slug=post-number-9,post-number-8', [9, 8]],
  ['author', 'author=2&per_page=3', [55, 52, 49]],
  ['author_exclude', 'author_exclude=1,2&per_page=2', [56, 53]],
  ['after', 'after=2025-02-25T09:00:00', [57, 56]],
  ['before', 'before=2025-01-04T09:00:00', [2, 1]],
  ['search in titles', 'search=number+44', [44]],
  ['search passes by what a password protects', 'search=number+57', []],
  ['search for a phrase', 'search=%22number+12%22', [12]],
  ['search in one column', 'search=body+of+post+12&search_columns=post_title', []],
  ['include wins over exclude', 'include=9&exclude=9', [9]],
  ['categories', 'categories=2&per_page=2', [54, 48]],
  ['any of two categories', 'categories=2,3&per_page=3', [55, 54, 49]],
  ['all of two categories', 'categories[terms]=2,3&categories[operator]=AND', []],
  [
    'a category with its children',
    'categories[terms]=2&categories[include_children]=true&per_page=3',
    [54, 53, 48],
  ],
  ['categories_exclude', 'categories_exclude=2,3,4,5,6&per_page=2', [53, 47]],
  ['tags and categories together', 'tags=9&categories=3&per_page=100', [37, 31, 7, 1]],
  ['tags or categories', 'tags=9&categories=3&tax_relation=OR&per_page=3', [57, 55, 51]],
  ['a category, or not a tag', 'categories=3&tags_exclude=9&tax_relation=OR&per_page=4', [56, 55, 54, 53]],
  ['sticky', 'sticky=true', [10]],
  ['all pages of the list', 'per_page=100', range(57, 1)],
])('posts: %s', async (_what, query, ids) => {
  expect((await list(`posts?${query}`)).ids).toEqual(ids)
})

test('signed-in users find protected content', async () => {
  expect((await list('posts?search=number+57', reader)).ids).toEqual([57])
})

test('the title of a private post says so', async () => {
  const { body } = await list('posts?status=private&context=edit', admin)
  expect(body[0].title).toEqual({ raw: 'Post number 59', rendered: 'Private: Post number 59' })
})

test.each([
  ['relevance', 'rest_no_search_term_defined'],
  ['include', 'rest_orderby_include_missing_include'],
])('an order by %s needs what it orders by', async (orderby, code) => {
  const { status, body } = await list(`posts?orderby=${orderby}`)
  expect([status, body.code]).toEqual([400, code])
})

test.each<[what: string, path: string, total: number]>([
  ['pages of one parent', 'pages?parent=61', 1],
  ['pages without a parent', 'pages?parent=0', 10],
  ['pages by menu_order', 'pages?menu_order=3', 1],
  ['media of one post', 'media?parent=1', 1],
  ['media by kind', 'media?media_type=image', 5],
  ['media of a type that is not there', 'media?mime_type=image/gif', 0],
  ['terms of a post', 'categories?post=5', 1],
  ['children of a term', 'categories?parent=2', 1],
  ['terms by name', 'tags?search=Tag%201', 2],
  ['search over posts and pages', 'search?search=Page', 13],
  ['comments of a post', 'comments?post=1', 3],
])('%s', async (_what, path, total) => {
  expect((await list(path)).total).toBe(total)
})

describe('links from page to page', () => {
  test('lead through the whole list and keep the query', async () => {
    let path = 'posts?per_page=20&_fields=id&search=number'
    const ids: number[] = []
    for (let pages = 0; pages < 10; pages += 1) {
      const page = await list(path)
      ids.push(...page.ids)
      const next = /<([^>]+)>; rel="next"/.exec(page.headers.get('link') ?? '')?.[1]
      if (next === undefined) break
      expect(next).toMatch(
        /^http:\/\/site\.test\/index\.php\/wp-json\/wp\/v2\/posts\?per_page=20&_fields=id&search=number&page=\d$/,
      )
      path = next.slice(next.indexOf('posts?'))
    }
    expect(ids).toEqual(range(56, 1))
  })

  test('name both neighbours, lists numbered as PHP numbers them', async () => {
    const { headers } = await list('posts?include[]=1&include[]=2&include[]=3&per_page=1&page=2')
    const address = (page: number) =>
      `<http://site.test/index.php/wp-json/wp/v2/posts?include%5B0%5D=1&include%5B1%5D=2&include%5B2%5D=3&per_page=1&page=${page}>`
    expect(headers.get('link')).toBe(`${address(1)}; rel="prev", ${address(3)}; rel="next"`)
  })
})

test('blocks are counted for everyone and shown to editors', async () => {
  const anonymous = await list('blocks')
  expect([anonymous.total, anonymous.ids.length]).toEqual([5, 0])
  expect((await list('blocks', admin)).ids).toHaveLength(5)
})

describe('what is shown', () => {
  test('_fields cuts to the parts asked for, in the order of the item', async () => {
    const { text } = await list('posts?_fields=title.rendered,id,_links.self&include=5')
    expect(text).toBe(
      '[{"id":5,"title":{"rendered":"Post number 5"},"_links":{"self":[{"href":"http:\\/\\/site.test\\/index.php\\/wp-json\\/wp\\/v2\\/posts\\/5","targetHints":{"allow":["GET"]}}]}}]',
    )
  })

  test('_embed adds the author, the image, the terms and the comments', async () => {
    const { body } = await ask(`${site.rest}/wp/v2/posts/1?_embed`)
    expect(Object.keys(body._embedded)).toEqual(['author', 'replies', 'wp:featuredmedia', 'wp:term'])
    expect(body._embedded['wp:term'][0][0].taxonomy).toBe('category')
    expect(body._embedded.replies[0]).toHaveLength(3)
    const author = await ask(`${site.rest}/wp/v2/posts/1?_embed=author`)
    expect(Object.keys(author.body._embedded)).toEqual(['author'])
  })

  test('a reusable block is part of the post that names it', async () => {
    const { body } = await ask(`${site.rest}/wp/v2/posts/30`)
    expect(body.content.rendered).toContain('Reusable 1')
  })

  test.each([
    ['without a password the content is empty', '', 200, ''],
    ['with the right one it is there', '?password=secret', 200, 'Body of post 57'],
    ['with a wrong one the request is refused', '?password=wrong', 403, undefined],
  ])('%s', async (_what, query, status, content) => {
    const { body, status: given } = await ask(`${site.rest}/wp/v2/posts/57${query}`)
    expect(given).toBe(status)
    if (content === undefined) expect(body.code).toBe('rest_post_incorrect_password')
    else if (content === '') expect(body.content).toEqual({ rendered: '', protected: true })
    else expect(body.content.rendered).toContain(content)
  })
})
