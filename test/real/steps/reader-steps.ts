import { expect } from 'vitest'
import { basic, getAnonymously, type SiteUnderTest } from '../site-under-test.ts'
import { type Step, uniqueText } from './step.ts'

type Item = { id: number; title: { rendered: string }; modified: string }

/** What anonymous readers see around the writes of others: through the gateway they read from its cache. */
export const readerSteps: readonly Step[] = [
  {
    title: 'a reader sees a post once it is published, changed and deleted',
    async run(site) {
      const word = uniqueText()
      const lists = ['posts?per_page=5', `posts?search=${word}`, 'posts?_fields=id,title']
      const seen = async (): Promise<string[]> => {
        const found: string[] = []
        for (const list of lists) {
          const items = await read<Item[]>(site, list)
          found.push(
            ...items.filter((item) => item.title.rendered.startsWith(word)).map((i) => i.title.rendered),
          )
        }
        return found
      }
      expect(await seen()).toEqual([])
      for (const list of lists) await expectHit(site, list)
      const made = await write(site, 'POST', 'posts', { title: word, status: 'publish' })
      expect(await seen()).toEqual([word, word, word])
      expect((await read<Item>(site, `posts/${made.id}`)).title.rendered).toBe(word)
      await write(site, 'PUT', `posts/${made.id}`, { title: `${word} two` })
      expect(await seen()).toEqual([`${word} two`, `${word} two`, `${word} two`])
      expect((await read<Item>(site, `posts/${made.id}`)).title.rendered).toBe(`${word} two`)
      await write(site, 'DELETE', `posts/${made.id}`)
      expect(await seen()).toEqual([])
      await write(site, 'DELETE', `posts/${made.id}?force=true`)
      expect((await getAnonymously(site, `${site.namespace}/posts/${made.id}`)).status).toBe(404)
    },
  },
  {
    title: 'a reader sees writes made in a batch and by method override',
    async run(site) {
      const word = uniqueText()
      const made = await write(site, 'POST', 'pages', { title: word, status: 'publish' })
      const title = async () => (await read<Item>(site, `pages/${made.id}`)).title.rendered
      expect(await title()).toBe(word)
      await expectHit(site, `pages/${made.id}`)
      await send(site, 'POST', 'batch/v1', {
        requests: [
          { method: 'PUT', path: `/${site.namespace}/pages/${made.id}`, body: { title: `${word} b` } },
        ],
      })
      expect(await title()).toBe(`${word} b`)
      await write(
        site,
        'POST',
        `pages/${made.id}`,
        { title: `${word} o` },
        { 'X-HTTP-Method-Override': 'PUT' },
      )
      expect(await title()).toBe(`${word} o`)
      await write(site, 'DELETE', `pages/${made.id}?force=true`)
      expect((await getAnonymously(site, `${site.namespace}/pages/${made.id}`)).status).toBe(404)
    },
  },
  {
    title: 'a reader sees an embedded image change',
    async run(site) {
      const [image] = await read<Item[]>(site, 'media?slug=leaf-1')
      const word = uniqueText()
      const shown = async (): Promise<boolean> =>
        JSON.stringify(await read(site, 'posts?_embed=1&order=asc&per_page=5')).includes(word)
      expect(await shown()).toBe(false)
      await expectHit(site, 'posts?_embed=1&order=asc&per_page=5')
      await write(site, 'PUT', `media/${image?.id}`, { alt_text: word })
      expect(await shown()).toBe(true)
      await write(site, 'PUT', `media/${image?.id}`, { alt_text: '' })
      expect(await shown()).toBe(false)
    },
  },
  {
    title: 'drafts, edit context and protected content stay with those who may see them',
    async run(site) {
      const word = uniqueText()
      const made = await write(site, 'POST', 'posts', { title: word, content: word, status: 'draft' })
      const path = `${site.namespace}/posts/${made.id}`
      const asAdmin = await fetch(`${site.restRoot}/${path}?context=edit`, {
        headers: { Authorization: basic(site.admin) },
      })
      expect(asAdmin.status).toBe(200)
      await asAdmin.arrayBuffer()
      expect((await getAnonymously(site, path)).status).toBe(401)
      expect((await getAnonymously(site, `${path}?context=edit`)).status).toBe(401)
      await write(site, 'PUT', `posts/${made.id}`, { status: 'publish', password: 'key' })
      const opened = await read<{ content: { rendered: string } }>(site, `posts/${made.id}?password=key`)
      expect(opened.content.rendered).toContain(word)
      const closed = await read<{ content: { rendered: string } }>(site, `posts/${made.id}`)
      expect(closed.content.rendered).toBe('')
      await write(site, 'DELETE', `posts/${made.id}?force=true`)
    },
  },
]

async function read<Body>(site: SiteUnderTest, pathAndQuery: string): Promise<Body> {
  const response = await getAnonymously(site, `${site.namespace}/${pathAndQuery}`)
  expect(response.status).toBe(200)
  return (await response.json()) as Body
}

/** What the writer is about to change is in the gateway's cache. */
async function expectHit(site: SiteUnderTest, pathAndQuery: string): Promise<void> {
  if (!site.throughGateway) return
  const response = await getAnonymously(site, `${site.namespace}/${pathAndQuery}`)
  expect(response.headers.get('cache-status'), pathAndQuery).toMatch(/^trellis; ?hit/)
  await response.arrayBuffer()
}

async function write(
  site: SiteUnderTest,
  method: string,
  pathAndQuery: string,
  content?: unknown,
  headers?: Record<string, string>,
): Promise<Item> {
  return send(site, method, `${site.namespace}/${pathAndQuery}`, content, headers)
}

async function send(
  site: SiteUnderTest,
  method: string,
  path: string,
  content?: unknown,
  headers: Record<string, string> = {},
): Promise<Item> {
  const response = await fetch(`${site.restRoot}/${path}`, {
    method,
    headers: { ...headers, Authorization: basic(site.admin), 'Content-Type': 'application/json' },
    ...(content === undefined ? {} : { body: JSON.stringify(content) }),
  })
  const text = await response.text()
  expect(response.status, text).toBeLessThan(300)
  return JSON.parse(text) as Item
}
