import type { TagNames } from '../../cache/tag-names.ts'
import { parsedContent } from '../../http/bodies/json-readability.ts'
import { type HeaderLines, headerValue } from '../../http/headers/header-lines.ts'
import { isJsonObject } from '../../http/json-text.ts'
import type { Found } from '../../service/row.ts'
import type { TaggedArguments, TaggedResponse } from '../../service/tagger.ts'
import { coreProperties, listedByName } from '../routes/properties.ts'
import {
  type CollectionTags,
  classOfTerm,
  collectionOfRelation,
  collectionOfTaxonomy,
  collectionOfType,
  type ListFilter,
  linkedItems,
  namedItems,
} from './tags.ts'

export type Properties = Readonly<Record<string, unknown>>

/** A JSON object in a response that is an item of a collection. */
export type DescribedItem = {
  readonly collection: string
  readonly id: string
  readonly properties: Properties
}

export type Description = {
  /** The items in the response; undefined if an item has no id or the content cannot be read. */
  readonly items: readonly DescribedItem[] | undefined
  readonly embedded: readonly DescribedItem[]
  readonly embeddedKnown: boolean
  /** The response describes a deleted item. */
  readonly deleted: boolean
  /** Properties that WordPress itself does not give; undefined when the content was not read: too long, or no JSON. */
  readonly added: readonly AddedProperty[] | undefined
  /** The parsed content. */
  readonly value: unknown
}

/** A property that WordPress itself does not give. */
export type AddedProperty = {
  readonly name: string
  readonly properties: Properties
  /** What has it, where it is an item with an id. */
  readonly item: DescribedItem | undefined
}

const unreadable: Description = {
  items: undefined,
  embedded: [],
  embeddedKnown: false,
  deleted: false,
  added: undefined,
  value: undefined,
}

/** Longer content gets coarse tags: reading it would delay other requests too long. */
const longestContent = 262_144
const maxEmbedded = 256

export const lookUp = <Value>(table: Readonly<Record<string, Value>>, key: unknown): Value | undefined =>
  typeof key === 'string' && Object.hasOwn(table, key) ? table[key] : undefined

const identifier = (value: unknown): string | undefined => {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return String(value)
  return typeof value === 'string' && value !== '' ? value : undefined
}

const describe = (value: unknown, collection: string | undefined): DescribedItem | undefined => {
  if (!isJsonObject(value)) return undefined
  const id = identifier(value['id'])
  const ofItem = lookUp(collectionOfType, value['type']) ?? lookUp(collectionOfTaxonomy, value['taxonomy'])
  const itsCollection = ofItem ?? collection
  return id === undefined || itsCollection === undefined
    ? undefined
    : { collection: itsCollection, id, properties: value }
}

const describeEmbedded = (item: unknown): readonly (DescribedItem | undefined)[] => {
  const relations = isJsonObject(item) ? item['_embedded'] : undefined
  if (!isJsonObject(relations)) return []
  return Object.entries(relations).flatMap(([relation, linked]) => {
    const collection = lookUp(collectionOfRelation, relation)
    // Terms and replies are lists of lists.
    const members = Array.isArray(linked) ? linked.flat(2) : []
    return members.map((member) => describe(member, collection))
  })
}

/** A forced deletion returns the deleted item. */
const previousOf = (value: Properties): unknown =>
  isJsonObject(value['previous']) ? value['previous'] : undefined

const subjectsOf = (value: unknown): readonly unknown[] | undefined => {
  if (Array.isArray(value)) return value
  return isJsonObject(value) ? [previousOf(value) ?? value] : undefined
}

const noNames: ReadonlySet<string> = new Set()

