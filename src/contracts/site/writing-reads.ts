/** Last segments of WordPress's GETs that create what they answer with, and the collection that it belongs to. */
const created: Readonly<Record<string, string>> = { 'navigation-fallback': 'navigation' }

/** The namespace in which they lie, as WordPress and as the contract spell it. */
const namespaces: ReadonlySet<string> = new Set(['wp-block-editor/v1', 'block-editor/v1'])

/** Collection of what a GET to this route may create; undefined for all others. */
export const collectionCreatedBy = (namespace: string, segment: string | undefined): string | undefined =>
  segment !== undefined && namespaces.has(namespace) && Object.hasOwn(created, segment)
    ? created[segment]
    : undefined

const anywhere = /block-editor\/v1\/navigation-fallback/i

/** May a GET of this path, or of this `rest_route`, create something? WordPress matches routes without regard to case. */
export const createsWhenRead = (path: string): boolean => anywhere.test(path)

const cronScript = /\/wp-cron\.php/i

/**
 * WordPress carries out its scheduled tasks when this is asked for, among them the publication of posts; by a GET as well. With
 * php-fpm it answers before it has begun.
 */
export const runsCron = (path: string): boolean => cronScript.test(path)

/** WordPress gives it to the request during which its tasks run (`ALTERNATE_WP_CRON` redirects to a URL with it). */
export const cronParameter = 'doing_wp_cron'
