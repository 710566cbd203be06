import type { JsonObject } from '../../http/json-text.ts'
import type { ContractName } from '../../service/contract.ts'
import type { Method } from '../../service/row.ts'
import {
  type ArgumentSchema,
  type Arguments,
  type Endpoint,
  mapParts,
  mapSchemas,
  type Row,
} from '../../service/row.ts'

/** Required names: members marked so (draft 3) and names that the object lists (draft 4). */
const requiredNames = (properties: Arguments, required: ArgumentSchema['required']): readonly string[] => {
  const requiredMembers = Object.entries(properties).filter(([, schema]) => schema.required === true)
  return [
    ...new Set([...requiredMembers.map(([name]) => name), ...(Array.isArray(required) ? required : [])]),
  ]
}

/** In draft 4 a boolean beside the bound makes it exclusive; in 2020-12 the exclusive bound stands alone. */
const bounds = ({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }: ArgumentSchema): JsonObject => ({
  ...(minimum !== undefined && { [exclusiveMinimum === true ? 'exclusiveMinimum' : 'minimum']: minimum }),
  ...(maximum !== undefined && { [exclusiveMaximum === true ? 'exclusiveMaximum' : 'maximum']: maximum }),
})

/** Patterns are those of PCRE; what JavaScript cannot read would make the whole schema useless to validators. */
const patternOf = (pattern: string): JsonObject => {
  try {
    new RegExp(pattern, 'u')
    return { pattern }
  } catch {
    return { 'x-php-pattern': pattern }
  }
}

/** A schema of an argument (see `ArgumentSchema`) as JSON Schema 2020-12, which OpenAPI 3.1 uses. */
export const jsonSchema = (schema: ArgumentSchema): JsonObject => {
  const { type, title, description, format, pattern, readonly, context, properties, required } = schema
  const { enum: values, default: preset, minLength, maxLength, minItems, maxItems, uniqueItems } = schema
  const { minProperties, maxProperties } = schema
  const keywords = { type, title, description, format, enum: values, default: preset }
  const sizes = { minLength, maxLength, minItems, maxItems, uniqueItems, minProperties, maxProperties }
  const names = requiredNames(properties ?? {}, required)
  return {
    ...Object.fromEntries(
      Object.entries({ ...keywords, ...sizes }).filter(([, value]) => value !== undefined),
    ),
    ...bounds(schema),
    ...(pattern !== undefined && patternOf(pattern)),
    ...mapParts(schema, jsonSchema, (parts) => mapSchemas(parts, jsonSchema)),
    ...(names.length > 0 && { required: names }),
    ...(readonly === true && { readOnly: true }),
    ...(context && { 'x-context': context }),
  }
}

/** The content of a request whose members are these arguments. */
export const objectSchema = (members: Arguments): JsonObject =>
  jsonSchema({ type: 'object', properties: members })

/** Contracts whose rows this document describes; a service with its own document serves that. */
export type DescribedContract = Exclude<ContractName, 'openapi'>

const ref = (name: string): JsonObject => ({ $ref: `#/components/schemas/${name}` })
const json = (schema: JsonObject): JsonObject => ({ 'application/json': { schema } })

/** Shapes that the contracts name, whatever services there are. */
export const sharedSchemas: JsonObject = {
  Plant: jsonSchema({
    type: 'object',
    properties: { name: { type: 'string', required: true }, tag: { type: 'string' } },
  }),
  PlantError: jsonSchema({
    type: 'object',
    properties: {
      error: { type: 'integer', format: 'int32', required: true, description: 'The status.' },
      message: { type: 'string', required: true },
    },
  }),
  SiteError: jsonSchema({
    type: 'object',
    properties: {
      code: { type: 'string', required: true, description: 'For programs, e.g. rest_invalid_param.' },
      message: { type: 'string', required: true },
      data: {
        type: ['object', 'null'],
        properties: {
          status: { type: 'integer' },
          params: {
            type: ['object', 'array'],
            description: 'Message by parameter; the list of the missing ones.',
          },
          details: { type: 'object', description: 'Code, message and data by parameter.' },
        },
      },
    },
  }),
  GraphqlErrors: jsonSchema({
    type: 'object',
    properties: { errors: { type: 'array', items: { type: 'object' }, required: true } },
  }),
  Problem: jsonSchema({
    type: 'object',
    description: 'RFC 9457.',
    properties: {
      type: { type: 'string', format: 'uri-reference' },
      title: { type: 'string' },
      status: { type: 'integer' },
      detail: { type: 'string' },
      code: { type: 'string' },
    },
  }),
}

