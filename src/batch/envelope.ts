import { type ErrorCode, type ErrorFacts, errorTable } from '../errors.ts'
import type { LocalRequest, Service } from '../exchange/service.ts'
import { isCredentialName } from '../http/credential-fields.ts'
import { elementTexts, type JsonObject, type JsonText, memberText } from '../http/json-text.ts'
import type { RequestFields } from '../http/message.ts'
import type { ItemReading } from '../service/contract.ts'
import { canonicalOf } from '../service/decide.ts'
import type { Found, Row } from '../service/row.ts'
import { type BatchItem, type ItemAdmission, type ItemError, type ItemReach, itemError } from './item.ts'

type Refusal = Extract<ItemAdmission, { kind: 'refused' }>

const refused = (status: number, code: string, message: string): Refusal => ({
  kind: 'refused',
  status,
  body: { code, message, data: { status } },
})

const refusedBy = (code: ErrorCode): ItemAdmission => {
  const { status, message, siteCode }: ErrorFacts = errorTable[code]
  return refused(status, siteCode ?? `trellis_${code}`, message)
}

/** The methods that the caller may use; only the upstream can check a credential, so any is taken for a valid one. */
const allowField = (row: Row, hasCredential: boolean): readonly string[] => {
  const methods = row.endpoints.flatMap((endpoint) => endpoint.methods)
  const allowed = hasCredential ? methods : methods.filter((method) => method === 'GET')
  return allowed.length === 0 ? [] : ['Allow', allowed.join(', ')]
}

/** Inside a batch no slashes are merged: two of them stand for themselves in the identifier of a template, or match nothing. */
const mergesSlashes = (path: string, { pathParameters }: Found): boolean => {
  const identifier = Object.values(pathParameters).find((value) => value.includes('//'))
  const end = identifier === undefined ? path.length : path.indexOf(identifier.split('/', 1)[0] as string)
  return path.slice(0, end).includes('//')
}

type ItemPorts = {
  /** The header fields that the item is sent with. */
  fieldsOf(item: BatchItem): RequestFields
  /** Does a request for this public target reach the service? */
  reaches(service: Service, target: string): boolean
}

/** `safe`: a POST that reads; `writes`: a GET that changes something. */
const changesSomething = ({ contract }: Service, method: string, path: string): boolean => {
  const { effect } = contract.policyFor(method, path)
  if (method === 'GET') return effect === 'writes'
  return effect !== 'safe'
}

/** The tags of stored responses that an item reads or changes; undefined where its row says that (order/plan-order.ts). */
const reachOf = (service: Service, method: string, found: Found): ItemReach | undefined => {
  if (service.contract.announces) return undefined
  const nothingYet = { status: 200, fields: [], content: Buffer.alloc(0) }
  return {
    shows: new Set(service.contract.tagger.storedTags(found, {}, nothingYet)),
    changes: changesSomething(service, method, found.path)
      ? service.contract.tagger.writtenTags(found, () => undefined, method, undefined)
      : [],
  }
}

/** Whether an item may run, decided before anything of the batch has run. */
export const admitItem = (
  batch: LocalRequest,
  item: BatchItem,
  { fieldsOf, reaches }: ItemPorts,
): ItemAdmission => {
  const { service } = batch
  if (!reaches(service, service.mount + item.path)) return refusedBy('no_route')
  const finding = service.contract.find(item.method, item.path)
  if (finding.kind === 'refused') return refusedBy('ambiguous_request')
  if (finding.kind !== 'found' || mergesSlashes(item.path, finding)) return refusedBy('no_route')
  const { row, endpoint, pathParameters } = finding
  const fields = allowField(row, batch.request.fields['authorization'] !== undefined)
  const isAllowed = !service.contract.announces || endpoint.allowBatch === true || item.method === 'GET'
  // A batch in a batch would multiply what one request may cost.
  if (!isAllowed || row.handledBy === 'batch') {
    const message = 'The requested route does not support batch requests.'
    return { ...refused(400, 'rest_batch_not_allowed', message), fields }
  }
  const canonical = canonicalOf(service.contract, item.method, finding, {
    query: item.query,
    contentType: item.content === undefined ? undefined : (endpoint.jsonType ?? 'application/json'),
    content: item.content,
    // Declared headers and cookies are part of the cache key.
    fields: endpoint.readsFields === true ? fieldsOf(item) : undefined,
  })
  if (canonical.kind === 'invalid') {
    return { kind: 'refused', status: canonical.status, body: canonical.body, fields }
  }
  return {
    kind: 'runnable',
    admitted: { service, matching: finding, canonical },
    conflict: {
      collection: row.collection,
      kind: row.kind,
      itemId: pathParameters['parent'] ?? pathParameters['id'],
      method: item.method,
      reach: reachOf(service, item.method, finding),
    },
  }
}

