import { writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Change } from './companion/intake.ts'
import { reaches } from './companion/reach.ts'
import { pluginSets } from './sites/archives.ts'
import { describeSite } from './sites/describe-site.ts'
import { idsOn } from './sites/reads.ts'
import { type RealSite, startRealSite } from './sites/start-real-site.ts'

const root = '/index.php/wp-json'

/** `?newer=` names the constant with the version of a plugin, which has another one; `?without=` a plugin that is not active. */
const versions = `<?php
isset( $_GET['newer'] ) && define( $_GET['newer'], '99.1' );
isset( $_GET['without'] ) && add_filter( 'option_active_plugins', function ( $plugins ) {
	return preg_grep( '/^' . $_GET['without'] . '/', $plugins, PREG_GREP_INVERT );
} );`

/** Of another plugin: `?adds=` names a hook of titles, a field, a variable of titles or a type of fields, which shows how many posts the first category of the post has. */
const adding = `<?php if ( isset( $_GET['adds'] ) ) {
	function shows_number( $text ) {
		$terms = get_the_terms( get_post(), 'category' );
		return is_string( $text ) && is_array( $terms ) ? $text . $terms[0]->count : $text;
	}
	if ( 'field' === $_GET['adds'] ) {
		add_action( 'rest_api_init', function () {
			register_rest_field( 'post', 'numbers', array( 'get_callback' => function () { return shows_number( '' ); } ) );
		} );
	} elseif ( 'variable' === $_GET['adds'] ) {
		add_action( 'wpseo_register_extra_replacements', function () {
			wpseo_register_var_replacement( '%%number_of_posts%%', function () { return shows_number( '' ); } );
		} );
	} elseif ( 'type' === $_GET['adds'] ) {
		add_action( 'acf/include_field_types', function () {
			acf_register_field_type( new class() extends acf_field {
				public function initialize() {
					$this->name = 'numbers';
				}
				public function format_value_for_rest( $value, $post_id, array $field ) {
					return shows_number( '' );
				}
			} );
		} );
	} else {
		add_filter( $_GET['adds'], 'shows_number' );
	}
}`

const address = {
  ...{ first_name: 'Ada', last_name: 'Lovelace', address_1: 'Street 1', city: 'Berlin', postcode: '10115' },
  ...{ country: 'DE', email: 'ada@example.org', phone: '030 1234567', state: '' },
}

