import type { Ajv2020, ValidateFunction } from 'ajv/dist/2020.js'
import { atOnce, type Pieces } from '../../http/bodies/turns.ts'
import { memoizeByObject } from '../../http/memo.ts'
import type { RequestSchema } from '../document/request-schema.ts'

export type Compiled = ValidateFunction | { readonly reason: string }

/** Definitions that are added in one piece: some milliseconds. */
const definitionsOfPiece = 16

/** The definitions that a schema refers to itself. */
function* referredIn(schema: unknown): Iterable<string> {
  if (typeof schema !== 'object' || schema === null) return
  for (const [keyword, inner] of Object.entries(schema)) {
    if (keyword === '$ref' && typeof inner === 'string') yield inner
    else if (keyword !== 'enum' && keyword !== 'const') yield* referredIn(inner)
  }
}

/**
 * Compiles schemas on first use, each with the definitions that it leads to and no others: a document may have thousands. `runnable`
 * writes a schema as the library takes it.
 */
export const createSchemaCompiler = (
  definitions: ReadonlyMap<string, RequestSchema>,
  prepare: () => Ajv2020,
  runnable: (schema: unknown) => unknown,
) => {
  const compiled = new WeakMap<object, Compiled>()
  const added = new Set<string>()
  const referencesOf = memoizeByObject((schema: object) => [...referredIn(schema)])
  let ajv: Ajv2020 | undefined

  /**
   * Adds what the schema leads to, and returns the names, the innermost first: compiled in this order, each takes little time. Another
   * schema may be in the middle of the same definitions.
   */
  function* addDefinitions(library: Ajv2020, schema: object): Pieces<readonly string[]> {
    const names = new Set<string>()
    const pending = [...referencesOf(schema)]
    for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
      const definition = definitions.get(name)
      if (definition === undefined || names.has(name)) continue
      if (!added.has(name)) library.addSchema(runnable(definition) as object, name)
      added.add(name)
      if (typeof definition === 'object') pending.push(...referencesOf(definition))
      if (names.add(name).size % definitionsOfPiece === 0) yield
    }
    return [...names].reverse()
  }

  function* compileNew(schema: object): Pieces<Compiled> {
    try {
      ajv ??= prepare()
      for (const name of yield* addDefinitions(ajv, schema)) {
        ajv.getSchema(name)
        yield
      }
      return ajv.compile(runnable(schema) as object)
    } catch (error) {
      return { reason: error instanceof Error ? error.message : String(error) }
    }
  }

  function* inPieces(schema: object): Pieces<Compiled> {
    const known = compiled.get(schema)
    if (known !== undefined) return known
    const result = yield* compileNew(schema)
    compiled.set(schema, result)
    return result
  }

  return {
    inPieces,
    atOnce: (schema: object): Compiled => compiled.get(schema) ?? atOnce(inPieces(schema)),
  }
}
