import { afterAll, beforeAll, expect, test } from 'vitest'
import { rowsOf } from '../support/breadth.ts'
import { describeWith } from '../support/requirements.ts'
import { changedObjects, type Dump, dumpDatabase, uncovered } from './companion/coverage.ts'
import { type Change, poll } from './companion/intake.ts'
import { type CompanionSite, startCompanionSite } from './companion/site.ts'
import { quietWrites, type Write, writes } from './companion/writes.ts'

const short = (change: Change): string =>
  [change.kind, change.type ?? change.taxonomy ?? change.post ?? change.name ?? change.reason]
    .filter((part) => part !== undefined)
    .join(':')

describeWith('php', 'the WordPress companion reports every write', () => {
  let site: CompanionSite
  /** After the write before. */
  let dump: Dump

  beforeAll(async () => {
    site = await startCompanionSite()
    await site.request('')
    await site.browser.login()
    await poll(site.origin, 0)
    dump = await dumpDatabase(site.dsn)
  })
  afterAll(() => site?.stop())

  const observe = async ([, , run]: Write): Promise<{
    pushed: Change[]
    logged: Change[]
    missing: string[]
  }> => {
    const { last } = await poll(site.origin, 0)
    const count = site.intake.pushes.length
    await run(site)
    const before = dump
    dump = await dumpDatabase(site.dsn)
    const objects = changedObjects(before, dump)
    const pushes = () => site.intake.pushes.slice(count).flatMap(({ changes }) => changes)
    const { rows } = await poll(site.origin, last)
    expect(rows.filter(({ state }) => state !== 'closed')).toEqual([])
    const logged = rows.flatMap(({ changes = [] }) => changes)
    // On a busy machine the push is given up before its response, and read here a moment later.
    await expect.poll(pushes).toHaveLength(logged.length)
    const pushed = pushes()
    return { pushed, logged, missing: uncovered(objects, pushed) }
  }

  const some = rowsOf(writes, 5, ([title]) => title.includes('permalinks') || title.includes('draft'))

  test.each(some.map((write) => [write[0], write] as const))('%s', async (_title, write) => {
    const { pushed, logged, missing } = await observe(write)
    const names = pushed.map(short)
    expect(missing, `reported: ${names.join(', ')}`).toEqual([])
    expect(names).toEqual(expect.arrayContaining([...write[1]]))
    // The log has what was pushed, in the same words.
    expect(logged).toEqual(pushed)
    expect(site.intake.refused).toEqual([])
  })

  test.each(quietWrites.map((write) => [write[0], write] as const))(
    'nothing is reported for %s',
    async (_title, write) => {
      const { pushed, logged, missing } = await observe(write)
      expect({ pushed, logged, missing }).toEqual({ pushed: [], logged: [], missing: [] })
    },
  )

  test('a write whose values before cannot be read is reported as a change of everything', async () => {
    const { last } = await poll(site.origin, 0)
    await site.request(
      `add_filter( 'query', function ( $sql ) { return false === strpos( $sql, 'MD5(p.post_title)' ) ? $sql : 'SELECT broken'; } ); $GLOBALS['wpdb']->update( 'wp_posts', array( 'post_status' => 'draft' ), array( 'ID' => 95 ) );`,
    )
    const { rows } = await poll(site.origin, last)
    expect(rows.flatMap(({ changes = [] }) => changes)).toEqual([{ kind: 'all', reason: 'statement' }])
  })
})
