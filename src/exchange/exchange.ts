import type { Readable } from 'node:stream'
import type { CacheRead } from '../cache/cache-read.ts'
import type { CachePolicy } from '../cache/decide-caching.ts'
import type { ReadStep } from '../cache/read-steps.ts'
import type { Config } from '../config/config.ts'
import type { TraceContext } from '../http/headers/forwardable-headers.ts'
import { type HeaderChanges, withChanges } from '../http/headers/header-lines.ts'
import type { PublicLinks } from '../http/headers/links.ts'
import { memoizeByObject } from '../http/memo.ts'
import type { GatewayRequest, GatewayResponse, ResponseHead } from '../http/message.ts'
import type { Effect } from '../http/methods.ts'
import { targetOf } from '../http/targets.ts'
import type { AnyOrigins, LocalDocuments, Translation } from '../service/connection.ts'
import type { Contract, ReceiptNonce, WriteReceipts } from '../service/contract.ts'
import type { Canonical, Matching, RecalledTarget, TargetMemo } from '../service/decide.ts'
import type { Found } from '../service/row.ts'
import { createServiceTable, type ServiceTable } from '../service/service-table.ts'
import type { AttemptEvent } from '../upstream/events.ts'
import type { ForwardRequest } from '../upstream/messages.ts'
import type { Upstream } from '../upstream/upstream.ts'
import type { Access, Identity } from './access.ts'
import type { CacheOutcome, ExchangeOrigin, Invalidated, WriteKind } from './events.ts'
import type { Write, WriteState } from './write-state.ts'

/** How clients and the upstream name a service: from the configuration, never from a request. */
export type ServiceAddress = {
  /** The host that the address is for, where responses depend on the host; otherwise ''. Part of the cache key. */
  readonly host: string
  /** Where clients find the service: absolute, no slash at the end. */
  readonly publicRoot: string
  /** Host and port that clients use, for `X-Forwarded-Host`. */
  readonly publicHost: string
  /** `Host` sent upstream; undefined: the one that the upstream is configured with. */
  readonly hostHeader: string | undefined
  /** The servers of the upstream's targets: services that have one in common may show the same content. */
  readonly servers: readonly string[]
  /** Path in front of the upstream's targets; '' for none. */
  readonly basePath: string
  /** Absolute URLs in front of all targets: first those at the upstream, last the one for clients. */
  readonly roots: readonly string[]
  /** Undefined where names and URLs stay as they are. */
  readonly translation: Translation | undefined
  /** URLs of the upstream in response headers, as clients reach them; undefined where `translation` does that. */
  readonly links: PublicLinks | undefined
}

/** Caches in front of the gateway, as a service sees them (docs/decisions/0023-downstream.md). */
export type Downstream = {
  /** May they store what is sent now? */
  readonly mayStore: () => boolean
  /** The lines for a response with these tags; undefined: they must not store it. */
  readonly linesFor: NonNullable<CacheRead['forDownstream']>
}

/** What handling a request needs of one service; src/gateway makes and closes it. */
export type Service = {
  readonly name: string
  readonly contract: Contract
  /** Its companion; undefined without a change feed that is read. */
  readonly writeReceipts: WriteReceipts | undefined
  /** Public path in front of everything; '' for the root. */
  readonly mount: string
  /** Patterns of the hosts that the service answers; none = every host. */
  readonly hosts: readonly string[]
  readonly address: ServiceAddress
  /** The address for one of the hosts; undefined where responses are the same for all of them. */
  readonly addressAt: ((host: string) => ServiceAddress) | undefined
  readonly upstream: Upstream
  /** Undefined: every client may use it. */
  readonly access: Access | undefined
  readonly limits: {
    /** Of a target that a client sends. */
    readonly urlBytes: number
    readonly bodyBytes: number
    readonly uploadBytes: number
    /** Longest time that a request may take at the upstream; 0 = no bound. */
    readonly upstreamMs: number
  }
  readonly websockets: boolean
  readonly responses: {
    /** To the headers of each; undefined where there are none. */
    readonly changes: HeaderChanges | undefined
    /** Undefined: the upstream's CORS headers pass through. */
    readonly cors: Config['cors'] | undefined
    /** Those that are not stored, and those of one caller, for clients that accept it. */
    readonly compresses: boolean
    /** By the rules or the profile, or as a document of the gateway. */
    readonly mayBeStored: boolean
    contentId(): string
    /** Caches in front of the gateway; undefined where there are none. */
    readonly downstream: Downstream | undefined
    /** Which routes the upstream lets every origin read; undefined where that has no effect. */
    readonly anyOrigins: AnyOrigins | undefined
  }
  readonly memo: TargetMemo
  /** What the gateway answers itself. */
  readonly local: {
    readonly documents: LocalDocuments | undefined
    /** Handles each item with `run`. */
    readonly batch: ((request: LocalRequest, run: Run) => Promise<GatewayResponse>) | undefined
  }
}

