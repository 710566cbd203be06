import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'
import { oneOf, randomFrom } from '../support/random.ts'
import { token } from './companion/intake.ts'
import { basic } from './site-under-test.ts'
import { describeSite } from './sites/describe-site.ts'
import { type Ids, idsOn } from './sites/reads.ts'
import { type RealSite, startRealSite } from './sites/start-real-site.ts'

const writes = Number(process.env['GRAPHQL_WRITES'] ?? 30)
const seed = Number(process.env['GRAPHQL_SEED'] ?? 1)
const endpoint = '/graphql'
const root = '/index.php/wp-json'

type World = { readonly site: RealSite; readonly gateway: TestGateway; readonly ids: Ids }

const openWorld = async (withCompanion: boolean): Promise<World> => {
  const port = await freePort()
  const gateways = [`http://127.0.0.1:${port}`]
  const site = await startRealSite({ plugins: ['graphql', 'scf'], withCompanion, gateways })
  // Mutations of the administrator need no cookie.
  await writeFile(
    join(site.site, 'wp-content/mu-plugins/graphql-passwords.php'),
    "<?php add_filter( 'application_password_is_api_request', '__return_true' );",
  )
  const upstream = { targets: [site.origin] }
  const changes = withCompanion ? { changes: { token, poll: '1s' } } : {}
  const gateway = await startTestGateway({
    admin: { port },
    services: {
      blog: siteService(site.origin, {
        ...{ names: 'same', mount: root, discovery: { source: 'upstream' } },
        cache: { rules: [{ match: 'GET /**', ttl: '1h' }] },
        ...changes,
      }),
      graph: {
        ...{ contract: 'graphql', mount: endpoint },
        upstream: { ...upstream, basePath: endpoint },
        cache: { rules: [{ match: 'query *', ttl: '1h' }] },
        graphql: { maxAliases: 60 },
        ...changes,
      },
      pages: { contract: 'open', mount: '/', upstream },
    },
  })
  await expect
    .poll(() => fetch(`${gateway.publicAddress}${root}/`).then(({ status }) => status), { timeout: 60_000 })
    .toBe(200)
  if (withCompanion)
    await expect
      .poll(() => gateway.metric('trellis_changes_state', 'service="graph"', 'state="heard"'), {
        timeout: 60_000,
      })
      .toBe(1)
  return { site, gateway, ids: await idsOn(site.origin) }
}

/** What a front end asks, one to six levels deep; some show nothing yet. */
const queriesFor = ({ posts, pages, users }: Ids): readonly string[] => [
  '{ generalSettings { title description } }',
  '{ posts(first: 10) { nodes { databaseId title } } }',
  '{ posts(first: 5) { nodes { title author { node { name } } categories { nodes { name count } } } } }',
  ...[-1, -3, -4, 20].map(
    (at) => `{ post(id: ${posts.at(at)}, idType: DATABASE_ID) { title content modified } }`,
  ),
  `{ post(id: ${posts.at(20)}, idType: DATABASE_ID) { comments { nodes { content } } commentCount } }`,
  `{ post(id: ${(posts.at(-1) ?? 0) + 1}, idType: DATABASE_ID) { title } }`,
  `{ user(id: ${users[0]}, idType: DATABASE_ID) { name posts { nodes { title } } } }`,
  '{ users { nodes { name posts(first: 3) { nodes { title comments { nodes { content author { node { name } } } } } } } } }',
  '{ categories { nodes { name description count posts(first: 3) { nodes { title } } } } }',
  `{ page(id: ${pages[1]}, idType: DATABASE_ID) { title } }`,
  '{ contentNodes(first: 20) { nodes { id uri modified } } }',
  `{ post(id: ${posts.at(-3)}, idType: DATABASE_ID) { featuredImage { node { altText } } } }`,
  '{ tags { nodes { name } } }',
]

const ask = async (url: string, query: string, headers: Record<string, string> = {}) => {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify({ query }),
  })
  const text = await response.text()
  return { text, isHit: (response.headers.get('cache-status') ?? '').startsWith('trellis; hit') }
}

/** Addresses differ by their ports alone; how long a request took is in no result. */
const dataOf = (text: string): string => {
  const { data } = JSON.parse(text) as { readonly data?: unknown }
  return JSON.stringify(data ?? null).replaceAll(/http:\/\/127\.0\.0\.1:\d+/g, '@')
}

type Write = () => Promise<unknown>

