import { expect, test } from 'vitest'
import { ask, askWordPress, openGraphqlWorld } from './graphql/world.ts'
import { describeSite } from './sites/describe-site.ts'

/** The kinds of writes after which Smart Cache's own object cache is known to keep what it has. */
describeSite('WPGraphQL Smart Cache with its object cache', () => {
  test('gives what is older than WordPress after these writes; the gateway before it never does', async () => {
    const world = await openGraphqlWorld(true, ['graphql', 'graphql-cache', 'scf'])
    const { site, ids } = world
    const run = async (code: string): Promise<string> => {
      const { code: ended, output } = await site.php(code)
      if (ended !== 0) throw new Error(output)
      return output.trim()
    }
    try {
      await run("update_option( 'graphql_cache_section', array( 'cache_toggle' => 'on' ) );")
      const author = ids.users[0]
      const draft = await run(
        `echo wp_insert_post( array( 'post_title' => 'Later', 'post_status' => 'draft', 'post_author' => ${author} ) );`,
      )
      const [first, second] = [ids.posts.at(-3), ids.posts.at(-4)]
      const kinds: readonly (readonly [string, string, string])[] = [
        [
          'nested list after a publication',
          `{ user(id: ${author}, idType: DATABASE_ID) { posts(first: 3) { nodes { title } } } }`,
          `wp_insert_post( array( 'post_title' => 'Newest', 'post_status' => 'publish', 'post_author' => ${author} ) );`,
        ],
        [
          'null, then published',
          `{ post(id: ${draft}, idType: DATABASE_ID) { title } }`,
          `wp_publish_post( ${draft} );`,
        ],
        [
          '_thumbnail_id',
          `{ post(id: ${first}, idType: DATABASE_ID) { featuredImage { node { title } } } }`,
          `update_post_meta( ${first}, '_thumbnail_id', ${ids.media[1]} );`,
        ],
        ['option', '{ generalSettings { title } }', "update_option( 'blogname', 'Renamed' );"],
        [
          'title (which it purges)',
          `{ post(id: ${second}, idType: DATABASE_ID) { title } }`,
          `wp_update_post( array( 'ID' => ${second}, 'post_title' => 'Retitled' ) );`,
        ],
      ]
      const older: string[] = []
      for (const [kind, query, write] of kinds) {
        await askWordPress(world, [query])
        const [before] = await askWordPress(world, [query])
        await run(write)
        const [after] = await askWordPress(world, [query])
        // Another operation has another key there.
        const [now] = await askWordPress(world, [`query Now ${query}`])
        expect(now, kind).not.toBe(before)
        if (after !== now) older.push(kind)
        expect((await ask(world, query)).isHit, 'what comes from that cache is not stored').toBe(false)
      }
      process.stdout.write(`Smart Cache gives something older after: ${older.join(', ')}\n`)
      expect(older).toEqual([
        'nested list after a publication',
        'null, then published',
        '_thumbnail_id',
        'option',
      ])
    } finally {
      await world.stop()
    }
  }, 300_000)
})
