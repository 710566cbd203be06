import type { ListOrder } from './argument-rules.ts'
import { spell } from './canonical-value.ts'
import type { CompiledArgument } from './compiled-argument.ts'
import { canonicalDateTime } from './date-time.ts'
import { encodeQueryText } from './percent.ts'
import { isContainer } from './php-array.ts'
import { distinct, sortedSet } from './sorted-set.ts'
import { shortestTermFilter } from './term-filter.ts'

const orderedList = (list: readonly unknown[], order: ListOrder, orderby: unknown): readonly unknown[] => {
  if (list.some(isContainer)) return list
  switch (order.kind) {
    case 'set':
      return sortedSet(list)
    case 'set-unless':
      // FIELD(id, 5, 5) finds the first 5, so repetitions mean nothing even where the order counts.
      return order.orderby === orderby ? distinct(list) : sortedSet(list)
    case 'sequence':
      return list
  }
}

/** The one value that stands for all values of the same meaning. */
const canonicalValue = (argument: CompiledArgument, value: unknown, orderby: unknown): unknown => {
  if (argument.termFilter !== undefined) return shortestTermFilter(value, argument.termFilter)
  if (Array.isArray(value)) return orderedList(value, argument.order, orderby)
  return argument.isInstant && typeof value === 'string' ? canonicalDateTime(value) : value
}

/** `name=value` in the one spelling of its meaning. `orderby` is the value of that argument in the same request. */
export const canonicalSpelling = (argument: CompiledArgument, value: unknown, orderby: unknown): string => {
  const name = encodeQueryText(argument.name)
  const canonical = canonicalValue(argument, value, orderby)
  if (argument.termFilter === undefined) return spell(name, canonical, argument.schema)
  if (!Array.isArray(canonical)) return spell(name, canonical, argument.termFilter.query)
  // The empty text would fit both sides of a term filter and be refused; a lone comma is an empty list only.
  return canonical.length === 0 ? `${name}=,` : spell(name, canonical, argument.termFilter.list)
}
