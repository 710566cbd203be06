import type { Transform } from 'node:stream'
import type { CachePolicy } from '../cache/decide-caching.ts'
import type { Clock } from '../clock.ts'
import type { ServiceConfig } from '../config/config.ts'
import type { AnyOrigin } from '../http/headers/cors.ts'
import type { HeaderLines } from '../http/headers/header-lines.ts'
import type { ResponseHints, ResponseOrPromise } from '../http/message.ts'
import type { Row } from './row.ts'

// What a contract learns of the upstream while the service runs.

/** Why the upstream's index could not be used; the last good one stays. */
export const indexRefusals = [
  'unreachable',
  'timeout',
  'status',
  'too-large',
  'too-deep',
  'not-json',
  'not-an-index',
  /** It can be read, but processing it failed. */
  'unusable',
] as const
export type IndexRefusal = (typeof indexRefusals)[number]

/** Why no row was made of a route that the upstream announces. */
export const routeRefusals = [
  'pattern-too-long',
  'pattern-unreadable',
  'pattern-not-understood',
  'pattern-too-complex',
  'too-many-alike',
  'template-taken',
  'not-a-route',
  'no-methods',
  'too-many-arguments',
] as const
export type RouteRefusal = (typeof routeRefusals)[number]

/** How the upstream's index differs from the contract's table. */
export const differenceKinds = [
  'route-missing',
  'pattern-changed',
  'method-missing',
  'method-added',
  'batch-changed',
  'argument-missing',
  'argument-added',
  'argument-changed',
] as const
export type DifferenceKind = (typeof differenceKinds)[number]

/** Events of discovery. `service` comes from the configuration, all else from closed lists and counts. */
export type DiscoveryEvent =
  | {
      readonly kind: 'index-refreshed'
      readonly service: string
      /** Routes that the upstream announces and the contract does not list. */
      readonly unlistedRoutes: number
      readonly learnedRows: number
      readonly refused: Readonly<Partial<Record<RouteRefusal, number>>>
    }
  | {
      /** Sent when the announced routes of which no row could be made are others than before; they are passed on unread. */
      readonly kind: 'routes-refused'
      readonly service: string
      readonly refused: Readonly<Partial<Record<RouteRefusal, number>>>
    }
  | {
      readonly kind: 'index-failed'
      readonly service: string
      readonly reason: IndexRefusal
      /** Whether an earlier index still answers. */
      readonly keptLast: boolean
      /** The error, for the log only. */
      readonly cause?: unknown
    }
  | {
      /** Sent after the first refresh and whenever the differences change: the counts of those that matter, with zero left out. */
      readonly kind: 'drift-compared'
      readonly service: string
      readonly differences: Readonly<Partial<Record<DifferenceKind, number>>>
    }

/** One difference between the upstream's index and the contract's table. */
export type Difference = {
  readonly kind: DifferenceKind
  /**
   * True: a response of the gateway differs from the upstream's (drift). False: another version of the upstream,
   * whose requests and answers pass.
   */
  readonly matters: boolean
  readonly route: string
  readonly method?: string
  readonly argument?: string
  readonly keyword?: string
  readonly ours?: unknown
  readonly theirs?: unknown
}

/** What is known of the origins that a site allows; `undefined` where it is unknown, or where not every origin is allowed. */
export type AnyOrigins = {
  /** By the last response to the index. */
  site(): AnyOrigin | undefined
  route(row: Row): AnyOrigin | undefined
  /** Asks the upstream where that is due. A promise while a route is asked for the first time; it never rejects. */
  askRoute(row: Row, path: string): AnyOrigin | undefined | Promise<AnyOrigin | undefined>
}

export type ContentMapper = {
  /** For one content that arrives in chunks. */
  transform(): Transform
  whole(content: Buffer): Buffer
}

/** Translates between public names and URLs and the upstream's. */
export type Translation = {
  toUpstreamTarget(path: string, query: string): string
  toUpstreamContent(content: Buffer, contentType: string | undefined): Buffer | Promise<Buffer>
  /** For a response with these headers: its public headers, and what maps its content; undefined: the content has no names. */
  fromUpstream(headers: HeaderLines): {
    readonly headers: HeaderLines
    readonly mapper: ContentMapper | undefined
  }
}

/** Documents that the gateway makes itself. */
export type LocalDocuments = {
  index(request: LocalDocumentRequest & { readonly query: string }, row: Row): ResponseOrPromise
  /** `forward` gives the upstream's response, which has the schema of its items. */
  options(request: LocalDocumentRequest, row: Row, forward: () => ResponseOrPromise): ResponseOrPromise
  /** A write may have changed the documents; '' when its collection is unknown. */
  written(collection: string): void
}

