import { createsWhenRead, cronParameter, runsCron } from '../contracts/site/writing-reads.ts'
import { foldPhpName } from '../http/php-names.ts'

/** What a cookie means to WordPress and its usual plugins. A name without a row means `unknown`. */
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
 * Names in lower case; `*` at the end stands for any rest. `harmless` is what a browser script or the network in front sets and
 * no server makes an answer of. It is a closed list: a cookie without a row never shares an answer. The first row that fits counts.
 */
const table: readonly (readonly [meaning: CookieMeaning, names: readonly string[]])[] = [
  // Analytics and advertising.
  [
    'harmless',
    ['_ga', '_ga_*', '_gid', '_gat', '_gat_*', '_gcl_*', '__utm*', '_fbp', '_fbc', '_ttp', '_uet*'],
  ],
  ['harmless', ['_clck', '_clsk', '_hj*', '_pk_*', '_dd_s', 'sbjs_*', 'tk_ai']],
  // The network in front.
  ['harmless', ['__cf_bm', 'cf_clearance']],
  // Consent, as CookieYes, Complianz, Borlabs, Cookiebot and OneTrust keep it for their scripts.
  ['harmless', ['cookieconsent', 'optanonconsent', 'optanonalertboxclosed', 'cookielawinfo-*']],
  ['harmless', ['viewed_cookie_policy', 'cookieyes-consent', 'cmplz_*', 'borlabs-cookie']],
  // Scripts of WordPress and WooCommerce read these; that there is a cart is said by woocommerce_items_in_cart.
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

/** Makes a cookie of these say who asks: no setting says otherwise. */
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
const saysNothing = (pair: string): boolean => /=\s*0?\s*$/.test(pair)

const meaningOf = (pair: string, harmless: readonly string[]): CookieMeaning => {
  const name = nameOf(pair)
  const key = name.toLowerCase()
  if (key === '') return 'harmless'
  const known = exact.get(key) ?? prefixes.find(({ prefix }) => key.startsWith(prefix))?.meaning ?? 'unknown'
  if (known === 'cart' && saysNothing(pair)) return 'harmless'
  if (known === 'harmless' || identifying.has(known)) return known
  return harmless.some((pattern) => fits(pattern, name)) ? 'harmless' : known
}

/** May a Cookie field make the answer the caller's own? `harmless` are names that an operator knows to make no difference. */
export const carriesIdentity = (cookie: string, harmless: readonly string[] = none): boolean =>
  cookie.split(';').some((pair) => meaningOf(pair, harmless) !== 'harmless')

/** The cookies for which it does, with what they mean; never their values. */
export const identityCookies = (
  cookie: string,
  harmless: readonly string[],
): readonly { readonly name: string; readonly meaning: CookieMeaning }[] =>
  cookie
    .split(';')
    .map((pair) => ({ name: nameOf(pair), meaning: meaningOf(pair, harmless) }))
    .filter(({ meaning }) => meaning !== 'harmless')

/** What in a target makes an answer unfit for sharing, or a GET something else than a read. */
export type Sensitivity =
  | 'creating-read'
  | 'cron'
  | 'method-override'
  | 'nonce'
  | 'password'
  | 'context-edit'
  | 'non-public-status'

/**
 * With these a GET may do something: the route creates, WordPress carries out its scheduled tasks, its interface takes the GET
 * for a write, an admin screen carries it out.
 */
const acting: ReadonlySet<Sensitivity> = new Set(['creating-read', 'cron', 'method-override', 'nonce'])

/** May a GET do something with it? */
export const isActing = (sensitivity: Sensitivity): boolean => acting.has(sensitivity)

const isReading = (method: string): boolean => /^(?:get|head|options)?$/i.test(method)

const isPublicStatus = (value: string): boolean =>
  value
    .toLowerCase()
    .split(/[\s,]+/)
    .every((status) => status === '' || status === 'publish' || status === 'inherit')

const readParameter = (name: string, value: string): Sensitivity | undefined => {
  // In lower case: a service that is not PHP may not tell cases apart.
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

/** The first with which something may be done, else the first. */
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

/** What is sensitive in a target (query without `?`). Depends on the target alone: keep it with the memoised canonical form. */
export const sensitivityOf = (path: string, query: string): Sensitivity | undefined => {
  if (createsWhenRead(path)) return 'creating-read'
  return runsCron(path) ? 'cron' : sensitiveParameter(query)
}
