import { type ErrorCode, type ErrorFacts, errorTable, GatewayError } from '../errors.ts'
import type { WriteOutcome } from '../exchange/events.ts'
import type { CheckedItem, LocalRequest } from '../exchange/request-context.ts'
import type { Service } from '../exchange/service.ts'
import { isJsonInPieces } from '../http/bodies/json-syntax.ts'
import type { Pieces } from '../http/bodies/turns.ts'
import { isCredentialName } from '../http/headers/credential-headers.ts'
import { isForwardable } from '../http/headers/forwardable-headers.ts'
import type { HeaderLines, RequestHeaders } from '../http/headers/header-lines.ts'
import { asciiJson, elementTexts, type JsonObject, type JsonText, memberText } from '../http/json-text.ts'
import { type Effect, isGet } from '../http/methods.ts'
import { type Canonical, canonicalInPieces } from '../service/canonical.ts'
import type { ErrorShape, ItemReading } from '../service/contract.ts'
import { isWrite } from '../service/decide.ts'
import type { Found, Row } from '../service/row.ts'

/** An item's response that the gateway made, in the error shape of the site contract. */
export type ItemError = { readonly status: number; readonly body: unknown; readonly headers: HeaderLines }

const itemErrorTable = {
  parse_path_failed: { status: 400, code: 'parse_path_failed', message: 'Could not parse the path.' },
  no_route: { status: 404, code: errorTable.no_route.siteCode, message: errorTable.no_route.message },
  not_sent: { status: 504, code: 'trellis_not_sent', message: errorTable.not_sent.message },
  outcome_unknown: {
    status: 504,
    code: 'trellis_outcome_unknown',
    message: 'The deadline passed before the response arrived; the request may have been executed.',
  },
  answer_too_large: {
    status: 502,
    code: 'trellis_answer_too_large',
    message: 'The response is too large for a batch; the request itself was executed.',
  },
  not_json: {
    status: 502,
    code: 'trellis_upstream_broken',
    message: 'The response of the upstream is not JSON.',
  },
} as const

/** The error of that name, with the status of the upstream's own response where there is one. */
export const itemError = (name: keyof typeof itemErrorTable, status?: number): ItemError => {
  const { code, message, status: usual } = itemErrorTable[name]
  const shownStatus = status ?? usual
  return { status: shownStatus, body: { code, message, data: { status: shownStatus } }, headers: [] }
}

/** An error of an item in the shape of its service; one that a validator has made is in it already. */
export const shapedError = (errors: ErrorShape, error: ItemError): ItemError => ({
  ...error,
  body: errors.itemBody(error.status, error.body),
})

/** A write without a response of the upstream, with how far it got. */
export class WriteFailed extends Error {
  readonly outcome: WriteOutcome

  constructor(cause: unknown, outcome: WriteOutcome) {
    super('A write got no response.', { cause })
    this.outcome = outcome
  }
}

/** The response of an item is more than the batch may hold. */
export class ResponseTooLarge extends Error {}

/** The error of an item that threw; that of a write states whether the write may have happened. */
export const thrownItemError = (thrown: unknown): ItemError => {
  if (thrown instanceof ResponseTooLarge) return itemError('answer_too_large')
  const { reason, outcome } =
    thrown instanceof WriteFailed
      ? { reason: thrown.cause, outcome: thrown.outcome }
      : { reason: thrown, outcome: undefined }
  const error = reason instanceof GatewayError ? reason : new GatewayError('internal', { cause: reason })
  const { status, message, siteCode } = error.facts
  const { retryAfterSeconds } = error
  const retryAfter = retryAfterSeconds === undefined ? [] : ['Retry-After', String(retryAfterSeconds)]
  const headers = [...error.headers, ...retryAfter]
  if (error.body !== undefined) return { status, body: error.body, headers }
  const data = { status, ...(outcome === undefined ? {} : { outcome }) }
  return { status, body: { code: siteCode ?? `trellis_${error.code}`, message, data }, headers }
}

