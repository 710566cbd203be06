import { collectionOfRelation, collectionOfTaxonomy, collectionOfType } from '../../contracts/site/tags.ts'
import { parsedContent } from './parsed-content.ts'

/** A JSON object in a response that is an item of a collection. */
export type DescribedItem = {
  readonly collection: string
  readonly id: string
  readonly properties: Readonly<Record<string, unknown>>
}

/** What the content of a response shows. */
export type Description = {
  /** The items in the response; undefined if an item has no id or the content cannot be read. */
  readonly items: readonly DescribedItem[] | undefined
  readonly embedded: readonly DescribedItem[]
  /** Are all embedded items known? */
  readonly embeddedKnown: boolean
  /** The response describes a deleted item. */
  readonly deleted: boolean
}

const unreadable: Description = { items: undefined, embedded: [], embeddedKnown: false, deleted: false }

/** Longer content gets coarse tags: reading it would delay other requests too long. */
const longestContent = 262_144
const mostEmbedded = 256

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const lookUp = (table: Readonly<Record<string, string>>, key: unknown): string | undefined =>
  typeof key === 'string' && Object.hasOwn(table, key) ? table[key] : undefined

const identifier = (value: unknown): string | undefined => {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return String(value)
  return typeof value === 'string' && value !== '' ? value : undefined
}

const describe = (value: unknown, collection: string | undefined): DescribedItem | undefined => {
  if (!isObject(value)) return undefined
  const id = identifier(value['id'])
  const said = lookUp(collectionOfType, value['type']) ?? lookUp(collectionOfTaxonomy, value['taxonomy'])
  const known = said ?? collection
  return id === undefined || known === undefined ? undefined : { collection: known, id, properties: value }
}

const describeEmbedded = (item: unknown): readonly (DescribedItem | undefined)[] => {
  const relations = isObject(item) ? item['_embedded'] : undefined
  if (!isObject(relations)) return []
  return Object.entries(relations).flatMap(([relation, linked]) => {
    const collection = lookUp(collectionOfRelation, relation)
    // Terms and replies are lists of lists.
    const members = Array.isArray(linked) ? linked.flat(2) : []
    return members.map((member) => describe(member, collection))
  })
}

const parse = (content: Buffer): unknown => {
  const parsed = content.length > longestContent ? undefined : parsedContent(content)
  return parsed?.kind === 'json' ? parsed.value : undefined
}

/** A forced deletion returns the deleted item. */
const previousOf = (value: Readonly<Record<string, unknown>>): unknown =>
  isObject(value['previous']) ? value['previous'] : undefined

const subjectsOf = (value: unknown): readonly unknown[] | undefined => {
  if (Array.isArray(value)) return value
  return isObject(value) ? [previousOf(value) ?? value] : undefined
}

/** Reads the items of a response of a collection. */
export const describeItems = (content: Buffer, collection: string): Description => {
  const value = parse(content)
  const subjects = subjectsOf(value)
  if (subjects === undefined) return unreadable
  const items = subjects.map((subject) => describe(subject, collection))
  const embedded = subjects.flatMap(describeEmbedded)
  const complete = items.filter((item) => item !== undefined)
  return {
    items: complete.length === items.length ? complete : undefined,
    embedded: embedded.filter((one) => one !== undefined).slice(0, mostEmbedded),
    embeddedKnown: embedded.length <= mostEmbedded && !embedded.includes(undefined),
    deleted: isObject(value) && value['deleted'] === true && previousOf(value) !== undefined,
  }
}
