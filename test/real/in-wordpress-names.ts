import type { SiteUnderTest } from './site-under-test.ts'

// Written down once more, apart from the table the gateway itself uses: this is the check on it.
const neutralKeys: Readonly<Record<string, string>> = {
  site_id: 'wp_id',
  site_pattern_category: 'wp_pattern_category',
  site_pattern_sync_status: 'wp_pattern_sync_status',
}

/** A document as the site shows it, put back into WordPress's names and its own addresses, to be compared with the direct answer. */
export function inWordPressNames(document: unknown, site: SiteUnderTest, restRoot: string): unknown {
  const map = (value: unknown): unknown => {
    if (typeof value === 'string') return address(value)
    if (Array.isArray(value)) return value.map(map)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [neutral(key), member(key, inner)]))
  }
  // Types and taxonomies name the namespace that clients build addresses with.
  const member = (key: string, value: unknown): unknown =>
    key === 'rest_namespace' && value === site.namespace ? 'wp/v2' : map(value)
  const neutral = (key: string): string => (site.names === 'neutral' ? (neutralKeys[key] ?? key) : key)
  const address = (text: string): string => {
    if (!text.startsWith(site.restRoot)) return text
    const path = text.slice(site.restRoot.length)
    return restRoot + (site.names === 'neutral' ? path.replace('/site/v2', '/wp/v2') : path)
  }
  return map(document)
}
