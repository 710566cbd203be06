import { createHmac, randomBytes } from 'node:crypto'
import { rm, writeFile } from 'node:fs/promises'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { describeWith } from '../support/requirements.ts'
import { poll, token } from './companion/intake.ts'
import {
  addObjectCache,
  type CompanionSite,
  loadCompanionFirst,
  startCompanionSite,
} from './companion/site.ts'
import type { RedisServer } from './shared/redis-server.ts'

const hmac = (text: string): string => createHmac('sha256', token).update(text).digest('hex')

type Stated = { readonly status: number; readonly text: string; readonly body: string }

describeWith('php', 'the WordPress companion states what a request has written', () => {
  let site: CompanionSite
  let plugin: string

  beforeAll(async () => {
    site = await startCompanionSite()
    plugin = `${site.site}/wp-content/mu-plugins/zz-test.php`
    await site.php('', {})
    await poll(site.origin, 0)
    // A new site has tasks that are due, and makes its rewrite rules with the first page.
    for (const path of ['/wp-cron.php', '/', '/wp-cron.php'])
      await (await fetch(site.origin + path, { method: 'POST' })).text()
  })
  afterAll(() => site?.stop())
  afterEach(() => rm(plugin, { force: true }))

  /** Asks as a gateway does; `text` is '' without a statement. Fails when the signature is wrong. */
  const ask = async (path: string, init: RequestInit = {}): Promise<Stated> => {
    const nonce = randomBytes(16).toString('hex')
    const headers = { ...init.headers, 'Trellis-Nonce': `${nonce}.${hmac(`ask\n${nonce}`)}` }
    const response = await fetch(site.origin + path, { method: 'POST', redirect: 'manual', ...init, headers })
    const body = await response.text()
    const value = response.headers.get('trellis-statement')
    if (value === null) return { status: response.status, text: '', body }
    const [text = '', signature] = value.split('; hmac=')
    expect(signature).toBe(hmac(`statement\n${nonce}\n${text}`))
    return { status: response.status, text, body }
  }

  const form = (headers: Readonly<Record<string, string>>): RequestInit => ({
    body: new URLSearchParams(headers),
  })
  const php = (code: string): Promise<void> => writeFile(plugin, `<?php ${code}`)
  /** A must-use plugin that runs this code in the action \`act\` of admin-ajax.php, for all. */
  const acts = (code: string): Promise<void> =>
    php(`add_action( 'wp_ajax_nopriv_act', function () { ${code} } );`)
  const act = () => ask('/wp-admin/admin-ajax.php', form({ action: 'act' }))
  const writes = `update_option( 'acme', uniqid() );`
  /** OPcache keeps files that are older than two seconds, and the next test writes another one in the place of this. */
  const uncached = 'opcache_invalidate( __FILE__, true );'

  test.each([
    ['a form of nobody', '/wp-admin/admin-ajax.php', { action: 'none' }, 400],
    ['a failed login', '/wp-login.php', { log: 'admin', pwd: 'wrong' }, 200],
    ['a comment that is refused', '/wp-comments-post.php', { comment: '', comment_post_ID: '1' }, 200],
    ['a form for the home page', '/', { a: 'b' }, 200],
    ['cron without a task', '/wp-cron.php', {}, 200],
    ['a route that is not there', '/index.php/wp-json/acme/v1/none', {}, 404],
    ['a write without a credential', '/index.php/wp-json/wp/v2/posts', { title: 'x' }, 401],
  ] as const)('nothing: %s', async (_, path, headers, status) => {
    const stated = await ask(path, form(headers))
    expect([stated.status === status || stated.status === 302 || stated.status, stated.text]).toEqual([
      true,
      'nothing',
    ])
  })

  test('nothing: XML-RPC with a wrong password', async () => {
    const body =
      '<methodCall><methodName>wp.getPosts</methodName><params><param><value>1</value></param><param><value>a</value></param><param><value>b</value></param></params></methodCall>'
    const { text, body: response } = await ask('/xmlrpc.php', {
      headers: { 'Content-Type': 'text/xml' },
      body,
    })
    expect([response.includes('faultCode'), text]).toEqual([true, 'nothing'])
  })

  test.each([
    ['reads from another server', `wp_remote_get( 'http://127.0.0.1:9/', array( 'timeout' => 1 ) );`],
    [
      'starts the tasks of WordPress',
      `wp_remote_post( site_url( 'wp-cron.php?doing_wp_cron=1' ), array( 'timeout' => 1 ) );`,
    ],
  ])('nothing: a request that %s', async (_, code) => {
    await acts(`${code} wp_send_json_success();`)
    expect((await act()).text).toBe('nothing')
  })

  test('rows: a write, and a request to another server', async () => {
    await acts(
      `${writes} wp_remote_post( 'http://127.0.0.1:9/', array( 'timeout' => 1 ) ); wp_send_json_success();`,
    )
    expect((await act()).text).toMatch(/^rows /)
  })

  test('a temporary value is written: rows, but for one that is made again as it was', async () => {
    await site.php(`set_transient( 'acme', 1, 600 );`)
    // Another file of a plugin counts as a change of everything, once.
    await acts(`set_transient( 'acme', 1, 900 ); wp_send_json_success();`)
    await act()
    expect((await act()).text).toBe('nothing')
    await acts(`set_transient( 'acme', 2, 900 ); wp_send_json_success();`)
    expect((await act()).text).toMatch(/^rows /)
    expect(site.intake.pushes.at(-1)?.changes).toContainEqual({ kind: 'option', name: '_transient_acme' })
    await acts(`delete_transient( 'acme' ); wp_send_json_success();`)
    expect((await act()).text).toMatch(/^rows /)
  })

  test('own: a login, which stores a session', async () => {
    const { status, text } = await ask('/wp-login.php', form({ log: 'admin', pwd: 'admin-password' }))
    expect([status, text]).toEqual([302, 'own'])
  })

  test('rows: a write names its row, with the check value that the report had', async () => {
    await acts(`${writes} wp_send_json_success();`)
    const { text } = await act()
    const { incarnation, sequence, check } = site.intake.pushes.at(-1) ?? {}
    expect(text).toBe(`rows ${incarnation}.${sequence}.${check}`)
  })

  test.each([
    ['before a refusal', `${writes} wp_send_json_error( null, 403 );`],
    ['before it stops', `${writes} die( 'x' );`],
    ['before a redirect', `${writes} wp_redirect( '/' ); exit;`],
    [
      'when WordPress shuts down',
      `add_action( 'shutdown', function () { ${writes} }, 99 ); wp_send_json_success();`,
    ],
    [
      'when PHP shuts down',
      `register_shutdown_function( function () { ${writes} } ); wp_send_json_success();`,
    ],
    [
      'in an output buffer',
      `ob_start( function ( $text ) { ${writes} return $text; } ); wp_send_json_success();`,
    ],
    [
      'in a part of the response that is thrown away',
      `ob_start(); ${writes} ob_end_clean(); wp_send_json_success();`,
    ],
  ])('rows: a write %s', async (_, code) => {
    await acts(code)
    const { text } = await act()
    const { incarnation, sequence, check } = site.intake.pushes.at(-1) ?? {}
    expect(text).toBe(`rows ${incarnation}.${sequence}.${check}`)
  })

  test.each([
    ['a fatal error', `nothing_of_this_name();`],
    ['an exception that nobody catches', `throw new Exception( 'x' );`],
    [
      'memory that is used up',
      `ini_set( 'memory_limit', '64M' ); $a = array(); while ( true ) { $a[] = str_repeat( 'x', 1048576 ); }`,
    ],
    [
      'a shutdown function that ends the rest',
      `register_shutdown_function( function () { exit; } ); wp_send_json_success();`,
    ],
    [
      'a write when an object is destroyed',
      `$GLOBALS['late'] = new class { function __destruct() { ${writes} } }; wp_send_json_success();`,
    ],
    [
      'a buffer that is flushed',
      `echo 'a'; while ( ob_get_level() ) { ob_end_flush(); } flush(); die( 'b' );`,
    ],
    ['a flush, and a write behind it', `echo 'a'; ob_flush(); flush(); ${writes} die( 'b' );`],
    ['a stream', `header( 'Content-Type: text/event-stream' ); echo "data: 1\\n\\n"; flush(); die();`],
    ['a response that takes longer than a second', `echo 'a'; usleep( 1100000 ); echo 'b'; die();`],
    ['a response of more than a megabyte', `echo str_repeat( 'x', 1100000 ); die( 'y' );`],
    [
      'all buffers thrown away, and output',
      `while ( ob_get_level() ) { ob_end_clean(); } echo 'a'; flush(); die();`,
    ],
    [
      'a request to another server that may write there',
      `wp_remote_post( 'http://127.0.0.1:9/', array( 'timeout' => 1 ) ); wp_send_json_success();`,
    ],
    ['another database object', `$GLOBALS['wpdb'] = clone $GLOBALS['wpdb']; wp_send_json_success();`],
    ['a filter that is gone', `remove_all_filters( 'query' ); wp_send_json_success();`],
    [
      'files of the site',
      `require_once ABSPATH . 'wp-admin/includes/file.php'; WP_Filesystem(); $GLOBALS['wp_filesystem']->put_contents( WP_PLUGIN_DIR . '/hello.php', '<?php' ); wp_send_json_success();`,
    ],
  ])('silence: %s', async (_, code) => {
    await acts(code)
    expect((await act()).text).toBe('')
  })

  test.each(['theme.json', 'templates/index.html'])(
    'silence: %s of the theme, which was there before, is written again',
    async (name) => {
      await acts(
        `${uncached} require_once ABSPATH . 'wp-admin/includes/file.php'; WP_Filesystem();
        if ( isset( $_POST['file'] ) ) { $file = get_stylesheet_directory() . '/' . $_POST['file']; $GLOBALS['wp_filesystem']->put_contents( $file, file_get_contents( $file ) ); }
        wp_send_json_success();`,
      )
      await expect.poll(async () => (await act()).text, { interval: 1_000 }).toBe('nothing')
      const { status, text } = await ask('/wp-admin/admin-ajax.php', form({ action: 'act', file: name }))
      expect([status, text]).toEqual([200, ''])
    },
  )

  test('a request that asks for the file system, and writes no code, has written nothing', async () => {
    await acts(
      `${uncached} require_once ABSPATH . 'wp-admin/includes/file.php'; WP_Filesystem(); wp_send_json_success();`,
    )
    // What was copied for this test is new code.
    await expect.poll(async () => (await act()).text, { interval: 1_000 }).toBe('nothing')
  })

  test('silence: a file is uploaded', async () => {
    await acts('wp_send_json_success();')
    const body = new FormData()
    body.set('action', 'act')
    body.set('file', new Blob(['x']), 'x.txt')
    expect((await ask('/wp-admin/admin-ajax.php', { body })).text).toBe('')
    body.delete('file')
    expect((await ask('/wp-admin/admin-ajax.php', { body })).text).toBe('nothing')
  })

  test('a stream arrives while it is made', async () => {
    await acts(
      `header( 'Content-Type: text/event-stream' ); echo "data: 1\\n\\n"; flush(); while ( ! file_exists( WP_CONTENT_DIR . '/go-on' ) ) { usleep( 10000 ); clearstatcache(); } echo "data: 2\\n\\n"; die();`,
    )
    const nonce = randomBytes(16).toString('hex')
    const headers = { 'Trellis-Nonce': `${nonce}.${hmac(`ask\n${nonce}`)}` }
    const response = await fetch(`${site.origin}/wp-admin/admin-ajax.php`, {
      method: 'POST',
      headers,
      ...form({ action: 'act' }),
    })
    // PHP's own server sends what is flushed together with the rest, and the head before.
    expect(response.headers.get('trellis-statement')).toBeNull()
    await writeFile(`${site.site}/wp-content/go-on`, '')
    expect(await response.text()).toContain('data: 2')
  })

  test.each([
    ['without a nonce', undefined],
    ['with a nonce that the token has not signed', `${'a'.repeat(32)}.${'b'.repeat(64)}`],
    ['with a nonce that has no signature', 'a'.repeat(32)],
    ['with two nonces', [`${'a'.repeat(32)}.${hmac(`ask\n${'a'.repeat(32)}`)}`, 'x'].join(', ')],
  ])('silence: a request %s', async (_, value) => {
    const headers: Record<string, string> = value === undefined ? {} : { 'Trellis-Nonce': value }
    const response = await fetch(`${site.origin}/wp-login.php`, {
      method: 'POST',
      headers,
      ...form({ log: 'a', pwd: 'b' }),
    })
    expect(response.headers.get('trellis-statement')).toBeNull()
  })

  test('a request without a nonce is answered as without the companion', async () => {
    await acts(`echo ob_get_level(); die();`)
    const response = await fetch(`${site.origin}/wp-admin/admin-ajax.php`, {
      method: 'POST',
      ...form({ action: 'act' }),
    })
    const asked = await act()
    expect(Number(asked.body) - Number(await response.text())).toBe(1)
  })

  test('the bytes of a response are the same with a statement and without', async () => {
    await acts(
      `ob_start(); echo 'a'; ob_clean(); echo 'b'; ob_end_flush(); echo str_repeat( 'é', 5000 ); print( 'c' ); die();`,
    )
    const response = await fetch(`${site.origin}/wp-admin/admin-ajax.php`, {
      method: 'POST',
      ...form({ action: 'act' }),
    })
    const asked = await act()
    expect([asked.text, asked.body]).toEqual(['nothing', await response.text()])
  })

  test('a revision of the same text, and a form that saves what is there, write nothing', async () => {
    const { browser } = site
    await browser.login()
    await acts(`update_option( 'blogname', get_option( 'blogname' ) ); wp_send_json_success();`)
    expect((await act()).text).toBe('nothing')
  })

  test('a write through the interface names its row, and no other field does', async () => {
    const response = await site.rest('PUT', '/wp/v2/posts/70', { title: 'w' })
    expect([...response.headers.keys()].filter((name) => name.startsWith('trellis-'))).toEqual([])
  })

  describeWith('redis', 'with a persistent object cache', () => {
    let redis: RedisServer

    beforeAll(async () => {
      await loadCompanionFirst(site)
      redis = await addObjectCache(site)
    })
    afterAll(() => redis?.stop())

    test.each([
      ['nothing', `wp_cache_get( 'acme', 'acme' ); get_option( 'acme_none' ); wp_send_json_success();`],
      ['', `wp_cache_set( 'acme', uniqid(), 'acme' ); wp_send_json_success();`],
      ['', `wp_cache_incr( 'acme', 1, 'acme' ); wp_send_json_success();`],
      ['', `set_transient( 'acme', uniqid(), 60 ); wp_send_json_success();`],
      ['rows', `${writes} wp_send_json_success();`],
    ])('%j: %s', async (expected, code) => {
      await acts(code)
      await act()
      expect((await act()).text.split(' ')[0]).toBe(expected)
    })
  })
})
