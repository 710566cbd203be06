import { type CachePolicy, strictestPolicy } from '../cache/decide-caching.ts'
import type { OpenApiConfig, PlantsConfig } from '../config/config.ts'
import { firstRules } from '../config/rule-match.ts'
import { GatewayError } from '../errors.ts'
import { atOnce, inTurns, nextTurn } from '../http/bodies/turns.ts'
import { hasBearer } from '../http/headers/credential-headers.ts'
import { isUnusualName } from '../http/headers/forwardable-headers.ts'
import { type RequestHeaders, requestHeader } from '../http/headers/header-lines.ts'
import { plainItems } from '../service/batch-row.ts'
import { type ContentPlan, type Contract, planByMediaType, readUncoded } from '../service/contract.ts'
import { errorText, methodNotAllowed, plainShape, problemShape } from '../service/problem.ts'
import { meaningByMethod } from '../service/route-request.ts'
import { createRouter, createRowsInUse } from '../service/router.ts'
import type { Row } from '../service/row.ts'
import { apiDocumentOf, plantsDocument } from './document/api-document.ts'
import type { ApiContract } from './document/load-document.ts'
import { hasUnseenCredential, isPublicOperation, type Operation, operationOf } from './document/operation.ts'
import { plantRefusal, plantRows } from './document/plant-store.ts'
import { inferResources, type Resources } from './document/resources.ts'
import { contentFor, missingCredential } from './requests/openapi-operation.ts'
import type { OpenApiRequests, OpenApiRequestsOptions } from './requests/openapi-requests.ts'
import { createServiceTagger, createStructuralTagger } from './tags/structural-tagger.ts'

const maxListed = 20

/** The media types of the operation decide; content that is not validated streams. */
const planByOperation = (operation: Operation, fields: RequestHeaders): ContentPlan => {
  const described = contentFor(operation, requestHeader(fields, 'content-type'))
  if (described === undefined) {
    const types = (operation.body?.contents ?? []).slice(0, maxListed).map(({ mediaType }) => mediaType)
    throw new GatewayError('unsupported_content_type', {
      detail: types.length === 0 ? 'This operation takes no body.' : `Send ${types.join(', ')}.`,
    })
  }
  return described.reading === 'size' ? 'stream' : readUncoded(fields)
}

const everyRequest = { text: '', methods: ['*'], segments: ['**'] }

/**
 * The rules as they hold for operations: a rule for one operation applies to no other, responses to operations that take a
 * credential are stored for each credential or, where the document does not describe it, not at all, and the document says which
 * operations write although they are a GET, or only read although they are a POST.
 */
const policiesByOperation = (
  { cache: { rules } }: Pick<OpenApiConfig, 'cache'>,
  { keyHeaders }: Pick<ApiContract, 'keyHeaders'>,
  byPath: Contract['policyFor'],
  find: Contract['find'],
): Contract['policyFor'] => {
  const policyOf = (operation: Operation, general: CachePolicy): CachePolicy => {
    const { rule } = general
    const { effect, parameters } = operation
    const cookies = parameters.filter(({ location }) => location === 'cookie').map(({ name }) => name)
    const headers = parameters.filter(({ location }) => location === 'header').map(({ name }) => name)
    const scope = isPublicOperation(operation) ? rule?.scope : 'credential'
    const isStored = rule !== undefined && scope !== undefined && !hasUnseenCredential(operation)
    return {
      ...general,
      rule: isStored ? { ...rule, scope } : undefined,
      harmlessCookies: [...(general.harmlessCookies ?? []), ...cookies],
      // Those of other operations too: a document does not say what an unexpected key changes.
      credentialHeaders: keyHeaders,
      declaredHeaders: headers.map((name) => name.toLowerCase()),
      declaredEffect: effect === 'as-method' ? undefined : effect,
    }
  }
  return (method, path) => {
    const { isAmbiguous: _other, ...general } = byPath(method, path)
    const routeMatch = find(method, path)
    const operation = routeMatch.kind === 'found' ? operationOf(routeMatch.endpoint) : undefined
    if (operation === undefined) return { ...general, rule: undefined }
    const text = `${operation.method} ${operation.template}`
    const entries = rules.flatMap((rule) => {
      if (!('operation' in rule) || rule.operation === '') return [{ match: rule.match, rule }]
      return rule.operation === text ? [{ match: everyRequest, rule }] : []
    })
    const first = firstRules(entries, method, path).map((entry) => entry?.rule)
    return policyOf(operation, strictestPolicy(new Set(first), general))
  }
}

