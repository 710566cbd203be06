import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { describeWith } from '../support/requirements.ts'
import { poll, sign } from './companion/intake.ts'
import { pausedScript } from './companion/paused-script.ts'
import { type CompanionSite, startCompanionSite } from './companion/site.ts'

const standIn = join(dirname(fileURLToPath(import.meta.url)), 'companion/wp-cli.php')

describeWith('php', 'the log of the WordPress companion', () => {
  let site: CompanionSite

  beforeAll(async () => {
    site = await startCompanionSite()
  })
  afterEach(() => {
    site.intake.behaviour = 'accept'
  })
  afterAll(() => site?.stop())

  const ask = async (target: string, signature: string | undefined, init: RequestInit = {}) => {
    const headers: Record<string, string> = signature === undefined ? {} : { 'Trellis-Signature': signature }
    const response = await fetch(site.origin + target, { ...init, headers })
    const { status } = response
    return { status, body: await response.text(), cacheControl: response.headers.get('cache-control') }
  }
  const rename = (title: string) => site.rest('PUT', '/wp/v2/posts/10', { title })
  /** Runs again and again until the test lets it end, since a long request reports in steps; resolves when it has run once. */
  const begin = async (code: string) => {
    const end = join(site.site, randomUUID())
    const written = `${end}-written`
    const loop = `do { ${code} touch( '${written}' ); usleep( 100000 ); clearstatcache(); } while ( ! file_exists( '${end}' ) );`
    const ended = site.php(loop)
    await expect.poll(() => existsSync(written)).toBe(true)
    return async () => {
      await writeFile(end, '')
      return ended
    }
  }
  const query = async (sql: string): Promise<string> => {
    const { output } = await site.php(
      `echo json_encode( ( new Trellis_Log() )->query( ${JSON.stringify(sql)} ) );`,
    )
    return output
  }

  test('the first response has the row of the creation, and names the table', async () => {
    const response = await poll(site.origin, 0)
    expect(response.rows).toEqual([
      { sequence: 1, check: '', site: 0, state: 'closed', changes: [{ kind: 'all', reason: 'created' }] },
    ])
    expect(response).toMatchObject({ first: 1, last: 1, more: false, table: 'wp_trellis_changes' })
    expect(response.incarnation).toMatch(/^[0-9a-f]{32}$/)
    expect(response.fingerprint).toMatch(/^[0-9a-f]{40}$/)
  })

  const target = '/?trellis-changes=0&incarnation='
  test.each([
    ['no signature', () => undefined],
    ['nonsense', () => 'yes'],
    ['another token', () => sign('GET', target, '', Date.now(), 'another token of tests')],
    ['another sequence', () => sign('GET', '/?trellis-changes=1&incarnation=')],
    ['another method', () => sign('POST', target)],
    ['a body', () => sign('GET', target, '{}')],
    ['a signature of six minutes ago', () => sign('GET', target, '', Date.now() - 360_000)],
    ['a signature of the future', () => sign('GET', target, '', Date.now() + 360_000)],
    ['a hmac cut short', () => sign('GET', target).slice(0, -1)],
    ['something behind it', () => `${sign('GET', target)}, more`],
  ])('a poll with %s is refused without a word', async (_title, signature) => {
    expect(await ask(target, signature())).toEqual({ status: 401, body: '', cacheControl: 'no-store' })
  })

  test.each(['-1', '1x', '', '99999999999999999999', '1%20OR%201=1'])(
    'the sequence %j is refused',
    async (sequence) => {
      const asked = `/?trellis-changes=${sequence}`
      expect((await ask(asked, sign('GET', asked))).status).toBe(400)
    },
  )

  test('a poll is a GET: other methods get the page', async () => {
    expect((await ask(target, sign('POST', target), { method: 'POST', body: '' })).body).toContain('<html')
  })

  test('a push names its row and the one before it', async () => {
    const { last } = await poll(site.origin, 0)
    await rename('one')
    await rename('two')
    const [one, two] = site.intake.pushes.slice(-2)
    expect(one).toMatchObject({ sequence: last + 1, site: 1, overflow: false })
    expect(two).toMatchObject({ sequence: last + 2, previous: last + 1, incarnation: one?.incarnation })
    const { rows, fingerprint } = await poll(site.origin, last + 1)
    const check = two?.check
    expect(check).toMatch(/^[0-9a-f]{16}$/)
    expect(rows).toEqual([{ sequence: last + 2, check, site: 1, state: 'closed', changes: two?.changes }])
    expect(two?.fingerprint).toBe(fingerprint)
  })

  test('values before and after the write are those of the database', async () => {
    const written = await site.rest('PUT', '/wp/v2/posts/17', {
      status: 'draft',
      slug: 'seventeen',
      categories: [3],
      date: '2025-01-02T03:04:05',
    })
    expect(written.status, await written.text()).toBe(200)
    const changes =
      site.intake.pushes.at(-1)?.changes.filter(({ id, kind }) => kind === 'post' && id === 17) ?? []
    expect(changes.length, JSON.stringify(site.intake.pushes.at(-1))).toBeGreaterThan(0)
    expect(changes[0]?.before).toMatchObject({
      status: 'publish',
      slug: 'plant-of-the-day-14',
      protected: false,
    })
    expect(changes.at(-1)?.after).toMatchObject({
      status: 'draft',
      slug: 'seventeen',
      parent: 0,
      date: '2025-01-02 03:04:05',
      terms: { category: [3] },
    })
    for (const [at, { before }] of changes.slice(1).entries()) {
      const { texts: _, ...after } = changes[at]?.after ?? {}
      expect(before).toEqual(after)
    }
  })

  test('values are left out when another request wrote at the same time', async () => {
    const other = await pausedScript(
      site,
      `wp_update_post( array( 'ID' => 18, 'post_status' => 'draft' ) ); pause();`,
    )
    expect((await poll(site.origin, 0)).rows.some(({ state }) => state === 'open')).toBe(true)
    await rename('beside')
    const beside = site.intake.pushes.at(-1)?.changes.find(({ id }) => id === 10)
    expect(beside).toEqual({ kind: 'post', id: 10, type: 'post' })
    await other.go()
    expect(site.intake.pushes.at(-1)?.changes).toContainEqual({ kind: 'post', id: 18, type: 'post' })
  })

  describe('beside a request that writes options alone', () => {
    const changesOf = async (act: () => Promise<unknown>) => {
      const { last } = await poll(site.origin, 0)
      await act()
      return (await poll(site.origin, last)).rows.flatMap(({ changes = [] }) => changes)
    }
    const renamed = async (title: string) =>
      // PHP has ended, and its row is closed, when the response is complete.
      (await changesOf(async () => (await rename(title)).text())).filter(
        ({ kind, id }) => kind === 'post' && id === 10,
      )

    test('a change of a post has its values, and an option counts as changed', async () => {
      const end = await begin(`update_option( 'beside', uniqid() );`)
      expect(await renamed('beside options')).toMatchObject([
        // `modified` too, unless it was last changed in the same second.
        {
          before: { status: 'publish' },
          after: { status: 'publish', texts: expect.arrayContaining(['title']) },
        },
      ])
      const code = `update_option( 'kept', 'x' ); update_option( 'kept', 'y' ); update_option( 'kept', 'x' );`
      await site.request(code)
      expect(await changesOf(() => site.request(code))).toContainEqual({ kind: 'option', name: 'kept' })
      await end()
    })

    test.each([
      ['a post', `wp_update_post( array( 'ID' => 18, 'post_content' => uniqid() ) );`],
      ['meta of a term', `update_term_meta( 3, 'shade', uniqid() );`],
      ['a comment', `wp_update_comment( array( 'comment_ID' => 2, 'comment_content' => uniqid() ) );`],
      [
        'posts by a statement',
        `$GLOBALS['wpdb']->query( 'UPDATE wp_posts p, wp_users u SET p.pinged = 1' );`,
      ],
      ['nothing that $wpdb has written', `clean_post_cache( 18 );`],
    ])('it has none as soon as that request writes %s', async (what, code) => {
      const end = await begin(`update_option( 'beside', uniqid() ); ${code}`)
      expect(await renamed(`beside ${what}`)).toEqual([{ kind: 'post', id: 10, type: 'post' }])
      await end()
    })

    test.each([
      ['[{"kind":"option","name":"a"},{"kind":"user","id":1},{"kind":"table","name":"acme"}]', true],
      ['[]', true],
      ['[{"kind":"post","id":1,"type":"post"}]', false],
      ['[{"kind":"option","name":"a"},{"kind":"table","name":"postmeta"}]', false],
      ['[{"kind":"all","reason":"overflow"}]', false],
      ['damaged', false],
    ])('an ended request with the changes %s has written options alone: %s', async (changes, isAside) => {
      const output = await site.request(
        `echo json_encode( Trellis_Changes::are_aside( json_decode( getenv( 'CHANGES' ) ) ) );`,
        { CHANGES: changes },
      )
      expect(output).toBe(String(isAside))
    })
  })

  test('a request that writes is seen as open, and closes with its changes under the same sequence', async () => {
    const { last } = await poll(site.origin, 0)
    const slow = await pausedScript(site, `update_option( 'slow', 'x' ); pause();`)
    const rows = async () => (await poll(site.origin, last)).rows
    expect(await rows()).toMatchObject([
      { sequence: last + 1, site: 1, state: 'open', since: expect.any(Number) },
    ])
    const check = (await rows())[0]?.check
    // An open row is in every response, however late the sequence.
    expect((await poll(site.origin, last + 1)).rows).toHaveLength(1)
    await slow.go()
    const changes = [{ kind: 'option', name: 'slow' }]
    expect(await rows()).toEqual([{ sequence: last + 1, check, site: 1, state: 'closed', changes }])
  })

  test('a long request reports what it has done so far', async () => {
    const pushes = site.intake.pushes.length
    const end = await begin(
      `if ( ! isset( $n ) ) { $n = 0; register_shutdown_function( function () { echo $GLOBALS['n']; } ); } update_option( 'step_' . $n++, 'x' ); usleep( 200000 );`,
    )
    await expect.poll(() => site.intake.pushes.length).toBeGreaterThan(pushes)
    const steps = Number((await end()).output)
    const names = site.intake.pushes.slice(pushes).map(({ changes }) => changes.map(({ name }) => name))
    expect(names.length).toBeGreaterThan(1)
    expect(names.flat()).toEqual(Array.from({ length: steps }, (_, n) => `step_${n}`))
  })

  test('a gateway that hangs costs a save no more than its limit, and the poll has the change', async () => {
    const { last } = await poll(site.origin, 0)
    site.intake.behaviour = 'hang'
    const code = `register_shutdown_function( function () { register_shutdown_function( function () { echo microtime( true ) - $GLOBALS['began']; } ); } ); update_option( 'hung', uniqid() ); $GLOBALS['began'] = microtime( true );`
    const tookSeconds = async (): Promise<number> => {
      const seconds = Number((await site.php(code, { TRELLIS_PUSH_LIMIT_MS: '' })).output)
      expect(seconds).toBeGreaterThan(0.29)
      return seconds
    }
    // The best of some: on a busy machine PHP itself stands still.
    await expect.poll(tookSeconds).toBeLessThan(0.5)
    expect((await poll(site.origin, last)).rows[0]?.changes).toEqual([{ kind: 'option', name: 'hung' }])
  })

  test.each(['redirect', 'fail'] as const)(
    'a gateway whose response is a %s changes nothing for the save',
    async (behaviour) => {
      site.intake.behaviour = behaviour
      const refused = site.intake.refused.length
      expect((await rename(`while ${behaviour}`)).status).toBe(200)
      // The redirect was not followed.
      expect(site.intake.refused.length).toBe(refused)
    },
  )

  /** What pushes tell that tell of this option: a scheduled task may write and push beside the test. */
  const pushed = (name: string) =>
    site.intake.pushes
      .map(({ changes }) => changes)
      .filter((all) => all.some((change) => change.name === name))

  test('several gateways get the push, beside one that is not there', async () => {
    await site.php(`update_option( 'two', 'x' );`, {
      TRELLIS_GATEWAYS: `http://127.0.0.1:9/, ${site.intake.origin} ,file:///etc/passwd,${site.intake.origin}/`,
    })
    const change = [{ kind: 'option', name: 'two' }]
    expect(pushed('two')).toEqual([change, change])
  })

  test('without cURL the push goes over a plain socket', async () => {
    const flags = ['-d', 'disable_functions=curl_multi_init']
    await site.php(`update_option( 'plain', 'x' );`, {}, flags)
    expect(pushed('plain')).toEqual([[{ kind: 'option', name: 'plain' }]])
    site.intake.behaviour = 'hang'
    // It ends: the intake does not answer as long as the test lasts.
    const hung = await site.php(`update_option( 'plain', 'y' );`, { TRELLIS_PUSH_LIMIT_MS: '' }, flags)
    expect(hung.code).toBe(0)
  })

  test('a new version of a plugin is a change of everything', async () => {
    const { last, fingerprint } = await poll(site.origin, 0)
    const file = `${site.site}/wp-content/mu-plugins/trellis.php`
    const text = await readFile(file, 'utf8')
    await writeFile(file, text.replace(/Version: .*/, 'Version: 99.1'))
    const later = await poll(site.origin, last)
    expect(later.fingerprint).not.toBe(fingerprint)
    const changes = [{ kind: 'all', reason: 'fingerprint' }]
    expect(later.rows).toMatchObject([{ sequence: last + 1, site: 0, state: 'closed', changes }])
    expect((await poll(site.origin, last + 1)).rows).toEqual([])
  })

  test('so is another file of the companion, whatever its version: its rules decide what responses name', async () => {
    const { last, fingerprint } = await poll(site.origin, 0)
    const file = `${site.site}/wp-content/mu-plugins/trellis.php`
    await writeFile(file, `${await readFile(file, 'utf8')}// another rule\n`)
    expect((await poll(site.origin, last)).fingerprint).not.toBe(fingerprint)
  })

  test('a response is bounded, and the next goes on from it', async () => {
    const { last } = await poll(site.origin, 0)
    await site.php(
      `$log = new Trellis_Log(); for ( $n = 0; $n < 600; $n++ ) { $log->append( 1, '[]' ); } for ( $n = 0; $n < 4; $n++ ) { $log->append( 1, '["' . str_repeat( 'x', 190000 ) . '"]' ); }`,
    )
    const sizes: number[] = []
    let after = last
    for (;;) {
      const response = await poll(site.origin, after)
      expect(JSON.stringify(response).length).toBeLessThan(512 * 1024)
      sizes.push(response.rows.length)
      after = response.rows.at(-1)?.sequence ?? after
      if (!response.more) break
    }
    expect(sizes).toEqual([500, 102, 2])
  })

  test('old rows are deleted; the first that is left is named', async () => {
    const { last } = await poll(site.origin, 0)
    await query(`UPDATE wp_trellis_changes SET since = 1 WHERE state <> 9`)
    await site.php(`( new Trellis_Log() )->prune( ${last} );`)
    expect(await poll(site.origin, 0)).toMatchObject({ first: last, last })
    expect((await poll(site.origin, 0)).rows.map(({ sequence }) => sequence)).toEqual([1, last])
  })

  test('a log that was restored from a copy, or deleted, has another incarnation', async () => {
    const { last, incarnation } = await poll(site.origin, 0)
    const restored = await poll(site.origin, last + 1, incarnation)
    expect(restored.incarnation).not.toBe(incarnation)
    expect((await poll(site.origin, last, incarnation)).incarnation).toBe(restored.incarnation)
    await query('DROP TABLE wp_trellis_changes')
    const pushes = site.intake.pushes.length
    await rename('without a log')
    const deleted = await poll(site.origin, 0)
    expect(deleted.incarnation).not.toBe(restored.incarnation)
    expect(site.intake.pushes.slice(pushes)).toMatchObject([{ incarnation: deleted.incarnation }])
  })

  test('a log without the row that a gateway has read, or with another check value for it, has another incarnation', async () => {
    await rename('known')
    const { last, incarnation, rows } = await poll(site.origin, 0)
    const check = rows.at(-1)?.check ?? ''
    const after = async (known: string, of = incarnation): Promise<string> =>
      (await poll(site.origin, last, of, known)).incarnation
    expect(await after(`${last}.${check}`)).toBe(incarnation)
    // Of another log, or not readable: there is nothing to compare.
    expect(await after(`${last}.${'0'.repeat(16)}`, 'ab')).toBe(incarnation)
    for (const known of ['1', `${last}.`, `${last}.${check}0`, 'x'])
      expect(await after(known)).toBe(incarnation)
    const other = await after(`${last}.${'0'.repeat(16)}`)
    expect(other).not.toBe(incarnation)
    expect(await after(`${last}.${check}`, other)).toBe(other)
    expect(await after(`${last + 1}.${check}`, other)).not.toBe(other)
  })

  test('a restored log that cannot be written has another incarnation in each response', async () => {
    const { last, incarnation } = await poll(site.origin, 0)
    const file = `${site.site}/wp-content/mu-plugins/0-read-only.php`
    await writeFile(
      file,
      `<?php add_filter( 'query', function ( $sql ) { return false === strpos( $sql, 'trellis_changes' ) || 0 === strpos( $sql, 'SELECT' ) ? $sql : 'SELECT 1 FROM nothing'; } );`,
    )
    try {
      const known = `${last}.${'0'.repeat(16)}`
      const one = await poll(site.origin, last, incarnation, known)
      const two = await poll(site.origin, last, incarnation, known)
      expect(new Set([one, two, { incarnation }].map((response) => response.incarnation)).size).toBe(3)
      expect((await poll(site.origin, last, one.incarnation)).incarnation).not.toBe(one.incarnation)
    } finally {
      await rm(file)
    }
    expect((await poll(site.origin, last, incarnation)).incarnation).toBe(incarnation)
  })

  test('of two polls that find a restored log at once, both get the same incarnation', async () => {
    const { last, incarnation } = await poll(site.origin, 0)
    const both = await Promise.all([1, 2, 3].map(() => poll(site.origin, last + 1, incarnation)))
    expect(new Set([...both, await poll(site.origin, 0)].map((one) => one.incarnation)).size).toBe(1)
  })

  test('a log that cannot be read is an error that opens no breaker', async () => {
    const file = `${site.site}/wp-content/mu-plugins/0-broken.php`
    await writeFile(
      file,
      `<?php add_filter( 'query', function ( $sql ) { return false === strpos( $sql, 'trellis_changes' ) ? $sql : 'SELECT 1 FROM nothing'; } );`,
    )
    try {
      const asked = '/?trellis-changes=0&incarnation='
      expect((await ask(asked, sign('GET', asked))).status).toBe(500)
    } finally {
      await rm(file)
    }
  })

  test('wp trellis status, drop and test, run by a stand-in for WP-CLI, show the log and reach each gateway', async () => {
    const { last } = await poll(site.origin, 0)
    const wp = (command: string, gateways = site.intake.origin) =>
      site.php(`WP_CLI::run( '${command}' );`, { TRELLIS_GATEWAYS: gateways }, [
        ...['-d', `auto_prepend_file=${standIn}`],
      ])
    const status = await wp('trellis status')
    expect(status.output).toMatch(
      /^gateways: .*\ntable: +wp_trellis_changes, rows \d+ to \d+\nincarnation: [0-9a-f]{32}\nopen: +0\n/,
    )
    expect(status.code).toBe(0)
    const dropped = await wp('trellis drop', `${site.intake.origin},http://127.0.0.1:9`)
    expect(dropped.output).toMatch(/admin: 200\nhttp:\/\/127\.0\.0\.1:9: .+\nError: Not every gateway/)
    expect(dropped.code).toBe(1)
    expect((await poll(site.origin, last)).rows.at(-1)?.changes).toEqual([
      { kind: 'all', reason: 'requested' },
    ])
    expect(await wp('trellis test')).toEqual({
      code: 0,
      output: `${site.intake.origin}: 200\nSuccess: Done.\n`,
    })
    expect(site.intake.pushes.slice(-2).map(({ changes }) => changes)).toEqual([
      [{ kind: 'all', reason: 'requested' }],
      [],
    ])
  })

  test('without a token the plugin does nothing', async () => {
    const { output } = await site.php(
      `var_dump( has_action( 'clean_post_cache' ) && class_exists( 'Trellis_Log' ) && isset( $GLOBALS['wp_filter']['query']->callbacks[ PHP_INT_MAX ] ) );`,
      { TRELLIS_TOKEN: '' },
    )
    expect(output).toContain('bool(false)')
    const short = await site.php('', { TRELLIS_TOKEN: 'too short' })
    expect(short.output).toContain('less than 16 characters')
  })
})