describeSite('what responses of a shop depend on (WooCommerce, Yoast SEO, ACF)', () => {
  let site: RealSite
  let products: readonly number[]

  const read = async (path: string) => {
    const response = await fetch(`${site.origin}${root}${path}`)
    const body = await response.text()
    expect(response.status, body.slice(0, 200)).toBe(200)
    const tags = response.headers.get('trellis-tags') ?? ''
    expect(tags).toMatch(/;complete;|^v2;/)
    return { tags, body, maxAge: Number(response.headers.get('trellis-max-age') ?? 'NaN') }
  }
  /** What a reading depends on at which plugins store nothing: most store at the first one, and report it. */
  const tagsOf = async (path: string): Promise<string> => {
    const count = site.intake.pushes.length
    const { tags } = await read(path)
    return site.intake.pushes.length === count ? tags : (await read(path)).tags
  }

  /** What is reported until the request that was sent is answered. */
  const changesBy = async (send: () => Promise<unknown>): Promise<readonly Change[]> => {
    const count = site.intake.pushes.length
    await send()
    return site.intake.pushes.slice(count).flatMap(({ changes }) => changes)
  }
  const rest = async (method: string, path: string, body: unknown): Promise<{ readonly id: number }> => {
    const response = await site.rest(method, path, body)
    const text = await response.text()
    expect(response.ok, text.slice(0, 300)).toBe(true)
    return JSON.parse(text) as { readonly id: number }
  }
  const php = async (code: string): Promise<void> => {
    const { code: exit, output } = await site.php(code)
    expect([exit, output]).toEqual([0, ''])
  }
  /** Which of these responses one write keeps. */
  const keptAmong = async (
    paths: readonly string[],
    send: () => Promise<unknown>,
  ): Promise<readonly string[]> => {
    const tags = new Map<string, string>()
    for (const path of paths) tags.set(path, await tagsOf(path))
    const changes = await changesBy(send)
    expect(changes).not.toEqual([])
    return paths.filter((path) => !reaches(changes, tags.get(path) ?? ''))
  }
  const kept = async (path: string, send: () => Promise<unknown>): Promise<boolean> =>
    (await keptAmong([path], send)).length === 1

  beforeAll(async () => {
    site = await startRealSite({ plugins: pluginSets.shop, withCompanion: true })
    await writeFile(`${site.site}/wp-content/mu-plugins/zz-adding.php`, adding)
    await writeFile(`${site.site}/wp-content/mu-plugins/zz-versions.php`, versions)
    // The first change after another plugin was added is one of everything.
    await php(`update_option( 'woocommerce_custom_orders_table_enabled', 'yes' );`)
    const { body } = await read('/wc/store/v1/products?per_page=100')
    products = (JSON.parse(body) as readonly { readonly id: number }[]).map(({ id }) => id)
  }, 600_000)
  afterAll(() => site?.stop())

  /** Somebody puts a product into a cart and buys it. */
  const buy = async (product: number): Promise<void> => {
    const send = async (path: string, cart: string, body?: object) => {
      const response = await fetch(`${site.origin}${root}/wc/store/v1/${path}`, {
        headers: { 'Content-Type': 'application/json', 'Cart-Token': cart },
        ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
      })
      const text = await response.text()
      expect(response.ok, text.slice(0, 300)).toBe(true)
      return response.headers.get('cart-token') ?? cart
    }
    const cart = await send('cart', '')
    await send('cart/add-item', cart, { id: product, quantity: 1 })
    const addresses = { billing_address: address, shipping_address: address }
    await send('checkout', cart, { ...addresses, payment_method: 'cod' })
  }

  /** An order that is not paid reserves stock for ten minutes. */
  const reserve = (product: number): Promise<void> =>
    php(
      `$order = wc_create_order( array( 'status' => 'pending' ) ); $order->add_product( wc_get_product( ${product} ), 1 ); $order->save(); ( new Automattic\\WooCommerce\\Checkout\\Helpers\\ReserveStock() )->reserve_stock_for_order( $order, 10 ); update_option( 'last_order', $order->get_id(), false );`,
    )
  const cancel = (): Promise<void> =>
    php(`wc_get_order( get_option( 'last_order' ) )->update_status( 'cancelled' );`)

  test.each([
    ['orders of their own', 'yes'],
    ['orders that are posts', 'no'],
  ])(
    'an order is a change of the product that it has, and of no other one (%s)',
    { timeout: 120_000 },
    async (_how, own) => {
      // WooCommerce itself wants other orders to be moved first.
      await php(
        `$GLOBALS['wpdb']->update( 'wp_options', array( 'option_value' => '${own}' ), array( 'option_name' => 'woocommerce_custom_orders_table_enabled' ) );`,
      )
      const [sold = 0, other = 0] = products
      const pathOf = (id: number): string => `/wc/store/v1/products/${id}`
      const tagsOfOther = await tagsOf(pathOf(other))
      for (const [what, send] of [
        ['reserve', () => reserve(sold)],
        ['cancel', cancel],
        ['buy', () => buy(sold)],
      ] as const) {
        const { tags, maxAge } = await read(pathOf(sold))
        // What is reserved ends without a write.
        if (what === 'cancel') expect(maxAge).toBeLessThanOrEqual(600)
        const changes = await changesBy(send)
        expect([what, reaches(changes, tags), reaches(changes, tagsOfOther)]).toEqual([what, true, false])
      }
    },
  )

  test('a price is no change of the list of categories, and a review is one', async () => {
    const [product = 0] = products
    const path = '/wc/store/v1/products/categories'
    const price = (regular_price: string) => () =>
      rest('PUT', `/wc/v3/products/${product}`, { regular_price })
    await price('30')()
    expect(await kept(path, price('31'))).toBe(true)
    const review = {
      product_id: product,
      review: 'Good',
      reviewer: 'Ada',
      reviewer_email: 'ada@example.org',
      rating: 5,
    }
    expect(await kept(path, () => rest('POST', '/wc/v3/products/reviews', review))).toBe(false)
  })

  test('a page that lists products anew shows what it stores, and is not dropped by it', async () => {
    const path = '/wp/v2/pages?per_page=20'
    await tagsOf(path)
    // WooCommerce knows by the second whether what it has stored is older than a post.
    const stored = Math.floor(Date.now() / 1000)
    await expect.poll(() => Math.floor(Date.now() / 1000)).toBeGreaterThan(stored)
    await rest('POST', '/wp/v2/posts', { title: 'New', status: 'publish' })
    const count = site.intake.pushes.length
    const response = await fetch(`${site.origin}${root}${path}`)
    expect(await response.text()).toContain('wc-block-grid')
    // Tasks of the post before may be reported meanwhile.
    const pushes = () =>
      site.intake.pushes
        .slice(count)
        .filter(({ request }) => request === response.headers.get('trellis-request'))
    await expect.poll(() => pushes().length).toBe(1)
    expect(pushes().flatMap(({ changes }) => changes.map(({ name }) => name))).toContainEqual(
      expect.stringMatching(/^_transient_wc_blocks_query_/),
    )
  })

  test('a new post is no change of others in its category, unless other code shows how many there are', {
    timeout: 120_000,
  }, async () => {
    const { posts } = await idsOn(site.origin)
    const id = posts.at(-3) ?? 0
    const { categories } = JSON.parse((await read(`/wp/v2/posts/${id}`)).body) as {
      readonly categories: readonly number[]
    }
    const publish = () =>
      rest('POST', '/wp/v2/posts', { title: 'New', content: '<p>New.</p>', status: 'publish', categories })
    await publish()
    const queries = [
      ...['', 'adds=the_title', 'adds=wpseo_title', 'adds=acf/load_value'],
      ...['adds=field', 'adds=variable', 'adds=type'],
      // What is known of a plugin is known of the version that was tested.
      ...['newer=ACF_VERSION', 'newer=WC_VERSION', 'newer=WPSEO_VERSION'],
      // ACF shows whole terms in this format.
      ...['acf_format=standard', '_embed=1'],
    ]
    const paths = queries.map((query) => `/wp/v2/posts/${id}?${query}`)
    expect(await keptAmong(paths, publish)).toEqual([paths[0], paths.at(-1)])
    // The operator is told which version that is.
    const untested = async (query: string): Promise<string | null> => {
      const response = await fetch(`${site.origin}/index.php/wp-json/wp/v2/posts/${id}${query}`)
      await response.arrayBuffer()
      return response.headers.get('trellis-untested')
    }
    expect(await untested('')).toBeNull()
    expect(await untested('?newer=WC_VERSION')).toMatch(/^woocommerce \d/)
  })

  test('the description of a category is no change of its posts, unless code shows more of terms than ids and slugs', {
    timeout: 120_000,
  }, async () => {
    const { posts } = await idsOn(site.origin)
    const id = posts.at(-4) ?? 0
    const { categories } = JSON.parse((await read(`/wp/v2/posts/${id}`)).body) as {
      readonly categories: readonly number[]
    }
    let nth = 0
    const change = (what: 'description' | 'slug') => () => {
      nth += 1
      return rest('PUT', `/wp/v2/categories/${categories[0]}`, { [what]: `${what}-${nth}` })
    }
    const path = `/wp/v2/posts/${id}?without=wordpress-seo`
    // Yoast SEO names the categories of a post.
    const others = [`/wp/v2/posts/${id}`, `${path}&newer=ACF_VERSION`, `${path}&adds=acf/load_value`]
    expect(await keptAmong([path, ...others], change('description'))).toEqual([path])
    expect(await kept(path, change('slug'))).toBe(false)
  })
})