/** What both kinds of documents have in common. */
const described = {
  unlisted: 'refuse',
  hasIndex: false,
  hasRoutes: true,
  // A document says whether its paths take OPTIONS.
  options: 'refused',
  methodMeant: meaningByMethod,
  sendsMethodOverride: false,
  wrongMethod: methodNotAllowed,
  items: plainItems,
} as const

type Options = {
  readonly limits: OpenApiRequestsOptions['limits']
  readonly policyFor: Contract['policyFor']
}

type ParametersConfig = Pick<OpenApiConfig, 'parameters'>

const requestOptions = ({ parameters }: ParametersConfig, limits: Options['limits']) => ({
  limits,
  unknownParameters: parameters.unknown,
  trackingParameters: parameters.tracking,
})

/** The code that checks schemas is loaded here. */
const loadRequests = async () => (await import('./requests/openapi-requests.ts')).createOpenApiRequests

export const createDocumentContract = async (
  config: OpenApiConfig,
  { limits, policyFor }: Options,
): Promise<Contract> => {
  const document = apiDocumentOf(config).contract
  const createRequests = await loadRequests()
  const requests = await inTurns(
    createRequests(document, { ...requestOptions(config, limits), formats: config.formats }),
    '',
  )
  // Reads the whole document.
  await nextTurn()
  const resources =
    config.invalidation === 'structural' ? inferResources(document.operations, config.resources) : undefined
  await nextTurn()
  const { name: service } = config
  return {
    ...described,
    name: 'openapi',
    rows: document.rows,
    registered: document.rows,
    ...createRowsInUse(requests.find),
    challenge: (endpoint, fields, query) => {
      const operation = operationOf(endpoint)
      return operation === undefined ? undefined : missingCredential(operation, fields, query)
    },
    contentPlan: (method, endpoint, fields) => {
      const operation = operationOf(endpoint)
      return operation === undefined
        ? planByMediaType(method, endpoint, fields)
        : planByOperation(operation, fields)
    },
    validator: requests.validator,
    // Headers with API keys, such as `api_key`. Those of an operation are sent to it alone.
    declaredHeaders: document.keyHeaders.filter(isUnusualName),
    secretParameters: [...document.keyParameters, ...document.passwordParameters],
    keyHeaders: document.keyHeaders,
    policyFor: policiesByOperation(config, document, policyFor, requests.find),
    // The document says what its parameters mean.
    uncacheableReasonOf: () => undefined,
    actsAsWrite: () => false,
    tagger:
      resources === undefined
        ? createServiceTagger({ service })
        : createStructuralTagger({ service, resources }),
    // The tags follow from status and header fields.
    readsWriteResponse: () => false,
    invalidatesTargets: resources !== undefined,
    errors: problemShape,
    describe: (endpoint) => describeOperation(resources, operationOf(endpoint)),
  }
}

type PlantsDocument = Pick<PlantsConfig, 'limitParameter' | 'parameters'>

/** The rows of the plant store, as its document has them. */
export const plantStoreRows = ({
  limitParameter,
}: Pick<PlantsDocument, 'limitParameter'>): readonly Row[] => {
  const { bundle, contract } = plantsDocument(limitParameter)
  return plantRows(bundle, contract)
}