/** The form of a service for requests to one of its hosts. */
export const serviceAtHost = (service: Service, host: string): Service =>
  service.addressAt === undefined
    ? service
    : { ...service, address: service.addressAt(host), addressAt: undefined }

/**
 * The services of one configuration. A request holds the configuration snapshot that it began with; what its write reaches, and whether its
 * response may be stored, are questions to the newest one.
 */
export class ConfigSnapshot {
  readonly services: readonly Service[]
  readonly table: ServiceTable<Service>
  #next: ConfigSnapshot | undefined
  readonly #sharing: (servers: readonly string[]) => readonly Service[]

  constructor(services: readonly Service[]) {
    this.services = services
    this.table = createServiceTable(services, serviceAtHost)
    // Computed once for each upstream: every write needs them. By the upstream and not by the name of its service: a write may have
    // begun under an earlier configuration.
    this.#sharing = memoizeByObject((servers) =>
      services.filter(
        ({ address }) =>
          address.servers !== servers && address.servers.some((server) => servers.includes(server)),
      ),
    )
  }

  /** Requests of this one may still be handled. */
  replaceBy(next: ConfigSnapshot): void {
    this.#next = next
  }

  /** Differs between configurations: what a write may change by the newest one is computed once for each. */
  get newest(): unknown {
    return this.#newestSnapshot
  }

  get #newestSnapshot(): ConfigSnapshot {
    let snapshot: ConfigSnapshot = this
    while (snapshot.#next !== undefined) snapshot = snapshot.#next
    return snapshot
  }

  /** Does the newest one have this service, with the same rules? */
  has(service: Service): boolean {
    return this.#newestSnapshot.services.some(({ memo }) => memo === service.memo)
  }

  /** The service that has a public path at a host. */
  serviceAt(authority: string, target: string): Service | undefined {
    const choice = this.#newestSnapshot.table.find(authority, target)
    return choice.kind === 'found' ? choice.service : undefined
  }

  /**
   * The other services with one of the servers of a service, whose stored responses a write to it may make stale: a site behind its
   * interface and, for its pages and its administration, behind an open service. Of an open service these are the responses of the
   * same URLs at the upstream (RFC 9111 §4.4), of the others all.
   */
  sharing({ address }: Service): readonly Service[] {
    return this.#newestSnapshot.#sharing(address.servers)
  }

  /** For one request that writes: of the receipts of the service, or of those that share its upstream; undefined where they have several. */
  newReceiptNonce(service: Service): ReceiptNonce | undefined {
    if (service.writeReceipts !== undefined) return service.writeReceipts.ask()
    const [first, ...others] = this.sharing(service).flatMap(({ writeReceipts }) => writeReceipts ?? [])
    return others.every(({ key }) => key === first?.key) ? first?.ask() : undefined
  }

  /** Does one of the services at the same upstream have routes? */
  sharesRoutes(service: Service): boolean {
    return this.sharing(service).some(({ contract }) => contract.hasRoutes)
  }
}

export type Run = (context: RequestContext) => Promise<GatewayResponse>

export type LocalRequest = {
  readonly id: string
  readonly client: Client
  readonly snapshot: ConfigSnapshot
  readonly service: Service
  readonly request: GatewayRequest
  readonly identity: Identity | undefined
  readonly query: string
  readonly arguments: Readonly<Record<string, unknown>>
  readonly policy: CachePolicy
  readonly content: Buffer | Readable | undefined
}

/** The client of the connection, or the one that a trusted proxy names. */
export type Client = {
  /** IP address, or `unknown` when the connection is already closed. */
  readonly address: string
  readonly protocol: 'http' | 'https'
  /** The connection is one of a trusted proxy. */
  readonly viaTrustedProxy: boolean
}

