import { expect, test } from 'vitest'
import { type BypassReason, type CachePolicy, decideCaching } from '../../../src/cache/decide-caching.ts'
import type { RequestHeaders } from '../../../src/http/headers/header-lines.ts'
import { siteCookies } from '../../../src/wordpress/cookies.ts'
import { uncacheableReasonOf } from '../../../src/wordpress/tags/uncacheable.ts'
import { cost } from '../../support/cost.ts'
import { rfcPolicy, safePolicy } from './cache-fixture.ts'

const publicRule = { ...safePolicy(), cookieTable: siteCookies }
const credentialRule = { ...safePolicy({ scope: 'credential' }), cookieTable: siteCookies }
const noRule: CachePolicy = { profile: 'safe', rule: undefined }

const decide = (
  policy: CachePolicy,
  headers: RequestHeaders,
  query = '',
  method = 'GET',
  hasContent = false,
) => decideCaching({ method, headers, hasContent, uncacheable: uncacheableReasonOf('/x', query) }, policy)

test.each<[string, CachePolicy, RequestHeaders, string, BypassReason]>([
  ['no rule', noRule, {}, '', 'no-rule'],
  ['a credential', publicRule, { authorization: 'Basic x' }, '', 'authorization'],
  ['a login cookie', publicRule, { cookie: 'wordpress_logged_in_abc=1' }, '', 'cookie'],
  ['a post password cookie', publicRule, { cookie: '_ga=1; wp-postpass_abc=1' }, '', 'cookie'],
  ['a cookie that nobody knows', publicRule, { cookie: 'x=1' }, '', 'cookie'],
  ['a cookie without a name', publicRule, { cookie: '=x; y' }, '', 'cookie'],
  ['a nonce field', publicRule, { 'x-wp-nonce': 'x' }, '', 'nonce'],
  ['a nonce parameter', publicRule, {}, '_wpnonce=x', 'nonce'],
  ['a nonce beside its own credential part', credentialRule, { authorization: 'x' }, '_wpnonce=x', 'nonce'],
  ['a login cookie under credential scope', credentialRule, { cookie: 'wordpress_sec_x=1' }, '', 'cookie'],
  ['a password', publicRule, {}, 'password=x', 'password'],
  ['an encoded password', publicRule, {}, 'pass%77ord=x', 'password'],
  ['context edit', publicRule, {}, 'per_page=5&context=edit', 'context-edit'],
  ['context EDIT in brackets', publicRule, {}, 'context[]=EDIT', 'context-edit'],
  ['status draft', publicRule, {}, 'status=draft', 'non-public-status'],
  ['status publish and draft', publicRule, {}, 'status=publish,draft', 'non-public-status'],
  ['status any in brackets', publicRule, {}, 'status[0]=any', 'non-public-status'],
  ['a nonce by PHP folding', publicRule, {}, '%20.wpnonce=x', 'nonce'],
  ['a nonce behind another', publicRule, {}, 'context=edit&_wpnonce=x', 'nonce'],
  ['another method', publicRule, {}, '_method=DELETE', 'method-override'],
  ['another method behind a password', credentialRule, {}, 'password=x&.method=put', 'method-override'],
  [
    'a route that creates',
    publicRule,
    {},
    'rest_route=/wp-block-editor/v1/navigation%2Dfallback',
    'creating-read',
  ],
  ['a status cut at NUL', publicRule, {}, 'status%00x=draft', 'non-public-status'],
  ['context edit, anonymous, under credential scope', credentialRule, {}, 'context=edit', 'context-edit'],
  ['no-store', publicRule, { 'cache-control': 'max-age=0, No-Store' }, '', 'request-no-store'],
  ['no-store in the wide profile', rfcPolicy, { 'cache-control': 'no-store' }, '', 'request-no-store'],
])('a read with %s bypasses the cache', (_, policy, headers, query, reason) => {
  expect(decide(policy, headers, query)).toEqual({ kind: 'bypass', reason })
})

test.each<[string, CachePolicy, RequestHeaders, string]>([
  ['nothing special', publicRule, {}, 'per_page=5'],
  ['public statuses', publicRule, {}, 'status=publish,inherit'],
  ['context view', publicRule, {}, 'context=view'],
  ['its own method named', publicRule, {}, '_method=get'],
  ['no-cache', publicRule, { 'cache-control': 'no-cache' }, ''],
  ['a credential in the wide profile', rfcPolicy, { authorization: 'x' }, ''],
  ['a cookie in the wide profile', rfcPolicy, { cookie: 'session=1' }, ''],
])('a read with %s is public', (_, policy, headers, query) => {
  expect(decide(policy, headers, query)).toEqual({ kind: 'read', partition: 'public', strip: [] })
})

