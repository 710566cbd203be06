import type { ArgumentSchema } from '../contracts/row.ts'
import { sortedSet } from './sorted-set.ts'

/** The two sides of WordPress's taxonomy filters: a list of term ids, or an object with `terms` and how to combine them. */
export type TermFilter = { readonly list: ArgumentSchema; readonly query: ArgumentSchema }

/** The two schemas of a term filter, or undefined for any other argument. */
export const termFilterOf = (schema: ArgumentSchema): TermFilter | undefined => {
  const [list, query] = schema.oneOf ?? []
  if (schema.oneOf?.length !== 2 || list?.type !== 'array' || query?.type !== 'object') return undefined
  return query.properties?.['terms']?.type === 'array' && query.additionalProperties === false
    ? { list, query }
    : undefined
}

const asRecord = (value: unknown): Record<string, unknown> => value as Record<string, unknown>

/**
 * The shorter form when both mean the same: properties at their default go, and what is then only a list of terms becomes the
 * list.
 */
export const shortestTermFilter = (value: unknown, filter: TermFilter): unknown => {
  if (Array.isArray(value)) return sortedSet(value)
  const shortened: Record<string, unknown> = {}
  for (const [name, member] of Object.entries(asRecord(value))) {
    const property = filter.query.properties?.[name]
    if (name === 'terms') shortened['terms'] = sortedSet(member as unknown[])
    else if (property?.default !== member) shortened[name] = member
  }
  const { terms, ...rest } = shortened as { terms?: unknown[] }
  // An empty list is refused as a term filter, so an object without terms has no shorter form.
  if (terms === undefined || terms.length === 0 || Object.keys(rest).length > 0) {
    return Object.keys(shortened).length === 0 ? value : shortened
  }
  return terms
}
