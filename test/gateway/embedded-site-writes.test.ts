import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { EmbeddedUpstream } from '../../demo/embedded-server.ts'
import { admin, ask, home, startSite } from '../demo/wired-upstreams.ts'

let site: EmbeddedUpstream & { readonly rest: string }
beforeEach(async () => {
  site = await startSite('wordpress')
})
afterEach(() => site.close())

const get = (path: string, as?: string) => ask(`${site.rest}/wp/v2/${path}`, as === undefined ? {} : { as })
const write = (method: string, path: string, body?: unknown) =>
  ask(`${site.rest}/wp/v2/${path}`, { method, as: admin, ...(body === undefined ? {} : { body }) })
const total = async (path: string): Promise<number> => Number((await get(path)).headers.get('x-wp-total'))
const count = async (category: number): Promise<number> => (await get(`categories/${category}`)).body.count

test('a post lives: created, listed, updated, trashed, trashed again, restored, deleted for good', async () => {
  const created = await write('POST', 'posts', {
    title: 'A new post',
    content: 'x',
    status: 'publish',
    categories: [4],
  })
  expect(created.status).toBe(201)
  const { id } = created.body
  expect(created.headers.get('location')).toBe(`${home}/index.php/wp-json/wp/v2/posts/${id}`)
  expect(created.body).toMatchObject({ slug: 'a-new-post', status: 'publish', title: { raw: 'A new post' } })
  expect(await total('posts')).toBe(58)
  expect((await get('posts?per_page=1')).body[0].id).toBe(id)
  expect((await get('posts?slug=a-new-post')).body).toHaveLength(1)

  const updated = await write('PUT', `posts/${id}`, { title: 'Another title' })
  expect(updated.body.title.rendered).toBe('Another title')
  expect(updated.body._links['version-history'][0].count).toBe(1)
  expect((await get(`posts/${id}`)).body.title.rendered).toBe('Another title')

  const trashed = await write('DELETE', `posts/${id}`)
  expect(trashed.body).toMatchObject({ id, status: 'trash', slug: 'a-new-post__trashed' })
  expect((await get(`posts/${id}`)).status).toBe(401)
  expect(await total('posts')).toBe(57)
  const again = await write('DELETE', `posts/${id}`)
  expect([again.status, again.body.code]).toEqual([410, 'rest_already_trashed'])

  const restored = await write('PUT', `posts/${id}`, { status: 'publish' })
  expect(restored.body).toMatchObject({ status: 'publish', slug: 'a-new-post' })

  const deleted = await write('DELETE', `posts/${id}?force=true`)
  expect(deleted.body).toMatchObject({ deleted: true, previous: { id } })
  expect(deleted.body.previous).not.toHaveProperty('_links')
  expect(deleted.headers.get('allow')).toBeNull()
  expect((await get(`posts/${id}`)).body.code).toBe('rest_post_invalid_id')
})

test('a draft shows nowhere in public, has no slug, and gets one when it is published', async () => {
  const draft = await write('POST', 'posts', { title: 'Hidden' })
  expect(draft.body).toMatchObject({ status: 'draft', slug: '' })
  expect(await total('posts')).toBe(57)
  const published = await write('PUT', `posts/${draft.body.id}`, { status: 'publish' })
  expect(published.body.slug).toBe('hidden')
})

test('a post dated in the future is scheduled', async () => {
  const { body } = await write('POST', 'posts', {
    title: 'Soon',
    status: 'publish',
    date: '2099-01-01T00:00:00',
  })
  expect(body).toMatchObject({ status: 'future', date: '2099-01-01T00:00:00' })
})

test('content that is neither JSON nor a form is taken no notice of', async () => {
  const headers = { 'Content-Type': 'text/plain' }
  const reply = await ask(`${site.rest}/wp/v2/posts/4`, {
    method: 'PUT',
    as: admin,
    body: 'title=x',
    headers,
  })
  expect([reply.status, reply.body.title.raw]).toEqual([200, 'Post number 4'])
})

test('a post without a category falls into the default one when it is written the next time', async () => {
  const emptied = await write('PUT', 'posts/4', { categories: [] })
  const next = await write('PUT', 'posts/4', {})
  expect([emptied.body.categories, next.body.categories]).toEqual([[], [1]])
})

