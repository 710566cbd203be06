import { memoizeByObject } from '../../http/memo.ts'
import type { ArgumentSchema } from '../../service/row.ts'
import { hasMember, isContainer, memberOf } from './php-query.ts'
import { type Issue, listInWords } from './site-errors.ts'

/** A parameter, so that this file and the one with all types do not import each other. */
type Check = (value: unknown, schema: ArgumentSchema, path: string) => Issue | undefined

/** The schema that a value matches, or why it matches none or more than one. */
export type SchemaMatch =
  | { readonly kind: 'matched'; readonly schema: ArgumentSchema }
  | { readonly kind: 'unmatched'; readonly issue: Issue }

type SchemaFailure = { readonly index: number; readonly schema: ArgumentSchema; readonly issue: Issue }

/** With the type of its parent where it has none; created once for each pair: a list can hold thousands of values. */
const inheritedFrom = memoizeByObject(({ type }: ArgumentSchema) =>
  memoizeByObject(
    (schema: ArgumentSchema): ArgumentSchema =>
      schema.type !== undefined || type === undefined ? schema : { ...schema, type },
  ),
)

const noMatch = (message: string, data: Issue['data'] = null): Issue => ({
  code: 'rest_no_matching_schema',
  message,
  data,
})

const noMatchBecause = (path: string, failure: SchemaFailure): Issue => {
  const { title } = failure.schema
  const text =
    title === undefined ? `${path} does not match the expected format.` : `${path} is not a valid ${title}.`
  return noMatch(`${text} Reason: ${failure.issue.message}`, { position: failure.index })
}

/** Whether the value failed for another reason than its own type. */
const isInformative = (path: string, { issue }: SchemaFailure): boolean => {
  if (issue.code !== 'rest_invalid_type') return true
  const at = issue.data?.['param']
  return at !== undefined && at !== path
}

/** Of several object schemas the one that shares most properties with the value: the client probably meant that one. */
const closestMatch = (value: unknown, failures: readonly SchemaFailure[]): SchemaFailure | undefined => {
  if (!isContainer(value)) return undefined
  let best: SchemaFailure | undefined
  let max = 0
  for (const failure of failures) {
    const shared = Object.keys(failure.schema.properties ?? {}).filter((name) =>
      hasMember(value, name),
    ).length
    if (shared > max) {
      best = failure
      max = shared
    }
  }
  return best
}

const titlesOf = (alternatives: readonly { readonly schema: ArgumentSchema }[]): string | undefined => {
  const titles = alternatives.flatMap(({ schema }) => (schema.title === undefined ? [] : [schema.title]))
  return titles.length === alternatives.length ? listInWords(titles) : undefined
}

const explain = (value: unknown, path: string, failures: readonly SchemaFailure[]): Issue => {
  const [first] = failures
  if (first !== undefined && failures.length === 1) return noMatchBecause(path, first)
  const informative = failures.filter((failure) => isInformative(path, failure))
  const [reason] = informative
  if (reason !== undefined && informative.length === 1) return noMatchBecause(path, reason)
  if (reason?.schema.type === 'object') {
    const closest = closestMatch(value, informative)
    if (closest !== undefined) return noMatchBecause(path, closest)
  }
  const titles = titlesOf(failures)
  return titles === undefined
    ? noMatch(`${path} does not match any of the expected formats.`)
    : noMatch(`${path} is not a valid ${titles}.`)
}

const tooManyMatches = (
  path: string,
  matches: readonly { index: number; schema: ArgumentSchema }[],
): Issue => {
  const titles = titlesOf(matches)
  const message =
    titles === undefined
      ? `${path} matches more than one of the expected formats.`
      : `${path} matches ${titles}, but should match only one.`
  return {
    code: 'rest_one_of_multiple_matches',
    message,
    data: { positions: matches.map(({ index }) => index) },
  }
}

/** Resolves `anyOf`: the first schema that takes the value. */
export const matchAnyOf = (
  value: unknown,
  parent: ArgumentSchema,
  schemas: readonly ArgumentSchema[],
  path: string,
  check: Check,
): SchemaMatch => {
  const failures: SchemaFailure[] = []
  for (const [index, candidate] of schemas.entries()) {
    const schema = inheritedFrom(parent)(candidate)
    const issue = check(value, schema, path)
    if (issue === undefined) return { kind: 'matched', schema }
    failures.push({ index, schema, issue })
  }
  return { kind: 'unmatched', issue: explain(value, path, failures) }
}

/** A fast check: the text of a property is not in the property's enum. */
const cannotMatch = (value: unknown, { type, properties = {} }: ArgumentSchema): boolean =>
  type === 'object' &&
  isContainer(value) &&
  Object.keys(properties).some((name) => {
    const property = properties[name]
    if (property?.type !== 'string' || property.enum === undefined || !hasMember(value, name)) return false
    const member = memberOf(value, name)
    return typeof member === 'string' && property.enum.length > 0 && !property.enum.includes(member)
  })

/** Resolves `oneOf`: exactly one schema may take the value. */
export const matchOneOf = (
  value: unknown,
  parent: ArgumentSchema,
  schemas: readonly ArgumentSchema[],
  path: string,
  check: Check,
): SchemaMatch => {
  const candidates = schemas.map((candidate, index) => ({ index, schema: inheritedFrom(parent)(candidate) }))
  // Error texts are only written when no schema matches: lists can hold thousands of values.
  const matches = candidates.filter(
    ({ schema }) => !cannotMatch(value, schema) && check(value, schema, path) === undefined,
  )
  const [only] = matches
  if (only !== undefined && matches.length === 1) return { kind: 'matched', schema: only.schema }
  if (matches.length > 1) return { kind: 'unmatched', issue: tooManyMatches(path, matches) }
  const failures = candidates.flatMap(({ index, schema }): SchemaFailure[] => {
    const issue = check(value, schema, path)
    return issue === undefined ? [] : [{ index, schema, issue }]
  })
  return { kind: 'unmatched', issue: explain(value, path, failures) }
}
