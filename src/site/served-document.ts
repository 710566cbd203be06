import {
  type ApiBundle,
  fileOfReference,
  isObject,
  type JsonObject,
  member,
} from '../contracts/openapi/bundle.ts'
import type { Row } from '../contracts/row.ts'
import { batchAnswer, requestFieldsOf } from './openapi/contract-facts.ts'
import { objectSchema } from './openapi/json-schema.ts'

/** Where the other files of a document stand in the one that is served. */
const filesMember = 'x-files'

const escaped = (step: string): string => encodeURI(step.replaceAll('~', '~0').replaceAll('/', '~1'))

/** A reference as it is in one file: the root keeps its own, and other files are members of it. */
const servedReference = (reference: string, from: string, { root, files }: ApiBundle): string => {
  const file = fileOfReference(reference, from)
  if (file === undefined || !Object.hasOwn(files, file)) return reference
  const fragment = reference.includes('#') ? reference.slice(reference.indexOf('#') + 1) : ''
  return file === root ? `#${fragment}` : `#/${filesMember}/${escaped(file)}${fragment}`
}

const isServerList = (value: unknown): boolean =>
  Array.isArray(value) && value.length > 0 && value.every((one) => typeof member(one, 'url') === 'string')

/** Without the extensions for the gateway, and without the addresses of the upstream. */
const served = (value: unknown, from: string, bundle: ApiBundle): unknown => {
  if (Array.isArray(value)) return value.map((item) => served(item, from, bundle))
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, inner]) => {
      if (name.startsWith('x-trellis-') || (name === 'servers' && isServerList(inner))) return []
      const reference =
        name === '$ref' && typeof inner === 'string' ? servedReference(inner, from, bundle) : undefined
      return [[name, reference ?? served(inner, from, bundle)]]
    }),
  )
}

/** OpenAPI 3.0 has no lists of types. */
const withoutTypeLists = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(withoutTypeLists)
  if (!isObject(schema)) return schema
  const { type, items, ...rest } = Object.fromEntries(
    Object.entries(schema).map(([name, inner]) => [name, withoutTypeLists(inner)]),
  )
  if (!Array.isArray(type))
    return { ...(type !== undefined && { type }), ...(items !== undefined && { items }), ...rest }
  return { ...rest, anyOf: type.map((one) => (one === 'array' ? { type: one, items } : { type: one })) }
}

const problem: JsonObject = { 'application/problem+json': { schema: { type: 'object' } } }

/** The batch route of the gateway, which the document of the upstream does not have. */
const batchPathItem = ({ endpoints }: Row): JsonObject =>
  Object.fromEntries(
    endpoints.map((endpoint) => {
      // Batches of a service with a document always have the extensions.
      const { extensions: _always, ...members } = endpoint.arguments
      const post = {
        summary: 'Send several requests at once',
        parameters: requestFieldsOf({ kind: 'batch' }, endpoint),
        security: [],
        requestBody: {
          required: true,
          content: { 'application/json': { schema: withoutTypeLists(objectSchema(members)) } },
        },
        responses: {
          ...batchAnswer(endpoint, problem),
          default: { description: 'The batch is refused as a whole.', content: problem },
        },
      }
      return ['post', post]
    }),
  )

/**
 * The document of a service as its clients may use it: one file, with the public URL as its only server, and the batch route where the
 * service has one.
 */
export const servedDocument = (bundle: ApiBundle, publicUrl: string, batch: Row | undefined): JsonObject => {
  const { root, files } = bundle
  const others = Object.entries(files).filter(([name]) => name !== root)
  const document = served(files[root], root, bundle) as JsonObject
  return {
    ...document,
    servers: [{ url: publicUrl }],
    ...(batch && { paths: { ...Object(document['paths']), [batch.template]: batchPathItem(batch) } }),
    ...(others.length === 0
      ? {}
      : {
          [filesMember]: Object.fromEntries(others.map(([name, file]) => [name, served(file, name, bundle)])),
        }),
  }
}
