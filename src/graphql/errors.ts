import type { GatewayError } from '../errors.ts'
import { type RequestHeaders, requestHeader } from '../http/headers/header-lines.ts'
import type { ErrorShape, Invalid } from '../service/contract.ts'
import { errorText } from '../service/problem.ts'
import type { RefusedDocument } from './limits.ts'

const json = 'application/json; charset=utf-8'
const responseJson = 'application/graphql-response+json; charset=utf-8'

/** GraphQL over HTTP §4.1: clients from before 2025 ask for application/json, or for nothing. */
const contentTypeFor = (headers: RequestHeaders): string =>
  (requestHeader(headers, 'accept') ?? '').toLowerCase().includes('application/graphql-response+json')
    ? responseJson
    : json

const errorsOf = (message: string, code: string): unknown => ({
  errors: [{ message, extensions: { code: code.toUpperCase() } }],
})

const bodyOf = (error: GatewayError): unknown => errorsOf(errorText(error), error.code)

/** The refusal of a document that exceeds a limit (GraphQL over HTTP §6.4). */
export const limitRefusal = ({ code, message }: RefusedDocument): Invalid => ({
  kind: 'invalid',
  status: 400,
  code,
  body: errorsOf(message, code),
})

/** GraphQL over HTTP §6.3: GET executes no mutations. */
export const mutationByGet: Invalid = {
  kind: 'invalid',
  status: 405,
  code: 'mutation_by_get',
  body: errorsOf('Mutations are sent by POST.', 'mutation_by_get'),
}

const notFound = errorsOf('PersistedQueryNotFound', 'persisted_query_not_found')

/** Asks for the document of a hash, as automatic persisted queries do; `items` of a list. */
export const persistedQueryNotFound = (items?: number): Invalid => ({
  kind: 'invalid',
  status: 200,
  code: 'persisted_query_not_found',
  body: items === undefined ? notFound : Array(items).fill(notFound),
})

/** Errors in the shape of GraphQL. */
export const graphqlShape: ErrorShape = {
  contentType: json,
  contentTypeFor,
  body: bodyOf,
  text: JSON.stringify,
  headers: () => [],
  refusal: ({ headers }, { status }) => ({
    contentType: contentTypeFor(headers),
    headers: [
      ...['Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff'],
      ...(status === 405 ? ['Allow', 'POST'] : []),
    ],
  }),
  itemBody: (_status, body) => body,
  batchHeaders: () => ['Cache-Control', 'no-store'],
}
