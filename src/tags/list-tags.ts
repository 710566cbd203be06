import type { CollectionTags } from '../contracts/site/tags.ts'
import type { Description } from './described-items.ts'
import {
  appliedFilter,
  isComplete,
  looksAtModified,
  looksAtRelations,
  looksAtText,
  showsOnly,
  statusesOf,
} from './list-filter.ts'
import type { TagNames } from './tag-names.ts'
import type { TaggedArguments, TaggedResponse } from './tagger.ts'

/** Item tags beyond this are left out: other tags must then do. */
export const mostItemTags = 256

/** Are all items known by their own tags? */
const itemsKnown = ({ items }: Description): boolean => items !== undefined && items.length <= mostItemTags

/** Tags of a list besides those of the items that it shows: by which of the items that it does not show it may change. */
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
    ...(isUnknown || looksAtText(args) ? [names.text(collection)] : []),
    ...(isUnknown || looksAtModified(args) ? [names.modified(collection)] : []),
  ]
  const relatedUnless = (filters: readonly string[]): readonly string[] =>
    looksAtRelations(args, filters) ? [names.related(collection)] : []
  const listed = entry.refinement?.listed
  if (listed !== undefined && !showsOnly(args, listed)) {
    const statuses = statusesOf(args).map((status) => names.innerOf(collection, status))
    return [names.inner(collection), ...statuses, ...relatedUnless([]), ...text]
  }
  const filter = appliedFilter(entry.filters, args)
  if (filter === undefined) return [names.list(collection), ...relatedUnless([]), ...text]
  const { argument, property } = filter
  const whole = itemsKnown(description) && isComplete(args, response.fields)
  return [
    ...filter.values.map((value) => names.filtered(collection, property, value)),
    names.filteredBy(collection, property),
    ...(whole ? [] : [names.unsure(collection)]),
    ...relatedUnless([argument]),
    ...text,
  ]
}
