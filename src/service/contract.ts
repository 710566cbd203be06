import type { CachePolicy, UncacheableReason } from '../cache/decide-caching.ts'
import { GatewayError } from '../errors.ts'
import { atOnce, type Pieces } from '../http/bodies/turns.ts'
import { type RequestHeaders, requestHeader } from '../http/headers/header-lines.ts'
import type { ResponseHead } from '../http/message.ts'
import { type Effect, isGetOrHead } from '../http/methods.ts'
import type { Connected, Connection } from './connection.ts'
import type { ErrorPage } from './error-page.ts'
import type { Endpoint, Found, RouteMatch, Row } from './row.ts'
import type { Tagger } from './tagger.ts'

/** The value of `contract` in the configuration; in logs, labels and reports. */
export type ContractName = 'plants' | 'site' | 'openapi' | 'graphql' | 'open'

/** The method that a request means, or why it is refused: a header or the query would give it another method or route. */
export type RequestMeaning =
  | { readonly kind: 'method'; readonly method: string }
  | { readonly kind: 'refused'; readonly detail: string }

/** `read`: the content is read before the request is validated; `stream`: it is forwarded unread. */
export type ContentPlan = 'read' | 'stream'

/** Reads a content piece by piece, before each piece is sent. */
export type ContentInspector = {
  /** Why the content is refused; undefined while nothing speaks against it. */
  read(piece: Buffer): string | undefined
  /** Why a content that ends here would be refused: then the last piece is not sent before more has been read. */
  ifEnded(): string | undefined
}

export type RefusedRequest = {
  readonly row: Row
  readonly query: string
  readonly headers: RequestHeaders
  /** Where clients find the service: absolute, no slash at the end. */
  readonly publicRoot: string
}

/** The shape of the gateway's own responses. */
export type ErrorShape = {
  readonly contentType: string
  /** The media type that a request asks for; absent: there is one. */
  contentTypeFor?(headers: RequestHeaders): string
  body(error: GatewayError): unknown
  /** A body as JSON. */
  text(body: unknown): string
  /** For people; undefined where only programs ask. */
  readonly page?: ErrorPage
  /** Headers of every response of the service that the gateway makes. */
  headers(publicRoot: string): readonly string[]
  /** Media type and headers of the response to a refused request. */
  refusal(
    refused: RefusedRequest,
    invalid: Invalid,
  ): { readonly contentType: string; readonly headers: readonly string[] }
  /** The body of an error of an item in a batch: `body` has the shape of the site contract, or is in this one already. */
  itemBody(status: number, body: unknown): unknown
  /** Headers of the response to a batch, by the headers of the request. */
  batchHeaders(headers: RequestHeaders): readonly string[]
}

/** What requests and responses say of the scheduled tasks of the upstream, which anyone can start. */
export type ScheduledTasksReading = {
  /** Does a request that starts them do nothing else? `method`: as it is sent. */
  areAlone(method: string, path: string, query: string): boolean
  /** They start at most once in this time, and one run has them for as long. */
  readonly lockMs: number
  /** The response may come before they begin: so long after it most are done. */
  readonly settleMs: number
  /** Do they run behind the response with this head? */
  runBehind(query: string, head: ResponseHead): boolean
}

export type ItemTarget =
  | { readonly kind: 'target'; readonly path: string; readonly query: string }
  | { readonly kind: 'unparsable' }
  | { readonly kind: 'no-route' }

/** What is known of collections, for items of a batch whose order no tags decide. */
export type ItemOrder = {
  /** Parameters that change nothing but the item itself. Anything else may be unique, counted or ordered in its collection. */
  readonly ownParameters: ReadonlySet<string>
  /** Items of these do not form a tree, so that a claim of one is not seen in the others. */
  readonly flatCollections: ReadonlySet<string>
  /** Deleting an item of these changes items of others. */
  readonly deletesReachEverything: ReadonlySet<string>
  /** Do they not show each other's contents? Any other two are kept in order. */
  areIndependent(collection: string, otherCollection: string): boolean
}

/** The batch route of an upstream. */
export type UpstreamBatchRoute = {
  /** Below the upstream's base path. */
  readonly route: string
  /** Does the response say that the upstream refused the batch before it ran anything? `body`: parsed. */
  refusesWhole(status: number, body: unknown): boolean
}