test('requests with harmless cookies read through the cache, and the cookies are not forwarded', () => {
  const cookie = '_ga=1; _ga_X=2; wp-settings-1=a; wordpress_test_cookie=1; __utma=1;'
  expect(decide(publicRule, { cookie })).toEqual({ kind: 'read', partition: 'public', strip: ['cookie'] })
})

test.each([
  'woocommerce_cart_hash=8d1f',
  'woocommerce_items_in_cart=0',
  'woocommerce_items_in_cart=',
  'cookielawinfo-checkbox-analytics=yes; viewed_cookie_policy=yes',
  'cmplz_statistics=allow',
  'borlabs-cookie=%7B%7D',
  '_gid=1; _fbp=1',
  'sbjs_current=typ%3Dtypein; tk_ai=x; _ttp=1',
])('a read with the cookies %s is public, and none of them is sent on', (cookie) => {
  expect(decide(publicRule, { cookie })).toEqual({ kind: 'read', partition: 'public', strip: ['cookie'] })
})

test.each([
  'wp_woocommerce_session_abc=1',
  'woocommerce_items_in_cart=1',
  'woocommerce_items_in_cart=0; woocommerce_items_in_cart=1',
  'woocommerce_recently_viewed=5',
  'wordpress_logged_in_abc=1',
  'comment_author_abc=Ann',
  'PHPSESSID=x',
  'pll_language=de',
  'wp-wpml_current_language=de',
])('a read with the cookie %s bypasses the cache', (cookie) => {
  expect(decide(publicRule, { cookie })).toEqual({ kind: 'bypass', reason: 'cookie' })
})

test('a cookie that the configuration names harmless allows caching; its case counts', () => {
  const policy = { ...publicRule, harmlessCookies: ['PHPSESSID', 'theme_*'] }
  expect(decide(policy, { cookie: 'PHPSESSID=x; theme_colour=dark; _ga=1' })).toEqual({
    kind: 'read',
    partition: 'public',
    strip: ['cookie'],
  })
  expect(decide(policy, { cookie: 'phpsessid=x' }).kind).toBe('bypass')
  expect(decide(policy, { cookie: 'PHPSESSID2=x' }).kind).toBe('bypass')
  expect(decide(policy, { cookie: 'theme_colour=dark; x=1' }).kind).toBe('bypass')
})

test.each([
  'wordpress_logged_in_abc=1',
  'Wordpress_sec_abc=1',
  'wordpress_abc=1',
  'wp-postpass_abc=1',
  'wp_woocommerce_session_abc=1',
  'comment_author_email_abc=1',
])('%s says who asks, whatever the configuration names harmless', (cookie) => {
  const policy = { ...publicRule, harmlessCookies: ['wordpress_*', 'W*', 'wp*', 'c*'] }
  expect(decide(policy, { cookie })).toEqual({ kind: 'bypass', reason: 'cookie' })
})

test('under credential scope each credential has its own partition, also for drafts', () => {
  expect(decide(credentialRule, { authorization: 'Bearer a' }, 'context=edit&status=any')).toEqual({
    kind: 'read',
    partition: 'credential',
    credential: 'Bearer a',
    endsAt: Number.POSITIVE_INFINITY,
    strip: [],
  })
})

const endOf = (headers: RequestHeaders): number | undefined => {
  const decision = decide(credentialRule, headers)
  return decision.kind === 'read' && decision.partition === 'credential' ? decision.endsAt : undefined
}
const endOfToken = (token: string): number | undefined => endOf({ authorization: token })
const segment = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const token = (exp: number, before = ''): string =>
  `${segment({ alg: 'ES256' })}.${Buffer.from(before + JSON.stringify({ exp })).toString('base64url')}.c2ln`

test.each<[string, RequestHeaders]>([
  ['alone, beside an empty object', { 'x-auth-token': `e30.${segment({ exp: 9 })}` }],
  ['alone', { authorization: `Bearer ${token(9)}` }],
  ['behind a later one', { authorization: `Bearer ${token(20)}, ${token(9)}` }],
  ['in another field', { authorization: `Bearer ${token(20)}`, 'x-auth-token': token(9) }],
  ...['\t', '\n', '\r', ' '].map((space): [string, RequestHeaders] => [
    `with ${JSON.stringify(space)} in front of its claims and in them`,
    {
      authorization: token(9, space),
      'x-auth-token': `a.${Buffer.from(`{${space}"exp":9}`).toString('base64')}`,
    },
  ]),
  ['behind other words', { authorization: `Custom ${'example.org '.repeat(500)}token=${token(9)}` }],
])('what is stored for a token ends with it: %s', (_, headers) => {
  expect(endOf(headers)).toBe(9_000)
})

