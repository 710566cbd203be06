import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { type ReadStep, readSteps, usualSteps } from '../../../src/cache/events.ts'
import {
  type Harness,
  harness,
  type ReadOptions,
  readOf,
  response,
  scriptedForward,
  settle,
} from './cache-fixture.ts'

const fresh = ['ETag', '"a"', 'Cache-Control', 'max-age=60']
const stale = ['ETag', '"a"', 'Cache-Control', 'max-age=0, stale-if-error=600']

/** The steps of one read; `respond` gives the upstream's response, where it is asked. */
const stepsOf = async (
  { cache }: Harness,
  respond: (call: ReturnType<typeof scriptedForward>['calls'][number]) => void = () => undefined,
  options: ReadOptions = {},
): Promise<readonly ReadStep[]> => {
  const steps: ReadStep[] = []
  const { forward, calls } = scriptedForward()
  const reply = cache.response(readOf({ ...options, step: (step) => steps.push(step) }), forward)
  const [call] = calls
  if (call !== undefined) respond(call)
  await reply
  await settle()
  return steps
}

const rfc = { policy: { profile: 'rfc-shared-cache', rule: undefined } } as const

describe('the steps of a read', () => {
  test('of a miss and of a hit are those that explain shows', async () => {
    const cache = harness()
    expect(await stepsOf(cache, (call) => call.response(response('a', fresh)))).toEqual(usualSteps.miss)
    expect(await stepsOf(cache)).toEqual(usualSteps.hit)
  })

  test('of what has grown stale begin with a validation', async () => {
    const cache = harness()
    await stepsOf(cache, (call) => call.response(response('a', stale)), rfc)
    const validated = await stepsOf(
      cache,
      (call) => call.response({ status: 304, headers: ['ETag', '"a"'], content: undefined }),
      rfc,
    )
    expect(validated).toEqual(['lookup', 'join', 'revalidate', 'wait', 'store', 'outcome', 'respond'])
  })

  test('say that a stale response stands in for an error', async () => {
    const cache = harness()
    await stepsOf(cache, (call) => call.response(response('a', stale)), rfc)
    const failed = await stepsOf(cache, (call) => call.response(response('no', [], 500)), rfc)
    expect(failed).toEqual(['lookup', 'join', 'revalidate', 'wait', 'outcome', 'stale-if-error'])
  })

  test('end at once where the client takes only what is stored', async () => {
    const onlyStored = { ...rfc, headers: { 'cache-control': 'only-if-cached' } }
    expect(await stepsOf(harness(), undefined, onlyStored)).toEqual(['lookup', 'only-if-cached'])
  })

  test('of a reader that shares a fetch have none of the fetch', async () => {
    const { cache } = harness()
    const steps: ReadStep[] = []
    const { forward, calls } = scriptedForward()
    const leader = cache.response(readOf(), forward)
    const follower = cache.response(readOf({ step: (step) => steps.push(step) }), forward)
    calls[0]?.response(response('a', fresh))
    await Promise.all([leader, follower])
    expect(steps).toEqual(['lookup', 'join', 'wait', 'outcome', 'respond'])
  })
})

test('docs/request-path.md has a row for each step, in the same order, and no other', async () => {
  const page = await readFile('docs/request-path.md', 'utf8')
  const [, section = ''] = page.split('## The steps of a read\n')
  const [table = ''] = section.split('\n## ')
  const named = [...table.matchAll(/^\|`([a-z-]+)`\|/gm)].map(([, name]) => name)
  expect(named).toEqual(readSteps)
})
