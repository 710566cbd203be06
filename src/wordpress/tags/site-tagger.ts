import { createTagNames, namesInDescribed, type TagNames } from '../../cache/tag-names.ts'
import { invalidatedGroups, upstreamTags } from '../../cache/upstream-tags.ts'
import { jsonReadability } from '../../http/bodies/json-readability.ts'
import { memoizeByObject } from '../../http/memo.ts'
import { contentText } from '../../http/response-text.ts'
import type { Found, Row } from '../../service/row.ts'
import type { Shown, TaggedArguments, TaggedResponse, Tagger } from '../../service/tagger.ts'
import type { PropertyReach } from '../routes/properties.ts'
import { createPropertyReaches, type PropertyReaches } from '../routes/property-reaches.ts'
import { createChangedTags } from './changed-tags.ts'
import { companionTags } from './companion-tags.ts'
import {
  type DescribedItem,
  type Description,
  describeItems,
  itemInPath,
  listTags,
  lookUp,
  maxItemTags,
  namedTags,
} from './described-items.ts'
import { linkedTags } from './linked-items.ts'
import { pageLists, staticBlocks, staticClasses, staticElements } from './static-content.ts'
import type { CollectionTags, WriteAction } from './tags.ts'
import { outcomeOf } from './written-change.ts'
import { type SiteWrite, WrittenTags } from './written-tags.ts'

/** A quotation mark in HTML inside JSON. */
const quote = '(?:\\\\?["\'])'
/** White space in HTML inside JSON. */
const space = '(?:\\s|\\\\[nrt])'

const foreignElement = (more: readonly string[]): string =>
  `<(?!\\\\?/|(?:${staticElements.join('|')})(?![\\w:-])|!--${space}*\\\\?/?wp:(?:${[...staticBlocks, ...more].join('|')})${space}|!--(?:more|nextpage|noteaser)-->)`

/** A class attribute with a class that no static block has. */
const foreignClass = (more: readonly string[]): string => {
  const staticClass = `(?:${[...staticClasses, ...more].join('|')})`
  return `class${space}*=(?!${quote}${space}*(?:${staticClass}(?:${space}+|(?=${quote})))*${quote})`
}

/** Attributes by which scripts find elements. */
const foreignAttribute = `(?:[\\s"']|\\\\[nrt])(?:id|on\\w+|data-[\\w-]+)${space}*=${space}*${quote}`

/** PHP templates indent with tabs, also classic widgets without a class; editors write no tabs. */
const tab = '\\\\t'

/** Escapes that could hide HTML from these patterns. */
const hidden = '\\\\u00(?:3c|22|27)'

/** Classes and blocks that do not make content dynamic. */
type Plain = { readonly classes?: readonly string[]; readonly blocks?: readonly string[] }

/** Creates the test whether content may render other things than its own item. */
export const createRendersOthers = ({
  classes = [],
  blocks = [],
}: Plain = {}): ((text: string) => boolean) => {
  const signs = [foreignElement(blocks), foreignClass(classes), foreignAttribute, tab, hidden]
  const pattern = new RegExp(signs.join('|'), 'i')
  return (text) => pattern.test(text)
}

type TagTable = Readonly<Record<string, CollectionTags>>

export type SiteTaggerOptions = {
  readonly service: string
  readonly table: TagTable
  /** What properties that WordPress does not give depend on. */
  readonly properties?: PropertyReaches
}

/** The oEmbed rows belong to no collection, but their responses show posts. */
const collectionOf = (row: Row): string => {
  if (row.collection !== '') return row.collection
  return row.namespace.startsWith('oembed/') ? 'oembed' : ''
}

const itemTags = (names: TagNames, items: readonly DescribedItem[]): string[] =>
  items
    .slice(0, maxItemTags)
    .map(({ collection, id }) => names.item(collection, id))
    .filter((tag) => tag !== undefined)

const rendersOthers = createRendersOthers()
const rendersMoreThanPages = createRendersOthers(pageLists)

/** For collections whose content has more classes that render nothing else. */
const judgeFor = memoizeByObject((classes: readonly string[]) => createRendersOthers({ classes }))

const judgeOf = ({ ownClasses }: CollectionTags): ((text: string) => boolean) =>
  ownClasses === undefined ? rendersOthers : judgeFor(ownClasses)

