import { expect } from 'vitest'
import { type ApiFetchClient, withApiFetch } from '../clients/api-fetch-client.ts'
import type { SiteUnderTest } from '../site-under-test.ts'
import { type Step, uniqueText } from './step.ts'

type Item = {
  id: number | string
  title?: { raw?: string; rendered: string }
  slug?: string
  status?: string
}

/** A life of one item in the collections whose rules differ from those of posts. */
const lives: readonly {
  readonly collection: string
  headers(word: string): Record<string, unknown>
  /** What a DELETE without `force` does: WordPress has a trash for some types only. */
  readonly withoutForce: 'trashes' | 'refuses'
}[] = [
  {
    collection: 'blocks',
    headers: (word) => ({ title: word, content: 'One.', status: 'publish' }),
    withoutForce: 'trashes',
  },
  {
    collection: 'navigation',
    headers: (word) => ({ title: word, status: 'publish' }),
    withoutForce: 'trashes',
  },
  {
    collection: 'menu-items',
    headers: (word) => ({ title: word, url: 'https://example.org/new', status: 'publish' }),
    withoutForce: 'refuses',
  },
  {
    collection: 'templates',
    headers: (word) => ({ title: word, slug: word, content: 'One.' }),
    withoutForce: 'trashes',
  },
  {
    collection: 'template-parts',
    headers: (word) => ({ title: word, slug: word, area: 'uncategorized', content: 'One.' }),
    withoutForce: 'trashes',
  },
]

export const collectionSteps: readonly Step[] = lives.map(({ collection, headers, withoutForce }) => ({
  title: `an item of ${collection} is created, read, changed and deleted`,
  run: (site) =>
    withApiFetch(site, 'admin', async (client) => {
      const list = `/${site.namespace}/${collection}`
      const word = uniqueText()
      const made = await client.call<Item>({ path: list, method: 'POST', data: headers(word) })
      const path = `${list}/${made.id}`
      const titleOf = async (): Promise<string | undefined> =>
        (await client.call<Item>({ path: `${path}?context=edit` })).title?.raw
      expect(await titleOf()).toBe(word)
      await client.call({ path, method: 'PUT', data: { title: `${word} two` } })
      expect(await titleOf()).toBe(`${word} two`)
      expect((await client.call<Item[]>({ path: list })).map((item) => item.id)).toContain(made.id)
      if (withoutForce === 'refuses') {
        await expect(client.call({ path, method: 'DELETE' })).rejects.toMatchObject({
          code: 'rest_trash_not_supported',
          data: { status: 501 },
        })
      }
      expect(await client.call({ path: `${path}?force=true`, method: 'DELETE' })).toMatchObject({
        deleted: true,
      })
      expect((await client.call<Item[]>({ path: list })).map((item) => item.id)).not.toContain(made.id)
      await expect(client.call({ path })).rejects.toMatchObject({ data: { status: 404 } })
    }),
}))