test('segments of more tokens than any client sends count as an expired token, wherever they stand', () => {
  const eight = Array.from({ length: 8 }, () => token(9)).join(' ')
  expect(endOfToken(eight)).toBe(9_000)
  expect(endOfToken(`${'eyJ.'.repeat(40)} ${token(9)}`)).toBe(0)
  expect(endOf(Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`x-token-${at}`, token(9)])))).toBe(
    0,
  )
})

test.each<[string, RequestHeaders]>([
  ['a long value', { authorization: 'eyJ.'.repeat(4_000) }],
  ['a long value of words', { authorization: 'eyJ. '.repeat(3_200) }],
  [
    'many fields',
    Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`x-token-${at}`, 'eyJ.'.repeat(16)])),
  ],
])('beginnings of JSON in %s cost little', (_, headers) => {
  expect(cost(() => decide(credentialRule, headers), 3)).toBeLessThan(3)
})

test('a read with content bypasses the cache', () => {
  expect(decide(publicRule, {}, '', 'GET', true)).toEqual({ kind: 'bypass', reason: 'request-content' })
})

test.each([
  ['GET', 'read'],
  ['HEAD', 'read'],
  ['OPTIONS', 'bypass'],
  ['TRACE', 'bypass'],
  ['POST', 'bypass'],
  ['get', 'bypass'],
])('%s is a %s', (method, kind) => {
  for (const policy of [publicRule, noRule, rfcPolicy]) {
    const decision = decide(policy, {}, '', method)
    expect(decision.kind === 'bypass' && decision.reason === 'no-rule' ? 'read' : decision.kind).toBe(kind)
  }
})

/** By which services, and proxies that ask for a login, know a caller. */
const credentialNames = [
  ...['x-api-key', 'x-apikey', 'api-key', 'apikey', 'x-auth-token', 'x-access-token', 'x-authorization'],
  ...['x-session-token', 'private-token', 'remote-user', 'x-remote-user', 'x-authenticated-user'],
  ...['x-auth-request-user', 'x-goog-iap-jwt-assertion', 'cf-access-jwt-assertion', 'x-amzn-oidc-data'],
  ...[
    'x-ms-client-principal',
    'x-goog-api-key',
    'x-goog-authenticated-user-email',
    'ocp-apim-subscription-key',
  ],
  ...[
    'x-amz-security-token',
    'x-shopify-access-token',
    'x-gitlab-token',
    'x-vault-token',
    'x-auth-request-email',
  ],
  ...[
    'x-pomerium-jwt-assertion',
    'x-ms-client-principal-id',
    'x-webauth-user',
    'x-authentik-username',
    'token',
  ],
  ...[
    'x-client-cert',
    'ssl-client-cert',
    'x-ssl-client-s-dn',
    'x-session-id',
    'x-csrf-token',
    'x-xsrf-token',
  ],
  ...[
    'cart-token',
    'woocommerce-session',
    'x-token',
    'x-jwt',
    'jwt',
    'user',
    'username',
    'x-user-id',
    'nonce',
  ],
  ...['x-amzn-oidc-accesstoken', 'x-functions-key', 'dpop', 'x-user-agent-class', 'x-auth', 'x-oauth-scopes'],
]

test.each(credentialNames)('%s is a credential as Authorization is', (name) => {
  expect(decide(publicRule, { [name]: 'a' })).toEqual({ kind: 'bypass', reason: 'authorization' })
  const partOf = (headers: RequestHeaders): string => {
    const decision = decide(credentialRule, headers)
    return decision.kind === 'read' && decision.partition === 'credential' ? decision.credential : 'none'
  }
  const parts = [
    { [name]: 'a' },
    { [name]: 'b' },
    { authorization: 'a' },
    { authorization: 'a', [name]: 'a' },
    { authorization: 'a', [name]: 'b' },
    {},
  ].map(partOf)
  expect(new Set(parts).size).toBe(parts.length)
})

test('a header that the configuration names harmless is no credential, in any case of its name', () => {
  const policy = { ...publicRule, harmlessHeaders: ['x-user-agent-class'] }
  expect(decide(policy, { 'x-user-agent-class': 'phone' }).kind).toBe('read')
  expect(decide(policy, { 'x-user-agent-class': 'phone', 'x-user': 'a' }).kind).toBe('bypass')
})

test('in the profile rfc-shared-cache none of them bypasses the cache, as in RFC 9111', () => {
  for (const name of credentialNames) expect(decide(rfcPolicy, { [name]: 'a' }).kind).toBe('read')
})

test.each([
  'x-forwarded-client-cert',
  'x-forwarded-user',
  'proxy-authorization',
  'x_user',
  'x-appengine-user-ip',
])('%s reaches no upstream, and so is no credential', (name) =>
  expect(decide(publicRule, { [name]: 'a' }).kind).toBe('read'),
)