/** The properties of an object that its collections do not give it; settings and contact forms may have any. */
const addedTo = (subject: unknown, of: string, item: DescribedItem | undefined): readonly AddedProperty[] => {
  const names = lookUp(coreProperties, of)
  const orOf = item?.collection
  const more = orOf === of ? undefined : lookUp(coreProperties, orOf)
  const given = names ?? more
  if (given === undefined || !isJsonObject(subject)) return []
  const others = given === names ? (more ?? noNames) : noNames
  return Object.keys(subject)
    .filter((name) => !given.has(name) && !others.has(name))
    .map((name) => ({ name, properties: subject, item }))
}

/** Of a response that lists items by name, the items. */
const namedMembers = (value: unknown, collection: string, isList: boolean): readonly unknown[] | undefined =>
  isList && listedByName.has(collection) && isJsonObject(value) ? Object.values(value) : undefined

const addedIn = (
  subjects: readonly unknown[],
  collection: string,
  items: readonly (DescribedItem | undefined)[],
  embedded: readonly DescribedItem[],
): readonly AddedProperty[] => [
  ...subjects.flatMap((subject, at) => addedTo(subject, collection, items[at])),
  ...embedded.flatMap((item) => addedTo(item.properties, item.collection, item)),
]

export const describeItems = (content: Buffer, collection: string, isList = false): Description => {
  if (content.length > longestContent) return unreadable
  const value = parsedContent(content)
  const subjects = subjectsOf(value)
  if (subjects === undefined) return unreadable
  const items = subjects.map((subject) => describe(subject, collection))
  const embedded = subjects.flatMap(describeEmbedded)
  const complete = items.filter((item) => item !== undefined)
  const described = embedded.filter((item) => item !== undefined)
  return {
    value,
    added: addedIn(namedMembers(value, collection, isList) ?? subjects, collection, items, described),
    items: complete.length === items.length ? complete : undefined,
    embedded: described.slice(0, maxEmbedded),
    embeddedKnown: embedded.length <= maxEmbedded && !embedded.includes(undefined),
    deleted: isJsonObject(value) && value['deleted'] === true && previousOf(value) !== undefined,
  }
}

/** 0 means not attached; true and false are 1 and 0. */
const asInteger = (value: unknown): number | undefined => {
  if (typeof value === 'boolean' || value === null) return Number(value)
  return typeof value === 'number' && Number.isSafeInteger(value) ? value : undefined
}

/** One value, or a list of which an item must have one. */
export const integersOf = (value: unknown): readonly number[] | undefined => {
  const values: readonly unknown[] = Array.isArray(value) ? value : [value]
  const integers = values.map(asInteger).filter((integer) => integer !== undefined)
  return integers.length === values.length && integers.length > 0 ? integers : undefined
}

/** Does the response contain all members of the list? WordPress counts items that the client may not see. */
const isComplete = (args: TaggedArguments, fields: HeaderLines, shown: number): boolean => {
  const pages = headerValue(fields, 'x-wp-totalpages')
  const total = headerValue(fields, 'x-wp-total')
  if (total !== undefined && Number(total) !== shown) return false
  const first = args['page'] === undefined || args['page'] === 1
  return (pages === '0' || pages === '1') && first && args['offset'] === undefined
}

/** Arguments with which a list also contains items that do not match a filter. */
const ignoresFilters = (args: TaggedArguments): boolean =>
  args['tax_relation'] === 'OR' || args['ignore_sticky'] === false

/** The filter that proves that items outside it do not change the list, with its values; undefined if there is none. */
const appliedFilter = (filters: readonly ListFilter[], args: TaggedArguments) => {
  if (ignoresFilters(args)) return undefined
  for (const { argument, property } of filters) {
    const given = args[argument]
    const values = given === undefined || given === null ? undefined : integersOf(given)
    if (values !== undefined) return { argument, property, values }
  }
  return undefined
}

const given = (args: TaggedArguments, name: string): boolean =>
  args[name] !== undefined && args[name] !== null && args[name] !== ''

const byText: ReadonlySet<unknown> = new Set(['title', 'relevance', 'name', 'description', 'email'])

const dependsOnText = (args: TaggedArguments): boolean => given(args, 'search') || byText.has(args['orderby'])

