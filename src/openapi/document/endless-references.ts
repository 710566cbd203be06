import { isObject } from './bundle.ts'
import { definitionName, type RequestSchema } from './request-schema.ts'

type GrowingSchema = Record<string, unknown>

/** Keywords with schemas for the same value as the one that contains them, and not for a part of it. */
const inPlace = ['allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else'] as const

/**
 * Removes references that lead back to a schema for the same value: a base with `oneOf` its kinds, each of which has `allOf` the base,
 * would be checked without end. Without one of its schemas any other keyword than `allOf` would mean something else, so it goes as well.
 */
export const cutEndlessReferences = (definitions: ReadonlyMap<string, RequestSchema>): void => {
  const done = new Set<string>()
  const open = new Set<string>()
  const visitKeyword = (schema: GrowingSchema, keyword: (typeof inPlace)[number]): boolean => {
    const inner = [schema[keyword]].flat().filter((one): one is GrowingSchema => isObject(one))
    const isCut = inner.map(visitSchema).includes(true)
    if (keyword !== 'allOf' && isCut) delete schema[keyword]
    return isCut
  }
  /** Was something of this schema removed? */
  const visitSchema = (schema: GrowingSchema): boolean => {
    const isCut = inPlace.map((keyword) => visitKeyword(schema, keyword)).includes(true)
    const target = schema['$ref']
    if (typeof target !== 'string') return isCut
    if (!open.has(target)) {
      visit(target)
      return isCut
    }
    delete schema['$ref']
    return true
  }
  const visit = (name: string): void => {
    const schema = definitions.get(name)
    if (done.has(name) || typeof schema !== 'object') return
    open.add(name)
    visitSchema(schema)
    open.delete(name)
    done.add(name)
  }
  // In the order in which the operations lead to them, so that the schemas of bodies stay whole.
  for (let index = 0; index < definitions.size; index += 1) visit(definitionName(index))
}
