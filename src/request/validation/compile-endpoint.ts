import type { ArgumentSchema, Endpoint, Row } from '../../contracts/row.ts'
import { canonicalSpelling } from '../canonical/canonical-argument.ts'
import {
  alsoAccepted,
  type CompiledArgument,
  checkedWhen,
  emptyIsNone,
  isInstant,
  isStatusFilter,
  listOrder,
  termFilterOf,
} from './argument-rules.ts'
import { sanitiseValue } from './sanitise-value.ts'

/** An endpoint ready to validate with. */
export type CompiledEndpoint = {
  readonly arguments: ReadonlyMap<string, CompiledArgument>
  readonly required: readonly string[]
  /** Typed values of all arguments that have a default. */
  readonly defaults: Readonly<Record<string, unknown>>
  /** Canonical spelling of each default, e.g. `page=1`: what is dropped from a query. */
  readonly defaultSpellings: ReadonlyMap<string, string>
  /** No argument is declared: handlers of such routes read what they like, so nothing is known to be unknown. */
  readonly isOpen: boolean
}

const compileArgument = (
  row: Row,
  endpoint: Endpoint,
  name: string,
  schema: ArgumentSchema,
  position: number,
): CompiledArgument => ({
  name,
  position,
  schema,
  checked: checkedWhen(row, endpoint, name, schema),
  alsoAccepts: alsoAccepted(row, endpoint, name),
  isStatusFilter: isStatusFilter(endpoint, name, schema),
  emptyIsNone: emptyIsNone(endpoint, name),
  isInstant: isInstant(name, schema),
  order: listOrder(endpoint, name),
  termFilter: termFilterOf(schema),
})

/** Does the work that an endpoint's requests share. */
export const compileEndpoint = (row: Row, endpoint: Endpoint): CompiledEndpoint => {
  const compiled = new Map<string, CompiledArgument>()
  const defaults: Record<string, unknown> = {}
  const defaultSpellings = new Map<string, string>()
  for (const [name, schema] of Object.entries(endpoint.arguments)) {
    const argument = compileArgument(row, endpoint, name, schema, compiled.size)
    compiled.set(name, argument)
    // A default of null counts as none: WordPress asks isset().
    if (schema.default === undefined || schema.default === null) continue
    const typed = sanitiseValue(schema.default, schema)
    defaults[name] = typed
    defaultSpellings.set(name, canonicalSpelling(argument, typed, undefined))
  }
  const required = Object.entries(endpoint.arguments).flatMap(([name, schema]) =>
    schema.required === true ? [name] : [],
  )
  return { arguments: compiled, required, defaults, defaultSpellings, isOpen: compiled.size === 0 }
}