/** For each item the text of its `body`, as it stands in the text of the batch; undefined for one without. */
export const rawBodies = (batch: JsonText): readonly (JsonText | undefined)[] => {
  const requests = memberText(batch, 'requests')
  const items = requests === undefined ? undefined : elementTexts(requests)
  return (items ?? []).map((item) => memberText(item, 'body'))
}

/** An item's headers never set these: inside a batch they have no effect, on a separate request they would. */
const withoutEffect: ReadonlySet<string> = new Set([
  'authorization',
  'cookie',
  'host',
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
  'range',
  'accept',
  'accept-encoding',
  'cache-control',
  'pragma',
  'origin',
  'referer',
  'forwarded',
  'via',
  'cdn-loop',
  'max-forwards',
  'client-ip',
  'true-client-ip',
  'idempotency-key',
  'traceparent',
  'tracestate',
  'baggage',
])

const prefixesWithoutEffect: readonly string[] = [
  'content-',
  'if-',
  'proxy',
  'sec-',
  'access-control-',
  'x-forwarded-',
  'x-original-',
  'x-rewrite-',
  'x-http-',
  'x-method-',
  'x-real-',
  'x-client-',
  'x-cluster-',
  'x-host',
  'x-request-',
  'x-wp-',
  'cf-',
  'http2-',
]

const tokenPattern = /^[!#$%&'*+.^`|~0-9a-z-]{1,64}$/
const valuePattern = /^[\t\x20-\x7e]{0,1024}$/

/** `_` is not in the pattern: CGI reads it as `-` (RFC 3875 §4.1.18), and so a name with it could be one of those above. */
const isSettable = (name: string): boolean =>
  tokenPattern.test(name) &&
  !withoutEffect.has(name) &&
  !isCredentialName(name) &&
  !prefixesWithoutEffect.some((prefix) => name.startsWith(prefix))

const fieldText = (value: unknown): string | undefined => {
  const text = Array.isArray(value) ? value.join(', ') : String(value)
  return valuePattern.test(text) ? text : undefined
}

/** The fields of an item that are sent with it: what may not be set is dropped, as it has no effect inside a batch. */
export const itemFields = (headers: JsonObject | undefined, hasContent: boolean): Record<string, string> => {
  const fields: Record<string, string> = Object.create(null)
  for (const [name, value] of Object.entries(headers ?? {})) {
    const text = fieldText(value)
    if (text !== undefined && isSettable(name.toLowerCase())) fields[name.toLowerCase()] = text
  }
  if (hasContent) fields['content-type'] = 'application/json'
  return fields
}

/** An entry of `requests`: an item, or its error. Positions never shift. */
export type EnvelopeItem =
  | {
      readonly kind: 'item'
      readonly item: BatchItem
      readonly bodyNames: readonly string[]
    }
  | { readonly kind: 'faulty'; readonly error: ItemError }

/** An entry of `requests`, as the row of the batch route has checked it. */
export type BatchEntry = {
  readonly path: string
  readonly method?: string
  readonly body?: unknown
  readonly headers?: JsonObject
}

export type BatchEnvelope = {
  readonly requests: readonly BatchEntry[]
  readonly validation?: string
}

/** One entry of `requests`; `bodyText` is its body as it stands in the text of the batch, when there is one. */
export const envelopeItem = (
  { path: given, method = 'POST', body, headers }: BatchEntry,
  index: number,
  bodyText: string | undefined,
  reading: ItemReading,
): EnvelopeItem => {
  const target = reading.target(given)
  if (target.kind === 'unparsable') return { kind: 'faulty', error: itemError('parse_path_failed') }
  if (target.kind === 'no-route') return { kind: 'faulty', error: itemError('no_route') }
  // A list is a body too, and its indexes are its names.
  const bodyNames = typeof body === 'object' && body !== null ? Object.keys(body) : []
  const content = reading.hasContent(body) ? Buffer.from(bodyText ?? JSON.stringify(body)) : undefined
  const fields = itemFields(headers, content !== undefined)
  const { path, query } = target
  return { kind: 'item', item: { index, method, path, query, fields, content }, bodyNames }
}
