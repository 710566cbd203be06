import { writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { rowsOf } from '../support/breadth.ts'
import { describeWith } from '../support/requirements.ts'
import { hiddenReads, hiddenReadsPlugin } from './companion/hidden-reads.ts'
import type { Change } from './companion/intake.ts'
import { reaches } from './companion/reach.ts'
import { reads } from './companion/reads.ts'
import { type CompanionSite, startCompanionSite } from './companion/site.ts'
import { writesByIndex } from './companion/writes.ts'
import { forAll } from './for-all.ts'

const someReads = rowsOf(reads, 3)

/** Callbacks of plugins by what they are. */
const callbacks = fileURLToPath(new URL('./companion/plain-callbacks.php', import.meta.url))

type Tags = {
  readonly complete: boolean
  readonly text: string
  readonly ids: ReadonlyMap<string, ReadonlySet<string>>
}
type Reply = {
  readonly body: string
  readonly status: number
  readonly tags: Tags | undefined
  readonly maxAge: string | null
  readonly incomplete: string | null
}

/** Reads the header as a gateway does: damage shows in the count. */
function readTags(value: string): Tags {
  const [version, count, ...rest] = value.split(';')
  expect(version).toBe('v1')
  const lists = rest.filter((part) => part.includes('=') && !part.startsWith('blogs='))
  const ids = new Map(
    lists.map((part) => [
      part.slice(0, part.indexOf('=')),
      new Set(part.slice(part.indexOf('=') + 1).split(',')),
    ]),
  )
  const total = [...ids.values()].reduce((sum, { size }) => sum + size, 0)
  expect(count).toBe(`n=${total}`)
  expect(value.length).toBeLessThanOrEqual(2500)
  for (const list of ids.values()) for (const name of list) expect(name).toMatch(/^[A-Za-z0-9_.:-]{1,191}$/)
  return { complete: rest.includes('complete'), text: value, ids }
}

describeWith('php', 'the tags of answers', () => {
  let site: CompanionSite

  beforeAll(async () => {
    site = await startCompanionSite()
  })
  afterAll(() => site?.stop())

  const read = async (path: string, init: RequestInit = {}): Promise<Reply> => {
    const response = await fetch(`${site.origin}/index.php/wp-json${path}`, init)
    const value = response.headers.get('trellis-tags')
    const maxAge = response.headers.get('trellis-max-age')
    const incomplete = response.headers.get('trellis-incomplete')
    const body = await response.text()
    const tags = value === null ? undefined : readTags(value)
    return { body, status: response.status, tags, maxAge, incomplete }
  }
  const readAll = async (): Promise<ReadonlyMap<string, Reply>> =>
    new Map(await forAll(someReads, async (path) => [path, await read(path)] as const))

  test('an item names itself, its terms and its options', async () => {
    const { tags } = await read('/wp/v2/posts/10')
    expect(tags?.complete).toBe(true)
    expect([...(tags?.ids.get('p') ?? [])]).toContain('10')
    expect(tags?.ids.get('t')?.size).toBe(2)
    expect([...(tags?.ids.get('o') ?? [])]).toContain('timezone_string')
    expect(tags?.text).toContain(';early;')
    // It shows neither how many posts its terms have, nor how many comments it has.
    expect(tags?.text).toContain(';plain;')
  })

  test('a list names its collection and its items, with what they embed', async () => {
    const { tags, body } = await read('/wp/v2/posts?_embed=1&per_page=5')
    const items = JSON.parse(body) as { id: number; author: number }[]
    expect([...(tags?.ids.get('p') ?? [])]).toEqual(expect.arrayContaining(items.map(({ id }) => String(id))))
    expect([...(tags?.ids.get('u') ?? [])]).toEqual(
      expect.arrayContaining(items.map(({ author }) => String(author))),
    )
    expect([...(tags?.ids.get('q') ?? [])]).toContain('sd:post:publish')
    // The embedded terms show no number of posts, those that are asked for do.
    expect(tags?.text).toContain(';plain;')
    expect((await read(`/wp/v2/categories?post=${items[0]?.id}`)).tags?.text).not.toContain(';plain;')
    expect((await read('/wp/v2/categories/5?_embed=1&context=embed')).tags?.text).not.toContain(';plain;')
  })

  test('a comment names the list of its replies, and not all comments', async () => {
    const { tags } = await read('/wp/v2/comments/2')
    expect([...(tags?.ids.get('q') ?? [])]).toEqual(['h:comment:2'])
    expect(tags?.ids.get('list')).toBeUndefined()
  })

  test('a response that is too long for a header is known as incomplete', async () => {
    const many = `<?php if ( isset( $_GET['many'] ) ) { add_action( 'rest_api_init', function () { for ( $n = 0; $n < 300; $n++ ) { get_option( md5( $n ) ); } } ); }`
    await writeFile(`${site.site}/wp-content/mu-plugins/zz-many.php`, many)
    const { tags } = await read('/wp/v2/posts?many=1')
    expect(tags).toMatchObject({ complete: false })
    expect([...(tags?.ids.get('list') ?? [])]).toContain('any')
  })

  test('a list of a hundred posts is described completely: lists that differ in a number are named together', async () => {
    const { tags } = await read('/wp/v2/posts?per_page=100')
    const text = tags?.text ?? ''
    expect(tags?.complete).toBe(true)
    expect(tags?.ids.get('p')?.size).toBeGreaterThanOrEqual(100)
    expect(text).toMatch(/sd:revision:inherit:parent:\d+\.\d+/)
  })

  test('options that are read while plugins load are named together, and a change says which of them it is', async () => {
    const many = `<?php if ( isset( $_GET['begin'] ) ) { for ( $n = 0; $n < 190; $n++ ) { get_option( 'garden_shop_' . md5( $n ) ); } get_transient( 'garden_shop' ); }`
    await writeFile(`${site.site}/wp-content/mu-plugins/zz-begin.php`, many)
    // The first such response names each of them, which is too long here, and stores the names.
    expect((await read('/wp/v2/posts?begin=1')).tags?.complete).toBe(false)
    const { tags } = await read('/wp/v2/posts?begin=1')
    const text = tags?.text ?? ''
    expect(text).toContain(';complete;')
    expect(text.length).toBeLessThan(1_500)
    expect(text).not.toContain('garden_shop')
    const count = site.intake.pushes.length
    await site.request(
      `update_option( 'garden_shop_' . md5( 3 ), 'x' ); update_option( 'garden_shop_basket', 'x' ); set_transient( 'garden_shop', 'x', 600 );`,
    )
    const changes = site.intake.pushes.slice(count).flatMap((push) => push.changes)
    const reaching = changes.filter((change) => reaches([change], text))
    expect(reaching.map((change) => 'name' in change && change.name).sort()).toEqual([
      '_transient_garden_shop',
      'garden_shop_eccbc87e4b5ce2fe28308fd9f2a7baf3',
    ])
    expect(changes).toContainEqual({ kind: 'option', name: 'garden_shop_basket' })
  })

  test('posts show slugs of terms, and what they embed shows more', async () => {
    expect((await read('/wp/v2/posts/10')).tags?.text).toContain(';slugs;')
    expect((await read('/wp/v2/posts/10?_embed=1')).tags?.text).not.toContain(';slugs;')
    expect((await read('/wp/v2/categories/2')).tags?.text).not.toContain(';slugs;')
  })

  test('where a plugin orders terms, posts show more than their slugs', async () => {
    const order = `<?php if ( isset( $_GET['order'] ) ) {
	'args' === $_GET['order'] && add_action( 'init', function () { get_taxonomy( 'post_tag' )->args = array( 'orderby' => 'term_id' ); } );
	'statement' === $_GET['order'] && add_filter( 'get_terms_orderby', function () { return 't.term_id'; } );
	'clauses' === $_GET['order'] && add_filter( 'terms_clauses', function ( $clauses ) { return array( 'orderby' => 'ORDER BY t.term_group' ) + $clauses; } );
	'names' === $_GET['order'] && add_filter( 'terms_clauses', function ( $clauses ) { return $clauses; } );
	add_filter( $_GET['order'], function ( $terms ) { return is_array( $terms ) ? array_reverse( $terms ) : $terms; } );
} `
    await writeFile(`${site.site}/wp-content/mu-plugins/zz-order.php`, order)
    for (const way of ['args', 'statement', 'clauses', 'get_the_terms', 'get_terms', 'wp_get_object_terms'])
      expect((await read(`/wp/v2/posts/10?order=${way}`)).tags?.text, way).not.toContain(';slugs;')
    expect((await read('/wp/v2/posts/10?order=names')).tags?.text).toContain(';slugs;')
  })

  test('a name of a term that is written without its slug, by a search and replace, orders terms as well', async () => {
    await site.request(
      `$GLOBALS['wpdb']->update( 'wp_terms', array( 'name' => 'First' ), array( 'term_id' => 5 ) );`,
    )
    const count = site.intake.pushes.length
    const slugs = 'v1;n=1;complete;slugs;blogs=1;t=5'
    const changes = () => site.intake.pushes.slice(count).flatMap((push) => push.changes)
    await site.request(
      `$GLOBALS['wpdb']->update( 'wp_term_taxonomy', array( 'description' => 'x' ), array( 'term_id' => 5 ) );`,
    )
    expect(changes()).toHaveLength(1)
    expect(reaches(changes(), slugs)).toBe(false)
    await site.request(
      `$GLOBALS['wpdb']->update( 'wp_terms', array( 'name' => 'Last' ), array( 'term_id' => 5 ) );`,
    )
    expect(reaches(changes(), slugs)).toBe(true)
  })

  test('a field that a plugin registers adds to what shows its type, and to nothing else', async () => {
    const field = `<?php if ( isset( $_GET['field'] ) ) { add_action( 'rest_api_init', function () { register_rest_field( $_GET['field'], 'garden', array( 'get_callback' => '__return_true' ) ); } ); }`
    await writeFile(`${site.site}/wp-content/mu-plugins/zz-field.php`, field)
    const isPlain = async (path: string): Promise<boolean | undefined> =>
      (await read(path)).tags?.text.includes(';plain;')
    expect(await isPlain('/wp/v2/posts/10?field=page')).toBe(true)
    expect(await isPlain('/wp/v2/posts/10?field=post')).toBe(false)
    expect(await isPlain('/wp/v2/posts/10?_embed=1&field=category')).toBe(false)
  })

  test('what a plugin hooks to the whole response, or to what makes it, adds to it', async () => {
    const whole = `<?php if ( isset( $_GET['whole'] ) ) { add_filter( $_GET['whole'], function ( $given ) { $GLOBALS['acme_name'] = get_the_author_meta( 'display_name', 1 ); return $given; } ); }`
    await writeFile(`${site.site}/wp-content/mu-plugins/zz-whole.php`, whole)
    expect((await read('/wp/v2/posts/10')).tags?.text).toContain(';plain;')
    for (const hook of ['rest_pre_echo_response', 'rest_dispatch_request', 'rest_post_dispatch']) {
      const { tags } = await read(`/wp/v2/posts/10?whole=${hook}`)
      expect(tags?.text, hook).not.toContain(';plain;')
      expect(tags?.text, hook).toMatch(/;u=1[,;]/)
    }
  })

  test('where a plugin makes addresses of posts, with the name of an author, a response names him', async () => {
    const address = `<?php isset( $_GET['address'] ) && add_filter( $_GET['address'], function ( $link ) { return $link . '?by=' . get_the_author_meta( 'user_nicename', 1 ); } );`
    await writeFile(`${site.site}/wp-content/mu-plugins/zz-address.php`, address)
    expect((await read('/wp/v2/posts/10')).tags?.text).not.toContain(';u=')
    expect((await read('/wp/v2/posts/10?address=post_link')).tags?.text).toMatch(/;u=1[,;]/)
    expect((await read('/wp/v2/pages?address=page_link')).tags?.text).toMatch(/;u=1[,;]/)
  })

  test('where a plugin makes addresses of posts, they may have more of terms than slugs', async () => {
    const address = `<?php isset( $_GET['described'] ) && add_filter( $_GET['described'], function ( $link ) { $terms = get_the_terms( get_post(), 'category' ); return $link . '?' . ( $terms ? $terms[0]->description : '' ); } );`
    await writeFile(`${site.site}/wp-content/mu-plugins/zz-described.php`, address)
    expect((await read('/wp/v2/posts/10')).tags?.text).toMatch(/;plain;slugs;/)
    for (const hook of ['pre_post_link', 'post_link']) {
      const { tags } = await read(`/wp/v2/posts/10?described=${hook}`)
      expect(tags?.text, hook).not.toMatch(/;(?:plain|uncounted|slugs);/)
    }
    expect((await read('/wp/v2/pages?described=page_link')).tags?.text).not.toContain(';slugs;')
  })

  test('the parents of terms are known by the changes of terms, not by the option that memoizes them', async () => {
    const hierarchy = `<?php if ( isset( $_GET['parents'] ) ) { add_action( 'rest_api_init', function () { _get_term_hierarchy( 'category' ); } ); }`
    await writeFile(`${site.site}/wp-content/mu-plugins/zz-parents.php`, hierarchy)
    const path = '/wp/v2/posts/10?parents=1'
    const text = (await read(path)).tags?.text ?? ''
    expect(text).toMatch(/[=,]h:category[,;]/)
    expect(text).not.toContain('category_children')
    const changesBy = async (body: object): Promise<readonly Change[]> => {
      const count = site.intake.pushes.length
      await site.rest('PUT', '/wp/v2/categories/3', body)
      // WordPress makes the option again.
      await read(path)
      return site.intake.pushes.slice(count).flatMap((push) => push.changes)
    }
    // The first change after another plugin was added is one of everything.
    await changesBy({})
    await changesBy({ description: 'Described before' })
    const described = await changesBy({ description: 'Described' })
    expect(described.filter(({ kind }) => kind === 'option')).toEqual([])
    const moved = await changesBy({ parent: 4 })
    expect(reaches(moved, 'v1;n=1;complete;blogs=1;q=h:category')).toBe(true)
    expect(reaches(described, 'v1;n=1;complete;blogs=1;q=h:category')).toBe(false)
    await changesBy({ parent: 0 })
    // Parents that a plugin has written itself show in nothing until the option is wrong no more.
    for (const code of [
      `update_option( 'category_children', array( 4 => array( 3 ) ) );`,
      `delete_option( 'category_children' );`,
    ]) {
      const count = site.intake.pushes.length
      await site.request(code)
      const changes = site.intake.pushes.slice(count).flatMap((push) => push.changes)
      expect(reaches(changes, 'v1;n=1;complete;blogs=1;q=h:category'), code).toBe(true)
    }
  })

  test('a query of posts while plugins load does not make the sticky ones an option of each request', async () => {
    const query = `<?php if ( isset( $_GET['early'] ) ) { add_action( 'init', function () { get_posts( array( 'post_type' => 'page' ) ); } ); }`
    await writeFile(`${site.site}/wp-content/mu-plugins/zz-early.php`, query)
    await read('/wp/v2/posts/10?early=1')
    const count = site.intake.pushes.length
    const written = await site.rest('PUT', '/wp/v2/posts/74', { sticky: true })
    expect([written.status, await written.text()][0]).toBe(200)
    const reported = () => site.intake.pushes.slice(count).flatMap((push) => push.changes)
    await expect.poll(reported).toContainEqual({ kind: 'option', name: 'sticky_posts', posts: [74] })
    await site.rest('PUT', '/wp/v2/posts/74', { sticky: false })
  })

  test('a list of what many types have is known by each type', async () => {
    const types = `<?php if ( isset( $_GET['types'] ) ) { add_action( 'init', function () { foreach ( range( 1, 12 ) as $n ) { register_post_type( "garden$n", array( 'public' => true, 'show_in_rest' => true ) ); } } ); }`
    await writeFile(`${site.site}/wp-content/mu-plugins/zz-types.php`, types)
    const text = (await read('/wp/v2/users?types=1')).tags?.text ?? ''
    expect(text).toContain('sa:garden12:publish')
    expect(text).not.toContain(':any:any')
  })

  test('an error, a write and a batch have no complete tags', async () => {
    expect((await read('/wp/v2/posts/99999')).tags?.complete).toBe(false)
    const written = await site.rest('PUT', '/wp/v2/posts/70', { title: 'w' })
    expect(written.headers.get('trellis-tags')).toBeNull()
    const batch = await site.rest('POST', '/batch/v1', { requests: [] })
    expect(batch.headers.get('trellis-tags')).toBeNull()
  })

  test('a response that changes by the clock is bounded in time', async () => {
    expect((await read('/wp/v2/posts/71')).maxAge).toBeNull()
    const ago = `<?php add_shortcode( 'ago', function () { return human_time_diff( time() - 90 ); } );`
    await writeFile(`${site.site}/wp-content/mu-plugins/ago.php`, ago)
    await site.rest('PUT', '/wp/v2/posts/71', { content: '[ago]' })
    expect((await read('/wp/v2/posts/71')).maxAge).toBe('60')
    await site.rest('PUT', '/wp/v2/posts/71', { content: '<!-- wp:calendar /-->' })
    const bound = Number((await read('/wp/v2/posts/71')).maxAge)
    expect(bound).toBeGreaterThan(0)
    expect(bound).toBeLessThanOrEqual(3600)
  })

  test('a response made of what WordPress does not report is bounded in time', async () => {
    const code = `<?php add_shortcode( 'quote', function () { if ( false === get_transient( 'quote' ) ) { set_transient( 'quote', 'q', 600 ); } return get_transient( 'quote' ); } ); add_shortcode( 'ask', function () { return wp_nonce_field( 'ask' ); } ); add_action( 'init', function () { get_transient( 'of_each_request' ); } );`
    await writeFile(`${site.site}/wp-content/mu-plugins/quote.php`, code)
    await site.rest('PUT', '/wp/v2/posts/72', { content: 'neither' })
    expect((await read('/wp/v2/posts/72')).maxAge).toBeNull()
    await site.rest('PUT', '/wp/v2/posts/72', { content: '[quote]' })
    const quoted = await read('/wp/v2/posts/72')
    expect(Number(quoted.maxAge)).toBeGreaterThan(500)
    expect(Number(quoted.maxAge)).toBeLessThanOrEqual(600)
    expect(quoted.tags?.complete).toBe(true)
    expect([...(quoted.tags?.ids.get('o') ?? [])]).toContain('_transient_quote')
    await site.rest('PUT', '/wp/v2/posts/72', { content: '[ask]' })
    expect((await read('/wp/v2/posts/72')).maxAge).toBe('43200')
  })

  test('the tags name what a plugin reads with its own statements, or the list is incomplete', {
    timeout: 240_000,
  }, async () => {
    await writeFile(`${site.site}/wp-content/mu-plugins/0-hidden.php`, hiddenReadsPlugin)
    const missed: string[] = []
    const causes = new Set<string | null>()
    for (const [title, shortcode, change] of hiddenReads) {
      await site.rest('PUT', '/wp/v2/posts/90', { content: `[${shortcode}]` })
      await read('/wp/v2/posts/90')
      const before = await read('/wp/v2/posts/90')
      const count = site.intake.pushes.length
      await site.request(change)
      const after = await read('/wp/v2/posts/90')
      const changes = site.intake.pushes.slice(count).flatMap((push) => push.changes)
      const isReached =
        before.tags === undefined || !before.tags.complete || reaches(changes, before.tags.text)
      if (before.tags?.complete === (before.incomplete !== null))
        missed.push(`${title}: ${before.incomplete}`)
      causes.add(before.incomplete)
      if (!isReached) missed.push(`${title}: ${before.tags?.text} ${JSON.stringify(changes)}`)
      if (before.body === after.body) missed.push(`${title} shows no change`)
    }
    expect(missed).toEqual([])
    expect([...causes]).toContain('all options')
  })

  test('a callback counts as harmless only if its code uses nothing but its first argument, parameters and texts', async () => {
    const output = await site.request(
      `$is_plain = new ReflectionMethod( 'Trellis_Tags', 'is_plain_code' ); $is_plain->setAccessible( true ); foreach ( require '${callbacks}' as $kind => $all ) { foreach ( $all as $name => $one ) { if ( $is_plain->invoke( new Trellis_Tags( new Trellis_Log() ), $one ) !== ( 'plain' === $kind ) ) { echo "$kind: $name\n"; } } } echo 'done';`,
    )
    expect(output).toBe('done')
  })

  // Plugins and themes change what is registered by code; the fingerprint says so.
  const named = new Set([
    'REST: a featured image is set',
    'REST: a user is deleted',
    'REST: settings are changed',
  ])
  const some = rowsOf(writesByIndex, 80, ([title]) => named.has(title))
  /** What is read after a write is what was read before the next. */
  let latest: ReadonlyMap<string, Reply> | undefined

  test.each(some.map((write) => [write[0], write] as const))(
    '%s: every response that changes is reached by its tags',
    { timeout: 120_000 },
    async (_title, [, , run]) => {
      const before = latest ?? (await readAll())
      const count = site.intake.pushes.length
      await run(site)
      const changes = (): readonly Change[] => site.intake.pushes.slice(count).flatMap((push) => push.changes)
      await expect.poll(() => changes().length).toBeGreaterThan(0)
      const missed: string[] = []
      latest = await readAll()
      for (const [path, { body, tags }] of before) {
        if (latest.get(path)?.body === body || tags === undefined || !tags.complete) continue
        if (!reaches(changes(), tags.text)) missed.push(path)
      }
      expect(missed, JSON.stringify(changes()).slice(0, 2000)).toEqual([])
      const withTags = [...before.values()].filter(({ tags }) => tags?.complete === true)
      expect(withTags.length).toBeGreaterThan(someReads.length / 2)
    },
  )
})
