import type { Readable } from 'node:stream'
import type { ReadStep } from '../cache/events.ts'
import type { TraceContext } from '../http/headers/forwardable-headers.ts'
import type { HeaderLines } from '../http/headers/header-lines.ts'
import type { GatewayRequest, GatewayResponse } from '../http/message.ts'
import type { Canonical } from '../service/canonical.ts'
import type { ReceiptNonce } from '../service/contract.ts'
import type { Matching } from '../service/route-request.ts'
import type { Found } from '../service/row.ts'
import type { RecalledTarget } from '../service/target-memo.ts'
import type { AttemptEvent } from '../upstream/events.ts'
import type { ForwardRequest } from '../upstream/messages.ts'
import type { Identity } from './access.ts'
import type { ConfigSnapshot } from './config-snapshot.ts'
import type { CacheOutcome, ExchangeOrigin, Invalidated, WriteKind, WriteState, WriteStep } from './events.ts'
import type { Service } from './service.ts'
import type { WriteProgress } from './write/write-progress.ts'

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
  /** What is left of its rate limits; undefined where none counts it. */
  limitHeaders: HeaderLines | undefined
  invalidated: Invalidated | undefined
  /** How far a write got; undefined for other requests. */
  writeProgress: WriteProgress | undefined
  /** What a request that may write was taken for. */
  writeKind: WriteKind | undefined
  /** Caches in front of the gateway may store the response: its lines say for how long. */
  isForDownstream: boolean
  /** Its open span, with a listener for attempts; undefined without traces. */
  trace:
    | (TraceContext & {
        readonly attempted?: (attempt: AttemptEvent) => void
        readonly read?: (step: ReadStep) => void
        readonly write?: (step: WriteStep) => void
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
  /** Sends an item of a batch, alone or together with others, instead of `service.upstream.request`. */
  readonly forwardItem: ForwardItem | undefined
  /** Of an item of a batch; counts only for the same service. */
  readonly checked: CheckedItem | undefined
  /** Of items of a batch that share one upstream request; any other write asks for a receipt of its own. */
  readonly receiptNonce: ReceiptNonce | undefined
  /** What `access` of the service has verified. */
  readonly identity: Identity | undefined
}

export type ForwardItem = (request: ForwardRequest) => Promise<GatewayResponse>

/** Route and canonical form of an item, which are found for all items of a batch before the first one runs. */
export type CheckedItem = {
  readonly service: Service
  readonly matching: Found
  readonly canonical: Canonical
}

/** What a request of an item has beyond one of a client. */
export type ItemParts = {
  readonly forwardItem: ForwardItem
  readonly checked: CheckedItem | undefined
  readonly receiptNonce: ReceiptNonce | undefined
}

/** The context of a new request. It has all members of the later stages from the start, so that V8 uses one shape. */
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
      limitHeaders: undefined,
      invalidated: undefined,
      writeProgress: undefined,
      writeKind: undefined,
      isForDownstream: false,
      trace: undefined,
    },
    forwardItem: item?.forwardItem,
    checked: item?.checked,
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

/** Only `asIdentified`, `asMatched`, `asValidated`, `asKeyed` and `asRecalled` write to a request. */
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
  /** From an earlier request with the same target, or memoized by now: it is not validated again. */
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
export const asValidated = (
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

/** A request that the gateway answers itself. */
export type LocalRequest = Pick<
  ValidatedContext,
  | ('id' | 'client' | 'snapshot' | 'service' | 'request' | 'identity')
  | ('query' | 'arguments' | 'policy' | 'content')
>

/** `handle`, for a request that another one is made of. */
export type HandleRequest = (context: RequestContext) => Promise<GatewayResponse>

/** Answers a batch; handles each item with `handleItem`. */
export type HandleBatch = (batch: LocalRequest, handleItem: HandleRequest) => Promise<GatewayResponse>

/** A request that is read through the cache is sent with the content that is in its key. */
export const asKeyed = (context: ValidatedContext): ValidatedContext => {
  const stage = context as Growing<ValidatedContext>
  stage.content = stage.keyedContent ?? stage.content
  return stage
}

/** Marks the request as one whose target is memoized. */
export const asRecalled = (context: ValidatedContext, recalled: RecalledTarget): void => {
  const stage = context as Growing<ValidatedContext>
  stage.recalled = recalled
}