/** Routes and validation of the plant store. */
export const plantStoreRequests = async (
  config: PlantsDocument,
  limits: Options['limits'],
): Promise<OpenApiRequests> => {
  const createRequests = await loadRequests()
  const { contract } = plantsDocument(config.limitParameter)
  const { validator } = atOnce(
    createRequests(contract, {
      ...requestOptions(config, limits),
      refusalOf: plantRefusal(config.limitParameter),
      hasDecodedPaths: true,
    }),
  )
  return { find: createRouter(plantStoreRows(config)).find, validator }
}

/** A plant store (contracts/plants.yaml). */
export const createPlantsContract = async (
  config: PlantsConfig,
  { limits, policyFor, ...reads }: Options & Pick<Contract, 'uncacheableReasonOf'>,
): Promise<Contract> => {
  const rows = plantStoreRows(config)
  const { find, validator } = await plantStoreRequests(config, limits)
  return {
    ...described,
    ...reads,
    name: 'plants',
    rows,
    registered: rows,
    ...createRowsInUse(find),
    challenge: (_endpoint, fields) => (hasBearer(fields) ? undefined : 'Bearer'),
    contentPlan: planByMediaType,
    validator,
    declaredHeaders: [],
    secretParameters: [],
    keyHeaders: [],
    policyFor,
    actsAsWrite: () => false,
    tagger: createServiceTagger({ service: config.name }),
    readsWriteResponse: (_row, isUpload) => !isUpload,
    invalidatesTargets: false,
    errors: plainShape(
      'application/json; charset=utf-8',
      (error) => ({ error: error.facts.status, message: errorText(error) }),
      (status, { message }) => ({ error: status, message }),
    ),
    describe: (endpoint) => describeOperation(undefined, operationOf(endpoint)),
  }
}

const scopeOf = (operation: Operation): string =>
  hasUnseenCredential(operation)
    ? 'none, because the operation takes a credential that the document does not describe'
    : 'credential, because the operation takes one'

/** The facts of the document about an operation, with their effect on stored responses. */
const operationFacts = (operation: Operation): Readonly<Record<string, unknown>> => {
  const { operationId, parameters, cache, effect, isAmbiguous } = operation
  const keyed = parameters.filter(({ location }) => location === 'header' || location === 'cookie')
  return {
    ...(operationId === '' ? {} : { operation: operationId }),
    ...(isAmbiguous ? { unchecked: 'the document has several operations for this method and path' } : {}),
    ...(cache === undefined
      ? {}
      : { 'x-trellis-cache': `ttl ${cache.ttl}; rules of the configuration come first` }),
    ...(effect === 'as-method'
      ? {}
      : { effect: effect === 'writes' ? 'writes, by x-trellis-writes' : 'reads only, by x-trellis-safe' }),
    ...(isPublicOperation(operation) ? {} : { scope: scopeOf(operation) }),
    ...(keyed.length === 0
      ? {}
      : { partOfTheCacheKey: keyed.map(({ name, location }) => `${location} ${name}`) }),
  }
}

/** The kind of a path with the reason, and the other paths that its writes change; none where that does not matter. */
const resourceFacts = (
  resources: Resources | undefined,
  operation: Operation,
): { readonly resource?: string } => {
  const resource = resources?.of(operation)
  if (resource === undefined) return {}
  const isRead = ['GET', 'HEAD', 'OPTIONS'].includes(operation.method)
  const isWrite = operation.effect === 'writes' || (!isRead && operation.effect !== 'safe')
  const { kind, reason, target, invalidates } = resource
  const text =
    kind === 'unknown' ? `unknown: ${reason}` : isWrite && kind === 'part' ? `action on ${target}` : reason
  return isWrite && invalidates !== undefined
    ? {
        resource: `${text}; invalidates ${invalidates.length === 0 ? 'nothing else' : invalidates.join(', ')}`,
      }
    : { resource: text }
}

/** What is known of an operation, for `trellis explain` and `trellis routes`; undefined: the endpoint has none. */
const describeOperation = (
  resources: Resources | undefined,
  operation: Operation | undefined,
): ReturnType<Contract['describe']> =>
  operation === undefined ? {} : { ...operationFacts(operation), ...resourceFacts(resources, operation) }