/** How the items of a batch are read, ordered, sent and shown. */
export type ItemRules = {
  target(path: string): ItemTarget
  /** Does an item with this body have content? */
  hasContent(body: unknown): boolean
  /** Absent: nothing is known, or tags decide. */
  readonly order?: ItemOrder
  /** Headers of responses that an item shows, in their order. */
  readonly shownHeaders: readonly string[]
  /** Links that every response of the service has are not shown with an item. */
  isGeneralLink(link: string): boolean
  /** How the names (lower case) of further request headers begin that have no effect inside a batch. */
  readonly prefixesWithoutEffect: readonly string[]
  /** Absent where the upstream has none: items are sent one by one. */
  readonly upstreamBatch?: UpstreamBatchRoute
}

/**
 * What the gateway knows of the requests and responses of a service, by its contract. The only place where contracts differ: nothing
 * outside their folders asks which one a service has. `createOpenContract` is the smallest.
 */
export type Contract = {
  readonly name: ContractName

  readonly rows: readonly Row[]
  /** Those that the upstream should announce: without the gateway's own batch. */
  readonly registered: readonly Row[]
  find(method: string, path: string): RouteMatch
  /** Takes the contract's rows as the upstream takes them, and those that it announces besides. */
  learn(listed: readonly Row[], learned: readonly Row[]): void
  /** Is it a row of the table in use? A row that changed has another object in its place, and tags by it may lack what the upstream depends on now. */
  hasRow(row: Row): boolean
  /** Differs between tables under which the same request has other tags. */
  tableId(): string
  /** A path that no row lists is forwarded unread, or refused. */
  readonly unlisted: 'pass' | 'refuse'
  /** The upstream announces its routes, and which of them a batch takes. */
  readonly hasIndex: boolean
  /** False: one row stands for all paths, and only HTTP says what requests mean. */
  readonly hasRoutes: boolean
  /** OPTIONS of a listed path, except preflights of CORS: the gateway answers it, or the upstream does, or it is refused. */
  readonly options: 'own' | 'upstream' | 'refused'

  /** Another method than the one in the request line may be meant. */
  methodMeant(method: string, query: string, headers: RequestHeaders): RequestMeaning
  /** Does the upstream get X-HTTP-Method-Override of a POST? `methodMeant` has then read it. */
  readonly sendsMethodOverride: boolean
  wrongMethod(row: Row): GatewayError
  /**
   * The challenge (RFC 9110 §11.6.1) for a request without the credentials that its endpoint requires; undefined when it has them.
   * Only their presence is checked. Contracts that require none have no function.
   */
  readonly challenge:
    | ((endpoint: Endpoint | undefined, headers: RequestHeaders, query: string) => string | undefined)
    | undefined
  /** For a request with content. Throws a GatewayError for content that the endpoint does not take. */
  contentPlan(method: string, endpoint: Endpoint, headers: RequestHeaders): ContentPlan
  /**
   * Looks into a content that is forwarded unread for what would give the request another meaning at the upstream; undefined where no
   * content of the type does. `method`: as it is sent. Throws a GatewayError for a content that cannot be looked into.
   */
  readonly inspectContent?: (
    method: string,
    headers: RequestHeaders,
    match: Found | undefined,
  ) => ContentInspector | undefined
  readonly validator: Validator
  /** Headers that are sent although their names are unusual (lower case), because every operation may take them. */
  readonly declaredHeaders: readonly string[]
  /** Parameters of the query that carry credentials or passwords: logs and the admin side hide their values. */
  readonly secretParameters: readonly string[]
  /** Headers (lower case) that carry API keys: items of a batch have those of the batch. */
  readonly keyHeaders: readonly string[]
  readonly items: ItemRules

  policyFor(method: string, path: string): CachePolicy
  /** True: whether a request writes shows in its content alone, and `access` decides when it is read. */
  readonly effectByContent?: boolean
  /** What in a target keeps the response to a GET from being shared. `query` is without `?`. */
  uncacheableReasonOf(path: string, query: string): UncacheableReason | undefined
  /** Does a GET with it change something? */
  actsAsWrite(uncacheableReason: UncacheableReason): boolean
  /** Absent where the upstream has none. */
  readonly scheduledTasks?: ScheduledTasksReading | undefined
  readonly tagger: Tagger
  /** Do tags depend on the content of the response to a write? Then it is read whole. `isUpload`: its own content streams. */
  readsWriteResponse(row: Row, isUpload: boolean): boolean
  /** A write also invalidates the targets that it and its response name (RFC 9111 §4.4), where tags do not reach everything. */
  readonly invalidatesTargets: boolean
  /**
   * Why a write of this method, path and query may change nothing; undefined: nothing is known of it. `interfaces`: base paths of the
   * services at the same upstream that have routes.
   */
  readonly noChangeClaim?:
    | ((
        method: string,
        path: string,
        query: string,
        interfaces: () => readonly string[],
      ) => NoChangeClaim | undefined)
    | undefined

  readonly errors: ErrorShape
  /** Absent where nothing is learned of the upstream. */
  readonly connect?: (connection: Connection) => Connected
  /** What else is known of an endpoint, for `trellis explain` and `trellis routes`. */
  describe(endpoint: Endpoint): { readonly resource?: string; readonly [fact: string]: unknown }
}

