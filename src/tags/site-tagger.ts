import type { Found } from '../contracts/finding.ts'
import type { Row } from '../contracts/row.ts'
import { type CollectionTags, termsShown, type WriteAction } from '../contracts/site/tags.ts'
import { type DescribedItem, type Description, describeItems } from './described-items.ts'
import { isReadable } from './is-readable.ts'
import { integersOf } from './list-filter.ts'
import { listTags, mostItemTags } from './list-tags.ts'
import { createRendersOthers } from './renders-others.ts'
import { createTagNames, type TagNames } from './tag-names.ts'
import type { TaggedResponse, Tagger } from './tagger.ts'
import { invalidatedGroups, upstreamTags } from './upstream-tags.ts'
import { itemInPath, outcomeOf } from './write-facts.ts'
import { createWrittenTags } from './written-tags.ts'

type TagTable = Readonly<Record<string, CollectionTags>>

export type SiteTaggerOptions = { readonly service: string; readonly table: TagTable }

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

const rendersOthers = createRendersOthers()

/** For a collection in whose content more classes stand for nothing but the item itself. */
const judges = new WeakMap<readonly string[], (text: string) => boolean>()

const judgeOf = ({ ownClasses }: CollectionTags): ((text: string) => boolean) => {
  if (ownClasses === undefined) return rendersOthers
  const judge = judges.get(ownClasses) ?? createRendersOthers(ownClasses)
  judges.set(ownClasses, judge)
  return judge
}

/** Rendered content, or HTML of any kind: titles, and the identifiers that WordPress calls rendered, are neither. */
const renderedContent = /<|(?<!"(?:title|guid)":\s*\{\s*)"rendered"/

/** By which writes to what may be rendered into it an answer changes. */
const renderedTags = (
  names: TagNames,
  entry: CollectionTags | undefined,
  content: Buffer,
): readonly string[] => {
  switch (entry?.renders) {
    case 'any':
      return [names.rendered, names.dynamic]
    case 'none':
      return []
    case undefined: {
      const text = content.toString('latin1')
      if (!renderedContent.test(text)) return []
      const others = entry === undefined ? rendersOthers(text) : judgeOf(entry)(text)
      return others ? [names.rendered, names.dynamic] : [names.rendered]
    }
  }
}

/** Beyond this an answer counts as one that may show any term. */
const mostShown = 64

const someTerms = (names: TagNames): readonly string[] => Object.values(termsShown).map(names.shownBySome)

const termsIn = (names: TagNames, value: unknown, collection: string): readonly string[] => {
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return []
  const some = names.shownBySome(collection)
  return integersOf(value)?.map((id) => names.shownBy(collection, String(id)) ?? some) ?? [some]
}

/** Terms whose ids stand in an answer. */
const shownTerms = (names: TagNames, items: Description['items']): readonly string[] => {
  if (items === undefined) return someTerms(names)
  const tags = new Set<string>()
  for (const { properties } of items) {
    for (const [property, collection] of Object.entries(termsShown)) {
      for (const tag of termsIn(names, properties[property], collection)) tags.add(tag)
    }
  }
  return tags.size > mostShown ? someTerms(names) : [...tags]
}

/** What the content depends on beyond its own items; of a part of it nobody knows. */
const contentTags = (
  names: TagNames,
  { status, content }: TaggedResponse,
  entry: CollectionTags | undefined,
  description: Description | undefined,
): string[] => {
  if (status === 206) {
    return [names.embedded, names.opaque, names.dynamic, names.rendered, names.unknown]
  }
  const tags: string[] = []
  if (content.includes('"_embedded"')) {
    tags.push(names.embedded)
    const shown = (description?.items?.length ?? 0) + (description?.embedded.length ?? 0)
    if (description?.embeddedKnown !== true || shown > mostItemTags) tags.push(names.opaque)
  }
  tags.push(...renderedTags(names, entry, content))
  if (description !== undefined) tags.push(...shownTerms(names, description.items))
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