/** Does the list depend on the time of the last change, which every update changes? */
const dependsOnModified = (args: TaggedArguments): boolean =>
  ['modified_after', 'modified_before'].some((name) => given(args, name)) || args['orderby'] === 'modified'

/** Arguments that make a list depend on nothing but texts, dates and statuses. */
const independent: ReadonlySet<string> = new Set([
  ...['_embed', '_envelope', '_fields', '_jsonp', '_locale', '_pretty', 'context', 'password'],
  ...['page', 'per_page', 'offset', 'order', 'search', 'search_columns', 'search_semantics'],
  ...['include', 'exclude', 'slug', 'after', 'before', 'modified_after', 'modified_before', 'status'],
])

const orders: ReadonlySet<unknown> = new Set([
  ...['date', 'id', 'include', 'include_slugs', 'modified', 'relevance', 'slug', 'title'],
])

const isDependent = (name: string, value: unknown): boolean => {
  if (value === undefined || value === null || value === '') return false
  if (Array.isArray(value) && value.length === 0) return false
  if (name === 'orderby') return !orders.has(value)
  // Default values.
  return !(name === 'ignore_sticky' && value === true) && !(name === 'tax_relation' && value === 'AND')
}

/** Does the list depend on more than texts, dates and statuses of its items, or the properties of `filters`? */
const dependsOnRelations = (args: TaggedArguments, filters: readonly string[]): boolean =>
  Object.keys(args).some(
    (name) => !independent.has(name) && !filters.includes(name) && isDependent(name, args[name]),
  )

const statusesOf = (args: TaggedArguments): readonly string[] => {
  const asked = args['status']
  const statuses: readonly unknown[] = Array.isArray(asked) ? asked : [asked]
  const texts = statuses.filter((status) => typeof status === 'string')
  return texts.length === statuses.length ? texts : ['any']
}

const showsOnly = (args: TaggedArguments, status: string): boolean => {
  const asked = args['status']
  if (asked === undefined) return true
  return Array.isArray(asked) ? asked.length === 1 && asked[0] === status : asked === status
}

/** Above this number, broader tags replace item tags. */
export const maxItemTags = 256

const itemsKnown = ({ items }: Description): boolean => items !== undefined && items.length <= maxItemTags

/** Tags of a list for items that it does not show but that may join it. */
export const listTags = (
  names: TagNames,
  collection: string,
  entry: CollectionTags,
  args: TaggedArguments,
  response: TaggedResponse,
  description: Description,
): readonly string[] => {
  const isUnknown = !itemsKnown(description)
  const text = [
    ...(isUnknown || dependsOnText(args) ? [names.text(collection)] : []),
    ...(isUnknown || dependsOnModified(args) ? [names.modified(collection)] : []),
  ]
  const relatedUnless = (filters: readonly string[]): readonly string[] =>
    dependsOnRelations(args, filters) ? [names.related(collection)] : []
  const listed = entry.refinement?.listed
  if (listed !== undefined && !showsOnly(args, listed)) {
    const statuses = statusesOf(args).map((status) => names.innerOf(collection, status))
    return [names.inner(collection), ...statuses, ...relatedUnless([]), ...text]
  }
  const filter = appliedFilter(entry.filters, args)
  if (filter === undefined) return [names.list(collection), ...relatedUnless([]), ...text]
  const { argument, property } = filter
  const whole = itemsKnown(description) && isComplete(args, response.headers, description.items?.length ?? 0)
  return [
    ...filter.values.map((value) => names.filtered(collection, property, value)),
    names.filteredBy(collection, property),
    ...(whole ? [] : [names.unsure(collection)]),
    ...relatedUnless([argument]),
    ...text,
  ]
}

/** A response that names more items counts as one that may name any item. */
const maxNamed = 128

/** Tags of a response that may name any item of a collection. */
const anyOf = (names: TagNames, collection: string): readonly string[] => [
  names.shownBySome(collection),
  names.nameShownBySome(collection),
]