/** What happened to a request, written on its way: for the steps after it, the log and the metrics. */
type ExchangeRecord = {
  /** Template of the row, `unlisted` or `unmatched`; the operation, where the content decides it. */
  route: string
  cache: CacheOutcome
  /** Milliseconds spent waiting for the upstream's head. */
  upstreamMs: number
  /** Age of the stored response that was served; -1 when none was. */
  ageSeconds: number
  /** Origin of the target that was asked last. */
  target: string | undefined
  /** Code of the error that the gateway answered with. */
  code: string | undefined
  reason: string | undefined
  invalidated: Invalidated | undefined
  /** How far a write got; undefined for other requests. */
  writeProgress: Write | undefined
  /** What a request that may write was taken for. */
  writeKind: WriteKind | undefined
  /** Caches in front of the gateway may store the response: its lines say for how long. */
  isForDownstream: boolean
  /** Its open span, with a listener for attempts; undefined without traces. */
  trace:
    | (TraceContext & {
        readonly attempted?: (attempt: AttemptEvent) => void
        readonly read?: (step: ReadStep) => void
        readonly wrote?: (state: WriteState) => void
      })
    | undefined
}

export type RequestContext = {
  readonly id: string
  /** An item of a batch has no connection to stream to; what is fetched for a comparison is neither counted nor stored. */
  readonly origin: ExchangeOrigin
  readonly client: Client
  readonly snapshot: ConfigSnapshot
  readonly service: Service
  readonly request: GatewayRequest
  /** Path as received, relative to the mount of the service; begins with `/`. */
  readonly path: string
  /** Query as received, without `?`; '' when there is none. */
  readonly query: string
  readonly record: ExchangeRecord
  /** Sends an item of a batch, alone or together with others, instead of `service.upstream.forward`. */
  readonly send: Send | undefined
  /** Of an item of a batch; counts only for the same service. */
  readonly admitted: Admitted | undefined
  /** Of items of a batch that share one upstream request; any other write asks for a receipt of its own. */
  readonly receiptNonce: ReceiptNonce | undefined
  /** What `access` of the service has verified. */
  readonly identity: Identity | undefined
}

export type Send = (request: ForwardRequest) => Promise<GatewayResponse>

/** Route and canonical form of an item, which are found for all items of a batch before the first one runs. */
export type Admitted = {
  readonly service: Service
  readonly matching: Found
  readonly canonical: Canonical
}

/** What a request of an item has beyond one of a client. */
export type ItemParts = {
  readonly send: Send
  readonly admitted: Admitted | undefined
  readonly receiptNonce: ReceiptNonce | undefined
}

/** A new exchange. It has all members of the later stages from the start, so that V8 uses one shape. */
export const arrived = (
  parts: Omit<RequestContext, 'record' | 'identity' | keyof ItemParts>,
  item?: ItemParts,
): RequestContext => {
  const context: RequestContext & Record<keyof Omit<ValidatedContext, keyof RequestContext>, undefined> = {
    id: parts.id,
    origin: parts.origin,
    client: parts.client,
    snapshot: parts.snapshot,
    service: parts.service,
    request: parts.request,
    path: parts.path,
    query: parts.query,
    record: {
      route: 'unmatched',
      cache: 'none',
      upstreamMs: 0,
      ageSeconds: -1,
      target: undefined,
      code: undefined,
      reason: undefined,
      invalidated: undefined,
      writeProgress: undefined,
      writeKind: undefined,
      isForDownstream: false,
      trace: undefined,
    },
    send: item?.send,
    admitted: item?.admitted,
    receiptNonce: item?.receiptNonce,
    identity: undefined,
    method: undefined,
    matching: undefined,
    recalled: undefined,
    target: undefined,
    arguments: undefined,
    sendsUndeclared: undefined,
    content: undefined,
    keyedContent: undefined,
    meaning: undefined,
    uncacheable: undefined,
    variant: undefined,
    policy: undefined,
  }
  return context
}

/** Only `asIdentified`, `asMatched`, `asReady`, `asKeyed` and `asRecalled` write to a request. */
type Growing<Stage> = { -readonly [Name in keyof Stage]: Stage[Name] }

/** Writes to the request itself. */
export const asIdentified = (context: RequestContext, identity: Identity | undefined): RequestContext => {
  const stage = context as Growing<RequestContext>
  stage.identity = identity
  return stage
}

