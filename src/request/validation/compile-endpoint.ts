import type { Endpoint, Row } from '../../contracts/row.ts'
import { canonicalSpelling } from '../canonical/canonical-argument.ts'
import { type CompiledArgument, compileArgument } from './argument-rules.ts'
import { sanitiseValue } from './check-value.ts'

export type CompiledEndpoint = {
  readonly arguments: ReadonlyMap<string, CompiledArgument>
  readonly required: readonly string[]
  /** Typed values of all arguments that have a default. */
  readonly defaults: Readonly<Record<string, unknown>>
  /** Canonical spelling of each default, e.g. `page=1`: what is dropped from a query. */
  readonly defaultSpellings: ReadonlyMap<string, string>
  /** No argument is declared: handlers of such routes may read any parameter. */
  readonly isOpen: boolean
}

/** Does the work that all requests of an endpoint share. */
export const compileEndpoint = (row: Row, endpoint: Endpoint): CompiledEndpoint => {
  const compiled = new Map<string, CompiledArgument>()
  const defaults: Record<string, unknown> = {}
  const defaultSpellings = new Map<string, string>()
  for (const [name, schema] of Object.entries(endpoint.arguments)) {
    const argument = compileArgument(row, endpoint, name, schema, compiled.size)
    compiled.set(name, argument)
    // A default of null is none: WordPress tests it with isset().
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
