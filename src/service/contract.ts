import type { CachePolicy, Sensitivity } from '../cache/decide-caching.ts'
import type { GatewayError } from '../errors.ts'
import type { RequestFields } from '../http/message.ts'
import type { Connected, Connection } from './announced.ts'
import type { Endpoint, RouteFinding, Row } from './row.ts'
import type { Tagger } from './tagger.ts'
import type { Invalid, Validator } from './validation.ts'
/** The value of `contract` in the configuration; in logs, labels and reports. */
export type ContractName = 'plants' | 'site' | 'openapi' | 'open'

/** The method that a request means, or why it is refused: a field or the query would give it another method or route. */
export type RequestMeaning =
  | { readonly kind: 'method'; readonly method: string }
  | { readonly kind: 'refused'; readonly detail: string }

/** `read`: the content is read before the request is validated; `stream`: it is forwarded unread. */
export type ContentPlan = 'read' | 'stream'

/** A request that its validator refuses. */
export type RefusedRequest = {
  readonly row: Row
  readonly query: string
  readonly fields: RequestFields
  /** Where clients find the service: absolute, no slash at the end. */
  readonly publicRoot: string
}

/** The shape of the gateway's own responses. */
export type ErrorShape = {
  readonly contentType: string
  body(error: GatewayError): unknown
  /** A body as JSON. */
  text(body: unknown): string
  /** Fields of every response of the service that the gateway makes. */
  fields(publicRoot: string): readonly string[]
  /** Media type and fields of the response to a refused request. */
  refusal(
    refused: RefusedRequest,
    invalid: Invalid,
  ): { readonly contentType: string; readonly fields: readonly string[] }
  /** The body of an error of an item in a batch: `body` has the shape of the site contract, or is in this one already. */
  itemBody(status: number, body: unknown): unknown
  /** Fields of the response to a batch, by the fields of the request. */
  batchFields(fields: RequestFields): readonly string[]
}

/** The target of an item of a batch. */
export type ItemTarget =
  | { readonly kind: 'target'; readonly path: string; readonly query: string }
  | { readonly kind: 'unparsable' }
  | { readonly kind: 'no-route' }

/** How the items of a batch are read. */
export type ItemReading = {
  target(path: string): ItemTarget
  /** Does an item with this body have content? */
  hasContent(body: unknown): boolean
}

/**
 * What the gateway knows of the requests and responses of a service, by its contract. The only place where contracts differ: nothing
 * outside their folders asks which one a service has. `createOpenContract` is the smallest.
 */
export type Contract = {
  readonly name: ContractName

  /** The routes, as the contract lists them. */
  readonly rows: readonly Row[]
  /** Those that the upstream should announce: without the gateway's own batch. */
  readonly announced: readonly Row[]
  find(method: string, path: string): RouteFinding
  /** Takes the contract's rows as the upstream takes them, and those that it announces besides. */
  learn(listed: readonly Row[], learned: readonly Row[]): void
  /** Is it a row of the table in use? A row that changed has another object in its place, and tags by it may lack what the upstream depends on now. */
  hasRow(row: Row): boolean
  /** Differs between tables under which the same request has other tags. */
  tableId(): string
  /** A path that no row lists is forwarded unread, or refused. */
  readonly unlisted: 'pass' | 'refuse'
  /** The upstream announces its routes, and which of them a batch takes. */
  readonly announces: boolean
  /** False: one row stands for all paths, and only HTTP says what requests mean. */
  readonly hasRoutes: boolean
  /** OPTIONS of a listed path, except preflights of CORS: the gateway answers it, or the upstream does, or it is refused. */
  readonly options: 'own' | 'upstream' | 'refused'

  meaning(method: string, query: string, fields: RequestFields): RequestMeaning
  wrongMethod(row: Row): GatewayError
  /**
   * The challenge (RFC 9110 §11.6.1) for a request without the credentials that its endpoint requires; undefined when it has them.
   * Only their presence is checked. Contracts that require none have no function.
   */
  readonly challenge:
    | ((endpoint: Endpoint | undefined, fields: RequestFields, query: string) => string | undefined)
    | undefined
  /** For a request with content. Throws a GatewayError for content that the endpoint does not take. */
  contentPlan(method: string, endpoint: Endpoint, fields: RequestFields): ContentPlan
  readonly validator: Validator
  /** Header fields that are sent although their names are unusual (lower case), because every operation may take them. */
  readonly declaredFields: readonly string[]
  /** Parameters of the query that carry credentials: logs hide their values. */
  readonly keyParameters: readonly string[]
  /** Header fields (lower case) that carry API keys: items of a batch have those of the batch. */
  readonly keyFields: readonly string[]
  readonly items: ItemReading

  policyFor(method: string, path: string): CachePolicy
  /** What in a target keeps the response to a GET from being shared. `query` is without `?`. */
  sensitivityOf(path: string, query: string): Sensitivity | undefined
  /** Does a GET with it change something? */
  actsAsWrite(sensitivity: Sensitivity): boolean
  readonly tagger: Tagger
  /** Do tags depend on the content of the response to a write? Then it is read whole. `isUpload`: its own content streams. */
  readsWriteResponse(row: Row, isUpload: boolean): boolean
  /** A write also invalidates the targets that it and its response name (RFC 9111 §4.4), where tags do not reach everything. */
  readonly invalidatesTargets: boolean

  readonly errors: ErrorShape
  /** Absent where nothing is learned of the upstream. */
  readonly connect?: (connection: Connection) => Connected
  /** What else is known of an endpoint, for `trellis explain` and `trellis routes`. */
  describe(endpoint: Endpoint): { readonly resource?: string; readonly [fact: string]: unknown }
}
