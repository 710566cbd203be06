import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { namedRequests, unnamedRequests } from '../../src/wordpress/routes/harmless-writes.ts'
import { rowsOf } from '../support/breadth.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { describeWith } from '../support/requirements.ts'
import { changedObjects, type Dump, dumpDatabase } from './companion/coverage.ts'
import { reads } from './companion/reads.ts'
import { Browser } from './companion/site.ts'
import { forAll } from './for-all.ts'
import { startWordPress, type WordPress } from './wordpress/start-wordpress.ts'

const restPath = '/index.php/wp-json'
const ajax = '/wp-admin/admin-ajax.php'
const pages = ['/', '/?p=10', '/?feed=rss2', '/?author=1', '/?s=herb']
const all = [...rowsOf(reads, 2).map((path) => restPath + path), ...rowsOf(pages, 2)]

type Shown = { readonly status: string; readonly body: string }

describeWith('php', 'what WordPress does for requests that the gateway takes for no writes', () => {
  let wordpress: WordPress
  let gateway: TestGateway
  let browser: Browser
  let nonce: string
  /** After the row before. */
  let dump: Dump
  /** What is stored, and all responses, before the first row: of WordPress itself, and through the gateway. */
  let stored: readonly string[]
  let before: readonly (readonly string[])[]

  beforeAll(async () => {
    wordpress = await startWordPress({ plugins: ['quiet-writes'] })
    const { origin } = wordpress
    gateway = await startTestGateway({
      services: {
        site: siteService(origin, {
          names: 'same',
          mount: restPath,
          upstream: { targets: [origin], basePath: restPath },
          cache: { rules: [{ match: 'GET /**', ttl: '1h', override: true }] },
        }),
        pages: {
          contract: 'open',
          mount: '/',
          upstream: { targets: [origin] },
          cache: {
            rules: [{ match: 'GET /', ttl: '1h', override: true }],
            harmlessWrites: ['heartbeat', 'failed-login'],
          },
        },
      },
    })
    browser = new Browser(gateway.publicAddress)
    await browser.login()
    // A first visit notes things of its own; later ones do not. Through the gateway the tasks would be followed for a minute.
    await fetch(`${origin}/wp-cron.php`)
    for (const path of ['/wp-admin/', '/wp-admin/post.php?post=10&action=edit']) await browser.get(path)
    const page = await browser.get('/wp-admin/post.php?post=10&action=edit')
    nonce = /heartbeatSettings = \{[^}]*"nonce":"(\w+)"/.exec(page)?.[1] ?? ''
    expect(nonce).not.toBe('')
    // The gateway learns the routes of the site first.
    await vi.waitUntil(async () => hitsIn(await seen(gateway.publicAddress)) > all.length / 2, {
      timeout: 60_000,
      interval: 500,
    })
    const through = await seen(gateway.publicAddress)
    stored = all.filter((_, at) => isHit(through[at]))
    before = [bodiesOf(await seen(wordpress.origin)), bodiesOf(through)]
    dump = await dumpOf()
  })
  afterAll(async () => {
    await gateway?.close()
    await wordpress?.stop()
  })

  const show = async (root: string, path: string): Promise<Shown> => {
    const response = await fetch(root + path)
    return { status: response.headers.get('cache-status') ?? '', body: await response.text() }
  }
  const seen = (root: string): Promise<Shown[]> => forAll(all, (path) => show(root, path))
  /** What is drawn by chance for each response. */
  const steady = (body: string): string => body.replaceAll(/\d(\.gravatar\.com)/g, 'N$1')
  const bodiesOf = (responses: readonly Shown[]): readonly string[] =>
    responses.map(({ body }) => steady(body))
  const isHit = (shown: Shown | undefined): boolean => shown?.status.startsWith('trellis; hit') === true
  const hitsIn = (responses: readonly Shown[]): number => responses.filter(isHit).length
  const dumpOf = (): Promise<Dump> => dumpDatabase(`sqlite:${wordpress.database}`)

  const beat = (more: Readonly<Record<string, string>>) => () =>
    browser.post(ajax, {
      ...more,
      interval: '10',
      _nonce: nonce,
      action: 'heartbeat',
      screen_id: 'post',
      has_focus: 'true',
    })
  const json = (body: unknown) => () =>
    fetch(`${gateway.publicAddress}/graphql`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    })
  const login = (headers: Readonly<Record<string, string>>) => () =>
    new Browser(gateway.publicAddress).post('/wp-login.php', { log: 'admin', pwd: 'wrong', ...headers })

  type Row = readonly [what: string, how: string, () => Promise<Response>, RegExp]

  const rows: readonly Row[] = [
    ['heartbeat', 'alone', beat({}), /"server_time"/],
    [
      'heartbeat',
      'with the lock of a post',
      beat({ 'data[wp-refresh-post-lock][post_id]': '10', 'data[wp-refresh-post-lock][lock]': '1:1' }),
      /"new_lock"/,
    ],
    [
      'heartbeat',
      'of a list of posts',
      beat({ 'data[wp-check-locked-posts][]': 'post-10' }),
      /"server_time"/,
    ],
    [
      'heartbeat',
      'that renews nonces',
      beat({
        'data[wp-refresh-post-nonces][post_id]': '10',
        'data[wp-refresh-metabox-loader-nonces][post_id]': '10',
      }),
      /"server_time"/,
    ],
    ['failed-login', 'alone', login({}), /login_error/],
    [
      'failed-login',
      'with all fields',
      login({ 'wp-submit': 'Log In', redirect_to: '/wp-admin/', rememberme: 'forever' }),
      /login_error/,
    ],
    // No package brings WPGraphQL: a plugin of the tests answers.
    ['GraphQL query', 'with a variable', json({ query: 'query A { a }', variables: { id: '10' } }), /"data"/],
  ]

  test('every row of the table is looked at', () => {
    const table = Object.keys({ ...namedRequests, ...unnamedRequests(() => true) })
    expect([...new Set(rows.map(([what]) => what))].sort()).toEqual(table.sort())
  })

  test.each(rows)(
    '%s %s: no row that a response shows is another one, and all is left that was stored',
    async (_, __, send, responded) => {
      const response = await send()
      expect(await response.text()).toMatch(responded)
      expect(response.headers.get('cache-status')).toBe('trellis; fwd=method; detail=table')
      const earlier = dump
      dump = await dumpOf()
      expect(changedObjects(earlier, dump)).toEqual([])
      const left = await forAll(stored, (path) => show(gateway.publicAddress, path))
      expect(stored.filter((_, at) => !isHit(left[at]))).toEqual([])
    },
  )

  test('after all of them each response is the one of before', async () => {
    expect(stored.length).toBeGreaterThan(all.length / 2)
    const through = await seen(gateway.publicAddress)
    expect([bodiesOf(await seen(wordpress.origin)), bodiesOf(through)]).toEqual(before)
  })

  test('what a plugin writes is a row that a response shows', async () => {
    await (await beat({ 'data[acme]': '10' })()).text()
    expect(changedObjects(dump, await dumpOf())).not.toEqual([])
  })

  test.each<Row>([
    [
      'heartbeat',
      'that saves',
      beat({ 'data[wp_autosave][post_id]': '10', 'data[wp_autosave][post_title]': 'x' }),
      /"wp_autosave"/,
    ],
    ['heartbeat', 'with data of a plugin', beat({ 'data[acme]': '10' }), /"server_time"/],
    ['failed-login', 'with a field of a plugin', login({ authcode: '10' }), /login_error/],
    [
      'GraphQL query',
      'that is a mutation',
      json({ query: 'mutation { a }', variables: { id: '10' } }),
      /"data"/,
    ],
  ])('%s %s: a write, after which nothing older is shown', async (_, __, send, responded) => {
    const one = `${restPath}/wp/v2/posts/10`
    const through = () => show(gateway.publicAddress, one)
    for (const _ of [1, 2]) await through()
    expect((await through()).status).toContain('; hit')
    const response = await send()
    expect(await response.text()).toMatch(responded)
    expect(response.headers.get('cache-status')).toBe('trellis; fwd=method')
    const titleOf = ({ body }: Shown): unknown => (JSON.parse(body) as { title: unknown }).title
    const again = await through()
    expect(again.status).not.toContain('; hit')
    expect(titleOf(again)).toEqual(titleOf(await show(wordpress.origin, one)))
  })
})
