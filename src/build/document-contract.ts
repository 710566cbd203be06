import type { CachePolicy } from '../cache/decide-caching.ts'
import { strictestPolicy } from '../cache/strictest-rule.ts'
import { plantsDocument } from '../config/api-document.ts'
import type { Config, OpenApiConfig, PlantsConfig, ServiceConfig } from '../config/config.ts'
import { firstRules } from '../config/rule-match.ts'
import { sameSettings } from '../config/same-settings.ts'
import { headersThatCorsLacks } from '../config/warnings.ts'
import { hasBearer } from '../http/credential-fields.ts'
import { isUnusualName } from '../http/forwardable-fields.ts'
import type { ApiContract } from '../openapi/document/load-document.ts'
import { hasUnseenCredential, isPublicOperation, type Operation } from '../openapi/document/operation.ts'
import { plantRefusal, plantRows } from '../openapi/document/plant-store.ts'
import { inferResources, type Resources } from '../openapi/document/resources.ts'
import { missingCredential } from '../openapi/requests/openapi-operation.ts'
import type { OpenApiRequests, OpenApiRequestsOptions } from '../openapi/requests/openapi-requests.ts'
import type { Service } from '../pipeline/service.ts'
import { createRouter } from '../service/router.ts'
import type { Endpoint, Row } from '../service/row.ts'

/** Pages may send these without permission (Fetch standard, CORS-safelisted request-header). */
const safelisted: ReadonlySet<string> = new Set(['accept', 'accept-language', 'content-language', 'range'])

/** Declared request headers that pages of other origins cannot send. */
const corsNotes = (cors: Config['cors'], { operations, keyHeaders }: ApiContract): readonly string[] => {
  const parameters = operations.flatMap((operation) => operation.parameters)
  const headers = parameters.filter(({ location }) => location === 'header').map(({ name }) => name)
  const declared = new Set([...keyHeaders, ...headers])
  const missing = headersThatCorsLacks(
    cors,
    [...declared].filter((name) => !safelisted.has(name)),
  )
  if (missing.length === 0) return []
  const more = missing.length > mostNames ? `, and ${missing.length - mostNames} more` : ''
  const names = missing.slice(0, mostNames).join(', ')
  return [`pages of other origins cannot send declared headers that cors.headers lacks: ${names}${more}`]
}

/** What of the documents is accepted but not checked, or not in full; and what browsers cannot send to them. */
export const documentNotes = async (
  config: Config,
): Promise<readonly { readonly service: string; readonly text: string }[]> => {
  const notes = config.services.map(async (service) => {
    if (service.contract !== 'openapi') return []
    const { document } = service
    const { placedNotes } = await import('../config/read-document.ts')
    const { uncheckedSchemas } = await import('../openapi/requests/openapi-requests.ts')
    const texts = [
      ...(await placedNotes(document)),
      ...uncheckedSchemas(document.contract),
      ...corsNotes(config.cors, document.contract),
    ]
    return texts.map((text) => ({ service: service.name, text }))
  })
  return (await Promise.all(notes)).flat()
}

const scopeOf = (operation: Operation): string =>
  hasUnseenCredential(operation)
    ? 'none, because the operation takes a credential that the document does not describe'
    : 'credential, because the operation takes one'

