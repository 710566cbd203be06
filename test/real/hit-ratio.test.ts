import { afterAll, beforeAll, expect, test } from 'vitest'
import { times } from '../support/breadth.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'
import { describeWith } from '../support/requirements.ts'
import { idsOfSite } from './invalidation/site-ids.ts'
import { basic } from './site-under-test.ts'
import { startWordPress, type WordPress } from './wordpress/start-wordpress.ts'

/** READS=10000 for a long look; SEED=n to see the same again. */
const reads = Number(process.env['READS'] ?? times(600, 5000))
const seed = Number(process.env['SEED'] ?? 1)
const readsOfWrite = 100
const targetCount = 200

/** Mulberry32: the same numbers in each run. */
const randomOf = (start: number): (() => number) => {
  let state = start
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Sums of 1/rank, by which a place under Zipf's law is found. */
const sums: number[] = []
for (let rank = 1; rank <= targetCount; rank += 1) sums.push((sums.at(-1) ?? 0) + 1 / rank)

type Write = { readonly method: 'POST' | 'PUT'; readonly path: string; readonly body: unknown }
type Item = { readonly id: number }

describeWith('php', 'a mix of reads and writes on a real WordPress', () => {
  let wordpress: WordPress
  let gateway: TestGateway
  let root: string
  const random = randomOf(seed)

  beforeAll(async () => {
    const port = await freePort()
    wordpress = await startWordPress({ publicUrl: `http://127.0.0.1:${port}` })
    gateway = await startTestGateway({
      listen: { host: '127.0.0.1', port },
      services: {
        site: {
          contract: 'site',
          mount: '/index.php/wp-json',
          names: 'same',
          upstream: { targets: [wordpress.origin], basePath: '/index.php/wp-json' },
          cache: { rules: [{ match: 'GET /wp/v2/**', ttl: '1h' }] },
        },
      },
    })
    root = `${gateway.publicAddress}/index.php/wp-json/wp/v2`
  })
  afterAll(async () => {
    await gateway?.close()
    await wordpress?.stop()
  })

  const idsOf = async (path: string): Promise<readonly number[]> => {
    const response = await fetch(`${wordpress.restRoot}/wp/v2/${path}&_fields=id`)
    return ((await response.json()) as readonly Item[]).map(({ id }) => id)
  }

  const read = async (target: string): Promise<boolean> => {
    const response = await fetch(`${root}/${target}`)
    expect(response.status, target).toBe(200)
    await response.arrayBuffer()
    return /^trellis; ?hit/.test(response.headers.get('cache-status') ?? '')
  }

  const send = async ({ method, path, body }: Write): Promise<void> => {
    const headers = {
      Authorization: basic(wordpress.credentials.admin),
      'Content-Type': 'application/json',
    }
    const response = await fetch(`${root}/${path}`, { method, headers, body: JSON.stringify(body) })
    expect([200, 201], path).toContain(response.status)
    await response.arrayBuffer()
  }

  const oneOf = <Value>(list: readonly Value[]): Value => list[Math.floor(random() * list.length)] as Value

  test(`200 URLs under Zipf's law, one write in ${readsOfWrite} reads: at least 88 % are hits (SEED=${seed})`, async () => {
    const ids = await idsOfSite(wordpress)
    const posts = (await idsOf('posts?per_page=100')).filter((id) => id !== 1)
    const pages = await idsOf('pages?per_page=100')
    const categories = await idsOf('categories?per_page=100')
    const tags = await idsOf('tags?per_page=100')
    const users = await idsOf('users?per_page=100')
    const media = await idsOf('media?per_page=100')
    // The lists of a site's pages first, then what they lead to.
    const targets = [
      ...[
        'posts',
        'posts?_embed=1',
        'posts?page=2',
        'posts?per_page=5',
        'categories',
        'tags',
        'pages',
        'users',
      ],
      ...[
        'posts?page=3',
        'posts?sticky=true',
        'media',
        'comments',
        'posts?orderby=modified',
        'search?search=plant',
      ],
      ...categories.map((id) => `posts?categories=${id}`),
      ...posts.slice(0, 60).map((id) => `posts/${id}`),
      ...pages.map((id) => `pages/${id}`),
      ...tags.map((id) => `posts?tags=${id}`),
      ...users.map((id) => `posts?author=${id}`),
      ...[...categories.map((id) => `categories/${id}`), ...tags.map((id) => `tags/${id}`)],
      ...posts.slice(0, 30).map((id) => `posts/${id}?_embed=1`),
      ...posts.slice(5, 25).map((id) => `comments?post=${id}`),
      ...media.map((id) => `media/${id}`),
      ...posts.slice(60).map((id) => `posts/${id}`),
    ].slice(0, targetCount)
    expect(new Set(targets).size).toBe(targetCount)
    // As an editor's day: most writes change a text.
    const writes: readonly (() => Write)[] = [
      ...Array.from({ length: 10 }, () => (): Write => {
        const content = `<!-- wp:paragraph --><p>Rewritten ${random()}</p><!-- /wp:paragraph -->`
        return { method: 'PUT', path: `posts/${oneOf(posts)}`, body: { content } }
      }),
      ...Array.from({ length: 3 }, () => (): Write => {
        return { method: 'PUT', path: `posts/${oneOf(posts)}`, body: { title: `Retitled ${random()}` } }
      }),
      ...Array.from({ length: 2 }, () => (): Write => {
        const body = { title: `New ${random()}`, status: 'publish', categories: [oneOf(categories)] }
        return { method: 'POST', path: 'posts', body: { ...body, content: '<p>New.</p>' } }
      }),
      ...Array.from({ length: 3 }, () => (): Write => {
        return { method: 'POST', path: 'comments', body: { post: oneOf(posts), content: `Said ${random()}` } }
      }),
      () => ({ method: 'PUT', path: `posts/${oneOf(posts)}`, body: { categories: [oneOf(categories)] } }),
      () => ({ method: 'PUT', path: `pages/${ids.get('page')}`, body: { title: `Page ${random()}` } }),
    ]
    for (const target of targets) await read(target)
    let hits = 0
    for (let done = 0; done < reads; done += 1) {
      if (done % readsOfWrite === readsOfWrite / 2) await send(oneOf(writes)())
      const at = random() * (sums.at(-1) ?? 0)
      const rank = sums.findIndex((sum) => sum >= at)
      if (await read(targets[rank] ?? '')) hits += 1
    }
    process.stdout.write(`hit ratio: ${(hits / reads).toFixed(3)} of ${reads} reads\n`)
    expect(hits / reads).toBeGreaterThan(0.88)
  }, 600_000)
})
