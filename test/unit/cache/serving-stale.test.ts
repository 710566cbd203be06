import { expect, test } from 'vitest'
import type { CachePolicy } from '../../../src/cache/decide-caching.ts'
import { headerValue } from '../../../src/http/headers/header-lines.ts'
import {
  cacheStatusOf,
  harness,
  readOf,
  response,
  rfcPolicy,
  safePolicy,
  scriptedForward,
  settle,
  textOf,
} from './cache-fixture.ts'

const down = async () => {
  throw new Error('down')
}

test('within the window a stale response is served at once and fetched once in the background', async () => {
  const { cache, clock } = harness()
  const policy = safePolicy({ staleWhileRevalidateMs: 30_000 })
  const { forward, calls } = scriptedForward()
  await cache.response(readOf({ policy }), async () => response('old'))
  clock.advance(70_000)
  const served = [cache.response(readOf({ policy }), forward), cache.response(readOf({ policy }), forward)]
  expect(served[0]).not.toBeInstanceOf(Promise)
  const responses = await Promise.all(served)
  expect(responses.map((response) => response.outcome)).toEqual(['stale', 'stale'])
  expect(responses.map(cacheStatusOf)).toEqual(Array(2).fill('trellis; hit; ttl=-10; detail=revalidating'))
  expect(responses.map((response) => headerValue(response.headers, 'age'))).toEqual(['70', '70'])
  expect(calls).toHaveLength(1)
  calls[0]?.response(response('new'))
  await settle()
  const next = await cache.response(readOf({ policy }), forward)
  expect([next.outcome, await textOf(next)]).toEqual(['hit', 'new'])
})

test('after the window the reader waits', async () => {
  const { cache, clock } = harness()
  const policy = safePolicy({ staleWhileRevalidateMs: 30_000 })
  await cache.response(readOf({ policy }), async () => response('old'))
  clock.advance(90_000)
  expect(await textOf(await cache.response(readOf({ policy }), async () => response('new')))).toBe('new')
})

test('a failed fetch in the background is reported, and the next reader tries again', async () => {
  const { cache, clock, events } = harness()
  const policy = safePolicy({ staleWhileRevalidateMs: 30_000 })
  await cache.response(readOf({ policy }), async () => response('old'))
  clock.advance(70_000)
  await cache.response(readOf({ policy }), down)
  await settle()
  expect(events).toContainEqual({ kind: 'background-failed', service: 'site' })
  const { forward, calls } = scriptedForward()
  expect((await cache.response(readOf({ policy }), forward)).outcome).toBe('stale')
  expect(calls).toHaveLength(1)
})

test.each<[string, CachePolicy, readonly string[], 'unreachable' | number, boolean]>([
  ['the rule allows it', safePolicy({ staleIfErrorMs: 60_000 }), [], 'unreachable', true],
  ['the rule allows it for a 503', safePolicy({ staleIfErrorMs: 60_000 }), [], 503, true],
  ['a 404 is no failure', safePolicy({ staleIfErrorMs: 60_000 }), [], 404, false],
  ['the time is over', safePolicy({ staleIfErrorMs: 5000 }), [], 'unreachable', false],
  ['the rule says nothing', safePolicy(), [], 'unreachable', false],
  [
    'must-revalidate forbids it',
    safePolicy({ staleIfErrorMs: 60_000 }),
    ['Cache-Control', 'must-revalidate'],
    'unreachable',
    false,
  ],
  ['the upstream allows it', safePolicy(), ['Cache-Control', 'max-age=60, stale-if-error=60'], 503, true],
  ['by the RFC when disconnected', rfcPolicy, ['Cache-Control', 'max-age=60'], 'unreachable', true],
  ['by the RFC not for a 503', rfcPolicy, ['Cache-Control', 'max-age=60'], 503, false],
  ['by the RFC not with s-maxage', rfcPolicy, ['Cache-Control', 's-maxage=60'], 'unreachable', false],
  [
    'by the RFC not with proxy-revalidate',
    rfcPolicy,
    ['Cache-Control', 'max-age=60, proxy-revalidate'],
    'unreachable',
    false,
  ],
  [
    'by the RFC not with no-cache',
    rfcPolicy,
    ['Cache-Control', 'max-age=60, no-cache', 'ETag', '"a"'],
    'unreachable',
    false,
  ],
])('stale on error: %s', async (_, policy, headers, failure, served) => {
  const { cache, clock } = harness()
  await cache.response(readOf({ policy }), async () => response('old', headers))
  clock.advance(70_000)
  const forward = failure === 'unreachable' ? down : async () => response('failed', [], failure)
  const reply = await Promise.resolve(cache.response(readOf({ policy }), forward)).catch(() => undefined)
  if (served) {
    expect(reply?.outcome).toBe('stale')
    expect(reply && cacheStatusOf(reply)).toBe('trellis; hit; ttl=-10; detail=error')
  } else expect(reply?.status).toBe(failure === 'unreachable' ? undefined : failure)
})

test.each<[string, string, string, string]>([
  ['no-cache', 'no-cache', 'max-age=60', 'miss'],
  ['a smaller max-age', 'max-age=5', 'max-age=60', 'miss'],
  ['a larger max-age', 'max-age=50', 'max-age=60', 'hit'],
  ['min-fresh that it has', 'min-fresh=20', 'max-age=60', 'hit'],
  ['min-fresh that it lacks', 'min-fresh=55', 'max-age=60', 'miss'],
  ['max-stale', 'max-stale', 'max-age=5', 'stale'],
  ['enough max-stale', 'max-stale=10', 'max-age=5', 'stale'],
  ['too little max-stale', 'max-stale=2', 'max-age=5', 'miss'],
  ['max-stale against must-revalidate', 'max-stale', 'max-age=5, must-revalidate', 'miss'],
])('a reader who asks for %s after ten seconds', async (_, wish, stated, outcome) => {
  const { cache, clock } = harness()
  await cache.response(readOf({ policy: rfcPolicy }), async () => response('old', ['Cache-Control', stated]))
  clock.advance(10_000)
  const read = readOf({ policy: rfcPolicy, headers: { 'cache-control': wish } })
  expect((await cache.response(read, async () => response('new', ['Cache-Control', stated]))).outcome).toBe(
    outcome,
  )
})

test('only-if-cached gets 504 and sends no request to the upstream', async () => {
  const { cache } = harness()
  const read = readOf({ policy: rfcPolicy, headers: { 'cache-control': 'only-if-cached' } })
  expect((await cache.response(read, down)).status).toBe(504)
})
