import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { times } from '../support/breadth.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'
import { randomFrom } from '../support/random.ts'
import { type Page, type Site, SiteBuilder } from '../support/site-builder.ts'

const root = '/index.php/site-json'
const posts = times(147, 490)
const perPage = 49
const maxConcurrent = 4
const edits = times(10, 100)
const builds = times(3, 20)

type Post = { readonly id: number; readonly type: string; readonly status: string; title: string }

const titleOf = (value: unknown): string => (value as Post).title
const menu = `${root}/site/v2/pages/1000`

/** A page of each post, and lists of them; every page has the same menu. */
const site: Site = new Map<string, Page>([
  ...Array.from({ length: posts }, (_, at): [string, Page] => [
    `posts/${at + 1}.html`,
    async (read) => {
      const post = await read(`${root}/site/v2/posts/${at + 1}`)
      return `<nav>${titleOf(await read(menu))}</nav><h1>${titleOf(post)}</h1>`
    },
  ]),
  ...Array.from({ length: posts / perPage }, (_, at): [string, Page] => [
    `list/${at + 1}.html`,
    async (read) => {
      const list = (await read(`${root}/site/v2/posts?per_page=${perPage}&page=${at + 1}`)) as Post[]
      return `<nav>${titleOf(await read(menu))}</nav><ul>${list.map(titleOf).join('</li><li>')}</ul>`
    },
  ]),
])

type Changes = {
  readonly build: string
  readonly changed: readonly string[]
  readonly torn: boolean
  readonly everything: boolean
}

