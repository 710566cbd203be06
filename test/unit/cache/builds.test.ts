import { setImmediate } from 'node:timers/promises'
import { beforeEach, describe, expect, test } from 'vitest'
import { Builds } from '../../../src/cache/builds.ts'
import { cacheKey, partsOfKey } from '../../../src/cache/cache-key.ts'
import {
  createStoredResponse,
  type StoredResponse,
  setTags,
} from '../../../src/cache/store/stored-response.ts'

const keyOf = (target: string): string => cacheKey({ service: 'blog', target, partition: 'public' })

const policy = { profile: 'safe', ttlMs: 60_000 } as never

const stored = (
  target: string,
  content: string,
  tags: readonly string[] = [],
  headers: string[] = [],
): StoredResponse =>
  setTags(
    createStoredResponse({
      key: keyOf(target),
      head: { status: 200, headers: ['Content-Type', 'text/plain', ...headers] },
      content: Buffer.from(content),
      selecting: { sentHeader: () => undefined } as never,
      times: {
        requested: { now: 0, monotonic: 0 },
        received: { now: 0, monotonic: 0 },
      },
      policy,
      upstreamTag: undefined,
      order: 1,
      codedFrom: Number.MAX_SAFE_INTEGER,
      forms: [],
    }),
    tags,
  )

