import { expect } from 'vitest'
import { createWpapiClient } from '../clients/wpapi-client.ts'
import { pngImage } from '../image.ts'
import { type Step, seeded, uniqueText } from './step.ts'

type Rendered = { rendered: string; raw?: string }
type Post = {
  id: number
  status: string
  title: Rendered
  link: string
  _embedded?: Record<string, unknown[]>
}
type Page<Item> = Item[] & { _paging: { total: number; totalPages: number; next?: PromiseLike<unknown> } }

export const wpapiSteps: readonly Step[] = [
  {
    title: 'lists posts with their totals',
    async run(site) {
      const client = await createWpapiClient(site, 'anonymous')
      const posts = (await client.collection('posts').perPage(7).get()) as Page<Post>
      expect(posts).toHaveLength(7)
      expect(posts._paging).toMatchObject({ total: seeded.publicPosts })
    },
  },
  {
    title: 'follows the next links to the end',
    async run(site) {
      const client = await createWpapiClient(site, 'anonymous')
      let page = (await client.collection('posts').perPage(30).get()) as Page<Post>
      const ids = page.map((post) => post.id)
      while (page._paging.next !== undefined) {
        expect(String(page._paging.next)).toContain(`${site.restRoot}/${site.namespace}/posts`)
        page = (await page._paging.next) as Page<Post>
        ids.push(...page.map((post) => post.id))
      }
      expect(new Set(ids).size).toBe(seeded.publicPosts)
    },
  },
  {
    title: 'embeds authors, images and terms',
    async run(site) {
      const client = await createWpapiClient(site, 'anonymous')
      const found = (await client
        .collection('posts')
        .search('Plant of the day 1')
        .perPage(50)
        .embed()
        .get()) as Page<Post>
      const withImage = found.find((post) => post.title.rendered === 'Plant of the day 1')
      expect(Object.keys(withImage?._embedded ?? {})).toEqual(
        expect.arrayContaining(['author', 'wp:featuredmedia', 'wp:term']),
      )
    },
  },
  {
    title: 'gets the same posts for bracketed lists of ids',
    async run(site) {
      const client = await createWpapiClient(site, 'anonymous')
      const some = (await client.collection('posts').perPage(3).get()) as Page<Post>
      const ids = some.map((post) => post.id)
      const again = (await client.collection('posts').include(ids).get()) as Page<Post>
      expect(again.map((post) => post.id).sort()).toEqual([...ids].sort())
    },
  },
  {
    title: 'reads headers by HEAD',
    async run(site) {
      const client = await createWpapiClient(site, 'anonymous')
      const headers = await client.collection('posts').headers()
      expect(headers).toMatchObject({ 'x-wp-total': String(seeded.publicPosts) })
    },
  },
  {
    title: 'creates, reads, updates, trashes and deletes a post',
    async run(site) {
      const client = await createWpapiClient(site, 'admin')
      const word = uniqueText()
      const made = await client
        .collection('posts')
        .create({ title: word, content: 'One.', status: 'publish' })
      const item = () => client.collection('posts').id(made.id)
      const found = () => client.collection('posts').search(word).get() as Promise<Page<Post>>
      expect(await item().get()).toMatchObject({ id: made.id, status: 'publish', title: { rendered: word } })
      expect(await found()).toHaveLength(1)
      await item().update({ title: `${word} again` })
      expect(await item().get()).toMatchObject({ title: { rendered: `${word} again` } })
      expect(await client.collection('posts').id(made.id).revisions().get()).not.toHaveLength(0)
      expect(await item().delete()).toMatchObject({ id: made.id, status: 'trash' })
      expect(await found()).toHaveLength(0)
      await expect(item().delete()).rejects.toMatchObject({ code: 'rest_already_trashed' })
      expect(await item().delete({ force: true })).toMatchObject({ deleted: true, previous: { id: made.id } })
      await expect(item().get()).rejects.toMatchObject({
        code: 'rest_post_invalid_id',
        data: { status: 404 },
      })
    },
  },
  {
    title: 'uploads, edits and deletes an image as a form',
    async run(site) {
      const client = await createWpapiClient(site, 'admin')
      const word = uniqueText()
      const made = await client
        .collection('media')
        .file(pngImage(64, 48), `${word}.png`)
        .create({ title: word, alt_text: 'A leaf' })
      const item = () => client.collection('media').id(made.id)
      expect(await item().get()).toMatchObject({
        alt_text: 'A leaf',
        media_details: { width: 64, height: 48 },
      })
      await item().update({ caption: 'From above' })
      expect(await item().context('edit').get()).toMatchObject({ caption: { raw: 'From above' } })
      await expect(item().delete()).rejects.toMatchObject({ code: 'rest_trash_not_supported' })
      await item().delete({ force: true })
      await expect(item().get()).rejects.toMatchObject({ code: 'rest_post_invalid_id' })
    },
  },
  {
    title: 'reports bad parameters as the site does',
    async run(site) {
      const client = await createWpapiClient(site, 'anonymous')
      await expect(client.collection('posts').perPage(500).get()).rejects.toMatchObject({
        code: 'rest_invalid_param',
        data: { status: 400, params: { per_page: expect.any(String) } },
      })
      await expect(client.collection('posts').page(9999).get()).rejects.toMatchObject({
        code: 'rest_post_invalid_page_number',
      })
      await expect(client.collection('posts').create({ title: 'No' })).rejects.toMatchObject({
        code: 'rest_cannot_create',
        data: { status: 401 },
      })
    },
  },
  {
    title: 'sends a batch',
    async run(site) {
      const client = await createWpapiClient(site, 'admin')
      const word = uniqueText()
      const path = `/${site.namespace}/posts`
      const requests = [1, 2, 3].map((n) => ({ path, body: { title: `${word} ${n}`, status: 'publish' } }))
      const made = (await client.root('batch/v1').create({ requests })) as unknown as {
        responses: { status: number; body: Post }[]
      }
      expect(made.responses.map((response) => response.status)).toEqual([201, 201, 201])
      expect(made.responses.map((response) => response.body.title.raw)).toEqual(
        requests.map((request) => request.body.title),
      )
      expect(await client.collection('posts').search(word).get()).toHaveLength(3)
      const removals = made.responses.map(({ body }) => ({
        method: 'DELETE',
        path: `${path}/${body.id}?force=true`,
      }))
      await client.root('batch/v1').create({ requests: removals })
      expect(await client.collection('posts').search(word).get()).toHaveLength(0)
    },
  },
]
