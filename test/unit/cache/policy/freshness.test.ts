import { expect, test } from 'vitest'
import type { CachePolicy } from '../../../../src/cache/decide-caching.ts'
import { freshnessLifetime } from '../../../../src/cache/policy/freshness.ts'
import { responseControl } from '../../../../src/cache/policy/response-control.ts'
import { freshenedHead } from '../../../../src/cache/policy/reuse.ts'
import { storageOf } from '../../../../src/cache/policy/storability.ts'
import type { StoredResponse } from '../../../../src/cache/store/stored-response.ts'
import { formatHttpDate } from '../../../../src/http/conditional/dates.ts'
import type { ResponseHints } from '../../../../src/http/message.ts'
import { rfcPolicy, safePolicy, startOfTest } from '../cache-fixture.ts'

const at = (seconds: number): string => formatHttpDate(startOfTest + seconds * 1000)
const lifetime = (headers: readonly string[], policy: CachePolicy, status = 200) =>
  freshnessLifetime({ status, headers }, responseControl(headers), policy, startOfTest)

const date = ['Date', at(0)]

test.each<[string, readonly string[], number]>([
  ['max-age', ['Cache-Control', 'max-age=60'], 60],
  ['s-maxage before max-age', ['Cache-Control', 'max-age=60, s-maxage=5'], 5],
  ['max-age before Expires', ['Cache-Control', 'max-age=60', 'Expires', at(5), ...date], 60],
  ['max-age before an invalid Expires', ['Cache-Control', 'max-age=60', 'Expires', '0'], 60],
  ['Expires less Date', ['Expires', at(65), 'Date', at(5)], 60],
  ['Expires without Date', ['Expires', at(60)], 60],
  ['Expires in the past', ['Expires', at(-60), ...date], 0],
  ['Expires: 0', ['Expires', '0', ...date], 0],
  ['two Expires', ['Expires', at(60), 'Expires', at(60), ...date], 0],
  ['an invalid max-age', ['Cache-Control', 'max-age=x', 'Expires', at(60), ...date], 0],
  ['a targeted max-age', ['CDN-Cache-Control', 'max-age=60', 'Cache-Control', 'max-age=5'], 60],
  ['the more specific target', ['CDN-Cache-Control', 'max-age=5', 'Trellis-Cache-Control', 'max-age=60'], 60],
  [
    'a targeted field leaves no say to Expires',
    ['CDN-Cache-Control', 'must-revalidate', 'Expires', at(60), ...date],
    0,
  ],
  ['a malformed targeted field', ['CDN-Cache-Control', 'max-age=60,', 'Cache-Control', 'max-age=5'], 0],
  [
    'a targeted field of the wrong type',
    ['CDN-Cache-Control', 'max-age="60"', 'Cache-Control', 'max-age=5'],
    0,
  ],
  ['a targeted decimal', ['CDN-Cache-Control', 'max-age=60.5', 'Cache-Control', 'max-age=5'], 0],
  ['an empty targeted field', ['CDN-Cache-Control', '', 'Cache-Control', 'max-age=5'], 5],
  ['a negative targeted max-age', ['CDN-Cache-Control', 'max-age=-1', 'Cache-Control', 'max-age=5'], 0],
  ['a tenth of the time since Last-Modified', ['Last-Modified', at(-1000), ...date], 100],
  ['a heuristic of a day at most', ['Last-Modified', at(-1e8), ...date], 86_400],
  ['a Last-Modified in the future', ['Last-Modified', at(1000), ...date], 0],
  ['nothing', [], 0],
])('by the RFC: %s', (_, headers, seconds) => {
  expect(lifetime(headers, rfcPolicy).lifetimeMs).toBe(seconds * 1000)
})

test.each<[string, readonly string[], CachePolicy, number, number]>([
  ['the rule where the upstream says nothing', [], safePolicy(), 200, 60],
  ['the upstream before the rule', ['Cache-Control', 'max-age=5'], safePolicy(), 200, 5],
  ['the rule where the upstream says nothing of time', ['Cache-Control', 'public'], safePolicy(), 200, 60],
  ['the rule when it overrides', ['Cache-Control', 'max-age=5'], safePolicy({ override: true }), 200, 60],
  ['no heuristic', ['Last-Modified', at(-1000), ...date], safePolicy({ ttlMs: 0 }), 200, 0],
  ['the negative ttl', [], safePolicy({ negativeTtlMs: 3000 }), 404, 3],
  ['nothing for a 404 without one', [], safePolicy(), 404, 0],
  ['nothing for other statuses', [], safePolicy({ negativeTtlMs: 3000 }), 400, 0],
  ['nothing for the statuses of several resources', [], safePolicy(), 207, 0],
])('by policy: %s', (_, headers, policy, status, seconds) => {
  expect(lifetime(headers, policy, status).lifetimeMs).toBe(seconds * 1000)
})

type AskedWith = { readonly partition: 'public' | 'credential'; readonly authorized: boolean }

const anonymous: AskedWith = { partition: 'public', authorized: false }
const withCredential: AskedWith = { partition: 'public', authorized: true }
const ownPart: AskedWith = { partition: 'credential', authorized: true }
const fresh = ['Cache-Control', 'max-age=60']

