import { afterAll, beforeAll, expect, test } from 'vitest'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { describeWith } from '../support/requirements.ts'
import { startWordPress, type WordPress } from './wordpress/start-wordpress.ts'

const root = '/index.php/wp-json'

describeWith('php', 'a real WordPress with the routes of a large shop', () => {
  let wordpress: WordPress
  let gateway: TestGateway

  beforeAll(async () => {
    wordpress = await startWordPress({ plugins: ['large-shop'] })
    gateway = await startTestGateway({
      services: {
        site: siteService(wordpress.origin, {
          mount: root,
          names: 'same',
          discovery: { source: 'upstream' },
          cache: { rules: [{ match: 'GET /**', ttl: '60s' }] },
        }),
      },
    })
    expect((await fetch(`${gateway.publicAddress}${root}/`)).status).toBe(200)
  })
  afterAll(async () => {
    await gateway?.close()
    await wordpress?.stop()
  })

  type Seen = { readonly status: number; readonly body: unknown; readonly token: string }

  const ask = async (
    origin: string,
    method: string,
    path: string,
    body?: object,
    token = '',
  ): Promise<Seen> => {
    const headers: Record<string, string> = { 'Cart-Token': token }
    if (body !== undefined) headers['Content-Type'] = 'application/json'
    const content = body === undefined ? {} : { body: JSON.stringify(body) }
    const response = await fetch(`${origin}${root}${path}`, { method, headers, ...content })
    const text = await response.text()
    return {
      status: response.status,
      body: text.startsWith('<') ? text : JSON.parse(text),
      token: response.headers.get('cart-token') ?? '',
    }
  }

  const product = async (): Promise<number> => {
    const { body } = await ask(wordpress.origin, 'GET', '/wp/v2/large-products?per_page=1')
    return (body as readonly { readonly id: number }[])[0]?.id ?? 0
  }

  /** A new cart with one thing in it. */
  const cart = async (origin: string): Promise<string> => {
    const added = await ask(origin, 'POST', '/large-store/v1/cart/add-item', { id: await product() })
    expect(added).toMatchObject({ status: 200, token: expect.stringMatching(/^[0-9a-f]{32}$/) })
    return added.token
  }

  test('announces over 300 routes before those of WordPress', async () => {
    const { body } = await ask(wordpress.origin, 'GET', '/')
    const patterns = Object.keys((body as { readonly routes: object }).routes)
    expect(patterns.findIndex((one) => one.startsWith('/wp/v2/'))).toBeGreaterThan(300)
  })

  test.each([
    [
      'an order without members that the index calls required',
      '/large-store/v1/checkout',
      {
        billing_address: { first_name: 'A', city: 'Berlin', country: 'DE' },
        payment_method: 'card',
      },
    ],
    [
      'a country and a payment that the index does not list',
      '/large-store/v1/checkout',
      {
        billing_address: { country: 'IT' },
        payment_method: 'cod',
      },
    ],
    ['an address that is no object', '/large-store/v1/checkout', { billing_address: 'Berlin' }],
    [
      'a part of an address',
      '/large-store/v1/cart/update-customer',
      {
        billing_address: { postcode: '10115', country: 'DE' },
      },
    ],
    ['a quantity that is no number', '/large-store/v1/cart/add-item', { id: 1, quantity: 'two' }],
  ])('%s gets what WordPress answers', async (_what, path, body) => {
    const [through, direct] = [await cart(gateway.publicAddress), await cart(wordpress.origin)]
    const seen = await ask(gateway.publicAddress, 'POST', path, body, through)
    const right = await ask(wordpress.origin, 'POST', path, body, direct)
    const withoutId = (value: Seen) => ({
      ...value,
      token: '',
      body: { ...(value.body as object), order_id: 0 },
    })
    expect(withoutId(seen)).toEqual(withoutId(right))
    expect(JSON.stringify(seen.body)).not.toContain('rest_')
  })

  test.each([
    ['/large-shop/v3/items-1?order=DESC'],
    ['/large-shop/v3/items-1?per_page=200'],
    ['/large-shop/v3/items-1?page=zzz'],
    ['/large-shop/v3/orders?include=zzz'],
    ['/large-shop/v3/orders?status=zzz'],
    ['/wp/v2/large-products?per_page=3&orderby=title'],
  ])('GET %s gets what WordPress answers', async (path) => {
    const seen = await ask(gateway.publicAddress, 'GET', path)
    const right = await ask(wordpress.origin, 'GET', path)
    expect(seen.status).toBe(right.status)
    const inOwnWords = JSON.stringify(seen.body).replaceAll(gateway.publicAddress, wordpress.origin)
    expect(JSON.parse(inOwnWords)).toEqual(right.body)
  })
})
