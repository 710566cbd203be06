import type { GraphqlConfig } from '../config/config.ts'
import { type RequestHeaders, requestHeader } from '../http/headers/header-lines.ts'
import { essence } from '../http/headers/media-type.ts'
import { isGetOrHead, isOptions } from '../http/methods.ts'
import { plainItems } from '../service/batch-row.ts'
import { type ContentPlan, type Contract, planByMediaType } from '../service/contract.ts'
import { methodNotAllowed } from '../service/problem.ts'
import { createRowsInUse } from '../service/router.ts'
import type { Endpoint, RouteMatch, Row } from '../service/row.ts'
import { graphqlShape } from './errors.ts'
import { Requests } from './requests.ts'
import { type Companion, createGraphqlTagger } from './tagger.ts'

const endpoint: Endpoint = {
  methods: ['GET', 'POST', 'QUERY'],
  arguments: {},
  acceptsUploads: true,
  // Accept is part of the key.
  readsHeaders: true,
}

/** The one endpoint, at the mount itself. */
const endpointRow: Row = {
  id: 'graphql',
  template: '/',
  pattern: '/?',
  namespace: '',
  collection: '',
  kind: 'action',
  handledBy: 'upstream',
  endpoints: [endpoint],
}

const rows: readonly Row[] = [endpointRow]

/** The endpoint of the upstream is its base path, without a slash behind it. */
const findEndpoint =
  (basePath: string): Contract['find'] =>
  (method, requested): RouteMatch => {
    const path = basePath === '/' ? '/' : ''
    if (requested !== '/' && requested !== '') return { kind: 'unlisted', path: requested }
    if (isOptions(method)) return { kind: 'options', row: endpointRow, path }
    const methods: readonly string[] = ['HEAD', ...endpoint.methods]
    return methods.includes(method)
      ? { kind: 'found', row: endpointRow, endpoint, pathParameters: {}, path }
      : { kind: 'wrong-method', row: endpointRow, path }
  }

const overrides = ['x-http-method-override', 'x-http-method', 'x-method-override'] as const

const requestMeaning: Contract['methodMeant'] = (method, _query, headers) => {
  const override = overrides.map((name) => requestHeader(headers, name)).find((value) => value !== undefined)
  return override === undefined || override.toUpperCase() === method
    ? { kind: 'method', method }
    : { kind: 'refused', detail: 'The method may not be overridden.' }
}

/** JSON in UTF-8 without a content coding is read; anything else, such as an upload, is forwarded as a write. */
const planByContent = (method: string, taken: Endpoint, headers: RequestHeaders): ContentPlan => {
  if (isGetOrHead(method)) return planByMediaType(method, taken, headers)
  const type = requestHeader(headers, 'content-type')
  const isOtherCharset = /charset\s*=(?!\s*"?utf-?8\b)/i.test(type ?? '')
  const isRead =
    essence(type) === 'application/json' && !isOtherCharset && headers['content-encoding'] === undefined
  return isRead ? 'read' : 'stream'
}

type Options = Pick<Contract, 'policyFor' | 'uncacheableReasonOf' | 'actsAsWrite'> & {
  readonly limits: { readonly jsonDepth: number }
  readonly companion: Companion
}

/** Anonymous clients read the schema, unless the gateway refuses it or each of them is known. */
export const endpointHints = ({ graphql, access }: GraphqlConfig): readonly string[] =>
  graphql.introspection && access === undefined
    ? [
        'introspection is open: any client can read the schema. graphql.introspection: false refuses it, also where the upstream allows it',
      ]
    : []

/** A GraphQL endpoint: the operation that a request asks for decides what it does. */
export const createGraphqlContract = (
  config: GraphqlConfig,
  { limits, policyFor, companion, ...reads }: Options,
): Contract => {
  const named = config.cache.rules.map(({ match }) => match.text)
  const requests = new Requests(config.graphql, limits.jsonDepth, policyFor, named)
  return {
    ...reads,
    name: 'graphql',
    rows,
    registered: rows,
    ...createRowsInUse(findEndpoint(config.upstream.basePath)),
    unlisted: 'refuse',
    hasIndex: false,
    hasRoutes: true,
    options: 'upstream',
    methodMeant: requestMeaning,
    sendsMethodOverride: false,
    wrongMethod: methodNotAllowed,
    challenge: undefined,
    contentPlan: planByContent,
    validator: requests,
    declaredHeaders: [],
    secretParameters: [],
    keyHeaders: [],
    items: plainItems,
    effectByContent: true,
    // Rules name operations, which the content of a request decides.
    policyFor: () => ({ ...policyFor('query', '/'), rule: undefined }),
    tagger: createGraphqlTagger({ service: config.name, tags: config.graphql.tags, companion }),
    // Whether anything was executed shows in the content.
    readsWriteResponse: (_row, isUpload) => !isUpload,
    invalidatesTargets: false,
    errors: graphqlShape,
    describe: () => {
      const { seen } = requests.names
      return seen.length === 0 ? {} : { operations: seen.join(', ') }
    },
  }
}
