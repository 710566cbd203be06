import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { times } from '../support/breadth.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'
import { describeWith } from '../support/requirements.ts'
import { token } from './companion/intake.ts'
import { type CompanionSite, startCompanionSite } from './companion/site.ts'
import { createRandom, type Random } from './promise-fuzz/random.ts'

/** REQUESTS=n for another number, SEED=n for another order. */
const requests = Number(process.env['REQUESTS'] ?? times(40, 1000))
const seed = Number(process.env['SEED'] ?? 7)
const root = '/index.php/wp-json'

type Reply = { readonly status: number; readonly body: unknown; readonly headers: Headers }

describeWith('php', 'two browsers in the shop of a real WordPress with the companion', () => {
  let site: CompanionSite
  let gateway: TestGateway
  let products: readonly number[]

  beforeAll(async () => {
    const port = await freePort()
    site = await startCompanionSite({}, ['large-shop'], [`http://127.0.0.1:${port}`])
    gateway = await startTestGateway({
      admin: { port },
      services: {
        shop: siteService(site.origin, {
          names: 'same',
          mount: root,
          discovery: { source: 'upstream' },
          // What a careless owner writes: everything is stored, against what the shop says.
          cache: { rules: [{ match: 'GET /**', ttl: '10m', scope: 'credential', override: true }] },
          changes: { token, poll: '1s', ttlWhileHeard: '7d' },
        }),
      },
    })
    const isHeard = async () => expect(await gateway.metric('trellis_changes_state', 'state="heard"')).toBe(1)
    await vi.waitFor(isHeard, { timeout: 60_000, interval: 100 })
    const list = await ask('GET', '/wp/v2/large-products?per_page=10&_fields=id', {})
    products = (list.body as readonly { readonly id: number }[]).map(({ id }) => id)
  }, 300_000)
  afterAll(async () => {
    await gateway?.close()
    await site?.stop()
  })

  const ask = async (
    method: string,
    path: string,
    headerLines: Readonly<Record<string, string>>,
    body?: object,
    origin = gateway.publicAddress,
  ): Promise<Reply> => {
    const headers = { ...headerLines, ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) }
    const content = body === undefined ? {} : { body: JSON.stringify(body) }
    const response = await fetch(`${origin}${root}${path}`, { method, headers, ...content })
    const text = await response.text()
    return { status: response.status, body: JSON.parse(text), headers: response.headers }
  }

  const login = async (name: string, seconds: number): Promise<Record<string, string>> => {
    const { body } = await ask(
      'POST',
      '/large-auth/v1/token',
      {},
      {
        username: `${name}-user`,
        password: `${name}-password`,
        seconds,
      },
    )
    return { Authorization: `Bearer ${(body as { readonly token: string }).token}` }
  }

  /** What one browser does and must see, one request after the other. */
  const browse = async (name: string, random: Random, count: number): Promise<number> => {
    const jwt = await login(name, 3_600)
    let cart: Record<string, number> = {}
    let isByCookie = false
    const first = await ask('POST', '/large-store/v1/cart/add-item', {}, { id: products[0], quantity: 1 })
    const session = first.headers.get('cart-token') ?? ''
    expect(session).toMatch(/^[0-9a-f]{32}$/)
    cart = { [String(products[0])]: 1 }
    const shop = (): Record<string, string> =>
      isByCookie ? { Cookie: `large_shop_session=${session}` } : { 'Cart-Token': session }
    const drafts: string[] = []
    let hits = 0
    const steps: readonly (() => Promise<void>)[] = [
      async () => {
        const id = random.pick(products)
        const { body, headers } = await ask('POST', '/large-store/v1/cart/add-item', shop(), {
          id,
          quantity: 2,
        })
        cart = { ...cart, [String(id)]: (cart[String(id)] ?? 0) + 2 }
        expect(headers.get('cart-token')).toBe(session)
        expect(body).toMatchObject({ items: cart })
      },
      async () => {
        const { body, headers } = await ask('GET', '/large-store/v1/cart', shop())
        expect(headers.get('cart-token')).toBe(session)
        expect(Object.entries((body as { readonly items: object }).items)).toEqual(Object.entries(cart))
      },
      async () => {
        if (Object.keys(cart).length === 0) return
        const order = await ask('POST', '/large-store/v1/checkout', shop(), {
          billing_address: { city: name },
        })
        expect(order).toMatchObject({ status: 200, body: { status: 'pending' } })
        cart = {}
      },
      async () => {
        const { body, headers } = await ask('GET', '/wp/v2/users/me?context=edit', jwt)
        hits += Number(headers.get('cache-status')?.includes('hit') ?? false)
        expect(body).toMatchObject({ username: `${name}-user` })
      },
      async () => {
        const title = `${name} ${random.int(1_000_000)}`
        const { status } = await ask('POST', '/wp/v2/posts', jwt, { title, status: 'draft' })
        expect(status).toBe(201)
        drafts.unshift(title)
      },
      async () => {
        const me = await ask('GET', '/wp/v2/users/me', jwt)
        const { id } = me.body as { readonly id: number }
        const path = `/wp/v2/posts?status=draft&context=edit&orderby=id&per_page=5&author=${id}&_fields=title`
        const { body } = await ask('GET', path, jwt)
        const titles = (body as readonly { readonly title: { readonly raw: string } }[]).map(
          ({ title }) => title.raw,
        )
        expect(titles.filter((one) => one.startsWith(`${name} `))).toEqual(drafts.slice(0, 5))
      },
      async () => {
        isByCookie = !isByCookie
        // Nothing of a session is seen without one.
        const { body } = await ask('GET', '/large-store/v1/cart', {})
        expect((body as { readonly items: object }).items).toEqual([])
      },
    ]
    for (let done = 0; done < count; done += 1) await random.pick(steps)()
    return hits
  }

  test(`${requests} interleaved requests show nothing of one to the other (SEED=${seed})`, async () => {
    const both = ['editor', 'author'].map((name, at) => browse(name, createRandom(seed + at), requests / 2))
    const hits = await Promise.all(both)
    process.stdout.write(`${requests} steps of two browsers, ${hits.join(' and ')} hits\n`)
  }, 3_600_000)

  test('an expired token gets what WordPress answers, and what is stored for it does not outlast it', async () => {
    const jwt = await login('editor', 6)
    const path = '/wp/v2/users/me?context=edit&_fields=id'
    const first = await ask('GET', path, jwt)
    expect(first.status).toBe(200)
    const ttl = /ttl=(\d+)/.exec(first.headers.get('cache-status') ?? '')?.[1]
    if (ttl !== undefined) expect(Number(ttl)).toBeLessThanOrEqual(6)
    await expect.poll(async () => (await ask('GET', path, jwt)).status).toBe(403)
    const [through, direct] = [
      await ask('GET', path, jwt),
      await ask('GET', path, jwt, undefined, site.origin),
    ]
    expect({ status: through.status, body: through.body }).toEqual({
      status: direct.status,
      body: direct.body,
    })
  })

  test('what is stored for a credential is not used for ttlWhileHeard', async () => {
    const jwt = await login('author', 99_999)
    const path = '/wp/v2/users/me?context=edit&_fields=id,name'
    const stored = async () => {
      const { headers } = await ask('GET', path, jwt)
      return headers.get('cache-status') ?? ''
    }
    await expect.poll(stored, { interval: 300 }).toContain('hit')
    expect(Number(/ttl=(\d+)/.exec(await stored())?.[1])).toBeLessThanOrEqual(600)
  })
})
