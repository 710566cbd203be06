import type { Endpoint } from '../contracts/row.ts'
import type { Validation, ValidationInput, Validator } from '../contracts/validation.ts'
import { type CompiledEndpoint, compileEndpoint } from './canonical/canonical-argument.ts'
import { canonicalQuery, hasInvalidCallback, type UnknownParameters } from './canonical/canonical-query.ts'
import { parsePhpQuery, trackingMatcher } from './canonical/php-query.ts'
import {
  contradictions,
  invalidArguments,
  missingArguments,
  readSiteContent,
  type Sources,
  typedArguments,
} from './validation/site-arguments.ts'
import {
  contradiction,
  invalidCallback,
  invalidParameters,
  missingParameters,
  type Refusal,
  unreadQuery,
} from './validation/site-errors.ts'

export type SiteValidatorOptions = {
  readonly limits: {
    /** More parameters in a query are refused: PHP silently drops what exceeds its own limit. */
    readonly queryParameters: number
    /** Deepest nesting of JSON content. */
    readonly jsonDepth: number
  }
  readonly unknownParameters: 'strip' | 'forward'
  /** Names that are always dropped; a trailing `*` matches any ending. */
  readonly trackingParameters: readonly string[]
}

const refuse = (endpoint: CompiledEndpoint, sources: Sources): Refusal | undefined => {
  const missing = missingArguments(endpoint, sources)
  if (missing.length > 0) return missingParameters(missing)
  const invalid = invalidArguments(endpoint, sources)
  if (invalid.length > 0) return invalidParameters(invalid)
  const contradicted = contradictions(endpoint, sources)
  return contradicted.length > 0 ? contradiction(contradicted) : undefined
}

/** Validates requests of the site contract as WordPress does, and writes their query in the one spelling of its meaning. */
export const createSiteValidator = (options: SiteValidatorOptions): Validator => {
  const { limits } = options
  const unknown: UnknownParameters = {
    handling: options.unknownParameters,
    isTracking: trackingMatcher(options.trackingParameters),
  }
  const compiled = new WeakMap<Endpoint, CompiledEndpoint>()

  const endpointOf = (input: ValidationInput): CompiledEndpoint => {
    const known = compiled.get(input.endpoint)
    if (known !== undefined) return known
    const fresh = compileEndpoint(input.row, input.endpoint)
    compiled.set(input.endpoint, fresh)
    return fresh
  }

  const validate = (input: ValidationInput): Validation => {
    // The request target is short, so names in it need no separate bound.
    const query = parsePhpQuery(input.query, limits.queryParameters, input.query.length)
    if (query.kind !== 'read') return unreadQuery(query.kind)
    if (hasInvalidCallback(query.parameters)) return invalidCallback()
    const endpoint = endpointOf(input)
    const isDeclared = (name: string): boolean =>
      endpoint.arguments.has(name) || Object.hasOwn(input.pathParameters, name)
    const content = readSiteContent(input, limits.jsonDepth, isDeclared)
    if (content.kind === 'refused') return content.refusal
    const sources: Sources = {
      content: content.parameters,
      query: query.parameters,
      path: input.pathParameters,
    }
    const refusal = refuse(endpoint, sources)
    if (refusal !== undefined) return refusal
    const typed = typedArguments(endpoint, sources)
    const canonical = canonicalQuery({ endpoint, sources, typed, unknown })
    if (canonical.kind === 'refused') return canonical.refusal
    const { query: written, undeclared } = canonical
    return undeclared === undefined
      ? { kind: 'valid', query: written, arguments: typed }
      : { kind: 'valid', query: written, arguments: typed, undeclared }
  }

  return { validate }
}
