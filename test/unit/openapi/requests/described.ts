import { atOnce } from '../../../../src/http/bodies/turns.ts'
import { type ApiContract, loadDocument } from '../../../../src/openapi/document/load-document.ts'
import {
  createOpenApiRequests,
  type OpenApiRequests,
} from '../../../../src/openapi/requests/openapi-requests.ts'
import type { Validation } from '../../../../src/service/contract.ts'

/** The contract of a document that is given as data. */
export const contractOf = (document: object, files: Readonly<Record<string, unknown>> = {}): ApiContract => {
  const reading = loadDocument({ root: 'api.yaml', files: { 'api.yaml': document, ...files } })
  if (reading.kind === 'faults') throw new Error(JSON.stringify(reading.faults))
  return reading.contract
}

export type Described = {
  validate(request: {
    readonly method?: string
    readonly path?: string
    readonly query?: string
    readonly headers?: Readonly<Record<string, string>>
    readonly content?: string
  }): Validation
  find: OpenApiRequests['find']
}

/** Checks requests against a document. */
export const described = (document: object): Described => {
  const requests = atOnce(
    createOpenApiRequests(contractOf(document), {
      limits: { queryParameters: 256, jsonDepth: 64 },
      unknownParameters: 'forward',
      trackingParameters: [],
    }),
  )
  return {
    find: requests.find,
    validate: ({ method = 'GET', path = '/x', query = '', headers = {}, content }) => {
      const found = requests.find(method, path)
      if (found.kind !== 'found') throw new Error(`${method} ${path}: ${found.kind}`)
      return requests.validator.validate({
        method,
        row: found.row,
        endpoint: found.endpoint,
        pathParameters: found.pathParameters,
        query,
        contentType: headers['content-type'],
        content: content === undefined ? undefined : Buffer.from(content),
        headers,
      })
    },
  }
}

/** A document with one GET. */
export const oneGet = (path: string, parameters: readonly object[], openapi = '3.1.0'): object => ({
  openapi,
  info: { title: 'x', version: '1' },
  paths: { [path]: { get: { parameters, responses: {} } } },
})

/** A document with one POST of a JSON body. */
export const onePost = (schema: object, openapi = '3.1.0', more: object = {}): object => ({
  openapi,
  info: { title: 'x', version: '1' },
  paths: { '/x': { post: { requestBody: { content: { 'application/json': { schema } } } } } },
  ...more,
})
