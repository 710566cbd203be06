import { expect, test } from 'vitest'
import { unpackedText } from '../../src/wordpress/tags/packed-description.ts'
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

/** As the companion says in docs/graphql.md: more is not listed. */
const maxTagBytes = 2_500

/** A hundred posts with authors, terms, media and two comments each; and, of one post, as many comments as no list holds. */
const addPosts = async ({ site, ids }: GraphqlWorld): Promise<number> => {
  // Numbers as an old site has them.
  const code = `
    foreach ( array( 'wp_posts', 'wp_comments' ) as $table ) $GLOBALS['wpdb']->query( "ALTER TABLE $table AUTO_INCREMENT = 400001" );
    for ( $n = 1; $n <= 100; $n++ ) {
      $id = wp_insert_post( array( 'post_title' => "Nested $n", 'post_status' => 'publish', 'post_author' => ${ids.users[0]} ) );
      set_post_thumbnail( $id, array( ${ids.media} )[ $n % ${ids.media.length} ] );
      wp_set_post_categories( $id, array( ${ids.categories[0]} ) );
      for ( $c = 1; $c <= 2; $c++ ) wp_insert_comment( array( 'comment_post_ID' => $id, 'comment_content' => "$n $c" ) );
    }
    mt_srand( 1 );
    for ( $n = 0; $n < 20; $n++ ) {
      $post = wp_insert_post( array( 'post_title' => "Commented $n", 'post_status' => 'publish', 'tags_input' => 'commented' ) );
      for ( $c = 1; $c <= 100; $c++ )
        $GLOBALS['wpdb']->insert( 'wp_comments', array( 'comment_ID' => mt_rand( 1000000, 90000000 ), 'comment_post_ID' => $post, 'comment_content' => "$n $c", 'comment_approved' => '1' ) );
    }
    echo $id;`
  const { code: ended, output } = await site.php(code)
  if (ended !== 0) throw new Error(output)
  return Number(output.trim())
}

const tagsOf = async ({ site }: GraphqlWorld, query: string): Promise<string> => {
  const response = await fetch(`${site.origin}/graphql?query=${encodeURIComponent(query)}`)
  const text = await response.text()
  expect(text).not.toContain('"errors"')
  return response.headers.get('trellis-tags') ?? ''
}

const listsAreBounded = async (world: GraphqlWorld): Promise<void> => {
  await addPosts(world)
  const nested = `{ posts(first: 100, where: { search: "Nested" }) { nodes { title
    author { node { name } } categories { nodes { name } } featuredImage { node { sourceUrl } }
    comments(first: 2) { nodes { content } } } } }`
  const huge =
    '{ posts(first: 20, where: { tag: "commented" }) { nodes { comments(first: 100) { nodes { content } } } } }'
  const [tagsOfNested, tagsOfHuge] = [await tagsOf(world, nested), await tagsOf(world, huge)]
  process.stdout.write(`100 posts: ${tagsOfNested.length} bytes; 2,000 comments: ${tagsOfHuge.length}\n`)
  expect(tagsOfNested).toMatch(/^v2;/)
  expect(tagsOfNested.length).toBeLessThanOrEqual(maxTagBytes)
  expect(unpackedText(tagsOfNested.slice(3), 100_000)).toContain(';complete;')
  // It says that it is not complete: any change drops it.
  expect(tagsOfHuge).toMatch(/^v1;/)
  expect(tagsOfHuge).not.toContain('complete')
  await fill(world, [nested, huge])
  await rest(world, 'PUT', `/wp/v2/pages/${world.ids.pages[0]}`, { title: 'Something else' })
  expect(await hits(world, [nested, huge])).toEqual([true, false])
}

describeSite('WPGraphQL with the companion', () => {
  test('a query of a hundred posts is listed whole; one of two thousand comments says that it is not, and every change drops it', async () => {
    const world = await openGraphqlWorld(true)
    try {
      await listsAreBounded(world)
    } finally {
      await world.stop()
    }
  }, 300_000)

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