/** Matches rendered content or other HTML, except titles and identifiers that WordPress calls rendered. */
const renderedContent = /<|(?<!"(?:title|guid)":\s*\{\s*)"rendered"/

/** The text of a response in which something may be rendered: without properties of which it is known what they show. */
const renderedText = (
  content: Buffer,
  description: Description | undefined,
  linked: ReadonlySet<string>,
): string =>
  linked.size === 0
    ? contentText(content).latin1
    : JSON.stringify(description?.value, (name, value: unknown) => (linked.has(name) ? undefined : value))

/** Tags for the things that may be rendered into the response. */
const renderedTags = (
  names: TagNames,
  entry: CollectionTags | undefined,
  content: Buffer,
  description: Description | undefined,
  linked: ReadonlySet<string>,
): readonly string[] => {
  switch (entry?.renders) {
    case 'any':
      return [names.rendered, names.dynamic]
    case 'none':
      return []
    case undefined: {
      const text = renderedText(content, description, linked)
      if (!renderedContent.test(text)) return []
      const others = entry === undefined ? rendersOthers(text) : judgeOf(entry)(text)
      if (!others) return [names.rendered]
      const reached = rendersMoreThanPages(text) ? names.dynamic : names.dynamicOf('pages')
      return [names.rendered, reached]
    }
  }
}

/** Tags for everything that the content depends on beside its own items; `unknown` for a part of an item. */
const contentTags = (
  names: TagNames,
  { status, content }: TaggedResponse,
  entry: CollectionTags | undefined,
  description: Description | undefined,
  isEmbedding: boolean,
  linked: ReadonlySet<string>,
): string[] => {
  if (status === 206) {
    return [names.embedded, names.opaque, names.dynamic, names.rendered, names.unknownDependencies]
  }
  const tags: string[] = []
  if (isEmbedding) {
    tags.push(names.embedded)
    const shown = (description?.items?.length ?? 0) + (description?.embedded.length ?? 0)
    const isKnown = description?.items !== undefined && description.embeddedKnown
    if (!isKnown || shown > maxItemTags) tags.push(names.opaque)
  }
  tags.push(...renderedTags(names, entry, content, description, linked))
  return tags
}

const actionOf = (match: Found, method: string): WriteAction => {
  if (match.row.kind === 'collection' || match.row.kind === 'action') return 'create'
  return match.row.kind === 'item' && method === 'DELETE' ? 'delete' : 'update'
}

/** For a response that may show any item. */
const anyItemTags = (names: TagNames, collection: string): readonly string[] => [
  names.list(collection),
  names.text(collection),
  names.modified(collection),
  names.inner(collection),
  names.innerOf(collection, 'any'),
  names.related(collection),
]

type Stored = {
  readonly match: Found
  readonly collection: string
  readonly entry: CollectionTags
  readonly args: TaggedArguments
  readonly response: TaggedResponse
  readonly description: Description
  readonly isEmbedding: boolean
}

/** Was `_embed` requested? There may be no linked items yet. */
const embeds = (args: TaggedArguments, { content }: TaggedResponse): boolean =>
  args['_embed'] !== undefined || content.includes('"_embedded"')

const embeddingTags = (
  names: TagNames,
  { match, collection, description, isEmbedding }: Stored,
): readonly string[] => {
  if (!isEmbedding) return []
  const inPath = itemInPath(match)
  const ids = (description.items ?? [])
    .slice(0, maxItemTags)
    .map((item) => [item.collection, item.id] as const)
  const all = inPath === undefined ? ids : [...ids, [collection, inPath] as const]
  return all.map(([of, id]) => names.embedding(of, id)).filter((tag) => tag !== undefined)
}

/** The item in the path, or the part of it. */
const ownTag = (names: TagNames, { match, collection }: Stored): string | undefined => {
  const id = itemInPath(match)
  if (id === undefined) return undefined
  switch (match.row.kind) {
    case 'revisions':
      return names.revisionsOf(collection, id)
    case 'autosaves':
      return names.autosavesOf(collection, id)
    default:
      return names.item(collection, id)
  }
}

/** The types of a search that its rows in the table cover. */
const searchesOf: ReadonlySet<unknown> = new Set([undefined, 'post', 'term'])

/** Tags for what a row of a known collection shows, and for writes that it would show. */
const rowTags = (names: TagNames, stored: Stored): readonly string[] => {
  const { match, collection, entry, args, response, description } = stored
  const shown = itemTags(names, [...(description.items ?? []), ...description.embedded])
  const tags = [names.any(collection), ...shown, ...embeddingTags(names, stored)]
  if (entry.names !== undefined) {
    const isWhole = match.row.kind === 'collection' || match.row.kind === 'item'
    tags.push(...namedTags(names, entry.names, isWhole, response.content, description))
  }
  if (collection === 'search' && args['type'] !== 'post') tags.push(names.any('search/term'))
  // A draft may be the first content of its format; a plugin may search anything.
  if (collection === 'search' && !searchesOf.has(args['type'])) tags.push(names.unknownDependencies)
  const ofPath = ownTag(names, stored)
  if (ofPath !== undefined) return [...tags, ofPath]
  if (match.row.kind !== 'collection') return [...tags, ...anyItemTags(names, collection)]
  return [...tags, ...listTags(names, collection, entry, args, response, description)]
}

const noNames: ReadonlySet<string> = new Set()

/** Properties of which it is known what they show, wherever they stand in the response. */
const linkedNames = (description: Description | undefined, reaches: PropertyReaches): ReadonlySet<string> => {
  const linked = description?.added?.filter(
    ({ name, properties }) => reaches.of(name, properties) === 'linked',
  )
  return linked === undefined || linked.length === 0 ? noNames : new Set(linked.map(({ name }) => name))
}

/** Tags for properties that plugins have added. */
const addedTags = (names: TagNames, { added }: Description, reaches: PropertyReaches): readonly string[] => {
  if (added === undefined) return [names.unknownDependencies]
  const of = new Set<PropertyReach>()
  const linked = new Set<DescribedItem | undefined>()
  for (const { name, properties, item } of added) {
    const reach = reaches.of(name, properties)
    of.add(reach)
    if (reach === 'linked') linked.add(item)
  }
  const items = [...linked].filter((item) => item !== undefined)
  const isUnknown = of.has('all') || items.length < linked.size
  return [
    ...(isUnknown ? [names.unknownDependencies] : []),
    ...(of.has('site') ? [names.site] : []),
    ...(items.length === 0 ? [] : linkedTags(names, items)),
  ]
}

/** May the write change the rights of a user, or delete the user? */
const mayChangeRights = ({ entry: { rights }, action, match, given }: SiteWrite): boolean => {
  if (rights === undefined) return false
  const isUpdate = action === 'update' && match.row.kind === 'item'
  return !isUpdate || given === undefined || !given.every((name) => rights.unlessOnly.includes(name))
}

/** WordPress creates a first navigation where it renders a block for one; a response that was not read may have rendered it. */
const mayCreateNavigation = ({ response }: SiteWrite): boolean =>
  response?.content?.includes('wp-block-navigation') ?? true

/** Changes of a write besides those of its row in the table. */
const besidesTags = (names: TagNames, write: SiteWrite): readonly string[] => [
  ...(mayChangeRights(write) ? [names.callers] : []),
  ...(mayCreateNavigation(write) ? [names.any('navigation')] : []),
]

/** Tags of a service with the site contract: from the row, the arguments and the content. */
export const createSiteTagger = ({
  service,
  table,
  properties: reaches = createPropertyReaches(),
}: SiteTaggerOptions): Tagger => {
  const names = createTagNames(service)
  const inDescribed = namesInDescribed(service)
  const writtenTags = new WrittenTags(names, reaches.of)
  /** Contents of responses of both kinds. */
  const shownOfBoth =
    (shown: Shown): Shown =>
    (tag) => {
      const other = names.inDescribed(tag)
      return other === undefined ? shown(tag) : [...shown(tag), ...shown(other)]
    }
  /** The tags of a write on responses of both kinds. */
  const onBoth = (tags: readonly string[]): readonly string[] => [
    ...tags,
    ...tags.flatMap((tag) => names.inDescribed(tag) ?? []),
  ]

  return {
    storedTags: (match, args, response) => {
      const collection = match === undefined ? '' : collectionOf(match.row)
      const entry = lookUp(table, collection)
      const isList = match?.row.kind === 'collection'
      const description =
        entry === undefined ? undefined : describeItems(response.content, collection, isList)
      const companion = companionTags(names, response)
      // The table does not decide about a response of which everything is known, unless a write was not reported.
      const tableNames = companion.isComplete ? inDescribed : names
      const upstream = [...upstreamTags(names, response.headers), ...companion.tags]
      const isEmbedding = embeds(args, response)
      const ofContent = contentTags(
        tableNames,
        response,
        entry,
        description,
        isEmbedding,
        linkedNames(description, reaches),
      )
      const kind = companion.isComplete ? [] : [names.undescribed]
      const general = [names.all, ...kind, ...upstream, ...ofContent]
      if (match === undefined || entry === undefined || description === undefined) {
        return [...general, tableNames.unknownDependencies]
      }
      const of = { match, collection, entry, args, response, description, isEmbedding }
      return [
        ...new Set([...general, ...rowTags(tableNames, of), ...addedTags(tableNames, description, reaches)]),
      ]
    },
    callers: names.callers,
    undeclared: (rowTags) => (rowTags.includes(names.undescribed) ? names : inDescribed).unknownDependencies,
    everything: names.all,
    changedTags: createChangedTags(names, table, (write) => writtenTags.of(write)),
    readability: jsonReadability,
    writtenTags: (match, given, method, response, shown, isReported = false) => {
      const asked = response === undefined ? [] : invalidatedGroups(names, response.headers)
      if (isReported || outcomeOf(response) === 'nothing') return asked
      const collection = match === undefined ? '' : collectionOf(match.row)
      const entry = lookUp(table, collection)
      if (match === undefined || entry === undefined) return onBoth([...asked, names.all])
      const action = actionOf(match, method)
      const done = outcomeOf(response) === 'done' ? response : undefined
      const write: SiteWrite = {
        match,
        collection,
        entry,
        action,
        response: done,
        shown: shownOfBoth(shown ?? (() => [])),
        given: given(),
      }
      const tags = new Set([...asked, ...besidesTags(names, write), ...writtenTags.of(write)])
      return onBoth([...tags])
    },
  }
}
