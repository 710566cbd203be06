import { oneOf, text } from './contents.ts'
import type { Pools } from './pools.ts'
import type { Random } from './random.ts'
import type { Operation, Sending } from './write.ts'

/** PROMISE_LARGE=1: the site has the plugins of a shop and of a search engine, and is written to through all that they add. */
export const isLarge = process.env['PROMISE_LARGE'] === '1'

const shop = '/large-shop/v3'
const kind = (random: Random): string => `items-${1 + random.int(3)}`
const id = (random: Random): string => String(1 + random.int(8))

const withFields =
  (pool: 'posts' | 'pages' | 'categories' | 'users') =>
  (pools: Pools, random: Random): Operation => ({
    method: 'PUT',
    route: `/wp/v2/${pool}/${oneOf(pools, pool, random)}`,
    body: { large_fields: { subtitle: `${text(random)} ${random.int(1000)}` } },
  })

export const largeOperations: Readonly<Record<string, (pools: Pools, random: Random) => Operation>> = {
  'posts.fields': withFields('posts'),
  'pages.fields': withFields('pages'),
  'categories.fields': withFields('categories'),
  'users.fields': withFields('users'),
  'items.create': (_, random) => ({
    method: 'POST',
    route: `${shop}/${kind(random)}`,
    body: { name: text(random) },
  }),
  'items.update': (_, random) => ({
    method: 'PUT',
    route: `${shop}/${kind(random)}/${id(random)}`,
    body: { name: `${text(random)} ${random.int(100)}` },
  }),
  'items.delete': (_, random) => ({ method: 'DELETE', route: `${shop}/${kind(random)}/${id(random)}` }),
  'products.create': (_, random) => ({
    method: 'POST',
    route: '/wp/v2/large-products',
    body: { title: text(random), status: 'publish' },
  }),
  'orders.update': (_, random) => ({
    method: 'PUT',
    route: `${shop}/orders/${id(random)}`,
    body: { status: random.pick(['pending', 'done']) },
  }),
  'cart.add': (_, random) => ({
    method: 'POST',
    route: '/large-store/v1/cart/add-item',
    body: { id: String(140 + random.int(12)), quantity: 'two' },
  }),
  'checkout.empty': () => ({
    method: 'POST',
    route: '/large-store/v1/checkout',
    body: { billing_address: { city: 'Berlin' } },
  }),
}

const post = (path: string, fields: Readonly<Record<string, string>>): Sending => ({
  door: 'form',
  method: 'POST',
  path,
  fields,
})

export const largeForms: Readonly<Record<string, (pools: Pools, random: Random) => Sending>> = {
  'ajax.cart': (_, random) => post('/?large-ajax=add_to_cart', { product: String(140 + random.int(12)) }),
  'ajax.fragments': () => post('/?large-ajax=fragments', {}),
  heartbeat: () => ({
    ...post('/wp-admin/admin-ajax.php', { action: 'heartbeat', 'data[a]': '1', screen_id: 'post' }),
    ...{ nonces: { _nonce: 'heartbeat-nonce' } },
  }),
  'login.failed': () => post('/wp-login.php', { log: 'admin', pwd: 'wrong' }),
}

export const largeReads: readonly ((one: (pool: 'posts' | 'users') => string, random: Random) => string)[] = [
  (_, random) => `${shop}/${kind(random)}`,
  (_, random) => `${shop}/${kind(random)}/${id(random)}`,
  (_, random) => `${shop}/${kind(random)}?order=asc&per_page=2`,
  () => `${shop}/orders`,
  (_, random) => `${shop}/orders/${id(random)}`,
  () => '/wp/v2/large-products?per_page=5',
  () => '/wp/v2/posts?orderby=large_subtitle&per_page=5',
  (one) => `/wp/v2/posts/${one('posts')}?_fields=id,large_head`,
  (one) => `/wp/v2/posts/${one('posts')}?_fields=large_fields`,
  () => '/wp/v2/posts?per_page=8&_fields=id,large_head.commentCount',
  (one) => `/wp/v2/users/${one('users')}?_fields=large_head`,
  () => '/wp/v2/types',
  () => '/wp/v2/types/post?_fields=large_head',
]