const someOf = (names: TagNames): readonly string[] => {
  const named = new Set([...Object.values(namedItems), ...Object.values(linkedItems)])
  return [...named].flatMap((collection) => anyOf(names, collection))
}

const idsOf = (names: TagNames, ids: readonly number[], collection: string): readonly string[] =>
  ids.map((id) => names.shownBy(collection, String(id)) ?? names.shownBySome(collection))

/** Of a response that also depends on the names of the items. */
const idsAndNamesOf = (names: TagNames, ids: readonly number[], collection: string): readonly string[] => [
  ...idsOf(names, ids, collection),
  ...ids.map((id) => names.nameShownBy(collection, String(id)) ?? names.nameShownBySome(collection)),
]

/** Fields that `_fields` omits may still show in links and classes. */
const tellsOtherwise = ({ class_list, link, _links }: Properties): boolean =>
  class_list !== undefined || link !== undefined || _links !== undefined

/** Pages and media have terms where a plugin says so: their classes show it when `_fields` omits the terms. */
const classesShow = ({ class_list: classes }: Properties, collection: string): boolean => {
  const start = lookUp(classOfTerm, collection)
  // PHP writes a list with gaps as an object.
  return start !== undefined && Object.values(classes ?? {}).some((name) => String(name).startsWith(start))
}

const itemsNamedBy = (names: TagNames, value: unknown, collection: string): readonly string[] => {
  const ids = integersOf(value)
  if (ids === undefined) return anyOf(names, collection)
  // A single id has no order.
  return (ids.length === 1 ? idsOf : idsAndNamesOf)(names, ids, collection)
}

const namedProperties = Object.entries(namedItems)

const namedIn = (names: TagNames, properties: Properties, expected: readonly string[]): readonly string[] => {
  const tags: string[] = []
  for (const [property, collection] of namedProperties) {
    const value = properties[property]
    if (value === undefined) {
      const mayShow = expected.includes(property)
        ? tellsOtherwise(properties)
        : classesShow(properties, collection)
      if (mayShow) tags.push(...anyOf(names, collection))
      continue
    }
    if (value === 0 || (Array.isArray(value) && value.length === 0)) continue
    tags.push(...itemsNamedBy(names, value, collection))
  }
  return tags
}

/** The target of a menu item. */
const linkedBy = (names: TagNames, { type, object, object_id: id }: Properties): readonly string[] => {
  if (type === 'custom') return []
  if (typeof object !== 'string') return someOf(names)
  const collection = lookUp(linkedItems, object)
  if (collection === undefined) return []
  const ids = integersOf(id)
  return ids === undefined ? anyOf(names, collection) : idsAndNamesOf(names, ids, collection)
}

const imageTags = (names: TagNames, content: Buffer): readonly string[] => {
  // Most responses contain no image: searching the octets is cheaper than making a text of them.
  if (!content.includes('wp-image-')) return []
  const images = [...content.toString('latin1').matchAll(/wp-image-(\d{1,10})/g)]
  return images.map(([, id = '']) => names.shownBy('media', id) ?? names.shownBySome('media'))
}

/** Tags of the items that a response names by id, and of the images in its texts. */
export const namedTags = (
  names: TagNames,
  expected: readonly string[],
  /** False for revisions, which omit some fields. */
  isWhole: boolean,
  content: Buffer,
  { items }: Description,
): readonly string[] => {
  if (items === undefined) return someOf(names)
  const linksItems = expected.includes('object_id')
  const named = items.flatMap(({ properties }) =>
    linksItems ? linkedBy(names, properties) : namedIn(names, properties, isWhole ? expected : []),
  )
  const tags = new Set([...named, ...imageTags(names, content)])
  return tags.size > maxNamed ? someOf(names) : [...tags]
}

/** The item in a path; revisions and autosaves are parts of their parent. */
export const itemInPath = ({
  pathParameters: { id, parent },
}: Pick<Found, 'pathParameters'>): string | undefined => parent ?? id
