import type { ContractName } from '../contracts/method.ts'
import { createsWhenRead, cronParameter, runsCron } from '../contracts/site/writing-reads.ts'
import { foldPhpName } from '../http/php-names.ts'

/** The use of a cookie in WordPress and its usual plugins; `unknown` for a name without a row. */
type CookieMeaning =
  | 'harmless'
  | 'login'
  | 'post password'
  | 'comment author'
  | 'shop session'
  | 'cart'
  | 'recently viewed products'
  | 'session'
  | 'language'
  | 'unknown'

/**
 * Names in lower case; `*` at the end stands for any rest. `harmless`: set by a browser script or a CDN, and no server reads it. A
 * request with any other cookie, or one without a row, gets no shared response. The first matching row counts.
 */
const table: readonly (readonly [meaning: CookieMeaning, names: readonly string[]])[] = [
  // Analytics and advertising.
  [
    'harmless',
    ['_ga', '_ga_*', '_gid', '_gat', '_gat_*', '_gcl_*', '__utm*', '_fbp', '_fbc', '_ttp', '_uet*'],
  ],
  ['harmless', ['_clck', '_clsk', '_hj*', '_pk_*', '_dd_s', 'sbjs_*', 'tk_ai']],
  // CDN.
  ['harmless', ['__cf_bm', 'cf_clearance']],
  // Consent: CookieYes, Complianz, Borlabs, Cookiebot and OneTrust.
  ['harmless', ['cookieconsent', 'optanonconsent', 'optanonalertboxclosed', 'cookielawinfo-*']],
  ['harmless', ['viewed_cookie_policy', 'cookieyes-consent', 'cmplz_*', 'borlabs-cookie']],
  // Read by scripts of WordPress and WooCommerce; a cart has woocommerce_items_in_cart.
  ['harmless', ['wordpress_test_cookie', 'wp-settings-*', 'woocommerce_cart_hash']],
  ['login', ['wordpress_*']],
  ['post password', ['wp-postpass_*']],
  ['comment author', ['comment_author_*']],
  ['shop session', ['wp_woocommerce_session_*']],
  ['cart', ['woocommerce_items_in_cart']],
  ['recently viewed products', ['woocommerce_recently_viewed']],
  ['session', ['phpsessid']],
  ['language', ['pll_language', 'wp-wpml_current_language', 'qtrans_front_language']],
]

/** These identify the caller, whatever the configuration lists as harmless. */
const identifying: ReadonlySet<CookieMeaning> = new Set([
  'login',
  'post password',
  'comment author',
  'shop session',
])

const rows = table.flatMap(([meaning, names]) => names.map((name) => ({ meaning, name })))
const exact = new Map(rows.map(({ meaning, name }) => [name, meaning]))
const prefixes = rows
  .filter(({ name }) => name.endsWith('*'))
  .map(({ meaning, name }) => ({ meaning, prefix: name.slice(0, -1) }))

const none: readonly string[] = []

const fits = (pattern: string, name: string): boolean =>
  pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern

const nameOf = (pair: string): string => (pair.split('=', 1)[0] ?? '').trim()

/** WooCommerce empties a cart by the value 0. */
const isEmptyCart = (pair: string): boolean => /=\s*0?\s*$/.test(pair)

const meaningOf = (pair: string, harmless: readonly string[]): CookieMeaning => {
  const name = nameOf(pair)
  const key = name.toLowerCase()
  if (key === '') return 'harmless'
  const known = exact.get(key) ?? prefixes.find(({ prefix }) => key.startsWith(prefix))?.meaning ?? 'unknown'
  if (known === 'cart' && isEmptyCart(pair)) return 'harmless'
  if (known === 'harmless' || identifying.has(known)) return known
  return harmless.some((pattern) => fits(pattern, name)) ? 'harmless' : known
}

/** May the response depend on the Cookie field? `harmless`: names from the configuration. */
export const carriesIdentity = (cookie: string, harmless: readonly string[] = none): boolean =>
  cookie.split(';').some((pair) => meaningOf(pair, harmless) !== 'harmless')

/** The cookies on which it may depend, without their values. */
export const identityCookies = (
  cookie: string,
  harmless: readonly string[],
): readonly { readonly name: string; readonly meaning: CookieMeaning }[] =>
  cookie
    .split(';')
    .map((pair) => ({ name: nameOf(pair), meaning: meaningOf(pair, harmless) }))
    .filter(({ meaning }) => meaning !== 'harmless')

/** Why the response to a target cannot be shared, or why a GET may change something. */
export type Sensitivity =
  | 'creating-read'
  | 'cron'
  | 'method-override'
  | 'nonce'
  | 'password'
  | 'context-edit'
  | 'non-public-status'
  | 'api-key'

/**
 * With these a GET may change something: the route creates, WordPress runs scheduled tasks, its REST API takes the GET for a write,
 * or an admin screen performs an action.
 */
const acting: ReadonlySet<Sensitivity> = new Set(['creating-read', 'cron', 'method-override', 'nonce'])

export const isActing = (sensitivity: Sensitivity): boolean => acting.has(sensitivity)

/**
 * Does a GET with it count as a write? Through an open service in front of a site a GET may be a link of an admin screen that changes
 * something (trash, activate: a nonce), WordPress's own override of the method, or its scheduled tasks.
 */
export const actsAsWrite = (contract: ContractName, sensitivity: Sensitivity | undefined): boolean => {
  if (sensitivity === undefined || !isActing(sensitivity)) return false
  if (contract === 'site') return sensitivity === 'creating-read' || sensitivity === 'cron'
  return contract === 'open'
}

const isReading = (method: string): boolean => /^(?:get|head|options)?$/i.test(method)

const isPublicStatus = (value: string): boolean =>
  value
    .toLowerCase()
    .split(/[\s,]+/)
    .every((status) => status === '' || status === 'publish' || status === 'inherit')

const readParameter = (name: string, value: string): Sensitivity | undefined => {
  // In lower case: names may be case-insensitive in a service that is not PHP.
  switch (foldPhpName(name).toLowerCase()) {
    case '_wpnonce':
      return 'nonce'
    case '_method':
      return isReading(value) ? undefined : 'method-override'
    case 'rest_route':
      return createsWhenRead(value) ? 'creating-read' : undefined
    case cronParameter:
      return 'cron'
    case 'password':
      return 'password'
    case 'context':
      return value.trim().toLowerCase() === 'edit' ? 'context-edit' : undefined
    case 'status':
      return isPublicStatus(value) ? undefined : 'non-public-status'
    default:
      return undefined
  }
}

/** The first one with which a GET may change something, else the first one. */
const sensitiveParameter = (query: string): Sensitivity | undefined => {
  if (query === '') return undefined
  let first: Sensitivity | undefined
  for (const [name, value] of new URLSearchParams(query)) {
    const found = readParameter(name, value)
    if (found !== undefined && isActing(found)) return found
    first ??= found
  }
  return first
}

/**
 * `query` is without `?`. Depends on the target alone: it is stored with the memoised canonical form. The names are those of
 * WordPress: in a service with a document of its own they mean something else.
 */
export const sensitivityOf = (
  contract: ContractName,
  path: string,
  query: string,
): Sensitivity | undefined => {
  if (contract === 'openapi') return undefined
  if (createsWhenRead(path)) return 'creating-read'
  return runsCron(path) ? 'cron' : sensitiveParameter(query)
}
