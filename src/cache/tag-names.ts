const longestIdentifier = 128

/** `0005` and `5` are one item. */
const canonicalIdentifier = (id: string): string =>
  id.startsWith('0') && /^\d+$/.test(id) ? id.replace(/^0+(?=\d)/, '') : id

const itemName = (prefix: string, collection: string, id: string): string | undefined =>
  id.length > longestIdentifier ? undefined : `${prefix}/${collection}/${canonicalIdentifier(id)}`

/** On responses whose list from the companion is complete. */
export const describedTag = (service: string): string => `${service}/described`

/** The spelling of tags. All begin with the name of the service, so that no service reaches another's. */
export const createTagNames = (service: string) => ({
  /** On every stored response of the service. */
  all: `${service}/all`,
  /** On responses whose dependencies are unknown: every write reaches them. */
  unknownDependencies: `${service}/unknown`,
  /** On responses with a property that shows more than its item: every write reaches them, except to another post. */
  site: `${service}/site`,
  /** On responses with a property that shows what its item links to. */
  linked: `${service}/linked`,
  /** On those that link to this item, or show it. */
  linkedTo: (collection: string, id: string) => itemName(`${service}/linked`, collection, id),
  /** On responses stored for one credential. */
  callers: `${service}/callers`,
  embedded: `${service}/embedded`,
  /** On responses that embed something unknown. */
  opaque: `${service}/opaque`,
  /** On responses with dynamic content. */
  dynamic: `${service}/dynamic`,
  /** On content that renders only items of one collection. */
  dynamicOf: (collection: string) => `${service}/dynamic/${collection}`,
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
  revisionsOf: (collection: string, id: string) => itemName(`${service}/revisions`, collection, id),
  autosavesOf: (collection: string, id: string) => itemName(`${service}/autosaves`, collection, id),
  /** On responses that embed an item, or were requested with `_embed`. */
  embedding: (collection: string, id: string) => itemName(`${service}/embedding`, collection, id),
  shownBy: (collection: string, id: string) => itemName(`${service}/shown`, collection, id),
  /** The same if they show its name or sort by it. */
  nameShownBy: (collection: string, id: string) => itemName(`${service}/name`, collection, id),
  /** On responses that may name any item of the collection. */
  shownBySome: (collection: string) => `${service}/shown/${collection}`,
  nameShownBySome: (collection: string) => `${service}/name/${collection}`,
  upstream: (name: string) => `${service}/upstream/${name}`,
  /** On responses with more tags from the upstream than are stored: every invalidation by such a tag reaches them. */
  moreUpstream: `${service}/more-upstream`,
  /** An id or a listed type that the companion names. */
  companion: (kind: string, id: string) => `${service}/companion/${kind}/${id}`,
  /** On responses whose list from the companion is incomplete: every reported change reaches them. */
  companionUnknown: `${service}/companion`,
  described: describedTag(service),
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
  const names = createTagNames(service)
  const { all, callers, upstream, moreUpstream, companion, companionUnknown, described } = names
  const shared = { all, callers, upstream, moreUpstream, companion, companionUnknown, described }
  return { ...createTagNames(`${service}/described`), ...shared }
}
