import { afterAll, beforeAll, expect, test } from 'vitest'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { daySets, pluginSets } from './sites/archives.ts'
import { describeSite } from './sites/describe-site.ts'
import { type RealSite, startRealSite } from './sites/start-real-site.ts'

const root = '/index.php/wp-json'

describeSite('requests to the shop of a real WordPress', () => {
  let site: RealSite
  let gateway: TestGateway
  let product: number

  beforeAll(async () => {
    site = await startRealSite({ plugins: pluginSets[daySets.shop], withCompanion: false })
    gateway = await startTestGateway({
      services: {
        site: siteService(site.origin, {
          mount: root,
          names: 'same',
          discovery: { source: 'upstream' },
          cache: { rules: [{ match: 'GET /**', ttl: '60s' }] },
        }),
      },
    })
    expect((await fetch(`${gateway.publicAddress}${root}/`)).status).toBe(200)
    const { body } = await ask(site.origin, 'GET', '/wc/store/v1/products?per_page=1')
    product = (JSON.parse(body) as readonly { readonly id: number }[])[0]?.id ?? 0
  }, 600_000)
  afterAll(async () => {
    await gateway?.close()
    await site?.stop()
  })

  type Seen = { readonly status: number; readonly body: string; readonly cart: string }

  const ask = async (
    origin: string,
    method: string,
    path: string,
    body?: object,
    cart = '',
  ): Promise<Seen> => {
    const headers: Record<string, string> = { 'Cart-Token': cart }
    if (body !== undefined) headers['Content-Type'] = 'application/json'
    const content = body === undefined ? {} : { body: JSON.stringify(body) }
    const response = await fetch(`${origin}${root}${path}`, { method, headers, ...content })
    const text = (await response.text()).replaceAll(/http:(?:\\?\/){2}127\.0\.0\.1:\d+/g, '@')
    return { status: response.status, body: text, cart: response.headers.get('cart-token') ?? '' }
  }

  /** A new cart with one thing in it. */
  const cart = async (origin: string): Promise<string> => {
    const { cart: empty } = await ask(origin, 'GET', '/wc/store/v1/cart')
    const added = await ask(origin, 'POST', '/wc/store/v1/cart/add-item', { id: product, quantity: 1 }, empty)
    expect(added).toMatchObject({ status: 201 })
    return empty
  }

  /** Orders count up, and each has a key and a time of its own. */
  const withoutOrder = ({ status, body }: Seen) => ({
    status,
    body: body
      .replaceAll(/wc_order_\w+/g, 'KEY')
      .replaceAll(/"order_(?:id|number)":"?\d+"?/g, '"order":0')
      .replaceAll(/checkout\\?\/order-(?:received|pay)\\?\/\d+/g, 'ORDER'),
  })

  test.each([
    [
      'an order without members that the index calls required',
      '/wc/store/v1/checkout',
      { billing_address: { first_name: 'A', city: 'Berlin', country: 'DE' }, payment_method: 'cod' },
    ],
    [
      'a payment that the shop does not have',
      '/wc/store/v1/checkout',
      { billing_address: { country: 'IT' }, payment_method: 'card' },
    ],
    ['an address that is no object', '/wc/store/v1/checkout', { billing_address: 'Berlin' }],
    [
      'a part of an address',
      '/wc/store/v1/cart/update-customer',
      { billing_address: { postcode: '10115', country: 'DE' } },
    ],
    ['a quantity that is no number', '/wc/store/v1/cart/add-item', { id: 1, quantity: 'two' }],
  ])('%s gets what WordPress answers', async (_what, path, body) => {
    const [through, direct] = [await cart(gateway.publicAddress), await cart(site.origin)]
    const seen = await ask(gateway.publicAddress, 'POST', path, body, through)
    const right = await ask(site.origin, 'POST', path, body, direct)
    expect(withoutOrder(seen)).toEqual(withoutOrder(right))
  })

  test.each([
    ['/wc/store/v1/products?order=DESC'],
    ['/wc/store/v1/products?per_page=200'],
    ['/wc/store/v1/products?page=zzz'],
    ['/wc/store/v1/products?include=zzz'],
    ['/wc/v3/orders?status=zzz'],
    ['/wp/v2/product?per_page=3&orderby=title'],
  ])('GET %s gets what WordPress answers', async (path) => {
    const seen = await ask(gateway.publicAddress, 'GET', path)
    const right = await ask(site.origin, 'GET', path)
    expect({ ...seen, cart: '' }).toEqual({ ...right, cart: '' })
  })
})
