import type { Readable } from 'node:stream'
import type { TraceContext } from '../http/forwardable-fields.ts'
import { type GatewayRequest, type GatewayResponse, targetOf, withChanges } from '../http/message.ts'
import type { Canonical, Matching } from '../service/decide.ts'
import type { Found } from '../service/row.ts'
import type { AttemptEvent } from '../upstream/events.ts'
import type { ForwardRequest } from '../upstream/messages.ts'
import type { Identity } from './access.ts'
import type { CacheOutcome, Invalidated, WriteKind } from './events.ts'
import type { Client, RecalledTarget, Service } from './service.ts'

/** What happened to an exchange: written on its way, read at its end. */
type ExchangeRecord = {
  /** Template of the row, `unlisted` or `unmatched`. */
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
  /** Why `access` refused the request. */
  reason: string | undefined
  /** The responses that the write invalidated. */
  invalidated: Invalidated | undefined
  /** What a request that may write was taken for. */
  taken: WriteKind | undefined
  /** Its open span, with a listener for attempts; undefined without traces. */
  trace: (TraceContext & { readonly attempted?: (attempt: AttemptEvent) => void }) | undefined
}

/** A request that has arrived at a service. */
export type Received = {
  readonly id: string
  /** `batch`: an item of a batch, which has no connection to stream to. */
  readonly origin: 'client' | 'batch'
  readonly client: Client
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

/** What an exchange of an item has beyond one of a client. */
export type ItemParts = { readonly send: Send; readonly admitted: Admitted | undefined }

/** A new exchange. It has all members of the later stages from the start, so that V8 uses one shape. */
export const arrived = (
  known: Omit<Received, 'record' | 'identity' | keyof ItemParts>,
  item?: ItemParts,
): Received => {
  const exchange: Received & Record<keyof Omit<Ready, keyof Received>, undefined> = {
    id: known.id,
    origin: known.origin,
    client: known.client,
    service: known.service,
    request: known.request,
    path: known.path,
    query: known.query,
    record: {
      route: 'unmatched',
      cache: 'none',
      upstreamMs: 0,
      ageSeconds: -1,
      target: undefined,
      code: undefined,
      reason: undefined,
      invalidated: undefined,
      taken: undefined,
      trace: undefined,
    },
    send: item?.send,
    admitted: item?.admitted,
    identity: undefined,
    method: undefined,
    matching: undefined,
    recalled: undefined,
    target: undefined,
    arguments: undefined,
    sendsUndeclared: undefined,
    content: undefined,
    sensitive: undefined,
    variant: undefined,
    policy: undefined,
  }
  return exchange
}

/** Only `asIdentified`, `asMatched`, `asReady`, `asRecalled` and `asTranslated` write to an exchange. */
type Growing<Stage> = { -readonly [Name in keyof Stage]: Stage[Name] }

/** Writes to the exchange itself. */
export const asIdentified = (exchange: Received, identity: Identity | undefined): Received => {
  const known = exchange as Growing<Received>
  known.identity = identity
  return known
}

/** A request of which the method that it means and the row it concerns are known. */
export type Matched = Received & {
  readonly method: string
  readonly matching: Matching
  /** From an earlier request with the same target, or remembered by now: it is not validated again. */
  readonly recalled: RecalledTarget | undefined
}

/** Writes to the exchange itself: a later stage is the same object. */
export const asMatched = (
  exchange: Received,
  method: string,
  matching: Matching,
  recalled: RecalledTarget | undefined,
): Matched => {
  const known = exchange as Growing<Matched>
  known.method = method
  known.matching = matching
  known.recalled = recalled
  return known
}

/** A request in the one form that is keyed and sent. */
export type Ready = Matched &
  Omit<Canonical, 'kind' | 'undeclared'> & {
    /** Read and checked, or an untouched stream. */
    readonly content: Buffer | Readable | undefined
  }

/** As `asMatched`: the same object again. */
export const asReady = (
  exchange: Matched,
  canonical: Pick<Ready, keyof Ready & keyof Canonical>,
  content: Ready['content'],
): Ready => {
  const known = exchange as Growing<Ready>
  known.target = canonical.target
  known.query = canonical.query
  known.arguments = canonical.arguments
  known.sendsUndeclared = canonical.sendsUndeclared
  known.sensitive = canonical.sensitive
  known.variant = canonical.variant
  known.policy = canonical.policy
  known.content = content
  return known
}

/** Marks the exchange as one whose target is remembered. */
export const asRecalled = (exchange: Ready, recalled: RecalledTarget): void => {
  const known = exchange as Growing<Ready>
  known.recalled = recalled
}

export type Outgoing = Ready & {
  /** Request fields that the cache adds (validators), and those that it withholds from the upstream: what it adds is among them. */
  readonly extraFields: Readonly<Record<string, string>>
  readonly withheld: ReadonlySet<string>
  /** `Accept-Encoding` as it is sent. */
  readonly acceptEncoding: string
  /** No client waits for the response, and it takes no client's share of the upstream's slots. */
  readonly background: boolean
  readonly signal: AbortSignal
}

type Forwarding = Omit<Outgoing, keyof Ready>

/** Its own object each time: an exchange may be forwarded again, or beside its answer. */
export const asOutgoing = (exchange: Ready, forwarding: Forwarding): Outgoing => {
  const outgoing: Outgoing & Record<keyof Omit<Translated, keyof Outgoing>, undefined> = {
    id: exchange.id,
    origin: exchange.origin,
    client: exchange.client,
    service: exchange.service,
    request: exchange.request,
    path: exchange.path,
    query: exchange.query,
    record: exchange.record,
    send: exchange.send,
    admitted: exchange.admitted,
    identity: exchange.identity,
    method: exchange.method,
    matching: exchange.matching,
    recalled: exchange.recalled,
    target: exchange.target,
    arguments: exchange.arguments,
    sendsUndeclared: exchange.sendsUndeclared,
    content: exchange.content,
    sensitive: exchange.sensitive,
    variant: exchange.variant,
    policy: exchange.policy,
    extraFields: forwarding.extraFields,
    withheld: forwarding.withheld,
    acceptEncoding: forwarding.acceptEncoding,
    background: forwarding.background,
    signal: forwarding.signal,
    upstreamTarget: undefined,
    upstreamContent: undefined,
  }
  return outgoing
}

/** What the upstream is asked for; `query` has no `?`. */
export const upstreamTarget = (
  { basePath, translation }: Pick<Service, 'basePath' | 'translation'>,
  path: string,
  query: string,
): string => {
  return basePath + (translation?.toUpstreamTarget(path, query) ?? targetOf(path, query))
}

export type Translated = Outgoing & {
  /** Path and query in the upstream's names, base path included. */
  readonly upstreamTarget: string
  /** `content` in the upstream's names. */
  readonly upstreamContent: Buffer | Readable | undefined
}

/** As `asMatched`. */
export const asTranslated = (
  exchange: Outgoing,
  target: string,
  upstreamContent: Translated['upstreamContent'],
): Translated => {
  const known = exchange as Growing<Translated>
  known.upstreamTarget = target
  known.upstreamContent = upstreamContent
  return known
}

/** The response with the changes that its service makes to all responses; undefined: the service is unknown. */
export const changedResponse = (
  response: GatewayResponse,
  service: Pick<Service, 'responseChanges'> | undefined,
): GatewayResponse =>
  service?.responseChanges === undefined
    ? response
    : { ...response, fields: withChanges(response.fields, service.responseChanges) }