const kept = (headers: readonly string[], asked: AskedWith, policy: CachePolicy, status = 200): string => {
  const { authorized, partition } = asked
  const decision = storageOf({ status, headers }, { partition, headers: {}, policy }, startOfTest, authorized)
  return decision.kind === 'store' ? 'store' : decision.reason
}

test.each<[string, readonly string[], AskedWith, CachePolicy, number, string]>([
  ['freshness', fresh, anonymous, rfcPolicy, 200, 'store'],
  ['freshness on an unknown status', fresh, anonymous, rfcPolicy, 599, 'store'],
  ['a validator alone', ['ETag', '"a"'], anonymous, rfcPolicy, 200, 'store'],
  [
    'a validator alone on a status without heuristics',
    ['ETag', '"a"'],
    anonymous,
    rfcPolicy,
    302,
    'no-freshness',
  ],
  ['nothing', [], anonymous, rfcPolicy, 200, 'no-freshness'],
  ['a part by the RFC', fresh, anonymous, rfcPolicy, 206, 'status'],
  ['a part', fresh, anonymous, safePolicy(), 206, 'status'],
  ['Set-Cookie by the RFC', [...fresh, 'Set-Cookie', 'a=b'], anonymous, rfcPolicy, 200, 'store'],
  ['a credential', fresh, withCredential, rfcPolicy, 200, 'authorization'],
  [
    'a credential with public',
    ['Cache-Control', 'public, max-age=60'],
    withCredential,
    rfcPolicy,
    200,
    'store',
  ],
  ['a credential with s-maxage', ['Cache-Control', 's-maxage=60'], withCredential, rfcPolicy, 200, 'store'],
  [
    'a credential with must-revalidate',
    ['Cache-Control', 'max-age=60, must-revalidate'],
    withCredential,
    rfcPolicy,
    200,
    'store',
  ],
  [
    'a credential with proxy-revalidate',
    ['Cache-Control', 'max-age=60, proxy-revalidate'],
    withCredential,
    rfcPolicy,
    200,
    'authorization',
  ],
  [
    'must-understand on a known status',
    ['Cache-Control', 'no-store, must-understand, max-age=60'],
    anonymous,
    rfcPolicy,
    200,
    'store',
  ],
  [
    'must-understand on an unknown status',
    ['Cache-Control', 'must-understand, max-age=60'],
    anonymous,
    rfcPolicy,
    599,
    'must-understand',
  ],
  ['a targeted no-store', ['CDN-Cache-Control', 'no-store', ...fresh], anonymous, rfcPolicy, 200, 'no-store'],
  [
    'a no-store that a targeted field replaces',
    ['CDN-Cache-Control', 'max-age=60', 'Cache-Control', 'no-store'],
    anonymous,
    rfcPolicy,
    200,
    'store',
  ],
  ['a rule in its own part', [], ownPart, safePolicy({ scope: 'credential' }), 200, 'store'],
  [
    'private in its own part',
    ['Cache-Control', 'private'],
    ownPart,
    safePolicy({ scope: 'credential' }),
    200,
    'private',
  ],
  [
    'private in its own part, overridden',
    ['Cache-Control', 'private, no-store'],
    ownPart,
    safePolicy({ scope: 'credential', override: true }),
    200,
    'store',
  ],
  [
    'private in the public part, overridden',
    ['Cache-Control', 'private'],
    anonymous,
    safePolicy({ override: true }),
    200,
    'private',
  ],
  [
    'no-store, overridden',
    ['Cache-Control', 'no-store'],
    anonymous,
    safePolicy({ override: true }),
    200,
    'store',
  ],
  [
    'Set-Cookie, overridden',
    ['Set-Cookie', 'a=b'],
    anonymous,
    safePolicy({ override: true }),
    200,
    'set-cookie',
  ],
  [
    'private for a field',
    ['Cache-Control', 'private="x", max-age=60'],
    anonymous,
    safePolicy(),
    200,
    'private',
  ],
  ['a redirect in the narrow profile', fresh, anonymous, safePolicy(), 301, 'status'],
  [
    'no-cache without a validator',
    ['Cache-Control', 'no-cache'],
    anonymous,
    safePolicy(),
    200,
    'no-freshness',
  ],
  [
    'no-cache with a validator',
    ['Cache-Control', 'no-cache', 'ETag', '"a"'],
    anonymous,
    safePolicy(),
    200,
    'store',
  ],
])('storing %s', (_, headers, asked, policy, status, expected) => {
  expect(kept(headers, asked, policy, status)).toBe(expected)
})

test('a 304 with one hint for the gateway leaves the other as it was', () => {
  const hints = { tags: 'v1;n=1;complete;c=77', maxAge: '300' }
  const stored = { status: 200, headers: [], upstreamTag: undefined, hints } as unknown as StoredResponse
  const freshened = (given: ResponseHints | undefined) =>
    freshenedHead(stored, { status: 304, headers: [], hints: given }, 0).hints
  expect(freshened({ tags: undefined, maxAge: '60' })).toEqual({ ...hints, maxAge: '60' })
  expect(freshened({ tags: 'v1;n=0', maxAge: undefined })).toEqual({ ...hints, tags: 'v1;n=0' })
  expect(freshened(undefined)).toEqual(hints)
})