/** A request of which the method that it means and the row it concerns are known. */
export type MatchedContext = RequestContext & {
  readonly method: string
  readonly matching: Matching
  /** From an earlier request with the same target, or remembered by now: it is not validated again. */
  readonly recalled: RecalledTarget | undefined
}

/** Writes to the request itself: a later stage is the same object. */
export const asMatched = (
  context: RequestContext,
  method: string,
  matching: Matching,
  recalled: RecalledTarget | undefined,
): MatchedContext => {
  const stage = context as Growing<MatchedContext>
  stage.method = method
  stage.matching = matching
  stage.recalled = recalled
  return stage
}

/** A request in the one form that is keyed and sent. */
export type ValidatedContext = MatchedContext &
  Omit<Canonical, 'kind' | 'undeclared'> & {
    /** Read and checked, or an untouched stream. */
    readonly content: Buffer | Readable | undefined
  }

/** As `asMatched`: the same object again. */
export const asReady = (
  context: MatchedContext,
  canonical: Pick<ValidatedContext, keyof ValidatedContext & keyof Canonical>,
  content: ValidatedContext['content'],
): ValidatedContext => {
  const stage = context as Growing<ValidatedContext>
  stage.target = canonical.target
  stage.query = canonical.query
  stage.arguments = canonical.arguments
  stage.sendsUndeclared = canonical.sendsUndeclared
  stage.uncacheable = canonical.uncacheable
  stage.variant = canonical.variant
  stage.policy = canonical.policy
  stage.content = content
  stage.keyedContent = canonical.keyedContent
  stage.meaning = canonical.meaning
  return stage
}

/** A request that is read through the cache is sent with the content that is in its key. */
export const asKeyed = (context: ValidatedContext): ValidatedContext => {
  const stage = context as Growing<ValidatedContext>
  stage.content = stage.keyedContent ?? stage.content
  return stage
}

/** Marks the request as one whose target is remembered. */
export const asRecalled = (context: ValidatedContext, recalled: RecalledTarget): void => {
  const stage = context as Growing<ValidatedContext>
  stage.recalled = recalled
}

/** A request as it is forwarded: again, or beside its response. */
export type Outgoing = {
  readonly context: ValidatedContext
  readonly effect: Effect
  /** Request headers that the cache adds (validators), and those that it strips: what it adds is among them. */
  readonly extraHeaders: Readonly<Record<string, string>>
  readonly stripped: ReadonlySet<string>
  /** `Accept-Encoding` as it is sent. */
  readonly acceptEncoding: string
  /** No client waits for the response, and it takes no client's share of the upstream's slots. */
  readonly background: boolean
  readonly signal: AbortSignal
}

/** What the upstream is asked for; `query` has no `?`. */
export const upstreamTarget = (
  { basePath, translation }: ServiceAddress,
  path: string,
  query: string,
): string => basePath + (translation?.toUpstreamTarget(path, query) ?? targetOf(path, query))

/** The response with the changes that its service makes to all responses; undefined: the service is unknown. */
export const changedResponse = (response: GatewayResponse, service: Service | undefined): GatewayResponse => {
  const changes = service?.responses.changes
  return changes === undefined ? response : { ...response, headers: withChanges(response.headers, changes) }
}

export type SpanName = 'validate' | 'cache' | 'upstream'

export type OpenSpan = {
  /** `head`: the response, where there is one. */
  end(head: ResponseHead | undefined): void
  failed(error: unknown): void
  attempted(attempt: AttemptEvent): void
}

/** Opens a span; undefined where the request is not recorded. */
export type OpenSpans = (context: RequestContext, name: SpanName) => OpenSpan | undefined

const watched = async <Result>(
  span: OpenSpan,
  run: () => Result | Promise<Result>,
  head: (result: Result) => ResponseHead | undefined,
): Promise<Result> => {
  try {
    const result = await run()
    span.end(head(result))
    return result
  } catch (error) {
    span.failed(error)
    throw error
  }
}

/** Does a part of the way of a request within a span of its trace. `head`: the response that the part has made. */
export const inSpan = <Result>(
  open: OpenSpans | undefined,
  context: RequestContext,
  name: SpanName,
  run: () => Result | Promise<Result>,
  head: (result: Result) => ResponseHead | undefined,
): Result | Promise<Result> => {
  const span = open?.(context, name)
  return span === undefined ? run() : watched(span, run, head)
}
