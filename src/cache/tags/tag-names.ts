import { type FieldLines, fieldValue, fieldValues, hasField, ownText } from '../../http/message.ts'
import { parseList } from '../../http/structured-fields.ts'

/** The spelling of tags. All begin with the name of the service, so that no service reaches another's. */
export type TagNames = {
  /** On every stored response of the service. */
  readonly all: string
  /** On responses whose dependencies are unknown: every write reaches them. */
  readonly unknown: string
  /** On responses stored for one credential. */
  readonly callers: string
  readonly embedded: string
  /** On responses that embed something unknown. */
  readonly opaque: string
  /** On responses with dynamic content. */
  readonly dynamic: string
  /** On content that renders only items of one collection. */
  dynamicOf(collection: string): string
  /** On rendered content with classes, which styles may affect. */
  readonly styled: string
  /** On every response with rendered content. */
  readonly rendered: string
  /** On every response of a collection. */
  any(collection: string): string
  list(collection: string): string
  /** A complete list of the items with that value. */
  filtered(collection: string, property: string, value: number): string
  /** A list under that filter, whatever its value. */
  filteredBy(collection: string, property: string): string
  /** A list under a filter of which only a part is known: the rest of its items is unknown. */
  unsure(collection: string): string
  /** A response that depends on texts, or whose items are unknown. */
  text(collection: string): string
  /** A response that depends on the time of the last change, or whose items are unknown. */
  modified(collection: string): string
  /** A list that may show non-public items. */
  inner(collection: string): string
  /** The same for one status, or `any`. */
  innerOf(collection: string, status: string): string
  /** A list that may depend on more of its items than their texts, dates and statuses. */
  related(collection: string): string
  /** Undefined if the identifier is too long for the index; use `any` instead. */
  item(collection: string, id: string): string | undefined
  /** On the revisions of an item. */
  revisionsOf(collection: string, id: string): string | undefined
  /** On the autosaves of an item. */
  autosavesOf(collection: string, id: string): string | undefined
  /** On responses that embed an item, or were requested with `_embed`. */
  embedding(collection: string, id: string): string | undefined
  /** On responses whose items name that item by id. */
  shownBy(collection: string, id: string): string | undefined
  /** The same if they show its name or sort by it. */
  nameShownBy(collection: string, id: string): string | undefined
  /** On responses that may name any item of the collection. */
  shownBySome(collection: string): string
  nameShownBySome(collection: string): string
  /** A tag from the upstream. */
  upstream(name: string): string
  /** On responses with more tags from the upstream than are stored: every invalidation by such a tag reaches them. */
  readonly moreUpstream: string
  /** An id or a listed type that the companion of WordPress names. */
  companion(kind: string, id: string): string
  /** On responses whose list from the companion is incomplete: every reported change reaches them. */
  readonly companionUnknown: string
  /** On responses whose list from the companion is complete. */
  readonly described: string
  /** On all others: every change that no table lists reaches them. */
  readonly undescribed: string
  /**
   * The tag by which a write reaches a response that is described completely, instead of one of the table; undefined for a tag that
   * both kinds of responses have. A write that the companion has reported does not need it.
   */
  inDescribed(tag: string): string | undefined
}

const longestIdentifier = 128

/** `0005` and `5` are one item. */
const canonicalIdentifier = (id: string): string =>
  id.startsWith('0') && /^\d+$/.test(id) ? id.replace(/^0+(?=\d)/, '') : id

const itemName = (prefix: string, collection: string, id: string): string | undefined =>
  id.length > longestIdentifier ? undefined : `${prefix}/${collection}/${canonicalIdentifier(id)}`