/** The facts of the document about an operation, with their effect on stored responses; for `trellis explain`. */
export const operationFacts = (operation: Operation | undefined): Readonly<Record<string, unknown>> => {
  if (operation === undefined) return {}
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

const mostNames = 20

const operationTexts = ({ document }: OpenApiConfig): ReadonlySet<string> =>
  new Set(document.contract.operations.map(({ method, template }) => `${method} ${template}`))

/** The operations that new documents have and old ones had not, and the reverse, for the log line of a reload: some with `+` and `-`. */
export const documentChanges = (last: Config, next: Config) =>
  next.services.flatMap((service) => {
    const before = last.services.find(({ name }) => name === service.name)
    if (service.contract !== 'openapi' || before?.contract !== 'openapi') return []
    if (sameSettings(service.document, before.document)) return []
    const [old, now] = [operationTexts(before), operationTexts(service)]
    const added = [...now].filter((text) => !old.has(text))
    const removed = [...old].filter((text) => !now.has(text))
    const operations = [...added.map((text) => `+ ${text}`), ...removed.map((text) => `- ${text}`)]
    const counts = { added: added.length, removed: removed.length }
    return [{ service: service.name, ...counts, operations: operations.slice(0, mostNames) }]
  })

/** The resources that the paths of a document name; undefined where every write drops all responses of the service. */
export const documentResources = (service: ServiceConfig): Resources | undefined =>
  service.contract === 'openapi' && service.invalidation === 'structural'
    ? inferResources(service.document.contract.operations, service.resources)
    : undefined

/** The kind of a path with the reason, and the other paths that its writes change; none where that does not matter. */
export const resourceFacts = (
  resources: Resources | undefined,
  { operation }: Endpoint,
): { readonly resource?: string } => {
  const resource = operation === undefined ? undefined : resources?.of(operation)
  if (operation === undefined || resource === undefined) return {}
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

type PolicyFor = Service['policyFor']

/** A service with an OpenAPI document: its own, or the one of its contract. */
type Described =
  | Pick<OpenApiConfig, 'contract' | 'document' | 'parameters'>
  | Pick<PlantsConfig, 'contract' | 'limitParameter' | 'parameters'>

export const documentRows = (service: Described): readonly Row[] => {
  if (service.contract === 'openapi') return service.document.contract.rows
  const { bundle, contract } = plantsDocument(service.limitParameter)
  return plantRows(bundle, contract)
}

/** Routes and validation of the document of a service. The code that checks schemas is loaded here. */
export const documentRequests = async (
  service: Described,
  limits: OpenApiRequestsOptions['limits'],
): Promise<OpenApiRequests> => {
  const { createOpenApiRequests } = await import('../openapi/requests/openapi-requests.ts')
  const options = {
    limits,
    unknownParameters: service.parameters.unknown,
    trackingParameters: service.parameters.tracking,
  }
  if (service.contract === 'openapi') return createOpenApiRequests(service.document.contract, options)
  const { limitParameter } = service
  const { contract } = plantsDocument(limitParameter)
  const shape = { refusalOf: plantRefusal(limitParameter), hasDecodedPaths: true }
  const { validator } = createOpenApiRequests(contract, { ...options, ...shape })
  return { find: createRouter(documentRows(service)).find, validator }
}

const everyRequest = { text: '', methods: ['*'], segments: ['**'] }

/**
 * The rules as they hold for operations: a rule for one operation applies to no other, responses to operations that take a
 * credential are stored for each credential or, where the document does not describe it, not at all, and the document says which operations write although they are a GET, or only read although they are a POST.
 */
export const operationPolicies = (
  { cache: { rules } }: Pick<ServiceConfig, 'cache'>,
  { keyHeaders }: Pick<ApiContract, 'keyHeaders'>,
  byPath: PolicyFor,
  find: OpenApiRequests['find'],
): PolicyFor => {
  const policyOf = (operation: Operation, general: CachePolicy): CachePolicy => {
    const { rule } = general
    const { effect, parameters } = operation
    const cookies = parameters.filter(({ location }) => location === 'cookie').map(({ name }) => name)
    const scope = isPublicOperation(operation) ? rule?.scope : 'credential'
    const isStored = rule !== undefined && scope !== undefined && !hasUnseenCredential(operation)
    return {
      ...general,
      rule: isStored ? { ...rule, scope } : undefined,
      harmlessCookies: [...(general.harmlessCookies ?? []), ...cookies],
      // Those of other operations too: a document does not say what an unexpected key changes.
      credentialFields: keyHeaders,
      effect: effect === 'as-method' ? undefined : effect,
    }
  }
  return (method, path) => {
    const { isAmbiguous: _other, ...general } = byPath(method, path)
    const found = find(method, path)
    const operation = found.kind === 'found' ? found.endpoint.operation : undefined
    if (operation === undefined) return { ...general, rule: undefined }
    const text = `${operation.method} ${operation.template}`
    const own = rules.flatMap((rule) => {
      if (!('operation' in rule) || rule.operation === '') return [{ match: rule.match, rule }]
      return rule.operation === text ? [{ match: everyRequest, rule }] : []
    })
    const first = [...firstRules(own, method, path)].map((one) => one?.rule)
    return policyOf(operation, strictestPolicy(new Set(first), general))
  }
}

/** Presence of the credentials that the contract requires. */
export const challengeOf = (service: ServiceConfig): Service['challenge'] => {
  switch (service.contract) {
    case 'plants':
      return (_endpoint, fields) => (hasBearer(fields) ? undefined : 'Bearer')
    case 'openapi':
      return (endpoint, fields, query) =>
        endpoint?.operation === undefined ? undefined : missingCredential(endpoint.operation, fields, query)
    case 'site':
    case 'open':
      return undefined
  }
}

/** Headers with API keys whose names are unusual, such as `api_key`. Those of an operation are sent to it alone. */
export const declaredFieldsOf = (service: ServiceConfig): readonly string[] =>
  service.contract === 'openapi' ? service.document.contract.keyHeaders.filter(isUnusualName) : []