/** Thousands of requests: minutes where other programs use the machine. */
describe(`a build of ${site.size} pages`, { timeout: 300_000 }, () => {
  let contents: Map<string, Post>
  let origin: Origin
  let gateway: TestGateway

  const responseTo = (target: string): unknown => {
    const id = /\/(?:posts|pages)\/(\d+)/.exec(target)?.[1]
    if (id !== undefined) return contents.get(id)
    const page = Number(new URL(target, 'http://site').searchParams.get('page') ?? 1)
    return [...contents.values()]
      .filter(({ type }) => type === 'post')
      .slice((page - 1) * perPage, page * perPage)
  }

  beforeAll(async () => {
    origin = await startOrigin(({ method, target, content }, wire) => {
      const id = /\/(?:posts|pages)\/(\d+)/.exec(target)?.[1] ?? ''
      const post = contents.get(id)
      if (method === 'POST' && post !== undefined) post.title = JSON.parse(content.toString()).title
      wire.respond({
        headers: { 'Content-Type': 'application/json' },
        content: JSON.stringify(responseTo(target)),
      })
    })
    gateway = await startTestGateway({
      // What is compared is fetched at the pace of warming.
      cache: { warm: { concurrency: 16, perSecond: 10_000 } },
      services: {
        blog: siteService(origin.origin, {
          upstream: {
            targets: [origin.origin],
            basePath: '/index.php/wp-json',
            maxConcurrent,
            queue: { timeout: '2m' },
            timeouts: { headers: '2m', total: '4m' },
          },
          cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1h' }] },
        }),
      },
    })
  })
  afterAll(async () => {
    await gateway?.close()
    await origin?.close()
  })
  beforeEach(async () => {
    contents = new Map(
      Array.from({ length: posts }, (_, at) => [
        String(at + 1),
        { id: at + 1, type: 'post', status: 'publish', title: `Post ${at + 1}` },
      ]),
    )
    contents.set('1000', { id: 1000, type: 'page', status: 'publish', title: 'Menu' })
    await fetch(`${gateway.adminAddress}/cache/purge`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{"all":true}',
    })
    origin.received.length = 0
  })

  const begin = async (since?: string): Promise<Changes> => {
    const response = await fetch(`${gateway.adminAddress}/builds`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ since }),
    })
    expect(response.status).toBe(201)
    return (await response.json()) as Changes
  }
  const changesOf = async (build: string): Promise<Changes> =>
    (await (await fetch(`${gateway.adminAddress}/builds/${build}`)).json()) as Changes
  const edit = async (id: number, title: string): Promise<void> => {
    const response = await fetch(
      `${gateway.publicAddress}${root}/site/v2/${id === 1000 ? 'pages' : 'posts'}/${id}`,
      {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', Authorization: 'Basic YTpi' },
        body: JSON.stringify({ title }),
      },
    )
    expect(response.status).toBe(200)
  }
  const options = (build: string, concurrency = 8) => ({
    origin: gateway.publicAddress,
    build,
    concurrency,
  })
  /** What a full build makes now, from the upstream's own state. */
  const fullBuild = async (): Promise<ReadonlyMap<string, string>> => {
    const read = async (path: string): Promise<unknown> => responseTo(path)
    return new Map(
      await Promise.all(
        [...site].map(async ([name, page]): Promise<[string, string]> => [name, await page(read)]),
      ),
    )
  }

  test('fetches each URL once, within maxConcurrent', async () => {
    const { build, everything } = await begin()
    expect(everything).toBe(true)
    const builder = new SiteBuilder(site)
    expect(await builder.build(builder.all(), options(build, 32))).toBe(site.size)
    const targets = origin.received.map(({ target }) => target)
    expect(targets).toHaveLength(site.size + 1)
    expect(new Set(targets).size).toBe(site.size + 1)
    expect(origin.maxInFlight).toBeLessThanOrEqual(maxConcurrent)
    expect(await changesOf(build)).toEqual({
      build,
      reads: site.size + 1,
      changed: [],
      torn: false,
      everything: false,
    })
    expect(builder.output).toEqual(await fullBuild())
  })

  test(`${edits} random edits: each builds its page and its list again, equal to a full build`, async () => {
    const random = randomFrom(57)
    const builder = new SiteBuilder(site)
    let last = (await begin()).build
    await builder.build(builder.all(), options(last))
    for (let nth = 0; nth < edits; nth += 1) {
      const id = 1 + Math.floor(random() * posts)
      await edit(id, `Post ${id}, edition ${nth}`)
      const { build, changed, torn, everything } = await begin(last)
      expect([torn, everything]).toEqual([false, false])
      const made = await builder.build(builder.pagesThatRead(changed), options(build))
      expect(made).toBe(2)
      last = build
      expect(builder.output).toEqual(await fullBuild())
    }
  })

  test('an edit that changes nothing builds nothing, and one of the menu everything', async () => {
    const builder = new SiteBuilder(site)
    const first = (await begin()).build
    await builder.build(builder.all(), options(first))
    await edit(7, 'Post 7')
    expect(await changesOf(first)).toMatchObject({ changed: [], torn: false })
    await edit(1000, 'Another menu')
    const { changed } = await changesOf(first)
    expect(changed).toEqual([menu])
    expect(builder.pagesThatRead(changed)).toHaveLength(site.size)
  })

  test(`${builds} builds with a write in their middle are torn, and as many without one are not`, async () => {
    const random = randomFrom(58)
    const verdicts: boolean[] = []
    for (let nth = 0; nth < 2 * builds; nth += 1) {
      const isTorn = nth % 2 === 0
      const { build } = await begin()
      const builder = new SiteBuilder(site)
      const at = 1 + Math.floor(random() * 58)
      // One page after another: what is written has been read before it.
      let written = false
      await builder.build(builder.all().slice(0, 60), {
        ...options(build, 1),
        before: async (made) => {
          if (!isTorn || written || made < at) return
          written = true
          await edit(1 + Math.floor(random() * at), `Edition ${nth}`)
        },
      })
      // After the build, which is whole.
      if (!isTorn) await edit(3, `Edition ${nth}`)
      const { torn, changed } = await changesOf(build)
      expect(changed.length).toBeGreaterThan(0)
      verdicts.push(torn)
    }
    expect(verdicts).toEqual(Array.from({ length: 2 * builds }, (_, nth) => nth % 2 === 0))
  })

  test('what cannot be stored, and what is purged by anybody, counts as changed', async () => {
    const { build } = await begin()
    const read = (path: string, headers: Record<string, string> = {}) =>
      fetch(gateway.publicAddress + root + path, { headers: { 'Trellis-Build': build, ...headers } })
    await read('/site/v2/posts/1')
    await read('/site/v2/posts/2', { Authorization: 'Basic YTpi' })
    expect((await changesOf(build)).changed).toEqual([`${root}/site/v2/posts/2`])
    const first = contents.get('1')
    if (first !== undefined) first.title = 'by another door'
    await fetch(`${gateway.adminAddress}/cache/purge`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ prefix: `${root}/site` }),
    })
    expect((await changesOf(build)).changed).toEqual([`${root}/site/v2/posts/1`, `${root}/site/v2/posts/2`])
  })

  test('a build reads what others have stored, and they read what it has', async () => {
    const url = `${gateway.publicAddress}${root}/site/v2/posts/5`
    const { build } = await begin()
    await fetch(url)
    const ofBuild = await fetch(url, { headers: { 'Trellis-Build': build } })
    expect(ofBuild.headers.get('cache-status')).toContain('hit')
    expect(origin.received).toHaveLength(1)
  })

  test('a build that is not known is refused, and so is one that follows it', async () => {
    const response = await fetch(`${gateway.publicAddress}${root}/site/v2/posts/5`, {
      headers: { 'Trellis-Build': 'of-yesterday' },
    })
    expect(response.status).toBe(409)
    expect(await response.json()).toMatchObject({ code: 'trellis_unknown_build' })
    const begun = await fetch(`${gateway.adminAddress}/builds`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{"since":"of-yesterday"}',
    })
    expect(begun.status).toBe(404)
    expect((await fetch(`${gateway.adminAddress}/builds/of-yesterday`)).status).toBe(404)
  })
})