test.each([
  ['Ünï Code & Co', 'uni-code-co'],
  ["It's 10.5 / 2", 'its-10-5-2'],
])('the title %s makes the slug %s', async (title, slug) => {
  expect((await write('POST', 'posts', { title, status: 'publish' })).body.slug).toBe(slug)
})

test('slugs are told apart within a type', async () => {
  const slugs: string[] = []
  for (let i = 0; i < 3; i += 1)
    slugs.push((await write('POST', 'posts', { title: 'Same', status: 'publish' })).body.slug)
  slugs.push((await write('POST', 'pages', { title: 'Same', status: 'publish' })).body.slug)
  expect(slugs).toEqual(['same', 'same-2', 'same-3', 'same'])
})

test('every update bumps modified; the first one keeps a revision whatever it changes, later ones when the text does', async () => {
  const before = (await get('posts/2')).body
  const same = await write('PUT', 'posts/2', { title: before.title.rendered })
  expect(same.body.modified > before.modified).toBe(true)
  await write('PUT', 'posts/2', {})
  expect((await get('posts/2/revisions', admin)).body).toHaveLength(1)
  await write('PUT', 'posts/2', { content: 'first' })
  await write('PUT', 'posts/2', { content: 'second' })
  const revisions = await get('posts/2/revisions', admin)
  expect(revisions.body.map((one: { content: { rendered: string } }) => one.content.rendered)).toEqual([
    '<p>second</p>\n',
    '<p>first</p>\n',
    before.content.rendered,
  ])
  const [newest] = (await get('posts/2')).body._links['predecessor-version']
  expect(newest.id).toBe(revisions.body[0].id)
})

test('an autosave changes what the item shows of its history, and nothing else of it', async () => {
  const before = (await get('posts/2')).body
  const saved = await write('POST', 'posts/2/autosaves', { title: 'Unsaved' })
  expect(saved.body).toMatchObject({ parent: 2, slug: '2-autosave-v1', title: { raw: 'Unsaved' } })
  const after = (await get('posts/2')).body
  expect(after._links['version-history'][0].count).toBe(before._links['version-history'][0].count + 1)
  expect({ ...after, _links: 0 }).toEqual({ ...before, _links: 0 })
  expect((await get('posts/2/revisions', admin)).body[0].id).toBe(saved.body.id)
  const second = await write('POST', 'posts/2/autosaves', { title: 'Unsaved again' })
  expect(second.body.id).toBe(saved.body.id)
})

test('terms count the published posts that carry them', async () => {
  const [two, three] = [await count(2), await count(3)]
  await write('PUT', 'posts/6', { categories: [3] })
  expect([await count(2), await count(3)]).toEqual([two - 1, three + 1])
  await write('DELETE', 'posts/6')
  expect(await count(3)).toBe(three)
})

test('a changed page changes the menu that links it, the navigation, and the titles follow', async () => {
  const { body: items } = await get('menu-items', admin)
  const linked = items.find((one: { type: string }) => one.type === 'post_type')
  await write('PUT', `pages/${linked.object_id}`, { title: 'Renamed' })
  expect((await get(`menu-items/${linked.id}`, admin)).body.title.rendered).toBe('Renamed')
  expect((await get('navigation')).body[0].content.rendered).toContain('Renamed')
})

test('a changed block changes the post that shows it, without touching its date', async () => {
  const before = (await get('posts/30')).body
  const blocks = await get('blocks?orderby=id&order=asc', admin)
  await write('PUT', `blocks/${blocks.body[0].id}`, {
    content: '<!-- wp:paragraph --><p>New words</p><!-- /wp:paragraph -->',
  })
  const after = (await get('posts/30')).body
  expect(after.content.rendered).toContain('New words')
  expect(after.modified).toBe(before.modified)
})

test('a deleted image leaves the posts it was the face of', async () => {
  const { featured_media: media } = (await get('posts/1')).body
  expect(media).toBeGreaterThan(0)
  await write('DELETE', `media/${media}?force=true`)
  const after = (await get('posts/1')).body
  expect(after.featured_media).toBe(0)
  expect(after._links).not.toHaveProperty('wp:featuredmedia')
})