/** One request of a batch, ready to be checked and run. */
export type BatchItem = {
  /** Position in the batch, from 0. */
  readonly index: number
  readonly method: string
  /** What its service says of it; a write until it is checked. */
  readonly effect: Effect
  /** Relative to the service's root, with a leading slash, e.g. `/site/v2/posts/5`. */
  readonly path: string
  /** Without `?`; empty when there is none. */
  readonly query: string
  /** Lower-case names; nothing among them sets credentials, framing, forwarding or another method. */
  readonly headers: Readonly<Record<string, string>>
  readonly content: Buffer | undefined
  /** Its route and validation; undefined until it was checked. */
  readonly checked?: CheckedItem | undefined
}

/** What an item touches, for the order of the batch. */
export type ConflictFacts = {
  /** Collection of the row, e.g. `posts`; empty when it has none. */
  readonly collection: string
  /** Kind of the row: `collection`, `item`, `revisions` … */
  readonly kind: string
  /** The item that is meant, after parameters that name another one were understood. */
  readonly itemId: string | undefined
  readonly method: string
  readonly effect: Effect
  /** If stored responses of the service have tags: those of what the item shows, and of what it may change. */
  readonly reach?: ItemReach | undefined
}

export type ItemReach = { readonly shows: ReadonlySet<string>; readonly changes: readonly string[] }

/** The result of the route table and validation for an item, without running it. */
export type ItemCheck =
  | { readonly kind: 'runnable'; readonly conflict: ConflictFacts; readonly checked?: CheckedItem }
  /** `headers` are shown with the item unless the batch fails as a whole. */
  | {
      readonly kind: 'refused'
      readonly status: number
      readonly body: unknown
      readonly headers?: HeaderLines
    }

export type ItemResponse = {
  readonly status: number
  readonly headers: HeaderLines
  /** JSON of the response, copied into the batch's response byte for byte. */
  readonly content: Buffer
  /** It is known to be JSON: it was cut out of some. */
  readonly isJson?: boolean
}

/**
 * Sends an item; `signal` ends it at any time, `stop` only before it has begun. What it throws becomes the item's
 * answer.
 */
export type HandleItem = (item: BatchItem, signal: AbortSignal, stop: AbortSignal) => Promise<ItemResponse>

/** Which headers of its response an item shows. */
type ShownHeaders = Pick<ItemReading, 'shownHeaders' | 'isGeneralLink'>

const headersJson = (headers: HeaderLines, { shownHeaders, isGeneralLink }: ShownHeaders): string => {
  const values = new Map<string, string>()
  for (let i = 0; i < headers.length; i += 2) {
    const lowerName = (headers[i] as string).toLowerCase()
    const before = values.get(lowerName)
    const value = headers[i + 1] as string
    values.set(lowerName, before === undefined ? value : `${before}, ${value}`)
  }
  if (isGeneralLink(values.get('link') ?? '')) values.delete('link')
  const members = shownHeaders.flatMap((name) => {
    const value = values.get(name.toLowerCase())
    return value === undefined ? [] : `"${name}":${asciiJson(value)}`
  })
  // The site contract writes an empty map as an empty list.
  return members.length === 0 ? '[]' : `{${members.join(',')}}`
}

const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])

/** One element of `responses`, in pieces that are joined once. */
export type ResponsePart = readonly Buffer[]

const bodyKey = Buffer.from('{"body":')

const part = (body: Buffer, status: number, headers: string): ResponsePart => [
  bodyKey,
  body,
  Buffer.from(`,"status":${status},"headers":${headers}}`),
]

/** `{"body":…,"status":…,"headers":…}` of a response, its JSON copied byte for byte, so that no number changes. */
export function* responsePart(
  { status, headers, content, isJson: isKnown }: ItemResponse,
  errors: ErrorShape,
  shown: ShownHeaders,
): Pieces<ResponsePart> {
  const hasMark = content.subarray(0, 3).equals(byteOrderMark)
  const text = hasMark ? content.subarray(3) : content
  if (text.length === 0) return part(Buffer.from('null'), status, headersJson(headers, shown))
  if (isKnown === true || (yield* isJsonInPieces(text)))
    return part(text, status, headersJson(headers, shown))
  return madePart(shapedError(errors, itemError('not_json', status >= 400 ? status : undefined)), shown)
}

