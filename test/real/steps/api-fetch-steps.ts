import { expect } from 'vitest'
import { type ApiFetchClient, withApiFetch } from '../clients/api-fetch-client.ts'
import { pngImage } from '../image.ts'
import type { SiteUnderTest } from '../site-under-test.ts'
import { type Step, seeded, uniqueText } from './step.ts'

type Post = { id: number; status: string; title: { rendered: string; raw?: string } }
type BatchResponse = {
  failed?: string
  responses: ({ status: number; body: Post & { code?: string }; headers: unknown } | null)[]
}

const step = (
  title: string,
  as: 'admin' | 'anonymous',
  run: (client: ApiFetchClient, site: SiteUnderTest) => Promise<void>,
): Step => ({ title, run: (site) => withApiFetch(site, as, (client) => run(client, site)) })

export const apiFetchSteps: readonly Step[] = [
  step('lists everything by following links', 'anonymous', async (client, site) => {
    const posts = await client.call<Post[]>({ path: `/${site.namespace}/posts?per_page=-1&_fields=id,title` })
    expect(new Set(posts.map((post) => post.id)).size).toBe(seeded.publicPosts)
  }),
  step('embeds', 'anonymous', async (client, site) => {
    const [post] = await client.call<(Post & { _embedded: Record<string, unknown> })[]>({
      path: `/${site.namespace}/posts?_embed=author,wp:term&per_page=1`,
    })
    expect(Object.keys(post?._embedded ?? {}).sort()).toEqual(['author', 'wp:term'])
  }),
  step(
    'creates, reads, updates, trashes and deletes a page by method override',
    'admin',
    async (client, site) => {
      const pages = `/${site.namespace}/pages`
      const word = uniqueText()
      const made = await client.call<Post>({
        path: pages,
        method: 'POST',
        data: { title: word, status: 'publish' },
      })
      const path = `${pages}/${made.id}`
      expect(await client.call<Post>({ path })).toMatchObject({ title: { rendered: word } })
      for (const method of ['PUT', 'PATCH']) {
        await client.call({ path, method, data: { title: `${word} ${method}` } })
        expect(await client.call<Post>({ path: `${path}?context=edit` })).toMatchObject({
          title: { raw: `${word} ${method}` },
        })
      }
      expect(await client.call<Post>({ path, method: 'DELETE' })).toMatchObject({ status: 'trash' })
      expect(await client.call<Post[]>({ path: `${pages}?search=${word}` })).toEqual([])
      expect(await client.call({ path: `${path}?force=true`, method: 'DELETE' })).toMatchObject({
        deleted: true,
      })
      await expect(client.call({ path })).rejects.toMatchObject({
        code: 'rest_post_invalid_id',
        data: { status: 404 },
      })
    },
  ),
  step('uploads an image as raw bytes and as a form', 'admin', async (client, site) => {
    const path = `/${site.namespace}/media`
    const word = uniqueText()
    const raw = await client.respond({
      path,
      method: 'POST',
      headers: { 'Content-Type': 'image/png', 'Content-Disposition': `attachment; filename="${word}.png"` },
      body: pngImage(40, 30),
    })
    expect(raw.status).toBe(201)
    const first = (await raw.json()) as { id: number }
    expect(raw.headers.get('x-wp-upload-attachment-id')).toBe(String(first.id))
    expect(raw.headers.get('location')).toBe(`${site.restRoot}${path}/${first.id}`)
    const form = new FormData()
    form.set('file', new File([pngImage(20, 10)], `${word}-form.png`, { type: 'image/png' }))
    form.set('title', word)
    const second = await client.call<Post>({ path, method: 'POST', body: form })
    expect(second).toMatchObject({ title: { raw: word }, media_details: { width: 20, height: 10 } })
    const found = await client.call<Post[]>({ path: `${path}?search=${word}` })
    expect(found.map((item) => item.id).sort()).toEqual([first.id, second.id].sort())
    for (const { id } of [first, second]) {
      await client.call({ path: `${path}/${id}?force=true`, method: 'DELETE' })
    }
    expect(await client.call({ path: `${path}?search=${word}` })).toEqual([])
  }),
  step('sends a batch whose items succeed and fail in place', 'admin', async (client, site) => {
    const posts = `/${site.namespace}/posts`
    const batch = (requests: unknown[], validation = 'normal') =>
      client.call<BatchResponse>({ path: '/batch/v1', method: 'POST', data: { validation, requests } })
    const [first] = (await batch([{ path: posts, body: { title: uniqueText() } }])).responses
    const path = `${posts}/${first?.body.id}`
    const mixed = await batch([
      { method: 'PUT', path, body: { title: 'Changed in a batch' } },
      { method: 'PUT', path: `${posts}/999999`, body: { title: 'Nobody' } },
      { method: 'PUT', path, body: { status: 'no-such-status' } },
      { method: 'POST', path: `/${site.namespace}/media`, body: {} },
      { method: 'DELETE', path },
      { method: 'DELETE', path },
    ])
    expect(mixed.responses.map((response) => response?.status)).toEqual([200, 404, 400, 400, 200, 410])
    expect(mixed.responses.map((response) => response?.body.code)).toEqual([
      undefined,
      'rest_post_invalid_id',
      'rest_invalid_param',
      'rest_batch_not_allowed',
      undefined,
      'rest_already_trashed',
    ])
    const refused = await batch(
      [
        { method: 'DELETE', path: `${path}?force=true` },
        { method: 'PUT', path, body: { sticky: 'perhaps' } },
      ],
      'require-all-validate',
    )
    expect(refused).toMatchObject({ failed: 'validation', responses: [null, { status: 400 }] })
    expect((await batch([{ method: 'DELETE', path: `${path}?force=true` }])).responses).toMatchObject([
      { status: 200, body: { deleted: true } },
    ])
  }),
  step('refuses a batch of 26', 'admin', async (client, site) => {
    const requests = Array.from({ length: 26 }, () => ({ path: `/${site.namespace}/posts` }))
    await expect(
      client.call({ path: '/batch/v1', method: 'POST', data: { requests } }),
    ).rejects.toMatchObject({
      code: 'rest_invalid_param',
      data: { status: 400, params: { requests: expect.any(String) } },
    })
  }),
  step('reads the other collections of the contract', 'admin', async (client, site) => {
    const count = async (name: string): Promise<number> =>
      (await client.call<unknown[]>({ path: `/${site.namespace}/${name}?per_page=50&context=edit` })).length
    expect(await count('blocks')).toBe(seeded.blocks)
    expect(await count('menu-items')).toBe(seeded.menuItems)
    expect(await count('navigation')).toBe(1)
    expect(await count('pages')).toBe(seeded.pages)
    expect(await client.call<unknown[]>({ path: `/${site.namespace}/templates` })).not.toHaveLength(0)
  }),
]