export const createTagNames = (service: string): TagNames => ({
  all: `${service}/all`,
  unknown: `${service}/unknown`,
  callers: `${service}/callers`,
  embedded: `${service}/embedded`,
  opaque: `${service}/opaque`,
  dynamic: `${service}/dynamic`,
  dynamicOf: (collection) => `${service}/dynamic/${collection}`,
  styled: `${service}/styled`,
  rendered: `${service}/rendered`,
  any: (collection) => `${service}/any/${collection}`,
  list: (collection) => `${service}/list/${collection}`,
  filtered: (collection, property, value) => `${service}/list/${collection}/${property}=${value}`,
  filteredBy: (collection, property) => `${service}/list/${collection}/${property}`,
  unsure: (collection) => `${service}/unsure/${collection}`,
  text: (collection) => `${service}/text/${collection}`,
  modified: (collection) => `${service}/modified/${collection}`,
  inner: (collection) => `${service}/inner/${collection}`,
  innerOf: (collection, status) => `${service}/inner/${collection}/${status}`,
  related: (collection) => `${service}/related/${collection}`,
  item: (collection, id) => itemName(`${service}/item`, collection, id),
  revisionsOf: (collection, id) => itemName(`${service}/revisions`, collection, id),
  autosavesOf: (collection, id) => itemName(`${service}/autosaves`, collection, id),
  embedding: (collection, id) => itemName(`${service}/embedding`, collection, id),
  shownBy: (collection, id) => itemName(`${service}/shown`, collection, id),
  nameShownBy: (collection, id) => itemName(`${service}/name`, collection, id),
  shownBySome: (collection) => `${service}/shown/${collection}`,
  nameShownBySome: (collection) => `${service}/name/${collection}`,
  upstream: (name) => `${service}/upstream/${name}`,
  moreUpstream: `${service}/more-upstream`,
  companion: (kind, id) => `${service}/companion/${kind}/${id}`,
  companionUnknown: `${service}/companion`,
  described: `${service}/described`,
  undescribed: `${service}/undescribed`,
  inDescribed: (tag) =>
    isOfBoth(service, tag) ? undefined : `${service}/described${tag.slice(service.length)}`,
})

/** On responses of both kinds, described completely or not. */
const isOfBoth = (service: string, tag: string): boolean =>
  ['all', 'callers', 'more-upstream', 'undescribed'].some((name) => tag === `${service}/${name}`) ||
  ['upstream', 'companion'].some((name) => tag.startsWith(`${service}/${name}/`))

/** The names for the tags of the table on responses that are described completely. */
export const namesInDescribed = (service: string): TagNames => {
  const own = createTagNames(service)
  const { all, callers, upstream, moreUpstream, companion, companionUnknown, described } = own
  const shared = { all, callers, upstream, moreUpstream, companion, companionUnknown, described }
  return { ...createTagNames(`${service}/described`), ...shared }
}

/** Fields with tags of the upstream, and their separators. */
const tagFields: readonly { readonly name: string; readonly separator: RegExp }[] = [
  { name: 'surrogate-key', separator: /\s+/ },
  { name: 'cache-tag', separator: /[\s,]+/ },
  { name: 'xkey', separator: /[\s,]+/ },
]

/** An upstream may send thousands; each costs an index entry. */
const mostTags = 128
const longestTag = 128

const groupsIn = (fields: FieldLines, name: string): readonly string[] => {
  const value = fieldValue(fields, name)
  const members = value === undefined ? [] : (parseList(value) ?? [])
  return members.flatMap((member) =>
    member.kind === 'item' && member.item.type === 'string' ? [member.item.value] : [],
  )
}

const taggingFields: ReadonlySet<string> = new Set([...tagFields.map(({ name }) => name), 'cache-groups'])

const none: readonly string[] = []

/**
 * Tags for those in the fields of a response, including Cache-Groups (RFC 9875). A response with more tags than the index takes, or
 * with a longer one, gets a tag that every invalidation by a tag of the upstream reaches.
 */
export const upstreamTags = (names: TagNames, fields: FieldLines): readonly string[] => {
  // Most responses have none.
  if (!hasField(fields, taggingFields)) return none
  const all = new Set([
    ...tagFields.flatMap(({ name, separator }) =>
      fieldValues(fields, name).flatMap((line) => line.split(separator)),
    ),
    ...groupsIn(fields, 'cache-groups'),
  ])
  all.delete('')
  const kept = [...all].filter((tag) => tag.length <= longestTag).slice(0, mostTags)
  const tags = kept.map((tag) => names.upstream(ownText(tag)))
  return kept.length < all.size ? [...tags, names.moreUpstream] : tags
}

/** Tags for groups that the response to a write invalidates (RFC 9875 §3); the size of its head bounds them. */
export const invalidatedGroups = (names: TagNames, fields: FieldLines): readonly string[] => {
  const groups = new Set(groupsIn(fields, 'cache-group-invalidation'))
  groups.delete('')
  return groups.size === 0 ? none : [...[...groups].map(names.upstream), names.moreUpstream]
}
