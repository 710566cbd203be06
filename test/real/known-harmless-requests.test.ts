import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { describeWith } from '../support/requirements.ts'
import { changedObjects, dumpDatabase } from './companion/coverage.ts'
import { forAll } from './companion/keep.ts'
import { reads } from './companion/reads.ts'
import { Browser } from './companion/site.ts'
import { startWordPress, type WordPress } from './wordpress/start-wordpress.ts'

const restPath = '/index.php/wp-json'
const ajax = '/wp-admin/admin-ajax.php'
const pages = ['/', '/?p=10', '/?feed=rss2', '/?author=1', '/?s=herb']

type Shown = { readonly status: string; readonly body: string }

describeWith('php', 'what WordPress does for requests that the gateway takes for no writes', () => {
  let wordpress: WordPress
  let gateway: TestGateway
  let browser: Browser
  let nonce: string

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
    // A first visit notes things of its own; later ones do not.
    for (const path of ['/wp-admin/', '/wp-admin/post.php?post=10&action=edit', '/wp-cron.php'])
      await browser.get(path)
    const page = await browser.get('/wp-admin/post.php?post=10&action=edit')
    nonce = /heartbeatSettings = \{[^}]*"nonce":"(\w+)"/.exec(page)?.[1] ?? ''
    expect(nonce).not.toBe('')
    // The gateway learns the routes of the site first.
    await vi.waitUntil(async () => hitsIn(await seen(gateway.publicAddress)) > 20, {
      timeout: 60_000,
      interval: 500,
    })
  }, 120_000)
  afterAll(async () => {
    await gateway?.close()
    await wordpress?.stop()
  })

  const show = async (root: string, path: string): Promise<Shown> => {
    const answer = await fetch(root + path)
    return { status: answer.headers.get('cache-status') ?? '', body: await answer.text() }
  }
  const all = [...reads.map((path) => restPath + path), ...pages]
  const seen = (root: string): Promise<Shown[]> => forAll(all, (path) => show(root, path))
  /** What is drawn by chance for each response. */
  const steady = (body: string): string => body.replaceAll(/\d(\.gravatar\.com)/g, 'N$1')
  const bodiesOf = (answers: readonly Shown[]): readonly string[] => answers.map(({ body }) => steady(body))
  const hitsIn = (answers: readonly Shown[]): number =>
    answers.filter(({ status }) => status.startsWith('trellis; hit')).length

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
  const login = (fields: Readonly<Record<string, string>>) => () =>
    new Browser(gateway.publicAddress).post('/wp-login.php', { log: 'admin', pwd: 'wrong', ...fields })

  type Row = readonly [string, () => Promise<Response>, RegExp]

  const rows: readonly Row[] = [
    ['heartbeat', beat({}), /"server_time"/],
    [
      'heartbeat with the lock of a post',
      beat({ 'data[wp-refresh-post-lock][post_id]': '10', 'data[wp-refresh-post-lock][lock]': '1:1' }),
      /"new_lock"/,
    ],
    ['heartbeat of a list of posts', beat({ 'data[wp-check-locked-posts][]': 'post-10' }), /"server_time"/],
    [
      'heartbeat that renews nonces',
      beat({
        'data[wp-refresh-post-nonces][post_id]': '10',
        'data[wp-refresh-metabox-loader-nonces][post_id]': '10',
      }),
      /"server_time"/,
    ],
    ['failed login', login({}), /login_error/],
    [
      'failed login with all fields',
      login({ 'wp-submit': 'Log In', redirect_to: '/wp-admin/', rememberme: 'forever' }),
      /login_error/,
    ],
    // No package brings WPGraphQL: a plugin of the tests answers.
    ['GraphQL query', json({ query: 'query A { a }', variables: { id: '10' } }), /"data"/],
  ]

  test.each(rows)(
    '%s: no row that a response shows, and no response, is another one',
    async (_, send, answered) => {
      await seen(gateway.publicAddress)
      const [before, bodies, stored] = [
        await dumpDatabase(`sqlite:${wordpress.database}`),
        bodiesOf(await seen(wordpress.origin)),
        await seen(gateway.publicAddress),
      ]
      expect(hitsIn(stored)).toBeGreaterThan(20)
      const answer = await send()
      expect(await answer.text()).toMatch(answered)
      expect(answer.headers.get('cache-status')).toBe('trellis; fwd=method; detail=table')
      expect(changedObjects(before, await dumpDatabase(`sqlite:${wordpress.database}`))).toEqual([])
      expect(bodiesOf(await seen(wordpress.origin))).toEqual(bodies)
      const after = await seen(gateway.publicAddress)
      expect([hitsIn(after), bodiesOf(after)]).toEqual([hitsIn(stored), bodiesOf(stored)])
    },
  )

  test.each<Row>([
    [
      'heartbeat that saves',
      beat({ 'data[wp_autosave][post_id]': '10', 'data[wp_autosave][post_title]': 'x' }),
      /"wp_autosave"/,
    ],
    ['heartbeat with data of a plugin', beat({ 'data[acme]': '10' }), /"server_time"/],
    ['failed login with a field of a plugin', login({ authcode: '10' }), /login_error/],
    ['GraphQL mutation', json({ query: 'mutation { a }', variables: { id: '10' } }), /"data"/],
  ])('%s: a write, after which nothing older is shown', async (_, send, answered) => {
    for (const _ of [1, 2]) await seen(gateway.publicAddress)
    const answer = await send()
    expect(await answer.text()).toMatch(answered)
    expect(answer.headers.get('cache-status')).toBe('trellis; fwd=method')
    expect(bodiesOf(await seen(gateway.publicAddress)).length).toBe(all.length)
    const [through, own] = [
      await show(gateway.publicAddress, `${restPath}/wp/v2/posts/10`),
      await show(wordpress.origin, `${restPath}/wp/v2/posts/10`),
    ]
    const titleOf = ({ body }: Shown): unknown => (JSON.parse(body) as { title: unknown }).title
    expect(titleOf(through)).toEqual(titleOf(own))
  })
})
