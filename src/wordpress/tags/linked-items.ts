import type { TagNames } from '../../cache/tag-names.ts'
import { isJsonObject } from '../../http/json-text.ts'
import { type DescribedItem, integersOf, itemInPath, type Properties } from './described-items.ts'
import type { ItemState } from './written-change.ts'

/**
 * Properties with the reach `linked` (routes/properties.ts) show their item, what it names (author, terms, images, parent), the comments
 * to it, and settings of the site. What is written rarely (users, settings, names and addresses of terms and pages) reaches all of them:
 * breadcrumbs show the names of all ancestors, and titles may show those of a user or of the page of posts.
 */

/** Where an item names others: undefined properties were trimmed by `_fields`. */
const named: Readonly<
  Record<string, readonly (readonly [property: string, collections: readonly string[]])[]>
> = {
  posts: [
    ['categories', ['categories']],
    ['tags', ['tags']],
    ['featured_media', ['media']],
  ],
  pages: [
    ['featured_media', ['media']],
    ['parent', ['pages']],
  ],
  media: [['post', ['posts', 'pages']]],
  categories: [],
  tags: [],
  users: [],
}

const imagesIn = ({ content, description }: Properties): readonly string[] => {
  const texts = [content, description].map((one) => (isJsonObject(one) ? String(one['rendered']) : ''))
  return [...texts.join(' ').matchAll(/wp-image-(\d{1,10})/g)].map(([, id = '']) => id)
}

const linksOf = (
  names: TagNames,
  { collection, id, properties }: DescribedItem,
): readonly (string | undefined)[] => {
  const relations = named[collection]
  if (relations === undefined) return [undefined]
  const others = relations.flatMap(([property, collections]) => {
    const value = properties[property]
    if (Array.isArray(value) && value.length === 0) return []
    const ids = integersOf(value)
    if (ids === undefined) return [undefined]
    return ids
      .filter((one) => one !== 0)
      .flatMap((one) => collections.map((other) => names.linkedTo(other, String(one))))
  })
  const images = imagesIn(properties).map((image) => names.linkedTo('media', image))
  return [names.linkedTo(collection, id), ...others, ...images]
}

/** Tags of a response whose items have properties with the reach `linked`. */
export const linkedTags = (names: TagNames, items: readonly DescribedItem[]): readonly string[] => {
  const tags = items.flatMap((item) => linksOf(names, item))
  const known = tags.filter((tag) => tag !== undefined)
  return known.length < tags.length ? [names.unknownDependencies] : [names.linked, ...known]
}

/** What of an item others show by its links: their names, addresses and places. */
const shownByLinks: Readonly<Record<string, readonly string[]>> = {
  posts: [],
  pages: ['title', 'slug', 'link', 'status', 'parent'],
  categories: ['name', 'slug', 'link', 'parent'],
  tags: ['name', 'slug', 'link'],
  media: ['slug', 'link', 'status', 'post', 'source_url', 'media_details', 'mime_type'],
}

const keeps = (before: ItemState, after: ItemState, properties: readonly string[]): boolean => {
  if (properties.length === 0) return true
  if (before === undefined || after === undefined || before === 'absent' || after === 'absent') return false
  return properties.every(
    (name) => before[name] !== undefined && JSON.stringify(before[name]) === JSON.stringify(after[name]),
  )
}

const linkedToAll = (names: TagNames, collection: string, ids: readonly string[]): readonly string[] => {
  const tags = ids.map((id) => names.linkedTo(collection, id)).filter((tag) => tag !== undefined)
  return tags.length < ids.length || ids.length === 0 ? [names.linked] : tags
}

/** The posts that show how many comments they have. */
const commentedBy = (names: TagNames, items: readonly DescribedItem[]): readonly string[] => {
  const posts = items.flatMap(({ properties }) => integersOf(properties['post']) ?? [])
  if (posts.length < items.length || items.length === 0) return [names.linked]
  return ['posts', 'pages', 'media'].flatMap((of) => linkedToAll(names, of, posts.map(String)))
}

/** Tags of the responses with `linked` properties that a write reaches. */
export const linkedByWrite = (
  names: TagNames,
  { collection, match }: { readonly collection: string; readonly match: Parameters<typeof itemInPath>[0] },
  { before, after }: { readonly before: ItemState; readonly after: ItemState },
  items: readonly DescribedItem[],
): readonly string[] => {
  // Renders a block, and stores nothing.
  if (collection === 'block-renderer') return []
  if (collection === 'comments') return commentedBy(names, items)
  const shown = shownByLinks[collection]
  if (shown === undefined) return [names.linked]
  // Nothing links to a new item yet.
  if (before === 'absent') return []
  const inPath = itemInPath(match)
  const ids = inPath === undefined ? items.map(({ id }) => id) : [inPath]
  return keeps(before, after, shown) ? linkedToAll(names, collection, ids) : [names.linked]
}
