import type * as z from 'zod'
import { closestName } from '../closest-name.ts'
import type { Path, UnplacedFault } from '../fault.ts'
import { configJsonSchema, type JsonSchema, knownKeys } from '../json-schema.ts'
import { sizeHint } from '../schema/leaves.ts'
import { serviceShape } from '../schema/service-shape.ts'
import { valueAt } from './value-at.ts'

const contractNames = serviceShape.options.map((option) => option.shape.contract.value)

type Issue = z.core.$ZodIssue

const kindName = (value: unknown): string => {
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'a section'
  return (
    { string: 'a text', number: 'a number', boolean: 'true or false' }[typeof value as string] ?? 'nothing'
  )
}

const expectedOf = (issue: Issue): string => {
  if (issue.code === 'invalid_union' && issue.discriminator !== undefined) {
    return `expected one of: ${contractNames.join(', ')}`
  }
  if (issue.code !== 'invalid_type') return issue.message
  if (issue.expected === 'object' || issue.expected === 'record')
    return 'expected a section with keys and values'
  if (issue.expected === 'array') return 'expected a list'
  return issue.message.startsWith('Invalid input') ? `expected a ${issue.expected}` : issue.message
}

/** Messages for issues without a message of our own. Never contains the value: it may be a secret. */
const messageOf = (issue: Issue, value: unknown): string => {
  if (value === undefined) return `is required: ${expectedOf(issue)}`
  if (value === null) return 'is empty: leave the key out, or give it a value'
  switch (issue.code) {
    case 'invalid_type':
      return `${expectedOf(issue)}, found ${kindName(value)}`
    case 'invalid_key':
      return issue.issues[0]?.message ?? issue.message
    case 'too_small':
    case 'too_big': {
      const bound = issue.code === 'too_small' ? `at least ${issue.minimum}` : `at most ${issue.maximum}`
      if (issue.origin === 'array') return `expected ${bound} entries`
      return issue.message.startsWith('Too')
        ? `expected ${bound}${issue.origin === 'string' ? ' characters' : ''}`
        : issue.message
    }
    default:
      return expectedOf(issue)
  }
}

const allowedWords = (issue: Issue): string[] => {
  if (issue.code === 'invalid_value') return issue.values.map(String)
  return issue.code === 'invalid_union' && issue.discriminator !== undefined ? [...contractNames] : []
}

const withSuggestion = (fault: UnplacedFault, name: unknown, known: readonly string[]): UnplacedFault => {
  const suggestion = typeof name === 'string' ? closestName(name, known) : undefined
  return suggestion === undefined ? fault : { ...fault, suggestion }
}

/** Sizes have binary units. */
const decimalSize = /^(\d{1,9})([kmg])b?$/i

/** Made once, by the first fault. */
let schemaOfShape: JsonSchema | undefined

/** Turns the issues of zod into faults: one for each unknown key, with a similar known name. */
export const shapeFaults = (issues: readonly Issue[], value: unknown): UnplacedFault[] => {
  schemaOfShape ??= configJsonSchema()
  const schema = schemaOfShape
  return issues.flatMap((issue): UnplacedFault[] => {
    const path = issue.path as Path
    if (issue.code === 'unrecognized_keys') {
      const known = knownKeys(schema, value, path)
      return issue.keys.map((key) =>
        withSuggestion({ path: [...path, key], message: 'unknown key', at: 'key' }, key, known),
      )
    }
    const found = valueAt(value, path)
    const at = issue.code === 'invalid_key' || found === undefined ? 'key' : 'value'
    const fault = { path, message: messageOf(issue, found), at } as const
    const [, digits, unit] = fault.message === sizeHint ? (decimalSize.exec(String(found)) ?? []) : []
    if (unit !== undefined) return [{ ...fault, suggestion: `${digits}${unit.toUpperCase()}iB` }]
    return [withSuggestion(fault, found, allowedWords(issue))]
  })
}
