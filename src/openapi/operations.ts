import type { Endpoint, Method, Row } from '../contracts/row.ts'
import { answersOf, type Contract, requestFieldsOf, securityOf } from './contract-facts.ts'
import { type JsonObject, objectSchema } from './json-schema.ts'
import { ownArguments, parametersOf } from './parameters.ts'
import { summaryOf } from './summaries.ts'

/** What the document needs to know of one service. */
export type DescribedService = {
  readonly name: string
  readonly contract: Contract
  /** Public path in front of the rows; '' for the root. */
  readonly mount: string
  readonly rows: readonly Row[]
}

/** The operations of one row, and the schemas of their contents by name. */
export type DescribedRow = {
  readonly path: string
  readonly operations: Readonly<Record<string, JsonObject>>
  readonly schemas: Readonly<Record<string, JsonObject>>
}

/** Names of components and operations: letters, digits, dots, hyphens, underscores. */
const asName = (text: string): string => text.replaceAll(/[^\w.-]+/g, '-').replaceAll(/^-+|-+$/g, '')

const hasContent = (method: Method): boolean => method === 'POST' || method === 'PUT' || method === 'PATCH'

const contentTypes = (contract: Contract, endpoint: Endpoint, schema: JsonObject): JsonObject => {
  if (contract === 'plants') return { 'application/json': { schema } }
  return {
    'application/json': { schema },
    'application/x-www-form-urlencoded': { schema },
    ...(endpoint.acceptsUploads === true && {
      'multipart/form-data': { schema: { type: 'object' } },
      'application/octet-stream': {},
    }),
  }
}

const requestBody = (
  contract: Contract,
  row: Row,
  endpoint: Endpoint,
  schemaName: string,
): { readonly body: JsonObject; readonly schemas: Record<string, JsonObject> } => {
  const members = ownArguments(row, endpoint)
  if (Object.keys(members).length === 0) {
    return { body: { content: contentTypes(contract, endpoint, { type: 'object' }) }, schemas: {} }
  }
  const schema = objectSchema(members)
  const content = contentTypes(contract, endpoint, { $ref: `#/components/schemas/${schemaName}` })
  return {
    // An upload carries its members in another way, so nothing of this content is needed then.
    body: {
      ...('required' in schema && endpoint.acceptsUploads !== true && { required: true }),
      content,
    },
    schemas: { [schemaName]: schema },
  }
}

const tagOf = (service: DescribedService, row: Row): string => {
  const group = row.collection === '' ? row.namespace : row.collection
  return group === '' ? service.name : `${service.name}: ${group}`
}

/** The row of an open service stands for every path under its mount. */
const anyPath = (row: Row): Row => ({ ...row, template: '/{path}', pattern: '/(?P<path>.*)' })

/** Everything that the document says of one row. */
export const describeRow = (service: DescribedService, listed: Row): DescribedRow => {
  const { contract, name, mount } = service
  const row = listed.template === '/**' ? anyPath(listed) : listed
  const operations: Record<string, JsonObject> = {}
  const schemas: Record<string, JsonObject> = {}
  row.endpoints.forEach((endpoint, position) => {
    const schemaName = asName(`${name}.${row.id}.${position}`)
    for (const method of endpoint.methods) {
      if (operations[method.toLowerCase()] !== undefined) continue
      const content = hasContent(method) ? requestBody(contract, row, endpoint, schemaName) : undefined
      Object.assign(schemas, content?.schemas)
      operations[method.toLowerCase()] = {
        operationId: asName(`${name}.${row.id}.${method.toLowerCase()}`),
        tags: [tagOf(service, row)],
        summary: summaryOf(row, method),
        parameters: [
          ...parametersOf(row, endpoint, content === undefined),
          ...requestFieldsOf(row, endpoint),
        ],
        ...(content && { requestBody: content.body }),
        responses: answersOf(contract, row, endpoint, method),
        ...(contract !== 'open' && { security: securityOf[contract] }),
        ...(endpoint.allowBatch === true && { 'x-batchable': true }),
      }
    }
  })
  return { path: `${mount}${row.template}`, operations, schemas }
}
