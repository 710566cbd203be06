import { isJsonObject } from '../../http/json-text.ts'
import type { Row } from '../../service/row.ts'
import { type PropertyReach, pluginProperties } from './properties.ts'

type Properties = Readonly<Record<string, unknown>>

/** What the properties that plugins give to items depend on. */
export type PropertyReaches = {
  /** What a property of this item depends on. */
  of(name: string, item: unknown): PropertyReach
  /** Takes over what the site announces: its taxonomies. */
  learn(rows: readonly Row[]): void
}

/** Arguments of every list of terms (WP_REST_Terms_Controller), and of no other list of WordPress. */
const argumentsOfTerms = ['hide_empty', 'slug', 'post', 'per_page', 'exclude']

const readArguments = ({ endpoints }: Row): Properties =>
  Object.assign({}, ...endpoints.filter(({ methods }) => methods.includes('GET')).map((one) => one.arguments))

/**
 * The properties in which items have the ids of their terms: the taxonomy has a list of its own, and the lists of its items have filters
 * for it (`genres` and `genres_exclude`).
 */
const taxonomyProperties = (rows: readonly Row[]): ReadonlySet<string> => {
  const lists = rows
    .filter(({ kind }) => kind === 'collection')
    .map((row) => ({ row, args: readArguments(row) }))
  const filtered = new Set(lists.flatMap(({ args }) => Object.keys(args)))
  const bases = lists
    .filter(({ args }) => argumentsOfTerms.every((name) => Object.hasOwn(args, name)))
    .map(({ row }) => row.template.split('/').at(-1) ?? '')
  return new Set(bases.filter((base) => filtered.has(base) && filtered.has(`${base}_exclude`)))
}

const originOf = (value: unknown): string | undefined =>
  typeof value === 'string' ? /^https?:\/\/[^/?#]+/.exec(value)?.[0] : undefined

/** Members by which PHP's objects of posts, terms and users are known. */
const membersOfItems = ['ID', 'id', 'term_id', 'post_title', 'user_email']

/**
 * Does a value of ACF show nothing but what its own item holds? In its usual format (`light`) others are ids. In the format `standard`
 * they are objects, or addresses of this site, whose own address the item's `link` shows.
 */
const showsOnlyIds = (value: unknown, ownOrigin: string | undefined): boolean => {
  if (typeof value === 'string') {
    const isAddress = /https?:(?:\/\/|\\\/\\\/)/.test(value)
    return !isAddress || (ownOrigin !== undefined && !value.includes(ownOrigin))
  }
  if (Array.isArray(value)) return value.every((one) => showsOnlyIds(one, ownOrigin))
  if (!isJsonObject(value)) return true
  if (membersOfItems.some((name) => Object.hasOwn(value, name))) return false
  return Object.values(value).every((one) => showsOnlyIds(one, ownOrigin))
}

const reachOfFields = (item: Properties): PropertyReach =>
  showsOnlyIds(item['acf'], originOf(item['link'])) ? 'item' : 'all'

/** A plugin may give another property the name of a taxonomy. */
const reachOfTerms = (value: unknown): PropertyReach =>
  Array.isArray(value) && value.every(Number.isSafeInteger) ? 'item' : 'all'

export const createPropertyReaches = (
  configured: Readonly<Record<string, PropertyReach>> = {},
): PropertyReaches => {
  let taxonomies: ReadonlySet<string> = new Set()
  const listed = new Map(Object.entries({ ...pluginProperties, ...configured }))
  return {
    of: (name, item) => {
      const reach = listed.get(name)
      if (reach !== undefined || !isJsonObject(item)) return reach ?? 'all'
      if (name === 'acf') return reachOfFields(item)
      return taxonomies.has(name) ? reachOfTerms(item[name]) : 'all'
    },
    learn: (rows) => {
      taxonomies = taxonomyProperties(rows)
    },
  }
}
