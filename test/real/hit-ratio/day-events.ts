import type { Random } from '../promise-fuzz/random.ts'
import { interfaceRoot, type World } from '../sites/open-world.ts'
import { sendByForm } from './by-form.ts'
import { editorsWrites } from './mix.ts'
import { quietRequests, type Send } from './noise.ts'

/** A request, or a few, of somebody other than readers. */
export type DayEvent = { readonly name: string; send(): Promise<void> }

/** What happens in the time of a hundred reads. */
export type RoundOfEvents = {
  /** Change what readers see; sent before the reads. */
  readonly changes: readonly DayEvent[]
  /** Sent between the reads. */
  readonly others: readonly DayEvent[]
}

const event = (name: string, send: Send): DayEvent => ({ name, send })

const ended = async (
  name: string,
  reply: Promise<Response>,
  isExpected = (status: number) => status < 400,
) => {
  const response = await reply
  const text = await response.text()
  if (!isExpected(response.status)) throw new Error(`${name}: ${response.status} ${text.slice(0, 300)}`)
  return { response, text }
}

/** Products are priced and counted by the shop's own interface, and by an import that goes past the gateway. */
const stockEvents = ({ site, gateway }: World, products: readonly number[], random: Random) => {
  const put = (body: () => object): Send => {
    return async () => {
      const path = `/wc/v3/products/${random.pick(products)}`
      await ended(path, site.rest('PUT', path, body(), gateway.publicAddress))
    }
  }
  const run = (code: () => string): Send => {
    return async () => {
      const { code: exit, output } = await site.php(code())
      if (exit !== 0) throw new Error(output)
    }
  }
  const change = (set: string): string =>
    `$p = wc_get_product( ${random.pick(products)} ); $p->${set}; $p->save();`
  return [
    event(
      'price',
      put(() => ({ regular_price: String(5 + random.int(50)) })),
    ),
    event(
      'stock',
      put(() => ({ stock_quantity: random.pick([0, 3, 500]) })),
    ),
    event(
      'price, imported',
      run(() => change(`set_regular_price( '${5 + random.int(50)}' )`)),
    ),
    event(
      'stock, imported',
      run(() => change(`set_stock_quantity( ${random.pick([3, 800])} )`)),
    ),
  ]
}

const address = {
  ...{ first_name: 'Ada', last_name: 'Lovelace', address_1: 'Street 1', city: 'Berlin', postcode: '10115' },
  ...{ country: 'DE', email: 'ada@example.org', phone: '030 1234567', state: '' },
}

/** Somebody fills a cart, and may buy what is in it. */
const shoppers = ({ gateway }: World, products: readonly number[], random: Random) => {
  const root = `${gateway.publicAddress}${interfaceRoot}/wc/store/v1`
  const post = (path: string, cart: string, body: object): Promise<Response> =>
    fetch(root + path, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'Cart-Token': cart },
      body: JSON.stringify(body),
    })
  const fill = async (): Promise<string> => {
    const { response } = await ended('cart', fetch(`${root}/cart`))
    const cart = response.headers.get('cart-token') ?? ''
    // What is sold out is refused.
    const isAnswer = (status: number): boolean => status < 500
    await ended(
      'add-item',
      post('/cart/add-item', cart, { id: random.pick(products), quantity: 1 }),
      isAnswer,
    )
    return cart
  }
  return {
    cart: event('cart', async () => {
      await fill()
    }),
    checkout: event('checkout', async () => {
      const cart = await fill()
      await ended(
        'checkout',
        post('/checkout', cart, {
          billing_address: address,
          shipping_address: address,
          payment_method: 'cod',
        }),
        (status) => status < 500,
      )
    }),
  }
}

/** Programs that look for logins, and for what is not there. */
const botEvents = ({ gateway }: World, random: Random): readonly DayEvent[] => {
  const { publicAddress } = gateway
  const isAnswer = (status: number): boolean => status < 500
  const get = (path: string): Send => {
    return async () => {
      await ended(path, fetch(publicAddress + path), isAnswer)
    }
  }
  return [
    event('bot: no such post', () => get(`${interfaceRoot}/wp/v2/posts/${900_000 + random.int(1000)}`)()),
    event('bot: unknown parameter', () =>
      get(`${interfaceRoot}/wp/v2/posts?utm_id=${random.int(1_000_000)}`)(),
    ),
    event('bot: xmlrpc', async () => {
      const body = '<?xml version="1.0"?><methodCall><methodName>system.listMethods</methodName></methodCall>'
      const headers = { 'Content-Type': 'text/xml' }
      await ended('xmlrpc', fetch(`${publicAddress}/xmlrpc.php`, { method: 'POST', headers, body }), isAnswer)
    }),
  ]
}

/** The day of all who are no readers, round by round. */
export const eventsOfDay = async (
  world: World,
  products: readonly number[],
  random: Random,
): Promise<() => RoundOfEvents> => {
  const { site, gateway, ids } = world
  const quiet = await quietRequests(site, gateway.publicAddress, ids.posts.at(10) ?? 0)
  await site.browser.login()
  const writes = editorsWrites(ids, random)
  const bots = botEvents(world, random)
  const isShop = products.length > 0
  const stock = isShop ? stockEvents(world, products, random) : []
  const { cart, checkout } = shoppers(world, products, random)
  const editorSaves = (isByForm: boolean): DayEvent => {
    const write = random.pick(writes)()
    const { kind, method, path, body } = write
    if (isByForm) return event(`${kind}, wp-admin`, () => sendByForm(site.browser, write))
    return event(kind, async () => {
      await ended(kind, site.rest(method, `/wp/v2/${path}`, body, gateway.publicAddress))
    })
  }
  const cron = event('cron', async () => {
    const path = `/wp-cron.php?doing_wp_cron=${Date.now() / 1000}`
    await ended('cron', fetch(gateway.publicAddress + path, { method: 'POST' }))
  })
  let rounds = 0
  return () => {
    rounds += 1
    const isEven = rounds % 2 === 0
    const sale = stock[rounds % stock.length]
    return {
      changes: [
        editorSaves(isEven),
        ...(sale === undefined ? [] : [sale]),
        ...(isShop && isEven ? [checkout] : []),
      ],
      others: [
        event('heartbeat', quiet.heartbeat),
        isEven ? event('preview', quiet.preview) : event('autosave', quiet.autosave),
        cron,
        event('failed login', quiet.failedLogin),
        ...(isShop ? [cart, event('fragments', quiet.fragments), cart] : []),
        ...bots,
      ],
    }
  }
}
