import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Archives of WordPress and of plugins as their makers publish them: folders `cores` and `plugins`. */
const archives =
  process.env['TRELLIS_WORDPRESS'] ??
  join(dirname(fileURLToPath(import.meta.url)), '../../../../shared/wordpress')

export const cores = ['7.1', '6.9.7'] as const
export type Core = (typeof cores)[number]

/** A plugin: the name of its archive, and what is activated. */
export const plugins = {
  acf: ['advanced-custom-fields-6.8.1', 'advanced-custom-fields/acf.php'],
  cf7: ['contact-form-7-6.1.6', 'contact-form-7/wp-contact-form-7.php'],
  cocart: ['cocart-4.4.0-beta.6', 'cart-rest-api-for-woocommerce/cart-rest-api-for-woocommerce.php'],
  cptui: ['custom-post-type-ui-1.19.1', 'custom-post-type-ui/custom-post-type-ui.php'],
  graphql: ['wp-graphql-2.20.0', 'wp-graphql/wp-graphql.php'],
  'graphql-acf': ['wp-graphql-acf-2.7.1', 'wp-graphql-acf/wpgraphql-acf.php'],
  'graphql-cache': ['wp-graphql-smart-cache-2.3.1', 'wp-graphql-smart-cache/wp-graphql-smart-cache.php'],
  pods: ['pods-3.3.9.1', 'pods/init.php'],
  polylang: ['polylang-3.8.7', 'polylang/polylang.php'],
  scf: ['secure-custom-fields-6.4.1-beta4', 'secure-custom-fields/secure-custom-fields.php'],
  woocommerce: ['woocommerce-10.5.0', 'woocommerce/woocommerce.php'],
  yoast: ['wordpress-seo-28.3', 'wordpress-seo/wp-seo.php'],
} as const

export type PluginName = keyof typeof plugins

/** Sets of plugins as sites have them. */
export const pluginSets = {
  none: [],
  form: ['cf7'],
  types: ['cf7', 'cptui'],
  fields: ['cf7', 'acf', 'cptui'],
  search: ['cf7', 'acf', 'cptui', 'yoast'],
  shop: ['cf7', 'acf', 'cptui', 'yoast', 'woocommerce'],
  store: ['woocommerce'],
  cart: ['woocommerce', 'cocart'],
  languages: ['polylang'],
  pods: ['polylang', 'pods'],
  graphql: ['graphql', 'scf'],
  'graphql-cache': ['graphql', 'graphql-cache', 'acf', 'graphql-acf', 'polylang', 'pods'],
} as const satisfies Record<string, readonly PluginName[]>

/** What the short form of real-sites measures, and the set whose site gets random writes. */
export const shortSets: readonly PluginSet[] = ['pods']
export const setOfRandomWrites: PluginSet = 'search'

export type PluginSet = keyof typeof pluginSets

/** The sites whose day day-of-a-site.nightly.test.ts plays. */
export const daySets = { shop: 'shop', blog: 'search', headless: 'graphql' } as const satisfies Record<
  string,
  PluginSet
>
export type DayName = keyof typeof daySets

/** The plugins of a set, or of a list such as `yoast,acf`. */
export const pluginsOf = (name: string): readonly PluginName[] => {
  if (Object.hasOwn(pluginSets, name)) return pluginSets[name as PluginSet]
  const listed = name.split(',')
  const unknown = listed.find((one) => !Object.hasOwn(plugins, one))
  if (unknown !== undefined) {
    const known = [...Object.keys(pluginSets), ...Object.keys(plugins)].join(', ')
    throw new Error(`no set and no plugin is called ${unknown}; there are ${known}`)
  }
  return listed as PluginName[]
}

export const archiveOfCore = (core: Core): string => join(archives, 'cores', `wordpress-${core}.tar.xz`)
export const archiveOfPlugin = (name: PluginName): string =>
  join(archives, 'plugins', `${plugins[name][0]}.tar.xz`)

/** Why no real site can be built here; undefined where one can. */
export const reasonWithoutArchives = (): string | undefined =>
  existsSync(archiveOfCore('7.1'))
    ? undefined
    : `needs the archives of WordPress and its plugins: TRELLIS_WORDPRESS names no folder with ${archiveOfCore('7.1')}`