export type ValidationInput = {
  readonly method: string
  readonly row: Row
  readonly endpoint: Endpoint
  readonly pathParameters: Readonly<Record<string, string>>
  /** Raw query without `?`; '' when there is none. */
  readonly query: string
  readonly contentType: string | undefined
  /** Complete content; undefined when there is none or when it is streamed unread. */
  readonly content: Buffer | undefined
  /** There is content, of which nothing is known. */
  readonly isUnread?: boolean
  /** Headers of the request, by lower-case names; absent where none are known. */
  readonly headers?: Readonly<Record<string, string | string[] | undefined>> | undefined
}

/** Query parameters that the row does not declare, tracking parameters excepted. */
export type UndeclaredParameters = {
  readonly handling: 'sent' | 'stripped'
  /** As the client wrote them: for explain output, never for a log line or a label. */
  readonly names: readonly string[]
}

/** What a request does, where its content says it and not its method: of GraphQL. */
export type ContentMeaning = {
  readonly effect: Effect
  /** In place of the policy for method and path. */
  readonly policy: CachePolicy
  /** Of a read: part of the cache key in place of method and content. */
  readonly key: string
  /** The part of the query that is keyed as it is. */
  readonly keyedQuery: string
  /** For metrics and logs, from a closed set. */
  readonly operation: string
  /** Contents of the requests that the content is a list of, each a request of its own; absent: it is one request. */
  readonly parts?: readonly Buffer[]
}

export type Validation =
  | {
      readonly kind: 'valid'
      /** Canonical query without `?`: for the cache key and for the upstream. */
      readonly query: string
      /** Typed values of all arguments from path, query and content, defaults filled in. */
      readonly arguments: Readonly<Record<string, unknown>>
      /** Absent when the query has none. */
      readonly undeclared?: UndeclaredParameters
      /** Something that the contract does not know may show in the response. */
      readonly mayShowAnything?: boolean
      /** Declared headers and cookies in their one spelling: part of the cache key beside path and query. */
      readonly variant?: string
      /** Cookie header with the declared cookies alone, for requests whose response is stored. */
      readonly cookie?: string
      /** The query contains a credential. */
      readonly hasQueryCredential?: boolean
      /** The content in its one spelling, which is sent where it is keyed; absent: as it is. */
      readonly keyedContent?: Buffer
      readonly meaning?: ContentMeaning
    }
  | {
      readonly kind: 'invalid'
      readonly status: number
      /** Code from the contract's closed list: a metric label. */
      readonly code: string
      /** Error in the service's own shape. */
      readonly body: unknown
    }

export type Invalid = Extract<Validation, { kind: 'invalid' }>

/** How a request does not fit its operation in an OpenAPI document. */
export type RequestFault = {
  readonly kind: 'fault'
  readonly status: number
  /** A closed list, because the codes are metric labels. */
  readonly code:
    | 'unreadable_query'
    | 'too_many_parameters'
    | 'invalid_parameter'
    | 'missing_body'
    | 'invalid_body'
    | 'unsupported_content_type'
  /** `query.limit` for a parameter, `body/name` for a value of the body, `json` and `repeated name` for a body that cannot be read. */
  readonly subject: string
  readonly errors: readonly {
    /** RFC 6901, in a URI fragment as RFC 9457 §3 shows it: into the body, or into the value of the parameter. */
    readonly pointer: string
    readonly parameter?: string
    readonly in?: string
    readonly detail: string
  }[]
}