test('a theme template is customised, versioned, and falls back when the customisation is deleted', async () => {
  const path = 'templates/twentytwentyfive//single'
  const original = (await get(path, admin)).body
  expect((await write('DELETE', path)).body.code).toBe('rest_invalid_template')
  const changed = await write('PUT', path, { content: 'one' })
  expect(changed.body).toMatchObject({ source: 'custom', origin: 'theme', content: { raw: 'one' } })
  await write('PUT', path, { content: 'two' })
  expect((await get(`${path}/revisions`, admin)).body).toHaveLength(1)
  expect((await write('DELETE', `${path}?force=true`)).body.deleted).toBe(true)
  expect((await get(path, admin)).body).toEqual(original)
})

test('styles are kept with their revisions', async () => {
  const themes = await get('themes', admin)
  const address: string = themes.body[0]._links['wp:user-global-styles'][0].href
  const path = address.slice(address.indexOf('global-styles'))
  const { body } = await write('PUT', path, { styles: { color: { text: '#123456' } } })
  expect(body.styles).toEqual({ color: { text: '#123456' } })
  expect((await get(`${path}/revisions`, admin)).body[0].styles).toEqual(body.styles)
})

describe('refusals of writes', () => {
  test.each<[what: string, method: string, path: string, body: unknown, status: number, code: string]>([
    ['an empty post', 'POST', 'posts', {}, 400, 'empty_content'],
    ['a post with an identifier', 'POST', 'posts', { id: 5, title: 'x' }, 400, 'rest_post_exists'],
    ['an unknown author', 'POST', 'posts', { title: 'x', author: 99 }, 400, 'rest_invalid_author'],
    ['an unknown parent', 'POST', 'pages', { title: 'x', parent: 9999 }, 400, 'rest_post_invalid_id'],
    [
      'a template that is not there',
      'POST',
      'posts',
      { title: 'x', template: 'zzz' },
      400,
      'rest_invalid_param',
    ],
    [
      'sticky with a password',
      'POST',
      'posts',
      { title: 'x', sticky: true, password: 'p' },
      400,
      'rest_invalid_field',
    ],
    ['a menu item without title and address', 'POST', 'menu-items', {}, 400, 'rest_title_required'],
    ['media that cannot be trashed', 'DELETE', 'media/75', undefined, 501, 'rest_trash_not_supported'],
    ['terms that cannot be trashed', 'DELETE', 'categories/3', undefined, 501, 'rest_trash_not_supported'],
    ['a category of a name that is taken', 'POST', 'categories', { name: 'News' }, 400, 'term_exists'],
    ['an unknown item', 'PUT', 'posts/99999', { title: 'x' }, 404, 'rest_post_invalid_id'],
    ['revisions of nothing', 'GET', 'posts/99999/revisions', undefined, 404, 'rest_post_invalid_parent'],
    [
      'revisions of a file',
      'GET',
      'templates/twentytwentyfive//single/revisions',
      undefined,
      403,
      'rest_cannot_read',
    ],
    [
      'a template of nowhere',
      'GET',
      'templates/twentytwentyfive//nope',
      undefined,
      404,
      'rest_template_not_found',
    ],
    ['styles of nowhere', 'GET', 'global-styles/99999', undefined, 404, 'rest_global_styles_not_found'],
    ['a theme that is not there', 'GET', 'global-styles/themes/nope', undefined, 404, 'rest_theme_not_found'],
  ])('%s', async (_what, method, path, body, status, code) => {
    const reply = await write(method, path, body)
    expect([reply.status, reply.body.code]).toEqual([status, code])
  })
})

describe('terms', () => {
  test('live as posts do, without a trash', async () => {
    const created = await write('POST', 'categories', { name: 'Mosses', parent: 2 })
    expect([created.status, created.body.slug, created.body.parent]).toEqual([201, 'mosses', 2])
    const { id } = created.body
    await write('PUT', 'posts/3', { categories: [id] })
    await write('PUT', `categories/${id}`, { name: 'Ferns' })
    expect((await get('posts/3?_embed=wp:term')).body._embedded['wp:term'][0][0].name).toBe('Ferns')
    expect((await write('DELETE', `categories/${id}?force=true`)).body.deleted).toBe(true)
    expect((await get('posts/3')).body.categories).toEqual([])
  })
})
