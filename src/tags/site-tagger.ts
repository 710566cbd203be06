import type { Found } from '../contracts/finding.ts'
import type { Row } from '../contracts/row.ts'
import { type CollectionTags, dynamicMarkers, type WriteAction } from '../contracts/site/tags.ts'
import { type DescribedItem, type Description, describeItems } from './described-items.ts'
import { isReadable } from './is-readable.ts'
import { listTags, mostItemTags } from './list-tags.ts'
import { createTagNames, type TagNames } from './tag-names.ts'
import type { TaggedResponse, Tagger } from './tagger.ts'
import { invalidatedGroups, upstreamTags } from './upstream-tags.ts'
import { itemInPath, outcomeOf } from './write-facts.ts'
import { createWrittenTags } from './written-tags.ts'

type TagTable = Readonly<Record<string, CollectionTags>>

export type SiteTaggerOptions = { readonly service: string; readonly table: TagTable }

const rendersOthers = new RegExp(dynamicMarkers.join('|'))

/** The oEmbed rows belong to no collection but answer about posts. */
const collectionOf = (row: Row): string => {
  if (row.collection !== '') return row.collection
  return row.namespace.startsWith('oembed/') ? 'oembed' : ''
}

const itemTags = (names: TagNames, items: readonly DescribedItem[]): string[] =>
  items
    .slice(0, mostItemTags)
    .map(({ collection, id }) => names.item(collection, id))
    .filter((tag) => tag !== undefined)

const rendersLists = (entry: CollectionTags | undefined, content: Buffer): boolean => {
  switch (entry?.renders) {
    case 'any':
      return true
    case 'none':
      return false
    case undefined:
      return rendersOthers.test(content.toString('latin1'))
  }
}

/** What the content depends on beyond its own items; of a part of it nobody knows. */
const contentTags = (
  names: TagNames,
  { status, content }: TaggedResponse,
  entry: CollectionTags | undefined,
  description: Description | undefined,
): string[] => {
  if (status === 206) return [names.embedded, names.opaque, names.dynamic, names.unknown]
  const tags: string[] = []
  if (content.includes('"_embedded"')) {
    tags.push(names.embedded)
    const shown = (description?.items?.length ?? 0) + (description?.embedded.length ?? 0)
    if (description?.embeddedKnown !== true || shown > mostItemTags) tags.push(names.opaque)
  }
  if (rendersLists(entry, content)) tags.push(names.dynamic)
  return tags
}

const actionOf = (found: Found, method: string): WriteAction => {
  if (found.row.kind === 'collection' || found.row.kind === 'action') return 'create'
  return found.row.kind === 'item' && method === 'DELETE' ? 'delete' : 'update'
}

/** An answer about no item in particular: nobody knows which it shows. */
const anyItemTags = (names: TagNames, collection: string): readonly string[] => [
  names.list(collection),
  names.text(collection),
  names.inner(collection),
]

/** Tags of a service with the site contract: from the row, the arguments and the content. */
export const createSiteTagger = ({ service, table }: SiteTaggerOptions): Tagger => {
  const names = createTagNames(service)
  const writtenTags = createWrittenTags(names)
  const entryOf = (collection: string): CollectionTags | undefined =>
    Object.hasOwn(table, collection) ? table[collection] : undefined

  return {
    storedTags: (found, args, response) => {
      const collection = found === undefined ? '' : collectionOf(found.row)
      const entry = entryOf(collection)
      const description = entry === undefined ? undefined : describeItems(response.content, collection)
      const upstream = upstreamTags(response.fields).map((name) => names.upstream(name))
      const general = [names.all, ...upstream, ...contentTags(names, response, entry, description)]
      if (found === undefined || entry === undefined || description === undefined) {
        return [...general, names.unknown]
      }
      const shown = itemTags(names, [...(description.items ?? []), ...description.embedded])
      const id = itemInPath(found)
      const own = id === undefined ? undefined : names.item(collection, id)
      const tags = [...general, names.any(collection), ...shown]
      if (own !== undefined) tags.push(own)
      else if (found.row.kind !== 'collection') tags.push(...anyItemTags(names, collection))
      else tags.push(...listTags(names, collection, entry, args, response, description))
      return [...new Set(tags)]
    },
    callers: names.callers,
    undeclared: names.unknown,
    isReadable,
    writtenTags: (found, _args, method, response, shown) => {
      const groups = response === undefined ? [] : invalidatedGroups(response.fields)
      const asked = groups.map((name) => names.upstream(name))
      if (outcomeOf(response) === 'nothing') return asked
      const collection = found === undefined ? '' : collectionOf(found.row)
      const entry = entryOf(collection)
      if (found === undefined || entry === undefined) return [...asked, names.all]
      const action = actionOf(found, method)
      const done = outcomeOf(response) === 'done' ? response : undefined
      const write = { found, collection, entry, action, response: done, shown: shown ?? (() => []) }
      const rights = entry.rights === true ? [names.callers] : []
      return [...new Set([...asked, ...rights, ...writtenTags(write)])]
    },
  }
}
