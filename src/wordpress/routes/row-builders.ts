import type { Method } from '../../service/row.ts'
import {
  type ArgumentSchema,
  type Arguments,
  type Endpoint,
  mapParts,
  mapSchemas,
  type Row,
  type RowKind,
} from '../../service/row.ts'
import words from './descriptions.json' with { type: 'json' }
import { context } from './parameter-sets.ts'

type Descriptions = Readonly<Record<string, string>>

/** The meaning of arguments: of a query, of a body, and the parts of either. */
const {
  query: queryDescriptions,
  fields: fieldDescriptions,
  parts: partDescriptions,
}: Readonly<Record<keyof typeof words, Descriptions>> = words

const withDescription = (schema: ArgumentSchema, description: string | undefined): ArgumentSchema =>
  description === undefined ? schema : { description, ...schema }

/** Fills in the descriptions of the parts of a schema; parts without one stay as they are. */
const describedParts = (schema: ArgumentSchema): ArgumentSchema => ({
  ...schema,
  ...mapParts(schema, describedParts, (properties) => described(properties, partDescriptions)),
})

const described = (map: Arguments, descriptions: Descriptions): Arguments =>
  mapSchemas(map, (schema, name) => withDescription(describedParts(schema), descriptions[name]))

type Marks = Pick<Endpoint, 'allowBatch' | 'acceptsUploads'>

const endpointOf =
  (methods: readonly Method[], descriptions: Descriptions) =>
  (map: Arguments, marks: Marks = {}): Endpoint => ({
    methods,
    arguments: described(map, descriptions),
    ...marks,
  })

/** An endpoint of any methods; those that create or change take their arguments from the body. */
export const endpointFor = (methods: readonly Method[]): ReturnType<typeof endpointOf> =>
  endpointOf(methods, methods.includes('POST') ? fieldDescriptions : queryDescriptions)

export const reads = endpointOf(['GET'], queryDescriptions)
/** A creation or an action. */
export const posts = endpointOf(['POST'], fieldDescriptions)
export const updates = endpointOf(['POST', 'PUT', 'PATCH'], fieldDescriptions)
export const deletes = endpointOf(['DELETE'], queryDescriptions)

/** Digits, as the identifier of a row in the database. */
export const digits = '[\\d]+'

export const integer: ArgumentSchema = { type: 'integer' }
const force: Arguments = { force: { type: 'boolean', default: false } }

type RowFacts = Pick<Row, 'id' | 'kind' | 'endpoints'> & Partial<Row> & { readonly template: string }

/** A row whose template is its pattern: no parameters in the path. */
export const row = (facts: RowFacts): Row => ({
  pattern: facts.template,
  namespace: '',
  collection: '',
  handledBy: 'upstream',
  ...facts,
})

export type Collection = {
  readonly name: string
  readonly namespace: string
  /** Pattern of an item's identifier. */
  readonly identifier: string
  readonly identifierSchema: ArgumentSchema
  readonly marks: Marks
}

type Segment = string | { readonly name: string; readonly pattern: string }

/** Row below `/namespace/collection`, with template and pattern made of the same segments. */
export const collectionRow = (
  collection: Collection,
  kind: RowKind,
  name: string,
  segments: readonly Segment[],
  ...endpoints: readonly Endpoint[]
): Row => {
  const base = `/${collection.namespace}/${collection.name}`
  const template = segments.map((s) => (typeof s === 'string' ? `/${s}` : `/{${s.name}}`)).join('')
  const pattern = segments
    .map((s) => (typeof s === 'string' ? `/${s}` : `/(?P<${s.name}>${s.pattern})`))
    .join('')
  return row({
    id: `${collection.name}.${name}`,
    template: base + template,
    pattern: base + pattern,
    namespace: collection.namespace,
    collection: collection.name,
    kind,
    endpoints,
  })
}

export const listRow = (collection: Collection, query: Arguments, create: Endpoint): Row =>
  collectionRow(collection, 'collection', 'collection', [], reads(query, collection.marks), create)

export const itemRow = (
  collection: Collection,
  facts: { readonly query: Arguments; readonly fields: Arguments },
): Row => {
  const id: Arguments = { id: collection.identifierSchema }
  return collectionRow(
    collection,
    'item',
    'item',
    [{ name: 'id', pattern: collection.identifier }],
    reads({ ...id, context, ...facts.query }, collection.marks),
    updates({ ...id, ...facts.fields }, collection.marks),
    deletes({ ...id, ...force }, collection.marks),
  )
}

/** The revisions of an item and one of them. */
export const revisionRows = (collection: Collection, query: Arguments): readonly Row[] => {
  const parent = { name: 'parent', pattern: collection.identifier }
  const both: Arguments = { parent: collection.identifierSchema, id: integer }
  return [
    collectionRow(collection, 'revisions', 'revisions', [parent, 'revisions'], reads(query)),
    collectionRow(
      collection,
      'revision',
      'revision',
      [parent, 'revisions', { name: 'id', pattern: digits }],
      reads({ ...both, context }),
      deletes({ ...both, ...force }),
    ),
  ]
}

/** The autosaves of an item and one of them. `handle` names the item: `parent`, or `id` for templates. */
export const autosaveRows = (
  collection: Collection,
  handle: 'parent' | 'id',
  fields: Arguments,
): readonly Row[] => {
  const item: Arguments = { [handle]: collection.identifierSchema }
  return [
    collectionRow(
      collection,
      'autosaves',
      'autosaves',
      [{ name: 'id', pattern: collection.identifier }, 'autosaves'],
      reads({ ...item, context }),
      posts({ ...item, ...fields }),
    ),
    collectionRow(
      collection,
      'autosave',
      'autosave',
      [{ name: 'parent', pattern: collection.identifier }, 'autosaves', { name: 'id', pattern: digits }],
      reads({ parent: collection.identifierSchema, id: integer, context }),
    ),
  ]
}
