import type { UncacheableReason } from '../../cache/decide-caching.ts'
import { queryParameters } from '../../http/form-text.ts'
import { foldPhpName } from '../arguments/php-query.ts'

/** A script of WordPress that writes when it is asked by GET; with a parameter only where the query has it. */
type ActingScript = {
  readonly script: string
  readonly parameter?: string
  /** Values with which it only reads. */
  readonly reads?: ReadonlySet<string>
}

/** Of `$core_actions_get`, all but `oembed-cache`, which keeps what it has fetched; plugins have others. */
const readingActions: ReadonlySet<string> = new Set([
  ...['fetch-list', 'ajax-tag-search', 'imgedit-preview', 'autocomplete-user', 'dashboard-widgets'],
  // Keeps in an option that no response shows whether the server compresses.
  'wp-compression-test',
  ...['logged-in', 'rest-nonce'],
])

/**
 * The entry points of WordPress 6.9 and 7.1 that write by GET without a nonce, as their source has them. Not here, since no response shows
 * what they write: locks of posts (`post.php`), settings of screens, transients of updates (`update-core.php`), the draft that
 * `post-new.php` begins with, counters of sessions.
 */
const actingScripts: readonly ActingScript[] = [
  // Publishes the posts of a mailbox, for anyone.
  { script: 'wp-mail.php' },
  // Activates a user and a site; the key comes in the query or, after a redirect, in a cookie.
  { script: 'wp-activate.php' },
  // Confirms a request to export or erase personal data.
  { script: 'wp-login.php', parameter: 'confirm_key' },
  { script: 'wp-login.php', parameter: 'remind_me_later' },
  // Plugins decide by `$_REQUEST` what these do.
  { script: 'wp-admin/admin-post.php' },
  { script: 'wp-admin/admin-ajax.php', parameter: 'action', reads: readingActions },
  // Upgrades the database, for anyone.
  { script: 'wp-admin/upgrade.php', parameter: 'step' },
  { script: 'wp-admin/network/upgrade.php', parameter: 'action' },
  { script: 'wp-admin/install.php', parameter: 'step' },
  { script: 'wp-admin/setup-config.php', parameter: 'step' },
  { script: 'wp-admin/maint/repair.php', parameter: 'repair' },
  // Confirmations by a link in a mail: the address of the site's or a user's mail, the deletion of a site.
  { script: 'wp-admin/options.php', parameter: 'adminhash' },
  { script: 'profile.php', parameter: 'newuseremail' },
  { script: 'wp-admin/ms-delete-site.php', parameter: 'h' },
  // Moves widgets out of sidebars that are gone.
  { script: 'wp-admin/widgets.php' },
  // Makes the post that holds the styles of the user.
  { script: 'wp-admin/site-editor.php' },
]

const patterns = actingScripts.map((row) => ({
  ...row,
  pattern: new RegExp(`/${row.script.replaceAll('.', '\\.')}(?![\\w.-])`, 'i'),
}))

const script = /\.php(?![\w.-])/i
const admin = /\/wp-admin(?![\w.-])|\/wp-login\.php(?![\w.-])/i

/** In WordPress the nonces of actions have names that begin so; under wp-admin plugins and older screens have others. */
const nonces = /^_(?:wp|ajax_)nonce/
const noncesOfAdmin = /nonce|^security$|^_inline_edit$|^savewidgets$/
/** They show something to whoever may see it, and change nothing. */
const readingNonces: ReadonlySet<string> = new Set([
  'preview_nonce',
  '_error_nonce',
  'customize_preview_nonce',
])

/** Is a parameter a nonce, with which a GET may do what a form does? */
const isNonce = (name: string, isAdmin: boolean): boolean =>
  !readingNonces.has(name) && (nonces.test(name) || (isAdmin && noncesOfAdmin.test(name)))

/** Does a GET of these readings of a path, with this query, run a script that writes? */
export const actingScriptOf = (readings: readonly string[], query: string): UncacheableReason | undefined => {
  if (!readings.some((path) => script.test(path) || admin.test(path))) return undefined
  const given = queryParameters(query).map(([name, value]) => [foldPhpName(name), value] as const)
  const isActing = patterns.some(({ pattern, parameter, reads }) => {
    if (!readings.some((path) => pattern.test(path))) return false
    // The last value counts in PHP, and any other one in what stands in front of it.
    return parameter === undefined || given.some(([name, value]) => name === parameter && !reads?.has(value))
  })
  if (isActing) return 'acting-script'
  const isAdmin = readings.some((path) => admin.test(path))
  return given.some(([name]) => isNonce(name.toLowerCase(), isAdmin)) ? 'nonce' : undefined
}

/** Does a parameter hold the nonce of an action on any page? */
export const isNonceAnywhere = (name: string): boolean => isNonce(name, false)