/** Rows beside the collections. */
export const otherSteps: readonly Step[] = [
  {
    title: 'the discovery document names the routes that are then found',
    run: (site) => withApiFetch(site, 'anonymous', (client) => checkDiscovery(client, site)),
  },
  {
    title: 'OPTIONS describes a route',
    async run(site) {
      const response = await fetch(`${site.restRoot}/${site.namespace}/posts`, { method: 'OPTIONS' })
      expect(response.status).toBe(200)
      const description = (await response.json()) as {
        namespace: string
        methods: string[]
        endpoints: unknown[]
      }
      expect(description).toMatchObject({ namespace: site.namespace, methods: ['GET', 'POST'] })
      expect(description.endpoints).toHaveLength(2)
    },
  },
  {
    title: 'every link of an item leads on',
    async run(site) {
      const [item] = (await (
        await fetch(`${site.restRoot}/${site.namespace}/posts?order=asc&per_page=1`)
      ).json()) as { _links: Record<string, { href: string; templated?: boolean }[]> }[]
      const links = Object.entries(item?._links ?? {}).filter(([name]) => name !== 'curies')
      expect(links.length).toBeGreaterThan(7)
      for (const [name, targets] of links) {
        for (const { href } of targets) {
          expect(href, name).toContain(`${site.restRoot}/${site.namespace}/`)
          // Revisions are for those who may edit.
          expect((await fetch(href)).status, href).toBe(name === 'version-history' ? 401 : 200)
        }
      }
    },
  },
  {
    title: 'an autosave is made and listed, and revisions follow changes',
    run: (site) =>
      withApiFetch(site, 'admin', async (client) => {
        const word = uniqueText()
        const list = `/${site.namespace}/posts`
        const made = await client.call<Item>({
          path: list,
          method: 'POST',
          data: { title: word, status: 'publish' },
        })
        const path = `${list}/${made.id}`
        await client.call({ path, method: 'PUT', data: { content: 'Two.' } })
        expect(await client.call<Item[]>({ path: `${path}/autosaves` })).toEqual([])
        await client.call({ path: `${path}/autosaves`, method: 'POST', data: { content: 'Three.' } })
        expect(await client.call<Item[]>({ path: `${path}/autosaves` })).toHaveLength(1)
        const [revision] = await client.call<Item[]>({ path: `${path}/revisions` })
        expect(await client.call({ path: `${path}/revisions/${revision?.id}` })).toMatchObject({
          parent: made.id,
        })
        await client.call({ path: `${path}?force=true`, method: 'DELETE' })
      }),
  },
  {
    title: 'oEmbed describes a post in JSON and XML',
    async run(site) {
      const [post] = (await (
        await fetch(`${site.restRoot}/${site.namespace}/posts?per_page=1&_fields=link,title`)
      ).json()) as { link: string; title: { rendered: string } }[]
      const url = encodeURIComponent(post?.link ?? '')
      const json = await fetch(`${site.restRoot}/oembed/1.0/embed?url=${url}`)
      expect(await json.json()).toMatchObject({ version: '1.0', type: 'rich', title: post?.title.rendered })
      const xml = await fetch(`${site.restRoot}/oembed/1.0/embed?url=${url}&format=xml`)
      expect(xml.headers.get('content-type')).toMatch(/^text\/xml/)
      expect(await xml.text()).toContain('<oembed>')
      const nothing = await fetch(`${site.restRoot}/oembed/1.0/embed`)
      expect(await nothing.json()).toMatchObject({
        code: 'rest_missing_callback_param',
        data: { params: ['url'] },
      })
    },
  },
  {
    title: 'what is no route, no method or no JSON is refused as the site does',
    async run(site) {
      const codeOf = async (path: string, init?: RequestInit): Promise<unknown> => {
        const response = await fetch(`${site.restRoot}/${path}`, init)
        return { status: response.status, code: ((await response.json()) as { code?: string }).code }
      }
      const json = { 'Content-Type': 'application/json' }
      expect(await codeOf(`${site.namespace}/nothing`)).toEqual({ status: 404, code: 'rest_no_route' })
      expect(await codeOf(`${site.namespace}/posts`, { method: 'DELETE' })).toEqual({
        status: 404,
        code: 'rest_no_route',
      })
      expect(
        await codeOf(`${site.namespace}/posts`, { method: 'POST', headers: json, body: '{"title":' }),
      ).toEqual({
        status: 400,
        code: 'rest_invalid_json',
      })
    },
  },
]

async function checkDiscovery(client: ApiFetchClient, site: SiteUnderTest): Promise<void> {
  const index = await client.call<{ name: string; namespaces: string[]; routes: Record<string, unknown> }>({
    path: '/',
  })
  expect(index.name).toBe('Garden site')
  expect(index.namespaces).toContain(site.namespace)
  const posts = `/${site.namespace}/posts`
  expect(Object.keys(index.routes)).toEqual(
    expect.arrayContaining([posts, `${posts}/(?P<id>[\\d]+)`, '/batch/v1']),
  )
  expect(index.routes[posts]).toMatchObject({
    namespace: site.namespace,
    methods: ['GET', 'POST'],
    _links: { self: [{ href: `${site.restRoot}${posts}` }] },
  })
  const namespace = await client.call<{ namespace: string; routes: Record<string, unknown> }>({
    path: `/${site.namespace}`,
  })
  expect(namespace.namespace).toBe(site.namespace)
  expect(Object.keys(namespace.routes)).toContain(posts)
}
