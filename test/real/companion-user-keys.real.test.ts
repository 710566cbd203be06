import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeWith } from '../support/requirements.ts'
import { type CompanionSite, startCompanionSite } from './companion/site.ts'

/** `?keys=` makes a response of what it says of user 1. */
const plugin = `<?php add_action( 'rest_api_init', function () {
	global $wpdb;
	switch ( $_GET['keys'] ?? '' ) {
		case 'one': get_user_meta( 1, 'shelf', true ); break;
		case 'property': get_userdata( 1 )->shelf; break;
		case 'exists': metadata_exists( 'user', 1, 'shelf' ); break;
		case 'WordPress': get_user_meta( 1, 'description', true ); get_userdata( 1 )->roles; break;
		case 'all': get_user_meta( 1 ); break;
		case 'cache': update_meta_cache( 'user', array( 1 ) ); break;
		case 'SQL': $wpdb->get_results( "SELECT meta_value FROM $wpdb->usermeta WHERE meta_key = 'Shelf'" ); break;
		case 'any SQL': $wpdb->get_results( "SELECT meta_value FROM $wpdb->usermeta WHERE meta_key LIKE 'sh%'" ); break;
		case 'two conditions': new WP_User_Query( array( 'meta_query' => array( array( 'key' => 'shelf', 'value' => 'a' ), array( 'value' => 'b' ) ) ) ); break;
		case 'a key or a value': $wpdb->get_results( "SELECT user_id FROM $wpdb->usermeta WHERE meta_key = 'shelf' OR meta_value = 'b'" ); break;
		case 'not a key': $wpdb->get_results( "SELECT user_id FROM $wpdb->usermeta WHERE NOT meta_key = 'shelf'" ); break;
		case 'a key or another': new WP_User_Query( array( 'meta_query' => array( 'relation' => 'OR', array( 'key' => 'shelf', 'value' => 'a' ), array( 'key' => 'Shelf', 'value' => array( 'b', 'c' ), 'compare' => 'IN' ) ) ) ); break;
		case 'other letters': $wpdb->get_results( "SELECT meta_value FROM $wpdb->usermeta WHERE meta_key = 'sh\u00e9lf'" ); break;
	}
} );`

const key = (name: string): string => createHash('md5').update(name).digest('hex').slice(0, 6)

describeWith('php', 'what users have beside what WordPress shows of them', () => {
  let site: CompanionSite

  beforeAll(async () => {
    site = await startCompanionSite()
    await writeFile(`${site.site}/wp-content/mu-plugins/keys.php`, plugin)
    await (await fetch(`${site.origin}/index.php/wp-json/wp/v2/posts/10`)).text()
  })
  afterAll(() => site?.stop())

  const tagsOf = async (keys: string): Promise<string> => {
    const url = `${site.origin}/index.php/wp-json/wp/v2/posts/10?keys=${encodeURIComponent(keys)}`
    const response = await fetch(url)
    const tags = response.headers.get('trellis-tags') ?? ''
    expect(tags).toContain(';complete;')
    return tags
  }

  test.each(['one', 'property', 'exists', 'SQL', 'a key or another'])(
    'a response names the key that it reads: %s',
    async (keys) => {
      const tags = await tagsOf(keys)
      expect(tags).toContain(key('shelf'))
      expect(tags).toContain('user_keys:key:')
    },
  )

  test.each(['all', 'cache', 'any SQL', 'two conditions', 'a key or a value', 'not a key', 'other letters'])(
    'a response that may read any key says so: %s',
    async (keys) => {
      expect(await tagsOf(keys)).toMatch(/[=,]user_keys[,;]|[=,]user_keys$/)
    },
  )

  test('a response need not name what WordPress shows of a user', async () => {
    for (const name of ['description', 'wp_capabilities'])
      expect(await tagsOf('WordPress')).not.toContain(key(name))
  })

  const everything = { kind: 'user', id: 1 }
  const alone = { ...everything, keys: [key('shelf')] }
  test.each<[string, readonly object[]]>([
    ["update_user_meta( 1, 'shelf', 'a' );", [alone]],
    ["update_user_meta( 1, 'shelf', 'b' );", [alone]],
    ["delete_user_meta( 1, 'shelf' );", [alone]],
    ["add_user_meta( 1, 'Shelf', 'c' ); add_user_meta( 1, 'shelf', 'd' );", [alone]],
    [
      "$GLOBALS['wpdb']->query( \"UPDATE wp_usermeta SET meta_value = 'e' WHERE meta_key = 'shelf'\" );",
      [alone],
    ],
    [
      "$GLOBALS['wpdb']->query( \"UPDATE wp_usermeta SET meta_key = 'nickname' WHERE user_id = 1 AND meta_key = 'shelf'\" );",
      [everything],
    ],
    ["update_user_meta( 1, 'description', 'f' );", [everything]],
    ["update_user_meta( 1, 'pot', 'g' ); update_user_meta( 1, 'description', 'h' );", [everything]],
    ["update_user_meta( 1, 'description', 'i' ); update_user_meta( 1, 'pot', 'j' );", [everything]],
    ["update_user_meta( 1, 'wp_user_level', '9' );", [everything]],
    ["update_user_meta( 1, 'sh\u00e9lf', 'k' );", [everything]],
    // By a connection of its own, before it says so.
    ["update_user_meta( 1, 'pot', 'l' ); clean_user_cache( 1 );", [everything]],
  ])('%s is reported', async (code, changes) => {
    site.intake.pushes.length = 0
    const output = await site.request(code)
    expect(output).toBe('')
    expect(site.intake.pushes.flatMap((push) => push.changes)).toEqual(changes)
  })
})
