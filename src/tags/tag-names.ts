/** The spelling of tags. All begin with the name of the service, so that no service reaches another's. */
export type TagNames = {
  /** On every stored response of the service. */
  readonly all: string
  /** On answers of which nobody knows what they depend on: every write reaches them. */
  readonly unknown: string
  readonly embedded: string
  readonly dynamic: string
  /** On every answer of a collection. */
  any(collection: string): string
  list(collection: string): string
  /** A complete list of the items with that value. */
  filtered(collection: string, property: string, value: number): string
  /** undefined when the identifier is too long to be kept in an index; `any` then stands for it. */
  item(collection: string, id: string): string | undefined
  /** A tag that the upstream itself gave. */
  upstream(name: string): string
}

const longestIdentifier = 128

/** `0005` and `5` are one item. */
const canonicalIdentifier = (id: string): string => (/^\d+$/.test(id) ? id.replace(/^0+(?=\d)/, '') : id)

export const createTagNames = (service: string): TagNames => ({
  all: `${service}/all`,
  unknown: `${service}/unknown`,
  embedded: `${service}/embedded`,
  dynamic: `${service}/dynamic`,
  any: (collection) => `${service}/any/${collection}`,
  list: (collection) => `${service}/list/${collection}`,
  filtered: (collection, property, value) => `${service}/list/${collection}/${property}=${value}`,
  item: (collection, id) =>
    id.length > longestIdentifier ? undefined : `${service}/item/${collection}/${canonicalIdentifier(id)}`,
  upstream: (name) => `${service}/upstream/${name}`,
})