/** The same for a response that the gateway made. */
export const madePart = (
  response: { readonly status: number; readonly body: unknown; readonly headers: HeaderLines },
  shown: ShownHeaders,
): ResponsePart =>
  part(Buffer.from(asciiJson(response.body), 'latin1'), response.status, headersJson(response.headers, shown))

/** Stands for a valid item in a batch that failed as a whole. */
export const nullPart: ResponsePart = [Buffer.from('null')]

/** The whole response; `failed` has no other value than this one, and is absent otherwise. */
export const envelopeOf = (parts: readonly ResponsePart[], failed: 'validation' | undefined): Buffer => {
  const pieces: Buffer[] = [failed === undefined ? opening : failedOpening]
  for (const [index, part] of parts.entries()) {
    if (index > 0) pieces.push(comma)
    pieces.push(...part)
  }
  pieces.push(closing)
  return Buffer.concat(pieces)
}

const opening = Buffer.from('{"responses":[')
const failedOpening = Buffer.from('{"failed":"validation","responses":[')
const comma = Buffer.from(',')
const closing = Buffer.from(']}')

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
  'range',
  'accept',
  'cache-control',
  'pragma',
  'origin',
  'referer',
  'cdn-loop',
  'max-forwards',
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
  'x-original-',
  'x-rewrite-',
  'x-http-',
  'x-method-',
  'x-real-',
  'x-client-',
  'x-cluster-',
  'x-host',
  'x-request-',
  'cf-',
  'http2-',
]

const longestName = 64
const valuePattern = /^[\t\x20-\x7e]{0,1024}$/

/** Within an upstream batch an item's headers are part of the content: none is there that a request of its own would lose. */
const isSettable = (name: string, furtherPrefixes: readonly string[]): boolean =>
  name.length <= longestName &&
  isForwardable(name) &&
  !withoutEffect.has(name) &&
  !isCredentialName(name) &&
  !prefixesWithoutEffect.some((prefix) => name.startsWith(prefix)) &&
  !furtherPrefixes.some((prefix) => name.startsWith(prefix))

const headerText = (value: unknown): string | undefined => {
  const text = Array.isArray(value) ? value.join(', ') : String(value)
  return valuePattern.test(text) ? text : undefined
}

/** The headers of an item that are sent with it: what may not be set is dropped, as it has no effect inside a batch. */
export const itemHeaders = (
  headers: JsonObject | undefined,
  hasContent: boolean,
  furtherPrefixes: readonly string[],
): Record<string, string> => {
  const headerLines: Record<string, string> = Object.create(null)
  for (const [name, value] of Object.entries(headers ?? {})) {
    const text = headerText(value)
    if (text !== undefined && isSettable(name.toLowerCase(), furtherPrefixes))
      headerLines[name.toLowerCase()] = text
  }
  if (hasContent) headerLines['content-type'] = 'application/json'
  return headerLines
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
  { path: entryPath, method = 'POST', body, headers }: BatchEntry,
  index: number,
  bodyText: string | undefined,
  reading: ItemReading,
): EnvelopeItem => {
  const target = reading.target(entryPath)
  if (target.kind === 'unparsable') return { kind: 'faulty', error: itemError('parse_path_failed') }
  if (target.kind === 'no-route') return { kind: 'faulty', error: itemError('no_route') }
  // A list is a body too, and its indexes are its names.
  const bodyNames = typeof body === 'object' && body !== null ? Object.keys(body) : []
  const content = reading.hasContent(body) ? Buffer.from(bodyText ?? JSON.stringify(body)) : undefined
  const headerLines = itemHeaders(headers, content !== undefined, reading.prefixesWithoutEffect)
  const { path, query } = target
  return {
    kind: 'item',
    item: { index, method, effect: 'write', path, query, headers: headerLines, content },
    bodyNames,
  }
}
