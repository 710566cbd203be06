import type { UndeclaredParameters } from '../../contracts/validation.ts'
import type { CompiledArgument } from '../validation/argument-rules.ts'
import type { CompiledEndpoint } from '../validation/compile-endpoint.ts'
import { effectiveValue, type Sources } from '../validation/site-arguments.ts'
import { invalidParameters, type Refusal } from '../validation/site-errors.ts'
import { bytesKept, bytesRefused, canonicalSpelling, spellVerbatim } from './canonical-argument.ts'
import { globalParameters, neverForwarded } from './global-parameters.ts'
import { encodeQueryText } from './percent.ts'
import type { PhpValue } from './php-array.ts'

/** What happens to parameters that the contract does not name. Tracking parameters are always dropped. */
export type UnknownParameters = {
  readonly handling: 'strip' | 'forward'
  isTracking(name: string): boolean
}

/** The canonical query, or the refusal of a parameter that has no spelling. */
export type CanonicalQuery =
  | {
      readonly kind: 'canonical'
      readonly query: string
      readonly undeclared: UndeclaredParameters | undefined
    }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

type Spelling = string | undefined | Refusal

const unspellable = (name: string): Refusal => invalidParameters([{ name, issue: 'plain' }])

const spellArgument = (
  argument: CompiledArgument,
  value: PhpValue,
  endpoint: CompiledEndpoint,
  typed: Readonly<Record<string, unknown>>,
): Spelling => {
  const unchecked = argument.checked === 'never' || argument.checked === 'container'
  const spelling = unchecked
    ? spellVerbatim(encodeQueryText(argument.name), value, bytesRefused)
    : canonicalSpelling(argument, typed[argument.name], typed['orderby'])
  if (spelling === undefined) return unspellable(argument.name)
  return spelling === endpoint.defaultSpellings.get(argument.name) ? undefined : spelling
}

const spellGlobal = (name: string, value: PhpValue, typed: Record<string, unknown>): Spelling => {
  const reading = globalParameters.get(name)?.(name, value)
  if (reading === undefined || reading.kind === 'dropped') return undefined
  if (reading.kind === 'refused') return unspellable(name)
  typed[name] = reading.value
  return reading.spelling
}

const spellUnknown = (name: string, value: PhpValue, writing: Writing): Spelling => {
  if (neverForwarded.has(name) || writing.unknown.isTracking(name)) return undefined
  writing.undeclared.push(name)
  if (!isForwarding(writing)) return undefined
  return spellVerbatim(encodeQueryText(name), value, bytesKept) ?? unspellable('query')
}

/**
 * An argument that the path or the content repeats or overrides has no effect in the query. This does not hold for global
 * parameters: WordPress reads most of those from the query alone.
 */
const isOverridden = (name: string, sources: Sources): boolean =>
  sources.content.size > 0 && effectiveValue(sources, name) !== sources.query.get(name)

/** The input of one canonical query. */
type Writing = {
  readonly endpoint: CompiledEndpoint
  readonly sources: Sources
  /** Typed arguments; the values of global parameters are added. */
  readonly typed: Record<string, unknown>
  readonly unknown: UnknownParameters
  /** Names of the undeclared parameters so far. */
  readonly undeclared: string[]
}

/** Handlers of routes without declared arguments may read any parameter. */
const isForwarding = ({ endpoint, unknown }: Writing): boolean =>
  endpoint.isOpen || unknown.handling === 'forward'

const spellParameter = (name: string, value: PhpValue, writing: Writing): Spelling => {
  const { endpoint, sources, typed } = writing
  // `contradictions` has found it equal to the path.
  if (Object.hasOwn(sources.path, name)) return undefined
  const argument = endpoint.arguments.get(name)
  if (argument !== undefined) {
    return isOverridden(name, sources) ? undefined : spellArgument(argument, value, endpoint, typed)
  }
  if (globalParameters.has(name)) return spellGlobal(name, value, typed)
  return spellUnknown(name, value, writing)
}

/**
 * Writes the query in the one spelling of its meaning: defaults dropped, sorted.
 * Injective: the spelling can be read back to exactly the typed values it was written from.
 */
export const canonicalQuery = (given: Omit<Writing, 'undeclared'>): CanonicalQuery => {
  const parts: string[] = []
  const writing: Writing = { ...given, undeclared: [] }
  for (const [name, value] of writing.sources.query) {
    const spelling = spellParameter(name, value, writing)
    if (typeof spelling === 'object') return { kind: 'refused', refusal: spelling }
    if (spelling !== undefined) parts.push(spelling)
  }
  const query = parts.length > 1 ? parts.sort().join('&') : (parts[0] ?? '')
  const names = writing.undeclared
  if (names.length === 0) return { kind: 'canonical', query, undeclared: undefined }
  const handling = isForwarding(writing) ? 'sent' : 'stripped'
  return { kind: 'canonical', query, undeclared: { handling, names } }
}
