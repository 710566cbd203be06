import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { BuildReport } from '../../../../src/cache/builds.ts'
import { operatorCache } from '../../../../src/gateway/admin/operator-cache.ts'

const report: BuildReport = { reads: 3, changed: [], changedAt: null, lastReadAt: 1, isOverflowed: false }

/** Of two workers, those that respond. */
const cacheOf = (responses: readonly (BuildReport | null)[]) =>
  operatorCache({
    worker: {
      ask: async () => responses,
      status: () => ({ wanted: 2, ready: responses.length, complete: true, ended: {} }),
    },
  } as never)

test('what has changed since a build is not known while the reads of a worker are missing', async () => {
  const question = { of: 'a', begin: undefined }
  expect(await cacheOf([report, report]).build(question)).toMatchObject({ reads: 6, changed: [] })
  expect(await cacheOf([report]).build(question)).toBeUndefined()
  expect(await cacheOf([report, null]).build(question)).toBeUndefined()
})

test('a purge of a target is sent with its other spellings, which instances of earlier versions know', async () => {
  const sent: unknown[] = []
  const cache = operatorCache({
    cache: { purgeInTurns: async () => 1 },
    broadcast: {
      send: async (all: readonly unknown[]) => {
        sent.push(...all)
        return { entries: 0 }
      },
    },
  } as never)
  const target = {
    kind: 'target',
    service: 'blog',
    target: '/a?#digest',
    spellings: ['/A?b', '/a?#digest'],
  } as const
  expect(await cache.purge({ selectors: [target], mode: 'hard', dryRun: false })).toBe(1)
  const tags = ['4:blog10:/a?#digest', '4:blog4:/A?b']
  expect(sent).toEqual(tags.map((tag) => ({ kind: 'tag', tag, mode: 'hard' })))
})

test('a build that follows no other one begins while a worker is missing', async () => {
  expect(await cacheOf([report]).build({ of: undefined, begin: 'b' })).toBeDefined()
})

test.each([
  ['of 400 responses', 400, 2],
  ['of none', 0, 20],
])('selectors %s: a turn purges some hundreds of responses at most', async (_, count, perTurn) => {
  let calls = 0
  const cache = operatorCache({
    cache: {
      purgeInTurns: async () => {
        calls += 1
        return count
      },
    },
    broadcast: { send: async () => ({ entries: 0 }) },
  } as never)
  const selectors = Array.from({ length: 60 }, (_, at) => ({ kind: 'tag', tag: `t${at}` }) as const)
  const purging = cache.purge({ selectors, mode: 'hard', dryRun: false })
  for (let before = 0; calls < selectors.length; before = calls) {
    await setImmediate()
    expect(calls - before).toBeGreaterThan(0)
    expect(calls - before).toBeLessThanOrEqual(perTurn)
  }
  expect(await purging).toBe(60 * count)
})
