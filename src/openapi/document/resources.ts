import type { Operation, ResourceExtension } from './operation.ts'

/** The items that responses of a path show, which a write to it changes. Paths are templates. */
export type Resource = {
  readonly kind: 'item' | 'list' | 'part' | 'unknown'
  readonly template: string
  /** The target of a write to the path: the path itself, or the item or collection that it is a part of. */
  readonly target: string
  /** The collection that `x-trellis-resource` names, where it is not the path in front. */
  readonly collection: string | undefined
  /** Collections of the items that responses show besides, by JSON Pointer. */
  readonly members: ReadonlyMap<string, string>
  /** Undefined where nothing is declared. */
  readonly invalidates: readonly string[] | undefined
  /** How this was found out, for `trellis routes` and `trellis explain`. */
  readonly reason: string
}

/** The settings for operations in the configuration, which take precedence over the document. */
export type DeclaredResource = {
  /** Method and template. */
  readonly operation: string
  readonly template: string
  readonly resource: ResourceExtension | undefined
  readonly invalidates: readonly string[] | undefined
}

/** The segments of a template or path; the root has none. */
export const segmentsOf = (path: string): readonly string[] => (path === '/' ? [] : path.slice(1).split('/'))

export const prefixOf = (segments: readonly string[], length: number): string =>
  `/${segments.slice(0, length).join('/')}`

/** The name in a segment that is one parameter; undefined for every other segment. */
export const parameterIn = (segment: string | undefined): string | undefined =>
  /^\{([^{}]+)\}$/.exec(segment ?? '')?.[1]

/** Templates that differ in the names of their parameters only stand for the same paths. */
export const templateShape = (template: string): string => template.replaceAll(/\{[^{}]*\}/g, '{}')

const isMixed = (segment: string): boolean => segment.includes('{') && parameterIn(segment) === undefined

type Inferred = Pick<Resource, 'kind' | 'target' | 'reason'>

type Shapes = {
  readonly paths: ReadonlySet<string>
  /** The parameter behind each path that has one behind it. */
  readonly parameters: ReadonlyMap<string, string>
  /** The declarations about paths, by shape. */
  readonly declarations: ReadonlyMap<string, ResourceExtension>
}

const isCollection = (template: string, { parameters }: Shapes): boolean =>
  parameters.has(templateShape(template))

const unknown = (target: string, reason: string): Inferred => ({ kind: 'unknown', target, reason })

const fromDeclaration = (template: string, { collection, id }: ResourceExtension): Inferred | undefined => {
  if (collection === undefined) return undefined
  return id === undefined
    ? { kind: 'list', target: template, reason: `list of ${collection}, by x-trellis-resource` }
    : { kind: 'item', target: template, reason: `item of ${collection}, by x-trellis-resource` }
}

/** An item is below its collection; a path below either is a part of it, unless it is a collection itself. */
const infer = (template: string, shapes: Shapes): Inferred => {
  const inferred = fromDeclaration(template, shapes.declarations.get(templateShape(template)) ?? {})
  if (inferred !== undefined) return inferred
  const segments = segmentsOf(template)
  if (segments.some(isMixed)) return unknown(template, 'a segment has text beside its parameter')
  const { length } = segments
  if (parameterIn(segments[length - 1]) !== undefined) {
    const collection = prefixOf(segments, length - 1)
    return shapes.paths.has(templateShape(collection))
      ? { kind: 'item', target: template, reason: `item of ${collection}` }
      : unknown(template, `the document has no ${collection}, which would list it`)
  }
  if (isCollection(template, shapes)) return { kind: 'list', target: template, reason: `list of ${template}` }
  if (length === 0) return unknown(template, 'neither an item nor a list')
  const owner = infer(prefixOf(segments, length - 1), shapes)
  if (owner.kind === 'unknown') return unknown(template, owner.reason)
  return { kind: 'part', target: owner.target, reason: `part of ${owner.target}` }
}

const parametersOf = (operations: readonly Pick<Operation, 'template'>[]): ReadonlyMap<string, string> =>
  new Map(
    operations.flatMap(({ template }) => {
      const segments = segmentsOf(template)
      return segments.flatMap((segment, index) => {
        const name = parameterIn(segment)
        return name === undefined ? [] : [[templateShape(prefixOf(segments, index)), name] as const]
      })
    }),
  )

/** Infers the kind of each path from the templates and the declarations of the document. */
export const inferResources = (operations: readonly Operation[], configured: readonly DeclaredResource[]) => {
  const byOperation = new Map(configured.map((resource) => [resource.operation, resource]))
  const entries = operations.map((operation) => {
    const configuredResource = byOperation.get(`${operation.method} ${operation.template}`)
    const resource = configuredResource?.resource ?? operation.resource
    return { operation, resource, invalidates: configuredResource?.invalidates ?? operation.invalidates }
  })
  const paths = new Set(operations.map(({ template }) => templateShape(template)))
  const declarations = new Map<string, ResourceExtension>()
  for (const { operation, resource } of entries)
    if (resource?.collection !== undefined) declarations.set(templateShape(operation.template), resource)
  const parameters = parametersOf(operations)
  const shapes: Shapes = { paths, parameters, declarations }

  const resources = entries.map(({ operation, resource, invalidates }): readonly [Operation, Resource] => {
    const { template, isAmbiguous } = operation
    const inferred = isAmbiguous
      ? unknown(template, 'the document has several operations for this method and path')
      : (fromDeclaration(template, resource ?? {}) ?? infer(template, shapes))
    const { collection } = resource ?? declarations.get(templateShape(template)) ?? {}
    const members = new Map(Object.entries(resource?.members ?? {}))
    return [operation, { ...inferred, template, collection, members, invalidates }]
  })
  const collections = entries.flatMap(({ resource }) => [
    ...(resource?.collection === undefined ? [] : [resource.collection]),
    ...Object.values(resource?.members ?? {}),
  ])
  const byOperationObject = new Map(resources)
  return {
    /** Of an operation; undefined for one of another document. */
    of: (operation: Operation) => byOperationObject.get(operation),
    /** Shapes of the collections that declarations name: responses show their items under several paths. */
    namedCollections: new Set(collections.map(templateShape)),
    /** The parameter with the id of the items of a path; undefined for a path that is no collection. */
    parameterOf: (collection: string) => parameters.get(collection),
    /** The collection that is declared for the items of a path, with the parameter that has their id. */
    itemsAt: (shape: string) => {
      const { collection, id } = declarations.get(shape) ?? {}
      return collection === undefined || id === undefined ? undefined : { collection, id }
    },
  }
}

export type Resources = ReturnType<typeof inferResources>
