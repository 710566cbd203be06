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
