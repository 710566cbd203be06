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
export const createsWhenRead = (path: string): boolean => anywhere.test(path)

const cronScript = /\/wp-cron\.php/i

/**
 * A request for this script, a GET too, runs WordPress's scheduled tasks, which publish posts among other things. With php-fpm
 * WordPress responds before the tasks begin.
 */
export const runsCron = (path: string): boolean => cronScript.test(path)

/** A request with this parameter runs the tasks (`ALTERNATE_WP_CRON` redirects to a URL with it). */
export const cronParameter = 'doing_wp_cron'
