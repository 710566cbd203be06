import { isActing, type UncacheableReason } from '../../cache/decide-caching.ts'
import { queryParameters } from '../../http/form-text.ts'
import { pathReadings } from '../../http/targets.ts'
import { foldPhpName } from '../arguments/php-query.ts'
import { actingScriptOf, isNonceAnywhere } from './acting-reads.ts'
import { runsTasks } from './scheduled-tasks.ts'

/** Last segments of WordPress's GETs that create the item in their response, and the item's collection. */
const created: Readonly<Record<string, string>> = { 'navigation-fallback': 'navigation' }

/** Their namespace in WordPress and in the contract. */
const namespaces: ReadonlySet<string> = new Set(['wp-block-editor/v1', 'block-editor/v1'])

/** The collection in which a GET of this route may create an item. */
export const collectionCreatedBy = (namespace: string, segment: string | undefined): string | undefined =>
  segment !== undefined && namespaces.has(namespace) && Object.hasOwn(created, segment)
    ? created[segment]
    : undefined

const anywhere = /block-editor\/v1\/navigation-fallback/i

/** Whether a GET of this path, or of this `rest_route`, may create an item. WordPress matches routes without regard to case. */
const createsWhenRead = (path: string): boolean => anywhere.test(path)

/**
 * Codes of errors that WordPress returns before it changes anything: wrong arguments, missing rights, absent items.
 * The list is closed because WordPress writes an item first and its terms, meta, menu locations and fields of plugins
 * afterwards: errors of those (rest_cannot_update for a meta key, rest_invalid_type for a meta value, any code of a plugin)
 * have status 400 or 403 too, with the item already changed.
 */
export const earlyRefusals: ReadonlySet<string> = new Set([
  'rest_no_route',
  'rest_invalid_json',
  'rest_invalid_param',
  'rest_missing_callback_param',
  'rest_cookie_invalid_nonce',
  'rest_not_logged_in',
  'rest_forbidden',
  'rest_forbidden_context',
  'rest_forbidden_param',
  'rest_forbidden_status',
  'rest_cannot_view',
  'rest_cannot_read',
  'rest_cannot_create',
  'rest_cannot_edit',
  'rest_cannot_edit_others',
  'rest_cannot_edit_roles',
  'rest_cannot_publish',
  'rest_cannot_delete',
  'rest_cannot_assign_term',
  'rest_cannot_assign_sticky',
  'rest_cannot_create_user',
  'rest_cannot_edit_image',
  'rest_cannot_manage_templates',
  'rest_cannot_manage_global_styles',
  'rest_cannot_manage_widgets',
  'rest_cannot_manage_plugins',
  'rest_user_cannot_view',
  'rest_user_cannot_delete',
  'rest_user_invalid_reassign',
  'rest_post_exists',
  'rest_post_invalid_id',
  'rest_post_invalid_parent',
  'rest_comment_exists',
  'rest_comment_invalid_author',
  'rest_comment_invalid_author_ip',
  'rest_comment_invalid_status',
  'rest_comment_invalid_post_id',
  'rest_comment_draft_post',
  'rest_comment_trash_post',
  'rest_comment_closed',
  'rest_comment_login_required',
  'rest_comment_author_data_required',
  'rest_comment_author_invalid',
  'rest_comment_content_invalid',
  'rest_invalid_comment_type',
  'rest_upload_no_data',
  'rest_upload_no_content_type',
  'rest_upload_no_content_disposition',
  'rest_upload_invalid_disposition',
  'rest_upload_file_too_big',
  'rest_invalid_author',
  'rest_taxonomy_not_hierarchical',
  'rest_batch_not_allowed',
  'empty_content',
  'term_exists',
  'empty_term_name',
  'comment_duplicate',
  'comment_flood',
  'wpcf7_forbidden',
])

/**
 * Does a GET with it change something at the interface of a site? Its other parameters of that kind are refused, or are arguments of
 * the route.
 */
export const actsAtInterface = (uncacheableReason: UncacheableReason): boolean =>
  uncacheableReason === 'creating-read' || uncacheableReason === 'cron'

/**
 * Does a GET with it change something at the pages of a site? It may be a link of an admin screen (trash, activate: a nonce), a script
 * that needs none (acting-reads.ts), WordPress's own override of the method, or its scheduled tasks.
 */
export const actsAtPages = isActing

const isReading = (method: string): boolean => /^(?:get|head|options)?$/i.test(method)

const isPublicStatus = (value: string): boolean =>
  value
    .toLowerCase()
    .split(/[\s,]+/)
    .every((status) => status === '' || status === 'publish' || status === 'inherit')

const readParameter = (name: string, value: string): UncacheableReason | undefined => {
  // In lower case: names may be case-insensitive in a service that is not PHP.
  const folded = foldPhpName(name).toLowerCase()
  if (isNonceAnywhere(folded)) return 'nonce'
  switch (folded) {
    case '_method':
      return isReading(value) ? undefined : 'method-override'
    case 'rest_route':
      return createsWhenRead(value) ? 'creating-read' : undefined
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
const sensitiveParameter = (query: string): UncacheableReason | undefined => {
  let first: UncacheableReason | undefined
  for (const [name, value] of queryParameters(query)) {
    const uncacheableReason = readParameter(name, value)
    if (uncacheableReason !== undefined && isActing(uncacheableReason)) return uncacheableReason
    first ??= uncacheableReason
  }
  return first
}

/**
 * What in a path or a query (without `?`) keeps the response to a GET from being shared, by the names of WordPress. Depends on the
 * target alone: it is stored with the memoised canonical form.
 */
export const uncacheableReasonOf = (path: string, query: string): UncacheableReason | undefined => {
  const readings = pathReadings(path)
  if (readings.some(createsWhenRead)) return 'creating-read'
  const reason = actingScriptOf(readings, query) ?? sensitiveParameter(query)
  // What else may act comes first: only requests for the tasks alone are bounded.
  return readings.some(runsTasks) && !(reason !== undefined && isActing(reason)) ? 'cron' : reason
}
