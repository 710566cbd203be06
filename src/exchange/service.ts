import type { Readable } from 'node:stream'
import type { CachePolicy, Sensitivity } from '../cache/decide-caching.ts'
import type { PublicLinks } from '../http/links.ts'
import { createRecentValues } from '../http/memo.ts'
import type { FieldChanges, GatewayRequest, GatewayResponse } from '../http/message.ts'
import type { AnyOrigins, LocalAnswers, Translation } from '../service/announced.ts'
import type { Contract } from '../service/contract.ts'
import type { Found } from '../service/row.ts'
import type { HarmlessClaim, Witness } from '../service/witness.ts'
import type { Upstream } from '../upstream/upstream.ts'
import type { Access, Identity } from './access.ts'

/** Everything about a valid GET that follows from its target alone. */
export type ValidTarget = {
  readonly kind: 'valid'
  readonly matching: Found
  /** Canonical path and query, relative to the mount. */
  readonly target: string
  readonly query: string
  readonly arguments: Readonly<Record<string, unknown>>
  readonly sendsUndeclared: boolean
  readonly sensitive: Sensitivity | undefined
  /** Targets whose responses depend on declared fields are not remembered. */
  readonly variant: undefined
  readonly policy: CachePolicy
  /** Cache key of the public partition, for services whose responses do not depend on the host. */
  readonly publicKey: string
}

/** The refusal of a GET without content, Content-Type or credential: all that it depends on beside the target. */
export type RefusedTarget = {
  readonly kind: 'refused'
  readonly matching: Found
  /** For metrics and the log. */
  readonly code: string
  readonly response: GatewayResponse
}

export type RecalledTarget = ValidTarget | RefusedTarget

/** Longer ones are rare, and a flood of them could fill the memory. */
const longestTarget = 512

/**
 * Canonical forms of raw targets that were seen before, and refusals: a hit costs neither routing nor validation. Bounded in entries;
 * with `longestTarget` that bounds bytes too.
 */
export const createTargetMemo = (mostEntries: number) => {
  const recent = createRecentValues<RecalledTarget>(mostEntries)
  return {
    recall: recent.get,
    remember: (rawTarget: string, recalled: RecalledTarget) => {
      if (rawTarget.length <= longestTarget) recent.set(rawTarget, recalled)
    },
    /** The route table has changed. */
    clear: recent.clear,
  }
}

export type TargetMemo = ReturnType<typeof createTargetMemo>

/** Does one of the services at the same upstream have routes? */
export const sharesRoutes = (service: Service): boolean =>
  service.sharing().some(({ contract }) => contract.hasRoutes)

/** What handling a request needs of one service; src/gateway makes and closes it. */
export type Service = {
  readonly name: string
  readonly contract: Contract
  /** Public path in front of everything; '' for the root. */
  readonly mount: string
  /** Patterns of the hosts that the service answers; none = every host. */
  readonly hosts: readonly string[]
  /** The host that this form of the service is for, where responses depend on the host; otherwise ''. Part of the cache key. */
  readonly host: string
  /** The form of the service for one of its hosts; undefined where responses are the same for all of them. */
  readonly atHost: ((host: string) => Service) | undefined
  /** Host and port that clients use, for `X-Forwarded-Host`: from the configuration, never from a request. */
  readonly publicHost: string
  /** `Host` sent upstream; undefined: the one that the upstream is configured with. */
  readonly hostField: string | undefined
  /** Changes to the fields of every response; undefined where there are none. */
  readonly responseChanges: FieldChanges | undefined
  /** Responses that are not stored, and those of one caller, are compressed for clients that accept it. */
  readonly compresses: boolean
  readonly websockets: boolean
  /** Undefined: every client may use it. */
  readonly access: Access | undefined
  readonly bodyBytes: number
  readonly uploadBytes: number
  readonly memo: TargetMemo
  /** Undefined where names and URLs stay as they are. */
  readonly translation: Translation | undefined
  /** URLs of the upstream in response fields, as clients reach them; undefined where `translation` does that. */
  readonly links: PublicLinks | undefined
  /** Its companion; undefined without a change feed that is read. */
  readonly witness?: Witness | undefined
  /** See `CacheRead`. */
  contentId(): string
  /** Does the current configuration have this service, with the same rules? */
  isCurrent(): boolean
  /** Why a request of this method, path and query may change nothing. Undefined: nothing is known of it. */
  readonly harmlessWrite?:
    | ((method: string, path: string, query: string) => HarmlessClaim | undefined)
    | undefined
  /** Something of it may be stored: by its rules or its profile, or a document of the gateway. */
  readonly storesAnswers: boolean
  /** Other services with the same upstream, by the current configuration: a write to this one may change their responses. */
  sharing(): readonly Service[]
  /** The service that has a public path at a host, by the current configuration. */
  serviceAt(authority: string, target: string): Service | undefined
  /** Which routes the upstream lets every origin read; undefined where that has no effect (any-origin.ts). */
  readonly anyOrigins: AnyOrigins | undefined
  /** Absolute URLs in front of all targets: first those at the upstream, last the one for clients. */
  readonly roots: readonly string[]
  /** Where clients find the service: absolute, no slash at the end. */
  readonly publicRoot: string
  /** Path in front of the upstream's targets; '' for none. */
  readonly basePath: string
  readonly upstream: Upstream
  /** Longest time that a request may take at the upstream; 0 = no bound. */
  readonly upstreamTotalMs: number
  /** Documents that the gateway makes itself; undefined where there are none. */
  readonly local: LocalAnswers | undefined
  /** Answers its batch route, if it has one. */
  readonly batch: ((request: LocalRequest) => Promise<GatewayResponse>) | undefined
}

export type LocalRequest = {
  readonly id: string
  readonly client: Client
  readonly service: Service
  readonly request: GatewayRequest
  readonly identity: Identity | undefined
  readonly query: string
  readonly arguments: Readonly<Record<string, unknown>>
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
