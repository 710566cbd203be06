import type { ListFilter } from '../contracts/site/tags.ts'
import { type FieldLines, fieldValue } from '../http/fields.ts'
import type { TaggedArguments } from './tagger.ts'

/** The values of a filter that a list stands under. */
export type AppliedFilter = { readonly property: string; readonly values: readonly number[] }

/** One value, or a list of values of which an item has to have one. */
export const integersOf = (value: unknown): readonly number[] | undefined => {
  const values: readonly unknown[] = Array.isArray(value) ? value : [value]
  const integers = values.filter((one): one is number => typeof one === 'number' && Number.isSafeInteger(one))
  return integers.length === values.length && integers.length > 0 ? integers : undefined
}

/** The whole list is in this one answer, so that its content tells what is in it. */
const isComplete = (args: TaggedArguments, fields: FieldLines): boolean => {
  const pages = fieldValue(fields, 'x-wp-totalpages')
  const first = args['page'] === undefined || args['page'] === 1
  return (pages === '0' || pages === '1') && first && args['offset'] === undefined
}

/** Arguments under which a list holds items that do not meet one of its filters. */
const loosens = (args: TaggedArguments): boolean =>
  args['tax_relation'] === 'OR' || args['ignore_sticky'] === false

/** The filter that proves a list untouched by a write, or undefined when nothing proves it. */
export const appliedFilter = (
  filters: readonly ListFilter[],
  args: TaggedArguments,
  fields: FieldLines,
): AppliedFilter | undefined => {
  if (loosens(args) || !isComplete(args, fields)) return undefined
  for (const { argument, property } of filters) {
    const values = args[argument] === undefined ? undefined : integersOf(args[argument])
    if (values !== undefined) return { property, values }
  }
  return undefined
}
