import { type ErrorCode, type ErrorFacts, errorTable } from '../errors.ts'
import type { LocalRequest } from '../exchange/request-context.ts'
import type { Service } from '../exchange/service.ts'
import type { Pieces } from '../http/bodies/turns.ts'
import type { RequestHeaders } from '../http/headers/header-lines.ts'
import { type Effect, isGet } from '../http/methods.ts'
import { type Canonical, canonicalInPieces } from '../service/canonical.ts'
import { isWrite } from '../service/decide.ts'
import type { Found, Row } from '../service/row.ts'
import type { BatchItem, ItemCheck, ItemReach } from './item.ts'

type Refusal = Extract<ItemCheck, { kind: 'refused' }>

const refusal = (status: number, code: string, message: string): Refusal => ({
  kind: 'refused',
  status,
  body: { code, message, data: { status } },
})

const refusedBy = (code: ErrorCode): ItemCheck => {
  const { status, message, siteCode }: ErrorFacts = errorTable[code]
  return refusal(status, siteCode ?? `trellis_${code}`, message)
}

/** The methods that the caller may use; only the upstream can check a credential, so any is taken for a valid one. */
const allowHeader = (row: Row, hasCredential: boolean): readonly string[] => {
  const methods = row.endpoints.flatMap((endpoint) => endpoint.methods)
  const allowedMethods = hasCredential ? methods : methods.filter(isGet)
  return allowedMethods.length === 0 ? [] : ['Allow', allowedMethods.join(', ')]
}

/** Inside a batch no slashes are merged: two of them stand for themselves in the identifier of a template, or match nothing. */
const mergesSlashes = (path: string, { pathParameters }: Found): boolean => {
  const identifier = Object.values(pathParameters).find((value) => value.includes('//'))
  const end = identifier === undefined ? path.length : path.indexOf(identifier.split('/', 1)[0] as string)
  return path.slice(0, end).includes('//')
}

/** The tags of stored responses that an item reads or changes; undefined where its row says that (order/reach.ts). */
const reachOf = (service: Service, method: string, effect: Effect, match: Found): ItemReach | undefined => {
  if (service.contract.hasIndex) return undefined
  const nothingYet = { status: 200, headers: [], content: Buffer.alloc(0) }
  return {
    shows: new Set(service.contract.tagger.storedTags(match, {}, nothingYet)),
    changes:
      effect === 'write'
        ? service.contract.tagger.writtenTags(match, () => undefined, method, undefined)
        : [],
  }
}

/** Its headers decide no more than whether it reads through the cache. */
const effectOf = (
  { service, snapshot }: LocalRequest,
  method: string,
  { policy, uncacheable }: Canonical,
): Effect =>
  isWrite(service.contract, policy, {
    method,
    uncacheable,
    sharesRoutes: () => snapshot.sharesRoutes(service),
  })
    ? 'write'
    : 'read'

/** Whether an item may run, decided before anything of the batch has run. */
export function* checkItem(
  batch: LocalRequest,
  item: BatchItem,
  headersOf: (item: BatchItem) => RequestHeaders,
): Pieces<ItemCheck> {
  const { service, snapshot } = batch
  // Another service may be mounted below this one.
  if (!snapshot.table.reaches(service, service.mount + item.path)) return refusedBy('no_route')
  const match = service.contract.find(item.method, item.path)
  if (match.kind === 'refused') return refusedBy('ambiguous_request')
  if (match.kind !== 'found' || mergesSlashes(item.path, match)) return refusedBy('no_route')
  const { row, endpoint, pathParameters } = match
  const headers = allowHeader(row, batch.request.headers['authorization'] !== undefined)
  const isAllowed = !service.contract.hasIndex || endpoint.allowBatch === true || isGet(item.method)
  // A batch in a batch would multiply what one request may cost.
  if (!isAllowed || row.handledBy === 'batch') {
    const message = 'The requested route does not support batch requests.'
    return { ...refusal(400, 'rest_batch_not_allowed', message), headers }
  }
  const canonical = yield* canonicalInPieces(service.contract, item.method, match, {
    query: item.query,
    contentType: item.content === undefined ? undefined : (endpoint.jsonType ?? 'application/json'),
    content: item.content,
    // Declared headers and cookies are part of the cache key.
    headers: endpoint.readsHeaders === true ? headersOf(item) : undefined,
  })
  if (canonical.kind === 'invalid') {
    return { kind: 'refused', status: canonical.status, body: canonical.body, headers }
  }
  const effect = effectOf(batch, item.method, canonical)
  return {
    kind: 'runnable',
    checked: { service, matching: match, canonical },
    conflict: {
      collection: row.collection,
      kind: row.kind,
      itemId: pathParameters['parent'] ?? pathParameters['id'],
      method: item.method,
      effect,
      reach: reachOf(service, item.method, effect, match),
    },
  }
}
