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
  /** On responses whose list from the companion is incomplete: every change that it tells of reaches them. */
  readonly companionUnknown: string
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
})
