import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeWith } from '../support/requirements.ts'
import { changedObjects, dumpDatabase } from './companion/coverage.ts'
import { poll } from './companion/intake.ts'
import { type CompanionSite, makeNetwork, startCompanionStack, untilReloaded } from './companion/site.ts'

describeWith('mariadb', 'the WordPress companion in a network of blogs', () => {
  let site: CompanionSite

  /** What is pushed for some PHP, as `site: changes`. */
  const reported = async (code: string) => {
    const { last } = await poll(site.origin, 0)
    const count = site.intake.pushes.length
    await site.request(code)
    const { rows } = await poll(site.origin, last)
    const logged = rows.map((row) => ({ site: row.site, sequence: row.sequence, changes: row.changes }))
    const pushed = () =>
      site.intake.pushes
        .slice(count)
        .map((push) => ({ site: push.site, sequence: push.sequence, changes: push.changes }))
    await expect.poll(() => pushed().toSorted((a, b) => a.sequence - b.sequence)).toEqual(logged)
    return logged.map(
      (row) =>
        `${row.site}: ${(row.changes ?? []).map(({ kind, id, name }) => `${kind} ${id ?? name}`).join(', ')}`,
    )
  }

  beforeAll(async () => {
    site = await startCompanionStack()
    await makeNetwork(site)
    await untilReloaded(site)
  })
  afterAll(() => site?.stop())

  test('a change has the id of the blog in which it is made', async () => {
    expect(await reported(`update_post_meta( 10, 'k', 'v' );`)).toEqual(['1: post 10'])
    expect(
      await reported(`switch_to_blog( 2 ); update_post_meta( 1, 'k', 'v' ); restore_current_blog();`),
    ).toEqual(['2: post 1'])
    expect(
      await reported(`switch_to_blog( 2 ); update_option( 'blogname', 'Two' ); restore_current_blog();`),
    ).toEqual(['2: option blogname'])
  })

  test('a request that writes in several blogs leaves a row for each', async () => {
    const all = await reported(
      `update_post_meta( 10, 'k', 'w' ); switch_to_blog( 2 ); update_post_meta( 1, 'k', 'w' ); restore_current_blog(); update_user_meta( 2, 'k', 'w' );`,
    )
    expect(all.toSorted()).toEqual(['0: user 2', '1: post 10', '2: post 1'])
  })

  test('a blog that publishes does not change the network', async () => {
    const all = await reported(
      `switch_to_blog( 2 ); wp_update_post( array( 'ID' => 1, 'post_title' => 'n' ) ); restore_current_blog();`,
    )
    expect(all.map((one) => one.slice(0, 2))).not.toContain('0:')
    expect(await reported(`update_blog_status( 2, 'public', '0' );`)).toEqual([
      '2: option blog_public',
      '0: table blogs',
    ])
  })

  test('an empty language changes a blog only if the network has one', async () => {
    const addEmpty = `add_option( 'WPLANG', '' );`
    const set = (language: string) =>
      site.request(
        `delete_option( 'WPLANG' ); $GLOBALS['wpdb']->update( 'wp_sitemeta', array( 'meta_value' => '${language}' ), array( 'meta_key' => 'WPLANG' ) );`,
      )
    expect(await reported(addEmpty)).toEqual(['1: option WPLANG:direct'])
    await set('de_DE')
    expect(await reported(addEmpty)).toEqual(['1: option WPLANG'])
    await set('en_US')
    expect(await reported(addEmpty)).toEqual(['1: option WPLANG:direct'])
  })

  test('notices of wp-admin do not change the network', async () => {
    expect(await reported(`update_site_option( 'wp_force_deactivated_plugins', array() );`)).toEqual([])
  })

  test('every write is reported', async () => {
    const before = await dumpDatabase(site.dsn)
    const all = await reported(
      `switch_to_blog( 2 ); $id = wp_insert_post( array( 'post_title' => 'net', 'post_status' => 'publish', 'tags_input' => array( 'net' ) ) ); restore_current_blog(); wpmu_create_user( 'netuser', 'long-password', 'net@example.org' ); update_site_option( 'registration', 'all' );`,
    )
    const text = all.join(', ')
    for (const object of changedObjects(before, await dumpDatabase(site.dsn))) {
      const isQuiet = /^table (?:blogs|sitemeta)$/.test(object)
      if (!isQuiet) expect(text).toContain(object)
    }
    expect(text).toContain('table sitemeta')
  })

  test('a blog is deleted, and its tables with it: everything changes', async () => {
    expect(await reported(`wpmu_delete_blog( 2, true );`)).toEqual(['0: all undefined'])
  })
})
