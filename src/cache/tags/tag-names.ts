import { type FieldLines, fieldValue, fieldValues, hasField, ownText } from '../../http/message.ts'
import { parseList } from '../../http/structured-fields.ts'

const longestIdentifier = 128

/** `0005` and `5` are one item. */
const canonicalIdentifier = (id: string): string =>
  id.startsWith('0') && /^\d+$/.test(id) ? id.replace(/^0+(?=\d)/, '') : id

const itemName = (prefix: string, collection: string, id: string): string | undefined =>
  id.length > longestIdentifier ? undefined : `${prefix}/${collection}/${canonicalIdentifier(id)}`

/** The spelling of tags. All begin with the name of the service, so that no service reaches another's. */
export const createTagNames = (service: string) => ({
  /** On every stored response of the service. */
  all: `${service}/all`,
  /** On responses whose dependencies are unknown: every write reaches them. */
  unknown: `${service}/unknown`,
  /** On responses stored for one credential. */
  callers: `${service}/callers`,
  embedded: `${service}/embedded`,
  /** On responses that embed something unknown. */
  opaque: `${service}/opaque`,
  /** On responses with dynamic content. */
  dynamic: `${service}/dynamic`,
  /** On content that renders only items of one collection. */
  dynamicOf: (collection: string) => `${service}/dynamic/${collection}`,
  /** On rendered content with classes, which styles may affect. */
  styled: `${service}/styled`,
  /** On every response with rendered content. */
  rendered: `${service}/rendered`,
  /** On every response of a collection. */
  any: (collection: string) => `${service}/any/${collection}`,
  list: (collection: string) => `${service}/list/${collection}`,
  /** A complete list of the items with that value. */
  filtered: (collection: string, property: string, value: number) =>
    `${service}/list/${collection}/${property}=${value}`,
  /** A list under that filter, whatever its value. */
  filteredBy: (collection: string, property: string) => `${service}/list/${collection}/${property}`,
  /** A list under a filter of which only a part is known: the rest of its items is unknown. */
  unsure: (collection: string) => `${service}/unsure/${collection}`,
  /** A response that depends on texts, or whose items are unknown. */
  text: (collection: string) => `${service}/text/${collection}`,
  /** A response that depends on the time of the last change, or whose items are unknown. */
  modified: (collection: string) => `${service}/modified/${collection}`,
  /** A list that may show non-public items. */
  inner: (collection: string) => `${service}/inner/${collection}`,
  /** The same for one status, or `any`. */
  innerOf: (collection: string, status: string) => `${service}/inner/${collection}/${status}`,
  /** A list that may depend on more of its items than their texts, dates and statuses. */
  related: (collection: string) => `${service}/related/${collection}`,
  /** Undefined if the identifier is too long for the index; use `any` instead. */
  item: (collection: string, id: string) => itemName(`${service}/item`, collection, id),
  /** On the revisions of an item. */
  revisionsOf: (collection: string, id: string) => itemName(`${service}/revisions`, collection, id),
  /** On the autosaves of an item. */
  autosavesOf: (collection: string, id: string) => itemName(`${service}/autosaves`, collection, id),
  /** On responses that embed an item, or were requested with `_embed`. */
  embedding: (collection: string, id: string) => itemName(`${service}/embedding`, collection, id),
  /** On responses whose items name that item by id. */
  shownBy: (collection: string, id: string) => itemName(`${service}/shown`, collection, id),
  /** The same if they show its name or sort by it. */
  nameShownBy: (collection: string, id: string) => itemName(`${service}/name`, collection, id),
  /** On responses that may name any item of the collection. */
  shownBySome: (collection: string) => `${service}/shown/${collection}`,
  nameShownBySome: (collection: string) => `${service}/name/${collection}`,
  /** A tag from the upstream. */
  upstream: (name: string) => `${service}/upstream/${name}`,
  /** On responses with more tags from the upstream than are stored: every invalidation by such a tag reaches them. */
  moreUpstream: `${service}/more-upstream`,
  /** An id or a listed type that the companion of WordPress names. */
  companion: (kind: string, id: string) => `${service}/companion/${kind}/${id}`,
  /** On responses whose list from the companion is incomplete: every reported change reaches them. */
  companionUnknown: `${service}/companion`,
  /** On responses whose list from the companion is complete. */
  described: `${service}/described`,
  /** On all others: every change that no table lists reaches them. */
  undescribed: `${service}/undescribed`,
  /**
   * The tag by which a write reaches a response that is described completely, instead of one of the table; undefined for a tag that
   * both kinds of responses have. A write that the companion has reported does not need it.
   */
  inDescribed: (tag: string): string | undefined =>
    isOfBoth(service, tag) ? undefined : `${service}/described${tag.slice(service.length)}`,
})

export type TagNames = ReturnType<typeof createTagNames>

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