/** Writes by every door; those past the gateway only where the companion reports them. */
const writesOf = (
  { site, gateway, ids }: World,
  withCompanion: boolean,
  nth: () => number,
): Readonly<Record<string, Write>> => {
  const through = gateway.publicAddress
  const authorization = { Authorization: basic(site.credentials.admin) }
  const mutate = async (text: string, headers: Record<string, string> = authorization): Promise<void> => {
    const { text: answer } = await ask(`${through}${endpoint}`, text, headers)
    if (answer.includes('"errors"') && headers === authorization) throw new Error(`${text}: ${answer}`)
  }
  const rest = async (method: string, path: string, body: object): Promise<void> => {
    const response = await site.rest(method, `/wp/v2/${path}`, body, through)
    const text = await response.text()
    if (response.status >= 400) throw new Error(`${method} ${path}: ${text}`)
  }
  const script = async (code: string): Promise<void> => {
    const { code: ended, output } = await site.php(code)
    if (ended !== 0) throw new Error(output)
  }
  const { posts, categories, media } = ids
  const some = [posts.at(-1), posts.at(-3), posts.at(-4), posts.at(20)]
  const globalId = (id: number | undefined): string => Buffer.from(`post:${id}`).toString('base64')
  const each = (): number => some[nth() % some.length] ?? 0
  return {
    'REST: title': () => rest('PUT', `posts/${each()}`, { title: `Title ${nth()}` }),
    'REST: new post': () => rest('POST', 'posts', { title: `New ${nth()}`, status: 'publish', content: 'x' }),
    'REST: draft, then published': async () => {
      const draft = await site.rest(
        'POST',
        '/wp/v2/posts',
        { title: `Draft ${nth()}`, status: 'draft' },
        through,
      )
      const { id } = (await draft.json()) as { readonly id: number }
      await rest('PUT', `posts/${id}`, { status: 'publish' })
    },
    'REST: category': () => rest('PUT', `categories/${categories.at(2)}`, { description: `About ${nth()}` }),
    'REST: comment': () => rest('POST', 'comments', { post: posts.at(20), content: `Said ${nth()}` }),
    'REST: site title': () => rest('PUT', 'settings', { title: `Site ${nth()}` }),
    'REST: thumbnail': () =>
      rest('PUT', `posts/${posts.at(-3)}`, { featured_media: media.at(nth() % media.length) }),
    'mutation: new post': () =>
      mutate(`mutation { createPost(input: { title: "Made ${nth()}", status: PUBLISH }) { post { id } } }`),
    'mutation: title': () =>
      mutate(
        `mutation { updatePost(input: { id: "${globalId(each())}", title: "Set ${nth()}" }) { post { id } } }`,
      ),
    'mutation without rights': () =>
      mutate('mutation { createPost(input: { title: "No" }) { post { id } } }', {}),
    'mutation that does not exist': () => mutate('mutation { nothing }', {}),
    'form: heartbeat': async () => {
      const body = new URLSearchParams({ action: 'heartbeat' })
      await (await fetch(`${through}/wp-admin/admin-ajax.php`, { method: 'POST', body })).text()
    },
    ...(withCompanion
      ? {
          'script: title': () =>
            script(`wp_update_post( array( 'ID' => ${each()}, 'post_title' => 'Script ${nth()}' ) );`),
          'script: option': () => script(`update_option( 'blogdescription', 'Tagline ${nth()}' );`),
          'script: meta': () =>
            script(
              `update_post_meta( ${posts.at(-3)}, '_thumbnail_id', ${media.at(nth() % media.length)} );`,
            ),
        }
      : {}),
  }
}

type Outcome = { stored: number; hits: number; reads: number; readonly older: string[] }

/** Reads all queries through the gateway, and compares those that were stored with what WordPress says now. */
const compare = async (
  { site, gateway }: World,
  queries: readonly string[],
  write: string,
  outcome: Outcome,
) => {
  for (const query of queries) {
    const { text, isHit } = await ask(`${gateway.publicAddress}${endpoint}`, query)
    outcome.reads += 1
    if (!isHit) continue
    outcome.hits += 1
    const now = await ask(`${site.origin}${endpoint}`, query)
    if (dataOf(text) !== dataOf(now.text)) outcome.older.push(`${write}: ${query} ${text} ${now.text}`)
  }
}

describeSite('WPGraphQL on a real WordPress', () => {
  test.each([false, true])(
    'after each of many writes no stored query is older than what WordPress says (companion: %s)',
    async (withCompanion) => {
      const world = await openWorld(withCompanion)
      const random = randomFrom(seed)
      let count = 0
      const doors = writesOf(world, withCompanion, () => count)
      const queries = queriesFor(world.ids)
      const outcome: Outcome = { stored: 0, hits: 0, reads: 0, older: [] }
      try {
        for (; count < writes; count += 1) {
          for (const query of queries)
            if ((await ask(`${world.gateway.publicAddress}${endpoint}`, query)).isHit) outcome.stored += 1
          const name = oneOf(random, Object.keys(doors))
          await doors[name]?.()
          await compare(world, queries, `${count} ${name}`, outcome)
        }
      } finally {
        await world.gateway.close()
        await world.site.stop()
      }
      const { stored, hits, reads, older } = outcome
      process.stdout.write(
        `companion ${withCompanion}: ${count} writes, ${hits} of ${reads} reads after a write were hits, ${stored} before it\n`,
      )
      expect(older).toEqual([])
      expect(stored).toBeGreaterThan(queries.length)
    },
    600_000,
  )
})
