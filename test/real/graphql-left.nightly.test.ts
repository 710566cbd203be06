import { expect, test } from 'vitest'
import { ask, type GraphqlWorld, openGraphqlWorld } from './graphql/world.ts'
import { describeSite } from './sites/describe-site.ts'

const rest = async (
  { site, gateway }: GraphqlWorld,
  method: string,
  path: string,
  body: object,
): Promise<void> => {
  const { ok, status } = await site.rest(method, path, body, gateway.publicAddress)
  expect(ok, `${method} ${path}: ${status}`).toBe(true)
}

const hits = async (world: GraphqlWorld, queries: readonly string[]): Promise<readonly boolean[]> =>
  (await Promise.all(queries.map((query) => ask(world, query)))).map(({ isHit }) => isHit)

const fill = (world: GraphqlWorld, queries: readonly string[]): Promise<void> =>
  expect.poll(async () => (await hits(world, queries)).every(Boolean)).toBe(true)

const postOf = async ({ site }: GraphqlWorld, category: number): Promise<number> => {
  const response = await site.rest('GET', `/wp/v2/posts?categories=${category}`)
  const [post] = (await response.json()) as readonly { readonly id: number }[]
  if (post === undefined) throw new Error(`no post has the category ${category}`)
  return post.id
}

const categoryLeavesPosts = async (world: GraphqlWorld): Promise<void> => {
  const [category = 0] = world.ids.categories
  const post = await postOf(world, category)
  const withoutTerms = [
    `{ post(id: ${post}, idType: DATABASE_ID) { title content uri author { node { name } } } }`,
    '{ posts(first: 10) { nodes { title } } }',
  ]
  const withTerms = `{ post(id: ${post}, idType: DATABASE_ID) { categories { nodes { name description } } } }`
  await fill(world, [...withoutTerms, withTerms])
  await rest(world, 'PUT', `/wp/v2/categories/${category}`, { description: 'Another one' })
  expect(await hits(world, withoutTerms)).toEqual([true, true])
  const shown = await ask(world, withTerms)
  expect(shown.isHit).toBe(false)
  expect(shown.result).toContain('Another one')
}

const batchLeavesOthers = async (world: GraphqlWorld): Promise<void> => {
  const { pages, posts } = world.ids
  const [first = 0, second = 0] = pages
  const queries = [
    ...[first, second].map((id) => `{ page(id: ${id}, idType: DATABASE_ID) { title } }`),
    `{ post(id: ${posts[0]}, idType: DATABASE_ID) { title } }`,
  ]
  await fill(world, queries)
  const requests = [first, second].map((id) => ({
    ...{ method: 'PUT', path: `/wp/v2/pages/${id}` },
    body: { title: `Batched ${id}` },
  }))
  await rest(world, 'POST', '/batch/v1', { requests })
  expect(await hits(world, queries)).toEqual([false, false, true])
}

describeSite('WPGraphQL with the companion', () => {
  test('a category leaves the posts of queries that show none, and a batch of pages leaves posts', async () => {
    const world = await openGraphqlWorld(true)
    try {
      await categoryLeavesPosts(world)
      await batchLeavesOthers(world)
    } finally {
      await world.stop()
    }
  }, 300_000)
})
