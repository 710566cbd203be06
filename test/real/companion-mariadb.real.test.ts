import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { rowsOf } from '../support/breadth.ts'
import { describeWith } from '../support/requirements.ts'
import { changedObjects, dumpDatabase, uncovered } from './companion/coverage.ts'
import { poll } from './companion/intake.ts'
import { pausedScript } from './companion/paused-script.ts'
import { addObjectCache, type CompanionSite, startCompanionStack } from './companion/site.ts'
import { writesByIndex } from './companion/writes.ts'
import type { RedisServer } from './shared/redis-server.ts'

describeWith('mariadb', 'the WordPress companion on MariaDB', () => {
  let site: CompanionSite

  beforeAll(async () => {
    site = await startCompanionStack()
    await poll(site.origin, 0)
  })
  afterAll(() => site?.stop())

  // Of rows that SQL alone inserts only the database knows the ids.
  const some = rowsOf(writesByIndex, 12, ([title]) => title.startsWith('$wpdb: rows'))

  test.each(some.map((write) => [write[0], write] as const))('%s', async (_title, [, , run]) => {
    const { last } = await poll(site.origin, 0)
    const before = await dumpDatabase(site.dsn)
    const count = site.intake.pushes.length
    await run(site)
    const objects = changedObjects(before, await dumpDatabase(site.dsn))
    const { rows } = await poll(site.origin, last)
    const logged = rows.flatMap(({ changes = [] }) => changes)
    expect(uncovered(objects, logged)).toEqual([])
    const pushed = () => site.intake.pushes.slice(count).flatMap(({ changes }) => changes)
    await expect.poll(pushed).toEqual(logged)
    expect(rows.map(({ state }) => state)).toEqual(rows.map(() => 'closed'))
  })

  test.each([
    ['is emptied, so that it counts from 1 again', 'TRUNCATE TABLE wp_trellis_changes'],
    ['loses all rows but the oldest', 'DELETE FROM wp_trellis_changes WHERE state <> 9'],
    ['loses its oldest row', 'DELETE FROM wp_trellis_changes ORDER BY sequence LIMIT 1'],
    [
      'is deleted, and made again by hand with what a copy had',
      `CREATE TABLE wp_copy AS SELECT * FROM wp_trellis_changes ORDER BY sequence LIMIT 1;
       CREATE TABLE wp_like LIKE wp_trellis_changes; DROP TABLE wp_trellis_changes;
       RENAME TABLE wp_like TO wp_trellis_changes; INSERT INTO wp_trellis_changes SELECT * FROM wp_copy; DROP TABLE wp_copy`,
    ],
    [
      'is restored from a copy, and written again',
      `CREATE TABLE wp_like LIKE wp_trellis_changes;
       INSERT INTO wp_like SELECT * FROM wp_trellis_changes ORDER BY sequence DESC LIMIT 3;
       INSERT IGNORE INTO wp_like SELECT * FROM wp_trellis_changes WHERE state = 9;
       DELETE FROM wp_like ORDER BY sequence DESC LIMIT 1;
       DROP TABLE wp_trellis_changes; RENAME TABLE wp_like TO wp_trellis_changes`,
    ],
  ])('a log that %s, has another incarnation after any number of writes', async (_title, statements) => {
    const save = async (): Promise<void> => {
      expect((await site.rest('PUT', '/wp/v2/posts/68', { title: `${Math.random()}` })).status).toBe(200)
    }
    for (let n = 0; n < 4; n += 1) await save()
    const { last, incarnation, rows } = await poll(site.origin, 0)
    const known = `${last}.${rows.at(-1)?.check}`
    expect((await poll(site.origin, last, incarnation, known)).incarnation).toBe(incarnation)
    const run = statements.split(';').map((one) => `mysqli_query( $w, ${JSON.stringify(one.trim())} );`)
    // Not through wpdb, which would log it.
    await site.request(`$w = $GLOBALS["wpdb"]->dbh; ${run.join(' ')}`)
    for (let n = 0; n < 3; n += 1) await save()
    expect((await poll(site.origin, last, incarnation, known)).incarnation).not.toBe(incarnation)
  })

  test('a repaired table has the rows that it had', async () => {
    const { last, incarnation, rows } = await poll(site.origin, 0)
    const known = `${last}.${rows.at(-1)?.check}`
    await site.request(
      `foreach ( array( 'ALTER TABLE wp_trellis_changes ENGINE = MyISAM', 'REPAIR TABLE wp_trellis_changes', 'ALTER TABLE wp_trellis_changes ENGINE = InnoDB' ) as $sql ) { $GLOBALS['wpdb']->query( $sql ); }`,
    )
    const later = await poll(site.origin, last, incarnation, known)
    expect(later.incarnation).toBe(incarnation)
    expect(later.last).toBeGreaterThanOrEqual(last)
  })

  test('ids of rows that are inserted in a row are known', async () => {
    const { last } = await poll(site.origin, 0)
    await site.request(
      `$w = $GLOBALS['wpdb']; foreach ( array( 1, 2 ) as $n ) { $w->insert( 'wp_posts', array( 'post_title' => 'bare', 'post_content' => '', 'post_excerpt' => '', 'to_ping' => '', 'pinged' => '', 'post_content_filtered' => '' ) ); } $w->insert( 'wp_comments', array( 'comment_post_ID' => 53, 'comment_author' => 'b', 'comment_content' => 'bare' ) );`,
    )
    const logged = (await poll(site.origin, last)).rows.flatMap(({ changes = [] }) => changes)
    expect(logged.map(({ kind, before }) => [kind, before])).toEqual([
      ['post', null],
      ['post', null],
      ['comment', null],
    ])
  })

  test('a process that is killed leaves a mark that is dead as soon as its connection is gone', async () => {
    const { last } = await poll(site.origin, 0)
    const { code } = await site.php(
      `wp_update_post( array( 'ID' => 60, 'post_title' => 'k' ) ); posix_kill( getmypid(), SIGKILL );`,
    )
    expect(code).toBe('SIGKILL')
    const rows = async () => (await poll(site.origin, last)).rows
    await expect.poll(rows).toMatchObject([{ sequence: last + 1, site: 1, state: 'dead' }])
    const second = await pausedScript(
      site,
      `wp_update_post( array( 'ID' => 60, 'post_title' => 'l' ) ); pause();`,
    )
    expect((await poll(site.origin, last + 1)).rows.map(({ state }) => state)).toEqual(['open'])
    await second.go()
    expect((await poll(site.origin, last + 1)).rows.map(({ state }) => state)).toEqual(['closed'])
  })

  /** Runs PHP that calls `pause()` once; gives the ids of posts that were pushed until then, and afterwards. */
  const pushedAround = async (code: string) => {
    const count = site.intake.pushes.length
    const script = await pausedScript(site, `$w = $GLOBALS['wpdb']; ${code}`)
    const ids = () => [
      ...new Set(site.intake.pushes.slice(count).flatMap(({ changes }) => changes.map(({ id }) => id))),
    ]
    const before = ids()
    await script.go()
    return { before, after: ids() }
  }
  const title = (id: number): string =>
    `$w->update( 'wp_posts', array( 'post_title' => 'later ' . microtime( true ) ), array( 'ID' => ${id} ) );`

  test('a transaction is reported only after its commit, however long it takes', async () => {
    const { before, after } = await pushedAround(
      `$w->query( 'START TRANSACTION' ); ${title(61)} sleep( 7 ); ${title(62)} pause(); $w->query( 'COMMIT' );`,
    )
    expect({ before, after }).toEqual({ before: [], after: [61, 62] })
  })

  test('a transaction that a plugin commits at the end of the request is reported after that', async () => {
    const { before, after } = await pushedAround(
      `$w->query( 'SET autocommit = 0' ); ${title(65)} add_action( 'shutdown', function () use ( $w ) { pause(); $w->query( 'COMMIT' ); } );`,
    )
    expect({ before, after }).toEqual({ before: [], after: [65] })
  })

  test('a request that has switched autocommit off, so that its rows of the log may be rolled back, is not lost for polls', async () => {
    const { last } = await poll(site.origin, 0)
    await site.request(
      `$w = $GLOBALS['wpdb']; $w->query( 'SET autocommit = 0' ); ${title(65)} $w->query( 'COMMIT' );`,
    )
    const { rows } = await poll(site.origin, last)
    const says = rows.map(({ state, changes = [] }) => (changes.some(({ id }) => id === 65) ? 'told' : state))
    expect(['told', 'dead']).toContain(says.at(-1))
  })

  test('a request that has written and goes on reading reports before its end', async () => {
    const { before } = await pushedAround(
      `${title(66)} sleep( 7 ); $w->get_var( 'SELECT COUNT(*) FROM wp_posts' ); pause();`,
    )
    expect(before).toEqual([66])
  })

  test('the changes of a transaction come in a row that no poll can have given up', async () => {
    await site.request(`update_option( 'next', microtime() );`)
    const { last } = await poll(site.origin, 0)
    const slow = await pausedScript(
      site,
      `$w = $GLOBALS['wpdb']; $w->query( 'START TRANSACTION' ); $w->update( 'wp_posts', array( 'post_title' => 't' ), array( 'ID' => 61 ) ); pause(); $w->query( 'COMMIT' );`,
    )
    // The other one begins while the first has its sequence and is not committed.
    await site.request(`wp_update_post( array( 'ID' => 62, 'post_title' => 'u' ) );`)
    const early = (await poll(site.origin, last)).rows.map(({ sequence }) => sequence)
    await slow.go()
    const late = (await poll(site.origin, last)).rows
    expect({ early, late: late.map(({ sequence }) => sequence) }).toEqual({
      early: [last + 2],
      late: [last + 1, last + 2, last + 3],
    })
    expect(late[0]?.changes).toEqual([])
    expect(late[2]?.changes).toEqual([{ kind: 'post', id: 61, type: 'post' }])
  })

  test('a transaction that is rolled back removes its mark, and the changes come in a new row', async () => {
    const { last } = await poll(site.origin, 0)
    await site.request(
      `$w = $GLOBALS['wpdb']; $w->query( 'START TRANSACTION' ); $w->update( 'wp_posts', array( 'post_title' => 't' ), array( 'ID' => 63 ) ); $w->query( 'ROLLBACK' );`,
    )
    const { rows } = await poll(site.origin, last)
    expect(rows).toMatchObject([
      { sequence: last + 2, site: 1, state: 'closed', changes: [{ kind: 'post', id: 63, type: 'post' }] },
    ])
  })

  test('the values that a request reads from its connection are those of its own statements', async () => {
    const output = await site.request(
      `$w = $GLOBALS['wpdb'];
      // The end of a temporary value is not reported; the write after it makes the mark.
      $w->query( "INSERT INTO wp_options (option_name, option_value) VALUES ('_transient_timeout_own', '1')" );
      $own = $w->insert_id;
      $w->query( "INSERT INTO wp_postmeta (post_id, meta_key, meta_value) VALUES (67, 'own', LAST_INSERT_ID())" );
      echo (int) get_post_meta( 67, 'own', true ) - $own, ' ';
      $w->query( "INSERT INTO wp_postmeta (post_id, meta_key, meta_value) VALUES (67, 'later', '')" );
      $own = $w->insert_id;
      $w->get_col( 'SELECT SQL_CALC_FOUND_ROWS ID FROM wp_posts LIMIT 2' );
      $all = (int) $w->get_var( 'SELECT COUNT(*) FROM wp_posts' );
      $w->get_col( 'SELECT SQL_CALC_FOUND_ROWS ID FROM wp_posts LIMIT 2' );
      sleep( 7 );
      echo $w->get_var( 'SELECT FOUND_ROWS()' ) - $all, ' ';
      $w->get_var( 'SELECT 1' );
      $w->query( "INSERT INTO wp_postmeta (post_id, meta_key, meta_value) VALUES (67, 'own2', LAST_INSERT_ID())" );
      echo $w->get_var( "SELECT meta_value FROM wp_postmeta WHERE meta_key = 'own2'" ) - $own;`,
    )
    expect(output).toBe('0 0 0')
  })

  test('a connection that is cut in the middle does not lose the changes', async () => {
    const { last } = await poll(site.origin, 0)
    await site.request(
      `$w = $GLOBALS['wpdb']; update_option( 'cut', '1' ); $other = mysqli_connect( 'localhost', 'root', '', 'site', 0, substr( DB_HOST, strlen( 'localhost:' ) ) ); mysqli_query( $other, 'KILL ' . mysqli_thread_id( $w->dbh ) ); usleep( 200000 ); update_option( 'cut', '2' );`,
    )
    const logged = (await poll(site.origin, last)).rows.flatMap(({ changes = [] }) => changes)
    expect(logged).toEqual([{ kind: 'option', name: 'cut' }])
  })

  describe('with a persistent object cache in Redis', () => {
    let redis: RedisServer

    beforeAll(async () => {
      redis = await addObjectCache(site)
    })
    afterAll(async () => {
      await rm(join(site.site, 'wp-content/object-cache.php'), { force: true })
      await redis?.stop()
    })

    test('the changes are the same', async () => {
      const write = async () => {
        const count = site.intake.pushes.length
        expect((await site.rest('PUT', '/wp/v2/posts/64', { status: 'draft' })).status).toBe(200)
        expect((await site.rest('PUT', '/wp/v2/posts/64', { status: 'publish' })).status).toBe(200)
        await expect.poll(() => site.intake.pushes.length - count).toBe(2)
        return site.intake.pushes.slice(count).flatMap(({ changes }) => changes.filter(({ id }) => id === 64))
      }
      expect((await write()).map(({ before, after }) => [before?.['status'], after?.['status']])).toEqual([
        ['publish', 'draft'],
        ['draft', 'publish'],
      ])
      // Behind the cache's back: the values before are those of the database, not of the cache.
      await site.request(
        `$GLOBALS['wpdb']->update( 'wp_posts', array( 'post_status' => 'pending' ), array( 'ID' => 64 ) );`,
      )
      expect((await write())[0]?.before).toMatchObject({ status: 'pending' })
      const response = await site.rest('GET', '/wp/v2/posts/64')
      expect(response.headers.get('trellis-tags')).toMatch(
        /^v1;n=\d+;complete;(?:plain;)?(?:slugs;)?(?:structure;)?(?:early;)?blogs=1;p=(?:\d+,)*64\b/,
      )
    })

    test('an option that keeps its value is reported only if the cache had another one', async () => {
      const reported = async (code: string) => {
        const { last } = await poll(site.origin, 0)
        const output = await site.request(
          `function set( $value ) { $GLOBALS['wpdb']->update( 'wp_options', array( 'option_value' => $value ), array( 'option_name' => 'posts_per_rss' ) ); } ${code}`,
        )
        expect(output).toBe('')
        return (await poll(site.origin, last)).rows.flatMap(({ changes = [] }) => changes)
      }
      const changed = [{ kind: 'option', name: 'posts_per_rss' }]
      const again = `update_option( 'posts_per_rss', (int) get_option( 'posts_per_rss' ) );`
      expect(await reported(again)).toEqual([])
      expect(await reported(`update_option( 'posts_per_rss', 8 );`)).toEqual(changed)
      expect(await reported(again)).toEqual([])
      expect(await reported(`set( 7 );`)).toEqual(changed)
      // WordPress has shown 8 all the time.
      expect(await reported(`set( 7 ); wp_cache_delete( 'alloptions', 'options' );`)).toEqual(changed)
      expect(await reported(again)).toEqual([])
    })
  })
})
