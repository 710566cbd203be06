import { linkedItems, namedItems } from '../../contracts/site/tags.ts'
import type { DescribedItem, Description } from './described-items.ts'
import { integersOf } from './list-filter.ts'
import type { TagNames } from './tag-names.ts'

/** A response that names more items counts as one that may name any item. */
const mostNamed = 128

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

/** The same for a response that depends on the names of the items. */
const namesOf = (names: TagNames, ids: readonly number[], collection: string): readonly string[] =>
  ids.map((id) => names.nameShownBy(collection, String(id)) ?? names.nameShownBySome(collection))

type Properties = DescribedItem['properties']

/** Fields that `_fields` omits may still show in links and classes. */
const tellsOtherwise = (properties: Properties): boolean =>
  ['class_list', 'link', '_links'].some((name) => properties[name] !== undefined)

const itemsNamedBy = (names: TagNames, value: unknown, collection: string): readonly string[] => {
  const ids = integersOf(value)
  if (ids === undefined) return anyOf(names, collection)
  // A single id has no order.
  return ids.length === 1
    ? idsOf(names, ids, collection)
    : [...idsOf(names, ids, collection), ...namesOf(names, ids, collection)]
}

const namedProperties = Object.entries(namedItems)

const namedIn = (names: TagNames, properties: Properties, expected: readonly string[]): readonly string[] => {
  const tags: string[] = []
  for (const [property, collection] of namedProperties) {
    const value = properties[property]
    if (value === undefined) {
      if (expected.includes(property) && tellsOtherwise(properties)) tags.push(...anyOf(names, collection))
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
  const collection = Object.hasOwn(linkedItems, object) ? linkedItems[object] : undefined
  if (collection === undefined) return []
  const ids = integersOf(id)
  return ids === undefined
    ? anyOf(names, collection)
    : [...idsOf(names, ids, collection), ...namesOf(names, ids, collection)]
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
  return tags.size > mostNamed ? someOf(names) : [...tags]
}
