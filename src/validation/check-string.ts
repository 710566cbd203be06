import type { ArgumentSchema } from '../contracts/row.ts'
import { countOf, type Issue, issueOf, wrongType } from './issue.ts'
import { compilePattern, type PatternCheck } from './safe-pattern.ts'

const compiled = new WeakMap<ArgumentSchema, PatternCheck>()

const patternCheck = (schema: ArgumentSchema, pattern: string): PatternCheck => {
  const known = compiled.get(schema)
  if (known !== undefined) return known
  const check = compilePattern(pattern)
  compiled.set(schema, check)
  return check
}

const surrogates = /[\ud800-\udbff]/

/** Length in characters, as mb_strlen counts. */
const characters = (text: string): number => (surrogates.test(text) ? [...text].length : text.length)

const checkLength = (text: string, schema: ArgumentSchema, path: string): Issue | undefined => {
  const { minLength, maxLength } = schema
  if (minLength !== undefined && characters(text) < minLength) {
    return issueOf('rest_too_short', `${path} must be at least ${countOf(minLength, 'character')} long.`)
  }
  if (maxLength !== undefined && characters(text) > maxLength) {
    return issueOf('rest_too_long', `${path} must be at most ${countOf(maxLength, 'character')} long.`)
  }
  return undefined
}

/** Checks type, length and pattern of a string. The pattern is not anchored: "a b" matches `[a-z]+`. */
export const checkString = (value: unknown, schema: ArgumentSchema, path: string): Issue | undefined => {
  if (typeof value !== 'string') return wrongType(path, 'string')
  const tooLongOrShort = checkLength(value, schema, path)
  if (tooLongOrShort !== undefined) return tooLongOrShort
  if (schema.pattern !== undefined && patternCheck(schema, schema.pattern)(value) === false) {
    return issueOf('rest_invalid_pattern', `${path} does not match pattern ${schema.pattern}.`)
  }
  return undefined
}
