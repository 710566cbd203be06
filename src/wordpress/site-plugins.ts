import { isJsonObject } from '../http/json-text.ts'

/** A plugin that announces routes in the index of its site, and what a configuration may say of it. */
export type SitePlugin = {
  readonly name: string
  /** Cookies that it sets, and that change no response of the REST API. */
  readonly harmlessCookies?: readonly string[]
  /** Paths of reads that are the same for all clients. */
  readonly reads?: readonly string[]
}

/** By the first part of its namespace: `wc/v3` is of `wc`. */
const plugins: ReadonlyMap<string, SitePlugin> = new Map([
  [
    'wc',
    {
      name: 'WooCommerce',
      harmlessCookies: ['woocommerce_recently_viewed'],
      reads: ['/wc/store/v1/products', '/wc/store/v1/products/**'],
    },
  ],
  ['yoast', { name: 'Yoast SEO' }],
  ['rankmath', { name: 'Rank Math' }],
  ['contact-form-7', { name: 'Contact Form 7' }],
  ['gf', { name: 'Gravity Forms' }],
  ['jetpack', { name: 'Jetpack' }],
  ['akismet', { name: 'Akismet' }],
  ['elementor', { name: 'Elementor' }],
  ['pll', { name: 'Polylang' }],
  ['wpml', { name: 'WPML' }],
  ['tribe', { name: 'The Events Calendar' }],
  ['buddypress', { name: 'BuddyPress' }],
  ['ldlms', { name: 'LearnDash' }],
  ['redirection', { name: 'Redirection' }],
])

const ofWordPress: ReadonlySet<string> = new Set([
  ...['wp', 'oembed', 'wp-site-health', 'wp-block-editor', 'wp-abilities'],
])

const maxPlugins = 20
const namespace = /^([\w.-]{1,60})(?:\/|$)/

/** The plugins that an index shows, each once; of others the first part of their namespace. */
export const pluginsOf = (index: unknown): readonly SitePlugin[] => {
  const names = isJsonObject(index) ? index['namespaces'] : undefined
  const parts = (Array.isArray(names) ? names : [])
    .map((name) => namespace.exec(String(name))?.[1])
    .filter((part) => part !== undefined && !ofWordPress.has(part))
  return [...new Set(parts)].slice(0, maxPlugins).map((part = '') => plugins.get(part) ?? { name: part })
}