type LocalDocumentRequest = { readonly service: { readonly address: { readonly publicRoot: string } } }

/** What the upstream announces. Requests are sent after `start`, or by `refresh`. */
export type UpstreamRoutes = {
  start(): void
  /** Reads it now; resolves also when that fails. */
  refresh(): Promise<void>
  close(): Promise<void>
  /** The contract's rows as the upstream takes them. */
  listed(): readonly Row[]
  /** Rows of the routes that the contract does not list. */
  learned(): readonly Row[]
  drift(): readonly Difference[]
  /** The announced routes of which no row could be made, in words; undefined without any. */
  refused(): string | undefined
  /** What is worth knowing, and no fault. */
  hints(): readonly string[]
}

/** What a contract needs of the running service. */
export type Connection = {
  readonly clock: Clock
  /** Where clients find the service: absolute, no slash at the end. */
  readonly publicRoot: string
  /** `Host` sent upstream; '' = that of the target. */
  readonly hostHeader: string
  readonly targets: readonly string[]
  /** A GET of the gateway itself; `content` is undefined where it is larger than `maxBytes`. */
  get(
    request: { readonly target: string; readonly headers: HeaderLines; readonly signal: AbortSignal },
    maxBytes: number,
  ): Promise<{ readonly status: number; readonly headers: HeaderLines; readonly content: Buffer | undefined }>
  /** Is knowledge that was read from an upstream earlier still valid? */
  mayRemember(): boolean
  /** The rows of the contract are others now. */
  rowsLearned(): void
  /** Called after that when stored responses may lack tags. */
  tableChanged(): void
  report(event: DiscoveryEvent): void
}

/** What a contract brings to a running service. */
export type Connected = {
  /** Between the names and URLs of the upstream and those of clients; `hostHeader` as in `Connection`. */
  translationAt(publicRoot: string, hostHeader: string): Translation
  readonly local: LocalDocuments
  /** Undefined where nothing that was learned of a route would end. */
  readonly anyOrigins: AnyOrigins | undefined
  readonly upstreamRoutes: UpstreamRoutes
}

export type Seen =
  | {
      readonly kind: 'answer'
      readonly status: number
      readonly headers: HeaderLines
      readonly hints?: ResponseHints | undefined
      readonly content: Buffer
    }
  | { readonly kind: 'none'; readonly reason: string }

/** A mismatch between a service and its upstream; logs name it by `kind`. */
export type Issue = {
  readonly kind:
    | 'no-answer'
    | 'maintenance'
    | 'index-refused'
    | 'index-redirected'
    | 'wrong-base-path'
    | 'plain-permalinks'
    | 'no-wordpress'
    | 'home-elsewhere'
    | 'root-elsewhere'
    | 'wrong-token'
    | 'no-companion'
    | 'unreachable'
    | 'unhealthy'
    | 'clock'
    | 'redirect-loop'
    | 'not-stored'
    | 'object-cache'
  /** The fault and its remedy, for a person. */
  readonly text: string
}

/** Sends GETs to an upstream as a client's GETs are sent, and says what else a check needs. */
export type UpstreamCheck<Service extends ServiceConfig = ServiceConfig> = {
  readonly service: Service
  ask(target: string, more?: HeaderLines): Promise<Seen>
  /** In front of the mount: no slash at the end. */
  readonly publicUrl: string
  /** Other services on one of its servers. */
  readonly sharing: readonly ServiceConfig[]
  contract(): Promise<{
    readonly rows: readonly Row[]
    policyFor(method: string, path: string): CachePolicy
  }>
}

/** What a contract looks for at upstreams, for `check --upstreams`. */
export type UpstreamChecks = {
  issues(check: UpstreamCheck): Promise<readonly Issue[]>
  /** Of each server; where there is only one, `issues` has asked it whether it answers. */
  readonly serverIssues?: (check: UpstreamCheck) => Promise<readonly Issue[]>
  /** What follows where such a service has no `changes`, and what to do; for `doctor`. */
  readonly withoutChanges?: string
  /** What the upstream says of itself that is no fault; for `doctor`. */
  readonly facts?: (check: UpstreamCheck) => Promise<readonly string[]>
  /** What the configuration of such a service allows, and who runs it should know; for `doctor`. */
  readonly hints?: readonly string[]
  /** Codes of the requests that limits of the configuration refuse; `doctor` says how many were refused for each. */
  readonly limitCodes?: readonly string[]
}
