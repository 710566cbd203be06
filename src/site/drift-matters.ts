import { isDeepStrictEqual } from 'node:util'
import { isJsonObject, type JsonObject, ownMember } from '../http/json-value.ts'

const typesOf = (schema: JsonObject): readonly unknown[] | undefined => {
  const type = ownMember(schema, 'type')
  if (type === undefined) return undefined
  return Array.isArray(type) ? type : [type]
}

const takesTypes = (ours: JsonObject, theirs: JsonObject): boolean => {
  const [our, their] = [typesOf(ours), typesOf(theirs)]
  if (our === undefined) return true
  return their?.every((type) => our.includes(type) || (type === 'integer' && our.includes('number'))) ?? false
}

/** Keywords that bound from below and from above, and those of which each member allows more. */
const least: ReadonlySet<string> = new Set(['minimum', 'minLength', 'minItems', 'minProperties'])
const most: ReadonlySet<string> = new Set(['maximum', 'maxLength', 'maxItems', 'maxProperties'])
const alternatives: ReadonlySet<string> = new Set(['enum', 'oneOf', 'anyOf'])

/** They say nothing of what is taken, or are looked at elsewhere. */
const otherwise: ReadonlySet<string> = new Set(['type', 'default', 'required'])

const takesKeyword = (keyword: string, ours: unknown, theirs: unknown): boolean => {
  if (ours === undefined || isDeepStrictEqual(ours, theirs)) return true
  if (typeof ours === 'number' && typeof theirs === 'number') {
    return least.has(keyword) ? ours <= theirs : most.has(keyword) && ours >= theirs
  }
  if (alternatives.has(keyword) && Array.isArray(ours) && Array.isArray(theirs)) {
    return theirs.every((one) => ours.some((other) => isDeepStrictEqual(other, one)))
  }
  return keyword === 'items' && isJsonObject(ours) && isJsonObject(theirs) && takesAll(ours, theirs)
}

/** A list of one value is written as that value. */
const asList = (ours: JsonObject, theirs: JsonObject): JsonObject | undefined => {
  const items = ownMember(ours, 'items')
  const isList = ownMember(ours, 'type') === 'array' && ownMember(theirs, 'type') === 'string'
  return isList && isJsonObject(items) ? items : undefined
}

/** Does a schema take every value that the other one takes? Where that is not plain, it does not. */
const takesAll = (ours: JsonObject, theirs: JsonObject): boolean =>
  takesTypes(ours, theirs) &&
  Object.keys(ours)
    .filter((keyword) => !otherwise.has(keyword))
    .every((keyword) => takesKeyword(keyword, ownMember(ours, keyword), ownMember(theirs, keyword)))

/**
 * Is an argument that the upstream announces otherwise answered wrongly? That is so when the gateway leaves out a default which the
 * upstream does not fill in, or refuses what the upstream takes. What the gateway takes beyond that, the upstream refuses itself.
 */
export const isAnsweredOtherwise = (ours: JsonObject, theirs: JsonObject): boolean => {
  if (!isDeepStrictEqual(ownMember(ours, 'default'), ownMember(theirs, 'default'))) return true
  if (ownMember(ours, 'required') === true && ownMember(theirs, 'required') !== true) return true
  const items = asList(ours, theirs)
  return !takesAll(items ?? ours, theirs)
}