export type Validator = {
  validate(input: ValidationInput): Validation
  /** The same in pieces, for a long content; absent where no content is read. */
  validateInPieces?(input: ValidationInput): Pieces<Validation>
}

type ValidatorInPieces = Required<Validator>

/** For any validator. */
export function* piecesOf(validator: Validator, input: ValidationInput): Pieces<Validation> {
  return validator.validateInPieces === undefined
    ? validator.validate(input)
    : yield* validator.validateInPieces(input)
}

/** A validator that is written in pieces. */
export const validatorOf = (validateInPieces: ValidatorInPieces['validateInPieces']): ValidatorInPieces => ({
  validate: (input) => atOnce(validateInPieces(input)),
  validateInPieces,
})

/**
 * What the companion of a site states about a request: it wrote `nothing`, only what its `own` user is shown, or `rows` of the log
 * of changes (incarnation, sequence and check value).
 */
export type WriteReceipt =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'own' }
  | { readonly kind: 'rows'; readonly rows: readonly string[] }

/** Sent with one write: binds the write receipt in its response to it. */
export type ReceiptNonce = {
  /** Of the write receipts. */
  readonly key: string
  /** Value of the header Trellis-Nonce. */
  readonly header: string
  /** The receipt in the header Trellis-Statement; undefined when it is missing, or does not belong to this request. */
  read(value: string | undefined): WriteReceipt | undefined
}

export type WriteReceipts = {
  /** The same for services that have the same token. */
  readonly key: string
  /** False while changes may be unknown. */
  isCurrent(): boolean
  /** Undefined unless it is current. */
  newNonce(): ReceiptNonce | undefined
  /** Have the changes of these rows been dropped in all processes? */
  hasApplied(rows: readonly string[]): boolean
}

/** A write receipt, with the key of the companion that made it. */
export type KeyedWriteReceipt = WriteReceipt & Pick<WriteReceipts, 'key'>

/** What a content must be; `any`: it is not read. */
type ContentRule = { readonly maxBytes: number; readonly isRight: (content: Buffer) => boolean }

/** Says of requests that they change nothing that a cached reader is shown. */
export type NoChangeClaim = {
  /** From the configuration, or from the table of a contract. */
  readonly by: 'harmless' | 'table'
  /** The pattern, or the name in the table and the reason. */
  readonly text: string
  /** By the media type, without parameters. Undefined: with such a content it is a write. */
  contentRule(mediaType: string): ContentRule | 'any' | undefined
  /** What must hold of the response too; undefined: nothing. */
  readonly confirmedBy?: ((status: number, setCookies: readonly string[]) => boolean) | undefined
}

/**
 * The gateway decodes no content codings, so a coded body would not be checked, and the upstream would act on it. The 415 names what
 * is accepted instead (RFC 9110 §15.5.16).
 */
export const readUncoded = (headers: RequestHeaders): ContentPlan => {
  const coding = requestHeader(headers, 'content-encoding')
  if (coding === undefined || coding.trim().toLowerCase() === 'identity') return 'read'
  throw new GatewayError('unsupported_content_type', {
    detail: 'Send the body without Content-Encoding.',
    headers: ['Accept-Encoding', 'identity'],
  })
}

const readable =
  /^(?:application\/(?:[a-z0-9!#$&^_.+-]+\+)?json|application\/x-www-form-urlencoded)\s*(?:;|$)/i

/** JSON and forms are read; other content only streams to endpoints that take uploads. */
export const planByMediaType: Contract['contentPlan'] = (method, endpoint, headers) => {
  // Many programs read a JSON content on GET as parameters: a response to another request than the one that is keyed.
  if (isGetOrHead(method)) {
    throw new GatewayError('ambiguous_request', { detail: `A body on ${method} is not accepted here.` })
  }
  if (readable.test(requestHeader(headers, 'content-type') ?? '')) return readUncoded(headers)
  if (endpoint.acceptsUploads === true) return 'stream'
  throw new GatewayError('unsupported_content_type', {
    detail: 'Send application/json or application/x-www-form-urlencoded.',
  })
}
