import type { ArgumentSchema } from '../contracts/row.ts'
import type { CheckedWhen, ListOrder } from './argument-rules.ts'
import type { TermFilter } from './term-filter.ts'

/** One argument with everything about it that does not depend on the request. */
export type CompiledArgument = {
  readonly name: string
  /** Its place in the endpoint's own order: errors of the early phase are listed by it. */
  readonly position: number
  readonly schema: ArgumentSchema
  readonly checked: CheckedWhen
  readonly alsoAccepts: ReadonlySet<string>
  readonly isStatusFilter: boolean
  /** Anything empty stands for no value at all. */
  readonly emptyIsNone: boolean
  readonly isInstant: boolean
  readonly order: ListOrder
  readonly termFilter: TermFilter | undefined
}
