import type { PlainResponse } from './send.ts'

/** Where a site answers, and under which names. */
export type Site = {
  /** REST root without a slash at the end. */
  readonly restRoot: string
  readonly names: 'wordpress' | 'neutral'
}

// Written down apart from the tables of the gateway: this is the check on them.
const names: readonly (readonly [wordpress: string, neutral: string])[] = [
  ['wp_pattern_category_exclude', 'site_pattern_category_exclude'],
  ['wp_pattern_category', 'site_pattern_category'],
  ['wp_pattern_sync_status', 'site_pattern_sync_status'],
  ['wp_id', 'site_id'],
]
const namespaces: readonly (readonly [wordpress: string, neutral: string])[] = [
  ['wp-site-health/v1', 'site-health/v1'],
  ['wp-block-editor/v1', 'block-editor/v1'],
  ['contact-form-7/v1', 'contact-form/v1'],
  ['wp/v2', 'site/v2'],
]

const neutralName = new Map(names)
const wordpressName = new Map(names.map(([wordpress, neutral]) => [neutral, wordpress]))
const wordpressNamespace = new Map(namespaces.map(([wordpress, neutral]) => [neutral, wordpress]))

/** A target or content as clients of neutral names write it. */
export function inNeutralNames(text: string): string {
  return text
    .replace(/^(\/+)wp(\/+v2)/, '$1site$2')
    .replace(/^(\/+)WP(\/+V2)/, '$1SITE$2')
    .replace(/^\/wp-(site-health|block-editor)\//, '/$1/')
    .replace(/^\/contact-form-7\//, '/contact-form/')
    .replaceAll('"/wp/v2/', '"/site/v2/')
    .replaceAll('"/contact-form-7/', '"/contact-form/')
    .replaceAll(/\bwp_(?:id|pattern_sync_status|pattern_category(?:_exclude)?)\b/g, (name) =>
      String(neutralName.get(name)),
    )
}

const nameInText = /\bsite_(?:id|pattern_sync_status|pattern_category(?:_exclude)?)\b/g

/** Keys whose value names a namespace. */
const namesNamespace = new Set(['rest_namespace', 'namespace', 'namespaces', 'default'])

/** Texts that name arguments: the message of an error, and the messages below `params` and `details`. */
const namesArguments = new Set(['message', 'params', 'details'])

/** A document of a site, in WordPress's names and with the addresses of the REST root `home`. */
export function asWordPress(document: unknown, site: Site, home: string): unknown {
  // An envelope carries the Link field as a text.
  const address = (text: string): string =>
    text.startsWith('<') ? String(linkAsWordPress(text, site, home)) : addressAsWordPress(text, site, home)
  const map = (value: unknown, key: string, inError: boolean): unknown => {
    if (typeof value === 'string') return mapText(value, key, inError)
    if (Array.isArray(value)) return value.map((item) => map(item, key, inError))
    if (typeof value !== 'object' || value === null) return value
    const members = Object.entries(value).map(([name, part]) => [
      site.names === 'neutral' ? (wordpressName.get(name) ?? name) : name,
      map(part, name, inError || namesArguments.has(name)),
    ])
    return Object.fromEntries(members)
  }
  const mapText = (text: string, key: string, inError: boolean): string => {
    if (site.names === 'wordpress') return address(text)
    if (namesNamespace.has(key)) return wordpressNamespace.get(text) ?? text
    if (key === 'rest_base') return wordpressName.get(text) ?? text
    if (inError) return text.replaceAll(nameInText, (name) => String(wordpressName.get(name)))
    return address(text)
  }
  return map(document, '', false)
}

/** One address; anything else is given back as it is. */
export function addressAsWordPress(text: string, site: Site, home: string): string {
  if (!text.startsWith(site.restRoot)) return text
  const rest = text.slice(site.restRoot.length)
  if (site.names === 'wordpress') return home + rest
  const [path = '', ...query] = rest.split('?')
  const namespace = namespaces.find(([, neutral]) => path.startsWith(`/${neutral}`))
  const mapped = namespace === undefined ? path : `/${namespace[0]}${path.slice(namespace[1].length + 1)}`
  const named = (part: string): string =>
    part.replaceAll(nameInText, (name) => String(wordpressName.get(name)))
  return home + [named(mapped), ...query.map(named)].join('?')
}

/** The addresses of a Link field, or undefined when there is none. */
export function linkAsWordPress(link: string | undefined, site: Site, home: string): string | undefined {
  return link?.replaceAll(/<([^>]*)>/g, (_, target: string) => `<${addressAsWordPress(target, site, home)}>`)
}

/** What a response says, without its spelling: JSON parsed, script unwrapped, anything else as text. */
export function contentOf({ text, headers }: PlainResponse): unknown {
  const type = headers['content-type'] ?? ''
  const script = /^\/\*\*\/([\w.]+)\((.*)\)$/s.exec(text)
  if (type.startsWith('application/javascript') && script !== null) {
    return { callback: script[1], argument: JSON.parse(script[2] ?? '') }
  }
  return type.startsWith('application/json') && text !== '' ? parsed(text) : text
}

/** Invalid JSON is compared as text. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return { notJson: text }
  }
}

/** The patterns of a discovery document. */
export function routesAsWordPress<Route>(
  routes: Readonly<Record<string, Route>>,
  site: Site,
): Record<string, Route> {
  const named = (pattern: string): string =>
    addressAsWordPress(site.restRoot + pattern, site, '').replace(/^\/site\/v2\//, '/wp/v2/')
  return Object.fromEntries(Object.entries(routes).map(([pattern, route]) => [named(pattern), route]))
}
