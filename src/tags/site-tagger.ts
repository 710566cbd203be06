import type { Found } from '../contracts/finding.ts'
import type { Row } from '../contracts/row.ts'
import { type CollectionTags, dynamicMarkers, type WriteAction } from '../contracts/site/tags.ts'
import { type DescribedItem, type Description, describeItems } from './described-items.ts'
import { isReadable } from './is-readable.ts'
import { appliedFilter, integersOf } from './list-filter.ts'
import { createTagNames, type TagNames } from './tag-names.ts'
import type { TaggedArguments, TaggedResponse, Tagger, WriteResponse } from './tagger.ts'
import { invalidatedGroups, upstreamTags } from './upstream-tags.ts'

type TagTable = Readonly<Record<string, CollectionTags>>

export type SiteTaggerOptions = { readonly service: string; readonly table: TagTable }

/** Item tags of a list are for purges by item; its own tag already ties it to every write. */
const mostItemTags = 256

const rendersOthers = new RegExp(dynamicMarkers.join('|'))

/** The oEmbed rows belong to no collection but answer about posts. */
const collectionOf = (row: Row): string => {
  if (row.collection !== '') return row.collection
  return row.namespace.startsWith('oembed/') ? 'oembed' : ''
}

/** The item that a path is about: revisions and autosaves are parts of their parent. */
const itemInPath = (found: Found): string | undefined => {
  const { id, parent } = found.pathParameters
  return parent ?? id
}

const itemTags = (names: TagNames, items: readonly DescribedItem[]): string[] =>
  items
    .slice(0, mostItemTags)
    .map(({ collection, id }) => names.item(collection, id))
    .filter((tag) => tag !== undefined)

const listTags = (
  names: TagNames,
  collection: string,
  filters: CollectionTags['filters'],
  args: TaggedArguments,
  response: TaggedResponse,
  description: Description,
): readonly string[] => {
  const filter = description.items === undefined ? undefined : appliedFilter(filters, args, response.fields)
  if (filter === undefined || (description.items?.length ?? 0) > mostItemTags) return [names.list(collection)]
  return filter.values.map((value) => names.filtered(collection, filter.property, value))
}

/** What the content depends on beyond its own items; of a part of it nobody knows. */
const contentTags = (names: TagNames, { status, content }: TaggedResponse): string[] => {
  if (status === 206) return [names.embedded, names.dynamic, names.unknown]
  const tags: string[] = []
  if (content.includes('"_embedded"')) tags.push(names.embedded)
  if (rendersOthers.test(content.toString('latin1'))) tags.push(names.dynamic)
  return tags
}

const actionOf = (found: Found, method: string): WriteAction => {
  if (found.row.kind === 'collection' || found.row.kind === 'action') return 'create'
  return found.row.kind === 'item' && method === 'DELETE' ? 'delete' : 'update'
}

/** A refusal changed nothing; a success did; of anything else nobody knows. */
const outcomeOf = (response: WriteResponse | undefined): 'done' | 'nothing' | 'unknown' => {
  if (response === undefined) return 'unknown'
  if (response.status >= 200 && response.status < 300) return 'done'
  return response.status >= 400 && response.status < 500 ? 'nothing' : 'unknown'
}

/** The lists that can gain the items, besides those that show them already; undefined when the answer does not tell. */
const gainingLists = (
  names: TagNames,
  filters: CollectionTags['filters'],
  items: readonly DescribedItem[],
): readonly string[] | undefined => {
  const tags: string[] = []
  for (const { collection, properties } of items) {
    tags.push(names.list(collection))
    for (const { property } of filters) {
      const value = properties[property]
      const values = Array.isArray(value) && value.length === 0 ? [] : integersOf(value)
      if (values === undefined) return undefined
      tags.push(...values.map((one) => names.filtered(collection, property, one)))
    }
  }
  return tags
}

const ownTags = (
  names: TagNames,
  collection: string,
  entry: CollectionTags,
  found: Found,
  written: readonly DescribedItem[] | undefined,
): readonly string[] => {
  const path = itemInPath(found)
  const inPath = path === undefined ? [] : [names.item(collection, path)]
  // The answer may be about a part (a revision) or trimmed; then all answers of the collection stand for its item.
  const same = (written ?? []).filter((item) => item.collection === collection)
  const lists = same.length === 0 ? undefined : gainingLists(names, entry.filters, same)
  const items = [...inPath, ...same.map(({ id }) => names.item(collection, id))]
  if (lists === undefined || items.some((tag) => tag === undefined)) return [names.any(collection)]
  return [...lists, ...items.filter((tag) => tag !== undefined)]
}

/** Tags of a service with the site contract: from the row, the arguments and the content. */
export const createSiteTagger = ({ service, table }: SiteTaggerOptions): Tagger => {
  const names = createTagNames(service)
  const entryOf = (collection: string): CollectionTags | undefined =>
    Object.hasOwn(table, collection) ? table[collection] : undefined

  const effectTags = (entry: CollectionTags, action: WriteAction, collection: string): readonly string[] => {
    const effect = entry.effects[action]
    if (effect === 'everything') return [names.all]
    const tags = effect.collections.map((other) => names.any(other))
    if (effect.siblings) tags.push(names.any(collection))
    if (effect.embedded) tags.push(names.embedded)
    if (effect.dynamic) tags.push(names.dynamic)
    return [...tags, names.unknown]
  }

  return {
    storedTags: (found, args, response) => {
      const collection = found === undefined ? '' : collectionOf(found.row)
      const entry = entryOf(collection)
      const upstream = upstreamTags(response.fields).map((name) => names.upstream(name))
      const general = [names.all, ...upstream, ...contentTags(names, response)]
      if (found === undefined || entry === undefined) return [...general, names.unknown]
      const description = describeItems(response.content, collection)
      const shown = itemTags(names, [...(description.items ?? []), ...description.embedded])
      const id = itemInPath(found)
      const own = id === undefined ? undefined : names.item(collection, id)
      const lists =
        found.row.kind === 'collection'
          ? listTags(names, collection, entry.filters, args, response, description)
          : []
      const tags = [...general, names.any(collection), ...lists, ...shown]
      return [...new Set(own === undefined ? tags : [...tags, own])]
    },
    isReadable,
    writtenTags: (found, _args, method, response) => {
      const groups = response === undefined ? [] : invalidatedGroups(response.fields)
      const asked = groups.map((name) => names.upstream(name))
      const outcome = outcomeOf(response)
      if (outcome === 'nothing') return asked
      const collection = found === undefined ? '' : collectionOf(found.row)
      const entry = entryOf(collection)
      if (found === undefined || entry === undefined) return [...asked, names.all]
      const content = outcome === 'done' ? response?.content : undefined
      const written = content === undefined ? undefined : describeItems(content, collection).items
      const own = ownTags(names, collection, entry, found, written)
      return [...new Set([...asked, ...own, ...effectTags(entry, actionOf(found, method), collection)])]
    },
  }
}
