/** A public name and WordPress's name. */
export type NamePair = { readonly neutral: string; readonly wordpress: string }

/** The names that differ between the public side and the upstream. */
export type NameTable = {
  readonly namespaces: readonly NamePair[]
  /** Query parameters and keys of JSON objects. */
  readonly keys: readonly NamePair[]
  /** First path segment behind a mapped namespace. */
  readonly segments: readonly NamePair[]
}

/** Namespaces that differ; `oembed/1.0` is the same on both sides. */
export const namespaceNames: readonly NamePair[] = [
  { neutral: 'contact-form/v1', wordpress: 'contact-form-7/v1' },
  { neutral: 'site/v2', wordpress: 'wp/v2' },
  { neutral: 'site-health/v1', wordpress: 'wp-site-health/v1' },
  { neutral: 'block-editor/v1', wordpress: 'wp-block-editor/v1' },
  { neutral: 'abilities/v1', wordpress: 'wp-abilities/v1' },
]

/** Namespaces whose routes are WordPress's own unless a plugin registers more in them; under either name. */
export const isCoreNamespace = (namespace: string): boolean => coreNamespaces.has(namespace)

const coreNamespaces: ReadonlySet<string> = new Set([
  'oembed/1.0',
  ...namespaceNames
    .filter(({ wordpress }) => wordpress.startsWith('wp'))
    .flatMap(({ neutral, wordpress }) => [neutral, wordpress]),
])

/** Parameters in queries and keys in JSON objects, at any depth. Whole names only, never a part of one. */
export const keyNames: readonly NamePair[] = [
  { neutral: 'site_id', wordpress: 'wp_id' },
  { neutral: 'site_pattern_category', wordpress: 'wp_pattern_category' },
  { neutral: 'site_pattern_category_exclude', wordpress: 'wp_pattern_category_exclude' },
  { neutral: 'site_pattern_sync_status', wordpress: 'wp_pattern_sync_status' },
]

/** Path segments behind a namespace, of routes that the contract does not list. */
export const segmentNames: readonly NamePair[] = [
  { neutral: 'site_pattern_category', wordpress: 'wp_pattern_category' },
]

export const siteNameTable: NameTable = {
  namespaces: namespaceNames,
  keys: keyNames,
  segments: segmentNames,
}