describe('reads of builds', () => {
  let now: number
  let builds: Builds
  const read = (
    id: string,
    target: string,
    content: string,
    tags: readonly string[] = [],
    isCurrent = true,
  ): void => builds.reading(id, target, keyOf(target))?.used(stored(target, content, tags), isCurrent)
  const changed = (id: string): readonly string[] | undefined => builds.report(id, true)?.changed

  beforeEach(() => {
    now = 1_000
    builds = new Builds(() => now)
    builds.begin('a', undefined)
  })

  test('an invalidation of a tag puts what has it in doubt, and nothing else', () => {
    read('a', '/1', 'x', ['post-1'])
    read('a', '/2', 'y', ['post-2'])
    builds.invalidated(['post-1', 'post-9'])
    expect(changed('a')).toEqual(['/1'])
  })

  test('the same content clears the doubt, another one does not', async () => {
    read('a', '/1', 'x', ['post-1'])
    read('a', '/2', 'y', ['post-2'])
    builds.invalidatedWhere(() => true)
    expect(await builds.doubtful('a')).toEqual([keyOf('/1'), keyOf('/2')])
    await builds.compare('a', (key) => [
      key === keyOf('/1') ? stored('/1', 'x', ['post-1']) : stored('/2', 'z'),
    ])
    expect(changed('a')).toEqual(['/2'])
    expect(await builds.doubtful('a')).toEqual([])
    builds.invalidated(['post-1'])
    expect(changed('a')?.toSorted()).toEqual(['/1', '/2'])
  })

  describe('an invalidation that no tag describes', () => {
    const reads = 5_000
    let compared: number
    const isMeant = (key: string): boolean => {
      compared += 1
      return partsOfKey(key).target !== '/7'
    }
    beforeEach(() => {
      compared = 0
      for (let nth = 0; nth < reads; nth += 1) read('a', `/${nth}`, 'x', [`post-${nth}`])
    })

    /** Comparisons in each turn, until there are no more. */
    const comparedByTurn = async (): Promise<readonly number[]> => {
      const turns: number[] = []
      const isOver = builds.doubtful('a').then(() => true)
      for (let before = 0; ; before = compared) {
        const over = await Promise.race([isOver, setImmediate(false)])
        turns.push(compared - before)
        if (over) return turns
      }
    }

    test('is compared with at most 2,000 reads in a turn', async () => {
      builds.invalidatedWhere(isMeant)
      const turns = await comparedByTurn()
      expect(turns.reduce((sum, count) => sum + count, 0)).toBe(reads)
      expect(Math.max(...turns)).toBeLessThanOrEqual(2_000)
      expect(changed('a')).toHaveLength(reads - 1)
    })

    test('holds up neither a report nor a new build, however many there are', async () => {
      const isNone = (): boolean => {
        compared += 1
        return false
      }
      for (let nth = 0; nth < 17; nth += 1) builds.invalidatedWhere(isNone)
      builds.begin('b', 'a')
      builds.report('a', true)
      expect(compared).toBe(0)
      const turns = await comparedByTurn()
      expect(turns.reduce((sum, count) => sum + count, 0)).toBe(17 * reads)
      expect(Math.max(...turns)).toBeLessThan(2_000 + 17)
    })

    test('counts as one of everything where more than 1,000 wait', async () => {
      now = 2_000
      for (let nth = 0; nth <= 1_000; nth += 1) {
        builds.invalidatedWhere(() => false)
        now += 1
      }
      expect(await builds.doubtful('a')).toHaveLength(reads)
      expect(builds.report('a', true)).toMatchObject({ changedAt: 2_000 })
    })

    test('that arrives during a comparison leaves in doubt what it may mean', async () => {
      for (let nth = 0; nth < reads; nth += 1) builds.invalidated([`post-${nth}`])
      await builds.compare('a', (key) => {
        if (key === keyOf('/2')) builds.invalidatedWhere((meant) => meant === keyOf('/9'))
        return [stored(partsOfKey(key).target, 'x')]
      })
      expect(changed('a')).toContain('/9')
      expect(changed('a')).not.toContain('/1')
    })

    test('is compared with no read again that it has put in doubt', async () => {
      for (const builder of ['b', 'c', 'd']) builds.begin(builder, 'a')
      builds.invalidatedWhere(isMeant)
      expect(await builds.doubtful('a')).toHaveLength(reads - 1)
      builds.invalidatedWhere(isMeant)
      await builds.doubtful('a')
      expect(compared).toBe(reads + 1)
    })

    test('is as a whole in the report after the next comparison, and reaches nothing that is read after it', async () => {
      builds.invalidatedWhere(isMeant)
      read('a', '/new', 'x')
      await builds.compare('a', () => [])
      expect(changed('a')).toHaveLength(reads - 1)
      expect(changed('a')).not.toContain('/new')
    })

    test('that has yet to reach a read when a new build takes it over puts it in doubt there', async () => {
      builds.invalidatedWhere(isMeant)
      builds.begin('b', 'a')
      expect(builds.report('b', true)).toMatchObject({ reads, changed: [] })
      await builds.compare('b', () => [])
      expect(changed('b')).toHaveLength(reads - 1)
    })
  })

  test('each of several invalidations that no tag describes reaches what is compared next', async () => {
    for (const target of ['/1', '/2', '/3']) read('a', target, 'x')
    for (const [nth, target] of ['/1', '/2', '/3'].entries()) {
      builds.invalidatedWhere((key) => key === keyOf(target))
      expect(await builds.doubtful('a')).toHaveLength(nth + 1)
    }
  })

  test('headers count, but not those that differ each time', () => {
    const first = stored('/1', 'x', [], ['X-WP-Total', '1', 'Date', 'Mon'])
    const reading = builds.reading('a', '/1', keyOf('/1'))
    reading?.used(first, true)
    reading?.used(stored('/1', 'x', [], ['X-WP-Total', '1', 'Date', 'Tue']), true)
    expect(changed('a')).toEqual([])
    reading?.used(stored('/1', 'x', [], ['X-WP-Total', '2']), true)
    expect(changed('a')).toEqual(['/1'])
  })

  test('what has been shown in two versions stays changed, though the first comes back', () => {
    read('a', '/1', 'x')
    read('a', '/1', 'y')
    read('a', '/1', 'x')
    expect(changed('a')).toEqual(['/1'])
  })

  test('a response that may be older than a write is in doubt from the start', () => {
    read('a', '/1', 'x', [], false)
    expect(changed('a')).toEqual(['/1'])
  })

  test('what cannot be compared always counts as changed, and does not say that the build is torn', () => {
    builds.reading('a', '/1', '')?.usedUnknown()
    expect(builds.report('a', true)).toMatchObject({ changed: ['/1'], changedAt: null })
  })

  test('cut off from the other processes, everything counts as changed', () => {
    read('a', '/1', 'x')
    expect(builds.report('a', false)?.changed).toEqual(['/1'])
  })

  test('tells when the first change was, and when the last read', () => {
    read('a', '/1', 'x', ['post-1'])
    now = 2_000
    builds.invalidated(['post-1'])
    now = 3_000
    builds.invalidated(['post-1'])
    read('a', '/2', 'y')
    expect(builds.report('a', true)).toMatchObject({ changedAt: 2_000, lastReadAt: 3_000 })
  })

  test('a build that follows another one has what of it is current, until it reads that itself', () => {
    read('a', '/1', 'x', ['post-1'])
    read('a', '/2', 'y', ['post-2'])
    builds.invalidated(['post-1'])
    builds.begin('b', 'a')
    expect(builds.report('b', true)).toMatchObject({ reads: 1, changed: [] })
    read('b', '/1', 'new', ['post-1'])
    builds.invalidated(['post-2'])
    expect(changed('b')).toEqual(['/2'])
    read('b', '/2', 'newer', ['post-2'])
    expect(changed('b')).toEqual([])
    expect(changed('a')).toEqual(['/1', '/2'])
  })

  test('a tag that a response has gained counts', () => {
    read('a', '/1', 'x', ['post-1'])
    builds.invalidated(['post-1'])
    read('a', '/1', 'x', ['post-1', 'term-1'])
    expect(changed('a')).toEqual([])
    builds.invalidated(['term-1'])
    expect(changed('a')).toEqual(['/1'])
  })

  test('an id that was not begun is no build', () => {
    expect(builds.reading('b', '/1', '')).toBeUndefined()
    expect(builds.report('b', true)).toBeUndefined()
  })

  test('of more than 64 builds, the one that was used longest ago is forgotten', () => {
    for (let nth = 0; nth < 63; nth += 1) builds.begin(`n${nth}`, undefined)
    builds.report('a', true)
    builds.begin('last', undefined)
    expect(builds.report('a', true)).toBeDefined()
    expect(builds.report('n0', true)).toBeUndefined()
    expect(builds.report('n1', true)).toBeDefined()
  })

  test('a build of 30 days ago is forgotten', () => {
    now += 31 * 86_400_000
    builds.begin('b', undefined)
    expect(builds.report('a', true)).toBeUndefined()
  })

  test('a build with more reads than there is memory for has changed as a whole', () => {
    const tags = Array.from({ length: 100 }, (_, at) => `tag-${at}`)
    read('a', '/1', 'x')
    builds.begin('b', undefined)
    for (let at = 0; at < 8_000; at += 1) read('b', `/${at}`, 'x', tags)
    expect(builds.report('a', true)).toBeUndefined()
    expect(builds.report('b', true)).toMatchObject({ reads: 0, isOverflowed: true })
    builds.begin('c', 'b')
    expect(builds.report('c', true)).toMatchObject({ isOverflowed: true })
    builds.begin('d', undefined)
    read('d', '/1', 'x', ['post-1'])
    expect(builds.report('d', true)).toMatchObject({ reads: 1, isOverflowed: false })
  })

  test('a build that is forgotten while a read of it is on its way takes no memory any more', () => {
    const tags = Array.from({ length: 100 }, (_, at) => `tag-${at}`)
    const readings = Array.from({ length: 8_000 }, (_, at) => builds.reading('a', `/${at}`, keyOf(`/${at}`)))
    for (let nth = 0; nth < 64; nth += 1) builds.begin(`n${nth}`, undefined)
    expect(builds.report('a', true)).toBeUndefined()
    for (const [at, reading] of readings.entries()) reading?.used(stored(`/${at}`, 'x', tags), true)
    builds.begin('b', undefined)
    read('b', '/1', 'x')
    expect(builds.report('b', true)).toMatchObject({ reads: 1, isOverflowed: false })
  })

  test('what a build takes over from another one takes memory, too', () => {
    for (let at = 0; at < 11_000; at += 1) read('a', `/${at}`, 'x')
    let last = 'a'
    for (let nth = 0; nth < 63; nth += 1) {
      builds.begin(`n${nth}`, last)
      last = `n${nth}`
    }
    expect(builds.report(last, true)).toMatchObject({ reads: 11_000, isOverflowed: false })
    expect(builds.report('a', true)).toBeUndefined()
  })

  test('a purge asks of each read once whether it is meant, however many builds have it', async () => {
    read('a', '/1', 'x')
    builds.begin('b', 'a')
    builds.begin('c', 'b')
    const asked: string[] = []
    builds.invalidatedWhere((key) => {
      asked.push(key)
      return false
    })
    await builds.doubtful('a')
    expect(asked).toEqual([keyOf('/1')])
  })
})