export const securitySchemes: JsonObject = {
  bearer: { type: 'http', scheme: 'bearer', description: 'Required on every operation of a plant store.' },
  basic: {
    type: 'http',
    scheme: 'basic',
    description: 'User and application password of the site; the site decides about permissions.',
  },
}

const errors: Readonly<Record<DescribedContract, JsonObject>> = {
  plants: json(ref('PlantError')),
  site: json(ref('SiteError')),
  graphql: { 'application/graphql-response+json': { schema: ref('GraphqlErrors') } },
  open: { 'application/problem+json': { schema: ref('Problem') } },
}

const refusals = (contract: DescribedContract): JsonObject => ({
  '4XX': { description: 'Refused by the gateway or by the service.', content: errors[contract] },
  '5XX': { description: 'Failed in the gateway or in the service.', content: errors[contract] },
})

const plantResponse = (row: Row, method: Method): JsonObject => {
  if (method === 'DELETE') return { '204': { description: 'Deleted.' } }
  if (method === 'POST') return { '200': { description: 'Created.', content: json(ref('Plant')) } }
  const list = { type: 'array', items: ref('Plant') }
  return { '200': { description: `All ${row.collection}.`, content: json(list) } }
}

const lists: ReadonlySet<string> = new Set(['collection', 'revisions', 'autosaves'])
const whole = { schema: { type: 'integer' } }
const paging: JsonObject = {
  headers: {
    'X-WP-Total': { description: 'Items in all pages.', ...whole },
    'X-WP-TotalPages': { description: 'Pages.', ...whole },
  },
}

/** `errors`: content of a refusal. */
export const batchResponse = (errors: JsonObject): JsonObject => ({
  '207': { description: 'One response for each request, in order.', content: json({ type: 'object' }) },
  '409': { description: 'A request with this key is still running.', content: errors },
  '422': { description: 'This key was used for a different request.', content: errors },
})

/** Fields of a request that mean something to the gateway itself. */
export const requestFieldsOf = (row: Pick<Row, 'kind'>): readonly JsonObject[] =>
  row.kind === 'batch'
    ? [
        {
          name: 'Idempotency-Key',
          in: 'header',
          description: 'A repeated request with the same key gets the same response and runs nothing again.',
          schema: { type: 'string', maxLength: 257 },
        },
      ]
    : []

const siteResponse = (row: Row, endpoint: Endpoint, method: Method): JsonObject => {
  if (row.kind === 'batch') return batchResponse(errors.site)
  if (row.kind === 'collection' && method === 'POST') {
    return { '201': { description: 'Created.', content: json({ type: 'object' }) } }
  }
  const isList = method === 'GET' && lists.has(row.kind)
  const schema = isList ? { type: 'array', items: { type: 'object' } } : {}
  const isPaged = isList && endpoint.arguments['per_page'] !== undefined
  return { '200': { description: 'Done.', ...(isPaged && paging), content: json(schema) } }
}

/** The possible responses, in the shapes of the contract. */
export const responsesOf = (
  contract: DescribedContract,
  row: Row,
  endpoint: Endpoint,
  method: Method,
): JsonObject => {
  switch (contract) {
    case 'plants':
      return {
        ...(row.kind === 'batch' ? batchResponse(errors.plants) : plantResponse(row, method)),
        ...refusals(contract),
      }
    case 'site':
      return { ...siteResponse(row, endpoint, method), ...refusals(contract) }
    case 'graphql':
    case 'open':
      return { default: { description: 'What the service answers.' }, ...refusals(contract) }
  }
}

/** Which of the security schemes an operation takes; `{}` stands for none. */
export const securityOf: Readonly<Record<DescribedContract, readonly JsonObject[]>> = {
  plants: [{ bearer: [] }],
  site: [{}, { basic: [] }],
  graphql: [],
  open: [],
}
